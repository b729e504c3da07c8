package engine

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"stint/account"
	"stint/api"
	"stint/db"
	"stint/queries"
)

const (
	maxLandMessage = 64 << 10 // bytes
	maxLandPaths   = 200
	landingNoun    = "request to land"
)

// mayLand refuses a caller who may not have a session's changes landed. A local session's are its
// owner's alone; a cloud one's the admins' (contract 16.3).
func mayLand(c Caller, s *sessionRow) error {
	if s.Mode == api.Cloud {
		return c.May(account.LandAny)
	}
	if s.OwnerUserID != c.UserID {
		return db.NotFound("session")
	}
	return c.May(account.LandOwn)
}

// offerVerbs says what the caller may ask for now, and why not for everything.
func offerVerbs(ctx context.Context, q queries.Querier, c Caller, s *sessionRow, row *queries.Change, out *api.Changes) error {
	out.Allows = api.LandOff
	w, err := q.WorkerEvenDeleted(ctx, row.WorkerID)
	if err != nil {
		return fmt.Errorf("read worker %s: %w", row.WorkerID, err)
	}
	if w.DeletedAt == 0 {
		out.Allows = w.Land
	}
	if err := landable(ctx, q, c, s, row, out, &w); err != nil {
		if api.CodeOf(err) == "" {
			return err
		}
		out.Why = api.Plain(err)
		return nil
	}
	for _, v := range api.LandVerbs {
		if fits(v, out) == "" && out.Allows.Allows(v) {
			out.Verbs = append(out.Verbs, v)
		}
	}
	if len(out.Verbs) == 0 {
		out.Why = fits(api.VerbDiscard, out)
	}
	if out.Why == "" {
		out.Why = afterKeeping(*out)
	}
	if out.Allows != api.LandMerge && len(out.Verbs) > 0 {
		out.Why = strings.TrimSpace(out.Why + fmt.Sprintf(" The owner of its worker lets changes be landed as far as %q, by the setting land.", out.Allows))
	}
	return nil
}

// afterKeeping says what is offered once everything is committed, "" when nothing more is.
func afterKeeping(now api.Changes) string {
	if !now.Dirty {
		return ""
	}
	now.Dirty, now.CommitCount = false, now.CommitCount+1
	var later []string
	for _, v := range api.LandVerbs {
		if v != api.VerbDiscard && now.Allows.Allows(v) && fits(v, &now) == "" {
			later = append(later, landWords[v])
		}
	}
	if len(later) == 0 {
		return ""
	}
	return "Once everything is committed, it is possible to " + api.OrList(later) + "."
}

// landable refuses a request about changes whatever its verb. Errors: forbidden, not_found,
// conflict.
func landable(ctx context.Context, q queries.Querier, c Caller, s *sessionRow, row *queries.Change, now *api.Changes, w *workerRow) error {
	if err := mayLand(c, s); err != nil {
		return err
	}
	refuse := func(detail string) error { return &api.Error{Code: api.CodeConflict, Status: s.Status, Detail: detail} }
	switch {
	case !s.Status.Terminal():
		return refuse("The session hasn't ended: its agent may still change something.")
	case w.DeletedAt != 0:
		return refuse("The worker that has these changes was forgotten: nobody can be asked to land them.")
	case now.Allows == api.LandOff:
		return refuse("The worker's owner doesn't let changes be landed from here: the setting land of this agent is off. They set it by stint worker init --land.")
	case now.Landing != nil && now.Landing.State == api.LandPending:
		return refuse(fmt.Sprintf("A request to %s is waiting for the worker already.", landWords[now.Landing.Verb]))
	}
	last, err := q.LatestChangesOfThread(ctx, queries.LatestChangesOfThreadParams{ThreadID: row.ThreadID, WorkerID: row.WorkerID})
	if err != nil {
		return fmt.Errorf("read the changes of thread %s: %w", row.ThreadID, err)
	}
	if last.SessionID != s.ID {
		return refuse("A later session of this conversation has worked in the same workspace: land the changes there.")
	}
	newest, err := laterOf(ctx, q, s)
	if err != nil {
		return err
	}
	if !newest.Status.Terminal() {
		return refuse("Its conversation goes on in another session: wait until that has ended.")
	}
	return nil
}

// landWords are the verbs in sentences.
var landWords = map[api.LandVerb]string{
	api.VerbKeep: "keep the changes", api.VerbPush: "push the branch", api.VerbPullRequest: "open a pull request",
	api.VerbMerge: "merge the changes", api.VerbDiscard: "discard the changes",
}

