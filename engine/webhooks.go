package engine

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"math"
	"net/url"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"stint/account"
	"stint/api"
	"stint/db"
	"stint/queries"
)

const (
	maxWebhookURL  = 2000 // bytes
	maxWebhookText = 200  // characters
	secretBytes    = 32   // 24 to 64 by the Standard Webhooks specification
	secretPrefix   = "whsec_"

	// oldSecretLife is how long a webhook's former secret signs beside the new one.
	oldSecretLife = 24 * time.Hour
)

// DefaultWebhook is what a creation starts from.
func DefaultWebhook() api.WebhookInput { return api.WebhookInput{Enabled: true} }

// CreateWebhook creates a webhook that sends what happens from now on. Only the answer has its
// secret. Rights: admin. Errors: forbidden, invalid.
func (e *Engine) CreateWebhook(ctx context.Context, c Caller, in api.WebhookInput) (out api.Webhook, err error) {
	if err := c.May(account.ManageWebhooks); err != nil {
		return out, err
	}
	if err := e.checkWebhook(in); err != nil {
		return out, err
	}
	err = e.writeAs(ctx, c, func(tx *db.Tx) error {
		w := queries.Webhook{
			ID: api.WebhookID(tx.NewID()), WorkspaceID: c.WorkspaceID, Url: in.URL, Description: in.Description, Types: in.Types,
			Secret: newSecret(), OldSecret: []byte{}, Causes: api.Labels{}, Enabled: 1, CreatedBy: c.UserID, CreatedAt: db.Micros(tx.Now),
		}
		seq, err := e.logWebhook(tx, &w, c.Actor(), api.EventWebhookCreated, nil)
		if err != nil {
			return err
		}
		w.AfterSeq = seq
		err = tx.InsertWebhook(tx.Context(), queries.InsertWebhookParams(w))
		if err != nil {
			return fmt.Errorf("insert a webhook: %w", err)
		}
		out = toWebhook(&w)
		out.Secret = secretText(w.Secret)
		return nil
	})
	return out, err
}

func newSecret() []byte {
	secret := make([]byte, secretBytes)
	rand.Read(secret)
	return secret
}

func secretText(secret []byte) string {
	return secretPrefix + base64.StdEncoding.EncodeToString(secret)
}

func (e *Engine) logWebhook(tx *db.Tx, w *queries.Webhook, actor, kind string, data api.EventData) (int64, error) {
	if data == nil {
		data = api.EventData{}
	}
	data["webhook"] = w.ID.String()
	return tx.LogNumbered(db.Event{Workspace: w.WorkspaceID, Actor: actor, Type: kind, Data: data})
}

func (e *Engine) checkWebhook(in api.WebhookInput) error {
	var v api.Invalid
	u, err := url.Parse(in.URL)
	switch {
	case in.URL == "":
		v.Add("url", "is missing: name the https address that messages go to")
	case len(in.URL) > maxWebhookURL:
		v.Add("url", fmt.Sprintf("has %d bytes; at most %d fit", len(in.URL), maxWebhookURL))
	case err != nil || u.Hostname() == "" || (u.Scheme != "https" && u.Scheme != "http"):
		v.Add("url", "must be an address such as https://example.org/hook")
	case u.User != nil:
		v.Add("url", "must not hold a name or password: messages are signed instead")
	case u.Fragment != "":
		v.Add("url", "must not hold a fragment (#)")
	default:
		if err := e.cfg.CheckWebhookURL(u); err != nil {
			v.Add("url", err.Error())
		}
	}
	if n := utf8.RuneCountInString(in.Description); n > maxWebhookText {
		v.Add("description", fmt.Sprintf("has %d characters; at most %d fit", n, maxWebhookText))
	}
	for _, t := range in.Types {
		if !slices.Contains(messageTypes, t) {
			v.Add("types", fmt.Sprintf("%q is no type of message; they are %s", t, strings.Join(messageTypes, ", ")))
			break
		}
	}
	return v.Err()
}

// webhookOf reads a webhook of the caller's workspace. Rights: admin.
func webhookOf(ctx context.Context, q queries.Querier, c Caller, id api.WebhookID) (*queries.Webhook, error) {
	if err := c.May(account.ManageWebhooks); err != nil {
		return nil, err
	}
	w, err := q.Webhook(ctx, id)
	if db.None(err) || (err == nil && (w.WorkspaceID != c.WorkspaceID || w.Scope != "")) {
		return nil, db.NotFound("webhook")
	}
	if err != nil {
		return nil, fmt.Errorf("read webhook %s: %w", id, err)
	}
	return &w, nil
}

// Webhook returns one, without its secret. Rights: admin.
func (e *Engine) Webhook(ctx context.Context, c Caller, id api.WebhookID) (out api.Webhook, err error) {
	err = e.store.Read(ctx, func(tx *db.ReadTx) error {
		w, err := webhookOf(ctx, tx, c, id)
		if err != nil {
			return err
		}
		out = toWebhook(w)
		return nil
	})
	return out, err
}

// Webhooks lists the workspace's, newest first. Rights: admin.
func (e *Engine) Webhooks(ctx context.Context, c Caller, page api.Page) (api.List[api.Webhook], error) {
	out := api.List[api.Webhook]{Items: []api.Webhook{}}
	if err := c.May(account.ManageWebhooks); err != nil {
		return out, err
	}
	n, before, err := db.PageOf(page, math.MaxInt64)
	if err != nil {
		return out, err
	}
	err = e.store.Read(ctx, func(tx *db.ReadTx) error {
		rows, err := tx.ListWebhooks(ctx, queries.ListWebhooksParams{WorkspaceID: c.WorkspaceID, Before: api.WebhookID(before), N: n + 1})
		out = db.ListOf(rows, n, func(w queries.Webhook) api.Webhook { return toWebhook(&w) }, func(w queries.Webhook) int64 { return int64(w.ID) })
		return err
	})
	return out, err
}

