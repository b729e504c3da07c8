package worker

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"stint/api"
	"stint/worker/workflow"
	"stint/worker/workspace"
)

// git runs git as a person would.
func (w *fixture) git(dir string, args ...string) string {
	w.Helper()
	cmd := exec.Command("git", append([]string{"-C", dir, "-c", "user.name=x", "-c", "user.email=x@example.org"}, args...)...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		w.Fatalf("git %v: %v: %s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

// lander is an agent in worktrees of a repository whose owner lets changes be landed.
func (w *fixture) lander(level string, script string) (a api.Agent, o Options, repo string) {
	w.Helper()
	o, repo = w.options(), w.repository()
	w.owns(o, "lander", "land = \""+level+"\"\nland_protected = [\"release/*\"]\n")
	a = w.agentWith("lander", func(in *api.AgentInput) { in.Run.WorkFolder, in.Run.Workspace = repo, workflow.ModeWorktree }, "sh", "-ec", script)
	return a, o, repo
}

const commits = `echo hello > new; git add new; git -c user.name=x -c user.email=x@example.org commit -qm "Add new"`

// ask asks to land and waits for the answer.
func (w *fixture) ask(id api.SessionID, in api.LandInput) api.Landing {
	w.Helper()
	l, err := w.client.RequestLanding(w.Context(), id, in)
	w.must(err)
	return w.answered(id, l.ID)
}

func (w *fixture) answered(id api.SessionID, landing api.LandingID) (l api.Landing) {
	w.Helper()
	w.eventually("the landing is answered", func() (over bool) {
		var err error
		l, err = w.client.AwaitLanding(w.Context(), id, landing, 0)
		w.must(err)
		return l.State != api.LandPending
	})
	return l
}

func TestChanges_AreRecordedAtTheEnd(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	a, o, repo := w.lander("off", commits+`; echo "the $SECRET_WORD is not shown" > more; chmod +x more`)
	o.Env = []string{"SECRET_WORD"}
	o.environ = append(os.Environ(), "SECRET_WORD=abracadabra-1")
	w.start(o)
	id := w.trigger(a, "")
	w.untilStatus(id, api.Complete)
	c, err := w.client.Changes(t.Context(), id)
	w.must(err)
	if c.Place != api.PlaceWorktree || c.BaseBranch != "main" || c.Base != w.git(repo, "rev-parse", "main") || !c.Dirty || c.CommitCount != 1 || c.Commits[0].Subject != "Add new" ||
		c.FileCount != 2 || c.Allows != api.LandOff || !strings.HasPrefix(c.Branch, "stint/") {
		t.Errorf("%+v", c)
	}
	if len(c.Files) != 2 || c.Files[0].Patch != "@@ -0,0 +1 @@\n+the *** is not shown\n" || c.Files[1].Path != "new" {
		t.Errorf("%+v", c.Files)
	}
}

func TestChanges_OfAPlainFolderCountFromWhereItWas(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	repo := w.repository()
	a := w.agentWith("plain", func(in *api.AgentInput) { in.Run.WorkFolder = repo }, "sh", "-ec", commits)
	nowhere := w.agent("nowhere", "true")
	w.start(w.options())
	first := w.git(repo, "rev-parse", "HEAD")
	id, none := w.trigger(a, ""), w.trigger(nowhere, "")
	w.untilStatus(id, api.Complete)
	c, err := w.client.Changes(t.Context(), id)
	w.must(err)
	if c.Place != api.PlaceFolder || c.Base != first || c.CommitCount != 1 || c.Branch != "main" || c.Waits {
		t.Errorf("%+v", c)
	}
	w.untilStatus(none, api.Complete)
	if _, err := w.client.Changes(t.Context(), none); api.CodeOf(err) != api.CodeNotFound {
		t.Errorf("a folder that is in no repository has changes: %v", err)
	}
}

func TestChanges_AreSentInPartsAndAfterAnOutage(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	a, o, _ := w.lander("off", `for i in $(seq 40); do seq -f "a line of the file number $i: %f" 1000 > file$i; done; touch `+filepath.Join(w.dir, "made")+`; while test -e `+filepath.Join(w.dir, "wait")+`; do sleep 0.05; done`)
	touch(t, filepath.Join(w.dir, "wait"))
	w.start(o)
	id := w.trigger(a, "")
	w.eventually("the files are made", func() bool { _, err := os.Stat(filepath.Join(w.dir, "made")); return err == nil })
	w.proxy.Cut()
	w.must(os.Remove(filepath.Join(w.dir, "wait")))
	w.eventually("the report is in the outbox", func() bool { return w.inState()[0] > 5 })
	w.proxy.Mend()
	w.untilStatus(id, api.Complete)
	c, err := w.client.Changes(t.Context(), id)
	w.must(err)
	bytes := 0
	for _, f := range c.Files {
		bytes += len(f.Patch)
	}
	if len(c.Files) != 40 || c.FileCount != 40 || c.Added != 40_000 || bytes < 1<<20 {
		t.Errorf("%d files of %d, %d lines, %d bytes", len(c.Files), c.FileCount, c.Added, bytes)
	}
}

func TestChanges_OfAConversation(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	repo := w.repository()
	a, o, _ := w.talks("talker", func(in *api.AgentInput) { in.Run.WorkFolder, in.Run.Workspace = repo, workflow.ModeWorktree })
	w.start(o)
	id := w.trigger(a, "hello")
	w.untilStatus(id, api.Complete)
	if c, err := w.client.Changes(t.Context(), id); err != nil || c.Place != api.PlaceWorktree || c.FileCount != 0 {
		t.Errorf("%+v, %v", c, err)
	}
}

func TestLand_KeepMergeAndDiscard(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	a, o, repo := w.lander("merge", commits+"; echo more > more")
	w.start(o)
	id := w.trigger(a, "")
	w.untilStatus(id, api.Complete)
	kept := w.ask(id, api.LandInput{Verb: api.VerbKeep, Message: "Keep more"})
	if kept.State != api.LandDone || w.git(repo, "log", "-1", "--format=%s", kept.Commit) != "Keep more" {
		t.Fatalf("%+v", kept)
	}
	merged := w.ask(id, api.LandInput{Verb: api.VerbMerge, Method: api.MergeSquash, Message: "All of it"})
	if merged.State != api.LandDone || w.git(repo, "log", "-1", "--format=%H %s", "main") != merged.Commit+" All of it" {
		t.Fatalf("%+v", merged)
	}
	if text, err := os.ReadFile(filepath.Join(repo, "more")); err != nil || string(text) != "more\n" {
		t.Errorf("the base's folder has %q, %v", text, err)
	}
	if again, err := w.client.RequestLanding(t.Context(), id, api.LandInput{Verb: api.VerbMerge}); api.CodeOf(err) != api.CodeConflict {
		t.Errorf("what is merged is merged again: %+v, %v", again, err)
	}
	c, err := w.client.Changes(t.Context(), id)
	w.must(err)
	asks := w.ask(id, api.LandInput{Verb: api.VerbDiscard})
	if asks.State != api.LandAsks || asks.Token == "" || !strings.HasPrefix(asks.Detail, "Nothing is lost") {
		t.Fatalf("%+v", asks)
	}
	if wrong := w.ask(id, api.LandInput{Verb: api.VerbDiscard, Confirm: "yes"}); wrong.State != api.LandAsks || wrong.Token != asks.Token {
		t.Errorf("%+v", wrong)
	}
	gone := w.ask(id, api.LandInput{Verb: api.VerbDiscard, Confirm: asks.Token})
	if gone.State != api.LandDone || strings.Contains(w.git(repo, "branch", "--list"), c.Branch) || strings.Contains(w.git(repo, "worktree", "list"), "stint/") {
		t.Errorf("%+v", gone)
	}
	w.eventually("no landing stays in the journal", func() bool { return w.inLandings() == 0 }) // after the answer arrived
}

// inLandings counts the journal's lines.
func (w *fixture) inLandings() (n int) {
	w.Helper()
	s, err := openState(w.options().StateDir)
	w.must(err)
	defer func() { w.must(s.close()) }()
	w.eventually("the journal is read", func() bool { return s.db.QueryRowContext(w.Context(), "SELECT count(*) FROM landings").Scan(&n) == nil })
	return n
}

func TestLand_OnlyWhatTheOwnersFileAllowsNow(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	a, o, repo := w.lander("merge", commits)
	g := w.start(o)
	id := w.trigger(a, "")
	w.untilStatus(id, api.Complete)
	g.end()
	l, err := w.client.RequestLanding(t.Context(), id, api.LandInput{Verb: api.VerbMerge})
	w.must(err)
	before := w.git(repo, "rev-parse", "main")
	w.owns(o, "lander", "land = \"push\"\n")
	g = w.start(o)
	if l = w.answered(id, l.ID); l.State != api.LandRefused || l.Code != api.LandNotAllowed || w.git(repo, "rev-parse", "main") != before {
		t.Errorf("%+v", l)
	}
	w.eventually("the level is told", func() bool {
		c, err := w.client.Changes(t.Context(), id)
		w.must(err)
		return c.Allows == api.LandPush
	})
	g.end()
	w.owns(o, "lander", "land = \"merge\"\nland_protected = [\"ma*\"]\n")
	w.start(o)
	w.eventually("the level is told", func() bool {
		c, err := w.client.Changes(t.Context(), id)
		w.must(err)
		return c.Allows == api.LandMerge
	})
	if l := w.ask(id, api.LandInput{Verb: api.VerbMerge}); l.Code != api.LandProtected {
		t.Errorf("%+v", l)
	}
}

// What is landed is what people were shown.
func TestLand_AsksAgainWhenTheBranchMovedMeanwhile(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	a, o, repo := w.lander("merge", commits)
	w.start(o)
	id := w.trigger(a, "")
	w.untilStatus(id, api.Complete)
	c, err := w.client.Changes(t.Context(), id)
	w.must(err)
	tree := w.git(repo, "worktree", "list", "--porcelain")
	tree, _, _ = strings.Cut(tree[strings.LastIndex(tree, "worktree ")+len("worktree "):], "\n")
	w.git(tree, "commit", "-q", "--allow-empty", "-m", "unseen")
	before := w.git(repo, "rev-parse", "main")
	l := w.ask(id, api.LandInput{Verb: api.VerbMerge})
	if l.State != api.LandRefused || l.Code != api.LandBusy || w.git(repo, "rev-parse", "main") != before {
		t.Fatalf("%+v", l)
	}
	now, err := w.client.Changes(t.Context(), id)
	w.must(err)
	if c.CommitCount != 1 || now.CommitCount != 2 || now.Commits[0].Subject != "unseen" {
		t.Errorf("from %+v to %+v", c.Commits, now.Commits)
	}
	if l := w.ask(id, api.LandInput{Verb: api.VerbMerge}); l.State != api.LandDone {
		t.Errorf("%+v", l)
	}
}

func TestLand_RefusesAWorkspaceThatIsUsedOrGone(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	a, o, repo := w.lander("merge", commits)
	w.start(o)
	id := w.trigger(a, "")
	s := w.untilStatus(id, api.Complete)
	held, err := workspace.Hold(WorkspaceRoot(o.StateDir), s.ThreadID.String())
	for errors := 0; err != nil && errors < 100; errors++ { // the session still gives it up
		held, err = workspace.Hold(WorkspaceRoot(o.StateDir), s.ThreadID.String())
	}
	w.must(err)
	if l := w.ask(id, api.LandInput{Verb: api.VerbMerge}); l.State != api.LandRefused || l.Code != api.LandBusy {
		t.Errorf("%+v", l)
	}
	w.must(held.Close())
	w.git(repo, "worktree", "remove", "--force", held.Path)
	if l := w.ask(id, api.LandInput{Verb: api.VerbMerge}); l.State != api.LandRefused || l.Code != api.LandGone {
		t.Errorf("%+v", l)
	}
}

// Whenever the worker is killed, the answer says what really happened, and nothing is done twice.
func TestLand_SurvivesAKill(t *testing.T) {
	t.Parallel()
	for _, at := range []string{"land begun", "land planned", "land merged", "landed", "told"} {
		t.Run(at, func(t *testing.T) {
			t.Parallel()
			w := newFixture(t)
			a, o, repo := w.lander("merge", commits)
			first := w.spawn(func(c *childConfig) { c.KillAt, c.KillOn = at, 1 })
			id := w.trigger(a, "")
			w.untilStatus(id, api.Complete)
			// Both sides have moved: what is made has an id of its own each time.
			w.git(repo, "commit", "-q", "--allow-empty", "-m", "theirs")
			l, err := w.client.RequestLanding(t.Context(), id, api.LandInput{Verb: api.VerbMerge, Method: api.MergeCommit})
			w.must(err)
			first.wait()
			w.start(o)
			l = w.answered(id, l.ID)
			if l.State != api.LandDone || w.git(repo, "rev-parse", "main") != l.Commit {
				t.Errorf("%+v, main is at %s", l, w.git(repo, "rev-parse", "main"))
			}
			if n := w.git(repo, "rev-list", "--count", "--merges", "main"); n != "1" {
				t.Errorf("merged %s times", n)
			}
			w.eventually("the journal is empty", func() bool { return w.inLandings() == 0 || at == "told" })
		})
	}
}

func TestLand_KeepsOnceWhenKilled(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	a, o, repo := w.lander("push", "echo x > new")
	first := w.spawn(func(c *childConfig) { c.KillAt, c.KillOn = "landed", 1 })
	id := w.trigger(a, "")
	w.untilStatus(id, api.Complete)
	l, err := w.client.RequestLanding(t.Context(), id, api.LandInput{Verb: api.VerbKeep})
	w.must(err)
	first.wait()
	// As if it had been killed a moment earlier: the report isn't in the journal.
	s, err := openState(o.StateDir)
	w.must(err)
	w.must(s.exec("forget", "UPDATE landings SET report = ''"))
	w.must(s.close())
	w.start(o)
	if l = w.answered(id, l.ID); l.State != api.LandDone || w.git(repo, "rev-list", "--count", l.Commit) != "2" {
		t.Errorf("%+v", l)
	}
}

func TestLand_TheWorkerEndsWellWhileItIsAsked(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	a, _, repo := w.lander("merge", commits)
	first := w.spawn(nil)
	id := w.trigger(a, "")
	w.untilStatus(id, api.Complete)
	l, err := w.client.RequestLanding(t.Context(), id, api.LandInput{Verb: api.VerbMerge})
	w.must(err)
	first.signal(syscall.SIGTERM)
	if code := first.wait(); code != ExitOK {
		t.Errorf("ended with %d", code)
	}
	w.spawn(nil)
	if l = w.answered(id, l.ID); l.State != api.LandDone || w.git(repo, "rev-parse", "main") != l.Commit {
		t.Errorf("%+v", l)
	}
}
