package worker

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"stint/api"
	"stint/worker/workertest"
)

// The check of a command decides whether its success counts (contract 10.10): it runs in the
// same place, gets no input, and doesn't run at all after a command that failed.
func TestCheck_DecidesWhetherAGoodEndCounts(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	w.start(w.options())
	run := func(slug, command, check string) (api.Session, string) {
		t.Helper()
		a := w.agentWith(slug, func(in *api.AgentInput) { in.Run.Check = []string{"sh", "-c", check} }, "sh", "-c", command)
		id := w.trigger(a, "hello")
		s := w.until(id, "over", func(s api.Session) bool { return s.Status.Terminal() })
		return s, w.text(id, "stdout")
	}
	s, out := run("good", "cat > made; echo done", "cat; cat made; echo \" $STINT_AGENT\"")
	if s.Status != api.Complete || s.Outcome != outcomeSuccess || !strings.Contains(s.Result, "done") || out != "done\nhello good\n" {
		t.Errorf("a good check: %+v, printed %q", s, out)
	}
	s, out = run("bad", "echo done", "echo it is not right >&2; exit 4")
	if s.Status != api.Failed || s.Error.Code != CodeCheckFailed || !strings.Contains(s.Error.Message, "exit code 4") || !strings.Contains(s.Error.Message, "it is not right") || out != "done\n" {
		t.Errorf("a bad check: %+v (%+v), printed %q", s, s.Error, out)
	}
	s, out = run("unchecked", "exit 3", "touch checked; echo checked")
	if s.Error == nil || s.Error.Code != CodeExitNonzero || out != "" {
		t.Errorf("a command that failed: %+v (%+v), printed %q", s, s.Error, out)
	}
	a := w.agentWith("absent", func(in *api.AgentInput) { in.Run.Check = []string{"no-such-check"} }, "touch", "ran")
	s = w.until(w.trigger(a, ""), "over", func(s api.Session) bool { return s.Status.Terminal() })
	if _, err := os.Stat(filepath.Join(a.Run.WorkFolder, "ran")); err == nil || s.Error == nil || s.Error.Code != CodeExecutableNotFound {
		t.Errorf("without its check it was started: %+v", s.Error)
	}
}

// A running check is ended with its session, and nothing of it is left.
func TestCheck_EndsWithItsSession(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	w.start(w.options())
	file := filepath.Join(t.TempDir(), "stamps")
	a := w.agentWith("slow", func(in *api.AgentInput) { in.Run.Check = workertest.Agent(t, "deaf", file) }, "true")
	id := w.trigger(a, "")
	w.eventually("the check runs", func() bool { return len(workertest.Lives(t, file)) > 0 })
	_, err := w.client.CancelSession(t.Context(), id, api.CancelInput{})
	w.must(err)
	w.untilDrained(a)
	w.quiet(file)
}