// EditWebhook changes what edit changes. Changing the address makes the webhook send what the
// caller may see from then on, whoever created it. Enabling one again starts with what happens
// from now on. Rights: admin.
func (e *Engine) EditWebhook(ctx context.Context, c Caller, id api.WebhookID, edit func(in *api.WebhookInput) error) (out api.Webhook, err error) {
	err = e.writeAs(ctx, c, func(tx *db.Tx) error {
		w, err := webhookOf(tx.Context(), tx, c, id)
		if err != nil {
			return err
		}
		in := toWebhook(w).WebhookInput
		in.Types = slices.Clone(in.Types) // the row's own stays as it is if the edit is refused
		if err := edit(&in); err != nil {
			return err
		}
		if err := e.checkWebhook(in); err != nil {
			return err
		}
		seq, err := e.logWebhook(tx, w, c.Actor(), api.EventWebhookEdited, nil)
		if err != nil {
			return err
		}
		moved := in.URL != w.Url
		if in.Enabled && w.Enabled == 0 {
			w.AfterSeq, w.DisabledReason = seq, ""
			may, err := mayHaveWebhooks(tx.Context(), tx, w.WorkspaceID, w.CreatedBy)
			if err != nil {
				return err
			}
			moved = moved || !may // its user is gone: the caller takes it over
		}
		if moved {
			if err := e.setRecipient(tx, c, w); err != nil {
				return err
			}
		}
		w.Url, w.Description, w.Types, w.Enabled = in.URL, in.Description, in.Types, db.Flag(in.Enabled)
		if err := e.saveWebhook(tx, w); err != nil {
			return err
		}
		out = toWebhook(w)
		return nil
	})
	return out, err
}

func (e *Engine) saveWebhook(tx *db.Tx, w *queries.Webhook) error {
	err := db.One(tx.UpdateWebhook(tx.Context(), queries.UpdateWebhookParams{
		Url: w.Url, Description: w.Description, Types: w.Types, Enabled: w.Enabled, DisabledReason: w.DisabledReason, AfterSeq: w.AfterSeq,
		CreatedBy: w.CreatedBy, Target: w.Target, Causes: w.Causes, Details: w.Details, ID: w.ID,
		QuietFrom: w.QuietFrom, QuietTo: w.QuietTo, DigestAt: w.DigestAt, TimeZone: w.TimeZone,
	}))
	if err != nil {
		return fmt.Errorf("change webhook %s: %w", w.ID, err)
	}
	return nil
}

// RotateWebhook gives a webhook a new secret, which only the answer has. For a day the old one
// signs too, so that receivers can change over. The webhook sends what the caller may see from
// then on. Rights: admin.
func (e *Engine) RotateWebhook(ctx context.Context, c Caller, id api.WebhookID) (out api.Webhook, err error) {
	err = e.writeAs(ctx, c, func(tx *db.Tx) error {
		w, err := webhookOf(tx.Context(), tx, c, id)
		if err != nil {
			return err
		}
		w.OldSecret, w.OldUntil, w.Secret = w.Secret, db.Micros(tx.Now.Add(oldSecretLife)), newSecret()
		if err := e.setRecipient(tx, c, w); err != nil {
			return err
		}
		err = db.One(tx.RotateWebhook(tx.Context(), queries.RotateWebhookParams{
			Secret: w.Secret, OldSecret: w.OldSecret, OldUntil: w.OldUntil, CreatedBy: w.CreatedBy, ID: w.ID,
		}))
		if err != nil {
			return fmt.Errorf("change the secret of webhook %s: %w", id, err)
		}
		out = toWebhook(w)
		out.Secret = secretText(w.Secret)
		_, err = e.logWebhook(tx, w, c.Actor(), api.EventWebhookRotated, nil)
		return err
	})
	return out, err
}

// DeleteWebhook removes a webhook; what waits is not delivered. Rights: admin.
func (e *Engine) DeleteWebhook(ctx context.Context, c Caller, id api.WebhookID) error {
	return e.writeAs(ctx, c, func(tx *db.Tx) error {
		w, err := webhookOf(tx.Context(), tx, c, id)
		if err != nil {
			return err
		}
		now := db.Micros(tx.Now)
		if err := db.One(tx.DeleteWebhook(tx.Context(), queries.DeleteWebhookParams{DeletedAt: now, ID: id})); err != nil {
			return fmt.Errorf("delete webhook %s: %w", id, err)
		}
		if _, err := tx.DropWaiting(tx.Context(), queries.DropWaitingParams{Problem: "the webhook was deleted", EndedAt: now, WebhookID: id}); err != nil {
			return fmt.Errorf("drop what waits for webhook %s: %w", id, err)
		}
		_, err = e.logWebhook(tx, w, c.Actor(), api.EventWebhookDeleted, nil)
		return err
	})
}

func toWebhook(w *queries.Webhook) api.Webhook {
	return api.Webhook{
		ID: w.ID, WebhookInput: api.WebhookInput{URL: w.Url, Description: w.Description, Types: w.Types, Enabled: w.Enabled != 0},
		DisabledReason: w.DisabledReason, OldSecretUntil: api.At(w.OldUntil), CreatedAt: api.At(w.CreatedAt),
	}
}
