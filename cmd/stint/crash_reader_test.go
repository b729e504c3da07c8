package main

import (
	"context"
	"fmt"

	"stint/api"
)

// reader follows the live stream across all restarts.
type reader struct {
	j    *journal
	last int64
	seqs []int64
}

func (r *reader) live(l *serverRun) {
	for !l.wire.isOver() {
		err := l.client.Follow(l.Context(), r.last, nil, func(e api.Event) error {
			r.see(e)
			l.wire.sawEvent()
			return nil
		})
		if err == api.ErrReset {
			r.j.fault("the stream knows nothing of event %d, which it told", r.last)
			l.wire.end()
		}
	}
}

func (r *reader) see(e api.Event) {
	if e.Seq <= r.last {
		r.j.fault("the stream told event %d after event %d", e.Seq, r.last)
	}
	r.last = e.Seq
	r.seqs = append(r.seqs, e.Seq)
	r.j.sawEvent(e)
}

// catchUp reads the stream up to the end of the log.
func (r *reader) catchUp(s *crashFixture, c *api.Client) {
	s.Helper()
	ctx, cancel := context.WithTimeout(s.Context(), patience)
	defer cancel()
	all := s.eventsAfter(c, r.last)
	if len(all) == 0 {
		return
	}
	enough := fmt.Errorf("enough")
	if err := c.Follow(ctx, r.last, nil, func(e api.Event) error {
		r.see(e)
		if e.Seq >= all[len(all)-1].Seq {
			return enough
		}
		return nil
	}); err != enough {
		s.Errorf("the stream ended: %v", err)
	}
}

// missedNothing compares what came on the stream with the log.
func (r *reader) missedNothing(s *crashFixture) {
	s.Helper()
	streamed := map[int64]bool{}
	for _, seq := range r.seqs {
		streamed[seq] = true
	}
	for _, e := range s.log {
		if e.Seq <= r.last && !streamed[e.Seq] {
			s.Errorf("event %d (%s) did not come on the stream", e.Seq, e.Type)
		}
	}
}
