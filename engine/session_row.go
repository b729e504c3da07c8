package engine

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"stint/api"
	"stint/db"
	"stint/queries"
)

// visible reads a session that the caller may see; else it is 404, never 403.
func visible(ctx context.Context, q queries.Querier, c Caller, id api.SessionID) (*sessionRow, error) {
	s, err := q.Session(ctx, id)
	if db.None(err) || (err == nil && !sees(c, &s)) {
		return nil, db.NotFound("session")
	}
	if err != nil {
		return nil, fmt.Errorf("read session %s: %w", id, err)
	}
	return &s, nil
}

func toSession(s *sessionRow, agentSlug string) api.Session {
	out := api.Session{
		ID: s.ID, WorkspaceID: s.WorkspaceID, AgentID: s.AgentID, AgentSlug: agentSlug, ThreadID: s.ThreadID, Mode: s.Mode,
		Status: s.Status, Phase: s.Status.Phase(), TriggeredBy: s.TriggeredBy, TriggeredByUserID: s.TriggeredByUserID,
		TriggeredAt: api.At(s.TriggeredAt), OwnerUserID: s.OwnerUserID, Title: title(s), Prompt: s.Prompt,
		TrustedInstructions: s.Instructions, UntrustedContext: s.UntrustedContext, Priority: s.Priority,
		NotBefore: api.At(s.NotBefore), After: s.AfterID, AfterAny: s.AfterAny != 0, Labels: s.Labels, Fence: s.Fence,
		WorkerID: s.WorkerID, Attempt: s.Attempt, RetryOf: s.RetryOf, Parent: s.ParentID, Depth: s.Depth,
		AgentSessionID: s.AgentSessionID, WorkPath: s.WorkPath, ResumeCommand: s.ResumeCommand, StopRequestedAt: api.At(s.StopRequestedAt), Lapses: s.Lapses, Releases: s.Releases, Tries: s.Tries, Plan: s.Plan,
		ExternalURL: api.BareURL(s.ExternalUrl), Result: s.Result, Outcome: s.Outcome,
		Usage:     api.Usage{InputTokens: s.InputTokens, OutputTokens: s.OutputTokens, CostMicros: s.CostMicros, Turns: s.Turns},
		CreatedAt: api.At(s.CreatedAt), QueuedAt: api.At(s.QueuedAt), StartedAt: api.At(s.StartedAt),
		EndedAt: api.At(s.EndedAt), ArchivedAt: api.At(s.ArchivedAt),
	}
	if s.ErrorCode != "" {
		out.Error = &api.Failure{Code: s.ErrorCode, Message: s.ErrorMessage}
	}
	return out
}

// sizeOfSession is about how many bytes the texts of a session have.
func sizeOfSession(s *api.Session) int {
	n := len(s.Prompt) + len(s.UntrustedContext) + len(s.TrustedInstructions) + len(s.Plan) + len(s.Result) + len(s.Outcome)
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

// laneFits reports whether a worker may take sessions of a lane.
func laneFits(lane string, w *workerRow) bool {
	owner, labels, _ := strings.Cut(lane, "|")
	if owner != strconv.FormatInt(int64(w.OwnerUserID), 36) {
		return false // cloud sessions and cloud workers have no owner
	}
	if labels == "" {
		return true
	}
	return w.Labels.Has(strings.Split(labels, ","))
}
