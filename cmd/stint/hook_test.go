package main

import (
	"bytes"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"stint/api"
)

const (
	noticeable = 100 * time.Millisecond // more than that of an agent's time is too much for a hook

	// atLeastOnce bounds how often a hook is run until it took no longer than that: a machine
	// that is busy with other tests makes some of them slow, a host that is waited for all.
	atLeastOnce = 40
)

// hook runs one step as Claude Code does, with a pipe at each stream that must end with it, and
// returns how long that took.
func (h *home) hook(url, token string, words ...string) time.Duration {
	h.Helper()
	return h.hookTold(nil, url, token, words...)
}

// hookTold is [home.hook] with an event on standard input.
func (h *home) hookTold(event io.Reader, url, token string, words ...string) time.Duration {
	h.Helper()
	self, err := os.Executable()
	h.must(err)
	cmd := exec.CommandContext(h.Context(), self, append([]string{"hook"}, words...)...)
	cmd.Args[0], cmd.Stdin = "stint", event
	cmd.Env = slices.Concat(h.env, []string{"STINT_URL=" + url, "STINT_TOKEN=" + token})
	begun := time.Now()
	out, err := cmd.CombinedOutput()
	took := time.Since(begun)
	if err != nil {
		h.Errorf("a hook failed: %v: %s", err, out)
	}
	return took
}

// unnoticed runs a step until one took no longer than an agent notices, on a machine that is
// as busy as it is at that moment.
func (h *home) unnoticed(step func() time.Duration, what string) {
	h.Helper()
	best := time.Hour
	for range atLeastOnce {
		limit := max(noticeable, 3*h.startUp())
		took := step()
		if took < limit {
			h.Logf("%s took %v", what, took)
			return
		}
		best = min(best, took)
	}
	h.Errorf("%s took %v at best", what, best)
}

// startUp is how long a process of this program takes that does nothing.
func (h *home) startUp() time.Duration {
	h.Helper()
	self, err := os.Executable()
	h.must(err)
	cmd := exec.CommandContext(h.Context(), self, "version")
	cmd.Args[0], cmd.Env = "stint", h.env
	begun := time.Now()
	h.must(cmd.Run())
	return time.Since(begun)
}

// A host that accepts and never answers, and one whose queue of connections is full, so that it
// drops what comes, cost the agent nothing.
func TestHook_AHostThatDoesNotAnswerCostsTheAgentNothing(t *testing.T) {
	h := newHomeIn(t, t.TempDir())
	for name, addr := range map[string]string{"silent": silent(t), "full": full(t)} {
		t.Run(name, func(t *testing.T) {
			in := *h
			in.TB = t
			step := func(words ...string) {
				t.Helper()
				in.unnoticed(func() time.Duration { return in.hook("http://"+addr, "stint_user_x", words...) }, strings.Join(words, " "))
			}
			step("renew", "--task", "T-1")
			step("release", "--task", "T-1")
			in.env = append(slices.Clone(h.env), "STINT_SESSION_ID="+api.SessionID(1).String())
			step("renew")
		})
	}
}

// silent is the address of a host that accepts connections and never answers.
func silent(t *testing.T) string {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = ln.Close() })
	go func() {
		var held []net.Conn
		for {
			c, err := ln.Accept()
			if err != nil {
				for _, c := range held {
					_ = c.Close()
				}
				return
			}
			held = append(held, c)
		}
	}()
	return ln.Addr().String()
}

// full is the address of a host whose queue of connections is full.
func full(t *testing.T) string {
	t.Helper()
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM, 0)
	if err == nil {
		err = syscall.Bind(fd, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}})
	}
	if err == nil {
		err = syscall.Listen(fd, 0)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = syscall.Close(fd) })
	at, err := syscall.Getsockname(fd)
	if err != nil {
		t.Fatal(err)
	}
	addr := (&net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: at.(*syscall.SockaddrInet4).Port}).String()
	for range 100 {
		c, err := net.DialTimeout("tcp", addr, 200*time.Millisecond)
		if late := net.Error(nil); errors.As(err, &late) && late.Timeout() {
			return addr
		}
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
	}
	t.Fatal("its queue takes a hundred connections")
	return ""
}

