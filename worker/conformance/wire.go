package conformance

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
)

// doc is a JSON object as received or as sent.
type doc = map[string]any

// response is what came back for a request.
type response struct {
	op     string // of the request, for words
	status int
	header http.Header
	body   doc // nil when there was none, or it was not an object
	raw    []byte
	took   time.Duration
}

// wire speaks HTTP to the coordinator with one token.
type wire struct {
	base   string // of the workspace, or of the server when root is asked for
	root   string
	token  string
	client *http.Client
}

const answerLimit = 8 << 20

func newWire(target Target) (wire, error) {
	u, err := url.Parse(target.URL)
	if err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https") {
		return wire{}, fmt.Errorf("the URL %q is not one of http or https", target.URL)
	}
	root := strings.TrimSuffix(u.String(), "/")
	client := target.Client
	if client == nil {
		client = &http.Client{}
	}
	return wire{
		root: root, base: root + "/api/v1/workspaces/" + url.PathEscape(target.Workspace), token: target.Token, client: client,
	}, nil
}

// send makes one request. A path with a slash in front is below the server's
// root, any other below the workspace.
func (w wire) send(ctx context.Context, method, path string, body any, change ...func(*http.Request)) (response, error) {
	address := w.base + "/" + path
	if strings.HasPrefix(path, "/") {
		address = w.root + path
	}
	var reader io.Reader
	switch b := body.(type) {
	case nil:
	case string:
		reader = strings.NewReader(b)
	default:
		text, err := json.Marshal(b, json.Deterministic(true))
		if err != nil {
			return response{}, fmt.Errorf("encode the body: %w", err)
		}
		reader = bytes.NewReader(text)
	}
	req, err := http.NewRequestWithContext(ctx, method, address, reader)
	if err != nil {
		return response{}, fmt.Errorf("make the request: %w", err)
	}
	req.Header.Set("Authorization", "Bearer "+w.token)
	req.Header.Set("Accept", "application/json")
	req.Header.Set("User-Agent", "stint-conformance")
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	for _, c := range change {
		c(req)
	}
	begun := time.Now()
	resp, err := w.client.Do(req)
	if err != nil {
		return response{}, err
	}
	defer func() { _ = resp.Body.Close() }()
	raw, err := io.ReadAll(io.LimitReader(resp.Body, answerLimit))
	if err != nil {
		return response{}, fmt.Errorf("read the answer: %w", err)
	}
	a := response{op: method + " " + path, status: resp.StatusCode, header: resp.Header, raw: raw, took: time.Since(begun)}
	var object doc
	if json.Unmarshal(raw, &object) == nil {
		a.body = object
	}
	return a, nil
}

// says is the answer in a few words.
func (a response) says() string {
	return fmt.Sprintf("%s answered %d %s", a.op, a.status, bytes.TrimSpace(a.raw[:min(len(a.raw), 300)]))
}

// at finds a member by its path, such as worker.pendingSignal.id; nil when there is none.
func at(d doc, path string) any {
	var v any = d
	for name := range strings.SplitSeq(path, ".") {
		object, ok := v.(doc)
		if !ok {
			return nil
		}
		v = object[name]
	}
	return v
}

func text(d doc, path string) string {
	s, _ := at(d, path).(string)
	return s
}

func list(d doc, path string) []doc {
	values, _ := at(d, path).([]any)
	var out []doc
	for _, v := range values {
		if object, ok := v.(doc); ok {
			out = append(out, object)
		}
	}
	return out
}

// whole is a member that is a whole number; false when it isn't.
func whole(d doc, path string) (int64, bool) {
	f, ok := at(d, path).(float64)
	return int64(f), ok && f == math.Trunc(f)
}

// instant is a member that is a time: RFC 3339, in UTC.
func instant(d doc, path string) (time.Time, bool) {
	t, err := time.Parse(time.RFC3339Nano, text(d, path))
	return t, err == nil && strings.HasSuffix(text(d, path), "Z")
}

// with is a copy of an object with more members.
func with(d doc, more ...doc) doc {
	out := doc{}
	for _, from := range append([]doc{d}, more...) {
		for name, v := range from {
			out[name] = v
		}
	}
	return out
}
