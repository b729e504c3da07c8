package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"stint/api"
	"stint/db"
	"stint/queries"
)

// The limits of what people may write into a session.
const (
	maxTitle   = 200       // characters
	maxPrompt  = 512 << 10 // bytes
	maxContext = 512 << 10 // bytes

	// MinPriority and MaxPriority bound priorities; higher runs first.
	MinPriority = -1000
	MaxPriority = 1000
)

// CreateSession creates a session of an agent for the caller. replayed reports that an
// Idempotency-Key matched an earlier one. Rights: a member for a local agent, an admin for a
// cloud one. Errors: not_found, forbidden, invalid, idempotency_key_reused.
func (e *Engine) CreateSession(ctx context.Context, c Caller, agentRef string, in api.SessionInput, idem Idempotency) (out api.Session, replayed bool, err error) {
	if err := checkSession(&in); err != nil {
		return out, false, err
	}
	err = e.writeAs(ctx, c, func(tx *db.Tx) error {
		out, replayed, err = e.createTx(tx, c, agentRef, in, idem)
		return err
	})
	return out, replayed, err
}

func (e *Engine) createTx(tx *db.Tx, c Caller, agentRef string, in api.SessionInput, idem Idempotency) (api.Session, bool, error) {
	a, err := agentOf(tx.Context(), tx, c, agentRef)
	if err != nil {
		return api.Session{}, false, err
	}
	if err := c.MayTrigger(a.Mode); err != nil {
		return api.Session{}, false, err
	}
	idem.Route += " of " + a.ID.String() // whether the agent was named by its slug or its id
	if c.Run != nil {
		idem.Route += " by " + c.Run.Session.String() // a run sees what it started itself and nothing else
	}
	if idem.Key != "" {
		first, err := e.replay(tx, c, idem)
		if err != nil {
			return api.Session{}, false, err
		}
		if first != 0 {
			s, err := e.sessionTx(tx.Context(), tx, c, first, db.Micros(tx.Now))
			return s, true, err
		}
	}
	if err := checkChoice(c, a, in.RunChoice); err != nil {
		return api.Session{}, false, err
	}
	n := newSession{by: api.ByUser, user: c.UserID, actor: c.Actor(), at: manualTrigger(a, db.Micros(tx.Now)), in: in, attempt: 1}
	if c.Run != nil {
		if err := e.startedBy(tx, c.Run, &n); err != nil {
			return api.Session{}, false, err
		}
	}
	if err := e.aboutTask(tx, c, &n); err != nil {
		return api.Session{}, false, err
	}
	s, err := e.newSession(tx, a, n)
	if err != nil {
		return api.Session{}, false, err
	}
	if err := e.keepKey(tx, c, idem, s); err != nil {
		return api.Session{}, false, err
	}
	out, err := e.present(tx.Context(), tx, s, a, db.Micros(tx.Now))
	return out, false, err
}

// manualTrigger is the instant of a trigger that isn't a slot: after the agent's last one and
// never a whole second, so that it can't coincide with a slot (contract 3.4).
func manualTrigger(a *agentRow, now int64) int64 {
	at := max(now, a.LastTriggeredAt+1)
	if at%1_000_000 == 0 {
		at++
	}
	return at
}

type newSession struct {
	by      api.Trigger
	user    api.UserID // who triggered; 0 for the scheduler
	actor   string
	at      int64 // triggered_at
	in      api.SessionInput
	attempt int64
	held    bool          // behind the gate overlap
	parent  api.SessionID // whose agent triggered it; 0 = none
	depth   int64

	retryOf *sessionRow
	goesOn  *sessionRow // the ended session whose conversation it continues

	task api.TaskID // that it is about
}

// errSlotTaken says that the agent already has a session of that instant.
var errSlotTaken = errors.New("the agent already has a session triggered at that instant")

