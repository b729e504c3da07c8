package mcp

import (
	"context"

	jsonv2 "github.com/go-json-experiment/json"

	"stint/api"
)

// filled are arguments that a tool finds out itself: programs can't give them.
type filled struct {
	names []string
	find  func(ctx context.Context, c Caller) (map[string]string, error)
}

// arguments are those with their values, as if the caller had given them.
func (f *filled) arguments(ctx context.Context, c Caller) (arguments, error) {
	values, err := f.find(ctx, c)
	if err != nil {
		return nil, err
	}
	out := arguments{}
	for name, value := range values {
		if out[name], err = jsonv2.Marshal(value); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// ownProgress says where the agent of a run notes its progress: it is told neither its own
// agent's id nor its worker's, and proves its claim by its token.
var ownProgress = &filled{
	names: []string{"agent", "worker", "session", "type"},
	find: func(ctx context.Context, c Caller) (map[string]string, error) {
		who, err := c.Client.Whoami(ctx)
		if err != nil {
			return nil, err
		}
		if who.SessionID == 0 {
			return nil, &Failure{
				Code: string(api.CodeForbidden), Detail: "Only an agent that Stint runs reports its progress here, with its run's own token.",
				Next: "Say it where it belongs: comment_task for a task, say for a session.",
			}
		}
		s, err := c.Client.Session(ctx, who.SessionID)
		return map[string]string{
			"agent": s.AgentID.String(), "worker": s.WorkerID.String(), "session": s.ID.String(), "type": string(api.ActivityProgress),
		}, err
	},
}
