package main

import (
	"fmt"
	"strings"
	"time"

	"stint/account"
	"stint/api"
	"stint/engine"
	"stint/worker/proc"
)

// setClock is a length of time that the environment can change.
type setClock struct {
	name  string // of the variable
	means string
	in    func(*clocks) *time.Duration
}

// clocks are the coordinator's and the worker's clocks that can be changed.
type clocks struct {
	engine   engine.Config
	accounts account.Config
	stages   proc.Stages
}

// clockTable lists them all, as docs/configuration.md does.
var clockTable = []setClock{
	{"STINT_TICK", "how long the scheduler sleeps at most", func(c *clocks) *time.Duration { return &c.engine.TickEvery }},
	{"STINT_BEAT", "how often workers say that they live", func(c *clocks) *time.Duration { return &c.engine.BeatEvery }},
	{"STINT_STALE_AFTER", "a worker silent for so long is stale", func(c *clocks) *time.Duration { return &c.engine.StaleAfter }},
	{"STINT_OFFLINE_AFTER", "... and offline: its claims end", func(c *clocks) *time.Duration { return &c.engine.OfflineAfter }},
	{"STINT_OUTAGE_GRACE", "what running work gets after an outage", func(c *clocks) *time.Duration { return &c.engine.Grace }},
	{"STINT_AFFINITY_WAIT", "how long a session waits for its worker", func(c *clocks) *time.Duration { return &c.engine.AffinityWait }},
	{"STINT_MIN_LEASE", "the shortest lease", func(c *clocks) *time.Duration { return &c.engine.MinLease }},
	{"STINT_DEFAULT_LEASE", "a lease that nobody asked for", func(c *clocks) *time.Duration { return &c.engine.DefaultLease }},
	{"STINT_MAX_LEASE", "the longest lease", func(c *clocks) *time.Duration { return &c.engine.MaxLease }},
	{"STINT_TASK_LEASE", "a lease on a task that nobody asked for", func(c *clocks) *time.Duration { return &c.engine.TaskLease }},
	{"STINT_MAX_TASK_LEASE", "the longest lease on a task", func(c *clocks) *time.Duration { return &c.engine.MaxTaskLease }},
	{"STINT_ACCESS_LIFE", "how long a program's access token lives", func(c *clocks) *time.Duration { return &c.accounts.AccessLife }},
	{"STINT_STAGE_INTERRUPT", "what a command gets before TERM", func(c *clocks) *time.Duration { return &c.stages.Interrupt }},
	{"STINT_STAGE_TERM", "... and then before KILL", func(c *clocks) *time.Duration { return &c.stages.Term }},
}

// defaultClocks are the clocks that nothing changes.
func defaultClocks() clocks {
	return clocks{engine: engine.DefaultConfig(), accounts: account.DefaultConfig(), stages: proc.DefaultStages()}
}

// clockHelp lists the variables with their defaults.
func clockHelp() string {
	defaults := defaultClocks()
	var b strings.Builder
	for _, k := range clockTable {
		fmt.Fprintf(&b, "  %-21s  %s (%s)\n", k.name, k.means, brief(*k.in(&defaults)))
	}
	return b.String()
}

// clockNames are the variables that a contradiction of clocks is about.
var clockNames = map[string][]string{
	api.ClockLease:   {"STINT_MAX_LEASE", "STINT_STAGE_INTERRUPT", "STINT_STAGE_TERM"},
	api.ClockStale:   {"STINT_STALE_AFTER", "STINT_BEAT"},
	api.ClockOffline: {"STINT_OFFLINE_AFTER", "STINT_STALE_AFTER", "STINT_BEAT", "STINT_STAGE_INTERRUPT", "STINT_STAGE_TERM"},
}

// contradictions are clocks that can't work together. The leases of agents may be anything
// between the shortest and the longest: one of them has to be long enough.
func (c clocks) contradictions() []api.FieldError {
	return api.Clocks{
		Lease: c.engine.MaxLease, Staging: c.stages.Total(), Beat: c.engine.BeatEvery, StaleAfter: c.engine.StaleAfter, OfflineAfter: c.engine.OfflineAfter,
	}.Contradictions()
}

// brief is a length of time as the variables take it, without parts that are zero.
func brief(d time.Duration) string {
	text := d.String()
	if m, ok := strings.CutSuffix(text, "m0s"); ok {
		text = m + "m"
	}
	if h, ok := strings.CutSuffix(text, "h0m"); ok {
		text = h + "h"
	}
	return text
}

// clocks reads which defaults the environment changes. Each can be set down to a second; the
// leases must keep their order.
func (c *cli) clocks() (clocks, error) {
	out := clocks{engine: c.engineConfig(), accounts: account.DefaultConfig(), stages: c.workerOptions().Stages}
	if out.stages == (proc.Stages{}) {
		out.stages = proc.DefaultStages()
	}
	changed := false
	for _, k := range clockTable {
		text := c.env(k.name)
		if text == "" {
			continue
		}
		d, err := api.ParseLength(text)
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
	if e.MinLease > e.TaskLease || e.TaskLease > e.MaxTaskLease {
		return out, usage("cannot use these clocks",
			fmt.Sprintf("STINT_MIN_LEASE (%v), STINT_TASK_LEASE (%v) and STINT_MAX_TASK_LEASE (%v) must not fall", e.MinLease, e.TaskLease, e.MaxTaskLease), "stint help environment")
	}
	for _, bad := range out.contradictions() {
		return out, usage("cannot use these clocks", strings.Join(clockNames[bad.Field], ", ")+": "+bad.Detail, "stint help environment")
	}
	if changed {
		// An outage must be noticed while the shortest lease is still running.
		e.OutageAfter = min(e.OutageAfter, max(e.MinLease/4, time.Second))
		e.AliveEvery = min(e.AliveEvery, e.OutageAfter/3)
	}
	return out, nil
}
