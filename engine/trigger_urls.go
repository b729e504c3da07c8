package engine

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"math"
	"unicode/utf8"

	"stint/account"
	"stint/api"
	"stint/db"
	"stint/queries"
)

// OpenTriggerURL creates an address by which another program starts an agent. Only the answer
// has the address and the secret to sign with. Rights: admin; for a local agent only the user
// as whom it runs (contract 9.4).
func (e *Engine) OpenTriggerURL(ctx context.Context, c Caller, agent string, in api.TriggerURLInput) (out api.TriggerURL, err error) {
	var v api.Invalid
	if in.Signature == "" {
		in.Signature = api.SignedStandard
	}
	if in.Signature != api.SignedStandard && in.Signature != api.SignedGitHub {
		v.Add("signature", "must be standard (Standard Webhooks) or github (X-Hub-Signature-256)")
	}
	if n := utf8.RuneCountInString(in.Description); n > maxWebhookText {
		v.Add("description", fmt.Sprintf("has %d characters; at most %d fit", n, maxWebhookText))
	}
	if err := v.Err(); err != nil {
		return out, err
	}
	token := make([]byte, 20) // 160 random bits
	rand.Read(token)
	path := base64.RawURLEncoding.EncodeToString(token)
	hash := sha256.Sum256([]byte(path))
	err = e.writeAs(ctx, c, func(tx *db.Tx) error {
		a, err := triggerAgent(tx.Context(), tx, c, agent)
		if err != nil {
			return err
		}
		if a.Mode == api.Local && a.RunsAsUserID == 0 {
			return api.BadField("runsAsUserId", "is not set on the agent: say whose local worker runs what this address starts")
		}
		t := queries.TriggerUrl{
			ID: api.TriggerID(tx.NewID()), WorkspaceID: a.WorkspaceID, AgentID: a.ID, Hash: hash[:], Signature: string(in.Signature),
			Secret: newSecret(), Description: in.Description, CreatedBy: c.UserID, CreatedAt: db.Micros(tx.Now),
		}
		err = tx.InsertTriggerURL(tx.Context(), queries.InsertTriggerURLParams{
			ID: t.ID, WorkspaceID: t.WorkspaceID, AgentID: t.AgentID, Hash: t.Hash, Signature: t.Signature, Secret: t.Secret,
			Description: t.Description, CreatedBy: t.CreatedBy, CreatedAt: t.CreatedAt,
		})
		if err != nil {
			return fmt.Errorf("insert a trigger URL: %w", err)
		}
		out = toTriggerURL(t)
		out.Path, out.Secret = "/hooks/"+path, secretText(t.Secret)
		if in.Signature == api.SignedGitHub {
			out.Secret = base64.StdEncoding.EncodeToString(t.Secret)
		}
		return e.logAgent(tx, a, c.Actor(), api.EventTriggerOpened, api.EventData{"trigger": t.ID.String()})
	})
	return out, err
}

// triggerAgent reads the agent whose addresses the caller may see and change.
func triggerAgent(ctx context.Context, q queries.Querier, c Caller, ref string) (*agentRow, error) {
	a, err := agentOf(ctx, q, c, ref)
	if err != nil {
		return nil, err
	}
	return a, mayOpen(c, a)
}

// mayOpen refuses a caller who may have no address that starts the agent.
func mayOpen(c Caller, a *agentRow) error {
	switch {
	case a.Mode != api.Local || a.RunsAsUserID == 0:
		return c.May(account.OpenTriggersAny)
	case a.RunsAsUserID != c.UserID:
		return api.Refuse(api.CodeForbidden, "Only the user as whom this local agent runs can open addresses that start it.")
	}
	return c.May(account.OpenTriggersOwn)
}

// opened reads the agent that an address starts. One whose agent is gone, or whose creator
// could not open it today, is answered as if it weren't there: the agent now runs as somebody
// else, or the creator is no longer an admin, or a member.
func opened(ctx context.Context, q queries.Querier, t *queries.TriggerUrl) (*agentRow, error) {
	a, err := q.Agent(ctx, t.AgentID)
	if db.None(err) {
		return nil, db.NotFound("address")
	}
	if err != nil {
		return nil, fmt.Errorf("read agent %s: %w", t.AgentID, err)
	}
	role, err := account.RoleOf(ctx, q, t.WorkspaceID, t.CreatedBy)
	if err != nil {
		return nil, err
	}
	ownerless := a.Mode == api.Local && a.RunsAsUserID == 0
	if maker := (Caller{UserID: t.CreatedBy, Role: role}); ownerless || mayOpen(maker, &a) != nil {
		return nil, db.NotFound("address")
	}
	return &a, nil
}

