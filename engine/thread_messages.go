package engine

import (
	"context"
	"fmt"
	"strings"

	"stint/account"
	"stint/api"
	"stint/db"
	"stint/queries"
)

const (
	maxMessageText  = 64 << 10 // bytes
	betweenMessages = "\n\n"
)

// PostMessage sends a message to the agent of a session's thread (contract 6.4). While the
// thread's newest session waits or runs, the message queues and is taken in between turns;
// when it has ended, the message becomes the prompt of a new session of the thread. One for now is
// taken in by the turn that runs, which not every type of agent can (contract 6.6). A client
// id and text repeated by one user is one message. Rights: as for an answer, and for a new
// session as to trigger the agent. Errors: not_found, forbidden, invalid,
// idempotency_key_reused for a client id with another text, conflict for an agent that doesn't
// converse and for an ended conversation whose agent has meanwhile changed its mode.
func (e *Engine) PostMessage(ctx context.Context, c Caller, id api.SessionID, in api.MessageInput) (out api.Posted, err error) {
	var v api.Invalid
	v.CheckText("text", in.Text, maxMessageText)
	v.CheckWritten("text", in.Text)
	v.CheckText("clientId", in.ClientID, 100)
	v.CheckLine("clientId", in.ClientID)
	v.CheckFiles(in.Files)
	if strings.TrimSpace(in.Text) == "" {
		v.Add("text", "is missing: write something")
	}
	if err := v.Err(); err != nil {
		return out, err
	}
	err = e.writeAs(ctx, c, func(tx *db.Tx) error {
		out, err = e.postTx(tx, c, id, in)
		return err
	})
	return out, err
}

func (e *Engine) postTx(tx *db.Tx, c Caller, id api.SessionID, in api.MessageInput) (out api.Posted, err error) {
	s, err := answerable(tx.Context(), tx, c, id)
	if err != nil {
		return out, err
	}
	if s, err = laterOf(tx.Context(), tx, s); err != nil {
		return out, err
	}
	a, err := takesMessages(tx.Context(), tx, s)
	if err != nil {
		return out, err
	}
	if err := maySteer(a.Type, in); err != nil {
		return out, err
	}
	if s, err = e.say(tx, c, s, a, in, &out); err != nil {
		return out, err
	}
	out.Session, err = e.present(tx.Context(), tx, s, a, db.Micros(tx.Now))
	return out, err
}

// answerable reads a session that the caller may see, answer and write to.
func answerable(ctx context.Context, q queries.Querier, c Caller, id api.SessionID) (*sessionRow, error) {
	s, err := visible(ctx, q, c, id)
	if err != nil {
		return nil, err
	}
	return s, c.MayWith(s, account.ToAnswer)
}

// takesMessages refuses to continue the conversation of a session whose agent can't.
func takesMessages(ctx context.Context, q queries.Querier, s *sessionRow) (*agentRow, error) {
	a, err := agentOfEnded(ctx, q, s)
	switch {
	case err != nil:
		return nil, err
	case s.Status.Terminal() && s.Mode != a.Mode:
		return nil, otherMode(s, a)
	case a.Type == api.TypeCommand:
		return nil, &api.Error{Code: api.CodeConflict, Status: s.Status, Detail: "This agent is a command, which reads its prompt once and takes no messages. Run it again with another prompt."}
	}
	return a, nil
}

// otherMode refuses to continue a conversation that other people would then see than those who
// saw it so far.
func otherMode(s *sessionRow, a *agentRow) error {
	return &api.Error{
		Code: api.CodeConflict, Status: s.Status,
		Detail: fmt.Sprintf("This conversation was %s and the agent is %s now, which other people see. Run the agent anew; what was said here stays here.", s.Mode, a.Mode),
	}
}

