package engine

import (
	"context"
	"fmt"

	"github.com/go-json-experiment/json"

	"stint/api"
	"stint/db"
	"stint/queries"
)

// A webhook tells what one user may know: who made it, or who changed its address
// or its secret after him, for then the messages are read by him (contract 8.3).

// toldTo has a webhook tell what the caller may know, from now on. What waits
// and he may not know is not sent.
func (e *Engine) toldTo(tx *db.Tx, c Caller, w *queries.Webhook) error {
	if w.CreatedBy == c.UserID {
		return nil
	}
	w.CreatedBy = c.UserID
	waits, err := tx.WaitingDeliveries(wctx(), w.ID)
	if err != nil {
		return fmt.Errorf("list what waits for webhook %s: %w", w.ID, err)
	}
	sight := newEyes(tx, w.WorkspaceID, w.CreatedBy)
	for _, d := range waits {
		seen, err := sight.seeMessage(wctx(), d.Body)
		if err != nil {
			return err
		}
		if seen {
			continue
		}
		err = one(tx.DropWaitingOne(wctx(), queries.DropWaitingOneParams{
			Problem: "another user changed where the webhook's messages go, and this one isn't for them to know", EndedAt: micros(tx.Now), ID: d.ID,
		}))
		if err != nil {
			return fmt.Errorf("drop delivery %s: %w", d.ID, err)
		}
	}
	return nil
}

// seeMessage reports whether all sessions are there that a message names.
func (y *eyes) seeMessage(ctx context.Context, body string) (bool, error) {
	var m struct {
		Data map[string]any `json:"data"`
	}
	if err := json.Unmarshal([]byte(body), &m); err != nil {
		return false, fmt.Errorf("read a message: %w", err)
	}
	for _, v := range m.Data {
		if hidden, err := y.hides(ctx, v); err != nil || hidden {
			return false, err
		}
	}
	return true, nil
}

// mayBeTold reports whether a user may have webhooks: he is a member with the right.
func mayBeTold(ctx context.Context, q queries.Querier, workspace api.WorkspaceID, user api.UserID) (bool, error) {
	role, err := roleOf(ctx, q, workspace, user)
	return role.AtLeast(rights[mayManageWebhooks].role), err
}

// lostReader disables a webhook whose user lost the right to have it, and
// reports whether it did.
func (e *Engine) lostReader(tx *db.Tx, w *queries.Webhook) (bool, error) {
	may, err := mayBeTold(wctx(), tx, w.WorkspaceID, w.CreatedBy)
	if err != nil || may {
		return false, err
	}
	return true, e.disableWebhook(tx, w.ID, "the user whom it told of things may no longer have webhooks here")
}

// disableWebhooksOf disables the webhooks that tell a user what he may know,
// when he leaves or may no longer have any. why says which.
func (e *Engine) disableWebhooksOf(tx *db.Tx, c Caller, user api.UserID, why string) error {
	ids, err := tx.WebhooksToldTo(wctx(), queries.WebhooksToldToParams{WorkspaceID: c.WorkspaceID, CreatedBy: user})
	if err != nil {
		return fmt.Errorf("list the webhooks of user %s: %w", user, err)
	}
	for _, id := range ids {
		if err := e.disableWebhook(tx, id, why); err != nil {
			return err
		}
	}
	return nil
}
