package engine_test

import (
	"strconv"
	"time"

	"stint/api"
	"stint/engine/enginetest"
)

// rest ends a play: no more faults, nothing is paused, and one healthy worker per agent does
// what comes. After the longest lease, the grace, the offline time and the delays, every
// session has ended or waits for a person (I5).
func (p *play) rest() {
	p.Helper()
	w := p.w
	healthy := map[api.AgentID][]*enginetest.Worker{}
	for _, a := range p.agents {
		w.Edit(a, func(in *api.AgentInput) {
			in.Schedule, in.Paused, in.MaxConcurrent, in.QueueTimeoutSeconds, in.DailySpendLimitMicros = "", false, 2, 0, 0
		})
		// Sessions stay in the mode that they were made in, so each mode has its worker.
		for _, mode := range []api.Mode{api.Local, api.Cloud} {
			w.Edit(a, func(in *api.AgentInput) { in.Mode, in.RunsAsUserID = mode, w.Owner.UserID })
			healthy[a] = append(healthy[a], w.Worker(api.Agent{ID: a}, func(in *api.WorkerInput) {
				in.Labels = lots[1:]
			}))
		}
	}
	end := p.latestStart().Add(4*time.Hour + 30*time.Minute)
	for w.Clock.Now().Before(end) {
		w.Advance(time.Minute)
		for _, a := range p.agents {
			for _, k := range healthy[a] {
				k.Beat()
				for c := k.Next(); c != nil; c = k.Next() {
					if _, err := k.Complete(*c, "done"); err != nil {
						p.broken("at rest: %v", err)
					}
				}
			}
		}
		if p.open() == "" {
			break
		}
	}
	if stuck := p.open(); stuck != "" {
		p.broken("at rest, %s has not ended", stuck)
	}
	p.check()
}

// latestStart is when everything that waits may have started: now, or later if the clock was
// set back after a session got its start time.
func (p *play) latestStart() time.Time {
	p.Helper()
	now := p.w.Clock.Now()
	told := p.row("SELECT CAST(COALESCE(MAX(not_before), 0) AS TEXT) FROM sessions WHERE ended_at = 0")
	at, err := strconv.ParseInt(told, 10, 64)
	if err != nil {
		p.broken("read when sessions may start: %v", err)
	}
	if t := time.UnixMicro(at); t.After(now) {
		return t
	}
	return now
}

// open is the first session that has neither ended nor waits for a person, and
// what it waits for.
func (p *play) open() string {
	id := p.row("SELECT CAST(id AS TEXT) FROM sessions WHERE ended_at = 0 AND prompt_id = 0 AND status <> 'awaiting_input' AND after_id NOT IN (SELECT id FROM sessions WHERE ended_at = 0) LIMIT 1")
	if id == "" {
		return ""
	}
	return "session " + id + p.row("SELECT ' (' || status || ', not before ' || not_before || ', held ' || overlap_held || ', admit ' || admit_at || ')' FROM sessions WHERE id = CAST(?1 AS INTEGER)", id)
}
