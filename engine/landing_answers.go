package engine

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"stint/account"
	"stint/api"
	"stint/db"
	"stint/queries"
)

// AnswerLanding takes in what a worker says came of a request. The same answer again changes
// nothing. Errors: conflict for a request that was answered otherwise,
// instance_superseded, invalid, not_found.
func (e *Engine) AnswerLanding(ctx context.Context, c Caller, worker api.WorkerID, id api.LandingID, in api.LandReport) (out api.Landing, err error) {
	if c.Run != nil {
		return out, account.UserTokenRequired("")
	}
	if err := checkLandReport(&in); err != nil {
		return out, err
	}
	err = e.writeAs(ctx, c, func(tx *db.Tx) error {
		w, err := workerOf(tx.Context(), tx, c, worker)
		if err != nil {
			return err
		}
		if err := sameInstance(w, in.InstanceID); err != nil {
			return err
		}
		l, err := readLanding(tx.Context(), tx, id)
		if err != nil || l.WorkerID != w.ID {
			return db.NotFound(landingNoun)
		}
		if out = l; l.State == in.State {
			return nil
		}
		if !mayAnswer(l) {
			return &api.Error{Code: api.CodeConflict, Detail: fmt.Sprintf("The request is over: it is %s.", l.State)}
		}
		s, err := tx.Session(tx.Context(), l.SessionID)
		if err != nil {
			return fmt.Errorf("read session %s: %w", l.SessionID, err)
		}
		if err := e.closeLanding(tx, &s, l, w.ID.String(), in.State, in.LandOutcome); err != nil {
			return err
		}
		if err := e.landed(tx, &s, l, in); err != nil {
			return err
		}
		e.wakeWorker(tx, w.ID)
		out, err = readLanding(tx.Context(), tx, id)
		return err
	})
	return out, err
}

// landed is what follows from an answer: how the workspace stands, and whether the changes still
// wait for somebody.
func (e *Engine) landed(tx *db.Tx, s *sessionRow, l api.Landing, in api.LandReport) error {
	row, err := tx.Changes(tx.Context(), s.ID)
	if db.None(err) {
		return nil // removed meanwhile
	}
	if err != nil {
		return fmt.Errorf("read the changes of session %s: %w", s.ID, err)
	}
	p := queries.SetChangesStateParams{State: row.State, TakenAt: row.TakenAt, Waiting: row.Waiting, SessionID: s.ID}
	if in.Now != nil {
		text, err := json.Marshal(in.Now)
		if err != nil {
			return fmt.Errorf("write down changes: %w", err)
		}
		p.State, p.TakenAt = string(text), db.Micros(tx.Now)
	}
	over := in.State == api.LandDone && l.Verb != api.VerbKeep
	if over || in.Code == api.LandGone {
		p.Waiting = 0
	}
	if err := db.One(tx.SetChangesState(tx.Context(), p)); err != nil {
		return fmt.Errorf("note that session %s was landed: %w", s.ID, err)
	}
	if in.State == api.LandDone && l.Verb == api.VerbMerge {
		return e.taskLanded(tx, s, l)
	}
	return nil
}

func checkLandReport(in *api.LandReport) error {
	var v api.Invalid
	if !slices.Contains([]api.LandState{api.LandDone, api.LandRefused, api.LandAsks}, in.State) {
		v.Add("state", "must be done, refused or asks")
	}
	mended(&in.Detail)
	v.CheckText("detail", in.Detail, maxMessage)
	for field, text := range map[string]string{"code": in.Code, "commit": in.Commit, "token": in.Token} {
		v.CheckText(field, text, maxGitWord)
		v.CheckLine(field, text)
	}
	if in.URL != "" {
		checkLink(&v, "url", in.URL)
	}
	in.Paths = in.Paths[:min(len(in.Paths), maxLandPaths)]
	for i := range in.Paths {
		mended(&in.Paths[i])
		v.CheckText("paths", in.Paths[i], maxPath)
		v.CheckPlace("paths", in.Paths[i])
	}
	if in.Code == api.LandRightLost {
		v.Add("code", "is not a worker's to say")
	}
	if in.Now != nil {
		checkChangesState(&v, "now", in.Now)
	}
	return v.Err()
}

