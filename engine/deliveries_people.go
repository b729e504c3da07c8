package engine

import (
	"cmp"
	"context"
	"fmt"
	"math"

	"github.com/go-json-experiment/json"

	"stint/api"
	"stint/db"
	"stint/queries"
)

// TestWebhook creates a message of type stint.test, whatever types were chosen. Rights: admin.
func (e *Engine) TestWebhook(ctx context.Context, c Caller, id api.WebhookID) (out api.Delivery, err error) {
	return e.sendOnce(ctx, c, id, func(tx *db.Tx, w *queries.Webhook) (queries.Delivery, error) {
		delivery := api.DeliveryID(tx.NewID())
		m := cloudEvent{
			SpecVersion: "1.0", ID: "test-" + delivery.String(), Source: "/api/v1/workspaces/" + w.WorkspaceID.String(), Type: testMessage,
			Time: api.At(db.Micros(tx.Now)), DataContentType: "application/json", Data: api.EventData{"actor": c.Actor()},
		}
		body, err := json.Marshal(m, json.Deterministic(true))
		return queries.Delivery{ID: delivery, WebhookID: w.ID, Message: m.ID, Type: m.Type, Body: string(body)}, err
	})
}

// Redeliver sends a message once more, under the same id. Rights: admin. Errors: not_found,
// also for what is about somebody else's local session; conflict while it waits, and when the
// webhook's recipient may not see it.
func (e *Engine) Redeliver(ctx context.Context, c Caller, id api.WebhookID, delivery api.DeliveryID) (out api.Delivery, err error) {
	return e.sendOnce(ctx, c, id, func(tx *db.Tx, w *queries.Webhook) (queries.Delivery, error) {
		d, err := tx.Delivery(tx.Context(), delivery)
		if db.None(err) || (err == nil && d.WebhookID != w.ID) {
			return d, db.NotFound("delivery")
		}
		if err != nil {
			return d, fmt.Errorf("read delivery %s: %w", delivery, err)
		}
		if seen, err := newVisibility(tx, c).seesMessage(tx.Context(), d.Body); err != nil || !seen {
			return d, cmp.Or(err, error(db.NotFound("delivery")))
		}
		visible, err := webhookVisibility(tx.Context(), tx, w.WorkspaceID, w.CreatedBy)
		if err != nil {
			return d, err
		}
		if seen, err := visible.seesMessage(tx.Context(), d.Body); err != nil || !seen {
			return d, cmp.Or(err, error(api.Refuse(api.CodeConflict, "This webhook now tells what somebody else may know, and this message isn't that.")))
		}
		if d.State == string(api.DeliveryWaiting) {
			return d, api.Refuse(api.CodeConflict, "This message is still being delivered.")
		}
		return queries.Delivery{ID: api.DeliveryID(tx.NewID()), WebhookID: w.ID, Message: d.Message, Type: d.Type, Body: d.Body, AgainOf: d.ID}, nil
	})
}

func (e *Engine) sendOnce(ctx context.Context, c Caller, id api.WebhookID, make func(tx *db.Tx, w *queries.Webhook) (queries.Delivery, error)) (out api.Delivery, err error) {
	err = e.writeAs(ctx, c, func(tx *db.Tx) error {
		w, err := webhookOf(tx.Context(), tx, c, id)
		if err != nil {
			return err
		}
		d, err := make(tx, w)
		if err != nil {
			return err
		}
		if err := e.putDelivery(tx, d); err != nil {
			return err
		}
		stored, err := tx.Delivery(tx.Context(), d.ID)
		if err != nil {
			return fmt.Errorf("read delivery %s: %w", d.ID, err)
		}
		out = toDelivery(stored)
		return nil
	})
	return out, err
}

// Deliveries lists what a webhook has sent and is to send, newest first, except what is about
// somebody else's local session. Rights: admin.
func (e *Engine) Deliveries(ctx context.Context, c Caller, id api.WebhookID, page api.Page) (api.List[api.Delivery], error) {
	out := api.List[api.Delivery]{Items: []api.Delivery{}}
	n, before, err := db.PageOf(page, math.MaxInt64)
	if err != nil {
		return out, err
	}
	err = e.store.Read(ctx, func(tx *db.ReadTx) error {
		if _, err := webhookOf(ctx, tx, c, id); err != nil {
			return err
		}
		visible := newVisibility(tx, c)
		out, err = gathering[queries.Delivery, api.Delivery]{
			read: func(before, n int64) ([]queries.Delivery, error) {
				return tx.ListDeliveries(ctx, queries.ListDeliveriesParams{WebhookID: id, Before: api.DeliveryID(before), N: n})
			},
			key: func(d queries.Delivery) int64 { return int64(d.ID) },
			take: func(d queries.Delivery) (api.Delivery, bool, error) {
				seen, err := visible.seesMessage(ctx, d.Body)
				return toDelivery(d), seen, err
			},
			size: func(d *api.Delivery) int { return len(d.Body) + len(d.Answer) + len(d.Problem) },
		}.page(n, before)
		return err
	})
	return out, err
}

func toDelivery(d queries.Delivery) api.Delivery {
	return api.Delivery{
		ID: d.ID, WebhookID: d.WebhookID, Message: d.Message, Type: d.Type, State: api.DeliveryState(d.State), Tries: d.Tries,
		NextTryAt: api.At(d.NextAt), TriedAt: api.At(d.TriedAt), StatusCode: d.StatusCode, Answer: d.Answer, Problem: d.Problem,
		AgainOf: d.AgainOf, Body: d.Body, CreatedAt: api.At(d.CreatedAt), EndedAt: api.At(d.EndedAt),
	}
}
