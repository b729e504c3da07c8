package worker

import (
	"fmt"

	"github.com/go-json-experiment/json"

	"stint/api"
)

// memory is what this process keeps of an agent session that it began, so that it
// can be resumed here, and so that its use is counted once: the programs count
// totals of their session, the coordinator those of its own.
type memory struct {
	Session api.SessionID `json:"session"` // the last that used it
	Base    api.Usage     `json:"base"`    // what it had used before that session
	Total   api.Usage     `json:"total"`   // what it has used so far
}

func memoryName(agentSession string) string { return "agent-session " + agentSession }

// remembered is what is kept of an agent session; not known says that it was
// begun by another worker, or never.
func (s *state) remembered(agentSession string) (m memory, known bool, err error) {
	if agentSession == "" {
		return m, false, nil
	}
	text, err := s.fact(memoryName(agentSession))
	if err != nil || text == "" {
		return m, false, err
	}
	if err := json.Unmarshal([]byte(text), &m); err != nil {
		return m, false, fmt.Errorf("read what is kept of an agent session: %w", err)
	}
	return m, true, nil
}

func (s *state) remember(agentSession string, m memory) error {
	b, err := json.Marshal(m)
	if err != nil {
		return fmt.Errorf("keep an agent session: %w", err)
	}
	return s.setFact(memoryName(agentSession), string(b))
}

// taken is the memory as a session begins to use it.
func (m memory) taken(by api.SessionID) memory {
	if m.Session != by {
		m.Session, m.Base = by, m.Total
	}
	return m
}

// used is what the session has used of it, given the program's totals. A program
// that was killed may have forgotten some of them.
func (m *memory) used(total api.Usage) api.Usage {
	total = total.Within() // a program that counts nonsense must not cost the session its end
	m.Total = total
	return api.Usage{
		InputTokens: total.InputTokens - m.Base.InputTokens, OutputTokens: total.OutputTokens - m.Base.OutputTokens,
		CostMicros: total.CostMicros - m.Base.CostMicros, Turns: total.Turns,
	}.Within()
}