// fits says why a verb makes no sense for changes, "" when it does.
func fits(v api.LandVerb, now *api.Changes) string {
	switch {
	case now.Discarded():
		return "The changes were discarded."
	case v == api.VerbMerge && now.Landing != nil && now.Landing.Verb == v && now.Landing.State == api.LandDone:
		return "The changes were merged."
	case now.Place == api.PlaceFolder && v != api.VerbPush && v != api.VerbPullRequest:
		return "The agent works in a folder that is not its own: use a worktree, or do it there by hand."
	case v == api.VerbKeep && !now.Dirty:
		return "Everything is committed already."
	case v == api.VerbMerge && now.BaseBranch == "":
		return "It isn't known which branch they would be merged into."
	case (v == api.VerbPush || v == api.VerbPullRequest) && now.Remote == "":
		return "Its repository has no remote to push to."
	case v != api.VerbKeep && v != api.VerbDiscard && now.Dirty:
		return "Some files are not committed: keep them first (stint land --keep)."
	case v == api.VerbMerge && now.CommitCount == 0:
		return "There is nothing to merge."
	}
	return ""
}

// RequestLanding asks the worker that has a session's changes to do something with them. It is
// pending until the worker answers or somebody withdraws it; a session has one at a time.
// Rights: the session's owner for a local one, an admin for a cloud one; never an API key, a
// run's token or a program that registered itself. Errors: invalid, conflict with the reason,
// forbidden, not_found.
func (e *Engine) RequestLanding(ctx context.Context, c Caller, session api.SessionID, in api.LandInput) (out api.Landing, err error) {
	if err := checkLand(&in); err != nil {
		return out, err
	}
	err = e.writeAs(ctx, c, func(tx *db.Tx) error {
		s, err := visible(tx.Context(), tx, c, session)
		if err != nil {
			return err
		}
		if err := mayLand(c, s); err != nil {
			return err
		}
		row, err := changesRow(tx.Context(), tx, session)
		if err != nil {
			return err
		}
		now, err := changesFrom(tx.Context(), tx, c, s, row)
		if err != nil {
			return err
		}
		if !slices.Contains(now.Verbs, in.Verb) {
			detail := now.Why
			if why := fits(in.Verb, &now); why != "" && (len(now.Verbs) > 0 || detail == "") {
				detail = why
			}
			return &api.Error{Code: api.CodeConflict, Status: s.Status, Detail: detail}
		}
		if in.Message == "" {
			in.Message = title(s)
		}
		id := api.LandingID(tx.NewID())
		err = tx.InsertLanding(tx.Context(), queries.InsertLandingParams{
			ID: id, WorkspaceID: s.WorkspaceID, SessionID: s.ID, WorkerID: row.WorkerID, Verb: in.Verb, Method: in.Method,
			Message: in.Message, Confirm: in.Confirm, RequestedBy: c.UserID, RequestedAt: db.Micros(tx.Now),
		})
		if err != nil {
			return fmt.Errorf("ask to land session %s: %w", s.ID, err)
		}
		e.wakeWorker(tx, row.WorkerID)
		data := api.EventData{"landing": id.String(), "verb": string(in.Verb)}
		if in.Verb == api.VerbDiscard {
			data["confirmed"] = in.Confirm != ""
		}
		if err := e.logSession(tx, s, c.Actor(), api.EventLandingRequested, data); err != nil {
			return err
		}
		out, err = readLanding(tx.Context(), tx, id)
		return err
	})
	return out, err
}

func checkLand(in *api.LandInput) error {
	var v api.Invalid
	if !slices.Contains(api.LandVerbs, in.Verb) {
		v.Add("verb", fmt.Sprintf("%q is nothing that can be done with changes: use %s", in.Verb, api.OrList(api.LandVerbs)))
	}
	if in.Method != api.MergeAuto && (in.Verb != api.VerbMerge || !slices.Contains(api.MergeMethods, in.Method)) {
		v.Add("method", "belongs to merge, and is "+api.OrList(api.MergeMethods))
	}
	if in.Confirm != "" && in.Verb != api.VerbDiscard {
		v.Add("confirm", "belongs to discard")
	}
	v.CheckText("confirm", in.Confirm, 200)
	v.CheckLine("confirm", in.Confirm)
	in.Message = strings.TrimSpace(in.Message)
	v.CheckText("message", in.Message, maxLandMessage)
	v.CheckWritten("message", in.Message)
	return v.Err()
}

