package workspace

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestHooks_PointsOfALife(t *testing.T) {
	b := newBench(t)
	spec := b.spec("k")
	spec.Hooks.Scripts = map[string]string{}
	for _, hook := range []string{AfterCreate, BeforeRun, AfterRun, BeforeRemove} {
		spec.Hooks.Scripts[hook] = fmt.Sprintf("echo $STINT_HOOK:%s >> %s/seen; [ \"$PWD\" = %s/k ] && [ $STINT_BRANCH = stint/k ]", hook, b.dir, b.root)
	}
	for range 2 {
		w := b.prepare(spec)
		for range 2 {
			b.must(w.BeforeRun(t.Context()))
			b.must(w.AfterRun(t.Context()))
		}
		b.done(w)
	}
	r, err := Collect(t.Context(), b.root, Rules{OlderThan: 1, Env: spec.Hooks.Env, Hooks: func(agent string) Hooks { return spec.Hooks }})
	if err != nil || len(r.Removed) != 1 {
		t.Fatalf("%+v, %v", r, err)
	}
	run := strings.Repeat("before_run:before_run\nafter_run:after_run\n", 4)
	if got, want := b.text("seen"), "after_create:after_create\n"+run+"before_remove:before_remove\n"; got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
}

func TestHooks_FailedCreationLeavesNothingAndIsTriedAgain(t *testing.T) {
	b := newBench(t)
	spec := b.spec("k")
	spec.Hooks.Scripts = map[string]string{AfterCreate: "echo clutter > clutter; echo what went wrong; [ -e " + b.dir + "/fixed ]"}
	_, err := Prepare(t.Context(), spec)
	var hook *HookError
	if !errors.As(err, &hook) || hook.ExitCode != 1 || !strings.Contains(hook.Excerpt, "what went wrong") {
		t.Fatalf("%v", err)
	}
	if f := Failure(err); f.Code != CodeHookFailed || !strings.Contains(f.Message, "what went wrong") {
		t.Errorf("%+v", f)
	}
	if _, err := os.Stat(filepath.Join(b.root, "k")); err == nil || b.git(b.repo, "branch", "--list", "stint/*") != "" || strings.Contains(b.git(b.repo, "worktree", "list"), b.root) {
		t.Error("something is left")
	}
	b.put("fixed", "")
	if w := b.prepare(spec); !w.Created || w.Path != filepath.Join(b.root, "k") || b.text("root/k/clutter") == "" {
		t.Errorf("%+v", w)
	}
}

func TestHooks_ValuesAreOnlyVariables(t *testing.T) {
	b := newBench(t)
	evil := []string{"x\"; touch PWN; \"$(touch PWN)`touch PWN`'; touch PWN; '", "--upload-pack=touch PWN\n${IFS}", "../../x\u202e"}
	for i, value := range evil {
		spec := b.spec(value)
		spec.Session = fmt.Sprintf("ses_%d", i)
		spec.Hooks.Values = map[string]string{"STINT_TITLE": value}
		spec.Hooks.Env = append(spec.Hooks.Env, "STINT_TOKEN=secret", "EXTRA=e")
		spec.Hooks.Scripts = map[string]string{BeforeRun: "printf %s \"$STINT_TITLE\" > " + b.dir + "/title; env > " + b.dir + "/env"}
		w := b.prepare(spec)
		b.must(w.BeforeRun(t.Context()))
		if got := b.text("title"); got != value {
			t.Errorf("the hook sees %q, want %q", got, value)
		}
		if env := b.text("env"); strings.Contains(env, "secret") || !strings.Contains(env, "EXTRA=e\n") || !strings.Contains(env, "STINT_SESSION_ID="+spec.Session+"\n") {
			t.Errorf("the hook's environment is\n%s", env)
		}
		b.done(w)
	}
	_ = filepath.WalkDir(b.dir, func(path string, _ os.DirEntry, _ error) error {
		if filepath.Base(path) == "PWN" {
			t.Errorf("executed: %s", path)
		}
		return nil
	})
}

func TestHooks_TimeLimitEndsAllOfIt(t *testing.T) {
	b := newBench(t)
	spec := b.spec("k")
	w := b.prepare(spec)
	w.spec.Hooks.Timeout = 2 * time.Second // so long the programs may take to start
	w.spec.Hooks.Scripts = map[string]string{BeforeRun: "echo begun; (setsid sh -c 'trap \"\" INT TERM; while :; do date +%s%N > " + b.dir + "/next; mv " + b.dir + "/next " + b.dir + "/alive; sleep 0.05; done' &) ; sleep 60"}
	w.spec.Hooks.Start = quick
	begun := time.Now()
	err := w.BeforeRun(t.Context())
	var hook *HookError
	if !errors.As(err, &hook) || hook.Err == nil || !strings.Contains(hook.Excerpt, "begun") || time.Since(begun) > 20*time.Second {
		t.Fatalf("%v after %v", err, time.Since(begun))
	}
	last := b.text("alive")
	time.Sleep(300 * time.Millisecond)
	if last == "" || b.text("alive") != last {
		t.Errorf("something of the hook is alive: %q, then %q", last, b.text("alive"))
	}
}

func TestExcerpt_KeepsBothEnds(t *testing.T) {
	var e excerpt
	for i := range 5000 {
		e.add(fmt.Appendf(nil, "line %d ü\n", i))
	}
	got := e.String()
	if len(got) > excerptHead+excerptTail+20 || !strings.HasPrefix(got, "line 0 ü\nline 1 ") || !strings.HasSuffix(got, "line 4999 ü\n") || !strings.Contains(got, "\n…\n") {
		t.Errorf("%d bytes: %.40q … %q", len(got), got, got[len(got)-40:])
	}
	var short excerpt
	short.add([]byte("all of it"))
	if short.String() != "all of it" {
		t.Error(short.String())
	}
}
