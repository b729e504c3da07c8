package web

import (
	"testing"

	"stint/api"
)

// A bar of runs separately counts runs that ended in good order without finishing their work.
func TestBeats_CountEndsWithoutSuccessApart(t *testing.T) {
	beats := []Beat{
		{Status: api.Complete}, {Status: api.Complete, Stopped: true}, {Status: api.Complete, Mark: "unfinished"}, {Status: api.Failed},
	}
	if got, want := beatsLabel(beats), "Last 4 runs: 1 complete, 1 error, 1 stopped, 1 unfinished"; got != want {
		t.Errorf("it says %q, want %q", got, want)
	}
	if b := beats[2]; b.word() != "Unfinished" || b.look() == api.Complete {
		t.Errorf("an unfinished run is %q and drawn as %s", b.word(), b.look())
	}
}