// say stores a message where it belongs and returns the session it is in.
func (e *Engine) say(tx *db.Tx, c Caller, s *sessionRow, a *agentRow, in api.MessageInput, out *api.Posted) (*sessionRow, error) {
	key := ""
	if in.ClientID != "" {
		key = c.UserID.String() + "/" + in.ClientID // each user has separate ids
		known, err := tx.MessageByClientID(tx.Context(), queries.MessageByClientIDParams{ThreadID: s.ThreadID, ClientID: key})
		if err == nil && known.Text != in.Text {
			return nil, &api.Error{
				Code: api.CodeIdempotencyReuse, Detail: "This clientId was used for a message with another text in this conversation.",
				Fields: []api.FieldError{{Field: "clientId", Detail: "use a new one for a new message"}},
			}
		}
		if err == nil {
			said := toMessage(known, c.Name)
			out.Message = &said
			return s, nil
		}
		if !db.None(err) {
			return nil, fmt.Errorf("read a message: %w", err)
		}
	}
	m := queries.InsertMessageParams{ID: api.MessageID(tx.NewID()), ThreadID: s.ThreadID, SessionID: s.ID, ClientID: key, UserID: c.UserID, Text: in.Text, At: db.Micros(tx.Now), Now: db.Flag(in.Now), Files: int64(len(in.Files))}
	if s.Status.Terminal() {
		if err := c.MayTrigger(a.Mode); err != nil {
			return nil, err
		}
		next, err := e.followUp(tx, s, a, followUp{user: c.UserID, actor: c.Actor(), prompt: in.Text, files: in.Files})
		if err != nil {
			return nil, err
		}
		if in.ClientID == "" {
			return next, nil
		}
		// Stored so that a repetition is recognized; it is the prompt, so it counts as taken
		// in.
		m.SessionID = next.ID
		if _, err := tx.InsertMessage(tx.Context(), m); err != nil {
			return nil, fmt.Errorf("keep a message to session %s: %w", s.ID, err)
		}
		return next, tx.NoteTurn(tx.Context(), queries.NoteTurnParams{ID: s.ThreadID, LastConsumed: m.ID})
	}
	if _, err := tx.InsertMessage(tx.Context(), m); err != nil {
		return nil, fmt.Errorf("keep a message to session %s: %w", s.ID, err)
	}
	if err := attach(tx, s.ID, m.ID, in.Files); err != nil {
		return nil, err
	}
	files, err := attachmentsOf(tx.Context(), tx, s.ID, m.ID, m.ID)
	if err != nil {
		return nil, err
	}
	if err := tx.NotePosted(tx.Context(), queries.NotePostedParams{ID: s.ThreadID, LastPosted: m.ID}); err != nil {
		return nil, fmt.Errorf("note a message to session %s: %w", s.ID, err)
	}
	item := queries.InsertItemParams{SessionID: s.ID, Kind: api.ItemMessage, Text: in.Text, UserID: c.UserID, ClientID: "say-" + m.ID.String()}
	if len(files) > 0 {
		item.CallID = m.ID.String() // by which they are found
	}
	err = e.addItem(tx, item)
	if err != nil {
		return nil, err
	}
	out.Message = &api.Message{ID: m.ID, SessionID: m.SessionID, UserID: m.UserID, UserName: c.Name, Text: m.Text, At: api.At(m.At), Now: in.Now, Files: files}
	e.messages.wake(tx, s.ID)
	return s, e.logSession(tx, s, c.Actor(), api.EventMessagePosted, api.EventData{"message": m.ID.String()})
}

// followUp is a session that continues the conversation of an ended one.
type followUp struct {
	user   api.UserID
	actor  string
	prompt string
	files  []api.FileInput
}

func (e *Engine) followUp(tx *db.Tx, s *sessionRow, a *agentRow, f followUp) (*sessionRow, error) {
	return e.newSession(tx, a, newSession{
		by: api.ByUser, user: f.user, actor: f.actor, at: manualTrigger(a, db.Micros(tx.Now)), attempt: 1,
		in: api.SessionInput{Prompt: &f.prompt, Priority: &s.Priority, Files: f.files}, goesOn: s,
	})
}

