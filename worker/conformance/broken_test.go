package conformance_test

import (
	"bytes"
	"context"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-json-experiment/json"

	"stint/worker/conformance"
)

type object = map[string]any

// talk is one request on its way to the coordinator and back.
type talk struct {
	method, verb, session string // verb is the last word of the path, such as claim; session the id before it
	worker                string
	query                 url.Values
	sent                  object // nil when there was none, or it was not an object

	status int
	header http.Header
	answer object
}

// defect is a coordinator that breaks one rule: a proxy that changes what goes in or comes
// out.
type defect struct {
	name string
	rule string // the rule that has to catch it
	in   func(m *memory, k *talk)
	out  func(m *memory, k *talk)
}

// memory is the state of a broken coordinator. The proxy's lock guards it.
type memory struct {
	texts map[string]string
	seen  map[string]object
	count map[string]int
}

// broken starts a broken coordinator in front of the real one.
func broken(t *testing.T, target string, d defect) string {
	t.Helper()
	to, err := url.Parse(target)
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex // guards m
	m := &memory{texts: map[string]string{}, seen: map[string]object{}, count: map[string]int{}}
	type key struct{}
	transport := &http.Transport{MaxIdleConnsPerHost: 64}
	proxy := &httputil.ReverseProxy{
		Transport: transport,
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(to) // and with it the Host that the coordinator knows
			k := read(r.Out)
			if d.in != nil {
				mu.Lock()
				d.in(m, k)
				mu.Unlock()
				write(r.Out, k)
			}
			r.Out = r.Out.WithContext(context.WithValue(r.Out.Context(), key{}, k))
		},
		ModifyResponse: func(resp *http.Response) error {
			k := resp.Request.Context().Value(key{}).(*talk)
			if d.out == nil || resp.StatusCode == http.StatusNoContent {
				return nil
			}
			b, err := io.ReadAll(resp.Body)
			if err != nil {
				return err
			}
			_ = resp.Body.Close()
			k.status, k.header, k.answer = resp.StatusCode, resp.Header, nil
			if err := json.Unmarshal(b, &k.answer); err == nil {
				mu.Lock()
				d.out(m, k)
				mu.Unlock()
				if b, err = json.Marshal(k.answer); err != nil {
					return err
				}
			}
			resp.StatusCode = k.status
			resp.Header.Del("Content-Length")
			resp.ContentLength = int64(len(b))
			resp.Body = io.NopCloser(bytes.NewReader(b))
			return nil
		},
	}
	s := httptest.NewServer(proxy)
	t.Cleanup(func() {
		s.Close()
		transport.CloseIdleConnections()
	})
	return s.URL
}

func read(r *http.Request) *talk {
	parts := strings.Split(r.URL.Path, "/")
	k := &talk{method: r.Method, verb: parts[len(parts)-1], query: r.URL.Query()}
	for i, p := range parts[:len(parts)-1] {
		switch p {
		case "sessions":
			k.session = parts[i+1]
		case "workers":
			k.worker = parts[i+1]
		}
	}
	if r.Body == nil {
		return k
	}
	b, err := io.ReadAll(r.Body)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	r.Body = io.NopCloser(bytes.NewReader(b))
	r.ContentLength = int64(len(b))
	_ = json.Unmarshal(b, &k.sent) // what isn't an object stays as it is
	return k
}

func write(r *http.Request, k *talk) {
	r.URL.RawQuery = k.query.Encode()
	if k.sent == nil {
		return
	}
	b, err := json.Marshal(k.sent)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	r.Body = io.NopCloser(bytes.NewReader(b))
	r.ContentLength = int64(len(b))
}

func textOf(o object, name string) string {
	s, _ := o[name].(string)
	return s
}

func inner(o object, name string) object {
	v, _ := o[name].(object)
	return v
}

func code(k *talk) string { return textOf(k.answer, "code") }

// instead replaces any answer but a refusal.
func instead(k *talk, answer object) {
	k.status, k.answer = http.StatusOK, answer
	k.header.Set("Content-Type", "application/json")
}

