package worker

import (
	"database/sql"
	"errors"
	"fmt"

	"github.com/go-json-experiment/json"

	"stint/api"
	"stint/worker/proc"
)

// heldRow is the journal's line of one claim.
type heldRow struct {
	id    int64
	agent api.AgentID
	claim api.Claim
	life  proc.Record
	ended bool
	said  sql.NullString // the agent's last words, if its turn has ended
}

// hold journals a claim and the process that may be started for it.
func (s *state) hold(agent api.AgentID, c api.Claim, life proc.Record) (id int64, err error) {
	claim, err := claimText(c)
	if err != nil {
		return 0, err
	}
	record, err := json.Marshal(life)
	if err != nil {
		return 0, fmt.Errorf("journal the claim: %w", err)
	}
	r, err := s.db.ExecContext(durable(), "INSERT INTO held (claim, agent_id, life, ended) VALUES (?1, ?2, ?3, 0)", claim, agent.String(), string(record))
	if err != nil {
		return 0, fmt.Errorf("journal the claim: %w", err)
	}
	return r.LastInsertId()
}

// claimText leaves out what people wrote: the journal doesn't need it.
func claimText(c api.Claim) (string, error) {
	c.Untrusted, c.Conversation, c.Session.Prompt, c.Session.UntrustedContext = api.Untrusted{}, nil, "", ""
	b, err := json.Marshal(c)
	if err != nil {
		return "", fmt.Errorf("journal the claim: %w", err)
	}
	return string(b), nil
}

// setLife journals which processes run, or are about to.
func (s *state) setLife(id int64, life proc.Record) error {
	b, err := json.Marshal(life)
	if err != nil {
		return fmt.Errorf("journal the start: %w", err)
	}
	return s.exec("journal the start", "UPDATE held SET life = ?2 WHERE id = ?1", id, string(b))
}

// turnBegins journals that another turn is about to begin.
func (s *state) turnBegins(id int64) error {
	return s.exec("journal the turn's begin", "UPDATE held SET said = NULL WHERE id = ?1", id)
}

// setClaim journals the claim that replaced the lapsed one.
func (s *state) setClaim(id int64, c api.Claim) error {
	claim, err := claimText(c)
	if err != nil {
		return err
	}
	return s.exec("journal the new claim", "UPDATE held SET claim = ?2 WHERE id = ?1", id, claim)
}

func (s *state) heldRows() ([]heldRow, error) {
	rows, err := s.db.QueryContext(durable(), "SELECT id, agent_id, claim, life, ended, said FROM held ORDER BY id")
	if err != nil {
		return nil, fmt.Errorf("read the journal: %w", err)
	}
	defer func() { _ = rows.Close() }()
	var out []heldRow
	for rows.Next() {
		var h heldRow
		var claim, life string
		if err := rows.Scan(&h.id, text{&h.agent}, &claim, &life, &h.ended, &h.said); err != nil {
			return nil, fmt.Errorf("read the journal: %w", err)
		}
		if err := errors.Join(json.Unmarshal([]byte(claim), &h.claim), json.Unmarshal([]byte(life), &h.life)); err != nil {
			return nil, fmt.Errorf("read the journal's line %d: %w", h.id, err)
		}
		out = append(out, h)
	}
	return out, rows.Err()
}

// drop removes a claim's line and what is left of its output. A claim that our own report
// didn't close is noted as drained in the same step.
func (s *state) drop(id int64, drained api.ClaimID, worker api.WorkerID) error {
	return s.tx("close the journal's line", func(tx *sql.Tx) error {
		if _, err := tx.ExecContext(durable(), "DELETE FROM outbox WHERE held_id = ?1", id); err != nil {
			return err
		}
		if _, err := tx.ExecContext(durable(), "DELETE FROM held WHERE id = ?1", id); err != nil {
			return err
		}
		if drained.IsZero() {
			return nil
		}
		return insertDrained(tx, drained, worker)
	})
}

func insertDrained(tx *sql.Tx, claim api.ClaimID, worker api.WorkerID) error {
	_, err := tx.ExecContext(durable(), "INSERT INTO drained (claim_id, worker_id) VALUES (?1, ?2) ON CONFLICT (claim_id) DO NOTHING", claim.String(), worker.String())
	return err
}

// addDrained notes that nothing runs under a claim any more.
func (s *state) addDrained(claim api.ClaimID, worker api.WorkerID) error {
	return s.tx("note the drained claim", func(tx *sql.Tx) error { return insertDrained(tx, claim, worker) })
}

func (s *state) drained(worker api.WorkerID) ([]api.ClaimID, error) {
	rows, err := s.db.QueryContext(durable(), "SELECT claim_id FROM drained WHERE worker_id = ?1", worker.String())
	if err != nil {
		return nil, fmt.Errorf("read the drained claims: %w", err)
	}
	defer func() { _ = rows.Close() }()
	var out []api.ClaimID
	for rows.Next() {
		var id api.ClaimID
		if err := rows.Scan(text{&id}); err != nil {
			return nil, fmt.Errorf("read the drained claims: %w", err)
		}
		out = append(out, id)
	}
	return out, rows.Err()
}

// reported forgets drained claims that the coordinator now knows of.
func (s *state) reported(claims []api.ClaimID) error {
	return s.tx("forget the drained claims", func(tx *sql.Tx) error {
		for _, c := range claims {
			if _, err := tx.ExecContext(durable(), "DELETE FROM drained WHERE claim_id = ?1", c.String()); err != nil {
				return err
			}
		}
		return nil
	})
}

// crashed counts that a process of this worker ended while it ran a session.
func (s *state) crashed(id api.SessionID) (times int, err error) {
	err = s.tx("count the crash", func(tx *sql.Tx) error {
		return tx.QueryRowContext(durable(), `INSERT INTO crashes (session_id, times) VALUES (?1, 1)
			ON CONFLICT (session_id) DO UPDATE SET times = times + 1 RETURNING times`, id.String()).Scan(&times)
	})
	return times, err
}

// forgetTroubles forgets what is kept for a session until it is over: crashes, tries and how
// it found its folder.
func (s *state) forgetTroubles(id api.SessionID) error {
	return s.tx("forget the crashes", func(tx *sql.Tx) error {
		if _, err := tx.ExecContext(durable(), "DELETE FROM facts WHERE name IN (?1, ?2, ?3)", triesName(id), foundName(id), startName(id)); err != nil {
			return err
		}
		_, err := tx.ExecContext(durable(), "DELETE FROM crashes WHERE session_id = ?1", id.String())
		return err
	})
}
