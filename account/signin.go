package account

import (
	"context"
	"fmt"
	"strings"
	"time"

	"stint/api"
	"stint/db"
	"stint/queries"
)

var errWrongPassword = api.Refuse(api.CodeUnauthenticated, "The name or the password is wrong.")

// SignInWithPassword answers a cookie's value for a name and a password. An
// unknown name and a wrong password are answered alike, and as late. Errors:
// unauthenticated, too_many_requests.
func (a *Accounts) SignInWithPassword(ctx context.Context, login, password string, from From) (cookie string, expires time.Time, err error) {
	login = strings.ToLower(strings.TrimSpace(login))
	var row queries.Login
	err = a.store.Read(ctx, func(tx *db.ReadTx) error {
		row, err = tx.LoginByName(ctx, login)
		if db.None(err) {
			row = queries.Login{}
			return nil
		}
		return err
	})
	if err != nil {
		return "", time.Time{}, fmt.Errorf("read a login: %w", err)
	}
	if err := a.store.Write(ctx, func(tx *db.Tx) error { return takeGuess(tx, guess{row.UserID, login, from.Address}) }); err != nil {
		return "", time.Time{}, err
	}
	fits, err := a.hashers.fits(ctx, password, row.Password)
	if err != nil {
		return "", time.Time{}, err
	}
	if !fits || row.UserID == 0 {
		a.log.Warn("A sign-in was refused.", "address", from.Address, "known", row.UserID != 0)
		if err := a.signInRefused(ctx, row.UserID, login, from); err != nil {
			return "", time.Time{}, err
		}
		return "", time.Time{}, errWrongPassword
	}
	err = a.store.Write(ctx, func(tx *db.Tx) error {
		again, err := tx.LoginOf(tx.Context(), row.UserID)
		if err != nil {
			return fmt.Errorf("read a login: %w", err)
		}
		if again.Password != row.Password {
			return errWrongPassword // changed while it was being compared
		}
		if err := forgetGuesses(tx, login, from.Address); err != nil {
			return err
		}
		cookie, expires, err = newCookie(tx, row.UserID, from)
		return err
	})
	return cookie, expires, err
}

// signInRefused tells the log of a wrong password, once a minute for a name and an
// address, so that guessing doesn't fill it. An unknown name goes to the owner's
// workspaces, without the name: it may be a password in the wrong field.
func (a *Accounts) signInRefused(ctx context.Context, user api.UserID, login string, from From) error {
	return a.store.Write(ctx, func(tx *db.Tx) error {
		err := takeAttempt(tx, bucketOf(1, time.Minute, "refused", login, network(from.Address)))
		if api.CodeOf(err) == api.CodeTooMany {
			return nil
		}
		if err != nil {
			return err
		}
		data := api.EventData{"knownName": user != 0}
		if user != 0 {
			data["user"] = user.String()
			return a.logOfUser(tx, user, api.ActorSystem, api.EventSignInRefused, data, from.Address)
		}
		owner, err := tx.FirstOwner(tx.Context())
		if err != nil {
			return fmt.Errorf("read the owner: %w", err)
		}
		return a.logOfUser(tx, owner.ID, api.ActorSystem, api.EventSignInRefused, data, from.Address)
	})
}

// NeedsSetUp reports whether nobody can sign in yet: no one by a password, no
// owner through the provider.
func (a *Accounts) NeedsSetUp(ctx context.Context) (needs bool, err error) {
	err = a.store.Read(ctx, func(tx *db.ReadTx) error {
		needs, err = needsSetUp(ctx, tx)
		return err
	})
	return needs, err
}

func needsSetUp(ctx context.Context, q queries.Querier) (bool, error) {
	_, err := q.AnyLogin(ctx)
	if db.None(err) {
		_, err = q.AnyOwnersIdentity(ctx)
	}
	if err != nil && !db.None(err) {
		return false, fmt.Errorf("read who can sign in: %w", err)
	}
	return db.None(err), nil
}

