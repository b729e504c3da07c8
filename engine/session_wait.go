package engine

import (
	"context"
	"time"

	"stint/api"
)

// AwaitSession returns a session once it has ended or asks a person, else after wait. A run
// isn't held for a session that waits for that run itself. Error: not_found.
func (e *Engine) AwaitSession(ctx context.Context, c Caller, id api.SessionID, wait time.Duration) (out api.Session, err error) {
	err = untilFound(ctx, wait, func() (found bool, wake <-chan struct{}, err error) {
		wake = e.Changed()
		out, err = e.Session(ctx, c, id)
		inVain := c.Run != nil && out.WaitingFor != nil && out.WaitingFor.Ancestor
		return out.Status.Terminal() || out.Prompted != nil || inVain, wake, err
	})
	return out, err
}
