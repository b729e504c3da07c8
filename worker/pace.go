package worker

import (
	"sync"
	"time"
)

// toolLimit is how long one call of a tool may go on without a sign of life, when
// the agent's own limit for silence is shorter: a build may be quiet for long.
// contract 10.6
const toolLimit = 30 * time.Minute

// pace measures an agent that converses: how long its turn has taken and how long
// it has been silent. Time in which it waits for people, or for us, doesn't count.
type pace struct {
	mu      sync.Mutex
	now     func() time.Time
	turn    time.Time       // begin of the turn, moved on by what doesn't count; guarded by mu
	alive   time.Time       // last sign of life, likewise; guarded by mu
	waiting int             // guarded by mu
	since   time.Time       // when the waiting began; guarded by mu
	tools   map[string]bool // calls without a result yet; guarded by mu
}

func newPace(now func() time.Time) *pace {
	at := now()
	return &pace{now: now, turn: at, alive: at, tools: map[string]bool{}}
}

// begin starts a turn.
func (p *pace) begin() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.turn, p.alive = p.now(), p.now()
	clear(p.tools)
}

func (p *pace) live() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.alive = p.now()
}

// tool notes that a call of a tool has begun or is over.
func (p *pace) tool(id string, running bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if running {
		p.tools[id] = true
		return
	}
	delete(p.tools, id)
}

// hold stops the clocks until the func is called.
func (p *pace) hold() func() {
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
			p.alive = p.now() // it starts again, counted from the answer
		}
	})
}

// over reports which limit is over, nil while none is; 0 is no limit.
func (p *pace) over(turn, stall time.Duration) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.now()
	switch {
	case p.waiting > 0:
		return nil
	case turn > 0 && now.Sub(p.turn) >= turn:
		return errTimeout
	case stall <= 0:
		return nil
	case len(p.tools) > 0:
		stall = max(stall, toolLimit)
	}
	if now.Sub(p.alive) >= stall {
		return errStalled
	}
	return nil
}