// setUpBy uses the owner's one-time link, while nobody can sign in, and answers
// who the owner is.
func (a *Accounts) setUpBy(tx *db.Tx, link []byte) (api.UserID, error) {
	needed, err := needsSetUp(tx.Context(), tx)
	if err != nil {
		return 0, err
	}
	if !needed {
		return 0, db.NotFound("set-up")
	}
	user, err := useLinkHash(tx, link)
	if err != nil {
		return 0, err
	}
	owner, err := tx.FirstOwner(tx.Context())
	if err != nil {
		return 0, fmt.Errorf("read the owner: %w", err)
	}
	if owner.ID != user {
		return 0, db.NotFound("set-up")
	}
	return user, nil
}

// SetUp gives the owner, whose one-time link this is, a name and a password, and
// answers a cookie's value. It works once in a coordinator's life. Errors:
// unauthenticated, not_found when somebody can sign in already, invalid.
func (a *Accounts) SetUp(ctx context.Context, link string, in api.LoginInput, from From) (cookie string, expires time.Time, err error) {
	in.Current = ""
	if err := checkNewLogin(&in); err != nil {
		return "", time.Time{}, err
	}
	if err := a.store.Write(ctx, func(tx *db.Tx) error { return takeAttempt(tx, linkBucket(from)) }); err != nil {
		return "", time.Time{}, err
	}
	if err := a.readsLink(ctx, link); err != nil {
		return "", time.Time{}, err
	}
	text, err := a.hashers.hash(ctx, in.Password)
	if err != nil {
		return "", time.Time{}, err
	}
	err = a.store.Write(ctx, func(tx *db.Tx) error {
		user, err := a.setUpBy(tx, hashOf(link))
		if err != nil {
			return err
		}
		if err := putLogin(tx, user, in, text); err != nil {
			return err
		}
		cookie, expires, err = newCookie(tx, user, from)
		return err
	})
	return cookie, expires, err
}

// linkBucket bounds how often an address may try secrets that cost a hash.
func linkBucket(from From) bucket {
	return bucketOf(guessesAnywhere, time.Minute, "link", network(from.Address))
}

// readsLink refuses a link that is no good before anything is spent on it.
func (a *Accounts) readsLink(ctx context.Context, link string) error {
	return a.store.Read(ctx, func(tx *db.ReadTx) error {
		t, err := tx.TokenByHash(ctx, hashOf(link))
		if db.None(err) || (err == nil && (t.Kind != tokenLink || t.UsedAt != 0 || t.ExpiresAt <= db.Micros(a.store.Now()))) {
			return api.Refuse(api.CodeUnauthenticated, "This link is unknown, used or older than 10 minutes.")
		}
		return err
	})
}

// checkNewLogin names what is wrong with the name and password of a new login.
func checkNewLogin(in *api.LoginInput) error {
	var v api.Invalid
	checkLogin(&v, &in.Login)
	if in.Name = strings.TrimSpace(in.Name); in.Name == "" {
		in.Name = in.Login
	}
	CheckPersonName(&v, &in.Name)
	checkPassword(&v, in.Login, in.Password)
	return v.Err()
}

// putLogin keeps a person's names and the text made of the password.
func putLogin(tx *db.Tx, user api.UserID, in api.LoginInput, text string) error {
	err := tx.PutLogin(tx.Context(), queries.PutLoginParams{UserID: user, Name: in.Login, Password: text, ChangedAt: db.Micros(tx.Now)})
	if db.IsUnique(err) {
		return api.BadField("login", "is taken: choose another")
	}
	if err != nil {
		return fmt.Errorf("keep a login: %w", err)
	}
	if err := db.One(tx.RenameUser(tx.Context(), queries.RenameUserParams{Name: in.Name, ID: user})); err != nil {
		return fmt.Errorf("name user %s: %w", user, err)
	}
	return nil
}
