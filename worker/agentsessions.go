package worker

import (
	"database/sql"
	"fmt"

	"github.com/go-json-experiment/json"

	"stint/api"
)

// memory is what this process keeps of an agent session that it began, so that it can be
// resumed here and its usage is counted once: the programs count totals of their own session,
// the coordinator totals of Stint's.
type memory struct {
	Session api.SessionID `json:"session"` // the last session that used it
	Folder  string        `json:"folder"`  // where it was held; programs find it only there
	Base    api.Usage     `json:"base"`    // what it had used before that session
	Total   api.Usage     `json:"total"`   // what it has used so far

	Given []api.MessageID `json:"given,omitzero"` // messages that a running turn was given and may have taken in
}

func memoryName(agentSession string) string { return "agent-session " + agentSession }

// remembered returns what is kept of an agent session. When known is false, another worker
// began it, or nobody did.
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

// forgetAgentSession forgets agent sessions that can't be resumed, and that a session has
// begun one.
func (s *state) forgetAgentSession(session api.SessionID, ids ...string) error {
	return s.tx("forget an agent session", func(tx *sql.Tx) error {
		names := []string{latestName(session)}
		for _, id := range ids {
			names = append(names, memoryName(id))
		}
		for _, name := range names {
			if _, err := tx.ExecContext(durable(), "DELETE FROM facts WHERE name = ?1", name); err != nil {
				return err
			}
		}
		return nil
	})
}

func (s *state) remember(agentSession string, m memory) error {
	b, err := json.Marshal(m)
	if err != nil {
		return fmt.Errorf("keep an agent session: %w", err)
	}
	return s.setFact(memoryName(agentSession), string(b))
}

// taken returns the memory as a session begins to use it in a folder.
func (m memory) taken(by api.SessionID, folder string) memory {
	if m.Session != by {
		m.Session, m.Base = by, m.Total
	}
	m.Folder = folder
	return m
}

// used returns what the session has used of it, given the program's totals. A program that was
// killed may have forgotten some of them.
func (m *memory) used(total api.Usage) api.Usage {
	total = total.Within() // a program that reports nonsense must not cost the session its result
	m.Total = total
	return api.Usage{
		InputTokens: total.InputTokens - m.Base.InputTokens, OutputTokens: total.OutputTokens - m.Base.OutputTokens,
		CostMicros: total.CostMicros - m.Base.CostMicros, Turns: total.Turns,
	}.Within()
}
