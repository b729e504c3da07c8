package engine

import (
	"context"
	"fmt"
	"strings"
	"time"

	"stint/api"
	"stint/db"
	"stint/queries"
)

// maySteer refuses a message for the running turn of an agent that takes none in. It is refused and
// not kept for later, so that nobody waits for what can't happen. contract 6.6
func maySteer(t api.AgentType, in api.MessageInput) error {
	if !in.Now || t.Steers() {
		return nil
	}
	return api.BadField("now", fmt.Sprintf("isn't possible with an agent of type %s, which takes nothing in while its turn runs: leave it out, and the message is taken in after the turn", t))
}

// AwaitMessages is Messages, held until there are some or wait is over.
func (e *Engine) AwaitMessages(ctx context.Context, c Caller, id api.SessionID, after api.MessageID, wait time.Duration) (out api.Messages, err error) {
	done := func() {}
	defer func() { done() }()
	err = untilFound(ctx, wait, func() (found bool, wake <-chan struct{}, err error) {
		done()
		wake, done = e.messages.watch(id)
		out, err = e.Messages(ctx, c, id, after)
		return len(out.Items) > 0, wake, err
	})
	return out, err
}

const (
	maxTaken   = 200 // messages in one report
	takenWords = 160 // bytes of a message that the transcript repeats where it was taken in
)

// take notes that the running turn has taken in messages, each once, and shows where. It reports
// whether one of them was new.
func (e *Engine) take(tx *db.Tx, s *sessionRow, ids []api.MessageID) (some bool, err error) {
	for _, id := range ids {
		m, err := tx.MessageOfThread(tx.Context(), queries.MessageOfThreadParams{ID: id, ThreadID: s.ThreadID})
		if db.None(err) {
			return some, api.BadField("taken", "names what is no message of this session's thread")
		}
		if err != nil {
			return some, fmt.Errorf("read message %s: %w", id, err)
		}
		n, err := tx.TakeMessage(tx.Context(), queries.TakeMessageParams{TakenAt: db.Micros(tx.Now), ID: id, ThreadID: s.ThreadID})
		if err != nil {
			return some, fmt.Errorf("note that message %s was taken in: %w", id, err)
		}
		if n == 0 {
			continue
		}
		some = true
		text := "Taken in while it works: “" + api.Excerpt(strings.Join(strings.Fields(m.Text), " "), takenWords) + "”"
		if err := e.addItem(tx, queries.InsertItemParams{SessionID: s.ID, Kind: api.ItemStatus, Text: text, ClientID: "taken-" + id.String()}); err != nil {
			return some, err
		}
	}
	return some, nil
}