// TriggerURLs lists an agent's addresses, without their secrets. Rights as for
// [Engine.OpenTriggerURL].
func (e *Engine) TriggerURLs(ctx context.Context, c Caller, agent string, page api.Page) (api.List[api.TriggerURL], error) {
	out := api.List[api.TriggerURL]{Items: []api.TriggerURL{}}
	n, before, err := db.PageOf(page, math.MaxInt64)
	if err != nil {
		return out, err
	}
	err = e.store.Read(ctx, func(tx *db.ReadTx) error {
		a, err := triggerAgent(ctx, tx, c, agent)
		if err != nil {
			return err
		}
		rows, err := tx.TriggerURLsOfAgent(ctx, queries.TriggerURLsOfAgentParams{AgentID: a.ID, Before: api.TriggerID(before), N: n + 1})
		out = db.ListOf(rows, n, toTriggerURL, func(t queries.TriggerUrl) int64 { return int64(t.ID) })
		return err
	})
	return out, err
}

// CloseTriggerURL makes an address useless. Rights as for [Engine.OpenTriggerURL].
func (e *Engine) CloseTriggerURL(ctx context.Context, c Caller, agent string, id api.TriggerID) error {
	return e.writeAs(ctx, c, func(tx *db.Tx) error {
		a, err := triggerAgent(tx.Context(), tx, c, agent)
		if err != nil {
			return err
		}
		t, err := tx.TriggerURL(tx.Context(), id)
		if db.None(err) || (err == nil && t.AgentID != a.ID) {
			return db.NotFound("trigger URL")
		}
		if err != nil {
			return fmt.Errorf("read trigger URL %s: %w", id, err)
		}
		if err := db.One(tx.DeleteTriggerURL(tx.Context(), queries.DeleteTriggerURLParams{DeletedAt: db.Micros(tx.Now), ID: id})); err != nil {
			return fmt.Errorf("close trigger URL %s: %w", id, err)
		}
		return e.logAgent(tx, a, c.Actor(), api.EventTriggerClosed, api.EventData{"trigger": id.String()})
	})
}

// closeTriggersBy closes the addresses that a leaving user opened.
func (e *Engine) closeTriggersBy(tx *db.Tx, c Caller, user api.UserID) error {
	open, err := tx.TriggerURLsBy(tx.Context(), queries.TriggerURLsByParams{WorkspaceID: c.WorkspaceID, CreatedBy: user})
	if err != nil {
		return fmt.Errorf("list the trigger URLs of user %s: %w", user, err)
	}
	for _, t := range open {
		a, err := agentEvenDeleted(tx.Context(), tx, t.AgentID)
		if err != nil {
			return fmt.Errorf("read agent %s: %w", t.AgentID, err)
		}
		if err := db.One(tx.DeleteTriggerURL(tx.Context(), queries.DeleteTriggerURLParams{DeletedAt: db.Micros(tx.Now), ID: t.ID})); err != nil {
			return fmt.Errorf("close trigger URL %s: %w", t.ID, err)
		}
		if err := e.logAgent(tx, &a, c.Actor(), api.EventTriggerClosed, api.EventData{"trigger": t.ID.String(), "openedBy": user.String()}); err != nil {
			return err
		}
	}
	return nil
}

// TriggerKey is what is needed to check a call to a trigger URL.
type TriggerKey struct {
	ID     api.TriggerID
	Scheme api.SignatureScheme
	Secret []byte
}

