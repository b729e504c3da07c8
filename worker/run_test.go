package worker

import (
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"stint/api"
	"stint/worker/workertest"
)

// quietTransport is a separate transport, whose idle connections the test closes.
type quietTransport struct{ http.Transport }

func TestRun_CommandGetsItsPromptAndItsOutputIsStored(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	a := w.agent("echo", "sh", "-c", `cat; echo "err $STINT_PROMPT" >&2; cat "$STINT_PROMPT_FILE"; echo " $STINT_AGENT $STINT_FENCE $STINT_ATTEMPT $STINT_TRY"`)
	w.start(w.options())
	id := w.trigger(a, "hello\n")
	s := w.untilStatus(id, api.Complete)
	if got, want := w.text(id, "stdout"), "hello\nhello\n echo 1 1 1\n"; got != want {
		t.Errorf("stdout %q, want %q", got, want)
	}
	if got := w.text(id, "stderr"); got != "err hello\n\n" {
		t.Errorf("stderr %q", got)
	}
	if s.Outcome != outcomeSuccess || !strings.Contains(s.Result, "echo 1 1 1") {
		t.Errorf("outcome %q, result %q", s.Outcome, s.Result)
	}
	left, err := os.ReadDir(filepath.Join(w.dir, "worker", "prompts"))
	if err != nil || len(left) > 0 {
		t.Errorf("prompts left on disk: %v, %v", left, err)
	}
}

