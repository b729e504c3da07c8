package engine

import (
	"context"
	"time"

	"stint/api"
)

// AwaitSession returns a session once it has ended or asks a person, else after wait. A run
// isn't held for a session that waits for that run itself. Error: not_found.
func (e *Engine) AwaitSession(ctx context.Context, c Caller, id api.SessionID, wait time.Duration) (api.Session, error) {
	timeout := time.NewTimer(wait)
	defer timeout.Stop()
	for {
		changed := e.Changed()
		s, err := e.Session(ctx, c, id)
		inVain := c.Run != nil && s.WaitingFor != nil && s.WaitingFor.Ancestor
		if err != nil || s.Status.Terminal() || s.Prompted != nil || inVain {
			return s, err
		}
		select {
		case <-changed:
		case <-timeout.C:
			return s, nil
		case <-ctx.Done():
			return s, ctx.Err()
		}
	}
}
