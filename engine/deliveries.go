package engine

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/go-json-experiment/json"

	"stint/api"
	"stint/db"
	"stint/queries"
)

const (
	tryLife      = time.Minute         // after which a try that nobody ended is made again
	deliveryKept = 30 * 24 * time.Hour // how long what became of a message is kept
	maxAnswer    = 1 << 10             // bytes of an answer that are kept
	testMessage  = "stint.test"
)

// deliveryPauses are the pauses after each failed try: eight tries over a day
// (the schedule that the Standard Webhooks specification proposes, and a last one).
var deliveryPauses = []time.Duration{
	5 * time.Second, 5 * time.Minute, 30 * time.Minute, 2 * time.Hour, 5 * time.Hour, 8 * time.Hour, 8 * time.Hour,
}

// messageTypes are what webhooks can tell of: the types of events, with the
// noun they are about before them.
var messageTypes = func() []string {
	all := []string{testMessage}
	for _, t := range eventTypes {
		all = append(all, messageType(t))
	}
	slices.Sort(all)
	return all
}()

// messageType names an event for other programs: what happens to sessions is
// told as an agent's, as agent.session_queued is.
func messageType(event string) string {
	if noun, _, _ := strings.Cut(event, "_"); noun == "worker" || noun == "webhook" || noun == "agent" {
		return noun + "." + event[len(noun)+1:]
	}
	return "agent." + event
}

// MessageTypes lists the types that a webhook can choose from.
func MessageTypes() []string { return slices.Clone(messageTypes) }

// cloudEvent is a message's body (CloudEvents 1.0, JSON format).
type cloudEvent struct {
	SpecVersion     string        `json:"specversion"`
	ID              string        `json:"id"`
	Source          string        `json:"source"`
	Type            string        `json:"type"`
	Subject         string        `json:"subject,omitzero"`
	Time            api.Time      `json:"time"`
	DataContentType string        `json:"datacontenttype"`
	Data            api.EventData `json:"data"`
}

func message(workspace api.WorkspaceID, ev api.Event, kind, id string) cloudEvent {
	data := api.EventData{"seq": ev.Seq, "actor": ev.Actor}
	if ev.AgentID != 0 {
		data["agentId"] = ev.AgentID.String()
	}
	subject := ev.AgentID.String()
	if ev.SessionID != 0 {
		subject = ev.SessionID.String()
		data["sessionId"] = subject
	}
	for k, v := range ev.Data {
		data[k] = v
	}
	return cloudEvent{
		SpecVersion: "1.0", ID: id, Source: "/api/v1/workspaces/" + workspace.String(), Type: kind, Subject: subject,
		Time: ev.At, DataContentType: "application/json", Data: data,
	}
}

// ExpandWebhooks makes deliveries of the events that webhooks haven't looked at
// yet. How far a webhook has read moves in the transaction that makes its
// deliveries, so that none is lost and none is made twice.
func (e *Engine) ExpandWebhooks(ctx context.Context) error {
	for {
		var behind []api.WebhookID
		err := e.store.Read(ctx, func(tx *db.ReadTx) error {
			newest, err := tx.Counter(ctx, "event")
			if err != nil {
				return err
			}
			behind, err = tx.WebhooksBehind(ctx, queries.WebhooksBehindParams{Newest: newest, N: batch})
			return err
		})
		if err != nil || len(behind) == 0 {
			return err
		}
		for _, id := range behind {
			if err := e.write(ctx, func(tx *db.Tx) error { return e.expand(tx, id) }); err != nil {
				return fmt.Errorf("make the deliveries of webhook %s: %w", id, err)
			}
		}
	}
}

