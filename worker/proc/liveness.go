package proc

import (
	"errors"
	"sync"
	"time"
)

const (
	// livenessEvery is how often the watch checks its guardian.
	livenessEvery = 500 * time.Millisecond
	// pingEvery is how often it asks for a sign of life.
	pingEvery = livenessEvery
	// pingsInARow are sent each time, one after the other's answer. An agent that may trace the
	// guardian can read its orders beside it and miss some: a single ping would often reach
	// the guardian nevertheless.
	pingsInARow = 4
	// A guardian has nothing to do but answer. One that is stopped, or waits for something
	// else, doesn't get the time that a starved machine may need.
	stoppedPatience = time.Second
	idlePatience    = 1500 * time.Millisecond
	starvedPatience = 15 * time.Second
)

// liveness reports whether the guardian still acts. Its silence counts only while this process
// itself runs: one that was stopped, or asleep, has received nothing. Owned by watch, which
// ticks it every livenessEvery.
type liveness struct {
	guardian ID
	awake    *Awake
	asked    bool          // a ping is unanswered
	left     int           // of the pings in a row
	at       time.Duration // when it was asked, or else answered
}

func newLiveness(guardian ID) *liveness {
	return &liveness{guardian: guardian, awake: NewAwake(livenessEvery)}
}

// answered notes an answer, and reports whether to ask again at once.
func (p *liveness) answered() bool {
	p.asked, p.at = false, p.awake.Now()
	return p.left > 0 && p.ask()
}

// due reports whether to ask now, and assumes that this is done.
func (p *liveness) due() bool {
	if p.asked || p.awake.Now()-p.at < pingEvery {
		return false
	}
	p.left = pingsInARow
	return p.ask()
}

func (p *liveness) ask() bool {
	p.asked, p.at = true, p.awake.Now()
	p.left--
	return true
}

// lost ticks, and reports whether to give up on the guardian.
func (p *liveness) lost() bool {
	p.awake.Tick()
	silent := p.awake.Now() - p.at
	if !p.asked {
		return false
	}
	if silent < stoppedPatience {
		return false
	}
	e, err := lookup(p.guardian.Pid)
	switch {
	case errors.Is(err, errNoProcess), e.dead, e.stopped:
		return true
	case e.waits:
		return silent >= idlePatience
	}
	return silent >= starvedPatience
}

// Awake is a clock of the time in which this process ran and could receive anything: it is
// ticked as often as it was made for, and a tick that comes late, because the process was
// stopped or starved or the machine asleep, advances it no further than one that was slightly
// late. contract 10.11
type Awake struct {
	every time.Duration

	mu   sync.Mutex
	last BootTime      // the last tick; guarded by mu
	at   time.Duration // the time then; guarded by mu
}

// NewAwake makes such a clock; it begins at zero.
func NewAwake(every time.Duration) *Awake { return &Awake{every: every, last: BootNow()} }

// Now is the time on the clock.
func (a *Awake) Now() time.Duration {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.at + min(BootNow().Sub(a.last), 2*a.every)
}

// Tick advances the clock.
func (a *Awake) Tick() {
	a.mu.Lock()
	defer a.mu.Unlock()
	now := BootNow()
	a.at += min(now.Sub(a.last), 2*a.every)
	a.last = now
}
