package worker

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"

	"stint/api"
	"stint/worker/proc"
	"stint/worker/workflow"
	"stint/worker/workspace"
)

// branchy is an agent whose sessions each have a worktree.
func (w *fixture) branchy(slug string, command ...string) api.Agent {
	w.Helper()
	repo := w.repository()
	return w.agentWith(slug, func(in *api.AgentInput) { in.Run.WorkFolder, in.Run.Workspace = repo, workflow.ModeWorktree }, command...)
}

// rewrite changes what is known of the workspaces in a folder.
func (w *fixture) rewrite(root string, edit func(record map[string]any)) {
	w.Helper()
	names, err := filepath.Glob(filepath.Join(root, ".stint", "*.json"))
	w.must(err)
	if len(names) == 0 {
		w.Fatalf("there is no workspace in %s", root)
	}
	for _, name := range names {
		text, err := os.ReadFile(name)
		w.must(err)
		var record map[string]any
		w.must(json.Unmarshal(text, &record))
		edit(record)
		text, err = json.Marshal(record)
		w.must(err)
		w.must(os.WriteFile(name, text, 0o600))
	}
}

// aged makes workspaces old.
func aged(record map[string]any) {
	record["usedAt"] = time.Now().Add(-30 * 24 * time.Hour).UTC().Format(time.RFC3339Nano)
}

// folders are the workspaces in a folder.
func (w *fixture) folders(root string) (out []string) {
	w.Helper()
	entries, err := os.ReadDir(root)
	w.must(err)
	for _, e := range entries {
		if e.Name() != ".stint" {
			out = append(out, e.Name())
		}
	}
	return out
}

var aWeek = CleanUp{OlderThan: 7 * 24 * time.Hour}

// A worker removes by itself the old workspaces that nobody needs, and says so; one whose
// session may go on stays until the coordinator says that it is over.
func TestTidy_RemovesByItselfWhatNobodyNeeds(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	a := w.branchy("branchy", "true")
	waits := w.agent("waits", "true") // nobody serves it
	g := w.start(w.options())
	for range 3 {
		w.untilStatus(w.trigger(a, ""), api.Complete)
	}
	w.untilDrained(a)
	g.end()
	root := WorkspaceRoot(g.o.StateDir)
	all := w.folders(root)
	open := w.trigger(waits, "")
	n := 0
	w.rewrite(root, func(record map[string]any) {
		if n++; n < 3 {
			aged(record)
		}
		if n == 2 {
			record["done"], record["session"] = false, open.String()
		}
	})
	var log strings.Builder
	o := w.options()
	o.Agents, o.CleanUp, o.Clocks.Tidy = []string{"branchy"}, aWeek, 20*time.Millisecond
	o.Log = slog.New(slog.NewTextHandler(&locked{to: &log}, nil))
	g = w.start(o)
	w.eventually("it removes one", func() bool { return len(w.folders(root)) < len(all) })
	last := w.untilCleaned(o, func(c Cleaned) bool { return c.Removed == 1 })
	if last.Kept != 2 || last.FreedBytes == 0 || last.Failed != "" {
		t.Errorf("it says %+v", last)
	}
	_, err := w.client.CancelSession(t.Context(), open, api.CancelInput{})
	w.must(err)
	w.eventually("it removes the second", func() bool { return len(w.folders(root)) == 1 })
	again := w.untilCleaned(o, func(c Cleaned) bool { return c.At.After(last.At.Time) && c.Kept == 1 })
	if left := w.folders(root); len(left) != 1 || again.Removed != 1 {
		t.Errorf("left are %v, and it says %+v", left, again)
	}
	g.end()
	if lines := strings.Count(log.String(), "workspaces were cleaned up"); lines != 2 || !strings.Contains(log.String(), "removed=1 freed=") {
		t.Errorf("it logged %d lines: %s", lines, log.String())
	}
}

