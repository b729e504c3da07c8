package worker

import (
	"stint/api"
	"stint/worker/agent"
)

// ownAdapters are the programs that this worker can talk to.
func ownAdapters() map[api.AgentType]adapter {
	return map[api.AgentType]adapter{
		api.TypeClaudeCode: {agent.Claude{}, "claude"},
		api.TypeCodex:      {agent.Codex{}, "codex"},
	}
}
