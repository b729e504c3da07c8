package engine

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"net/netip"
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
func (e *Engine) signInProgram(tx *db.Tx, user api.UserID, client, resource string, from From) (api.TokenID, Tokens, error) {
	if err := useClient(tx, client); err != nil {
		return 0, Tokens{}, err
	}
	id := api.TokenID(tx.NewID())
	ends := tx.Now.Add(programLife)
	err := tx.InsertProgram(wctx(), queries.InsertProgramParams{
		ID: id, UserID: user, Client: client, Resource: resource, Label: short(from.Label, maxLabelText), Address: from.Address,
		CreatedAt: micros(tx.Now), ExpiresAt: micros(ends),
	})
	if err != nil {
		return 0, Tokens{}, fmt.Errorf("sign a program in: %w", err)
	}
	// The first pair is made like every other, of a secret that nobody is told.
	seed, _ := randomSecret(refreshPrefix)
	out, err := e.keepPair(tx, seed, newSalt(), id, ends)
	if err != nil {
		return 0, Tokens{}, err
	}
	name, err := clientName(wctx(), tx, client, micros(tx.Now))
	if err != nil {
		return 0, Tokens{}, err
	}
	return id, out, e.logSignIn(tx, user, evProgramSignedIn, api.EventData{"program": client, "name": name, "signIn": id.String(), "for": from.Label}, from.Address)
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

func (e *Engine) keepPair(tx *db.Tx, refresh string, salt []byte, program api.TokenID, ends time.Time) (Tokens, error) {
	access, next := successors(refresh, salt)
	out := Tokens{Access: access, Refresh: next, ExpiresIn: min(e.cfg.AccessLife, ends.Sub(tx.Now))}
	for _, t := range []queries.InsertProgramTokenParams{
		{Hash: hashOf(access), ProgramID: program, Kind: kindAccess, ExpiresAt: micros(tx.Now.Add(out.ExpiresIn)), Salt: []byte{}},
		{Hash: hashOf(next), ProgramID: program, Kind: kindRefresh, ExpiresAt: micros(tx.Now.Add(min(refreshLife, ends.Sub(tx.Now)))), Salt: []byte{}},
	} {
		if err := tx.InsertProgramToken(wctx(), t); err != nil {
			return Tokens{}, fmt.Errorf("keep a token of program %s: %w", program, err)
		}
	}
	return out, nil
}

// Refresh trades a refresh token for the next pair. The same one within ten
// seconds gets the same pair again, for an answer that was lost; after that its
// use shows that two have it, and ends the whole sign-in (contract 8.2). Error:
// [OAuthError].
func (e *Engine) Refresh(ctx context.Context, by Presented, refresh string) (out Tokens, err error) {
	if !sound(refresh, refreshPrefix) {
		return out, errInvalidGrant
	}
	if err := e.knownHere(ctx, by.From, func(tx *db.ReadTx) error {
		_, err := tx.ProgramToken(ctx, hashOf(refresh))
		return err
	}); err != nil {
		return out, err
	}
	var refusal error
	err = e.write(ctx, func(tx *db.Tx) error {
		out, refusal, err = e.refreshTx(tx, by, refresh)
		return err
	})
	if err == nil {
		err = refusal
	}
	return out, err
}

func (e *Engine) refreshTx(tx *db.Tx, by Presented, refresh string) (out Tokens, refusal, err error) {
	row, err := tx.ProgramToken(wctx(), hashOf(refresh))
	if none(err) {
		return out, errInvalidGrant, nil
	}
	if err != nil {
		return out, nil, fmt.Errorf("read a refresh token: %w", err)
	}
	t, p, now := row.ProgramToken, row.Program, micros(tx.Now)
	switch {
	case t.Kind != kindRefresh || p.Client != by.Client || !alive(&p, now):
		return out, errInvalidGrant, nil
	case by.fits(p.Resource) != nil:
		return out, by.fits(p.Resource), nil
	case t.UsedAt != 0 && now < t.UsedAt+span(retryWindow):
		out.Access, out.Refresh = successors(refresh, t.Salt)
		given, err := tx.ProgramToken(wctx(), hashOf(out.Access))
		if err != nil {
			return out, nil, fmt.Errorf("read an access token that was given: %w", err)
		}
		out.ExpiresIn = time.Duration(given.ProgramToken.ExpiresAt-now) * time.Microsecond
		return out, nil, nil
	case t.UsedAt != 0:
		return out, errInvalidGrant, e.endProgram(tx, p.ID, "a refresh token was used twice")
	case t.ExpiresAt <= now:
		return out, errInvalidGrant, nil
	}
	salt := newSalt()
	if err := one(tx.UseProgramToken(wctx(), queries.UseProgramTokenParams{Now: now, Salt: salt, Hash: t.Hash})); err != nil {
		return out, nil, fmt.Errorf("use a refresh token: %w", err)
	}
	out, err = e.keepPair(tx, refresh, salt, p.ID, time.UnixMicro(p.ExpiresAt))
	return out, nil, err
}

func alive(p *queries.Program, now int64) bool { return p.RevokedAt == 0 && p.ExpiresAt > now }

// sound reports whether a text can be a token of ours, without a look into the store.
func sound(token, prefix string) bool {
	return strings.HasPrefix(token, prefix) && len(token) > len(prefix)+keySum &&
		checksum(token[:len(token)-keySum]) == token[len(token)-keySum:]
}

// RevokeProgram ends the sign-in that a token is of (RFC 7009): whoever has one
// may do so. An unknown one is no error, nor is one of another client.
func (e *Engine) RevokeProgram(ctx context.Context, by Presented, token string) error {
	return e.write(ctx, func(tx *db.Tx) error {
		row, err := tx.ProgramToken(wctx(), hashOf(token))
		if none(err) || (err == nil && (row.Program.Client != by.Client || row.Program.RevokedAt != 0)) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read a token: %w", err)
		}
		return e.signProgramOut(tx, &row.Program, by.From.Address)
	})
}

