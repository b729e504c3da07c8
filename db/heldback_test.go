package db

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"stint/api"
	"stint/queries"
)

// counted are the agent's running sessions and the types of all events, as another connection
// reads them.
func counted(t *testing.T, s *Store, agent api.AgentID) (running int64, types []string) {
	t.Helper()
	must(t, s.Read(t.Context(), func(tx *ReadTx) error {
		a, err := tx.AgentEvenDeleted(t.Context(), agent)
		if err != nil {
			return err
		}
		running = a.Running
		events, err := tx.EventsForAll(t.Context(), queries.EventsForAllParams{N: 5000})
		for i, ev := range events {
			if ev.Seq != int64(i+1) {
				return fmt.Errorf("event %d has number %d", i+1, ev.Seq)
			}
			types = append(types, ev.Type)
		}
		return err
	}))
	return running, types
}

func wantCounted(t *testing.T, s *Store, agent api.AgentID, running int64, types ...string) {
	t.Helper()
	if n, got := counted(t, s, agent); n != running || !slices.Equal(got, types) {
		t.Errorf("%d running and the events %v, want %d and %v", n, got, running, types)
	}
}

// runs takes a slot of the agent and logs that.
func runs(agent api.AgentID, kind string) func(tx *Tx) error {
	return func(tx *Tx) error {
		return errors.Join(tx.TakeAgentSlot(agent, 0), tx.Log(Event{Agent: agent, Actor: "system", Type: kind}))
	}
}

func TestHeldBack_IsWrittenOnceForABatch(t *testing.T) {
	s := open(t)
	agent := cachedAgent(t, s)
	must(t, errors.Join(together(t, s, runs(agent, "a"), runs(agent, "b"), runs(agent, "c"))...))
	wantCounted(t, s, agent, 3, "a", "b", "c")
}

func TestHeldBack_AStatementSeesWhatCameBeforeIt(t *testing.T) {
	s := open(t)
	agent := cachedAgent(t, s)
	var rows int64
	var running int64
	look := func(tx *Tx) error {
		a, err := tx.Queries.AgentEvenDeleted(t.Context(), agent) // not the cached row
		if err != nil {
			return err
		}
		running = a.Running
		events, err := tx.Queries.EventsForAll(t.Context(), queries.EventsForAllParams{N: 10})
		rows = int64(len(events))
		return err
	}
	must(t, errors.Join(together(t, s, runs(agent, "a"), runs(agent, "b"), look)...))
	if running != 2 || rows != 2 {
		t.Errorf("a later closure saw %d running and %d events", running, rows)
	}
	must(t, s.Write(t.Context(), func(tx *Tx) error {
		if err := runs(agent, "c")(tx); err != nil {
			return err
		}
		return tx.w.conn.QueryRowContext(t.Context(), `SELECT running, (SELECT COUNT(*) FROM events) FROM agents`).Scan(&running, &rows)
	}))
	if running != 3 || rows != 3 {
		t.Errorf("a statement of its own closure saw %d running and %d events", running, rows)
	}
}

func TestHeldBack_IsUndoneWithItsClosureAlone(t *testing.T) {
	s := open(t)
	agent := cachedAgent(t, s)
	wrong := errors.New("wrong")
	fails := func(tx *Tx) error { return errors.Join(runs(agent, "lost")(tx), wrong) }
	errs := together(t, s, runs(agent, "a"), fails, runs(agent, "b"), func(*Tx) error { return wrong })
	if errs[0] != nil || !errors.Is(errs[1], wrong) || errs[2] != nil || !errors.Is(errs[3], wrong) {
		t.Fatal(errs)
	}
	wantCounted(t, s, agent, 2, "a", "b")
	if err := s.Write(t.Context(), fails); !errors.Is(err, wrong) {
		t.Fatal(err)
	}
	must(t, s.Write(t.Context(), runs(agent, "c")))
	wantCounted(t, s, agent, 3, "a", "b", "c")
}

func TestHeldBack_LimitsHoldWithinABatch(t *testing.T) {
	s := open(t)
	agent := cachedAgent(t, s) // at most 9
	all := make([]func(*Tx) error, 12)
	for i := range all {
		all[i] = runs(agent, "run")
	}
	refused := 0
	for _, err := range together(t, s, all...) {
		if errors.Is(err, errGuard) {
			refused++
		} else if err != nil {
			t.Error(err)
		}
	}
	if refused != 3 {
		t.Errorf("%d of 12 were refused, want 3", refused)
	}
	wantCounted(t, s, agent, 9, slices.Repeat([]string{"run"}, 9)...)
	must(t, s.Write(t.Context(), func(tx *Tx) error {
		var errs []error
		for range 9 {
			errs = append(errs, tx.FreeAgentSlot(agent))
		}
		if err := tx.FreeAgentSlot(agent); !errors.Is(err, errGuard) {
			errs = append(errs, fmt.Errorf("a slot that nobody has was freed: %w", err))
		}
		return errors.Join(errs...)
	}))
	wantCounted(t, s, agent, 0, slices.Repeat([]string{"run"}, 9)...)
}

