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

// Try is a delivery that is to be sent now.
type Try struct {
	ID      api.DeliveryID
	Number  int64 // of the try, from 1
	URL     string
	Message string
	Body    string
	Secrets [][]byte // each signs
}

// TakeDeliveries begins a try of up to n due deliveries, the oldest first. One
// whose end nobody reports is due again after a minute.
func (e *Engine) TakeDeliveries(ctx context.Context, n int) ([]Try, error) {
	var out []Try
	err := e.write(ctx, func(tx *db.Tx) error {
		out = nil
		now := micros(tx.Now)
		due, err := tx.DueDeliveries(wctx(), queries.DueDeliveriesParams{Now: now, N: int64(n)})
		if err != nil {
			return fmt.Errorf("read due deliveries: %w", err)
		}
		for _, id := range due {
			if err := one(tx.TryDelivery(wctx(), queries.TryDeliveryParams{Now: now, NextAt: micros(tx.Now.Add(tryLife)), ID: id})); err != nil {
				return fmt.Errorf("begin a try of delivery %s: %w", id, err)
			}
			d, err := tx.Delivery(wctx(), id)
			if err != nil {
				return fmt.Errorf("read delivery %s: %w", id, err)
			}
			w, err := tx.Webhook(wctx(), d.WebhookID)
			if err != nil {
				return fmt.Errorf("read webhook %s: %w", d.WebhookID, err)
			}
			try := Try{ID: id, Number: d.Tries, URL: w.Url, Message: d.Message, Body: d.Body, Secrets: [][]byte{w.Secret}}
			if w.OldUntil > now {
				try.Secrets = append(try.Secrets, w.OldSecret)
			}
			out = append(out, try)
		}
		return nil
	})
	return out, err
}

// Sent is what became of a try. StatusCode 0 means that there was no answer, and
// Problem says why.
type Sent struct {
	StatusCode int
	Answer     string
	Problem    string
	NotBefore  time.Time // the receiver asked not to be tried again before; zero = it didn't
}

// EndTry notes what became of a try. After a day of failures, or when the
// receiver answers that it is gone for good (410), the webhook is disabled.
func (e *Engine) EndTry(ctx context.Context, t Try, got Sent) error {
	return e.write(ctx, func(tx *db.Tx) error {
		d, err := tx.Delivery(wctx(), t.ID)
		if err != nil {
			return fmt.Errorf("read delivery %s: %w", t.ID, err)
		}
		if d.State != string(api.DeliveryWaiting) || d.Tries != t.Number {
			return nil // it was dropped, or another try has begun
		}
		now := micros(tx.Now)
		p := queries.EndDeliveryParams{
			StatusCode: int64(got.StatusCode), Answer: cutAt(got.Answer, maxAnswer), Problem: cutAt(got.Problem, maxAnswer), ID: t.ID, Tries: t.Number,
		}
		gone := got.StatusCode == 410
		switch {
		case got.StatusCode >= 200 && got.StatusCode < 300:
			p.State, p.EndedAt = string(api.DeliveryDelivered), now
		case gone || t.Number > int64(len(deliveryPauses)):
			p.State, p.EndedAt = string(api.DeliveryFailed), now
		default:
			p.State = string(api.DeliveryWaiting)
			p.NextAt = max(micros(tx.Now.Add(deliveryPauses[t.Number-1])), micros(got.NotBefore))
			tx.AfterCommit(e.deliverable.wake)
		}
		if err := one(tx.EndDelivery(wctx(), p)); err != nil {
			return fmt.Errorf("end a try of delivery %s: %w", t.ID, err)
		}
		if p.State != string(api.DeliveryFailed) || d.AgainOf != 0 || d.Type == testMessage {
			return nil
		}
		reason := "messages failed for a day"
		if gone {
			reason = "the receiver answered that it is gone for good (410)"
		}
		return e.disableWebhook(tx, d.WebhookID, reason)
	})
}

func (e *Engine) disableWebhook(tx *db.Tx, id api.WebhookID, reason string) error {
	w, err := tx.Webhook(wctx(), id)
	if err != nil {
		return fmt.Errorf("read webhook %s: %w", id, err)
	}
	if _, err := tx.DropWaiting(wctx(), queries.DropWaitingParams{Problem: "the webhook was disabled: " + reason, EndedAt: micros(tx.Now), WebhookID: id}); err != nil {
		return fmt.Errorf("drop what waits for webhook %s: %w", id, err)
	}
	if w.Enabled == 0 {
		return nil
	}
	w.Enabled, w.DisabledReason = 0, reason
	if err := e.saveWebhook(tx, &w); err != nil {
		return err
	}
	_, err = e.logWebhook(tx, &w, actorSystem, evWebhookDisabled, api.EventData{"reason": reason})
	return err
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
