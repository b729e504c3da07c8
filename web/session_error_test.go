package web

import (
	"testing"

	"stint/api"
)

func TestErrorText_AdviceIsALineOfItsOwn(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ code, message, want string }{
		{"AGENT_EXIT_NONZERO", "The command ended with exit code 3.", "The command ended with exit code 3.\nThe last lines of the output usually say why."},
		{"AGENT_EXIT_NONZERO", "The command ended with exit code 3.\nno such thing", "The command ended with exit code 3.\nno such thing"},
		{"CHECK_FAILED", "Exit code 4.\nit is not right", "Exit code 4.\nit is not right\nThe command succeeded, but its check failed."},
		{"OTHER", "Only this.", "Only this."},
	} {
		if got := errorText(&api.Failure{Code: c.code, Message: c.message}); got != c.want {
			t.Errorf("%s is told as %q, want %q", c.code, got, c.want)
		}
	}
}