// TriggerKeyOf finds the address that a path names. Error: not_found, also for one whose agent
// is gone, or whose creator could not open it today.
func (e *Engine) TriggerKeyOf(ctx context.Context, path string) (out TriggerKey, err error) {
	hash := sha256.Sum256([]byte(path))
	err = e.store.Read(ctx, func(tx *db.ReadTx) error {
		t, err := tx.TriggerURLByHash(ctx, hash[:])
		if db.None(err) {
			return db.NotFound("address")
		}
		if err != nil {
			return fmt.Errorf("read a trigger URL: %w", err)
		}
		if _, err := opened(ctx, tx, &t); err != nil {
			return err
		}
		out = TriggerKey{ID: t.ID, Scheme: api.SignatureScheme(t.Signature), Secret: t.Secret}
		if out.Scheme == api.SignedGitHub {
			out.Secret = []byte(base64.StdEncoding.EncodeToString(t.Secret)) // the key is the text that was shown
		}
		return nil
	})
	return out, err
}

// Trigger makes a session of what another program sent to an address, whose signature the
// caller has checked. The payload is untrusted context, whatever it says (contract 9.4). The
// same message within a day returns the first session again; where the id isn't signed
// (GitHub), what was signed counts as well. from is the network address of the call.
func (e *Engine) Trigger(ctx context.Context, id api.TriggerID, messageID string, payload []byte, from string) (out api.SessionID, replayed bool, err error) {
	if len(payload) > maxContext || !utf8.Valid(payload) {
		return 0, false, &api.Error{
			Code: api.CodeInvalid, Detail: "The payload is not valid.",
			Fields: []api.FieldError{{Field: "body", Detail: fmt.Sprintf("must be UTF-8 of at most %d bytes", maxContext)}},
		}
	}
	err = e.write(ctx, func(tx *db.Tx) error {
		tx.From, tx.Via = from, id.String()
		t, err := tx.TriggerURL(tx.Context(), id)
		if db.None(err) {
			return db.NotFound("address")
		}
		if err != nil {
			return fmt.Errorf("read trigger URL %s: %w", id, err)
		}
		a, err := opened(tx.Context(), tx, &t)
		if err != nil {
			return err
		}
		keys := messageKeys(&t, messageID, payload)
		for _, key := range keys {
			first, err := e.replay(tx, Caller{UserID: t.CreatedBy}, key)
			if api.CodeOf(err) != "" {
				return api.Refuse(api.CodeConflict, "Another message came under this id before.")
			}
			if err != nil {
				return err
			}
			if first != 0 {
				out, replayed = first, true
				return nil
			}
		}
		s, err := e.newSession(tx, a, newSession{
			by: api.ByWebhook, actor: id.String(), at: manualTrigger(a, db.Micros(tx.Now)), attempt: 1,
			in: api.SessionInput{UntrustedContext: string(payload)},
		})
		if err != nil {
			return err
		}
		out, replayed = s.ID, false
		if err := db.One(tx.UseTriggerURL(tx.Context(), queries.UseTriggerURLParams{LastUsedAt: db.Micros(tx.Now), ID: id})); err != nil {
			return fmt.Errorf("note the use of trigger URL %s: %w", id, err)
		}
		hash := sha256.Sum256(payload)
		for _, key := range keys {
			err = tx.PutIdempotencyKey(tx.Context(), queries.PutIdempotencyKeyParams{
				UserID: t.CreatedBy, Route: key.Route, Key: key.Key, BodyHash: hash[:], SessionID: s.ID, CreatedAt: db.Micros(tx.Now),
			})
			if err != nil {
				return fmt.Errorf("keep the message's id: %w", err)
			}
		}
		return nil
	})
	return out, replayed, err
}

// messageKeys are what a repeated message is recognized by: its id, and where the signature
// doesn't cover that, as with GitHub, the signature too. It identifies what it signs, as an
// address has one secret.
func messageKeys(t *queries.TriggerUrl, messageID string, payload []byte) []Idempotency {
	route := "hook " + t.ID.String()
	keys := []Idempotency{{Key: messageID, Route: route, Body: payload}}
	if api.SignatureScheme(t.Signature) == api.SignedGitHub {
		hash := sha256.Sum256(payload)
		keys = append(keys, Idempotency{Key: hex.EncodeToString(hash[:]), Route: "signed " + route, Body: payload})
	}
	return keys
}

func toTriggerURL(t queries.TriggerUrl) api.TriggerURL {
	return api.TriggerURL{
		ID: t.ID, TriggerURLInput: api.TriggerURLInput{Signature: api.SignatureScheme(t.Signature), Description: t.Description},
		AgentID: t.AgentID, CreatedAt: api.At(t.CreatedAt), LastUsedAt: api.At(t.LastUsedAt),
	}
}
