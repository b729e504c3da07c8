package worker

import (
	"sync"
	"time"
)

// toolLimit is how long one tool call may go on without a sign of progress, when the agent's
// own limit for silence is shorter: a build may be quiet for a long time. contract 10.6
const toolLimit = 30 * time.Minute

// turnClock measures an agent that converses: how long its turn has taken and how long it has
// been silent while this worker was awake. Time in which it waits for people, or for us,
// doesn't count.
type turnClock struct {
	mu      sync.Mutex
	now     func() time.Time
	awake   func() time.Duration // advances while this worker runs and can read the agent
	turn    time.Time            // start of the turn, moved on by what doesn't count; guarded by mu
	alive   time.Duration        // last sign of life, by awake; guarded by mu
	waiting int                  // guarded by mu
	since   time.Time            // when the waiting began; guarded by mu
	tools   map[string]bool      // calls without a result yet; guarded by mu
}

func newTurnClock(now func() time.Time, awake func() time.Duration) *turnClock {
	return &turnClock{now: now, awake: awake, turn: now(), alive: awake(), tools: map[string]bool{}}
}

// begin starts a turn.
func (p *turnClock) begin() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.turn, p.alive = p.now(), p.awake()
	clear(p.tools)
}

func (p *turnClock) live() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.alive = p.awake()
}

// tool notes that a call of a tool has begun or is over.
func (p *turnClock) tool(id string, running bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if running {
		p.tools[id] = true
		return
	}
	delete(p.tools, id)
}

// hold stops the clocks until the func is called.
func (p *turnClock) hold() func() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.waiting++; p.waiting == 1 {
		p.since = p.now()
	}
	return sync.OnceFunc(func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.waiting--; p.waiting == 0 {
			p.turn = p.turn.Add(p.now().Sub(p.since))
			p.alive = p.awake() // it starts again, counted from the answer
		}
	})
}

// over reports which limit is over, nil while none is; 0 is no limit.
func (p *turnClock) over(turn, stall time.Duration) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.waiting > 0:
		return nil
	case turn > 0 && p.now().Sub(p.turn) >= turn:
		return errTimeout
	case stall <= 0:
		return nil
	case len(p.tools) > 0:
		stall = max(stall, toolLimit)
	}
	if p.awake()-p.alive >= stall {
		return errStalled
	}
	return nil
}