func TestRun_LargePromptIsInNoArgument(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	prompt := strings.Repeat("needle ", 300<<10/7)
	a := w.agent("big", "sh", "-c", `cat >got; cmp got "$STINT_PROMPT_FILE" && wc -c <got; stat -c %a "$STINT_PROMPT_FILE"; echo "[${STINT_PROMPT-unset}]"; cat /proc/[0-9]*/cmdline | tr '\0' ' ' | grep -c 'needl[e] needle'`)
	w.start(w.options())
	id := w.trigger(a, prompt)
	w.until(id, "over", func(s api.Session) bool { return s.Status.Terminal() })
	if got, want := w.text(id, "stdout"), fmt.Sprintf("%d\n600\n[unset]\n0\n", len(prompt)); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestRun_CommandThatReadsNothingOrForeverEnds(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	cat, deaf := w.agent("cat", "cat"), w.agent("deaf", "true")
	w.start(w.options())
	one, two := w.trigger(cat, ""), w.trigger(deaf, strings.Repeat("x", 200<<10))
	w.untilStatus(one, api.Complete)
	w.untilStatus(two, api.Complete)
}

func TestRun_EveryWayToFailHasItsCode(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	file := filepath.Join(t.TempDir(), "file")
	w.must(os.WriteFile(file, []byte("no program"), 0o700))
	w.start(w.options())
	folder := func(path string) func(*api.AgentInput) {
		return func(in *api.AgentInput) { in.Run.WorkFolder = path }
	}
	for _, c := range []struct {
		name    string
		edit    func(*api.AgentInput)
		command []string
		code    string
		words   string
	}{
		{"no-folder", folder("/nowhere/at/all"), []string{"true"}, CodeFolderNotFound, "/nowhere/at/all"},
		{"file-folder", folder(file), []string{"true"}, CodeFolderNotADir, ""},
		{"under-file", folder(file + "/sub"), []string{"true"}, CodeFolderNotADir, ""},
		{"no-executable", nil, []string{"no-such-program-here"}, CodeExecutableNotFound, "no-such-program-here"},
		{"no-path", nil, []string{"./missing"}, CodeExecutableNotFound, "./missing"},
		{"folder-as-program", nil, []string{"/tmp"}, CodeExecutableNotFound, ""},
		{"no-format", nil, []string{file}, CodeExecutableNotFound, "#!/bin/sh"},
		{"exit-3", nil, []string{"sh", "-c", "echo out; echo why >&2; exit 3"}, CodeExitNonzero, "exit code 3"},
		{"segv", nil, []string{"sh", "-c", "kill -SEGV $$"}, CodeCrashed, "signal 11"},
		{"timeout", func(in *api.AgentInput) { in.TurnTimeoutSeconds = 1 }, []string{"sh", "-c", "while :; do echo x; sleep 0.1; done"}, CodeTurnTimeout, "limit of 1s"},
		{"stall", func(in *api.AgentInput) { in.StallTimeoutSeconds = 1 }, []string{"sh", "-c", "sleep 600 & echo hi; wait"}, CodeStalled, "nothing for 1s"},
		{"foreign-env", func(in *api.AgentInput) { in.Run.Env = []string{"STINT_TOKEN"} }, []string{"true"}, CodePolicyBlocked, "STINT_TOKEN"},
	} {
		t.Run(c.name, func(t *testing.T) {
			id := w.trigger(w.agentWith(c.name, c.edit, c.command...), "")
			s := w.until(id, "over", func(s api.Session) bool { return s.Status.Terminal() })
			failure := s.Error
			if s.Status != api.Failed || failure == nil || failure.Code != c.code || !strings.Contains(failure.Message, c.words) {
				t.Errorf("ended %s with %+v; want %s and %q", s.Status, failure, c.code, c.words)
			}
		})
	}
}

func TestRun_StallIsCountedFromTheLastOutput(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	a := w.agentWith("slow", func(in *api.AgentInput) { in.StallTimeoutSeconds = 3 }, "sh", "-c", "for i in 1 2 3 4 5; do echo $i; sleep 1; done")
	w.start(w.options())
	w.untilStatus(w.trigger(a, ""), api.Complete)
}

func TestRun_FolderThatVanishesEndsTheCommand(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	a := w.agent("gone", "sh", "-c", "cd /; echo here; sleep 600")
	w.start(w.options())
	id := w.trigger(a, "")
	w.eventually("it runs", func() bool { return w.text(id, "stdout") != "" })
	w.must(os.Remove(a.Run.WorkFolder))
	s := w.until(id, "over", func(s api.Session) bool { return s.Status.Terminal() })
	if s.Error == nil || s.Error.Code != CodeFolderNotFound {
		t.Errorf("ended %s with %+v", s.Status, s.Error)
	}
}

func TestRun_TriesAgainAsOftenAsAllowed(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	stamps := filepath.Join(t.TempDir(), "stamps")
	a := w.agent("again", "sh", "-c", `echo "$STINT_TRY" >>`+stamps+`; exit 1`)
	o := w.options()
	o.MaxRetryAttempts, o.MaxRetryBackoff = 8, 30*time.Millisecond
	w.start(o)
	s := w.until(w.trigger(a, ""), "over", func(s api.Session) bool { return s.Status.Terminal() })
	got, err := os.ReadFile(stamps)
	if err != nil || string(got) != "1\n2\n3\n4\n5\n6\n7\n8\n9\n" {
		t.Errorf("tries %q, %v", got, err)
	}
	if s.Error == nil || s.Error.Code != CodeExitNonzero || s.Fence != 1 {
		t.Errorf("ended %s with %+v under fence %d", s.Status, s.Error, s.Fence)
	}
}

func TestRun_AgentSeesExactlyWhatTheDoctorSays(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	a := w.agentWith("env", func(in *api.AgentInput) {
		in.Run.Env, in.Instructions = []string{"MY_WORD", "MY_TOKEN"}, "be kind"
	}, "sh", "-c", "env -0 >seen; ls /proc/self/fd | wc -l; cat /proc/self/limits | grep core")
	o := w.options()
	o.environ = []string{
		"PATH=/usr/bin:/bin", "HOME=/home/x", "LC_ALL=C", "MARKER=leaks", "STINT_TOKEN=leaks-too", "MY_WORD=word", "MY_TOKEN=hush-hush",
	}
	w.start(o)
	id := w.trigger(a, "do it")
	w.untilStatus(id, api.Complete)
	report, err := Doctor(t.Context(), o, "env")
	w.must(err)
	b, err := os.ReadFile(filepath.Join(a.Run.WorkFolder, "seen"))
	w.must(err)
	seen := map[string]string{}
	for _, v := range strings.Split(strings.TrimSuffix(string(b), "\x00"), "\x00") {
		name, value, _ := strings.Cut(v, "=")
		seen[name] = value
	}
	delete(seen, "PWD") // the shell's own
	delete(seen, "_")
	told := map[string]Variable{}
	for _, v := range report.Env {
		told[v.Name] = v
	}
	delete(told, "STINT_CONTEXT_FILE") // only when there is context
	if got, want := slices.Sorted(maps.Keys(seen)), slices.Sorted(maps.Keys(told)); !slices.Equal(got, want) {
		t.Errorf("the agent saw  %v\nthe doctor said %v", got, want)
	}
	for name, value := range seen {
		if v := told[name]; !v.Stint && !v.Secret && v.Value != value {
			t.Errorf("%s is %q, the doctor says %q", name, value, v.Value)
		}
	}
	if v := told["MY_TOKEN"]; !v.Secret || v.Value != maskText || seen["MY_TOKEN"] != "hush-hush" {
		t.Errorf("the secret is %+v, seen as %q", v, seen["MY_TOKEN"])
	}
	if !report.Runs || report.Executable == "" || report.FolderKey == "" {
		t.Errorf("report %+v", report)
	}
	if got := w.text(id, "stdout"); !strings.HasPrefix(got, "4\n") || !strings.Contains(got, "Max core file size        0 ") {
		t.Errorf("descriptors and limits: %q", got) // 0, 1, 2 and the one that ls opens
	}
}

func TestDoctor_NamesWhatIsWrong(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	w.agent("lost", "no-such-program-here")
	report, err := Doctor(t.Context(), w.options(), "lost")
	w.must(err)
	if report.Runs {
		t.Error("it would run")
	}
	i := slices.IndexFunc(report.Checks, func(c api.Check) bool { return !c.OK })
	if i < 0 || report.Checks[i].Code != CodeExecutableNotFound || report.Checks[i].Name != "command" {
		t.Errorf("checks %+v", report.Checks)
	}
	if _, err := Doctor(t.Context(), w.options(), "nobody"); api.CodeOf(err) != api.CodeNotFound {
		t.Errorf("unknown agent: %v", err)
	}
}

func TestRun_FoldersAreNeverShared(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	stamps := filepath.Join(t.TempDir(), "stamps")
	base := t.TempDir()
	w.must(os.Mkdir(filepath.Join(base, "sub"), 0o700))
	link := filepath.Join(t.TempDir(), "link")
	w.must(os.Symlink(base, link))
	var ids []api.SessionID
	for i, path := range []string{base, link, base + "/", filepath.Join(base, "sub")} {
		a := w.agentWith(fmt.Sprintf("same-%d", i), func(in *api.AgentInput) { in.Run.WorkFolder = path }, workertest.Agent(t, "stamp", stamps, "20")...)
		ids = append(ids, w.trigger(a, ""))
	}
	w.start(w.options())
	for _, id := range ids {
		w.untilStatus(id, api.Complete)
	}
	lives := workertest.Lives(t, stamps)
	if len(lives) != len(ids) {
		t.Errorf("%d agents ran, want %d", len(lives), len(ids))
	}
	workertest.Apart(t, lives)
}

func TestRun_ServesAgentsMadeLater(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	w.start(w.options())
	w.eventually("the worker is there", func() bool { return w.proxy.Count("GET agents") > 0 })
	w.untilStatus(w.trigger(w.agent("late", "true"), ""), api.Complete)
	w.must(w.client.DeleteAgent(t.Context(), "late"))
	w.untilStatus(w.trigger(w.agent("later", "true"), ""), api.Complete)
}

func TestRun_SlotsAreShared(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	o := w.options()
	o.Slots = 2
	stamps := t.TempDir()
	var ids []api.SessionID
	for i := range 5 {
		a := w.agent(fmt.Sprintf("many-%d", i), workertest.Agent(t, "stamp", filepath.Join(stamps, fmt.Sprint(i)), "10")...)
		ids = append(ids, w.trigger(a, ""))
	}
	w.start(o)
	var lives []workertest.AgentRun
	for i, id := range ids {
		w.untilStatus(id, api.Complete)
		lives = append(lives, workertest.Lives(t, filepath.Join(stamps, fmt.Sprint(i)))...)
	}
	for _, at := range lives {
		n := 0
		for _, l := range lives {
			if l.Start <= at.Start && at.Start <= l.Last {
				n++
			}
		}
		if n > 2 {
			t.Errorf("%d commands ran at once on two slots", n)
		}
	}
}

// An agent created between a worker's first look and the moment from which it receives changes
// is found at once, not at the clock's next tick.
func TestRun_AgentMadeBeforeAnybodyListens(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	w.proxy.Rule(faultOn(func(call string) bool { return call == "GET events" }, workertest.Fault{Delay: 2 * time.Second}))
	o := w.options()
	o.Clocks.Agents = time.Hour
	w.start(o)
	w.eventually("it has looked", func() bool { return w.proxy.Count("GET agents") > 0 && w.proxy.Count("GET events") > 0 })
	w.untilStatus(w.trigger(w.agent("late", "echo", "here"), ""), api.Complete)
}
