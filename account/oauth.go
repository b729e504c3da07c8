package account

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"fmt"
	"time"

	"stint/db"
	"stint/queries"
)

// Grant is what a person is asked to give a program.
type Grant struct {
	Client    string // its id
	Resource  string // path of the part of the server that it is for; "" = the API
	Scopes    string // what it may do there, as words with spaces between them; "" = all
	Redirect  string // where the answer goes
	Challenge string // SHA-256 of the program's verifier, base64url
}

// The lives of what stands between a person's yes and a program's tokens, and of
// the tokens. A sign-in that isn't used for refreshLife ends.
const (
	codeLife    = time.Minute
	refreshLife = 30 * 24 * time.Hour
	programLife = 366 * 24 * time.Hour

	// retryWindow is how long a refresh token that was traded is answered once
	// more with the same tokens: the answer may have been lost.
	retryWindow = 10 * time.Second

	codePrefix    = "stint_code_"
	accessPrefix  = "stint_at_"
	refreshPrefix = "stint_rt_"
)

// OAuthError is a refusal in the words of OAuth: what programs read.
type OAuthError struct {
	Code   string // such as invalid_grant
	Detail string
}

func (e *OAuthError) Error() string { return e.Code + ": " + e.Detail }

var errInvalidGrant = &OAuthError{"invalid_grant", "It is unknown, expired, used or revoked."}

// Presented is who asks for tokens.
type Presented struct {
	Client   string
	Resource *string // path of the part of the server that they are to be for; nil = as it was granted
	From     From
}

// fits refuses tokens for another resource than was granted (RFC 8707).
func (p Presented) fits(granted string) error {
	if p.Resource != nil && *p.Resource != granted {
		return &OAuthError{"invalid_target", "The sign-in is for another resource."}
	}
	return nil
}

// Tokens are what a program is given.
type Tokens struct {
	Access, Refresh string
	ExpiresIn       time.Duration // of the access token
	Scopes          string        // as they were granted; "" = all that the resource has
}

// GiveCode notes that a person said yes and answers the code that the program
// trades for tokens, once, within a minute.
func (a *Accounts) GiveCode(ctx context.Context, who Identity, g Grant) (code string, err error) {
	err = a.store.Write(ctx, func(tx *db.Tx) error {
		var hash []byte
		code, hash = randomSecret(codePrefix)
		return tx.InsertOAuthCode(tx.Context(), queries.InsertOAuthCodeParams{
			Hash: hash, UserID: who.UserID, Client: g.Client, RedirectUri: g.Redirect, Challenge: g.Challenge, Resource: g.Resource, Scopes: g.Scopes,
			ExpiresAt: db.Micros(tx.Now.Add(codeLife)),
		})
	})
	if err != nil {
		return "", fmt.Errorf("keep a code: %w", err)
	}
	return code, nil
}

// trade gives tokens for a secret that look finds, if take doesn't refuse it. A refusal is
// committed: what it counts or ends must not be rolled back with it.
func (a *Accounts) trade(ctx context.Context, by Presented, look func(*db.ReadTx) error, take func(*db.Tx) (out Tokens, refusal, err error)) (out Tokens, err error) {
	if err := a.knownHere(ctx, by.From, look); err != nil {
		return out, err
	}
	var refusal error
	err = a.store.Write(ctx, func(tx *db.Tx) error {
		out, refusal, err = take(tx)
		return err
	})
	if err == nil {
		err = refusal
	}
	return out, err
}

// TradeCode gives tokens for a code to the program that asked for it and knows
// the verifier. A code is good once: its second use ends what the first one got,
// since one of the two was stolen. Error: [OAuthError].
func (a *Accounts) TradeCode(ctx context.Context, by Presented, code, redirect, verifier string) (out Tokens, err error) {
	return a.trade(ctx, by, func(tx *db.ReadTx) error {
		_, err := tx.OAuthCode(ctx, hashOf(code))
		return err
	}, func(tx *db.Tx) (Tokens, error, error) { return a.tradeCodeTx(tx, by, code, redirect, verifier) })
}

func (a *Accounts) tradeCodeTx(tx *db.Tx, by Presented, code, redirect, verifier string) (out Tokens, refusal, err error) {
	row, err := tx.OAuthCode(tx.Context(), hashOf(code))
	if db.None(err) {
		return out, errInvalidGrant, nil
	}
	if err != nil {
		return out, nil, fmt.Errorf("read a code: %w", err)
	}
	if row.UsedAt != 0 {
		if row.ProgramID == 0 {
			return out, errInvalidGrant, nil
		}
		return out, errInvalidGrant, a.endProgram(tx, row.ProgramID, "a code was used twice")
	}
	use := queries.UseOAuthCodeParams{Now: db.Micros(tx.Now), Hash: row.Hash}
	sum := sha256.Sum256([]byte(verifier))
	fits := base64.RawURLEncoding.EncodeToString(sum[:])
	switch {
	case row.ExpiresAt <= db.Micros(tx.Now):
		refusal = errInvalidGrant
	case row.Client != by.Client || row.RedirectUri != redirect || subtle.ConstantTimeCompare([]byte(fits), []byte(row.Challenge)) != 1:
		refusal = &OAuthError{"invalid_grant", "The code was given to another program, to another redirect_uri or for another verifier."}
	default:
		refusal = by.fits(row.Resource)
	}
	if refusal != nil {
		// Whoever else has the code must not be able to go on trying.
		return out, refusal, db.One(tx.UseOAuthCode(tx.Context(), use))
	}
	if use.ProgramID, out, err = a.signInProgram(tx, row.UserID, Grant{Client: row.Client, Resource: row.Resource, Scopes: row.Scopes}, by.From); err != nil {
		return out, nil, err
	}
	return out, nil, db.One(tx.UseOAuthCode(tx.Context(), use))
}

// knownHere reads what a program presents. What is unknown is counted, so that
// nobody can go on trying: 429 beyond that. The secrets are too long to be
// guessed; it is the work that is bounded.
func (a *Accounts) knownHere(ctx context.Context, from From, look func(*db.ReadTx) error) error {
	err := a.store.Read(ctx, look)
	if !db.None(err) {
		return err
	}
	err = a.store.Write(ctx, func(tx *db.Tx) error {
		return takeAttempt(tx, bucketOf(guessesAnywhere, time.Minute, "oauth", network(from.Address)))
	})
	if err != nil {
		return err
	}
	return errInvalidGrant
}
