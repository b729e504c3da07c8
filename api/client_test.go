package api

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

func clientFor(t *testing.T, h http.HandlerFunc) *Client {
	t.Helper()
	srv := httptest.NewServer(h)
	t.Cleanup(srv.Close)
	c, err := NewClient(ClientConfig{URL: srv.URL, Token: "secret"})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func answer(status int, kind, body string, header ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", kind)
		for i := 0; i < len(header); i += 2 {
			w.Header().Set(header[i], header[i+1])
		}
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
}

func TestNewClient_RefusesWhatWouldLeakTheToken(t *testing.T) {
	for url, ok := range map[string]bool{
		"http://127.0.0.1:7717":       true,
		"http://[::1]:7717":           true,
		"http://localhost":            true,
		"http://stint.localhost:7717": true,
		"https://stint.example.org":   true,
		"https://example.org/stint/":  true,
		"http://example.org":          false,
		"http://192.168.1.4:7717":     false,
		"http://localhost.evil.test":  false,
		"ftp://127.0.0.1":             false,
		"127.0.0.1:7717":              false,
		"https://user:pw@example.org": false,
		"https://example.org?a=b":     false,
		"":                            false,
		"http://":                     false,
	} {
		if _, err := NewClient(ClientConfig{URL: url}); (err == nil) != ok || err != nil && strings.Contains(err.Error(), "user") {
			t.Errorf("NewClient(%q): %v", url, err)
		}
	}
}

func TestClient_TellsRefusalsFromSilence(t *testing.T) {
	const problemJSON = "application/problem+json"
	for _, c := range []struct {
		name      string
		h         http.HandlerFunc
		code      Code
		retriable bool
		after     time.Duration
	}{
		{name: "refusal", h: answer(409, problemJSON, `{"type":"x","title":"t","status":409,"code":"claim_not_active","detail":"gone"}`), code: CodeClaimNotActive},
		{name: "with a charset", h: answer(404, problemJSON+"; charset=utf-8", `{"code":"not_found","detail":"no"}`), code: CodeNotFound},
		{name: "too many", h: answer(429, problemJSON, `{"code":"too_many_requests","detail":"slow"}`, "Retry-After", "7"), code: CodeTooMany, retriable: true, after: 7 * time.Second},
		{name: "outcome unknown", h: answer(503, problemJSON, `{"code":"outcome_unknown","detail":"?","retryAfterSeconds":2}`), code: CodeOutcomeUnknown, retriable: true, after: 2 * time.Second},
		{name: "unknown code of a 5xx", h: answer(500, problemJSON, `{"code":"novel","detail":"?"}`), code: "novel", retriable: true},
		{name: "proxy's page", h: answer(502, "text/html", "<h1>Bad gateway</h1>", "Retry-After", "3"), retriable: true, after: 3 * time.Second},
		{name: "404 of a proxy", h: answer(404, "text/html", "<h1>Not found</h1>"), retriable: true},
		{name: "problem without a code", h: answer(404, problemJSON, `{"title":"nope"}`), retriable: true},
		{name: "captive portal", h: answer(200, "text/html", "<h1>Sign in</h1>"), retriable: true},
		{name: "redirect", h: answer(307, "text/plain", "", "Location", "https://evil.test/"), retriable: true},
		{name: "absurd Retry-After", h: answer(503, "text/plain", "", "Retry-After", "999999999"), retriable: true, after: time.Hour},
		{name: "broken off", h: func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "100")
			_, _ = io.WriteString(w, "{")
			panic(http.ErrAbortHandler)
		}, retriable: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := clientFor(t, c.h).Session(context.Background(), 1)
			if err == nil || CodeOf(err) != c.code || Retriable(err) != c.retriable || RetryAfter(err) != c.after {
				t.Errorf("err %v, code %q, retriable %v, after %v", err, CodeOf(err), Retriable(err), RetryAfter(err))
			}
			if err != nil && strings.Contains(err.Error(), "secret") {
				t.Errorf("the token is in the error: %v", err)
			}
		})
	}
}

// An answer that is too large to read did come: the error says so, and the same call isn't
// repeated.
func TestClient_TooLargeAnAnswerIsNoSilence(t *testing.T) {
	block := bytes.Repeat([]byte(" "), 1<<20)
	_, err := clientFor(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		for range 65 {
			_, _ = w.Write(block)
		}
	}).Session(context.Background(), 1)
	silent := new(Unanswered)
	if !errors.Is(err, ErrTooLargeAnswer) || errors.As(err, &silent) || Retriable(err) {
		t.Errorf("err %v, retriable %v", err, Retriable(err))
	}
}

