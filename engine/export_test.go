package engine

import (
	"context"
	"errors"

	"stint/api"
	"stint/db"
)

// errUndo makes a write undo itself.
var errUndo = errors.New("undone on purpose")

// TryClaim answers what Claim would, and takes everything back.
func (e *Engine) TryClaim(ctx context.Context, c Caller, worker api.WorkerID, session api.SessionID, in api.ClaimRequest) (refusal, err error) {
	err = e.write(ctx, func(tx *db.Tx) error {
		_, refusal, err = e.claimIn(tx, c, worker, session, in)
		if err != nil {
			return err
		}
		return errUndo
	})
	if errors.Is(err, errUndo) {
		err = nil
	}
	return refusal, err
}

// TryClaimNext answers the session that ClaimNext would grant, and takes everything back.
func (e *Engine) TryClaimNext(ctx context.Context, c Caller, in api.ClaimNextRequest) (got api.SessionID, err error) {
	err = e.write(ctx, func(tx *db.Tx) error {
		out, _, err := e.claimNextTx(tx, c, in)
		if err != nil {
			return err
		}
		if got = 0; out != nil {
			got = out.SessionID
		}
		return errUndo
	})
	if errors.Is(err, errUndo) {
		err = nil
	}
	return got, err
}
