package main

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-json-experiment/json"

	"stint/api"
	"stint/db"
)

// finishAll is a single healthy worker: what the killed ones left behind comes to it by
// itself, in the time that leases and drains take.
func (s *crashFixture) finishAll(c *api.Client) {
	s.Helper()
	h := &healthy{crashFixture: s, c: c, workers: map[api.AgentID]api.WorkerID{}}
	for _, slug := range s.board.agents {
		_, err := c.ResumeAgent(s.Context(), slug)
		s.must(err)
		_, err = c.EditAgent(s.Context(), slug, map[string]any{"maxConcurrent": 1000})
		s.must(err)
		r, err := c.RegisterWorker(s.Context(), slug, api.WorkerInput{Name: "healthy", InstanceID: h.instance(), ProcessID: "healthy", MaxConcurrent: 1000})
		s.must(err)
		h.workers[r.Worker.AgentID] = r.Worker.ID
		h.ids = append(h.ids, r.Worker.ID)
	}
	ctx, stop := context.WithCancel(s.Context())
	var beats, slots sync.WaitGroup
	beats.Go(func() { h.beat(ctx) })
	end := time.Now().Add(patience)
	for slot := range 4 {
		slots.Go(func() { h.work(slot, end) })
	}
	slots.Wait()
	stop()
	beats.Wait()
	s.Logf("a healthy worker finished %d sessions", h.finished.Load())
}

// healthy is a worker that does everything that a worker has to.
type healthy struct {
	*crashFixture
	c        *api.Client
	workers  map[api.AgentID]api.WorkerID
	ids      []api.WorkerID
	finished atomic.Int64
}

func (h *healthy) instance() string { return "healthy-1" }

func (h *healthy) beat(ctx context.Context) {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		for agent, id := range h.workers {
			if _, err := h.c.Beat(ctx, agent, id, api.Beat{InstanceID: h.instance()}); err != nil && ctx.Err() == nil {
				h.Errorf("a healthy worker's beat: %v", err)
			}
		}
	}
}

// work finishes sessions until none is left that hasn't ended.
func (h *healthy) work(slot int, end time.Time) {
	for n := 0; ; n++ {
		if h.one(fmt.Sprintf("last-%d-%d", slot, n)) {
			continue
		}
		open, err := h.c.Sessions(h.Context(), api.SessionFilter{
			Statuses: []api.Status{api.Pending, api.Queued, api.Active, api.AwaitingInput, api.Stale}, Archived: true,
		}, api.Page{Limit: 200})
		if err != nil {
			h.Errorf("list what is open: %v", err)
			return
		}
		if len(open.Items) == 0 {
			return
		}
		for _, s := range open.Items {
			if time.Now().After(end) {
				h.Errorf("session %s is stuck: it is %s and waits for %+v", s.ID, s.Status, s.WaitingFor)
			} else if s.Prompted != nil && !s.Status.Running() {
				// Another slot may have been quicker.
				_, err := h.c.AnswerPrompt(h.Context(), s.ID, api.AnswerInput{PromptID: s.Prompted.ID, Answer: api.Answer{Text: "go on"}})
				if err != nil && api.CodeOf(err) != api.CodePromptClosed {
					h.Errorf("answer session %s: %v", s.ID, err)
				}
			}
		}
		if h.Failed() {
			return
		}
	}
}

// one claims and completes a session; false when none came in a second.
func (h *healthy) one(request string) bool {
	six := int64(6)
	claim, err := h.c.ClaimNext(h.Context(), api.ClaimNextRequest{
		WorkerIDs: h.ids, InstanceID: h.instance(), WaitSeconds: 1, RequestID: request, LeaseSeconds: &six,
	})
	if err != nil || claim == nil {
		if err != nil {
			h.Errorf("claim: %v", err)
		}
		return false
	}
	at := api.Held{Agent: claim.Session.AgentID, Worker: claim.WorkerID, Session: claim.SessionID}
	proof := api.UnderClaim{ClaimID: claim.ClaimID, InstanceID: h.instance()}
	if _, err := h.c.Complete(h.Context(), at, api.CompleteRequest{UnderClaim: proof, Result: "at last"}); err != nil {
		h.Errorf("complete session %s: %v", claim.SessionID, err)
		return false
	}
	h.finished.Add(1)
	return true
}

// claimsStay looks in the closed file for each claim that anybody was granted.
func (s *crashFixture) claimsStay() {
	s.Helper()
	ctx := context.Background()
	store, err := db.Open(ctx, db.Options{Path: s.data().database()})
	s.must(err)
	defer func() { s.must(store.Close()) }()
	s.must(store.Read(ctx, func(tx *db.ReadTx) error {
		rows, err := tx.Query(ctx, "SELECT id, session_id, worker_id, fence, secret FROM claims")
		if err != nil {
			return err
		}
		defer rows.Close()
		stored := map[api.ClaimKey]api.Claim{}
		for rows.Next() {
			var c api.Claim
			var secret []byte
			if err := rows.Scan(&c.ClaimID.Key, &c.SessionID, &c.WorkerID, &c.Fence, &secret); err != nil {
				return err
			}
			copy(c.ClaimID.Secret[:], secret)
			stored[c.ClaimID.Key] = c
		}
		for key, was := range s.j.claims {
			is := stored[key]
			if is.ClaimID != was.ClaimID || is.SessionID != was.SessionID || is.WorkerID != was.WorkerID || is.Fence != was.Fence {
				s.Errorf("claim %s on session %s with fence %d is not in the file", key, was.SessionID, was.Fence)
			}
		}
		return rows.Err()
	}))
	s.must(store.Read(ctx, func(tx *db.ReadTx) error {
		for v, was := range s.j.versions {
			rows, err := tx.Query(ctx, "SELECT snapshot FROM agent_versions WHERE agent_id = ?1 AND version = ?2", v.id, v.version)
			if err != nil {
				return err
			}
			var snapshot string
			for rows.Next() {
				err = rows.Scan(&snapshot)
			}
			if err := rows.Close(); err != nil {
				return err
			}
			var in api.AgentInput
			if err != nil || json.Unmarshal([]byte(snapshot), &in) != nil {
				s.Errorf("version %d of agent %s is not in the file: %v", v.version, v.id, err)
				continue
			}
			if b, _ := json.Marshal(in, json.Deterministic(true)); string(b) != was {
				s.Errorf("version %d of agent %s was %s and is %s", v.version, v.id, was, b)
			}
		}
		return nil
	}))
}