// refusing makes the table refuse some events, which shows only when they are written.
func refusing(o *Options) {
	o.Migrations = nil
	all, err := overlay(map[string]string{"9000_notes.sql": notes, "9001_refuse.sql": `-- +goose Up
-- +goose StatementBegin
CREATE TRIGGER refuse BEFORE INSERT ON events WHEN NEW.type = 'refused' BEGIN SELECT RAISE(ABORT, 'refused here'); END;
-- +goose StatementEnd
`})
	if err != nil {
		panic(err)
	}
	o.Migrations = all
}

func TestHeldBack_WhatTheTableRefusesFailsItsOwnerAlone(t *testing.T) {
	s := open(t, refusing)
	agent := cachedAgent(t, s)
	swallows := func(tx *Tx) error {
		err := runs(agent, "refused")(tx)
		_, _ = tx.Queries.AgentEvenDeleted(t.Context(), agent) // writes what is held back, and its failure is ignored
		return err
	}
	errs := together(t, s, runs(agent, "a"), runs(agent, "refused"), runs(agent, "b"), swallows, runs(agent, "c"))
	for i, err := range errs {
		if bad := i%2 == 1; bad != (err != nil && strings.Contains(err.Error(), "refused here")) {
			t.Errorf("closure %d: %v", i, err)
		}
	}
	wantCounted(t, s, agent, 3, "a", "b", "c")
	if err := s.Write(t.Context(), runs(agent, "refused")); err == nil {
		t.Error("alone it is not refused")
	}
	if err := s.Write(t.Context(), swallows); err == nil {
		t.Error("alone, looking at it, it is not refused")
	}
	must(t, s.Write(t.Context(), runs(agent, "d")))
	wantCounted(t, s, agent, 4, "a", "b", "c", "d")
}

// A closure that only reads and refuses costs the others nothing, though it is the one that had
// to write what they held back.
func TestHeldBack_AReaderIsNotTakenForAWriter(t *testing.T) {
	s := open(t)
	agent := cachedAgent(t, s)
	wrong := errors.New("wrong")
	ran := 0
	errs := together(t, s,
		func(tx *Tx) error { ran++; return runs(agent, "a")(tx) },
		func(tx *Tx) error {
			_, err := tx.Queries.AgentEvenDeleted(t.Context(), agent)
			return errors.Join(err, wrong)
		})
	if errs[0] != nil || !errors.Is(errs[1], wrong) || ran != 1 {
		t.Errorf("%v; the other ran %d times", errs, ran)
	}
	wantCounted(t, s, agent, 1, "a")
}

func TestHeldBack_ManyEventsInOneClosure(t *testing.T) {
	s := open(t)
	agent := cachedAgent(t, s)
	var want []string
	must(t, s.Write(t.Context(), func(tx *Tx) error {
		for i := range 2*maxHeld + 43 {
			want = append(want, fmt.Sprint("t", i))
			if err := tx.Log(Event{Agent: agent, Actor: "system", Type: want[i], Data: api.EventData{"n": i}}); err != nil {
				return err
			}
		}
		return nil
	}))
	wantCounted(t, s, agent, 0, want...)
}

func TestHeldBack_WhichStatementsLookAtIt(t *testing.T) {
	s := open(t)
	must(t, s.Write(t.Context(), func(tx *Tx) error {
		g := tx.w.guard
		for query, want := range map[string]bool{
			`SELECT running FROM agents`:                                  true,
			`SELECT * FROM agents WHERE id = 1`:                           true,
			`SELECT slug FROM agents WHERE last_triggered_at > 5`:         true,
			`SELECT slug FROM agents WHERE id = 1`:                        false,
			`UPDATE agents SET paused = 1 WHERE id = 1`:                   false,
			`UPDATE agents SET paused = 1 WHERE id = 1 RETURNING running`: true,
			`UPDATE agents SET running = 0`:                               true,
			`DELETE FROM agents`:                                          true,
			`SELECT seq FROM events WHERE seq > 7`:                        true,
			`SELECT COUNT(*) FROM events`:                                 true,
			`INSERT INTO events SELECT * FROM events`:                     true,
			`SELECT 1 FROM notes WHERE EXISTS (SELECT 1 FROM events)`:     true,
			`INSERT INTO notes (id, text) VALUES (1, 'x')`:                false,
			`SELECT COUNT(*) FROM sessions`:                               false,
		} {
			prepared := g.preparing(query)
			stmt, err := g.sqliteConn.PrepareContext(context.Background(), query)
			if err != nil {
				return err
			}
			if got := prepared(); got.Flush != want {
				t.Errorf("%s: %v", query, got.Flush)
			}
			must(t, stmt.Close())
		}
		return nil
	}))
}
