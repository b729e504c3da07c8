package account

import (
	"context"
	"fmt"
	"hash/crc32"
	"math"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"stint/api"
	"stint/db"
	"stint/queries"
)

const (
	keyPrefix  = "stint_key_"
	keySum     = 8 // hexadecimal digits of the checksum at a key's end
	keyLife    = 90 * 24 * time.Hour
	maxKeyLife = 366 * 24 * time.Hour
	maxKeyName = 64 // characters
	keyHint    = 4
)

// checksum lets scanners tell a key from text that looks like one, and us refuse
// a mistyped one without a look into the store.
func checksum(text string) string { return fmt.Sprintf("%08x", crc32.ChecksumIEEE([]byte(text))) }

// CreateKey makes an API key that acts for the caller in this workspace; it is
// answered this once. Rights: member. Errors: forbidden, invalid.
func (a *Accounts) CreateKey(ctx context.Context, c Caller, in api.KeyInput) (out api.Key, err error) {
	if err := c.May(HaveKeys); err != nil {
		return out, err
	}
	if err := checkKey(&in, a.store.Now()); err != nil {
		return out, err
	}
	err = a.writeAs(ctx, c, func(tx *db.Tx) error {
		ends := in.ExpiresAt.Time
		if ends.IsZero() {
			ends = tx.Now.Add(keyLife)
			if api.ForCalendar(in.Scopes) {
				ends = tx.Now.Add(maxKeyLife)
			}
		}
		key, _ := randomSecret(keyPrefix)
		key += checksum(key)
		row := queries.ApiKey{
			ID: api.KeyID(tx.NewID()), WorkspaceID: c.WorkspaceID, UserID: c.UserID, Name: in.Name, Hash: hashOf(key),
			Hint: key[len(key)-keyHint:], CreatedAt: db.Micros(tx.Now), ExpiresAt: db.Micros(ends),
		}
		for _, s := range in.Scopes {
			row.Scopes = append(row.Scopes, string(s))
		}
		err := tx.InsertKey(tx.Context(), queries.InsertKeyParams{
			ID: row.ID, WorkspaceID: row.WorkspaceID, UserID: row.UserID, Name: row.Name, Scopes: row.Scopes, Hash: row.Hash,
			Hint: row.Hint, CreatedAt: row.CreatedAt, ExpiresAt: row.ExpiresAt,
		})
		if err != nil {
			return fmt.Errorf("keep an API key: %w", err)
		}
		out = toKey(&row, c.Name)
		out.Key = key
		return tx.Log(db.Event{Workspace: c.WorkspaceID, Actor: c.Actor(), Type: api.EventKeyCreated, Data: api.EventData{"key": row.ID.String(), "name": in.Name, "scopes": in.Scopes}})
	})
	return out, err
}

func checkKey(in *api.KeyInput, now time.Time) error {
	var v api.Invalid
	in.Name = strings.TrimSpace(in.Name)
	if n := utf8.RuneCountInString(in.Name); n < 1 || n > maxKeyName {
		v.Add("name", fmt.Sprintf("must have 1 to %d characters", maxKeyName))
	}
	v.CheckLine("name", in.Name)
	in.Scopes = slices.Compact(slices.Sorted(slices.Values(in.Scopes))) // a list of its own: the caller's stays as it is
	if len(in.Scopes) == 0 {
		v.Add("scopes", "must name at least one of "+api.Listed(api.Scopes))
	}
	for _, s := range in.Scopes {
		if !slices.Contains(api.Scopes, s) {
			v.Add("scopes", fmt.Sprintf("%q is no scope: use %s", string(s), api.Listed(api.Scopes)))
		}
	}
	if t := in.ExpiresAt.Time; !t.IsZero() && (!t.After(now) || t.After(now.Add(maxKeyLife))) {
		v.Add("expiresAt", "must lie in the future and within 366 days")
	}
	return v.Err()
}

func toKey(k *queries.ApiKey, user string) api.Key {
	out := api.Key{
		ID: k.ID, Name: k.Name, Scopes: []api.Scope{}, UserID: k.UserID, User: user, Hint: k.Hint,
		CreatedAt: api.At(k.CreatedAt), ExpiresAt: api.At(k.ExpiresAt), LastUsedAt: api.At(k.LastUsedAt),
	}
	for _, s := range k.Scopes {
		out.Scopes = append(out.Scopes, api.Scope(s))
	}
	return out
}

