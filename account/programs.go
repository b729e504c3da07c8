package account

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"strings"
	"time"

	"stint/api"
	"stint/db"
	"stint/queries"
)

const (
	kindAccess  = "access"
	kindRefresh = "refresh"
)

// signInProgram begins a family of tokens for a user.
func (a *Accounts) signInProgram(tx *db.Tx, user api.UserID, g Grant, from From) (api.TokenID, Tokens, error) {
	if err := useClient(tx, g.Client); err != nil {
		return 0, Tokens{}, err
	}
	id := api.TokenID(tx.NewID())
	ends := tx.Now.Add(programLife)
	err := tx.InsertProgram(tx.Context(), queries.InsertProgramParams{
		ID: id, UserID: user, Client: g.Client, Resource: g.Resource, Scopes: g.Scopes, Label: short(from.Label, maxLabelText), Address: from.Address,
		CreatedAt: db.Micros(tx.Now), ExpiresAt: db.Micros(ends),
	})
	if err != nil {
		return 0, Tokens{}, fmt.Errorf("sign a program in: %w", err)
	}
	// The first pair is made like every other, of a secret that nobody is told.
	seed, _ := randomSecret(refreshPrefix)
	out, err := a.keepPair(tx, seed, newSalt(), id, ends)
	if err != nil {
		return 0, Tokens{}, err
	}
	out.Scopes = g.Scopes
	name, err := clientName(tx.Context(), tx, g.Client, db.Micros(tx.Now))
	if err != nil {
		return 0, Tokens{}, err
	}
	return id, out, a.logSignIn(tx, user, api.EventProgramSignedIn, api.EventData{"program": g.Client, "name": name, "signIn": id.String(), "for": from.Label}, from.Address)
}

func newSalt() []byte {
	salt := make([]byte, 32)
	rand.Read(salt)
	return salt
}

// successors are the tokens that a refresh token is traded for. They can be made
// again of that token and the salt, so that an answer that was lost can be given
// once more; of what is stored alone they can't.
func successors(refresh string, salt []byte) (access, next string) {
	make := func(prefix string) string {
		mac := hmac.New(sha256.New, salt)
		mac.Write([]byte(prefix + refresh))
		secret := prefix + base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
		return secret + checksum(secret)
	}
	return make(accessPrefix), make(refreshPrefix)
}

func (a *Accounts) keepPair(tx *db.Tx, refresh string, salt []byte, program api.TokenID, ends time.Time) (Tokens, error) {
	access, next := successors(refresh, salt)
	out := Tokens{Access: access, Refresh: next, ExpiresIn: min(a.cfg.AccessLife, ends.Sub(tx.Now))}
	for _, t := range []queries.InsertProgramTokenParams{
		{Hash: hashOf(access), ProgramID: program, Kind: kindAccess, ExpiresAt: db.Micros(tx.Now.Add(out.ExpiresIn)), Salt: []byte{}},
		{Hash: hashOf(next), ProgramID: program, Kind: kindRefresh, ExpiresAt: db.Micros(tx.Now.Add(min(refreshLife, ends.Sub(tx.Now)))), Salt: []byte{}},
	} {
		if err := tx.InsertProgramToken(tx.Context(), t); err != nil {
			return Tokens{}, fmt.Errorf("keep a token of program %s: %w", program, err)
		}
	}
	return out, nil
}

// Refresh trades a refresh token for the next pair. The same one within ten
// seconds gets the same pair again, for an answer that was lost; after that, or
// when the next one was used already, which shows that the answer wasn't lost, two
// have it, and its use ends the whole sign-in (contract 8.2). Error: [OAuthError].
func (a *Accounts) Refresh(ctx context.Context, by Presented, refresh string) (out Tokens, err error) {
	if !sound(refresh, refreshPrefix) {
		return out, errInvalidGrant
	}
	return a.trade(ctx, by, func(tx *db.ReadTx) error {
		_, err := tx.ProgramToken(ctx, hashOf(refresh))
		return err
	}, func(tx *db.Tx) (Tokens, error, error) { return a.refreshTx(tx, by, refresh) })
}

