package engine_test

import (
	"context"
	"strings"
	"testing"

	"stint/api"
	"stint/engine/enginetest"
)

// Only the owner sees where a worker works: for a local session, which only they can read, and
// in no event.
func TestPatch_PlacesAreTheOwnersAlone(t *testing.T) {
	w := enginetest.New(t)
	const path, command = "/home/somebody/private", "cd /home/somebody/private && claude --resume x"
	for _, mode := range []api.Mode{api.Local, api.Cloud} {
		a := w.Agent(func(in *api.AgentInput) { in.Mode = mode })
		k := w.Worker(a)
		c := k.Claim(w.New(a).ID)
		must[api.Session](t)(w.PatchSession(context.Background(), k.Caller, k.ID, c.SessionID, api.SessionPatch{
			UnderClaim: k.Under(c.ClaimID), WorkPath: new(path), ResumeCommand: new(command),
		}))
		s := w.Get(c.SessionID)
		if mine := mode == api.Local; mine != (s.WorkPath == path) || mine != (s.ResumeCommand == command) || !mine && s.WorkPath+s.ResumeCommand != "" {
			t.Errorf("a %s session has %q and %q", mode, s.WorkPath, s.ResumeCommand)
		}
		_, err := w.PatchSession(context.Background(), k.Caller, k.ID, c.SessionID, api.SessionPatch{
			UnderClaim: k.Under(c.ClaimID), ResumeCommand: new("true\nrm -r ~"),
		})
		wantCode(t, err, api.CodeInvalid)
	}
	for _, data := range w.Tell("SELECT data FROM events") {
		if strings.Contains(data, "somebody") {
			t.Errorf("an event tells %s", data)
		}
	}
}