// Keys lists the API keys that aren't revoked, newest first: one's own, for an
// admin everybody's. Rights: member.
func (a *Accounts) Keys(ctx context.Context, c Caller, page api.Page) (out api.List[api.Key], err error) {
	if err := c.May(HaveKeys); err != nil {
		return out, err
	}
	n, before, err := db.PageOf(page, math.MaxInt64)
	if err != nil {
		return out, err
	}
	err = a.store.Read(ctx, func(tx *db.ReadTx) error {
		rows, err := tx.KeysOf(ctx, queries.KeysOfParams{
			WorkspaceID: c.WorkspaceID, Before: api.KeyID(before), Me: c.UserID, Every: db.Flag(c.Can(HaveAllKeys)), N: n + 1,
		})
		if err != nil {
			return fmt.Errorf("list API keys: %w", err)
		}
		out = db.ListOf(rows, n, func(r queries.KeysOfRow) api.Key { return toKey(&r.ApiKey, r.UserName) },
			func(r queries.KeysOfRow) int64 { return int64(r.ApiKey.ID) })
		return nil
	})
	return out, err
}

// SeesKey reports whether the caller may know of a key: it is its user's, and an
// admin sees everybody's.
func (c Caller) SeesKey(k *queries.ApiKey) bool {
	return k.WorkspaceID == c.WorkspaceID && (c.Can(HaveAllKeys) || k.UserID == c.UserID && c.Can(HaveKeys))
}

// RevokeKey ends an API key at once. Rights: its user, an admin any. Errors:
// not_found, forbidden.
func (a *Accounts) RevokeKey(ctx context.Context, c Caller, id api.KeyID) error {
	if err := c.May(HaveKeys); err != nil {
		return err
	}
	return a.writeAs(ctx, c, func(tx *db.Tx) error {
		k, err := tx.Key(tx.Context(), id)
		if db.None(err) || (err == nil && !c.SeesKey(&k)) {
			return db.NotFound("API key")
		}
		if err != nil {
			return fmt.Errorf("read API key %s: %w", id, err)
		}
		tx.LessRights()
		n, err := tx.RevokeKey(tx.Context(), queries.RevokeKeyParams{Now: db.Micros(tx.Now), ID: id})
		if err != nil || n == 0 {
			return err
		}
		return tx.Log(db.Event{Workspace: c.WorkspaceID, Actor: c.Actor(), Type: api.EventKeyRevoked, Data: api.EventData{"key": id.String(), "name": k.Name}})
	})
}

// authenticateKey finds out for whom an API key acts.
func (a *Accounts) authenticateKey(ctx context.Context, key string) (out Identity, err error) {
	if len(key) < len(keyPrefix)+keySum || checksum(key[:len(key)-keySum]) != key[len(key)-keySum:] {
		return out, errNotSignedIn
	}
	var lastUsed int64
	err = a.store.ReadRights(ctx, func(tx *db.ReadTx) error {
		k, err := tx.KeyByHash(ctx, hashOf(key))
		if db.None(err) || (err == nil && (k.RevokedAt != 0 || k.ExpiresAt <= db.Micros(a.store.Now()))) {
			return errNotSignedIn
		}
		if err != nil {
			return fmt.Errorf("read an API key: %w", err)
		}
		u, err := tx.User(ctx, k.UserID)
		if err != nil {
			return fmt.Errorf("read user %s: %w", k.UserID, err)
		}
		out = Identity{UserID: u.ID, Name: u.Name, KeyID: k.ID, WorkspaceID: k.WorkspaceID, Scopes: toKey(&k, "").Scopes}
		lastUsed = k.LastUsedAt
		return nil
	})
	if err == nil && lastUsed+db.Span(touchEvery) <= db.Micros(a.store.Now()) {
		a.touch(ctx, func(tx *db.Tx) error {
			_, err := tx.TouchKey(tx.Context(), queries.TouchKeyParams{Now: db.Micros(tx.Now), ID: out.KeyID})
			return err
		})
	}
	return out, err
}
