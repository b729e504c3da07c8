package engine

import (
	"context"

	"stint/api"
)

// AuditNames are the names of the agents and sessions in the audit's entries. What isn't in it
// is gone, or not visible to the caller.
type AuditNames struct {
	Agents   map[api.AgentID]string // slugs
	Gone     map[api.AgentID]bool   // deleted, so that it has no page
	Sessions map[api.SessionID]api.Session
}

// NamesInAudit reads what a page of the audit mentions and the caller may see.
func (e *Engine) NamesInAudit(ctx context.Context, c Caller, entries []api.AuditEntry) (AuditNames, error) {
	out := AuditNames{Agents: map[api.AgentID]string{}, Gone: map[api.AgentID]bool{}, Sessions: map[api.SessionID]api.Session{}}
	_, err := e.readView(ctx, c, func(r *viewReader) error {
		for _, entry := range entries {
			if id := entry.SessionID; id != 0 && out.Sessions[id].ID == 0 {
				s, err := visible(ctx, r.q, c, id)
				if code := api.CodeOf(err); err != nil && code != api.CodeNotFound && code != api.CodeGone {
					return err
				}
				if err == nil {
					out.Sessions[id] = api.Session{ID: id, Title: s.Title}
					entry.AgentID = s.AgentID
				}
			}
			if entry.AgentID == 0 || out.Agents[entry.AgentID] != "" {
				continue
			}
			a, err := r.agent(ctx, entry.AgentID)
			if err != nil {
				return err
			}
			if a.WorkspaceID == c.WorkspaceID {
				out.Agents[a.ID], out.Gone[a.ID] = a.Slug, a.DeletedAt != 0
			}
		}
		return nil
	})
	return out, err
}