func toLanding(l queries.Landing, by string) (api.Landing, error) {
	out := api.Landing{
		ID: l.ID, SessionID: l.SessionID, WorkerID: l.WorkerID, Verb: l.Verb, Method: l.Method, Message: l.Message, Confirm: l.Confirm,
		RequestedBy: l.RequestedBy, RequestedName: by, RequestedAt: api.At(l.RequestedAt), State: l.State, ClosedAt: api.At(l.ClosedAt),
	}
	if err := json.Unmarshal([]byte(l.Outcome), &out.LandOutcome); err != nil {
		return out, fmt.Errorf("read what came of %s: %w", l.ID, err)
	}
	return out, nil
}

func readLanding(ctx context.Context, q queries.Querier, id api.LandingID) (api.Landing, error) {
	row, err := q.Landing(ctx, id)
	if db.None(err) {
		return api.Landing{}, db.NotFound(landingNoun)
	}
	if err != nil {
		return api.Landing{}, fmt.Errorf("read %s: %w", id, err)
	}
	return toLanding(row.Landing, row.Name)
}

// landingOf reads a session's request.
func landingOf(ctx context.Context, q queries.Querier, session api.SessionID, id api.LandingID) (api.Landing, error) {
	out, err := readLanding(ctx, q, id)
	if err == nil && out.SessionID != session {
		err = db.NotFound(landingNoun)
	}
	return out, err
}

// AwaitLanding returns a request as soon as it isn't pending any more, else after wait.
func (e *Engine) AwaitLanding(ctx context.Context, c Caller, session api.SessionID, id api.LandingID, wait time.Duration) (out api.Landing, err error) {
	err = untilFound(ctx, wait, func() (found bool, wake <-chan struct{}, err error) {
		changed := e.Changed() // before the look, so that no event falls in between
		err = e.store.Read(ctx, func(tx *db.ReadTx) error {
			if _, err := visible(ctx, tx, c, session); err != nil {
				return err
			}
			out, err = landingOf(ctx, tx, session, id)
			return err
		})
		return out.State != api.LandPending, changed, err
	})
	return out, err
}

// WithdrawLanding takes back a request that its worker hasn't answered. What the worker has begun
// meanwhile is done all the same, and its answer then counts. Errors: conflict for a request
// that is over, forbidden, not_found.
func (e *Engine) WithdrawLanding(ctx context.Context, c Caller, session api.SessionID, id api.LandingID) (out api.Landing, err error) {
	err = e.writeAs(ctx, c, func(tx *db.Tx) error {
		s, err := visible(tx.Context(), tx, c, session)
		if err != nil {
			return err
		}
		if err := mayLand(c, s); err != nil {
			return err
		}
		l, err := landingOf(tx.Context(), tx, session, id)
		if err != nil {
			return err
		}
		if l.State != api.LandPending {
			return &api.Error{Code: api.CodeConflict, Detail: fmt.Sprintf("The request is over: it is %s.", l.State)}
		}
		if err := e.closeLanding(tx, s, l, c.Actor(), api.LandWithdrawn, api.LandOutcome{}); err != nil {
			return err
		}
		e.wakeWorker(tx, l.WorkerID)
		out, err = readLanding(tx.Context(), tx, id)
		return err
	})
	return out, err
}

var landEvents = map[api.LandState]string{
	api.LandDone: api.EventLandingDone, api.LandRefused: api.EventLandingRefused, api.LandAsks: api.EventLandingRefused, api.LandWithdrawn: api.EventLandingWithdrawn,
}

func (e *Engine) closeLanding(tx *db.Tx, s *sessionRow, l api.Landing, actor string, state api.LandState, outcome api.LandOutcome) error {
	text, err := json.Marshal(outcome)
	if err != nil {
		return fmt.Errorf("write down what came of %s: %w", l.ID, err)
	}
	err = db.One(tx.CloseLanding(tx.Context(), queries.CloseLandingParams{State: state, Outcome: string(text), ClosedAt: db.Micros(tx.Now), ID: l.ID, Was: l.State}))
	if err != nil {
		return fmt.Errorf("close %s: %w", l.ID, err)
	}
	data := api.EventData{"landing": l.ID.String(), "verb": string(l.Verb)}
	if outcome.Code != "" {
		data["code"] = outcome.Code
	}
	return e.logSession(tx, s, actor, landEvents[state], data)
}
