package engine

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

// takeTry counts a guess in every bucket before it is looked at, or refuses it
// without counting when one of them is full. Error: too_many_requests with the
// seconds until there is room.
func takeTry(tx *db.Tx, buckets ...bucket) error {
	now := micros(tx.Now)
	rows := make([]queries.Try, len(buckets))
	for i, b := range buckets {
		row, err := tx.Tries(wctx(), b.key)
		if err != nil && !none(err) {
			return fmt.Errorf("read the tries: %w", err)
		}
		if none(err) || row.Until <= now {
			row = queries.Try{Key: b.key, Since: now, Until: now + span(b.span)}
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
		if err := tx.PutTries(wctx(), queries.PutTriesParams(row)); err != nil {
			return fmt.Errorf("count a try: %w", err)
		}
	}
	return nil
}

// The limits on passwords: ten guesses a minute at an account from an address,
// one once an account is under attack from many; a hundred an hour at an account
// from an address; sixty a minute from an address. No limit is an account's
// alone, or a stranger could lock its owner out (contract 8.1).
const (
	guessesAMinute  = 10
	guessesAnHour   = 100
	guessesAnywhere = 60
)

// takeGuess counts a guess at an account's password.
func takeGuess(tx *db.Tx, login, address string) error {
	address = network(address)
	under := bucketOf(guessesAnHour, time.Hour, "account", login)
	most := int64(guessesAMinute)
	row, err := tx.Tries(wctx(), under.key)
	switch {
	case none(err) || err == nil && row.Until <= micros(tx.Now):
		row = queries.Try{Key: under.key, Since: micros(tx.Now), Until: micros(tx.Now) + span(under.span)}
	case err != nil:
		return fmt.Errorf("read the tries: %w", err)
	case row.Count >= guessesAnHour:
		most = 1
	}
	err = takeTry(tx,
		bucketOf(most, time.Minute, "pair", login, address),
		bucketOf(guessesAnHour, time.Hour, "pair by the hour", login, address),
		bucketOf(guessesAnywhere, time.Minute, "address", address))
	if err != nil {
		return err
	}
	row.Count++
	return tx.PutTries(wctx(), queries.PutTriesParams(row))
}

// forgetGuesses lets somebody who knew the password begin anew.
func forgetGuesses(tx *db.Tx, login, address string) error {
	address = network(address)
	for _, b := range []bucket{bucketOf(0, 0, "pair", login, address), bucketOf(0, 0, "pair by the hour", login, address)} {
		if _, err := tx.DropTries(wctx(), b.key); err != nil {
			return fmt.Errorf("forget the tries: %w", err)
		}
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

// dropTries forgets tries whose time is over.
func (e *Engine) dropTries(ctx context.Context) (time.Time, error) {
	return time.Time{}, e.write(ctx, func(tx *db.Tx) error {
		_, err := tx.DropOldTries(wctx(), micros(tx.Now))
		return err
	})
}
