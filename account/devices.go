package account

import (
	"context"
	"crypto/rand"
	"fmt"
	"math/big"
	"strings"
	"time"

	"stint/api"
	"stint/db"
	"stint/queries"
)

// A device is a program without a browser of its own: it shows a code, and a
// person types that into a page (RFC 8628).
const (
	deviceLife   = 10 * time.Minute
	deviceWait   = 5  // seconds between two questions
	deviceSlow   = 10 // … of a program that asked too soon
	devicePrefix = "stint_dev_"

	// early is how much sooner than told a program may ask: its timer and the
	// network are not exact.
	early = time.Second

	deviceStarts  = 30 // codes a minute for one address
	userCodeTries = 5  // typed codes a minute for one person
	userCodeHour  = 50
	userCodeFrom  = 20 // … a minute from one address
)

// userCodeLetters can't be mistaken for each other and spell no words: 20 of
// them, 8 in a code, are 34.6 bits.
const (
	userCodeLetters = "BCDFGHJKLMNPQRSTVWXZ"
	userCodeLength  = 8
)

// Device is what a program without a browser is told.
type Device struct {
	Code      string // the program's own, secret
	UserCode  string // what it shows
	ExpiresIn time.Duration
	Interval  time.Duration // between two questions
}

// Asking is a program that waits for a yes, as a person who typed its code is
// shown it.
type Asking struct {
	Client  string // its name
	From    From   // where it asks from
	Since   time.Time
	Expires time.Time
}

// StartDevice makes a code for a program to show: for the command line alone, since
// a code can be sent to people. Errors: [OAuthError], too_many_requests.
func (a *Accounts) StartDevice(ctx context.Context, by Presented) (out Device, err error) {
	if by.Client != CLI {
		return out, &OAuthError{"unauthorized_client", "A program that registered itself signs in in a browser of its own machine."}
	}
	from, resource := by.From, ""
	if by.Resource != nil {
		resource = *by.Resource
	}
	err = a.store.Write(ctx, func(tx *db.Tx) error {
		if err := takeAttempt(tx, bucketOf(deviceStarts, time.Minute, "device", network(from.Address))); err != nil {
			return err
		}
		code, hash := randomSecret(devicePrefix)
		shown := newUserCode()
		err := tx.InsertDeviceCode(tx.Context(), queries.InsertDeviceCodeParams{
			Hash: hash, UserCode: hashOf(shown), Client: by.Client, Resource: resource, Label: short(from.Label, maxLabelText),
			Address: from.Address, CreatedAt: db.Micros(tx.Now), ExpiresAt: db.Micros(tx.Now.Add(deviceLife)), Wait: deviceWait,
		})
		if db.IsUnique(err) {
			return &api.Error{Code: api.CodeTooMany, Detail: "That code is taken; ask for another.", RetryIn: 1}
		}
		if err != nil {
			return fmt.Errorf("keep a device's code: %w", err)
		}
		out = Device{Code: code, UserCode: shown[:4] + "-" + shown[4:], ExpiresIn: deviceLife, Interval: deviceWait * time.Second}
		return nil
	})
	return out, err
}

func newUserCode() string {
	var b strings.Builder
	for range userCodeLength {
		n, err := rand.Int(rand.Reader, big.NewInt(int64(len(userCodeLetters))))
		if err != nil {
			panic(err) // crypto/rand doesn't fail
		}
		b.WriteByte(userCodeLetters[n.Int64()])
	}
	return b.String()
}

// typed is a code as it is kept, however it was typed.
func typed(code string) string {
	return strings.Map(func(r rune) rune {
		if r == '-' || r == ' ' {
			return -1
		}
		return r
	}, strings.ToUpper(code))
}

var errNoUserCode = api.BadField("code", "is unknown, too old or used: look at what the program shows")

// Asked looks up the program whose code a person typed. Errors: invalid,
// too_many_requests after a few wrong ones.
func (a *Accounts) Asked(ctx context.Context, who Identity, code string, from From) (out Asking, err error) {
	err = a.typedCode(ctx, who, code, from, func(tx *db.Tx, d queries.DeviceCode) error {
		name, err := clientName(tx.Context(), tx, d.Client, db.Micros(tx.Now))
		if err != nil {
			return err
		}
		out = Asking{
			Client: name, From: From{Label: d.Label, Address: d.Address},
			Since: time.UnixMicro(d.CreatedAt), Expires: time.UnixMicro(d.ExpiresAt),
		}
		return nil
	})
	return out, err
}

// Allow signs the program in whose code a person typed and whose request they have
// seen. Errors: as of Asked.
func (a *Accounts) Allow(ctx context.Context, who Identity, code string, from From) error {
	return a.answerDevice(ctx, who, code, from, who.UserID)
}

