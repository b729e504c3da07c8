package engine

import (
	"fmt"
	"time"
	"unicode/utf8"

	"stint/api"
	"stint/db"
)

const maxStaging = 4 * 3600 // seconds

// heldFor is the lease that a claim on an agent's sessions gets if it names none.
func (e *Engine) heldFor(leaseSeconds int64) time.Duration {
	return min(max(time.Duration(leaseSeconds)*time.Second, e.cfg.MinLease), e.cfg.MaxLease)
}

// workerFits refuses a worker that could keep no claim of the agent: its leases or the offline
// clock leave no room for the time that it takes to end what it runs. contract 10.11
func (e *Engine) workerFits(a *agentRow, in api.WorkerInput) error {
	if in.StagingSeconds == 0 {
		return nil
	}
	var v api.Invalid
	for _, bad := range (api.Clocks{
		Lease: e.heldFor(a.LeaseSeconds), Staging: time.Duration(in.StagingSeconds) * time.Second, Beat: e.cfg.BeatEvery, OfflineAfter: e.cfg.OfflineAfter,
	}).Contradictions() {
		v.Add("stagingSeconds", bad.Detail)
	}
	return v.Err()
}

// leaseFits refuses a new lease that is too short for a worker of the agent.
func (e *Engine) leaseFits(tx *db.Tx, a *agentRow, leaseSeconds int64) error {
	if leaseSeconds == a.LeaseSeconds {
		return nil
	}
	staging, err := tx.LongestStaging(tx.Context(), a.ID)
	if err != nil {
		return fmt.Errorf("read how long the workers of agent %s take to end what runs: %w", a.ID, err)
	}
	var v api.Invalid
	for _, bad := range (api.Clocks{Lease: e.heldFor(leaseSeconds), Staging: time.Duration(staging) * time.Second}).Contradictions() {
		v.Add("leaseSeconds", bad.Detail)
	}
	return v.Err()
}

func checkLimit(v *api.Invalid, most int64) {
	if most < 1 || most > 1000 {
		v.Add("maxConcurrent", "must be 1 to 1000")
	}
}

func checkWorkerText(v *api.Invalid, name, instructions string) {
	if n := utf8.RuneCountInString(name); n < 1 || n > 64 {
		v.Add("name", "must have 1 to 64 characters")
	}
	v.CheckLine("name", name)
	v.CheckWritten("instructions", instructions)
	if n := utf8.RuneCountInString(instructions); n > maxInstructions {
		v.Add("instructions", fmt.Sprintf("has %d characters; at most %d fit", n, maxInstructions))
	}
}
