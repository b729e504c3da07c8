package engine

import (
	"context"
	"fmt"
	"time"

	"stint/api"
	"stint/db"
	"stint/queries"
)

// DeliveryAttempt is a delivery that is to be sent now.
type DeliveryAttempt struct {
	ID        api.DeliveryID
	WebhookID api.WebhookID
	Number    int64 // of the try, from 1
	URL       string
	Message   string
	Body      string
	Secrets   [][]byte // each signs
	Note      *Note    // what a channel tells; nil for a webhook's message
}

// TakeDeliveries begins a try of up to n deliveries that are due at now, the oldest first, and
// of no webhook more than places says; nil means any number. One whose end nobody reports is
// due again after a minute.
func (e *Engine) TakeDeliveries(ctx context.Context, now time.Time, n int, workers func(api.WebhookID) int) ([]DeliveryAttempt, error) {
	due, err := e.dueDeliveries(ctx, now, n, workers)
	if err != nil || len(due) == 0 {
		return nil, err
	}
	var out []DeliveryAttempt
	err = e.write(ctx, func(tx *db.Tx) error {
		out = nil
		for _, id := range due {
			t, ok, err := e.beginTry(tx, id)
			if err != nil {
				return err
			}
			if ok {
				out = append(out, t)
			}
		}
		return nil
	})
	return out, err
}

// dueDeliveries finds what TakeDeliveries begins. What waits for a webhook without places is
// skipped, so that it delays no other.
func (e *Engine) dueDeliveries(ctx context.Context, now time.Time, n int, workers func(api.WebhookID) int) (out []api.DeliveryID, err error) {
	taken := map[api.WebhookID]int{}
	err = e.store.ReadTimer(ctx, func(tx *db.ReadTx) error {
		p := queries.DueDeliveriesParams{Now: db.Micros(now), N: batch}
		for len(out) < n {
			rows, err := tx.DueDeliveries(ctx, p)
			if err != nil {
				return fmt.Errorf("read due deliveries: %w", err)
			}
			for _, d := range rows {
				if len(out) < n && (workers == nil || taken[d.WebhookID] < workers(d.WebhookID)) {
					taken[d.WebhookID]++
					out = append(out, d.ID)
				}
				p.FromAt, p.After = d.NextAt, d.ID
			}
			if len(rows) < batch {
				return nil
			}
		}
		return nil
	})
	return out, err
}

// beginTry begins a try, unless the delivery has been dropped or begun meanwhile.
func (e *Engine) beginTry(tx *db.Tx, id api.DeliveryID) (t DeliveryAttempt, ok bool, err error) {
	now := db.Micros(tx.Now)
	d, err := tx.Delivery(tx.Context(), id)
	if err != nil {
		return t, false, fmt.Errorf("read delivery %s: %w", id, err)
	}
	if d.PartOf != 0 {
		return t, false, nil // it goes with another
	}
	w, err := tx.Webhook(tx.Context(), d.WebhookID)
	if db.None(err) {
		return t, false, nil // what waited was dropped with it
	}
	if err != nil {
		return t, false, fmt.Errorf("read webhook %s: %w", d.WebhookID, err)
	}
	if w.Scope != "" && d.State == string(api.DeliveryWaiting) {
		if ready, err := e.readyToTell(tx, &w, &d); err != nil || !ready {
			return t, false, err
		}
	}
	n, err := tx.TryDelivery(tx.Context(), queries.TryDeliveryParams{Now: now, NextAt: db.Micros(tx.Now.Add(attemptTimeout)), ID: id})
	if err != nil {
		return t, false, fmt.Errorf("begin a try of delivery %s: %w", id, err)
	}
	if n == 0 {
		return t, false, nil
	}
	t = DeliveryAttempt{ID: id, WebhookID: w.ID, Number: d.Tries + 1, URL: w.Url, Message: d.Message, Body: d.Body, Secrets: [][]byte{w.Secret}}
	if w.OldUntil > now {
		t.Secrets = append(t.Secrets, w.OldSecret)
	}
	if w.Scope != "" {
		note, err := wholeNote(tx, &d)
		if err != nil {
			return t, false, err
		}
		t.Note = &note
	}
	return t, true, nil
}