func TestClient_NothingListensIsRetriable(t *testing.T) {
	c, err := NewClient(ClientConfig{URL: "http://127.0.0.1:1"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Whoami(context.Background()); !Retriable(err) {
		t.Errorf("%v", err)
	}
}

func TestClient_NeverFollowsARedirect(t *testing.T) {
	var reached atomic.Int32
	evil := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached.Add(1) }))
	defer evil.Close()
	c := clientFor(t, func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, evil.URL, http.StatusTemporaryRedirect)
	})
	_, err := c.Complete(context.Background(), Held{Agent: 1, Worker: 2, Session: 3}, CompleteRequest{Result: "r"})
	if err == nil || reached.Load() != 0 {
		t.Errorf("err %v, %d requests reached the other host", err, reached.Load())
	}
}

func TestClient_SendsWhatTheRoutesExpect(t *testing.T) {
	var got, body, auth string
	c := clientFor(t, func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		got, body, auth = r.Method+" "+r.URL.RequestURI(), string(b), r.Header.Get("Authorization")
		w.WriteHeader(http.StatusNoContent)
	})
	ctx := context.Background()
	claim, err := c.ClaimNext(ctx, ClaimNextRequest{WorkerIDs: []WorkerID{4}, InstanceID: "i", WaitSeconds: 9, RequestID: "q"})
	if err != nil || claim != nil {
		t.Fatalf("204 is answered as %v, %v", claim, err)
	}
	if got != "POST /api/v1/workspaces/default/claim-next" || auth != "Bearer secret" {
		t.Errorf("got %s with %q", got, auth)
	}
	if want := `{"workerIds":["wrk_0000000004"],"instanceId":"i","leaseSeconds":null,"wait":9,"requestId":"q"}`; body != want {
		t.Errorf("body %s", body)
	}
	if _, err := c.AddItems(ctx, Held{Agent: 1, Worker: 2, Session: 3}, ItemsRequest{Items: []ItemInput{{Text: "bad \xff byte"}}}); err != nil {
		t.Errorf("items: %v", err)
	}
	if got != "POST /api/v1/workspaces/default/agents/agt_0000000001/workers/wrk_0000000002/sessions/ses_0000000003/items" {
		t.Errorf("got %s", got)
	}
	if !strings.Contains(body, "bad \ufffd byte") || !strings.Contains(body, `"claimId":""`) {
		t.Errorf("body %s", body)
	}
	if _, err := c.Agent(ctx, "../sessions"); err != nil {
		t.Error(err)
	}
	if got != "GET /api/v1/workspaces/default/agents/..%2Fsessions" {
		t.Errorf("got %s", got)
	}
	if _, err := c.Sessions(ctx, SessionFilter{Statuses: []Status{Queued, Stale}, Query: "a b"}, Page{Limit: 7}); err != nil {
		t.Error(err)
	}
	if got != "GET /api/v1/workspaces/default/sessions?limit=7&q=a+b&status=queued%2Cstale" {
		t.Errorf("got %s", got)
	}
}

func TestFollow_HandsOverEventsUntilTheStreamBreaks(t *testing.T) {
	var last string
	c := clientFor(t, func(w http.ResponseWriter, r *http.Request) {
		last = r.Header.Get("Last-Event-ID")
		answer(200, "text/event-stream", ": hello\n\nid: 8\nevent: session_queued\ndata: {\"seq\":8,\ndata: \"type\":\"session_queued\"}\n\nid: 9\ndata:{\"seq\":9}\n\n")(w, r)
	})
	var seqs []int64
	err := c.Follow(context.Background(), 7, nil, func(e Event) error { seqs = append(seqs, e.Seq); return nil })
	if !Retriable(err) || len(seqs) != 2 || seqs[0] != 8 || seqs[1] != 9 || last != "7" {
		t.Errorf("err %v, events %v, Last-Event-ID %q", err, seqs, last)
	}
	stop := errors.New("enough")
	if err := c.Follow(context.Background(), -1, nil, func(Event) error { return stop }); !errors.Is(err, stop) || last != "" {
		t.Errorf("err %v, Last-Event-ID %q", err, last)
	}
}

func TestFollow_SaysThatThereIsAGap(t *testing.T) {
	c := clientFor(t, answer(200, "text/event-stream", "event: reset\ndata: {}\n\n"))
	if err := c.Follow(context.Background(), 1, nil, func(Event) error { return nil }); !errors.Is(err, ErrReset) {
		t.Errorf("err %v", err)
	}
}

func TestFollow_GivesUpASilentStream(t *testing.T) {
	c := clientFor(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	})
	err := c.follow(context.Background(), -1, 20*time.Millisecond, nil, func(Event) error { return nil })
	if !Retriable(err) || !strings.Contains(err.Error(), "nothing came") {
		t.Errorf("err %v", err)
	}
}
