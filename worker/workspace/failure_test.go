package workspace

import (
	"context"
	"fmt"
	"os/exec"
	"testing"

	"stint/worker/git"
)

func TestFailure_SaysNothingInGosOwnWords(t *testing.T) {
	killed := exec.CommandContext(t.Context(), "sh", "-c", "kill -9 $$").Run()
	for want, err := range map[string]error{
		"The workspace can't be used: look at the repository: git status: it took too long.":                                              fmt.Errorf("look at the repository: %w", &git.Error{Call: "status", Err: context.DeadlineExceeded}),
		"The workspace can't be made or found: the folder is in no git repository: /x: git rev-parse: it was ended by signal 9 (killed).": fmt.Errorf("%w: /x: %w", git.ErrNoRepository, &git.Error{Call: "rev-parse", Err: killed}),
		"The hook before_run of the workflow file did not finish: it ran longer than its time limit.":                                     &HookError{Hook: BeforeRun, Err: context.DeadlineExceeded},
		"The hook before_run of the workflow file did not finish: it was cut short.":                                                      &HookError{Hook: BeforeRun, Err: context.Canceled},
	} {
		if got := Failure(err).Message; got != want {
			t.Errorf("%v is said as %q, want %q", err, got, want)
		}
	}
}
