package worker

import (
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"stint/api"
	"stint/worker/setup"
	"stint/worker/workflow"
	"stint/worker/workspace"
)

// repository makes a git repository with one commit.
func (w *fixture) repository() string {
	w.Helper()
	dir := w.TempDir()
	for _, args := range [][]string{
		{"init", "-q", "-b", "main"}, {"-c", "user.name=x", "-c", "user.email=x@example.org", "commit", "-q", "--allow-empty", "-m", "first"},
	} {
		cmd := exec.Command("git", args...)
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err != nil {
			w.Fatalf("git %v: %v: %s", args, err, out)
		}
	}
	return dir
}

// owns writes the worker owner's own file for an agent.
func (w *fixture) owns(o Options, slug, content string) setup.Files {
	w.Helper()
	dir := filepath.Join(o.StateDir, "setup", "agents")
	w.must(os.MkdirAll(dir, 0o700))
	w.must(os.WriteFile(filepath.Join(dir, slug+".toml"), []byte(content), 0o600))
	return setup.Find(o.StateDir)
}

// accept accepts what a workflow file executes now.
func (w *fixture) accept(files setup.Files, slug, flow string) {
	w.Helper()
	loaded, err := workflow.Load(flow, os.Getenv)
	w.must(err)
	now := loaded.Executing()
	w.must(files.Accept(slug, setup.Accepted{Workflow: &setup.AcceptedWorkflow{Path: flow, Digest: now.Digest(), Executing: now}}))
}

func TestPlace_AWorktreePerThread(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	repo := w.repository()
	a := w.agentWith("branchy", func(in *api.AgentInput) {
		in.Run.WorkFolder, in.Run.Workspace, in.MaxConcurrent = repo, workflow.ModeWorktree, 2
	}, "sh", "-c", `git rev-parse --abbrev-ref HEAD; pwd; test -e left && echo again; echo x > left; exit 3`)
	w.start(w.options())
	first, second := w.trigger(a, ""), w.trigger(a, "")
	said := func(id api.SessionID) []string {
		w.until(id, "failed", func(s api.Session) bool { return s.Status == api.Failed })
		return strings.Fields(w.text(id, "stdout"))
	}
	one, two := said(first), said(second)
	if len(one) != 2 || len(two) != 2 || one[0] == two[0] || one[1] == two[1] || !strings.HasPrefix(one[0], "stint/") {
		t.Fatalf("they worked as %q and %q", one, two)
	}
	again, err := w.client.RetrySession(t.Context(), first)
	w.must(err)
	if got := said(again.ID); !slices.Equal(got, append(one, "again")) {
		t.Errorf("the retry worked as %q, not in %q", got, one)
	}
	if left, err := os.ReadDir(repo); err != nil || len(left) != 1 {
		t.Errorf("the repository's own folder has %v, %v", left, err)
	}
}

// The owner's file and the workflow that it names: what is executed from it counts once the
// owner has accepted it, in that form, and the rest at once.
func TestPlace_TheOwnersFileAndItsWorkflow(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	a, o, _ := w.talks("talker", nil)
	flow := filepath.Join(t.TempDir(), "WORKFLOW.md")
	put := func(content string) { // in one step: half a file may be a valid one
		w.must(os.WriteFile(flow+".new", []byte(content), 0o600))
		w.must(os.Rename(flow+".new", flow))
	}
	write := func(hook, template string) {
		put("---\nhooks:\n  before_run: " + hook + "\n---\n" + template + "\n")
	}
	mark := filepath.Join(t.TempDir(), "mark")
	write(`'echo "$STINT_SESSION_ID$SECRET_OF_MINE" >> `+mark+`'`, "!say {{ issue.prompt }}\n!say {{ issue.prompt }}{{ unknown }}")
	files := w.owns(o, "talker", "workflow = '"+flow+"'\n")
	w.start(o)
	run := func(prompt string) api.Session {
		t.Helper()
		return w.untilStatus(w.trigger(a, prompt), api.Complete)
	}
	if s := run("hello"); s.Result != "hello{{ unknown }}" {
		t.Errorf("the template came out as %q", s.Result)
	}
	if _, err := os.Stat(mark); err == nil {
		t.Fatal("a hook ran that nobody had accepted")
	}
	all, err := w.client.Sessions(t.Context(), api.SessionFilter{}, api.Page{})
	w.must(err)
	if told := kinds(w.items(all.Items[0].ID), api.ItemStatus); !strings.Contains(strings.Join(told, "\n"), "worker trust talker") {
		t.Errorf("the session tells %q", told)
	}
	w.accept(files, "talker", flow)
	s := run("!say injected {{ attempt }}")
	if b, err := os.ReadFile(mark); err != nil || string(b) != s.ID.String()+"\n" {
		t.Errorf("the accepted hook wrote %q, %v", b, err)
	}
	if s.Result != "!say injected {{ attempt }}{{ unknown }}" {
		t.Errorf("the prompt came out as %q", s.Result)
	}
	// Somebody changes the hook: the accepted one stays, the template is the new one.
	write(`'echo evil >> `+mark+`'`, "!say new")
	if s := run("x"); s.Result != "new" {
		t.Errorf("the new template came out as %q", s.Result)
	}
	if b, err := os.ReadFile(mark); err != nil || strings.Contains(string(b), "evil") || strings.Count(string(b), "\n") != 2 {
		t.Errorf("the hooks wrote %q, %v", b, err)
	}
	noticed := func(code string) {
		t.Helper()
		w.eventually("the worker says "+code, func() bool {
			all, err := w.client.AgentWorkers(t.Context(), a.Slug, api.Page{})
			w.must(err)
			return len(all.Items) == 1 && slices.ContainsFunc(all.Items[0].Notices, func(n api.Notice) bool { return n.Code == code && !strings.Contains(n.Text, filepath.Dir(flow)) })
		})
	}
	noticed(api.NoticeWorkflowChanged)
	// When a file can't be read, its last good version stays.
	put("---\nhooks: [\n---\n")
	noticed(api.NoticeWorkflowInvalid)
	if s := run("x"); s.Result != "new" {
		t.Errorf("with a bad file it came out as %q", s.Result)
	}
}

