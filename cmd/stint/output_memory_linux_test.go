package main

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"stint/api"
	"stint/worker/agent/agenttest"
	"stint/worker/workertest"
)

// BenchmarkLoud measures a program that prints 200 MB, through the streams of a command and
// through the protocols of the agents that converse: how much memory server and worker take,
// one process here, and how long short sessions beside it take from creation to end, compared
// with those of a quiet program.
func BenchmarkLoud(b *testing.B) {
	const size, limit = 200_000_000, 150 << 20
	for _, kind := range []api.AgentType{api.TypeCommand, api.TypeClaudeCode, api.TypeCodex} {
		b.Run(string(kind), func(b *testing.B) {
			for b.Loop() {
				l := newLoudHome(b)
				quiet := l.beside(20, func() bool { return false })
				_, before := l.p.memory()
				id, begun := l.begin(kind, size), time.Now()
				loud := l.beside(0, func() bool { return l.ended(id) })
				took := time.Since(begun)
				l.complete(id)
				_, most := l.p.memory()
				b.ReportMetric(size/took.Seconds()/1e6, "MB/s")
				b.ReportMetric(float64(before)/(1<<20), "MB-before")
				b.ReportMetric(float64(most)/(1<<20), "MB-most")
				for name, all := range map[string][]time.Duration{"quiet": quiet, "loud": loud} {
					slices.Sort(all)
					b.ReportMetric(float64(all[len(all)/2].Milliseconds()), "ms/session-"+name)
					b.ReportMetric(float64(all[len(all)-1].Milliseconds()), "worst-ms-"+name)
				}
				if most > limit {
					b.Errorf("it took %d MB of memory, more than %d", most>>20, limit>>20)
				}
				l.p.stop()
			}
		})
	}
}

// loudHome is a program that runs everything, with an agent whose sessions are short.
type loudHome struct {
	*home
	p *program
	c *api.Client
}

func newLoudHome(t testing.TB) *loudHome {
	t.Helper()
	h := newHomeIn(t, agenttest.Folder(t)) // Codex runs no commands with its own below /tmp
	l := &loudHome{home: h, p: h.serve(shortClocks, "up")}
	l.c = l.p.client(nil)
	l.agent("short", map[string]any{"command": []string{"true"}, "workFolder": t.TempDir()}, api.TypeCommand)
	return l
}

func (l *loudHome) agent(slug string, run map[string]any, kind api.AgentType) {
	l.Helper()
	_, err := l.c.CreateAgent(l.Context(), map[string]any{"slug": slug, "type": kind, "leaseSeconds": 6, "run": run})
	l.must(err)
}

// begin has a session of an agent of a type print a number of bytes.
func (l *loudHome) begin(kind api.AgentType, size int) api.SessionID {
	l.Helper()
	run := map[string]any{"workFolder": l.TempDir()}
	switch kind {
	case api.TypeClaudeCode:
		run["executable"] = workertest.Loud(l, "claude", size)
	case api.TypeCodex:
		run["executable"] = workertest.Loud(l, "codex", size)
	case api.TypeCommand:
		run["command"] = workertest.Agent(l, "flood", fmt.Sprint(size))
	}
	l.agent("loud", run, kind)
	s, _, err := l.c.CreateSession(l.Context(), "loud", api.SessionInput{Prompt: new("Be loud.")}, "")
	l.must(err)
	return s.ID
}

func (l *loudHome) ended(id api.SessionID) bool {
	l.Helper()
	s, err := l.c.Session(l.Context(), id)
	l.must(err)
	return s.Status.Terminal()
}

// complete requires a session to have completed under its first claim.
func (l *loudHome) complete(id api.SessionID) {
	l.Helper()
	s, err := l.c.Session(l.Context(), id)
	l.must(err)
	if s.Status != api.Complete || s.Lapses != 0 || s.Fence != 1 {
		l.Fatalf("the session ended %s (%+v) with %d lapses and fence %d", s.Status, s.Error, s.Lapses, s.Fence)
	}
}

// beside runs n short sessions one after the other, or with 0 as many as it takes until it is
// over, and returns how long each took.
func (l *loudHome) beside(n int, over func() bool) (took []time.Duration) {
	l.Helper()
	for len(took) == 0 || (len(took) < n || n == 0) && !over() {
		begun := time.Now()
		s, _, err := l.c.CreateSession(l.Context(), "short", api.SessionInput{}, "")
		l.must(err)
		l.until("a session beside it ends", func() bool { return l.ended(s.ID) })
		took = append(took, time.Since(begun))
	}
	return took
}