// A server that is merely slow renews and releases all the same, though nobody waits for it.
func TestHook_ASlowServerRenewsAllTheSame(t *testing.T) {
	h := newHomeIn(t, t.TempDir())
	at := h.serve(asIs, "serve").ready()
	token, err := h.data().readToken()
	h.must(err)
	c, err := api.NewClient(api.ClientConfig{URL: at, Token: token})
	h.must(err)
	made, err := c.CreateTask(t.Context(), map[string]any{"title": "Mend it"}, "")
	h.must(err)
	held, err := c.ClaimTask(t.Context(), made.Key, api.TaskClaimInput{})
	h.must(err)
	server, err := url.Parse(at)
	h.must(err)
	direct := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(server) }} // with the server's own Host
	slow := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body) // before that its end isn't noticed
		r.Body = io.NopCloser(bytes.NewReader(body))
		select {
		case <-time.After(300 * time.Millisecond):
			direct.ServeHTTP(w, r)
		case <-r.Context().Done(): // whoever asked has gone: it never comes to the server
		}
	}))
	t.Cleanup(slow.Close)
	h.hook(slow.URL, token, "renew", "--task", made.Key)
	task := func() api.Task {
		now, err := c.Task(t.Context(), made.Key)
		h.must(err)
		return now
	}
	h.until("the lease is renewed", func() bool { return task().Lease.ExpiresAt.After(held.Task.Lease.ExpiresAt.Time) })
	h.hook(slow.URL, token, "release", "--task", made.Key)
	h.until("the task is released", func() bool { return task().Lease == nil })
}

// A conversation that ends while Claude Code goes on with another keeps the lease; whatever else
// is said at the end, or nothing, gives it back.
func TestHook_AnotherConversationKeepsTheLease(t *testing.T) {
	h := newHomeIn(t, t.TempDir())
	at := h.serve(asIs, "serve").ready()
	token, err := h.data().readToken()
	h.must(err)
	c, err := api.NewClient(api.ClientConfig{URL: at, Token: token})
	h.must(err)
	made, err := c.CreateTask(t.Context(), map[string]any{"title": "Mend it"}, "")
	h.must(err)
	held := func() bool {
		now, err := c.Task(t.Context(), made.Key)
		h.must(err)
		return now.Lease != nil
	}
	silent, keepsOpen, err := os.Pipe()
	h.must(err)
	t.Cleanup(func() { _, _ = silent.Close(), keepsOpen.Close() })
	unended, more, err := os.Pipe()
	h.must(err)
	t.Cleanup(func() { _, _ = unended.Close(), more.Close() })
	_, err = more.WriteString(`{"hook_event_name":"SessionEnd","reason":"clear"}`)
	h.must(err)
	for _, tt := range []struct {
		name   string
		event  io.Reader
		passes bool
	}{
		{"/clear", strings.NewReader(`{"session_id":"x","hook_event_name":"SessionEnd","reason":"clear"}`), true},
		{"/resume", strings.NewReader(`{"hook_event_name":"SessionEnd","reason":"resume"}`), true},
		{"/clear, without the end of the stream", unended, true},
		{"the end", strings.NewReader(`{"hook_event_name":"SessionEnd","reason":"prompt_input_exit"}`), false},
		{"no reason", strings.NewReader(`{}`), false},
		{"no JSON", strings.NewReader(`clear`), false},
		{"nothing", nil, false},
		{"a stream that stays silent", silent, false},
	} {
		_, err := c.ClaimTask(t.Context(), made.Key, api.TaskClaimInput{})
		h.must(err)
		h.hookTold(tt.event, at, token, "release", "--task", made.Key)
		if !tt.passes {
			h.until(tt.name+" releases the task", func() bool { return !held() })
		} else if !held() {
			t.Errorf("%s released the task", tt.name)
		}
	}
	h.unnoticed(func() time.Duration { return h.hookTold(silent, at, token, "release", "--task", made.Key) }, "a stream that stays silent")
}