func (a *Accounts) refreshTx(tx *db.Tx, by Presented, refresh string) (out Tokens, refusal, err error) {
	row, err := tx.ProgramToken(tx.Context(), hashOf(refresh))
	if db.None(err) {
		return out, errInvalidGrant, nil
	}
	if err != nil {
		return out, nil, fmt.Errorf("read a refresh token: %w", err)
	}
	t, p, now := row.ProgramToken, row.Program, db.Micros(tx.Now)
	switch {
	case t.Kind != kindRefresh || p.Client != by.Client || !alive(&p, now):
		return out, errInvalidGrant, nil
	case by.fits(p.Resource) != nil:
		return out, by.fits(p.Resource), nil
	case t.UsedAt != 0 && now < t.UsedAt+db.Span(retryWindow):
		return a.sameAgain(tx, &p, refresh, t.Salt)
	case t.UsedAt != 0:
		return out, errInvalidGrant, a.endProgram(tx, p.ID, "a refresh token was used twice")
	case t.ExpiresAt <= now:
		return out, errInvalidGrant, nil
	}
	salt := newSalt()
	if err := db.One(tx.UseProgramToken(tx.Context(), queries.UseProgramTokenParams{Now: now, Salt: salt, Hash: t.Hash})); err != nil {
		return out, nil, fmt.Errorf("use a refresh token: %w", err)
	}
	out, err = a.keepPair(tx, refresh, salt, p.ID, time.UnixMicro(p.ExpiresAt))
	out.Scopes = p.Scopes
	return out, nil, err
}

// sameAgain answers a refresh token that was just traded with what it was traded for.
func (a *Accounts) sameAgain(tx *db.Tx, p *queries.Program, refresh string, salt []byte) (out Tokens, refusal, err error) {
	access, next := successors(refresh, salt)
	var given [2]queries.ProgramToken
	for i, token := range []string{access, next} {
		row, err := tx.ProgramToken(tx.Context(), hashOf(token))
		if err != nil {
			return out, nil, fmt.Errorf("read a token that was given: %w", err)
		}
		given[i] = row.ProgramToken
	}
	if given[1].UsedAt != 0 {
		return out, errInvalidGrant, a.endProgram(tx, p.ID, "a refresh token was used after the one that followed it")
	}
	left := time.Duration(given[0].ExpiresAt-db.Micros(tx.Now)) * time.Microsecond
	return Tokens{Access: access, Refresh: next, ExpiresIn: left, Scopes: p.Scopes}, nil, nil
}

func alive(p *queries.Program, now int64) bool { return p.RevokedAt == 0 && p.ExpiresAt > now }

// sound reports whether a text can be a token of ours, without a look into the store.
func sound(token, prefix string) bool {
	return strings.HasPrefix(token, prefix) && len(token) > len(prefix)+keySum &&
		checksum(token[:len(token)-keySum]) == token[len(token)-keySum:]
}

// RevokeProgram ends the sign-in that a token is of (RFC 7009): whoever has one
// may do so. An unknown one is no error, nor is one of another client.
func (a *Accounts) RevokeProgram(ctx context.Context, by Presented, token string) error {
	return a.store.Write(ctx, func(tx *db.Tx) error {
		row, err := tx.ProgramToken(tx.Context(), hashOf(token))
		if db.None(err) || (err == nil && (row.Program.Client != by.Client || row.Program.RevokedAt != 0)) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read a token: %w", err)
		}
		return a.signProgramOut(tx, &row.Program, by.From.Address)
	})
}

func (a *Accounts) signProgramOut(tx *db.Tx, p *queries.Program, address string) error {
	tx.LessRights()
	if err := db.One(tx.RevokeProgram(tx.Context(), queries.RevokeProgramParams{Now: db.Micros(tx.Now), ID: p.ID})); err != nil {
		return fmt.Errorf("sign program %s out: %w", p.ID, err)
	}
	return a.logSignIn(tx, p.UserID, api.EventProgramSignedOut, api.EventData{"program": p.Client, "signIn": p.ID.String()}, address)
}

