package mcp

import (
	"slices"

	jsonv2 "github.com/go-json-experiment/json"

	"stint/api"
)

// Scope is what a program was allowed to do with the tools.
type Scope string

// The scopes. Each allows the tools that name it, and nothing else.
const (
	ScopeRead  Scope = "read"
	ScopeRun   Scope = "run"
	ScopeTasks Scope = "tasks"
)

// Scopes are all scopes.
var Scopes = []Scope{ScopeRead, ScopeRun, ScopeTasks}

const readScope = ScopeRead // that resources take

// Needs are the scopes that a message of the protocol takes, none if it is no call of a tool and
// reads no resource. It reads one message; what it can't read needs nothing here, and is refused
// by the tool itself.
func Needs(message []byte) []Scope {
	var m struct {
		Method string `json:"method"`
		Params struct {
			Name string `json:"name"`
		} `json:"params"`
	}
	if jsonv2.Unmarshal(message, &m) != nil {
		return nil
	}
	switch m.Method {
	case "resources/read":
		return []Scope{readScope}
	case "tools/call":
		if i := slices.IndexFunc(tools, func(t tool) bool { return t.name == m.Params.Name }); i >= 0 {
			return tools[i].scopes()
		}
	}
	return nil
}

// scopes are all that a call of the tool takes.
func (t *tool) scopes() []Scope {
	if t.also == "" {
		return []Scope{t.scope}
	}
	return []Scope{t.scope, t.also}
}

// May refuses what the caller wasn't allowed. Error: forbidden.
func (c *Caller) May(scopes ...Scope) error {
	for _, scope := range scopes {
		if c.Scopes != nil && !slices.Contains(c.Scopes, scope) {
			return api.Refuse(api.CodeForbidden, "This program was not given the scope “"+string(scope)+"”.")
		}
	}
	return nil
}
