package mcp

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"stint/api"
)

// Caller is who calls a tool, and where.
type Caller struct {
	Client *api.Client // makes the calls, as the caller
	Pages  string      // address of the dashboard, for people; without a slash at its end
	Scopes []Scope     // what the caller was allowed; nil = all that they may do themselves
}

// Options says what a server serves.
type Options struct {
	Version string                                    // of the program
	Log     *slog.Logger                              // nil = none
	Caller  func(ctx context.Context) (Caller, error) // of a request; its error is answered as the tool's
}

// instructions tell a model what this is for.
const instructions = "Stint runs AI agents and commands on people's own machines, on a schedule or on demand. " +
	"An agent is what can be run; a session is one run of it. " +
	"To have work done: list_agents, run_agent, then wait_session until the session is over, then read_output or its result. " +
	"A task is something to be done that people and agents share: next_task says what to do, claim takes it with a lease, " +
	"comment_task notes what you find, and release gives it back. To have an agent do a task, use dispatch_task. " +
	"An error names a code and what to do next."

// listsLast is for how long a client may keep the lists of tools and resources: they change
// with the program's version alone.
const listsLast = time.Hour

// NewServer makes the server of all tools and resources. It keeps nothing of its callers, so it
// serves any number of them.
func NewServer(o Options) (*sdk.Server, error) {
	s := sdk.NewServer(&sdk.Implementation{Name: "stint", Title: "Stint", Version: o.Version}, &sdk.ServerOptions{
		Instructions: instructions,
		Logger:       o.Log,
		Capabilities: &sdk.ServerCapabilities{Tools: &sdk.ToolCapabilities{}, Resources: &sdk.ResourceCapabilities{}},
		SetCacheable: func(_ context.Context, r sdk.Request, c *sdk.Cacheable) {
			c.CacheScope = "private"
			if _, read := r.(*sdk.ReadResourceRequest); !read {
				c.TTLMs = int(listsLast / time.Millisecond)
			}
		},
	})
	d := theDocument()
	for i := range tools {
		t := &tools[i]
		sig, err := newSignature(d, t)
		if err != nil {
			return nil, fmt.Errorf("make the tool %s: %w", t.name, err)
		}
		s.AddTool(&sdk.Tool{
			Name: t.name, Title: t.title, Description: t.description,
			InputSchema: sig.schema, OutputSchema: d.answers(sig.op.answer), Annotations: t.annotations(),
		}, func(ctx context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
			return answer(o.guarded(t.name, func() ([]byte, error) { return o.call(ctx, t, sig, r.Params.Arguments) })), nil
		})
	}
	for i := range resources {
		s.AddResourceTemplate(resources[i].template, o.handler(&resources[i]))
	}
	return s, nil
}

func (t *tool) annotations() *sdk.ToolAnnotations {
	return &sdk.ToolAnnotations{
		Title: t.title, ReadOnlyHint: t.hints.reads, DestructiveHint: &t.hints.destroys,
		IdempotentHint: t.hints.idempotent, OpenWorldHint: &t.hints.open,
	}
}

// call makes the call of a tool and returns the body of the answer.
func (o *Options) call(ctx context.Context, t *tool, sig *signature, raw json.RawMessage) ([]byte, error) {
	args, err := read(raw)
	if err != nil {
		return nil, err
	}
	caller, err := o.Caller(ctx)
	if err != nil {
		return nil, err
	}
	if err := caller.May(t.scopes()...); err != nil {
		return nil, err
	}
	if t.guard != nil {
		if err := t.guard(ctx, caller, args); err != nil {
			return nil, err
		}
	}
	if err := sig.check(args); err != nil {
		return nil, err
	}
	if t.filled != nil {
		more, err := t.filled.arguments(ctx, caller)
		if err != nil {
			return nil, err
		}
		maps.Copy(args, more)
	}
	return caller.Client.Raw(ctx, sig.request(args, caller.Client.Workspace(), t.held))
}

// guarded calls do and makes an error of its panic, which would end the whole process: the
// protocol's library recovers from none.
func (o *Options) guarded(what string, do func() ([]byte, error)) (b []byte, err error) {
	defer func() {
		if cause := recover(); cause != nil {
			err = api.Refuse(api.CodeInternal, "Something went wrong in Stint.")
			if o.Log != nil {
				o.Log.Error("panic in a tool", "tool", what, "cause", fmt.Sprint(cause))
			}
		}
	}()
	return do()
}

// answer is a tool's result: the body of the answer, or of the refusal, as structured content. The
// text, for models and for clients that know nothing else, is the same, or the refusal in words
// and what to do next.
func answer(b []byte, err error) *sdk.CallToolResult {
	if err != nil {
		return &sdk.CallToolResult{
			IsError: true, Content: []sdk.Content{&sdk.TextContent{Text: words(err)}}, StructuredContent: json.RawMessage(asRefusal(err).Document()),
		}
	}
	return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: string(b)}}, StructuredContent: json.RawMessage(b)}
}
