package worker

import (
	"slices"
	"testing"

	"stint/worker/proc"
)

func TestEndWords_CountInWords(t *testing.T) {
	for swept, want := range map[int][]string{
		0: nil,
		1: {"One process that the command left behind was ended."},
		2: {"2 processes that the command left behind were ended."},
	} {
		if got := endWords(proc.Result{Swept: swept}); !slices.Equal(got, want) {
			t.Errorf("after %d it says %q", swept, got)
		}
	}
}
