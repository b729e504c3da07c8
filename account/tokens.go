package account

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"time"

	"stint/api"
	"stint/db"
	"stint/queries"
)

// The kinds of secrets that stand for a user, and how long they live. A browser
// that isn't used ends sooner.
const (
	tokenBearer = "bearer"
	tokenCookie = "cookie"
	tokenLink   = "link"

	bearerLife = 10 * 365 * 24 * time.Hour
	cookieLife = 30 * 24 * time.Hour
	cookieIdle = 7 * 24 * time.Hour
	linkLife   = 10 * time.Minute

	// touchEvery is how exact "last used" is: one write in so long and no more.
	touchEvery = 5 * time.Minute
)

// randomSecret makes a secret of 256 random bits and what is kept of it.
func randomSecret(prefix string) (secret string, hash []byte) {
	var raw [32]byte
	rand.Read(raw[:])
	secret = prefix + base64.RawURLEncoding.EncodeToString(raw[:])
	return secret, hashOf(secret)
}

func hashOf(secret string) []byte {
	sum := sha256.Sum256([]byte(secret))
	return sum[:]
}

// issue makes a secret that stands for a user; only its SHA-256 is kept.
func issue(tx *db.Tx, user api.UserID, kind string, life time.Duration, from From) (string, error) {
	secret, hash := randomSecret("stk_")
	err := tx.InsertToken(tx.Context(), queries.InsertTokenParams{
		ID: api.TokenID(tx.NewID()), UserID: user, Kind: kind, Hash: hash, Label: short(from.Label, maxLabelText), Address: from.Address,
		CreatedAt: db.Micros(tx.Now), ExpiresAt: db.Micros(tx.Now.Add(life)),
	})
	if err != nil {
		return "", fmt.Errorf("keep a %s token: %w", kind, err)
	}
	return secret, nil
}

// good reports whether a token signs in.
func good(t *queries.Token, now time.Time) bool {
	if t.Kind == tokenLink || t.RevokedAt != 0 || t.ExpiresAt <= db.Micros(now) {
		return false
	}
	return t.Kind != tokenCookie || max(t.CreatedAt, t.LastUsedAt)+db.Span(cookieIdle) > db.Micros(now)
}

// NewBearer makes a further bearer token of a user.
func (a *Accounts) NewBearer(ctx context.Context, user api.UserID) (secret string, err error) {
	err = a.store.Write(ctx, func(tx *db.Tx) error {
		secret, err = issue(tx, user, tokenBearer, bearerLife, From{Label: ownerLabel})
		return err
	})
	return secret, err
}
