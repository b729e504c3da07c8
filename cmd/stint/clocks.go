package main

import (
	"fmt"
	"time"

	"stint/engine"
	"stint/worker/proc"
)

// setClock is a length of time that the environment can change.
type setClock struct {
	name string // of the variable
	in   func(*clocks) *time.Duration
}

// clocks are the coordinator's and the worker's, as far as they can be changed.
type clocks struct {
	engine engine.Config
	stages proc.Stages
}

// clockTable lists them all; docs/configuration.md says what they mean.
var clockTable = []setClock{
	{"STINT_TICK", func(c *clocks) *time.Duration { return &c.engine.TickEvery }},
	{"STINT_BEAT", func(c *clocks) *time.Duration { return &c.engine.BeatEvery }},
	{"STINT_STALE_AFTER", func(c *clocks) *time.Duration { return &c.engine.StaleAfter }},
	{"STINT_OFFLINE_AFTER", func(c *clocks) *time.Duration { return &c.engine.OfflineAfter }},
	{"STINT_OUTAGE_GRACE", func(c *clocks) *time.Duration { return &c.engine.Grace }},
	{"STINT_AFFINITY_WAIT", func(c *clocks) *time.Duration { return &c.engine.AffinityWait }},
	{"STINT_MIN_LEASE", func(c *clocks) *time.Duration { return &c.engine.MinLease }},
	{"STINT_DEFAULT_LEASE", func(c *clocks) *time.Duration { return &c.engine.DefaultLease }},
	{"STINT_MAX_LEASE", func(c *clocks) *time.Duration { return &c.engine.MaxLease }},
	{"STINT_STAGE_INTERRUPT", func(c *clocks) *time.Duration { return &c.stages.Interrupt }},
	{"STINT_STAGE_TERM", func(c *clocks) *time.Duration { return &c.stages.Term }},
}

// clocks reads what the environment changes of the defaults. Each can be set
// down to a second; the leases must keep their order.
func (c *cli) clocks() (clocks, error) {
	out := clocks{engine: c.engineConfig(), stages: c.workerOptions().Stages}
	if out.stages == (proc.Stages{}) {
		out.stages = proc.DefaultStages()
	}
	changed := false
	for _, k := range clockTable {
		text := c.env(k.name)
		if text == "" {
			continue
		}
		d, err := parseLength(text)
		if err == nil && d < time.Second {
			err = fmt.Errorf("%q is less than a second", text)
		}
		if err != nil {
			return out, usage("cannot read the clocks", k.name+": "+err.Error(), "stint help environment")
		}
		*k.in(&out), changed = d, true
	}
	e := &out.engine
	if e.MinLease > e.DefaultLease || e.DefaultLease > e.MaxLease {
		return out, usage("cannot use these clocks",
			fmt.Sprintf("STINT_MIN_LEASE (%v), STINT_DEFAULT_LEASE (%v) and STINT_MAX_LEASE (%v) must not fall", e.MinLease, e.DefaultLease, e.MaxLease), "stint help environment")
	}
	if e.StaleAfter > e.OfflineAfter {
		return out, usage("cannot use these clocks",
			fmt.Sprintf("STINT_STALE_AFTER (%v) is more than STINT_OFFLINE_AFTER (%v)", e.StaleAfter, e.OfflineAfter), "stint help environment")
	}
	if changed {
		// An absence must be noticed while the shortest lease still runs.
		e.OutageAfter = min(e.OutageAfter, max(e.MinLease/4, time.Second))
		e.AliveEvery = min(e.AliveEvery, e.OutageAfter/3)
	}
	return out, nil
}
