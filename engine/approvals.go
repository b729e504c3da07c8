package engine

import (
	"context"
	"fmt"

	"stint/account"
	"stint/api"
	"stint/db"
	"stint/queries"
)

const (
	maxApprovalWhat = 4 << 10 // bytes
	maxApprovalWord = 200
)

// ReportApprovals takes in what a worker says its owner allowed its agent from now on: all of
// it. What is listed no more was removed, on its machine or because that was asked. Errors:
// instance_superseded, invalid, not_found.
func (e *Engine) ReportApprovals(ctx context.Context, c Caller, id api.WorkerID, in api.ApprovalsReport) error {
	if c.Run != nil {
		return account.UserTokenRequired("")
	}
	if err := checkApprovals(&in); err != nil {
		return err
	}
	return e.writeAs(ctx, c, func(tx *db.Tx) error {
		w, err := workerOf(tx.Context(), tx, c, id)
		if err != nil {
			return err
		}
		if err := sameInstance(w, in.InstanceID); err != nil {
			return err
		}
		if err := e.putApprovals(tx, w, in.Approvals); err != nil {
			return err
		}
		err = db.One(tx.SetApprovalsState(tx.Context(), queries.SetApprovalsStateParams{ApprovalsState: in.State, ID: w.ID}))
		if err != nil {
			return fmt.Errorf("note what worker %s reported: %w", w.ID, err)
		}
		return nil
	})
}

func checkApprovals(in *api.ApprovalsReport) error {
	var v api.Invalid
	v.CheckText("state", in.State, maxApprovalWord)
	v.CheckLine("state", in.State)
	if in.State == "" && len(in.Approvals) > 0 {
		v.Add("state", "is missing: it names this list")
	}
	if len(in.Approvals) > api.MaxApprovals {
		v.Add("approvals", fmt.Sprintf("has more than %d entries", api.MaxApprovals))
	}
	seen := map[string]bool{}
	for i := range in.Approvals {
		a, field := &in.Approvals[i], fmt.Sprintf("approvals[%d].", i)
		mended(&a.What)
		v.CheckText(field+"what", a.What, maxApprovalWhat)
		for name, text := range map[string]string{"id": a.ID, "area": string(a.Area), "tool": a.Tool} {
			v.CheckText(field+name, text, maxApprovalWord)
			v.CheckLine(field+name, text)
		}
		if a.ID == "" || seen[a.ID] {
			v.Add(field+"id", "is missing, or another one's")
		}
		if a.Uses < 0 {
			v.Add(field+"uses", "is no number of uses")
		}
		seen[a.ID] = true
	}
	return v.Err()
}

// putApprovals makes a worker's standing approvals those that it reports.
func (e *Engine) putApprovals(tx *db.Tx, w *workerRow, all []api.Approval) error {
	rows, err := tx.StandingApprovals(tx.Context(), w.ID)
	if err != nil {
		return fmt.Errorf("read the standing approvals of worker %s: %w", w.ID, err)
	}
	gone := map[string]bool{}
	for _, row := range rows {
		gone[row.Approval] = true
	}
	for _, a := range all {
		err := tx.PutStandingApproval(tx.Context(), queries.PutStandingApprovalParams{
			WorkerID: w.ID, Approval: a.ID, Area: a.Area, Tool: a.Tool, What: a.What, AnyWord: db.Flag(a.Any), Beyond: db.Flag(a.Beyond),
			SessionID: a.SessionID, ApprovedBy: a.ApprovedBy, ApprovedAt: api.Micros(a.ApprovedAt.Time), Uses: a.Uses, UsedAt: api.Micros(a.LastUsedAt.Time),
		})
		if err != nil {
			return fmt.Errorf("note the standing approval %s of worker %s: %w", a.ID, w.ID, err)
		}
		if !gone[a.ID] {
			if err := e.logApproval(tx, w, w.ID.String(), api.EventApprovalGiven, a.ID); err != nil {
				return err
			}
		}
		delete(gone, a.ID)
	}
	for _, row := range rows {
		if !gone[row.Approval] {
			continue
		}
		if err := db.One(tx.DropStandingApproval(tx.Context(), queries.DropStandingApprovalParams{WorkerID: w.ID, Approval: row.Approval})); err != nil {
			return fmt.Errorf("drop the standing approval %s of worker %s: %w", row.Approval, w.ID, err)
		}
		if err := e.logApproval(tx, w, w.ID.String(), api.EventApprovalRemoved, row.Approval); err != nil {
			return err
		}
	}
	return nil
}