// newSession inserts a session as pending and, if no gate holds it, admits it in the same
// step, which one event records.
func (e *Engine) newSession(tx *db.Tx, a *agentRow, n newSession) (*sessionRow, error) {
	if err := e.fits(); err != nil {
		return nil, err
	}
	now := db.Micros(tx.Now)
	s := e.newRow(api.SessionID(tx.NewID()), a, n, now)
	if s.AfterID != 0 {
		if err := e.follow(tx, s); err != nil {
			return nil, err
		}
	}
	f, err := loadFacts(tx.Context(), tx, s, a)
	if err != nil {
		return nil, err
	}
	if g := f.rowGate(now); g == nil {
		s.Status, s.QueuedAt, s.PlaceAt, s.OverlapHeld = api.Queued, now, now, 0
	} else {
		s.AdmitAt = admitAt(g)
	}
	if err := insertSession(tx, s); err != nil {
		return nil, err
	}
	if err := attach(tx, s.ID, 0, n.in.Files); err != nil {
		return nil, err
	}
	if n.retryOf != nil {
		if err := attachAgain(tx, s.ID, n.retryOf.ID, 0); err != nil {
			return nil, err
		}
	}
	if n.by != api.ByScheduler {
		if err := tx.TriggerAgent(a.ID, s.TriggeredAt); err != nil {
			return nil, fmt.Errorf("note the trigger of agent %s: %w", a.ID, err)
		}
		a.LastTriggeredAt = s.TriggeredAt
	}
	data := api.EventData{"to": s.Status}
	if s.RetryOf != 0 {
		data["retryOf"] = s.RetryOf.String()
	}
	if err := e.logSession(tx, s, n.actor, api.EventSessionCreated, data); err != nil {
		return nil, err
	}
	if from := cmp.Or(n.retryOf, n.goesOn); from != nil && s.TaskID != 0 {
		if err := e.carryTask(tx, from, s, n.actor); err != nil {
			return nil, err
		}
	}
	if s.Status == api.Queued {
		e.offer(s.AgentID)
		if s.AffinityUntil > 0 {
			tx.AfterCommit(e.lift.Wake)
		}
	} else if s.AdmitAt != 0 {
		tx.AfterCommit(e.admit.Wake)
	}
	return s, nil
}

// newRow is a new session's row before any gate was asked.
func (e *Engine) newRow(id api.SessionID, a *agentRow, n newSession, now int64) *sessionRow {
	s := &sessionRow{
		ID: id, WorkspaceID: a.WorkspaceID, AgentID: a.ID, Status: api.Pending, Mode: a.Mode,
		TriggeredBy: n.by, TriggeredByUserID: n.user, TriggeredAt: n.at, Labels: a.Labels, Priority: a.Priority,
		Title: n.in.Title, Prompt: a.Prompt, Instructions: a.Instructions, UntrustedContext: n.in.UntrustedContext,
		NotBefore: api.Micros(n.in.NotBefore.Time), AfterID: n.in.After, AfterAny: db.Flag(n.in.AfterAny),
		OverlapHeld: db.Flag(n.held), Attempt: n.attempt, TaskID: n.task, CreatedAt: now,
		Model: n.in.Model, Effort: n.in.Effort, PlanMode: db.Flag(n.in.PlanMode),
	}
	s.ThreadID, s.ParentID, s.Depth = api.ThreadID(s.ID), n.parent, n.depth
	if n.in.Prompt != nil {
		s.Prompt = *n.in.Prompt // an explicit empty one means none; contract 2.0
	}
	if s.Title == "" && s.Prompt == "" {
		s.Title = a.Name
	}
	if n.in.Priority != nil {
		s.Priority = *n.in.Priority
	}
	if a.Mode == api.Local {
		s.OwnerUserID = n.user
		if n.by != api.ByUser && n.by != api.ByAgent {
			s.OwnerUserID = a.RunsAsUserID
		}
	}
	if r := n.retryOf; r != nil {
		s.ParentID, s.Depth, s.TaskID = r.ParentID, r.Depth, r.TaskID
		if sameVisibility(r, s) {
			s.RetryOf = r.ID
		} else { // a separate chain, in a separate thread
			n.retryOf, s.Attempt = nil, 1
		}
	}
	if r := cmp.Or(n.retryOf, n.goesOn); r != nil {
		s.ThreadID, s.AgentSessionID, s.ProcessID, s.TaskID = r.ThreadID, r.AgentSessionID, r.ProcessID, r.TaskID
		s.Model, s.Effort, s.PlanMode = cmp.Or(s.Model, r.Model), cmp.Or(s.Effort, r.Effort), max(s.PlanMode, r.PlanMode)
		if s.AgentSessionID != "" {
			s.AffinityUntil = now + db.Span(e.cfg.AffinityWait)
		}
	}
	s.Lane = lane(s)
	return s
}

