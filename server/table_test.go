package server

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/pb33f/go-yaml"

	"stint/api"
)

// codes reads the constants of type Code from the source, so that a new one
// can't be forgotten here.
func codes(t *testing.T) []api.Code {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "../api/error.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	var all []api.Code
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok {
			return true
		}
		if kind, ok := spec.Type.(*ast.Ident); !ok || kind.Name != "Code" {
			return true
		}
		for _, v := range spec.Values {
			text, err := strconv.Unquote(v.(*ast.BasicLit).Value)
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, api.Code(text))
		}
		return true
	})
	if len(all) < 25 {
		t.Fatalf("found only %d codes in api/error.go", len(all))
	}
	return all
}

func TestErrors_EveryCodeHasAStatus(t *testing.T) {
	for _, code := range codes(t) {
		if statusOf[code] == 0 {
			t.Errorf("%s has no row in errors.go", code)
		}
	}
	if n := len(codes(t)); len(statusOf) != n {
		t.Errorf("errors.go has %d rows for %d codes", len(statusOf), n)
	}
}

func TestRoutes_EqualTheDocument(t *testing.T) {
	var doc struct {
		Paths map[string]map[string]any `yaml:"paths"`
	}
	if err := yaml.Unmarshal(api.OpenAPIYAML(), &doc); err != nil {
		t.Fatal(err)
	}
	var documented, served []string
	for path, item := range doc.Paths {
		for method := range item {
			if method != "parameters" {
				documented = append(documented, strings.ToUpper(method)+" "+path)
			}
		}
	}
	all := slices.Concat(allRoutes(), openRoutes, hookRoutes)
	for _, r := range all {
		if !undocumented(r.path) {
			served = append(served, r.method+" "+r.path)
		}
	}
	slices.Sort(documented)
	slices.Sort(served)
	for _, r := range documented {
		if !slices.Contains(served, r) {
			t.Errorf("documented but not served: %s", r)
		}
	}
	for _, r := range served {
		if !slices.Contains(documented, r) {
			t.Errorf("served but not documented: %s", r)
		}
	}
	all = slices.DeleteFunc(all, func(r route) bool { return undocumented(r.path) })
	if len(slices.Compact(served)) != len(all) {
		t.Error("a route stands twice in the table")
	}
	for key := range keyScopes {
		if !slices.Contains(served, key) && key != "POST "+mcpRoute {
			t.Errorf("API keys may use %s, which isn't served", key)
		}
	}
}

// undocumented distinguishes the pages of people who sign in, and the endpoint of the Model
// Context Protocol, from the paths of the API.
func undocumented(path string) bool {
	if strings.HasSuffix(path, mcpRoute) {
		return true // another protocol, which describes itself
	}
	return strings.HasPrefix(path, "/sign") || path == setUpRoute || path == invitationRoute || path == authorizeRoute || path == verifyRoute
}

func TestSamePlace_NeverLeadsElsewhere(t *testing.T) {
	good := []string{"/", "/sessions", "/sessions/ses_1?x=1#log", "/a//b"}
	for _, next := range good {
		if got := samePlace(next); got != next {
			t.Errorf("%q became %q", next, got)
		}
	}
	bad := []string{
		"", "sessions", "//evil.test", "///evil.test", `/\evil.test`, `\\evil.test`, "http://evil.test/", "https:evil.test",
		"javascript:alert(1)", "/\x00", "/a\r\nSet-Cookie: x=1", " /", "//evil.test/%2f..", `/a\..\b`, "http:/x", "?x", "#x",
	}
	for _, next := range bad {
		if got := samePlace(next); got != "/" {
			t.Errorf("%q became %q", next, got)
		}
	}
}

func TestCheckAddr_AllowsLoopbackOnly(t *testing.T) {
	for _, addr := range []string{"127.0.0.1:7717", "127.0.0.1:0", "127.9.9.9:1", "[::1]:7717", "localhost:65535"} {
		if err := CheckAddr(addr, Public{}); err != nil {
			t.Errorf("%s: %v", addr, err)
		}
	}
	bad := []string{
		"", "7717", ":7717", "0.0.0.0:7717", "[::]:7717", "192.168.1.5:7717", "example.com:80", "127.0.0.1", "127.0.0.1:x",
		"127.0.0.1:65536", "127.0.0.1:-1", "localhost.evil.test:80", "[::ffff:8.8.8.8]:1", "stint.localhost:1", "10.0.0.1:7717",
	}
	for _, addr := range bad {
		if err := CheckAddr(addr, Public{}); err == nil {
			t.Errorf("%q is allowed", addr)
		}
	}
}