// logApproval names the approval alone: what it allows is for the worker's owner.
func (e *Engine) logApproval(tx *db.Tx, w *workerRow, actor, kind, approval string) error {
	return e.logWorker(tx, w, actor, kind, api.EventData{"approval": approval})
}

// approvalsAsked is what a beat's answer says of a worker's standing approvals.
func approvalsAsked(ctx context.Context, q queries.Querier, w *workerRow) (out api.ApprovalsAsked, err error) {
	if out.State = w.ApprovalsState; out.State == "" {
		return out, nil // there are none
	}
	if out.Remove, err = q.AskedRemovals(ctx, w.ID); err != nil {
		err = fmt.Errorf("read what worker %s is asked to remove: %w", w.ID, err)
	}
	return out, err
}

// ownApprovals refuses a caller who is not the worker's owner in person: for others a worker
// has no standing approvals. contract 15.3
func ownApprovals(c Caller, w *workerRow) error {
	if w.OwnerUserID != c.UserID { // a cloud worker is nobody's
		return api.Refuse(api.CodeNotFound, "What an agent may do from now on is for its worker's owner alone.")
	}
	return c.May(account.OwnApprovals)
}

// Approvals lists what a worker's owner allowed its agent from now on, as the worker last said
// it, the newest first. Rights: the worker's owner, in person. Errors: not_found.
func (e *Engine) Approvals(ctx context.Context, c Caller, id api.WorkerID) (out api.List[api.StandingApproval], err error) {
	err = e.store.Read(ctx, func(tx *db.ReadTx) error {
		w, err := seenWorker(ctx, tx, c, id)
		if err != nil {
			return err
		}
		if err := ownApprovals(c, w); err != nil {
			return err
		}
		out.Items, err = approvalsOf(ctx, tx, w)
		return err
	})
	return out, err
}

func approvalsOf(ctx context.Context, q queries.Querier, w *workerRow) ([]api.StandingApproval, error) {
	a, err := agentEvenDeleted(ctx, q, w.AgentID)
	if err != nil {
		return nil, fmt.Errorf("read agent %s: %w", w.AgentID, err)
	}
	rows, err := q.StandingApprovals(ctx, w.ID)
	if err != nil {
		return nil, fmt.Errorf("read the standing approvals of worker %s: %w", w.ID, err)
	}
	out := make([]api.StandingApproval, len(rows))
	for i, row := range rows {
		out[i] = api.Approval{
			ID: row.Approval, Area: row.Area, Tool: row.Tool, What: row.What, Any: row.AnyWord != 0, Beyond: row.Beyond != 0,
			SessionID: row.SessionID, ApprovedBy: row.ApprovedBy, ApprovedAt: api.At(row.ApprovedAt), Uses: row.Uses, LastUsedAt: api.At(row.UsedAt),
		}.Standing(a.Slug)
		out[i].RemovalRequestedAt = api.At(row.RemovalAskedAt)
	}
	return out, nil
}

// RemoveApproval asks a worker to remove a standing approval from its file. It is pending until
// the worker reports a list without it; asking again changes nothing. Rights: the worker's
// owner, in person. Errors: not_found.
func (e *Engine) RemoveApproval(ctx context.Context, c Caller, id api.WorkerID, approval string) (out api.StandingApproval, err error) {
	err = e.writeAs(ctx, c, func(tx *db.Tx) error {
		w, err := seenWorker(tx.Context(), tx, c, id)
		if err != nil {
			return err
		}
		if err := ownApprovals(c, w); err != nil {
			return err
		}
		n, err := tx.AskRemoval(tx.Context(), queries.AskRemovalParams{At: db.Micros(tx.Now), WorkerID: w.ID, Approval: approval})
		if err != nil {
			return fmt.Errorf("ask for the removal of %s: %w", approval, err)
		}
		if n > 0 {
			if err := e.logApproval(tx, w, c.Actor(), api.EventApprovalRemoval, approval); err != nil {
				return err
			}
		}
		all, err := approvalsOf(tx.Context(), tx, w)
		if err != nil {
			return err
		}
		for _, a := range all {
			if a.ID == approval {
				out = a
				return nil
			}
		}
		return db.NotFound("standing approval")
	})
	return out, err
}