// untilCleaned waits for an account of a clean-up.
func (w *fixture) untilCleaned(o Options, wanted func(Cleaned) bool) (c Cleaned) {
	w.Helper()
	w.eventually("it accounts for it", func() bool {
		last, found, err := LastCleaned(o.StateDir)
		w.must(err)
		c = last
		return found && wanted(c)
	})
	return c
}

// tidier is a process that cleans up when a test says so, with one old workspace of a session
// that the worker left without saying.
func (w *fixture) tidier(root string) *Process {
	w.Helper()
	o, err := w.options().complete()
	w.must(err)
	o.CleanUp, o.Log = aWeek, slog.New(slog.DiscardHandler)
	transport := &quietTransport{}
	w.Cleanup(transport.CloseIdleConnections)
	client, err := api.NewClient(api.ClientConfig{URL: o.URL, Token: o.Token, Transport: transport})
	w.must(err)
	p, err := newProcess(o, client)
	w.must(err)
	w.Cleanup(func() {
		p.stopAll(nil)
		w.must(p.state.close())
	})
	ws, err := workspace.Prepare(w.Context(), workspace.Spec{Mode: workflow.ModeWorktree, Repository: w.repository(), Root: root, Key: "k", Agent: "branchy", Session: api.SessionID(7).String(), Hooks: workspace.Hooks{Env: os.Environ()}})
	w.must(err)
	w.must(ws.Close(false))
	w.rewrite(root, aged)
	return p
}

// A session that the coordinator has never heard of is over, if only this account's sessions
// are there.
func TestTidy_KeepsWhatTheCoordinatorDoesNotGiveUp(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		root string // "" = the state directory's own
		do   func(w *fixture, p *Process)
		goes bool // it is removed
	}{
		"unknown":             {"", nil, true},
		"no answer":           {"", func(w *fixture, _ *Process) { w.proxy.Cut() }, false},
		"no longer a member":  {"", func(_ *fixture, p *Process) { p.client = stranger(p) }, false},
		"of another's, maybe": {"trees", nil, false},
		"a broken file":       {"", func(w *fixture, p *Process) { w.owns(p.opts, "other", "keep_ignored = 3\n") }, false},
		"young":               {"", func(_ *fixture, p *Process) { p.opts.CleanUp.OlderThan *= 100 }, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newFixture(t)
			root := WorkspaceRoot(w.options().StateDir)
			if c.root != "" {
				root = filepath.Join(w.dir, c.root)
			}
			p := w.tidier(root)
			w.owns(p.opts, "branchy", "[workspace]\nroot = '"+root+"'\n")
			if c.do != nil {
				c.do(w, p)
			}
			if !p.tidyOnce(t.Context()) {
				t.Error("it was cut short")
			}
			if gone := len(w.folders(root)) == 0; gone != c.goes {
				t.Errorf("removed: %v", gone)
			}
			last, found, err := LastCleaned(p.opts.StateDir)
			if err != nil || !found || (last.Failed != "") != (name == "a broken file") {
				t.Errorf("it says %+v, %v, %v", last, found, err)
			}
		})
	}
}

// stranger is the process's client in a workspace of which its user is no member.
func stranger(p *Process) *api.Client {
	c, err := api.NewClient(api.ClientConfig{URL: p.client.URL(), Token: p.opts.Token, Workspace: "elsewhere", Transport: &quietTransport{}})
	if err != nil {
		panic(err)
	}
	return c
}

// With a disk that is nearly full it cleans up at once, and takes the work that there is room
// for then.
func TestTidy_MakesRoomBeforeWorkIsRefused(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	o := w.options()
	root := WorkspaceRoot(o.StateDir)
	p := w.tidier(root)
	w.must(Cleaned{At: api.Time{Time: time.Now()}}.keep(o.StateDir)) // none is due
	o.CleanUp, o.MinFreeBytes = aWeek, 512<<20
	o.FreeBytes = func(string) (int64, error) {
		if _, err := os.Stat(filepath.Join(root, "k")); err == nil {
			return 100 << 20, nil
		}
		return 1 << 30, nil
	}
	p.opts = o // beside the process below, which has the same directory
	w.start(o)
	s := w.untilStatus(w.trigger(w.agent("comes", "true"), ""), api.Complete)
	if last, _, err := LastCleaned(o.StateDir); err != nil || last.Removed != 1 {
		t.Errorf("session %s ran, and it removed %+v, %v", s.ID, last, err)
	}
}

