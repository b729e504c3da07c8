package api

import (
	"fmt"
	"time"
)

// Clocks are the lengths of time of a coordinator, an agent and a worker that have to fit
// together; zero = not known. contract 10.11
type Clocks struct {
	Lease        time.Duration // of a claim
	Staging      time.Duration // what the worker takes at most to end what runs
	Beat         time.Duration // how often workers report that they are alive
	StaleAfter   time.Duration // a worker silent for this long is stale
	OfflineAfter time.Duration // … and offline: its claims end
}

// What a contradiction of clocks is about.
const (
	ClockLease   = "lease"
	ClockStale   = "staleAfter"
	ClockOffline = "offlineAfter"
)

// LeastLease is the shortest lease under which a worker can run anything that takes a given
// time to end: two renewals come before the moment at which it would have to begin ending it.
func LeastLease(staging time.Duration) time.Duration { return 2 * staging }

// RenewEvery is how often a lease is renewed: at a third of what is left of it after
// subtracting the time that ending takes. contract 4.4
func RenewEvery(lease, staging time.Duration) time.Duration {
	return max(max(lease-staging, lease/2)/3, 100*time.Millisecond)
}

// Contradictions are what can't work together, by what has to change, with the figures.
func (c Clocks) Contradictions() (out []FieldError) {
	add := func(what, format string, args ...any) {
		out = append(out, FieldError{Field: what, Detail: fmt.Sprintf(format, args...)})
	}
	if least := LeastLease(c.Staging); c.Lease > 0 && c.Lease < least {
		add(ClockLease, "a lease of %v is too short for a worker that takes up to %v to end what it runs: it has to be at least %v, so that two renewals fit into it", c.Lease, c.Staging, least)
	}
	if c.StaleAfter > 0 && c.Beat > 0 && c.StaleAfter <= c.Beat {
		add(ClockStale, "workers say every %v that they live, and count as stale after %v: that has to be longer", c.Beat, c.StaleAfter)
	}
	if c.OfflineAfter > 0 && c.OfflineAfter < c.StaleAfter {
		add(ClockOffline, "a worker counts as offline after %v and as stale only after %v: it can't be offline first", c.OfflineAfter, c.StaleAfter)
	}
	if least := c.Beat + c.Staging; c.OfflineAfter > 0 && c.OfflineAfter < least {
		add(ClockOffline, "a worker counts as offline after %v, but says that it lives every %v and takes up to %v to end what it runs: that has to be at least %v", c.OfflineAfter, c.Beat, c.Staging, least)
	}
	return out
}
