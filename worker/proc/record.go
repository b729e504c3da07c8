package proc

import (
	"context"
	"crypto/rand"
	"fmt"
	"os"
	"slices"
	"syscall"
	"time"
)

// Record names one life of a session's processes, so that a worker can find what an
// earlier life of itself left behind. It is journaled twice: as NewRecord made it,
// before Start, and as Process.Record shows it, after. Either is enough for Sweep.
// contract 10.7
type Record struct {
	Session string `json:"session"`
	// Mark is random and in the environment of each process of this life, and of no
	// other. It gives no right to anything.
	Mark string `json:"mark"`
	// Boot is the boot of the machine that the ids belong to.
	Boot     string `json:"boot"`
	Guardian ID     `json:"guardian,omitzero"`
	Agent    ID     `json:"agent,omitzero"`
}

// NewRecord makes the record of a life that is about to start.
func NewRecord(session string) Record {
	return Record{Session: session, Mark: rand.Text(), Boot: bootID()}
}

// Swept is what a Sweep found.
type Swept struct {
	// Found counts the processes that were alive and were ended, by the guardian of
	// the earlier life or by us.
	Found int
	// Survivors could not be ended.
	Survivors []ID
}

// Sweep ends what is left of an earlier life. A guardian that is still at work on it
// is given its staging time; what has none is ended in the same stages here. With
// nothing left it returns at once, and never later than twice the staging time.
//
// It is safe to call at any time later, also after a reboot: processes are known by
// mark, or by pid and start time, never by pid alone. When ctx ends the rest is killed
// without further grace.
//
// It must not be called for a life that this worker has running.
func Sweep(ctx context.Context, rec Record, stages Stages) (Swept, error) {
	if rec.Mark == "" {
		return Swept{}, fmt.Errorf("sweep session %s: the record has no mark", rec.Session)
	}
	if rec.Boot == "" || rec.Boot != bootID() {
		return Swept{}, nil // they ended with the machine
	}
	stages = stages.orDefault()
	h := newHunt(rec.Mark, rec.Agent)
	if now, err := lookupID(rec.Agent.Pid); err == nil && now == rec.Agent {
		h.group = true // its number is its own as long as it lives
	}
	s := sweep{h}
	s.guardian(ctx, rec, stages)
	s.stage(ctx, syscall.SIGINT, stages.Interrupt)
	s.stage(ctx, syscall.SIGTERM, stages.Term)
	left := h.kill(stages.Kill)
	swept := Swept{Found: len(h.seen), Survivors: left}
	if len(left) > 0 {
		return swept, fmt.Errorf("sweep session %s: %d processes would not end", rec.Session, len(left))
	}
	return swept, nil
}

// sweep is one Sweep under way.
type sweep struct{ *hunt }

// guardian waits for the guardian of the earlier life, which has seen its worker go,
// and ends it if it doesn't come to an end.
func (s sweep) guardian(ctx context.Context, rec Record, stages Stages) {
	id, ok := findGuardian(rec)
	if !ok {
		return
	}
	s.members()
	s.wait(ctx, stages.Total()+time.Second, func() bool {
		now, err := lookup(id.Pid)
		return err != nil || now.ID != id || now.dead
	})
	sendTo(id, syscall.SIGKILL)
}

// stage sends one signal to all that is left and gives it its grace.
func (s sweep) stage(ctx context.Context, sig syscall.Signal, grace time.Duration) {
	left := s.members()
	if len(left) == 0 || grace <= 0 || ctx.Err() != nil {
		return
	}
	for _, e := range left {
		sendTo(e.ID, sig)
		sendTo(e.ID, syscall.SIGCONT) // a stopped process can't act on it
	}
	s.wait(ctx, grace, func() bool { return len(s.members()) == 0 })
}

// wait looks until it is over, for at most limit of boot time.
func (s sweep) wait(ctx context.Context, limit time.Duration, over func() bool) {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for end := BootNow().Add(limit); BootNow() < end && !over(); {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// findGuardian looks the guardian up by its id, or by the mark among its arguments if
// the worker died before it could note the id.
func findGuardian(rec Record) (ID, bool) {
	if rec.Guardian.Pid != 0 {
		now, err := lookup(rec.Guardian.Pid)
		return rec.Guardian, err == nil && now.ID == rec.Guardian && !now.dead
	}
	table, err := processTable()
	if err != nil {
		return ID{}, false
	}
	i := slices.IndexFunc(table, func(e entry) bool {
		return !e.dead && e.Pid != os.Getpid() && argument(e.Pid, 0) == guardianName && argument(e.Pid, 2) == rec.Mark
	})
	if i < 0 {
		return ID{}, false
	}
	return table[i].ID, true
}
