package main

import (
	"sync"

	"stint/api"
)

// verify asks the coordinator whether it still knows what it said.
func (s *crashFixture) verify(c *api.Client, ids []api.SessionID) {
	s.Helper()
	s.readLog(c)
	s.verifyAgents(c)
	var wg sync.WaitGroup
	next := make(chan api.SessionID)
	for range 4 {
		wg.Go(func() {
			for id := range next {
				s.verifySession(c, id)
			}
		})
	}
	for _, id := range ids {
		next <- id
	}
	close(next)
	wg.Wait()
	for _, f := range s.j.faults {
		s.Errorf("a client saw: %s", f)
	}
	s.j.faults = nil
}

func (s *crashFixture) verifySession(c *api.Client, id api.SessionID) {
	v, err := readView(s.Context(), c, id, s.bySession[id])
	if err != nil {
		s.Errorf("session %s: %v", id, err)
		return
	}
	if wrong := v.whole(); wrong != "" {
		s.Errorf("session %s: %s", id, wrong)
	}
	for _, f := range s.j.factsOf(id) {
		if wrong := f.holds(v); wrong != "" {
			s.Errorf("session %s: %s: %s", id, f.what, wrong)
		}
	}
}

// readLog continues reading the event log where the last restart left it: no event that
// anybody saw may be missing or different.
func (s *crashFixture) readLog(c *api.Client) {
	s.Helper()
	after := int64(0)
	if n := len(s.log); n > 0 {
		after = s.log[n-1].Seq
	}
	more := s.eventsAfter(c, after)
	for _, e := range more {
		s.bySession[e.SessionID] = append(s.bySession[e.SessionID], e)
	}
	s.log = append(s.log, more...)
	s.compare(more, after)
}

func (s *crashFixture) eventsAfter(c *api.Client, after int64) (all []api.Event) {
	s.Helper()
	for {
		page, err := c.Events(s.Context(), after, 200)
		s.must(err)
		if len(page.Items) == 0 {
			return all
		}
		all = append(all, page.Items...)
		after = all[len(all)-1].Seq
	}
}

// compare checks a stretch of the log, beginning after a number, against what was seen of it.
func (s *crashFixture) compare(stretch []api.Event, after int64) {
	s.Helper()
	is := map[int64]string{}
	last := after
	for _, e := range stretch {
		if e.Seq <= last {
			s.Errorf("event %d follows event %d", e.Seq, last)
		}
		last = e.Seq
		is[e.Seq] = eventText(e)
	}
	s.j.mu.Lock()
	defer s.j.mu.Unlock()
	for seq, was := range s.j.seen {
		if seq > after && is[seq] != was {
			s.Errorf("event %d was seen as %s and is %q", seq, was, is[seq])
		}
	}
	for seq, text := range is {
		s.j.seen[seq] = text
	}
}

func (s *crashFixture) verifyAgents(c *api.Client) {
	s.Helper()
	for p := (api.Page{Limit: 200}); ; {
		page, err := c.Agents(s.Context(), p)
		s.must(err)
		for _, a := range page.Items {
			if least := s.j.latest(a.ID); a.Version < least {
				s.Errorf("agent %s is at version %d and was at %d", a.Slug, a.Version, least)
			}
			if a.Instructions != a.Prompt || (a.Prompt != "" && a.Description != a.Prompt) {
				s.Errorf("agent %s was edited in part: %+v", a.Slug, a)
			}
			s.j.sawAgent(a) // a known version must be what it was
		}
		if p.Cursor = page.NextCursor; p.Cursor == "" {
			return
		}
	}
}

// all returns the sessions that exist and those that must exist.
func (s *crashFixture) all(c *api.Client) (ids []api.SessionID) {
	s.Helper()
	known := map[api.SessionID]bool{}
	for p := (api.Page{Limit: 200}); ; {
		page, err := c.Sessions(s.Context(), api.SessionFilter{Archived: true}, p)
		s.must(err)
		for _, one := range page.Items {
			known[one.ID] = true
		}
		if p.Cursor = page.NextCursor; p.Cursor == "" {
			break
		}
	}
	for id := range s.j.sessions {
		known[id] = true
	}
	for id := range known {
		ids = append(ids, id)
		s.j.mu.Lock()
		s.j.of(id)
		s.j.mu.Unlock()
	}
	return ids
}
