package server_test

import (
	"bytes"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"stint/api"
	"stint/engine"
	"stint/server/servertest"
)

// The worker that docs/examples has in Python serves an agent as the document describes: each
// of its calls, and each answer, is checked against the document on its way.
func TestExample_APythonWorkerServes(t *testing.T) {
	d := newFixture(t, servertest.Options{Config: func(c *engine.Config) { c.BeatEvery = time.Second }})
	through := httptest.NewServer(&httputil.ReverseProxy{Transport: d.Client.Transport, Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(must(url.Parse(d.URL)))
		r.Out.Host = strings.TrimPrefix(d.URL, "http://")
	}})
	defer through.Close()
	servertest.Must[api.Agent](d.Server, 201, "POST", "agents", m{"slug": "shell", "run": m{"command": []string{"sh"}, "workFolder": t.TempDir()}})
	var said bytes.Buffer
	cmd := exec.CommandContext(t.Context(), "python3", "../docs/examples/worker.py", "shell", "example")
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir(), "STINT_URL=" + through.URL, "STINT_TOKEN=" + d.Token, "SECRET=canary"}
	cmd.Stderr = &said
	if err := cmd.Start(); err != nil {
		t.Fatalf("the example needs Python 3: %v", err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	defer func() { _ = cmd.Process.Kill() }()

	run := func(script string) api.SessionID {
		return servertest.Must[api.Session](d.Server, 201, "POST", "agents/shell/sessions", m{"prompt": script}).ID
	}
	await := func(what string, yes func() bool) {
		t.Helper()
		again := time.NewTicker(20 * time.Millisecond)
		defer again.Stop()
		for end := time.After(30 * time.Second); !yes(); {
			select {
			case <-again.C:
			case err := <-ended:
				t.Fatalf("%s: the worker ended with %v: %s", what, err, &said)
			case <-end:
				t.Fatalf("%s: it never did: %s", what, &said)
			}
		}
	}
	becomes := func(id api.SessionID, want api.Status) (s api.Session) {
		t.Helper()
		await(string(want), func() bool {
			s = servertest.Must[api.Session](d.Server, 200, "GET", "sessions/"+id.String(), nil)
			return s.Status == want
		})
		return s
	}
	output := func(id api.SessionID) (text string) {
		for _, i := range servertest.Must[api.ItemsPage](d.Server, 200, "GET", "sessions/"+id.String()+"/items?after=0", nil).Items {
			text += i.Text
		}
		return text
	}

	good := run("echo one; echo two >&2; echo \"$STINT_SESSION_ID${SECRET}\"")
	becomes(good, api.Complete)
	if got := output(good); got != "one\ntwo\n"+good.String()+"\n" {
		t.Errorf("the output is %q", got)
	}
	if s := becomes(run("exit 3"), api.Failed); s.Error == nil || s.Error.Code != "AGENT_EXIT_NONZERO" {
		t.Errorf("what fails ends as %+v", s.Error)
	}
	long := run("echo begun; sleep 60")
	becomes(long, api.Active)
	await("the output", func() bool { return output(long) == "begun\n" })
	servertest.Must[api.Changed](d.Server, 200, "POST", "sessions/"+long.String()+"/cancel", nil)
	becomes(run("echo next"), api.Complete) // so the cancelled command is gone
	becomes(long, api.Cancelled)

	w := servertest.Must[api.List[api.Worker]](d.Server, 200, "GET", "agents/shell/workers", nil).Items[0]
	at := "agents/shell/workers/" + w.ID.String()
	tell := func(s api.SignalKind) {
		t.Helper()
		servertest.Must[any](d.Server, 200, "POST", at+"/control-signal", m{"signal": s})
		await(string(s), func() bool {
			return servertest.Must[api.Worker](d.Server, 200, "GET", at, nil).PendingSignal == nil
		})
	}
	tell(api.SignalPause)
	waits := run("echo later")
	tell(api.SignalResume)
	becomes(waits, api.Complete)
	left := run("sleep 60")
	becomes(left, api.Active)
	servertest.Must[any](d.Server, 200, "POST", at+"/control-signal", m{"signal": api.SignalStop})
	select {
	case err := <-ended:
		if err != nil {
			t.Errorf("asked to stop it ended with %v: %s", err, &said)
		}
	case <-time.After(30 * time.Second):
		t.Fatalf("asked to stop it continues: %s", &said)
	}
	s := servertest.Must[api.Session](d.Server, 200, "GET", "sessions/"+left.String(), nil)
	if s.Status != api.Queued {
		t.Errorf("what it ran is %s", s.Status)
	}
	if w := servertest.Must[api.Worker](d.Server, 200, "GET", at, nil); w.State != api.Offline || w.PendingSignal != nil {
		t.Errorf("it left as %+v", w)
	}
}
