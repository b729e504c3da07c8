package engine

import (
	"context"
	"fmt"

	"stint/api"
	"stint/db"
	"stint/queries"
)

// newestOf is the newest session of a thread that the caller may see.
func newestOf(ctx context.Context, q queries.Querier, c Caller, id api.ThreadID) (*sessionRow, error) {
	first, err := visible(ctx, q, c, api.SessionID(id))
	if api.CodeOf(err) == api.CodeGone {
		return nil, err
	}
	if err != nil {
		return nil, db.NotFound("thread")
	}
	if api.ThreadID(first.ID) != first.ThreadID {
		return nil, db.NotFound("thread")
	}
	return laterOf(ctx, q, first)
}

func laterOf(ctx context.Context, q queries.Querier, s *sessionRow) (*sessionRow, error) {
	later, err := q.NewestOfThread(ctx, s.ThreadID)
	if db.None(err) {
		return s, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the newest session of thread %s: %w", s.ThreadID, err)
	}
	if later.ID < s.ID {
		return s, nil
	}
	return &later, nil
}

func threadRow(ctx context.Context, q queries.Querier, id api.ThreadID) (queries.Thread, error) {
	t, err := q.Thread(ctx, id)
	if db.None(err) {
		return queries.Thread{ID: id}, nil
	}
	if err != nil {
		return t, fmt.Errorf("read thread %s: %w", id, err)
	}
	return t, nil
}

// Thread returns the conversation behind sessions. Errors: not_found.
func (e *Engine) Thread(ctx context.Context, c Caller, id api.ThreadID) (out api.Thread, err error) {
	err = e.store.Read(ctx, func(tx *db.ReadTx) error {
		out, err = threadTx(ctx, tx, c, id)
		return err
	})
	return out, err
}

func threadTx(ctx context.Context, q queries.Querier, c Caller, id api.ThreadID) (api.Thread, error) {
	s, err := newestOf(ctx, q, c, id)
	if err != nil {
		return api.Thread{}, err
	}
	t, err := threadRow(ctx, q, id)
	return api.Thread{
		ID: id, AgentID: s.AgentID, State: api.ThreadState(s.Status), SessionID: s.ID,
		LastConsumed: t.LastConsumed, LastPosted: t.LastPosted, TurnEndedAt: api.At(t.TurnEndedAt),
	}, err
}

// PatchThread is a person's change to a conversation (contract 6.3): pending hands it to the
// agent again, which is a new session once the last one has ended; completed stops it. People
// can't set what workers report: state_not_yours. Errors: not_found, forbidden, conflict.
func (e *Engine) PatchThread(ctx context.Context, c Caller, id api.ThreadID, in api.ThreadPatch) (out api.ThreadChanged, err error) {
	switch in.State {
	case api.ThreadPending, api.ThreadCompleted:
	case api.ThreadActive, api.ThreadFailed:
		return out, api.Refuse(api.CodeStateNotYours, "A thread becomes "+in.State+" by what its worker reports; set pending or completed.")
	default:
		var v api.Invalid
		v.Add("state", "must be pending or completed")
		return out, v.Err()
	}
	var newest api.SessionID
	var now string
	err = e.store.Read(ctx, func(tx *db.ReadTx) error {
		s, err := newestOf(ctx, tx, c, id)
		if err != nil {
			return err
		}
		newest, now = s.ID, api.ThreadState(s.Status)
		if in.State != api.ThreadPending || !s.Status.Terminal() {
			return nil
		}
		a, err := agentOfEnded(ctx, tx, s)
		if err == nil && a.Mode != s.Mode {
			err = otherMode(s, a)
		}
		return err
	})
	if err != nil {
		return out, err
	}
	switch {
	case in.State == now:
	case in.State == api.ThreadPending && now == api.ThreadActive:
		return out, api.Refuse(api.CodeConflict, "The agent is at work on it: write it a message, or stop it first.")
	case in.State == api.ThreadPending:
		var again api.Retried
		if again, err = e.RetrySession(ctx, c, newest); api.CodeOf(err) == api.CodeSessionRunning {
			err = nil // somebody else handed it over at the same instant
		}
		out.Changed = err == nil && again.Changed
	case now == api.ThreadFailed:
		return out, api.Refuse(api.CodeConflict, "It has ended, and not well; what has ended stays as it is.")
	default:
		var stopped api.Changed
		stopped, err = e.StopSession(ctx, c, newest)
		out.Changed = stopped.Changed
	}
	if err != nil {
		return out, err
	}
	out.Thread, err = e.Thread(ctx, c, id)
	return out, err
}