func TestPlace_AFailingHookIsTheSessionsFailure(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	a, o, file := w.talks("talker", nil)
	flow := filepath.Join(t.TempDir(), "WORKFLOW.md")
	w.must(os.WriteFile(flow, []byte("---\nhooks:\n  before_run: echo no luck; exit 4\n---\n!say x\n"), 0o600))
	loaded, err := workflow.Load(flow, os.Getenv)
	w.must(err)
	files := w.owns(o, "talker", "workflow = '"+flow+"'\n")
	w.must(files.Accept("talker", setup.Accepted{Workflow: &setup.AcceptedWorkflow{Path: flow, Digest: loaded.Executing().Digest(), Executing: loaded.Executing()}}))
	w.start(o)
	s := w.until(w.trigger(a, "x"), "failed", func(s api.Session) bool { return s.Status == api.Failed })
	if s.Error.Code != workspace.CodeHookFailed || !strings.Contains(s.Error.Message, "no luck") {
		t.Errorf("it failed with %+v", s.Error)
	}
	if _, err := os.Stat(file); err == nil {
		t.Error("the agent ran after all")
	}
}

// A run block that somebody else set counts once the owner has accepted it, and only in that
// form.
func TestTerms_WhatSomebodyElseSetCountsOnlyAsAccepted(t *testing.T) {
	p := &Process{me: api.Whoami{UserID: 7, Name: "me"}, opts: Options{StateDir: t.TempDir(), adapters: ownAdapters()}, source: []string{"PATH=/bin:/usr/bin"}}
	if err := os.MkdirAll(filepath.Join(p.opts.StateDir, "setup"), 0o700); err != nil {
		t.Fatal(err)
	}
	files := setup.Find(p.opts.StateDir)
	theirs := api.Trusted{AgentSlug: "their", Type: api.TypeCommand, RunSetBy: 8, Instructions: "Be kind.", Run: api.Run{Command: []string{"sh"}, WorkFolder: t.TempDir()}}
	try := func(t api.Trusted) *api.Failure {
		_, failure := p.planFor(api.Claim{Trusted: t})
		return failure
	}
	if f := try(theirs); f == nil || f.Code != CodePolicyBlocked {
		t.Fatalf("before: %+v", f)
	}
	digest, err := setup.RunDigest(theirs.Type, theirs.Run, theirs.Instructions)
	if err != nil {
		t.Fatal(err)
	}
	if err := files.Accept("their", setup.Accepted{Run: &setup.AcceptedRun{Digest: digest}}); err != nil {
		t.Fatal(err)
	}
	if f := try(theirs); f != nil {
		t.Errorf("accepted: %+v", f)
	}
	for name, change := range map[string]func(*api.Trusted){
		"command":      func(t *api.Trusted) { t.Run.Command = []string{"sh", "-c", "x"} },
		"folder":       func(t *api.Trusted) { t.Run.WorkFolder = "/" },
		"env":          func(t *api.Trusted) { t.Run.Env = []string{"SECRET"} },
		"instructions": func(t *api.Trusted) { t.Instructions = "Be rude." },
		"type":         func(t *api.Trusted) { t.Type = api.TypeClaudeCode },
		"permissions":  func(t *api.Trusted) { t.Run.Permissions = "autonomous" },
		"rules":        func(t *api.Trusted) { t.Run.Rules = []api.RunRule{{Area: "shell", Ruling: "allow"}} },
	} {
		other := theirs
		change(&other)
		if f := try(other); f == nil || f.Code != CodePolicyBlocked {
			t.Errorf("%s changed: %+v", name, f)
		}
	}
}