func (e *Engine) expand(tx *db.Tx, id api.WebhookID) error {
	w, err := tx.Webhook(wctx(), id)
	if none(err) || (err == nil && w.Enabled == 0) {
		return nil
	}
	if err != nil {
		return err
	}
	if gone, err := e.lostReader(tx, &w); err != nil || gone {
		return err
	}
	newest, err := tx.Counter(wctx(), "event")
	if err != nil {
		return err
	}
	rows, err := tx.EventsAfter(wctx(), queries.EventsAfterParams{After: w.AfterSeq, WorkspaceID: w.WorkspaceID, Me: w.CreatedBy, N: batch})
	if err != nil {
		return err
	}
	sight := newEyes(tx, w.WorkspaceID, w.CreatedBy)
	for _, r := range rows {
		ev := toEvent(r.Event)
		ev.AgentID = api.AgentID(r.Agent)
		if err := sight.dim(wctx(), &ev); err != nil {
			return err
		}
		if err := e.deliverEvent(tx, &w, ev); err != nil {
			return err
		}
	}
	last := newest
	if n := len(rows); n > 0 {
		// The counter lags behind the events of the transaction that runs.
		last = max(last, rows[n-1].Event.Seq)
		if n == batch {
			last = rows[n-1].Event.Seq
		}
	}
	return one(tx.MoveWebhook(wctx(), queries.MoveWebhookParams{AfterSeq: max(last, w.AfterSeq), ID: id, FromSeq: w.AfterSeq}))
}

// deliverEvent makes the deliveries of one event. A session that was queued in
// the step that made it is told of twice, as made and as queued.
func (e *Engine) deliverEvent(tx *db.Tx, w *queries.Webhook, ev api.Event) error {
	id := "evt-" + strconv.FormatInt(ev.Seq, 10)
	if err := e.deliver(tx, w, message(w.WorkspaceID, ev, messageType(ev.Type), id)); err != nil {
		return err
	}
	if ev.Type == evSessionCreated && ev.Data["to"] == string(api.Queued) {
		return e.deliver(tx, w, message(w.WorkspaceID, ev, messageType(evSessionQueued), id+"-queued"))
	}
	return nil
}

func (e *Engine) deliver(tx *db.Tx, w *queries.Webhook, m cloudEvent) error {
	if len(w.Types) > 0 && !slices.Contains(w.Types, m.Type) && m.Type != testMessage {
		return nil
	}
	body, err := json.Marshal(m, json.Deterministic(true))
	if err != nil {
		return fmt.Errorf("write a message: %w", err)
	}
	return e.putDelivery(tx, queries.Delivery{WebhookID: w.ID, Message: m.ID, Type: m.Type, Body: string(body)})
}

func (e *Engine) putDelivery(tx *db.Tx, d queries.Delivery) error {
	if d.ID == 0 {
		d.ID = api.DeliveryID(tx.NewID())
	}
	now := micros(tx.Now)
	err := tx.InsertDelivery(wctx(), queries.InsertDeliveryParams{
		ID: d.ID, WebhookID: d.WebhookID, Message: d.Message, Type: d.Type, Body: d.Body, NextAt: now, AgainOf: d.AgainOf, CreatedAt: now,
	})
	if err != nil {
		return fmt.Errorf("insert a delivery of webhook %s: %w", d.WebhookID, err)
	}
	tx.AfterCommit(e.deliverable.wake)
	return nil
}

// NextDelivery returns when the next delivery is due; the zero time when none waits.
func (e *Engine) NextDelivery(ctx context.Context) (next time.Time, err error) {
	err = e.store.Read(ctx, func(tx *db.ReadTx) error {
		at, err := tx.NextDelivery(ctx, micros(e.Now()))
		if none(err) {
			return nil
		}
		next = time.UnixMicro(at)
		return err
	})
	return next, err
}

// Deliverable returns a channel that is closed when there may be something to
// deliver. Take it before you look.
func (e *Engine) Deliverable() <-chan struct{} { return e.deliverable.wait() }

// dropDeliveries forgets what became of old messages.
func (e *Engine) dropDeliveries(ctx context.Context) (time.Time, error) {
	before := micros(e.Now().Add(-deliveryKept))
	return time.Time{}, e.eachDue(ctx, "forget an old delivery", func(tx *db.ReadTx, n int64) ([]int64, error) {
		ids, err := tx.OldDeliveries(ctx, queries.OldDeliveriesParams{Before: before, N: n})
		out := make([]int64, 0, len(ids))
		for _, id := range ids {
			out = append(out, int64(id))
		}
		return out, err
	}, func(tx *db.Tx, id int64) error {
		_, err := tx.DropDelivery(wctx(), api.DeliveryID(id))
		return err
	})
}

// cutAt cuts a text to at most n bytes, between characters.
func cutAt(text string, n int) string {
	if len(text) <= n {
		return text
	}
	for n > 0 && !utf8.RuneStart(text[n]) {
		n--
	}
	return text[:n]
}