// noteTurn moves the thread's cursor: a turn was finished, and had taken in the messages up to
// one (contract 6.4).
func (e *Engine) noteTurn(tx *db.Tx, s *sessionRow, consumed api.MessageID) error {
	if consumed != 0 {
		found, err := tx.MessagesAfter(tx.Context(), queries.MessagesAfterParams{ThreadID: s.ThreadID, After: consumed - 1, N: 1})
		if err != nil {
			return fmt.Errorf("read a message of thread %s: %w", s.ThreadID, err)
		}
		if len(found) == 0 || found[0].Message.ID != consumed { // one from the future would swallow later messages
			var v api.Invalid
			v.Add("lastConsumed", "is no message of this session's thread")
			return v.Err()
		}
	}
	err := tx.NoteTurn(tx.Context(), queries.NoteTurnParams{ID: s.ThreadID, LastConsumed: consumed, TurnEndedAt: db.Micros(tx.Now)})
	if err != nil {
		return fmt.Errorf("note the end of a turn of session %s: %w", s.ID, err)
	}
	t, err := threadRow(tx.Context(), tx, s.ThreadID)
	if err != nil {
		return err
	}
	if err := tx.ConsumeTaken(tx.Context(), queries.ConsumeTakenParams{ThreadID: s.ThreadID, After: t.LastConsumed}); err != nil {
		return fmt.Errorf("note what a turn of session %s had taken in: %w", s.ID, err)
	}
	return e.forgetSecrets(tx, s)
}

// threadEvents say what happened to a conversation (contract 2.7). That it waits again is said
// by its session's event.
var threadEvents = map[string]string{api.ThreadActive: api.EventThreadActive, api.ThreadCompleted: api.EventThreadCompleted, api.ThreadFailed: api.EventThreadFailed}

// logThread logs the state that a session has moved its thread to: one that hasn't ended is
// its thread's newest. The session of a command is not a conversation.
func (e *Engine) logThread(tx *db.Tx, s *sessionRow, actor, state string) error {
	a, err := agentEvenDeleted(tx.Context(), tx, s.AgentID)
	if err != nil {
		return fmt.Errorf("read agent %s: %w", s.AgentID, err)
	}
	if a.Type == api.TypeCommand {
		return nil
	}
	data := api.EventData{"thread": s.ThreadID.String()}
	if s.Status.Terminal() && s.Outcome != "" {
		data["outcome"] = s.Outcome
	}
	return e.logSession(tx, s, actor, threadEvents[state], data)
}

const catchUp = 200 // messages and answers that a claim includes

// conversation is what people said that no finished turn of the thread has taken in.
func conversation(tx *db.Tx, s *sessionRow) (*api.Conversation, error) {
	t, err := threadRow(tx.Context(), tx, s.ThreadID)
	if err != nil {
		return nil, err
	}
	out := &api.Conversation{LastConsumed: t.LastConsumed, Answered: []api.Prompt{}}
	if out.Messages, err = messagesLeft(tx.Context(), tx, s.ThreadID, t.LastConsumed); err != nil {
		return nil, err
	}
	if s.Fence <= 1 && s.StartedAt == db.Micros(tx.Now) {
		return out, nil // nothing was said or asked before the first claim
	}
	out.TurnEnded = t.TurnEndedAt >= s.StartedAt // one session of a thread runs at a time
	rows, err := tx.AnsweredSince(tx.Context(), queries.AnsweredSinceParams{SessionID: s.ID, Since: t.TurnEndedAt, N: catchUp})
	if err != nil {
		return nil, fmt.Errorf("read what was answered in session %s: %w", s.ID, err)
	}
	for _, p := range rows {
		shown, err := toPrompt(p)
		if err != nil {
			return nil, err
		}
		out.Answered = append(out.Answered, shown)
	}
	return out, nil
}
