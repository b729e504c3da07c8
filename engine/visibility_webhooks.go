package engine

import (
	"context"
	"fmt"

	"github.com/go-json-experiment/json"

	"stint/account"
	"stint/api"
	"stint/db"
	"stint/queries"
)

// A webhook sends what one user may see: the one who created it, or who changed its address or
// its secret afterwards, for then that user reads the messages (contract 8.3).

// setRecipient makes a webhook send what the caller may see, from now on. What waits and they
// may not see is not sent.
func (e *Engine) setRecipient(tx *db.Tx, c Caller, w *queries.Webhook) error {
	if w.CreatedBy == c.UserID {
		return nil
	}
	w.CreatedBy = c.UserID
	waits, err := tx.WaitingDeliveries(tx.Context(), w.ID)
	if err != nil {
		return fmt.Errorf("list what waits for webhook %s: %w", w.ID, err)
	}
	visible, err := webhookVisibility(tx.Context(), tx, w.WorkspaceID, w.CreatedBy)
	if err != nil {
		return err
	}
	for _, d := range waits {
		seen, err := visible.seesMessage(tx.Context(), d.Body)
		if err != nil {
			return err
		}
		if seen {
			continue
		}
		err = db.One(tx.DropWaitingOne(tx.Context(), queries.DropWaitingOneParams{
			Problem: "another user changed where the webhook's messages go, and this one isn't for them to know", EndedAt: db.Micros(tx.Now), ID: d.ID,
		}))
		if err != nil {
			return fmt.Errorf("drop delivery %s: %w", d.ID, err)
		}
	}
	return nil
}

// seesMessage reports whether what a message is about is visible, and all sessions that it
// names.
func (v *visibility) seesMessage(ctx context.Context, body string) (bool, error) {
	var m struct {
		Type string         `json:"type"`
		Data map[string]any `json:"data"`
	}
	if err := json.Unmarshal([]byte(body), &m); err != nil {
		return false, fmt.Errorf("read a message: %w", err)
	}
	if m.Type != testMessage {
		agent, _ := idNamed(m.Data["agentId"], api.ParseAgentID)
		if seen, err := v.seesKind(ctx, eventOf[m.Type], agent, m.Data); err != nil || !seen {
			return false, err
		}
	}
	for key, value := range m.Data {
		if needed, ok := neededFor[key]; ok && !v.caller.Can(needed) {
			return false, nil
		}
		if hidden, err := v.hides(ctx, value); err != nil || hidden {
			return false, err
		}
	}
	return true, nil
}

// mayHaveWebhooks reports whether a user may have webhooks: they are a member with the right.
func mayHaveWebhooks(ctx context.Context, q queries.Querier, workspace api.WorkspaceID, user api.UserID) (bool, error) {
	role, err := account.RoleOf(ctx, q, workspace, user)
	return mayHold(role, ""), err
}

// lostReader disables a webhook or channel whose user lost the right to have it, and reports
// whether it did.
func (e *Engine) lostReader(tx *db.Tx, w *queries.Webhook) (bool, error) {
	role, err := account.RoleOf(tx.Context(), tx, w.WorkspaceID, w.CreatedBy)
	if err != nil || mayHold(role, w.Scope) {
		return false, err
	}
	return true, e.disableWebhook(tx, w.ID, "the user whom it told of things may no longer have it here")
}

// disableWebhooksOf disables the webhooks and channels that a user of a role may not have, when
// they leave (no role) or get a lesser one. why says which.
func (e *Engine) disableWebhooksOf(tx *db.Tx, c Caller, user api.UserID, role api.Role, why string) error {
	hooks, err := tx.WebhooksOf(tx.Context(), queries.WebhooksOfParams{WorkspaceID: c.WorkspaceID, CreatedBy: user})
	if err != nil {
		return fmt.Errorf("list the webhooks of user %s: %w", user, err)
	}
	for _, w := range hooks {
		if mayHold(role, w.Scope) {
			continue
		}
		if err := e.disableWebhook(tx, w.ID, why); err != nil {
			return err
		}
	}
	return nil
}
