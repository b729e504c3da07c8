package engine

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"stint/api"
	"stint/db"
	"stint/queries"
)

// FindAgents are the agents in whose slug or name a text stands, at most n: those whose slug
// begins with it first, then by slug. It looks through the first thousand. Rights: viewer.
func (e *Engine) FindAgents(ctx context.Context, c Caller, text string, n int) (out []api.Agent, err error) {
	text = strings.ToLower(strings.TrimSpace(text))
	_, err = e.readView(ctx, c, func(r *viewReader) error {
		rows, err := r.q.ViewAgents(ctx, queries.ViewAgentsParams{WorkspaceID: c.WorkspaceID, N: agentsAtOnce})
		if err != nil {
			return fmt.Errorf("list agents: %w", err)
		}
		rows = slices.DeleteFunc(rows, func(a agentRow) bool {
			return !strings.Contains(a.Slug, text) && !strings.Contains(strings.ToLower(a.Name), text)
		})
		slices.SortStableFunc(rows, func(a, b agentRow) int {
			return cmp.Compare(db.Flag(strings.HasPrefix(b.Slug, text)), db.Flag(strings.HasPrefix(a.Slug, text)))
		})
		out, err = r.shown(ctx, rows[:min(n, len(rows))])
		return err
	})
	return out, err
}
