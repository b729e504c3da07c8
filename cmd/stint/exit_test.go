package main

import (
	"io"
	"testing"

	"stint/api"
)

// Scripts can tell a good end from every other one by the exit code alone.
func TestExitOf_TellsEveryEndApart(t *testing.T) {
	for _, tt := range []struct {
		session api.Session
		want    exit
	}{
		{api.Session{Status: api.Complete, Outcome: api.OutcomeSuccess}, exitDone},
		{api.Session{Status: api.Complete, Outcome: api.OutcomeStopped}, exitStopped},
		{api.Session{Status: api.Complete, Outcome: api.OutcomeUnfinished}, exitCutShort},
		{api.Session{Status: api.Complete, Outcome: api.OutcomeRefused, Refused: 1}, exitCutShort},
		{api.Session{Status: api.Complete, Outcome: api.OutcomeToolless}, exitCutShort},
		{api.Session{Status: api.Complete, Outcome: api.OutcomeUnmet}, exitCutShort},
		{api.Session{Status: api.Complete, Outcome: "done"}, exitDone},
		{api.Session{Status: api.Failed}, exitError},
		{api.Session{Status: api.Cancelled}, exitCancelled},
		{api.Session{Status: api.Cancelled, Outcome: api.OutcomeStopped}, exitCancelled},
		{api.Session{Status: api.AwaitingInput}, exitUnfinished},
	} {
		if got := (&cli{err: io.Discard}).report(exitOf(tt.session)); got != tt.want {
			t.Errorf("%s, %q: exit code %d, want %d", tt.session.Status, tt.session.Outcome, got, tt.want)
		}
	}
}