// readyToTell reports whether a channel's message is to be told now, and gathers what goes with
// it.
func (e *Engine) readyToTell(tx *db.Tx, w *queries.Webhook, d *queries.Delivery) (bool, error) {
	parts, err := tx.PartsOf(tx.Context(), d.ID)
	if err != nil {
		return false, fmt.Errorf("read what is told with delivery %s: %w", d.ID, err)
	}
	if len(parts) == 0 { // a message of several is told as it was first
		if dropped, err := dropSettled(tx, w, d); err != nil || dropped {
			return false, err
		}
	}
	if held, err := e.holdBack(tx, w, d); err != nil || held {
		return false, err
	}
	return true, e.join(tx, w, d)
}

// dropSettled ends a delivery that needs no telling any more, or that isn't for the channel's
// reader any more, and reports whether it did.
func dropSettled(tx *db.Tx, w *queries.Webhook, d *queries.Delivery) (bool, error) {
	if d.State != string(api.DeliveryWaiting) {
		return false, nil
	}
	why, err := settled(tx, d)
	if err == nil && why == "" {
		why, err = outOfReach(tx, w, d)
	}
	if err != nil || why == "" {
		return false, err
	}
	if err := db.One(tx.DropWaitingOne(tx.Context(), queries.DropWaitingOneParams{Problem: why, EndedAt: db.Micros(tx.Now), ID: d.ID})); err != nil {
		return false, fmt.Errorf("drop delivery %s: %w", d.ID, err)
	}
	return true, nil
}

// Sent is the outcome of a try. StatusCode 0 means that there was no answer, and Problem says
// why, unless the message was taken by something that answers without one.
type Sent struct {
	Taken      bool // a mail server's yes
	StatusCode int
	Answer     string
	Problem    string
	NotBefore  time.Time // the receiver asked for no try before this; zero = it didn't
}

// EndTry notes the outcome of a try. The webhook is disabled when the receiver answers that it
// is gone for good (410), and when a message failed for a day and no other was delivered
// meanwhile: a single message that a receiver never accepts is given up by itself.
func (e *Engine) EndTry(ctx context.Context, t DeliveryAttempt, got Sent) error {
	return e.write(ctx, func(tx *db.Tx) error {
		d, err := tx.Delivery(tx.Context(), t.ID)
		if err != nil {
			return fmt.Errorf("read delivery %s: %w", t.ID, err)
		}
		if d.State != string(api.DeliveryWaiting) || d.Tries != t.Number {
			return nil // it was dropped, or another try has begun
		}
		now := db.Micros(tx.Now)
		p := queries.EndDeliveryParams{
			StatusCode: int64(got.StatusCode), Answer: api.CutAt(got.Answer, maxAnswer), Problem: api.CutAt(got.Problem, maxAnswer), ID: t.ID, Tries: t.Number,
		}
		gone := got.StatusCode == 410
		switch {
		case got.Taken, got.StatusCode >= 200 && got.StatusCode < 300:
			p.State, p.EndedAt = string(api.DeliveryDelivered), now
		case gone, t.Number > int64(len(deliveryPauses)), t.Note != nil && d.Type == testMessage: // a person waits for a test's outcome
			p.State, p.EndedAt = string(api.DeliveryFailed), now
		default:
			p.State = string(api.DeliveryWaiting)
			p.NextAt = max(db.Micros(tx.Now.Add(deliveryPauses[t.Number-1])), db.Micros(got.NotBefore))
			tx.AfterCommit(e.deliverable.Wake)
		}
		if err := db.One(tx.EndDelivery(tx.Context(), p)); err != nil {
			return fmt.Errorf("end a try of delivery %s: %w", t.ID, err)
		}
		if err := endParts(tx, &d, p); err != nil {
			return err
		}
		if p.State != string(api.DeliveryFailed) || d.AgainOf != 0 || d.Type == testMessage {
			return nil
		}
		return e.giveUp(tx, &d, gone)
	})
}

