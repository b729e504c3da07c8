package worker

import (
	"fmt"
	"time"

	"stint/api"
	"stint/worker/agent"
	"stint/worker/setup"
)

// standing are the standing approvals of an agent for one of its conversations. They are read
// from the owner's file each time, so that one that was taken back counts no more.
type standing struct {
	h     *host
	files setup.Files
	slug  string
}

// All is part of [agent.Approvals]. A file that can't be read allows nothing, and what somebody
// else allowed, such as through another coordinator, isn't this worker's owner's word.
func (s standing) All() []agent.Standing {
	all, err := s.files.Approvals(s.slug)
	if err != nil {
		s.h.c.s.log.Error("the standing approvals can't be read; none counts", "error", err)
		return nil
	}
	all = givenBy(all, s.h.c.s.p.me.UserID)
	out := make([]agent.Standing, len(all))
	for i, a := range all {
		out[i] = a.Standing()
	}
	return out
}

// Used is part of [agent.Approvals].
func (s standing) Used(a agent.Action, by agent.Standing) {
	if err := s.files.Used(s.slug, by.ID, time.Now()); err != nil {
		s.h.c.s.log.Warn("the use of a standing approval can't be counted", "approval", by.ID, "error", err)
	}
	s.h.c.s.rec.wake() // the beat reports it
	what := api.Excerpt(s.h.mask(a.What), 2000)
	s.h.c.s.activity(api.ActivityPolicyDecision, fmt.Sprintf("The standing approval %s allowed, on %s: %s (%s). It is for: %s", by.ID, a.Area, what, a.Tool, api.Excerpt(s.h.mask(by.What), 1000)))
}

// stands keeps what an answer approves from now on, if this worker's owner gave it: an answer of
// anybody else counts for the once.
func (h *host) stands(p api.Prompt, q agent.Question) {
	if p.Answer == nil || p.Answer.Standing == "" {
		return
	}
	s := h.c.s
	if p.ClosedBy != s.p.me.UserID.String() {
		s.activity(api.ActivityPolicyDecision, "It was approved from now on by somebody who isn't this worker's owner: it counts for this once.")
		return
	}
	for i, pattern := range patternsOf(q, h.secrets.now()) {
		if pattern != p.Answer.Standing {
			continue
		}
		one := q.Standing[i]
		if pattern != one.What {
			s.activity(api.ActivityPolicyDecision, "What was approved has a secret in it, which isn't kept: it counts for this once.")
			return
		}
		a, err := h.files().Approve(s.claim.Session.AgentSlug, setup.Approval{
			Area: one.Area, Tool: one.Tool, What: one.What, Any: one.Any, Beyond: one.Beyond, Session: s.addr.Session.String(),
			By: p.ClosedBy, ByName: s.p.me.Name, At: time.Now().UTC().Truncate(time.Second),
		})
		if err != nil {
			s.log.Error("a standing approval can't be kept", "error", err)
			s.activity(api.ActivityPolicyDecision, "The standing approval could not be written on the worker's machine: it counts for this once.")
			return
		}
		s.activity(api.ActivityPolicyDecision, fmt.Sprintf("From now on %s is allowed (%s): standing approval %s, by this worker's owner.", api.Excerpt(a.What, 2000), a.Shown(setup.Use{}).Words(), a.ID))
		s.rec.wake()
	}
}

func (h *host) files() setup.Files { return setup.Find(h.c.s.p.opts.StateDir) }

// patternsOf are the standing approvals that a question proposes, as people see them.
func patternsOf(q agent.Question, secrets [][]byte) []string {
	out := make([]string, 0, len(q.Standing))
	for _, one := range q.Standing {
		out = append(out, api.Excerpt(maskString(one.What, secrets), itemBytes-1024))
	}
	return out
}
