package proc

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"slices"
	"syscall"
	"time"
)

// Record names one process tree of a session, so that a worker can find what an earlier
// process of it left behind. It is journaled twice: as NewRecord made it, before Start, and as
// Process.Record returns it, after. Either is enough for Sweep. contract 10.7
type Record struct {
	Session string `json:"session"`
	// Mark is random and in the environment of each process of this tree, and of no other. It
	// gives no right to anything.
	Mark string `json:"mark"`
	// Brand is a random number that each process of this tree carries as a system limit (see
	// brand), which it can't remove as it can clear its environment. 0 is none.
	Brand uint64 `json:"brand,omitzero"`
	// Boot is the boot of the machine that the ids belong to.
	Boot     string `json:"boot"`
	Guardian ID     `json:"guardian,omitzero"`
	Agent    ID     `json:"agent,omitzero"`
}

// NewRecord makes the record of a tree that is about to start.
func NewRecord(session string) Record {
	return Record{Session: session, Mark: rand.Text(), Brand: newBrand(), Boot: bootID()}
}

// Swept is what a Sweep found.
type Swept struct {
	// Found counts the processes that were alive and were ended, by the guardian of the
	// earlier process or by us.
	Found int
	// Survivors could not be ended.
	Survivors []ID
}

// Sweep ends what an earlier process left running. A guardian that is still working on it is
// given its staging time; what has none is ended in the same stages here. With nothing left it
// returns at once, and never later than twice the staging time.
//
// It is safe to call at any time later, even after a reboot: processes are known by mark, or
// by pid and start time, never by pid alone. When ctx ends the rest is killed without further
// grace.
//
// It must not be called for a tree that this worker has running.
func Sweep(ctx context.Context, rec Record, stages Stages) (Swept, error) {
	if rec.Mark == "" {
		return Swept{}, fmt.Errorf("sweep session %s: the record has no mark", rec.Session)
	}
	boot := bootID()
	if boot == "" && rec.Boot != "" {
		return Swept{}, fmt.Errorf("sweep session %s: the system does not say since when it runs; too many open files, or no /proc", rec.Session)
	}
	switch rec.Boot {
	case boot:
	case "":
		rec.Guardian, rec.Agent = ID{}, ID{} // numbers that may be of another boot; mark and brand are not
	default:
		return Swept{}, nil // they ended with the machine
	}
	stages = stages.orDefault()
	h := newTree(rec)
	if now, err := lookupID(rec.Agent.Pid); err == nil && now == rec.Agent {
		h.group = true // its number belongs to it as long as it exists
	}
	s := sweep{h}
	if err := s.guardian(ctx, rec, stages); err != nil {
		return Swept{}, fmt.Errorf("sweep session %s: %w", rec.Session, err)
	}
	s.stage(ctx, syscall.SIGINT, stages.Interrupt)
	s.stage(ctx, syscall.SIGTERM, stages.Term)
	left, err := h.kill(stages.Kill)
	swept := Swept{Found: len(h.seen), Survivors: left}
	if err != nil {
		return swept, fmt.Errorf("sweep session %s: %w", rec.Session, err)
	}
	if len(left) > 0 {
		return swept, fmt.Errorf("sweep session %s: %d processes would not end", rec.Session, len(left))
	}
	return swept, nil
}

// sweep is one Sweep in progress.
type sweep struct{ *tree }

// guardian waits for the guardian of the earlier process, which has noticed that its worker is
// gone, and ends it if it doesn't finish.
func (s sweep) guardian(ctx context.Context, rec Record, stages Stages) error {
	id, ok, err := findGuardian(rec)
	if err != nil || !ok {
		return err
	}
	s.tree.guardian = id
	_, _ = s.members() // what is there now is known from here on; kill looks again
	s.wait(ctx, stages.Total()+time.Second, func() bool {
		now, err := lookup(id.Pid)
		return errors.Is(err, errNoProcess) || err == nil && (now.ID != id || now.dead)
	})
	sendTo(id, syscall.SIGKILL)
	return nil
}

// stage sends one signal to everything that is left and gives it its grace.
func (s sweep) stage(ctx context.Context, sig syscall.Signal, grace time.Duration) {
	left, _ := s.members() // kill, which comes after all stages, says what can't be seen
	if len(left) == 0 || grace <= 0 || ctx.Err() != nil {
		return
	}
	for _, e := range left {
		sendTo(e.ID, sig)
		sendTo(e.ID, syscall.SIGCONT) // a stopped process can't act on it
	}
	s.wait(ctx, grace, func() bool {
		left, err := s.members()
		return err == nil && len(left) == 0
	})
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

// findGuardian looks the guardian up by its id, or by the mark among its arguments if the
// worker was killed before it could note the id.
func findGuardian(rec Record) (id ID, found bool, err error) {
	if rec.Guardian.Pid != 0 {
		now, err := lookup(rec.Guardian.Pid)
		if err != nil && !errors.Is(err, errNoProcess) {
			return ID{}, false, err
		}
		return rec.Guardian, err == nil && now.ID == rec.Guardian && !now.dead, nil
	}
	table, err := wholeTable()
	if err != nil {
		return ID{}, false, err
	}
	i := slices.IndexFunc(table, func(e entry) bool {
		return !e.dead && e.Pid != os.Getpid() && argument(e.Pid, 0) == guardianName && argument(e.Pid, 2) == rec.Mark
	})
	if i < 0 {
		return ID{}, false, nil
	}
	return table[i].ID, true, nil
}
