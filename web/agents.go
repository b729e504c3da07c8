package web

import (
	"context"
	"net/http"
	"time"

	"stint/engine"
)

// agentsPage is what agents.templ draws.
type agentsPage struct {
	engine.AgentListView
	by    engine.Caller
	zone  *time.Location
	after string
}

func (v *visit) agents() error {
	after := v.r.URL.Query().Get("after")
	view, err := v.web.engine.AgentList(v.r.Context(), v.caller, after)
	if err != nil {
		return err
	}
	p := agentsPage{view, v.caller, v.prefs.zone, after}
	return v.page(http.StatusOK, Shell{Title: "Agents", Place: "agents", Now: view.At, Stream: streamURL("agents", view.View, "after", after)}, agents(p))
}

func (v *visit) watchAgents(after string) watcher {
	return func(ctx context.Context, c engine.Caller) ([]part, position, error) {
		view, err := v.web.engine.AgentList(ctx, c, after)
		if err != nil {
			return nil, position{}, err
		}
		return []part{{target: "agent-list", draw: agentList(agentsPage{view, c, v.prefs.zone, after})}}, position{seq: view.Seq}, nil
	}
}