// mayAnswer reports whether a worker may still say what came of a request: one that is over
// without its word may have been begun before.
func mayAnswer(l api.Landing) bool {
	return l.State == api.LandPending || l.State == api.LandWithdrawn || l.State == api.LandRefused && l.Code == api.LandRightLost
}

// askedLanding is the oldest request that a worker has not answered, nil when there is none, or
// whoever asked has lost the right to it.
func askedLanding(ctx context.Context, q queries.Querier, w api.WorkerID) (*api.Landing, error) {
	row, err := q.AskedLanding(ctx, w)
	if db.None(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read what worker %s is asked to land: %w", w, err)
	}
	s, err := q.Session(ctx, row.Landing.SessionID)
	if err != nil {
		return nil, fmt.Errorf("read session %s: %w", row.Landing.SessionID, err)
	}
	if may, err := stillMayLand(ctx, q, &row.Landing, &s); err != nil || !may {
		return nil, err
	}
	out, err := toLanding(row.Landing, row.Name)
	return &out, err
}

// stillMayLand reports whether whoever made a request has the right to it now.
func stillMayLand(ctx context.Context, q queries.Querier, l *queries.Landing, s *sessionRow) (bool, error) {
	role, err := account.RoleOf(ctx, q, l.WorkspaceID, l.RequestedBy)
	return err == nil && mayLand(Caller{UserID: l.RequestedBy, Role: role}, s) == nil, err
}

// refuseLandingsOf refuses what a member has asked to be landed and has no right to any more, in
// the transaction that takes it from them.
func (e *Engine) refuseLandingsOf(tx *db.Tx, c Caller, user queries.User) error {
	rows, err := tx.AskedLandingsBy(tx.Context(), queries.AskedLandingsByParams{RequestedBy: user.ID, WorkspaceID: c.WorkspaceID})
	if err != nil {
		return fmt.Errorf("read what user %s asked to be landed: %w", user.ID, err)
	}
	for _, row := range rows {
		s, err := tx.Session(tx.Context(), row.SessionID)
		if err != nil {
			return fmt.Errorf("read session %s: %w", row.SessionID, err)
		}
		may, err := stillMayLand(tx.Context(), tx, &row, &s)
		if err != nil {
			return err
		}
		if may {
			continue
		}
		outcome := api.LandOutcome{Code: api.LandRightLost, Detail: user.Name + " asked for this, and may no longer land these changes."}
		if err := e.refuseLanding(tx, &s, row, c.Actor(), outcome); err != nil {
			return err
		}
		e.wakeWorker(tx, row.WorkerID)
	}
	return nil
}

// refuseLanding closes a request that no worker is to carry out.
func (e *Engine) refuseLanding(tx *db.Tx, s *sessionRow, row queries.Landing, actor string, why api.LandOutcome) error {
	l, err := toLanding(row, "")
	if err != nil {
		return err
	}
	return e.closeLanding(tx, s, l, actor, api.LandRefused, why)
}

// dropLandings refuses what a worker that is deleted was asked to land.
func (e *Engine) dropLandings(tx *db.Tx, w *workerRow, actor string) error {
	rows, err := tx.AskedLandings(tx.Context(), w.ID)
	if err != nil {
		return fmt.Errorf("read what worker %s is asked to land: %w", w.ID, err)
	}
	for _, row := range rows {
		s, err := tx.Session(tx.Context(), row.SessionID)
		if err != nil {
			return fmt.Errorf("read session %s: %w", row.SessionID, err)
		}
		outcome := api.LandOutcome{Code: api.LandGone, Detail: "The worker was forgotten before it answered."}
		if err := e.refuseLanding(tx, &s, row, actor, outcome); err != nil {
			return err
		}
	}
	return nil
}