func TestCheckAddr_PublicURLAllowsOthers(t *testing.T) {
	public, err := ParsePublic("https://Stint.Example.com:443/", []string{"stint.lan:7717"}, []string{"10.0.0.0/8", "::1"})
	if err != nil || public.URL.String() != "https://stint.example.com" {
		t.Fatalf("%v: %v", public.URL, err)
	}
	for _, addr := range []string{"0.0.0.0:7717", ":7717", "192.168.1.5:80"} {
		if err := CheckAddr(addr, public); err != nil {
			t.Errorf("%s: %v", addr, err)
		}
	}
	list := newHostList("0.0.0.0:7717", public.names()...)
	for host, want := range map[string]bool{
		"stint.example.com": true, "STINT.example.com": true, "stint.lan:7717": true, "localhost:7717": true, "0.0.0.0:7717": false,
		"stint.example.com:7717": false, "x.stint.example.com": false, "stint.lan": false,
	} {
		if list.has(host) != want {
			t.Errorf("%s: let in is %v", host, !want)
		}
	}
	for _, bad := range []string{"http://stint.example.com", "stint.example.com", "https://x/a b", "https://x/a%2Fb", "https://x/a//b", "https://x/..", "https://x/a/./b", "https://x/ä", "https://x/a;b", "https://x/\"", "https://u@x", "https://x?y", "https://", "ftp://x"} {
		if _, err := ParsePublic(bad, nil, nil); err == nil {
			t.Errorf("%q is taken", bad)
		}
	}
	if p, err := ParsePublic("https://x.test:8443/apps/stint/", nil, nil); err != nil || p.URL.String() != "https://x.test:8443/apps/stint" {
		t.Errorf("a path becomes %v: %v", p.URL, err)
	}
	for _, bad := range []string{"", "*", "a/b", "a b"} {
		if _, err := ParsePublic("https://x", []string{bad}, nil); err == nil {
			t.Errorf("the host %q is taken", bad)
		}
	}
	if _, err := ParsePublic("https://x", nil, []string{"proxy.lan"}); err == nil {
		t.Error("a proxy's name is taken for an address")
	}
}

func TestHostList_IsExact(t *testing.T) {
	list := newHostList("127.0.0.1:7717")
	for _, host := range []string{"127.0.0.1:7717", "localhost:7717", "LocalHost:7717", "[::1]:7717", "stint.localhost:7717"} {
		if !list.has(host) {
			t.Errorf("%s is refused", host)
		}
	}
	bad := []string{
		"", "127.0.0.1", "localhost", "127.0.0.1:7718", "evil.test", "evil.test:7717", "stint.localhost.evil.test:7717",
		"localhost.:7717", "x.stint.localhost:7717", "127.0.0.2:7717", "[::1]", "::1:7717", "0.0.0.0:7717", "2130706433:7717",
	}
	for _, host := range bad {
		if list.has(host) {
			t.Errorf("%q is let in", host)
		}
	}
	if !newHostList("127.0.0.1:80").has("stint.localhost") {
		t.Error("a browser leaves the port 80 out, and is refused")
	}
}

// FuzzDecode shows that no body panics or takes long, and that a refused body is refused as
// malformed.
func FuzzDecode(f *testing.F) {
	for _, seed := range []string{
		`{}`, `{"prompt":"x"}`, `{"Prompt":"x"}`, `{"a":{"b":[1,2,{"c":null}]}}`, `null`, `[]`, "\xef\xbb\xbf{}", `{"prompt":"a"}{}`,
		`{"priority":1e400}`, `{"notBefore":"0000-00-00"}`, strings.Repeat(`{"a":`, 2000),
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var in api.SessionInput
		err := decodeJSON(b, &in)
		var refused *api.Error
		if err != nil && (!errors.As(err, &refused) || refused.Code != api.CodeMalformed || len(refused.Detail) > 1000) {
			t.Errorf("%q: %v", b, err)
		}
		_ = fmt.Sprint(in)
	})
}