// endParts ends what was told in the message of a delivery that ended.
func endParts(tx *db.Tx, d *queries.Delivery, p queries.EndDeliveryParams) error {
	if p.State == string(api.DeliveryWaiting) {
		return nil
	}
	_, err := tx.EndParts(tx.Context(), queries.EndPartsParams{
		State: p.State, Tries: p.Tries, TriedAt: d.TriedAt, StatusCode: p.StatusCode, Problem: p.Problem, EndedAt: p.EndedAt, PartOf: d.ID,
	})
	if err != nil {
		return fmt.Errorf("end what was told with delivery %s: %w", d.ID, err)
	}
	return nil
}

// giveUp disables the webhook of a delivery that failed for good, unless others come through.
func (e *Engine) giveUp(tx *db.Tx, d *queries.Delivery, gone bool) error {
	reason := "the receiver answered that it is gone for good (410)"
	if !gone {
		reason = "messages failed for a day"
		_, err := tx.DeliveredSince(tx.Context(), queries.DeliveredSinceParams{WebhookID: d.WebhookID, Since: d.CreatedAt})
		if !db.None(err) {
			return err
		}
	}
	if err := e.catchUp(tx, d.WebhookID); err != nil {
		return err
	}
	return e.disableWebhook(tx, d.WebhookID, reason)
}

// catchUp makes the deliveries of everything that has happened, so that the log says what
// happened to each.
func (e *Engine) catchUp(tx *db.Tx, id api.WebhookID) error {
	for {
		before, err := tx.Webhook(tx.Context(), id)
		if err != nil {
			return fmt.Errorf("read webhook %s: %w", id, err)
		}
		if err := e.expand(tx, id); err != nil {
			return err
		}
		after, err := tx.Webhook(tx.Context(), id)
		if err != nil {
			return fmt.Errorf("read webhook %s: %w", id, err)
		}
		if after.Enabled == 0 || after.AfterSeq == before.AfterSeq {
			return nil
		}
	}
}

func (e *Engine) disableWebhook(tx *db.Tx, id api.WebhookID, reason string) error {
	w, err := tx.Webhook(tx.Context(), id)
	if err != nil {
		return fmt.Errorf("read webhook %s: %w", id, err)
	}
	kind := api.EventWebhookDisabled
	log, noun := e.logWebhook, "webhook"
	if w.Scope != "" {
		kind, log, noun = api.EventChannelDisabled, e.logChannel, "channel"
	}
	if _, err := tx.DropWaiting(tx.Context(), queries.DropWaitingParams{Problem: "not sent: the " + noun + " was disabled, " + reason, EndedAt: db.Micros(tx.Now), WebhookID: id}); err != nil {
		return fmt.Errorf("drop what waits for webhook %s: %w", id, err)
	}
	if w.Enabled == 0 {
		return nil
	}
	w.Enabled, w.DisabledReason = 0, reason
	if err := e.saveWebhook(tx, &w); err != nil {
		return err
	}
	_, err = log(tx, &w, api.ActorSystem, kind, api.EventData{"reason": reason})
	return err
}

// attemptTimeout is the time after which a try that nobody ended is repeated.
const attemptTimeout = time.Minute

// deliveryPauses are the pauses after each failed try: eight tries over a day
// (the schedule that the Standard Webhooks specification proposes, and a last one).
var deliveryPauses = []time.Duration{
	5 * time.Second, 5 * time.Minute, 30 * time.Minute, 2 * time.Hour, 5 * time.Hour, 8 * time.Hour, 8 * time.Hour,
}
