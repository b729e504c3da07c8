package worker

import (
	"stint/api"
	"stint/worker/agent"
)

// ownAdapters are the programs that this worker can talk to.
func ownAdapters() map[api.AgentType]adapter {
	all := map[api.AgentType]adapter{}
	for _, p := range api.AgentTypes {
		if a, converses := agent.For(p.Type); converses {
			all[p.Type] = adapter{a, p.Program}
		}
	}
	return all
}