func insertSession(tx *db.Tx, s *sessionRow) error {
	inserted, err := tx.InsertSession(tx.Context(), queries.InsertSessionParams{
		ID: s.ID, WorkspaceID: s.WorkspaceID, AgentID: s.AgentID, ThreadID: s.ThreadID, Status: s.Status, Mode: s.Mode,
		TriggeredBy: s.TriggeredBy, TriggeredByUserID: s.TriggeredByUserID, TriggeredAt: s.TriggeredAt,
		OwnerUserID: s.OwnerUserID, Lane: s.Lane, Labels: s.Labels, Priority: s.Priority, Title: s.Title,
		Prompt: s.Prompt, Instructions: s.Instructions, UntrustedContext: s.UntrustedContext, NotBefore: s.NotBefore,
		AdmitAt: s.AdmitAt, AfterID: s.AfterID, AfterAny: s.AfterAny, OverlapHeld: s.OverlapHeld, Attempt: s.Attempt,
		RetryOf: s.RetryOf, ParentID: s.ParentID, Depth: s.Depth, AgentSessionID: s.AgentSessionID, ProcessID: s.ProcessID,
		AffinityUntil: s.AffinityUntil, CreatedAt: s.CreatedAt, QueuedAt: s.QueuedAt,
		TaskID: s.TaskID, Model: s.Model, Effort: s.Effort, PlanMode: s.PlanMode,
	})
	if err != nil {
		return fmt.Errorf("insert a session of agent %s: %w", s.AgentID, err)
	}
	if inserted == 0 {
		return errSlotTaken
	}
	tx.KeepSession(s)
	return nil
}

// sameVisibility reports whether the same people see two sessions. Only then may one continue
// the conversation of the other: what was said in a local session stays its owner's when its
// agent is now a cloud one, and the other way round (contract 8.3).
func sameVisibility(a, b *sessionRow) bool { return a.Mode == b.Mode && a.OwnerUserID == b.OwnerUserID }

// follow checks the predecessor of a new session and counts the follower on it.
func (e *Engine) follow(tx *db.Tx, s *sessionRow) error {
	p, err := tx.Session(tx.Context(), s.AfterID)
	if db.None(err) || (err == nil && (p.WorkspaceID != s.WorkspaceID || (p.Mode == api.Local && p.OwnerUserID != s.OwnerUserID))) {
		return &api.Error{
			Code: api.CodeNotFound, Detail: "The session to run after does not exist here.",
			Fields: []api.FieldError{{Field: "after", Detail: "names no session that you can see in this workspace"}},
		}
	}
	if err != nil {
		return fmt.Errorf("read predecessor %s: %w", s.AfterID, err)
	}
	if p.Status.Terminal() {
		if p.Status != api.Complete && s.AfterAny == 0 {
			return api.BadField("after", fmt.Sprintf("session %s has ended as %s; set afterAny to run after it all the same", p.ID, p.Status))
		}
		return nil
	}
	return db.One(tx.AddFollower(tx.Context(), p.ID))
}

// checkChoice refuses a model, effort or mode that the agent can't have or doesn't let its runs choose.
func checkChoice(c Caller, a *agentRow, choice api.RunChoice) error {
	var v api.Invalid
	choice.Check(&v, "", a.Type)
	a.Run.Allows(&v, choice.Model)
	if c.Run != nil && (choice.Model != "" || choice.Effort != "") {
		v.Add("model", "is for people to choose, and effort too: what a run starts runs by what its agent says")
	}
	return v.Err()
}

func checkSession(in *api.SessionInput) error {
	var v api.Invalid
	in.Title = strings.TrimSpace(in.Title)
	if n := utf8.RuneCountInString(in.Title); n > maxTitle {
		v.Add("title", fmt.Sprintf("has %d characters; at most %d fit", n, maxTitle))
	}
	v.CheckLine("title", in.Title)
	if in.Prompt != nil {
		v.CheckWritten("prompt", *in.Prompt)
	}
	v.CheckWritten("untrustedContext", in.UntrustedContext)
	v.CheckFiles(in.Files)
	if p := in.Prompt; p != nil && len(*p) > maxPrompt {
		v.Add("prompt", fmt.Sprintf("has %d bytes; at most %d fit", len(*p), maxPrompt))
	}
	if len(in.UntrustedContext) > maxContext {
		v.Add("untrustedContext", fmt.Sprintf("has %d bytes; at most %d fit", len(in.UntrustedContext), maxContext))
	}
	if p := in.Priority; p != nil && (*p < MinPriority || *p > MaxPriority) {
		v.Add("priority", fmt.Sprintf("must be %d to %d; higher runs first", MinPriority, MaxPriority))
	}
	if in.AfterAny && in.After == 0 {
		v.Add("afterAny", "needs after: name the session to wait for")
	}
	return v.Err()
}