// Deny tells the program no. Errors: as of Asked.
func (a *Accounts) Deny(ctx context.Context, who Identity, code string, from From) error {
	return a.answerDevice(ctx, who, code, from, 0)
}

func (a *Accounts) answerDevice(ctx context.Context, who Identity, code string, from From, as api.UserID) error {
	return a.typedCode(ctx, who, code, from, func(tx *db.Tx, d queries.DeviceCode) error {
		return db.One(tx.DecideDeviceCode(tx.Context(), queries.DecideDeviceCodeParams{Now: db.Micros(tx.Now), UserID: as, Hash: d.Hash}))
	})
}

// typedCode counts a try and does something with the undecided program that the
// code is of. Who typed a right one begins anew.
func (a *Accounts) typedCode(ctx context.Context, who Identity, code string, from From, do func(*db.Tx, queries.DeviceCode) error) error {
	mine := bucketOf(userCodeTries, time.Minute, "user code", who.UserID.String())
	hour := bucketOf(userCodeHour, time.Hour, "user code by the hour", who.UserID.String())
	if err := a.store.Write(ctx, func(tx *db.Tx) error {
		return takeAttempt(tx, mine, hour, bucketOf(userCodeFrom, time.Minute, "user code from", network(from.Address)))
	}); err != nil {
		return err
	}
	return a.store.Write(ctx, func(tx *db.Tx) error {
		d, err := tx.DeviceByUserCode(tx.Context(), hashOf(typed(code)))
		if db.None(err) || (err == nil && (d.DecidedAt != 0 || d.ExpiresAt <= db.Micros(tx.Now))) {
			return errNoUserCode
		}
		if err != nil {
			return fmt.Errorf("read a device's code: %w", err)
		}
		for _, b := range []bucket{mine, hour} {
			if _, err := tx.DropAttempts(tx.Context(), b.key); err != nil {
				return fmt.Errorf("forget the tries: %w", err)
			}
		}
		return do(tx, d)
	})
}

var (
	errPending  = &OAuthError{"authorization_pending", "Nobody has answered yet."}
	errSlowDown = &OAuthError{"slow_down", "Ask at the interval that you were told, now longer by 5 seconds."}
)

// TradeDevice gives tokens to a program whose asking was allowed. Error:
// [OAuthError], authorization_pending while nobody has answered.
func (a *Accounts) TradeDevice(ctx context.Context, by Presented, code string) (out Tokens, err error) {
	return a.trade(ctx, by, func(tx *db.ReadTx) error {
		_, err := tx.DeviceCode(ctx, hashOf(code))
		return err
	}, func(tx *db.Tx) (Tokens, error, error) { return a.tradeDeviceTx(tx, by, code) })
}

func (a *Accounts) tradeDeviceTx(tx *db.Tx, by Presented, code string) (out Tokens, refusal, err error) {
	d, err := tx.DeviceCode(tx.Context(), hashOf(code))
	if db.None(err) {
		return out, errInvalidGrant, nil
	}
	if err != nil {
		return out, nil, fmt.Errorf("read a device's code: %w", err)
	}
	now := db.Micros(tx.Now)
	switch {
	case d.Client != by.Client || d.UsedAt != 0:
		return out, errInvalidGrant, nil
	case d.ExpiresAt <= now:
		return out, &OAuthError{"expired_token", "Nobody typed the code in time; ask for another."}, nil
	case by.fits(d.Resource) != nil:
		return out, by.fits(d.Resource), nil
	case d.DecidedAt != 0 && d.UserID == 0:
		return out, &OAuthError{"access_denied", "The answer was no."}, nil
	}
	ask := queries.AskDeviceCodeParams{Now: now, Wait: d.Wait, Hash: d.Hash}
	refusal = errPending
	if d.AskedAt != 0 && now < d.AskedAt+db.Seconds(d.Wait)-db.Span(early) {
		ask.Wait, refusal = deviceSlow, errSlowDown
	}
	if err := db.One(tx.AskDeviceCode(tx.Context(), ask)); err != nil {
		return out, nil, fmt.Errorf("note a question: %w", err)
	}
	if d.DecidedAt == 0 || refusal == errSlowDown { //nolint:errorlint // the value itself
		return out, refusal, nil
	}
	if err := db.One(tx.UseDeviceCode(tx.Context(), queries.UseDeviceCodeParams{Now: now, Hash: d.Hash})); err != nil {
		return out, nil, fmt.Errorf("use a device's code: %w", err)
	}
	_, out, err = a.signInProgram(tx, d.UserID, Grant{Client: d.Client, Resource: d.Resource}, From{Label: d.Label, Address: d.Address})
	return out, nil, err
}
