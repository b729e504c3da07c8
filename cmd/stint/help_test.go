package main

import (
	"strings"
	"testing"

	"github.com/spf13/pflag"
)

// A flag's text is wrapped where a line is full, not where its source is.
func TestHelp_FlagsAreWrappedOnce(t *testing.T) {
	flags := pflag.NewFlagSet("x", pflag.ContinueOnError)
	flags.String("preset", "", "a `PRESET`: ask (a person decides about it), unattended (nobody\nis asked), or command")
	got := wrapped(flags)
	for line := range strings.Lines(got) {
		if len(strings.TrimRight(line, "\n")) >= helpColumns {
			t.Errorf("the line %q is too long", line)
		}
	}
	if text := strings.Join(strings.Fields(got), " "); strings.Count(got, "\n") != 1 || !strings.HasSuffix(text, "unattended (nobody is asked), or command") {
		t.Errorf("it is wrapped as\n%s", got)
	}
}