func TestMakesRoom(t *testing.T) {
	p, _ := owner(t)
	now := proc.BootTime(time.Hour)
	p.boot = func() proc.BootTime { return now }
	p.tidy.urgent = make(chan struct{}, 1)
	due := func() bool {
		select {
		case <-p.tidy.urgent:
			return true
		default:
			return false
		}
	}
	if p.makesRoom() || due() {
		t.Error("it cleans up without a limit")
	}
	p.opts.CleanUp = aWeek
	for range 2 {
		if !p.makesRoom() {
			t.Error("work is refused before anything was tried")
		}
	}
	if !due() || due() {
		t.Error("it doesn't clean up once")
	}
	if now = now.Add(2 * tidyQuietly); p.makesRoom() {
		t.Error("nobody learns why nothing is taken")
	}
	p.tidy.asked, p.tidy.tried = 0, now // it has ended
	if p.makesRoom() || due() {
		t.Error("it cleans up again at once")
	}
	if now = now.Add(tidyAgain); p.makesRoom() || !due() {
		t.Error("what is refused isn't, while it looks once more; or it doesn't look")
	}
	p.tidy.asked, p.tidy.tried = 0, now
	if now = now.Add(3 * tidyAgain); !p.makesRoom() || !due() {
		t.Error("room got scarce anew, and nothing is tried first")
	}
}

// A session that wants the workspace which is just being looked at gets it at once.
func TestTidy_MakesWayForASession(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	a := w.branchy("branchy", "sh", "-c", "test -e built || exit 3")
	o := w.options()
	begun := filepath.Join(w.dir, "begun")
	flow := filepath.Join(w.dir, "WORKFLOW.md")
	w.must(os.WriteFile(flow, []byte("---\nhooks:\n  before_remove: \"touch '"+begun+"'; sleep 50\"\n---\n"), 0o600))
	files := w.owns(o, "branchy", "workflow = '"+flow+"'\n")
	w.accept(files, "branchy", flow)
	g := w.start(o)
	first := w.trigger(a, "")
	w.until(first, "failed", func(s api.Session) bool { return s.Status == api.Failed })
	w.untilDrained(a)
	g.end()
	root := WorkspaceRoot(o.StateDir)
	w.rewrite(root, aged)
	o.CleanUp, o.Clocks.Tidy = aWeek, time.Hour
	w.start(o)
	w.eventually("it is about to remove it", func() bool { _, err := os.Stat(begun); return err == nil })
	again, err := w.client.RetrySession(t.Context(), first)
	w.must(err)
	s := w.until(again.ID, "failed", func(s api.Session) bool { return s.Status == api.Failed })
	if s.Fence != 1 {
		t.Errorf("it was claimed %d times", s.Fence)
	}
	if left := w.folders(root); len(left) != 1 {
		t.Errorf("left are %v", left)
	}
}

// At its end a worker doesn't wait for what it is removing.
func TestTidy_EndsWithTheWorker(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	p := w.tidier(WorkspaceRoot(w.options().StateDir))
	ctx, stop := context.WithCancel(t.Context())
	stop()
	if p.tidyOnce(ctx) {
		t.Error("it went on")
	}
	if _, found, err := LastCleaned(p.opts.StateDir); found || err != nil {
		t.Errorf("it accounts for what it didn't do: %v, %v", found, err)
	}
	if len(w.folders(WorkspaceRoot(p.opts.StateDir))) != 1 {
		t.Error("it removed something")
	}
}
