package engine

import (
	"context"
	"fmt"
	"net/url"

	"stint/api"
	"stint/db"
	"stint/queries"
)

// PatchSession changes what a worker reports about its session: plan, link, usage, agent
// session; and opens or withdraws a prompt, the only way to do either (contract 6.1).
func (e *Engine) PatchSession(ctx context.Context, c Caller, worker api.WorkerID, session api.SessionID, in api.SessionPatch) (out api.Session, err error) {
	if err := checkPatch(in); err != nil {
		return out, err
	}
	if err := mayPatch(c, in); err != nil {
		return out, err
	}
	err = e.writeUnder(ctx, c, worker, session, in.UnderClaim, func(tx *db.Tx, h held) error {
		exceeded, err := e.report(tx, h, in)
		if err != nil {
			return err
		}
		switch {
		case in.Status == api.AwaitingInput:
			err = e.openPrompt(tx, h, *in.Prompt)
		case in.Status == api.Active:
			err = e.withdrawPrompt(tx, h)
		}
		if err != nil {
			return err
		}
		out, err = e.sessionTx(tx.Context(), tx, c, session, db.Micros(tx.Now))
		out.SpendExceeded = exceeded
		return err
	})
	return out, err
}

const maxPlace = 8 << 10 // bytes of a path or a command

// checkLink refuses what must not become a link on a page.
func checkLink(v *api.Invalid, field, text string) {
	v.CheckText(field, text, maxURL)
	u, err := url.Parse(text)
	if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" {
		v.Add(field, "must be an http or https address")
	} else if u.User != nil {
		v.Add(field, "must not hold a name or password: everybody who sees the session reads it")
	}
}

func checkPatch(in api.SessionPatch) error {
	var v api.Invalid
	if in.Plan != nil {
		mended(in.Plan)
		v.CheckText("plan", *in.Plan, maxPlan)
	}
	if in.ExternalURL != nil && *in.ExternalURL != "" {
		checkLink(&v, "externalUrl", *in.ExternalURL)
	}
	for field, text := range map[string]*string{"workPath": in.WorkPath, "resumeCommand": in.ResumeCommand} {
		if text != nil {
			v.CheckText(field, *text, maxPlace)
			v.CheckPlace(field, *text)
		}
	}
	if in.AgentSessionID != nil {
		v.CheckText("agentSessionId", *in.AgentSessionID, 200)
		v.CheckLine("agentSessionId", *in.AgentSessionID)
	}
	checkUsage(&v, in.Usage)
	if in.Tries < 0 || in.Tries > maxTries {
		v.Add("tries", fmt.Sprintf("must be 0 to %d: how many tries failed so far and were followed by another", maxTries))
	}
	if in.LastConsumed != 0 && !in.TurnEnded {
		v.Add("lastConsumed", "moves only with turnEnded: a turn that was finished has taken the messages in")
	}
	if len(in.Taken) > maxTaken {
		v.Add("taken", fmt.Sprintf("has %d messages; at most %d fit", len(in.Taken), maxTaken))
	}
	switch in.Status {
	case "", api.Active:
		if in.Prompt != nil {
			v.Add("prompt", "needs status awaiting_input")
		}
	case api.AwaitingInput:
		if in.Prompt == nil {
			v.Add("prompt", "is missing: a session awaits input only on a prompt")
			break
		}
		checkPrompt(&v, in.Prompt)
	default:
		v.Add("status", "can only be set to awaiting_input or active; complete, fail or release end a claim")
	}
	return v.Err()
}

// checkUsage refuses totals that no session can have; nil is no report.
func checkUsage(v *api.Invalid, u *api.Usage) {
	if u == nil {
		return
	}
	for _, total := range []struct {
		field string
		n     int64
	}{{"inputTokens", u.InputTokens}, {"outputTokens", u.OutputTokens}, {"costMicros", u.CostMicros}, {"turns", u.Turns}} {
		if total.n < 0 || total.n > api.MaxUsage {
			v.Add("usage."+total.field, fmt.Sprintf("must be 0 to %d; report the total of the session", api.MaxUsage))
		}
	}
}

