package servertest

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/pb33f/go-yaml"
	"github.com/pb33f/libopenapi"
	validator "github.com/pb33f/libopenapi-validator"
	"github.com/pb33f/libopenapi-validator/config"
	validation "github.com/pb33f/libopenapi-validator/errors"

	"stint/api"
)

// Operation is one method of one path in the document.
type Operation struct {
	Method, Path string
	Statuses     []int // documented, without default
	Body         bool  // takes a body
	Form         bool  // … that is a form, not JSON
	Public       bool  // needs no sign-in
	Query        []string
}

// Operations lists the document's operations, sorted by path and method.
func Operations() []Operation { return document().operations }

// Seen reports whether a status of an operation was answered in this process.
func Seen(op Operation, status int) bool {
	d := document()
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.seen[key(op, status)]
}

func key(op Operation, status int) string {
	return op.Method + " " + op.Path + " " + strconv.Itoa(status)
}

type contract struct {
	operations []Operation
	validator  validator.Validator
	mu         sync.Mutex // guards seen, and the validator, which caches without locking
	seen       map[string]bool
}

var document = sync.OnceValue(func() *contract {
	doc, err := libopenapi.NewDocument(api.OpenAPIYAML())
	if err != nil {
		panic(err)
	}
	v, errs := validator.NewValidator(doc, config.WithoutSecurityValidation(), config.WithStrictMode(),
		config.WithStrictIgnorePaths("$.body.data.**", "$.body.items[*].data.**", "$.body.choices.**", "$.body.answer.choices.**", "$.headers.**"))
	if len(errs) > 0 {
		panic(errs[0])
	}
	return &contract{operations: readOperations(), validator: v, seen: map[string]bool{}}
})

func readOperations() []Operation {
	var doc struct {
		Paths map[string]map[string]struct {
			Security   *[]any         `yaml:"security"`
			Body       map[string]any `yaml:"requestBody"`
			Responses  map[string]any `yaml:"responses"`
			Parameters []struct {
				Ref string `yaml:"$ref"`
			} `yaml:"parameters"`
		} `yaml:"paths"`
	}
	var paths struct {
		Paths map[string]map[string]any `yaml:"paths"`
	}
	if err := yaml.Unmarshal(api.OpenAPIYAML(), &paths); err != nil {
		panic(err)
	}
	for _, item := range paths.Paths {
		delete(item, "parameters")
	}
	again, err := yaml.Marshal(paths)
	if err != nil {
		panic(err)
	}
	if err := yaml.Unmarshal(again, &doc); err != nil {
		panic(err)
	}
	var all []Operation
	for path, item := range doc.Paths {
		for method, o := range item {
			op := Operation{Method: strings.ToUpper(method), Path: path, Body: o.Body != nil, Public: o.Security != nil}
			if content, ok := o.Body["content"].(map[string]any); ok {
				op.Form = content["application/x-www-form-urlencoded"] != nil
			}
			for status := range o.Responses {
				if n, err := strconv.Atoi(status); err == nil {
					op.Statuses = append(op.Statuses, n)
				}
			}
			for _, p := range o.Parameters {
				op.Query = append(op.Query, p.Ref[strings.LastIndexByte(p.Ref, '/')+1:])
			}
			slices.Sort(op.Statuses)
			all = append(all, op)
		}
	}
	slices.SortFunc(all, func(a, b Operation) int { return strings.Compare(a.Path+a.Method, b.Path+b.Method) })
	return all
}

// find returns the operation that serves a request; false when none does.
func (c *contract) find(method, path string) (Operation, bool) {
	if method == http.MethodHead {
		method = http.MethodGet
	}
	// The path that names most decides, whatever its methods are: tasks/next is not a task.
	best := ""
	for _, op := range c.operations {
		if fits(op.Path, path) && (best == "" || strings.Count(op.Path, "{") < strings.Count(best, "{")) {
			best = op.Path
		}
	}
	for _, op := range c.operations {
		if op.Method == method && op.Path == best {
			return op, true
		}
	}
	return Operation{}, false
}

func fits(template, path string) bool {
	t, p := strings.Split(template, "/"), strings.Split(path, "/")
	if len(t) != len(p) {
		return false
	}
	for i := range t {
		if t[i] != p[i] && !strings.HasPrefix(t[i], "{") {
			return false
		}
	}
	return true
}

// checker is a RoundTripper that checks each answer against the document: its status must be
// documented, its body must have the documented shape and no other property; and what the
// server accepts must be what the document allows.
type checker struct {
	tb   testing.TB
	next http.RoundTripper
}

func (c *checker) RoundTrip(req *http.Request) (*http.Response, error) {
	var sent []byte
	if req.Body != nil {
		var err error
		if sent, err = io.ReadAll(req.Body); err != nil {
			return nil, err
		}
		_ = req.Body.Close()
		req.Body = io.NopCloser(bytes.NewReader(sent))
	}
	resp, err := c.next.RoundTrip(req)
	if err != nil || strings.HasPrefix(resp.Header.Get("Content-Type"), "text/event-stream") {
		return resp, err
	}
	op, documented := document().find(req.Method, req.URL.Path)
	if !documented || req.Method == http.MethodHead {
		return resp, nil
	}
	got, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, err
	}
	_ = resp.Body.Close()
	resp.Body = io.NopCloser(bytes.NewReader(got))
	c.check(op, req, sent, resp, got)
	return resp, nil
}

func (c *checker) check(op Operation, req *http.Request, sent []byte, resp *http.Response, got []byte) {
	d := document()
	d.mu.Lock()
	defer d.mu.Unlock()
	d.seen[key(op, resp.StatusCode)] = true
	what := fmt.Sprintf("%s %s: %d", req.Method, req.URL.Path, resp.StatusCode)
	if !slices.Contains(op.Statuses, resp.StatusCode) && resp.StatusCode != http.StatusTooManyRequests && resp.StatusCode < 500 {
		c.tb.Errorf("%s is not documented, only %v is: %s", what, op.Statuses, got)
		return
	}
	again := req.Clone(req.Context())
	again.Header.Del("Cookie") // the security scheme declares it, the strict mode doesn't look there
	again.Body = io.NopCloser(bytes.NewReader(sent))
	if resp.StatusCode < 300 && len(sent) > 0 {
		if ok, bad := d.validator.ValidateHttpRequestSync(again); !ok {
			c.tb.Errorf("%s, but the document does not allow the request: %s\n%s", what, words(bad), sent)
		}
	}
	if resp.StatusCode == http.StatusNoContent || strings.HasPrefix(op.Path, "/openapi.") {
		return // there is no body, or it is the document itself
	}
	copied := *resp
	copied.Body = io.NopCloser(bytes.NewReader(got))
	again.Body = io.NopCloser(bytes.NewReader(sent))
	if ok, bad := d.validator.ValidateHttpResponse(again, &copied); !ok {
		c.tb.Errorf("%s has not the documented shape: %s\n%s", what, words(bad), got[:min(len(got), 2000)])
	}
}

func words(bad []*validation.ValidationError) string {
	var b strings.Builder
	for _, e := range bad {
		fmt.Fprintf(&b, "\n  %s: %s", e.Message, e.Reason)
		for _, s := range e.SchemaValidationErrors {
			fmt.Fprintf(&b, "\n    %s at %s", s.Reason, s.FieldPath)
		}
	}
	return b.String()
}
