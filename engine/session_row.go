package engine

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"stint/api"
	"stint/db"
	"stint/queries"
)

// visible reads a session that the caller may see; else it is 404, never 403.
func visible(ctx context.Context, q queries.Querier, c Caller, id api.SessionID) (*sessionRow, error) {
	s, err := q.Session(ctx, id)
	switch {
	case db.None(err):
		return nil, whyMissing(ctx, q, c, id)
	case err != nil:
		return nil, fmt.Errorf("read session %s: %w", id, err)
	case !sees(c, &s):
		return nil, db.NotFound("session")
	}
	return &s, nil
}

// whyMissing is why a session isn't there: who might see it before retention took it learns when
// that was. Errors: gone, not_found.
func whyMissing(ctx context.Context, q queries.Querier, c Caller, id api.SessionID) error {
	if c.Run != nil {
		return db.NotFound("session")
	}
	went, gone, err := wentOn(ctx, q, c, id)
	if err != nil {
		return err
	}
	if !gone {
		return db.NotFound("session")
	}
	return api.Refuse(api.CodeGone, "This session was removed on "+day(went*db.Span(aDay))+": old ones are, unless they are kept.")
}

// day is the day of an instant, UTC.
func day(at int64) string { return api.At(at).UTC().Format(time.DateOnly) }

// visibleAtWork is visible for what workers write: one that is removed is none to them, as workers
// of earlier versions know it.
func visibleAtWork(ctx context.Context, q queries.Querier, c Caller, id api.SessionID) (*sessionRow, error) {
	s, err := visible(ctx, q, c, id)
	if api.CodeOf(err) == api.CodeGone {
		return nil, db.NotFound("session")
	}
	return s, err
}

func toSession(s *sessionRow, agentSlug string) api.Session {
	out := api.Session{
		ID: s.ID, WorkspaceID: s.WorkspaceID, AgentID: s.AgentID, AgentSlug: agentSlug, ThreadID: s.ThreadID, Mode: s.Mode,
		Status: s.Status, Phase: s.Status.Phase(), TriggeredBy: s.TriggeredBy, TriggeredByUserID: s.TriggeredByUserID,
		TriggeredAt: api.At(s.TriggeredAt), OwnerUserID: s.OwnerUserID, Title: title(s), Prompt: s.Prompt,
		TrustedInstructions: s.Instructions, UntrustedContext: s.UntrustedContext, Priority: s.Priority,
		RunChoice: api.RunChoice{Model: s.Model, Effort: s.Effort, PlanMode: s.PlanMode != 0},
		NotBefore: api.At(s.NotBefore), After: s.AfterID, AfterAny: s.AfterAny != 0, Labels: s.Labels, Fence: s.Fence,
		WorkerID: s.WorkerID, Attempt: s.Attempt, RetryOf: s.RetryOf, Parent: s.ParentID, Depth: s.Depth,
		AgentSessionID: s.AgentSessionID, WorkPath: s.WorkPath, ResumeCommand: s.ResumeCommand, StopRequestedAt: api.At(s.StopRequestedAt), Lapses: s.Lapses, Releases: s.Releases, Tries: s.Tries, Plan: s.Plan,
		ExternalURL: api.BareURL(s.ExternalUrl), Result: s.Result, Outcome: s.Outcome,
		Refused: s.Refused, ToolsFailed: s.ToolsFailed, MarkReason: s.MarkReason,
		Usage:     api.Usage{InputTokens: s.InputTokens, OutputTokens: s.OutputTokens, CostMicros: s.CostMicros, Turns: s.Turns},
		CreatedAt: api.At(s.CreatedAt), QueuedAt: api.At(s.QueuedAt), StartedAt: api.At(s.StartedAt),
		EndedAt: api.At(s.EndedAt), ArchivedAt: api.At(s.ArchivedAt), KeptAt: api.At(s.KeptAt),
		OutputRemovedAt: api.At(s.OutputRemovedAt), EventsRemovedAt: api.At(s.EventsRemovedAt),
	}
	if s.ErrorCode != "" {
		out.Error = &api.Failure{Code: s.ErrorCode, Message: s.ErrorMessage}
	}
	return out
}

// sizeOfSession is about how many bytes the texts of a session have.
func sizeOfSession(s *api.Session) int {
	n := len(s.Prompt) + len(s.UntrustedContext) + len(s.TrustedInstructions) + len(s.Plan) + len(s.Result) + len(s.Outcome) + len(s.MarkReason)
	if s.Error != nil {
		n += len(s.Error.Message)
	}
	if s.Prompted != nil {
		n += len(s.Prompted.Text)
	}
	return n
}

// title is what people see: what was given, else the start of the prompt.
func title(s *sessionRow) string {
	if s.Title != "" {
		return s.Title
	}
	return firstLine(s.Prompt)
}

func firstLine(prompt string) string {
	line := ""
	for part := range strings.Lines(prompt) {
		if line = strings.TrimSpace(api.Line(part)); line != "" {
			break
		}
	}
	if r := []rune(line); len(r) > 80 {
		return string(r[:79]) + "…"
	}
	return line
}

// lane groups sessions that fit the same workers: by their owner and the labels they require.
func lane(s *sessionRow) string {
	return strconv.FormatInt(int64(s.OwnerUserID), 36) + "|" + strings.Join(s.Labels, ",")
}

// needs is what a lane's sessions need of a worker.
type needs struct {
	owner  api.UserID // 0 = none's: cloud sessions and cloud workers have no owner
	labels api.Labels
}

func needsOf(lane string) (n needs) {
	owner, labels, _ := strings.Cut(lane, "|")
	of, err := strconv.ParseInt(owner, 36, 64)
	if n.owner = api.UserID(of); err != nil {
		n.owner = -1 // a damaged row is nobody's
	}
	if labels != "" {
		n.labels = strings.Split(labels, ",")
	}
	return n
}

// metBy reports whether an owner's worker with some labels may take sessions of the lane.
func (n needs) metBy(owner api.UserID, labels api.Labels) bool {
	return n.owner == owner && labels.Has(n.labels)
}

// laneFits reports whether a worker may take sessions of a lane.
func laneFits(lane string, w *workerRow) bool { return needsOf(lane).metBy(w.OwnerUserID, w.Labels) }