// report stores what changed of the worker's own fields, with one event. It returns which
// spend limit the session's usage has reached, if any.
func (e *Engine) report(tx *db.Tx, h held, in api.SessionPatch) (exceeded string, err error) {
	s := h.s
	changed := api.EventData{}
	set := func(field string, to *string, value *string) {
		if value != nil && *value != *to {
			*to = *value
			changed[field] = true
		}
	}
	set("plan", &s.Plan, in.Plan)
	set("externalUrl", &s.ExternalUrl, in.ExternalURL)
	set("agentSessionId", &s.AgentSessionID, in.AgentSessionID)
	if s.Mode == api.Local { // a cloud session's readers include others than its worker's owner
		set("workPath", &s.WorkPath, in.WorkPath)
		set("resumeCommand", &s.ResumeCommand, in.ResumeCommand)
	}
	if changed["agentSessionId"] != nil {
		w, err := workerEvenDeleted(tx.Context(), tx, h.claim.WorkerID)
		if err != nil {
			return "", fmt.Errorf("read worker %s: %w", h.claim.WorkerID, err)
		}
		s.ProcessID = w.ProcessID
	}
	if some, err := e.take(tx, s, in.Taken); err != nil {
		return "", err
	} else if some {
		changed["taken"] = true
	}
	if in.TurnEnded {
		if err := e.noteTurn(tx, s, in.LastConsumed); err != nil {
			return "", err
		}
		changed["turnEnded"] = true
		s.Releases = 0
	}
	if in.Tries > s.Tries {
		s.Tries = in.Tries
		changed["tries"] = true
	}
	if in.Usage != nil {
		raised := false
		if raised, exceeded, err = e.use(tx, s, *in.Usage); err != nil {
			return "", err
		}
		if raised {
			changed["usage"] = true
		}
	}
	if len(changed) == 0 {
		return exceeded, nil
	}
	if err := e.keepReport(tx, s); err != nil {
		return "", err
	}
	return exceeded, e.logSession(tx, s, h.actor(), api.EventReported, changed)
}

func (e *Engine) keepReport(tx *db.Tx, s *sessionRow) error {
	err := db.One(tx.ReportSession(tx.Context(), queries.ReportSessionParams{
		Plan: s.Plan, ExternalUrl: s.ExternalUrl, AgentSessionID: s.AgentSessionID, ProcessID: s.ProcessID,
		InputTokens: s.InputTokens, OutputTokens: s.OutputTokens, CostMicros: s.CostMicros, Turns: s.Turns,
		Releases: s.Releases, Tries: s.Tries, WorkPath: s.WorkPath, ResumeCommand: s.ResumeCommand,
		ID: s.ID, ClaimID: s.ClaimID,
	}))
	if err != nil {
		return fmt.Errorf("keep the report of session %s: %w", s.ID, err)
	}
	return nil
}

// raise takes a usage report: totals, so that a late or repeated one changes nothing.
func raise(s *sessionRow, u api.Usage) bool {
	was := [4]int64{s.InputTokens, s.OutputTokens, s.CostMicros, s.Turns}
	s.InputTokens, s.OutputTokens = max(s.InputTokens, u.InputTokens), max(s.OutputTokens, u.OutputTokens)
	s.CostMicros, s.Turns = max(s.CostMicros, u.CostMicros), max(s.Turns, u.Turns)
	return was != [4]int64{s.InputTokens, s.OutputTokens, s.CostMicros, s.Turns}
}

// use takes a usage report into the session's row and its agent's day. It returns whether that
// changed the row and which limit is reached, "" for none.
func (e *Engine) use(tx *db.Tx, s *sessionRow, u api.Usage) (raised bool, exceeded string, err error) {
	cost := s.CostMicros
	raised = raise(s, u)
	exceeded, err = e.spend(tx, s, s.CostMicros-cost)
	return raised, exceeded, err
}

// reportUsage stores a usage report that comes with a finish.
func (e *Engine) reportUsage(tx *db.Tx, s *sessionRow, u api.Usage) error {
	raised, _, err := e.use(tx, s, u)
	if err != nil || !raised {
		return err
	}
	return e.keepReport(tx, s)
}