// What a workflow says about the worker itself is obeyed: how many sessions run at once and
// what it is called; and a command gets the template on its standard input.
func TestLimits_AreThoseOfTheOwnersFiles(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	o := w.options()
	flow := filepath.Join(t.TempDir(), "WORKFLOW.md")
	w.must(os.WriteFile(flow, []byte("---\nagent:\n  max_concurrent_agents: 1\n---\nSay {{ issue.prompt }}!"), 0o600))
	w.owns(o, "narrow", "name = 'night'\nshared = true\nworkflow = '"+flow+"'\n")
	a := w.agentWith("narrow", func(in *api.AgentInput) { in.MaxConcurrent = 3 }, "sh", "-c", "cat; echo in >>log; sleep 0.2; echo out >>log")
	ids := []api.SessionID{w.trigger(a, "one"), w.trigger(a, "two"), w.trigger(a, "three")}
	w.start(o)
	for i, word := range []string{"one", "two", "three"} {
		w.untilStatus(ids[i], api.Complete)
		if got := w.text(ids[i], "stdout"); got != "Say "+word+"!" {
			t.Errorf("the command got %q", got)
		}
	}
	log, err := os.ReadFile(filepath.Join(a.Run.WorkFolder, "log"))
	w.must(err)
	if got, want := string(log), strings.Repeat("in\nout\n", 3); got != want {
		t.Errorf("they ran as\n%swant\n%s", got, want)
	}
	workers, err := w.client.Workers(t.Context(), api.Page{})
	w.must(err)
	if len(workers.Items) != 1 || workers.Items[0].Name != "night" {
		t.Errorf("workers %+v", workers.Items)
	}
	w.must(os.WriteFile(flow, []byte("---\npolling: {interval_ms: 7000}\n---\n"), 0o600))
	p := &Process{opts: o, clocks: Clocks{Poll: time.Minute}, flows: map[string]*workflow.Watcher{}, log: slog.New(slog.DiscardHandler), records: map[api.AgentID]*record{1: {slug: "narrow", agent: 1}}}
	defer p.closeFlows()
	if got := p.pollEvery(); got != 7*time.Second {
		t.Errorf("it polls every %v", got)
	}
}

// What the owner's files say about the folder counts for a worker that has already registered:
// a separate workspace for each session lets them run side by side at once.
func TestPlace_AFileThatChangesLaterCounts(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	repo, file := w.repository(), filepath.Join(t.TempDir(), "go")
	a := w.agentWith("branchy", func(in *api.AgentInput) { in.Run.WorkFolder, in.MaxConcurrent = repo, 2 },
		"sh", "-c", "while ! [ -e "+file+" ]; do sleep 0.02; done")
	o := w.options()
	w.start(o)
	first, second := w.trigger(a, ""), w.trigger(a, "")
	w.untilStatus(first, api.Active)
	if g := w.until(second, "queued", func(s api.Session) bool { return s.WaitingFor != nil }).WaitingFor; g.Code != "folder_busy" {
		t.Errorf("the second waits for %+v", g)
	}
	w.owns(o, "branchy", "[workspace]\nmode = \"worktree\"\n")
	w.untilStatus(second, api.Active)
	touch(t, file)
	w.untilStatus(first, api.Complete)
	w.untilStatus(second, api.Complete)
}

// A worker's owner is shown where a local session works and how to continue it by hand.
func TestPlace_ItsOwnerIsToldWhereAndHowToGoOn(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	repo := w.repository()
	a, o, _ := w.talks("talker", func(in *api.AgentInput) {
		in.Run.WorkFolder, in.Run.Workspace = repo, workflow.ModeWorktree
	})
	w.start(o)
	s := w.untilStatus(w.trigger(a, "!say one"), api.Complete)
	if info, err := os.Stat(filepath.Join(s.WorkPath, ".git")); err != nil || info.IsDir() {
		t.Errorf("it is said to work in %q (%v)", s.WorkPath, err)
	}
	if want := "cd '" + s.WorkPath + "' && claude --resume " + s.AgentSessionID; s.ResumeCommand != want {
		t.Errorf("it is gone on with by %q, want %q", s.ResumeCommand, want)
	}
}
