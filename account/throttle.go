package account

import (
	"context"
	"crypto/sha256"
	"fmt"
	"net/netip"
	"time"

	"stint/api"
	"stint/db"
	"stint/queries"
)

// bucket counts tries of one kind within a span of time that begins with the first.
type bucket struct {
	key  []byte
	most int64
	span time.Duration
}

// bucketOf names a bucket. The parts are hashed: one may be a password that was
// typed into the wrong field.
func bucketOf(most int64, span time.Duration, parts ...string) bucket {
	h := sha256.New()
	for _, p := range parts {
		fmt.Fprintf(h, "%d:%s", len(p), p)
	}
	return bucket{key: h.Sum(nil), most: most, span: span}
}

// takeAttempt counts a guess in every bucket before it is looked at, or refuses it
// without counting when one of them is full. Error: too_many_requests with the
// seconds until there is room.
func takeAttempt(tx *db.Tx, buckets ...bucket) error {
	now := db.Micros(tx.Now)
	rows := make([]queries.Attempt, len(buckets))
	for i, b := range buckets {
		row, err := tx.Attempts(tx.Context(), b.key)
		if err != nil && !db.None(err) {
			return fmt.Errorf("read the tries: %w", err)
		}
		if db.None(err) || row.Until <= now {
			row = queries.Attempt{Key: b.key, Since: now, Until: now + db.Span(b.span)}
		}
		if row.Count >= b.most {
			return &api.Error{
				Code: api.CodeTooMany, Detail: "Too many tries; wait before the next one.",
				RetryIn: int((row.Until-now)/1_000_000) + 1,
			}
		}
		row.Count++
		rows[i] = row
	}
	for _, row := range rows {
		if err := tx.PutAttempts(tx.Context(), queries.PutAttemptsParams(row)); err != nil {
			return fmt.Errorf("count a try: %w", err)
		}
	}
	return nil
}

// The limits on passwords. Ten guesses a minute and a hundred an hour at an account
// from an address, sixty a minute from an address. And a hundred an hour at an
// account from all the networks together from which nobody signed in to it within
// ninety days, of which one network has half: many addresses guess no more than a
// few. They can use up what strangers have, but not the share of a network that the
// owner signs in from, nor the links of `stint open` (contract 8.1).
const (
	guessesAMinute   = 10
	guessesAnHour    = 100
	guessesAnywhere  = 60
	guessesStrangers = 100 // an hour, of all together
	guessesStranger  = 50  // an hour, of one network
	networkKnown     = 90 * 24 * time.Hour
)

// guess is somebody's try at an account's password.
type guess struct {
	user    api.UserID // whose account it is; 0 for a name that nobody has
	login   string
	address string
}

// knownNetwork marks the networks from which somebody signed in.
func knownNetwork(user api.UserID, address string) bucket {
	return bucketOf(1, networkKnown, "known", user.String(), network(address))
}

// takeGuess counts a guess at an account's password.
func takeGuess(tx *db.Tx, g guess) error {
	at := network(g.address)
	known, err := tx.Attempts(tx.Context(), knownNetwork(g.user, g.address).key)
	if err != nil && !db.None(err) {
		return fmt.Errorf("read whether a network is known: %w", err)
	}
	buckets := []bucket{
		bucketOf(guessesAMinute, time.Minute, "pair", g.login, at),
		bucketOf(guessesAnHour, time.Hour, "pair by the hour", g.login, at),
		bucketOf(guessesAnywhere, time.Minute, "address", at),
	}
	if db.None(err) || known.Until <= db.Micros(tx.Now) {
		buckets[1].most = guessesStranger
		buckets = append(buckets, bucketOf(guessesStrangers, time.Hour, "strangers", g.login))
	}
	return takeAttempt(tx, buckets...)
}

// forgetGuesses lets somebody who knew the password begin anew.
func forgetGuesses(tx *db.Tx, login, address string) error {
	address = network(address)
	for _, b := range []bucket{bucketOf(0, 0, "pair", login, address), bucketOf(0, 0, "pair by the hour", login, address)} {
		if _, err := tx.DropAttempts(tx.Context(), b.key); err != nil {
			return fmt.Errorf("forget the tries: %w", err)
		}
	}
	return nil
}

// noteNetwork remembers from which network somebody signed in.
func noteNetwork(tx *db.Tx, user api.UserID, address string) error {
	b, now := knownNetwork(user, address), db.Micros(tx.Now)
	if err := tx.PutAttempts(tx.Context(), queries.PutAttemptsParams{Key: b.key, Since: now, Until: now + db.Span(b.span), Count: 1}); err != nil {
		return fmt.Errorf("note a network: %w", err)
	}
	return nil
}

// network is the part of an address that one person can't change at will.
func network(address string) string {
	ip, err := netip.ParseAddr(address)
	if err != nil {
		return address
	}
	ip = ip.Unmap().WithZone("")
	if ip.Is4() {
		return ip.String()
	}
	prefix, err := ip.Prefix(64)
	if err != nil {
		return address
	}
	return prefix.String()
}

// dropOldAttempts forgets tries whose time is over.
func (a *Accounts) dropOldAttempts(ctx context.Context, _ time.Time) (time.Time, error) {
	return time.Time{}, a.store.Write(ctx, func(tx *db.Tx) error {
		_, err := tx.DropOldAttempts(tx.Context(), db.Micros(tx.Now))
		return err
	})
}
