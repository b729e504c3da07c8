package worker

import (
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"stint/api"
	"stint/worker/git"
	"stint/worker/workflow"
)

// pusher is an agent whose changes may be pushed, in a repository with a remote.
func (w *fixture) pusher(mode, script string) (a api.Agent, repo, remote string) {
	w.Helper()
	o := w.options()
	repo, remote = w.repository(), filepath.Join(w.dir, "remote.git")
	w.git(w.dir, "init", "-q", "--bare", remote)
	w.git(repo, "remote", "add", "origin", remote)
	w.owns(o, "pusher", "land = \"push\"\n[workspace]\nmode = \""+mode+"\"\n")
	a = w.agentWith("pusher", func(in *api.AgentInput) { in.Run.WorkFolder = repo }, "sh", "-ec", script)
	w.start(o)
	return a, repo, remote
}

// A second session finds what the first one has changed, and would take it for its owner's.
func TestPush_GoesWhereTheOwnerHadItBeforeAnySession(t *testing.T) {
	for _, mode := range []string{workflow.ModeFolder, workflow.ModeWorktree} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			pushedWhereItWas(t, mode)
		})
	}
}

func pushedWhereItWas(t *testing.T, mode string) {
	w := newFixture(t)
	elsewhere, moved, change := filepath.Join(w.dir, "elsewhere.git"), filepath.Join(w.dir, "moved.git"), filepath.Join(w.dir, "change")
	w.git(w.dir, "init", "-q", "--bare", elsewhere)
	w.git(w.dir, "init", "-q", "--bare", moved)
	touch(t, change)
	a, repo, _ := w.pusher(mode, `date +%N > new$$; git add .; git -c user.name=x -c user.email=x@example.org commit -qm more; if test -e `+change+`; then git remote set-url origin `+elsewhere+`; fi`)
	push := func() api.Landing {
		id := w.trigger(a, "")
		w.untilStatus(id, api.Complete)
		return w.ask(id, api.LandInput{Verb: api.VerbPush})
	}
	for _, which := range []string{"the session that changed it", "the next one"} {
		if l := push(); l.State != api.LandRefused || l.Code != api.LandNoRemote || !strings.Contains(l.Detail, "another one than when this work began") {
			t.Errorf("%s: %+v", which, l)
		}
		w.must(errUnlessMissing(os.Remove(change)))
	}
	// What changes while no session runs, the owner has changed.
	w.git(repo, "remote", "set-url", "origin", moved)
	if l := push(); l.State != api.LandDone || w.git(moved, "for-each-ref") == "" {
		t.Errorf("after the owner's change: %+v", l)
	}
	if got := w.git(elsewhere, "for-each-ref"); got != "" {
		t.Errorf("elsewhere has %s", got)
	}
}

func errUnlessMissing(err error) error {
	if os.IsNotExist(err) {
		return nil
	}
	return err
}

// Where the owner's hook makes a clone, its remote counts; one that the agent adds doesn't.
func TestPush_OfACloneGoesWhereTheHooksCloneCameFrom(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	a, _, _ := w.pusher(workflow.ModeEmpty, `git init -q -b main x; cd x; echo x > x; git add x; git -c user.name=x -c user.email=x@example.org commit -qm x; git remote add origin https://example.org/x`)
	id := w.trigger(a, "")
	w.untilStatus(id, api.Complete)
	if l := w.ask(id, api.LandInput{Verb: api.VerbPush}); l.State != api.LandRefused || !strings.Contains(l.Detail, "was not there when this work began") {
		t.Errorf("%+v", l)
	}
}

func TestRoutes_ChangedSince(t *testing.T) {
	type set = map[string]string
	for name, c := range map[string]struct{ known, left, now, want set }{
		"nothing":                      {set{"a": "1"}, set{"a": "1"}, set{"a": "1"}, set{"a": "1"}},
		"by the owner":                 {set{"a": "1"}, set{"a": "1"}, set{"a": "2", "b": "1"}, set{"a": "2", "b": "1"}},
		"by a session":                 {set{"a": "1"}, set{"a": "2", "b": "2"}, set{"a": "2", "b": "2"}, set{"a": "1"}},
		"put right by the owner":       {set{"a": "1"}, set{"a": "2"}, set{"a": "3"}, set{"a": "3"}},
		"removed by the owner":         {set{"a": "1"}, set{"a": "1"}, set{}, set{}},
		"removed by a session":         {set{"a": "1"}, set{}, set{}, set{"a": "1"}},
		"one of each":                  {set{"a": "1", "b": "1"}, set{"a": "2", "b": "1"}, set{"a": "2", "b": "2"}, set{"a": "1", "b": "2"}},
		"nothing was known beforehand": {nil, set{"a": "2"}, set{"a": "2"}, set{}},
	} {
		if got := changedSince(c.known, c.left, c.now); !maps.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

// While nobody can tell who changed something, nothing is taken for the owner's.
func TestRoutes_BesideAnotherSessionAndAfterACrash(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	repo := w.repository()
	o := w.options()
	p, err := open(o)
	w.must(err)
	defer p.close()
	enter := func() (git.Routes, func()) {
		r, err := git.Open(t.Context(), repo, p.gitWith(os.Environ()))
		w.must(err)
		known, leave, err := p.enterRepository(t.Context(), r)
		w.must(err)
		return known, func() { leave(t.Context()) }
	}
	_, first := enter()
	w.git(repo, "remote", "add", "one", "https://example.org/1")
	known, second := enter()
	first()
	w.git(repo, "remote", "add", "two", "https://example.org/2")
	second()
	again, _ := enter() // and never leaves: the process is killed
	if len(known.Remotes)+len(again.Remotes) != 0 {
		t.Errorf("a session's remotes are taken for the owner's: %v, %v", known, again)
	}
	p.routes.inside = map[string]int{}
	w.git(repo, "remote", "add", "three", "https://example.org/3")
	if after, _ := enter(); len(after.Remotes) != 0 {
		t.Errorf("after a crash: %v", after)
	}
}