func each(o object, name string, do func(object)) {
	values, _ := o[name].([]any)
	for _, v := range values {
		if item, ok := v.(object); ok {
			do(item)
		}
	}
}

// A kit that passes a broken coordinator is worth nothing: each of these breaks one rule, and
// that rule's name catches it.
func TestBrokenCoordinators_AreCaughtByName(t *testing.T) {
	t.Parallel()
	s := coordinator(t)
	rules := map[string]bool{}
	for _, v := range conformance.Rules() {
		rules[v.Rule] = true
	}
	if len(defects) < 15 {
		t.Fatalf("only %d defects", len(defects))
	}
	places := make(chan struct{}, 4)
	for _, d := range defects {
		if !rules[d.rule] {
			t.Errorf("%s is to be caught by %s, which is no rule", d.name, d.rule)
		}
		t.Run(d.name, func(t *testing.T) {
			t.Parallel()
			places <- struct{}{}
			defer func() { <-places }()
			// A rule that the defect doesn't touch is tried with it, so that a coordinator
			// that merely answers nothing doesn't pass for the intended one.
			report := judge(t, broken(t, s.URL, d), s.Token, d.rule, sane(d.rule))
			for _, v := range report.Verdicts {
				if v.Passed == (v.Rule == d.rule) {
					t.Errorf("%s: passed %v %s", v.Rule, v.Passed, v.Why)
				}
				if v.Rule == d.rule {
					t.Logf("%s: %s", v.Rule, v.Why)
				}
			}
		})
	}
}

// It isn't the proxy itself that is caught: without a defect it keeps every rule.
func TestBrokenCoordinators_WithoutADefectKeepsEveryRule(t *testing.T) {
	t.Parallel()
	s := coordinator(t)
	nothing := func(*memory, *talk) {}
	report := judge(t, broken(t, s.URL, defect{name: "none", in: nothing, out: nothing}), s.Token)
	for _, v := range report.Verdicts {
		// What the proxy reads and rewrites as an object is corrected on the way.
		if !v.Passed && v.Rule != "wire.strict_json" {
			t.Errorf("%s: %s", v.Rule, v.Why)
		}
	}
}

// sane is a rule that has nothing to do with another one.
func sane(rule string) string {
	if strings.HasPrefix(rule, "patch.") || strings.HasPrefix(rule, "write.") {
		return "register.makes_a_record"
	}
	return "patch.reports"
}

func TestRules_HaveNamesOfTheirOwn(t *testing.T) {
	t.Parallel()
	names := map[string]int{}
	for _, v := range conformance.Rules() {
		names[v.Rule]++
		for other := range names {
			if other != v.Rule && (strings.HasPrefix(other, v.Rule) || strings.HasPrefix(v.Rule, other)) {
				t.Errorf("%s can't be chosen apart from %s", v.Rule, other)
			}
		}
	}
	if n := slices.Max(slices.Collect(maps.Values(names))); n > 1 {
		t.Error("two rules have one name")
	}
}

func TestRun_SaysWhyNothingCanBeJudged(t *testing.T) {
	t.Parallel()
	s := coordinator(t)
	for what, target := range map[string]conformance.Target{
		"a wrong token":   {URL: s.URL, Token: "wrong"},
		"no workspace":    {URL: s.URL, Token: s.Token, Workspace: "nowhere"},
		"nobody there":    {URL: "http://127.0.0.1:1", Token: s.Token},
		"no URL":          {URL: "localhost", Token: s.Token},
		"no such rule":    {URL: s.URL, Token: s.Token, Rules: []string{"dance"}},
		"another service": {URL: other(t), Token: s.Token},
	} {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		if report, err := conformance.Run(ctx, target); err == nil {
			t.Errorf("%s: %+v", what, report)
		}
		cancel()
	}
}

// other is a server of another kind.
func other(t *testing.T) string {
	t.Helper()
	s := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(s.Close)
	return s.URL
}