// endProgram ends a sign-in of which somebody else has a part.
func (a *Accounts) endProgram(tx *db.Tx, id api.TokenID, why string) error {
	p, err := tx.Program(tx.Context(), id)
	if err != nil {
		return fmt.Errorf("read program %s: %w", id, err)
	}
	tx.LessRights()
	n, err := tx.RevokeProgram(tx.Context(), queries.RevokeProgramParams{Now: db.Micros(tx.Now), ID: id})
	if err != nil || n == 0 {
		return err
	}
	a.log.Warn("A program's sign-in was ended.", "why", why, "user", p.UserID.String(), "program", p.Client)
	return a.logSignIn(tx, p.UserID, api.EventProgramReused, api.EventData{"program": p.Client, "signIn": id.String(), "why": why}, "")
}

// authenticateProgram finds out as whom a program acts.
func (a *Accounts) authenticateProgram(ctx context.Context, access string) (out Identity, err error) {
	if !sound(access, accessPrefix) {
		return out, errNotSignedIn
	}
	var lastUsed int64
	err = a.store.ReadRights(ctx, func(tx *db.ReadTx) error {
		row, err := tx.ProgramToken(ctx, hashOf(access))
		if db.None(err) {
			return errNotSignedIn
		}
		if err != nil {
			return fmt.Errorf("read an access token: %w", err)
		}
		t, p, now := row.ProgramToken, row.Program, db.Micros(a.store.Now())
		if t.Kind != kindAccess || t.ExpiresAt <= now || !alive(&p, now) {
			return errNotSignedIn
		}
		out = Identity{UserID: p.UserID, Name: row.UserName, TokenID: p.ID, Client: p.Client, Resource: p.Resource, Granted: p.Scopes}
		lastUsed = p.LastUsedAt
		return nil
	})
	if err == nil && lastUsed+db.Span(touchEvery) <= db.Micros(a.store.Now()) {
		a.touch(ctx, func(tx *db.Tx) error {
			_, err := tx.TouchProgram(tx.Context(), queries.TouchProgramParams{Now: db.Micros(tx.Now), ID: out.TokenID})
			return err
		})
	}
	return out, err
}

// logSignIn logs a user's sign-ins in each of their workspaces.
// Streams leave such events out: they are for those who may read the audit.
func (a *Accounts) logSignIn(tx *db.Tx, user api.UserID, kind string, data api.EventData, address string) error {
	return a.logOfUser(tx, user, user.String(), kind, data, address)
}

func (a *Accounts) logOfUser(tx *db.Tx, user api.UserID, actor, kind string, data api.EventData, address string) error {
	all, err := tx.WorkspacesOf(tx.Context(), user)
	if err != nil {
		return fmt.Errorf("list the workspaces of user %s: %w", user, err)
	}
	if !api.IsLoopback(address) {
		tx.From = address
	}
	for _, ws := range all {
		if err := tx.Log(db.Event{Workspace: ws.ID, Actor: actor, Type: kind, Data: data}); err != nil {
			return err
		}
	}
	return nil
}

// dropPrograms forgets codes, tokens and provider sign-ins that are over.
func (a *Accounts) dropPrograms(ctx context.Context, _ time.Time) (time.Time, error) {
	return time.Time{}, a.store.Write(ctx, func(tx *db.Tx) error {
		now := db.Micros(tx.Now)
		if _, err := tx.DropOldProgramTokens(tx.Context(), now); err != nil {
			return err
		}
		// A code that was used is kept long enough for its second use to be noticed.
		if _, err := tx.DropOldOAuthCodes(tx.Context(), now-db.Span(time.Hour)); err != nil {
			return err
		}
		if _, err := tx.DropOldDeviceCodes(tx.Context(), now); err != nil {
			return err
		}
		if _, err := tx.DropOldOIDCSignIns(tx.Context(), now); err != nil {
			return err
		}
		_, err := tx.DropOldOAuthClients(tx.Context(), now)
		return err
	})
}