// goOn makes a session of what people said to one that completed before it could take that in:
// nothing is lost, nobody has to say it again. What doesn't fit into a prompt follows as
// messages.
func (e *Engine) goOn(tx *db.Tx, s *sessionRow) error {
	if s.StopRequestedAt != 0 {
		return nil
	}
	t, err := threadRow(tx.Context(), tx, s.ThreadID)
	if err != nil || t.LastPosted <= t.LastConsumed {
		return err
	}
	left, err := messagesLeft(tx.Context(), tx, s.ThreadID, t.LastConsumed)
	if err != nil || len(left) == 0 {
		return err
	}
	a, err := tx.Agent(tx.Context(), s.AgentID)
	if db.None(err) {
		return nil // it was deleted meanwhile
	}
	if err != nil {
		return fmt.Errorf("read agent %s: %w", s.AgentID, err)
	}
	if a.Type == api.TypeCommand || a.Mode != s.Mode {
		return nil // it takes no messages any more, or others would read them: they stay where they were said
	}
	var said []string
	var by api.UserID
	for _, m := range left {
		said = append(said, m.Text)
		role, err := account.RoleOf(tx.Context(), tx, s.WorkspaceID, m.UserID)
		if err != nil {
			return err
		}
		if (Caller{Role: role}).MayTrigger(a.Mode) == nil {
			by = m.UserID
		}
	}
	if by == 0 {
		return nil // none of them may start the agent now; the thread keeps what they said
	}
	last := left[len(left)-1] // what was said after it goes to the claim on the new session
	next, err := e.followUp(tx, s, &a, followUp{user: by, actor: by.String(), prompt: strings.Join(said, betweenMessages)})
	if err != nil {
		return err
	}
	for _, m := range left {
		if err := attachAgain(tx, next.ID, m.SessionID, m.ID); err != nil {
			return err
		}
	}
	return tx.NoteTurn(tx.Context(), queries.NoteTurnParams{ID: s.ThreadID, LastConsumed: last.ID})
}

// Messages returns what people wrote to a session's thread after a message, oldest first: at
// most 200 that together fit into a prompt. Errors: not_found.
func (e *Engine) Messages(ctx context.Context, c Caller, id api.SessionID, after api.MessageID) (out api.Messages, err error) {
	err = e.store.Read(ctx, func(tx *db.ReadTx) error {
		s, err := visible(ctx, tx, c, id)
		if err != nil {
			return err
		}
		t, err := threadRow(ctx, tx, s.ThreadID)
		if err != nil {
			return err
		}
		out.LastConsumed = t.LastConsumed
		rows, err := tx.MessagesAfter(ctx, queries.MessagesAfterParams{ThreadID: s.ThreadID, After: after, N: catchUp})
		if err != nil {
			return fmt.Errorf("read messages of thread %s: %w", s.ThreadID, err)
		}
		all := make([]queries.LeftMessagesRow, 0, len(rows))
		for _, r := range rows {
			all = append(all, queries.LeftMessagesRow(r))
		}
		out.Items, err = fitting(ctx, tx, all)
		return err
	})
	return out, err
}

// messagesLeft reads the messages after one that no finished turn has taken in, as many as fit.
func messagesLeft(ctx context.Context, q queries.Querier, thread api.ThreadID, after api.MessageID) ([]api.Message, error) {
	rows, err := q.LeftMessages(ctx, queries.LeftMessagesParams{ThreadID: thread, After: after, N: catchUp})
	if err != nil {
		return nil, fmt.Errorf("read messages of thread %s: %w", thread, err)
	}
	return fitting(ctx, q, rows)
}

// fitting are no more messages than fit into a prompt with a blank line between them; one always
// does.
func fitting(ctx context.Context, q queries.Querier, rows []queries.LeftMessagesRow) (out []api.Message, err error) {
	out, size := []api.Message{}, 0
	for _, r := range rows {
		m := toMessage(r.Message, r.Author)
		if size += len(m.Text) + len(betweenMessages); size > maxPrompt+len(betweenMessages) {
			break
		}
		if r.Message.Files > 0 {
			if m.Files, err = attachmentsOf(ctx, q, m.SessionID, m.ID, m.ID); err != nil {
				return nil, err
			}
		}
		out = append(out, m)
	}
	return out, nil
}

func toMessage(m queries.Message, author string) api.Message {
	return api.Message{
		ID: m.ID, SessionID: m.SessionID, UserID: m.UserID, UserName: author, Text: m.Text, At: api.At(m.At),
		Now: m.Now != 0, TakenAt: api.At(m.TakenAt),
	}
}