func (e *Engine) signProgramOut(tx *db.Tx, p *queries.Program, address string) error {
	e.lessRights(tx)
	if err := one(tx.RevokeProgram(wctx(), queries.RevokeProgramParams{Now: micros(tx.Now), ID: p.ID})); err != nil {
		return fmt.Errorf("sign program %s out: %w", p.ID, err)
	}
	return e.logSignIn(tx, p.UserID, evProgramSignedOut, api.EventData{"program": p.Client, "signIn": p.ID.String()}, address)
}

// endProgram ends a sign-in of which somebody else has a part.
func (e *Engine) endProgram(tx *db.Tx, id api.TokenID, why string) error {
	p, err := tx.Program(wctx(), id)
	if err != nil {
		return fmt.Errorf("read program %s: %w", id, err)
	}
	e.lessRights(tx)
	n, err := tx.RevokeProgram(wctx(), queries.RevokeProgramParams{Now: micros(tx.Now), ID: id})
	if err != nil || n == 0 {
		return err
	}
	e.log.Warn("A program's sign-in was ended.", "why", why, "user", p.UserID.String(), "program", p.Client)
	return e.logSignIn(tx, p.UserID, evProgramReused, api.EventData{"program": p.Client, "signIn": id.String(), "why": why}, "")
}

// authenticateProgram finds out as whom a program acts.
func (e *Engine) authenticateProgram(ctx context.Context, access string) (out Identity, err error) {
	if !sound(access, accessPrefix) {
		return out, errNotSignedIn
	}
	var lastUsed int64
	err = e.store.Read(ctx, func(tx *db.ReadTx) error {
		row, err := tx.ProgramToken(ctx, hashOf(access))
		if none(err) {
			return errNotSignedIn
		}
		if err != nil {
			return fmt.Errorf("read an access token: %w", err)
		}
		t, p, now := row.ProgramToken, row.Program, micros(e.Now())
		if t.Kind != kindAccess || t.ExpiresAt <= now || !alive(&p, now) {
			return errNotSignedIn
		}
		out = Identity{UserID: p.UserID, Name: row.UserName, TokenID: p.ID, Client: p.Client, Resource: p.Resource}
		lastUsed = p.LastUsedAt
		return nil
	})
	if err == nil && lastUsed+span(touchEvery) <= micros(e.Now()) {
		e.touch(ctx, func(tx *db.Tx) error {
			_, err := tx.TouchProgram(wctx(), queries.TouchProgramParams{Now: micros(tx.Now), ID: out.TokenID})
			return err
		})
	}
	return out, err
}

// logSignIn tells of a user's sign-ins in the log of each workspace of his.
// Streams leave such events out: they are for those who may read the audit.
func (e *Engine) logSignIn(tx *db.Tx, user api.UserID, kind string, data api.EventData, address string) error {
	return e.logOfUser(tx, user, user.String(), kind, data, address)
}

func (e *Engine) logOfUser(tx *db.Tx, user api.UserID, actor, kind string, data api.EventData, address string) error {
	all, err := tx.WorkspacesOf(wctx(), user)
	if err != nil {
		return fmt.Errorf("list the workspaces of user %s: %w", user, err)
	}
	if ip, err := netip.ParseAddr(address); err != nil || !ip.IsLoopback() {
		tx.From = address
	}
	for _, ws := range all {
		if err := e.logPeople(tx, ws.ID, actor, kind, data); err != nil {
			return err
		}
	}
	return nil
}

// dropPrograms forgets codes, tokens and detours that are over.
func (e *Engine) dropPrograms(ctx context.Context) (time.Time, error) {
	return time.Time{}, e.write(ctx, func(tx *db.Tx) error {
		now := micros(tx.Now)
		if _, err := tx.DropOldProgramTokens(wctx(), now); err != nil {
			return err
		}
		// A code that was used is kept long enough for its second use to be noticed.
		if _, err := tx.DropOldOAuthCodes(wctx(), now-span(time.Hour)); err != nil {
			return err
		}
		if _, err := tx.DropOldDeviceCodes(wctx(), now); err != nil {
			return err
		}
		if _, err := tx.DropOldDetours(wctx(), now); err != nil {
			return err
		}
		_, err := tx.DropOldOAuthClients(wctx(), now)
		return err
	})
}
