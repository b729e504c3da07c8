package account

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	"stint/api"
	"stint/db"
	"stint/queries"
)

// Account is what a user may know about themselves.
func (a *Accounts) Account(ctx context.Context, who Identity) (out api.Account, err error) {
	if err := InPerson(who.Client); err != nil {
		return out, err
	}
	err = a.store.Read(ctx, func(tx *db.ReadTx) error {
		u, err := tx.User(ctx, who.UserID)
		if err != nil {
			return fmt.Errorf("read user %s: %w", who.UserID, err)
		}
		out = api.Account{UserID: u.ID, Name: u.Name}
		linked, err := tx.IdentitiesOf(ctx, who.UserID)
		if err != nil {
			return fmt.Errorf("list the identities of user %s: %w", who.UserID, err)
		}
		for _, i := range linked {
			out.Identities = append(out.Identities, toAPIIdentity(i))
		}
		l, err := tx.LoginOf(ctx, who.UserID)
		if db.None(err) {
			return nil
		}
		out.Login, out.PasswordSet = l.Name, api.At(l.ChangedAt)
		return err
	})
	return out, err
}

// SetLogin changes how a user signs in, and ends their other browsers' sign-ins;
// tokens and API keys go on. Where there is a password, a browser must know it;
// a token proves enough, since whoever reads the data directory is the owner.
// Errors: unauthenticated when current is wrong, too_many_requests, invalid.
func (a *Accounts) SetLogin(ctx context.Context, who Identity, in api.LoginInput, from From) (out api.Account, err error) {
	if err := InPerson(who.Client); err != nil {
		return out, err
	}
	var had queries.Login
	var user queries.User
	kind := ""
	err = a.store.Read(ctx, func(tx *db.ReadTx) error {
		if had, err = tx.LoginOf(ctx, who.UserID); err != nil && !db.None(err) {
			return fmt.Errorf("read a login: %w", err)
		}
		t, err := tx.Token(ctx, who.TokenID)
		if err != nil && !db.None(err) {
			return fmt.Errorf("read a token: %w", err)
		}
		kind = t.Kind
		user, err = tx.User(ctx, who.UserID)
		return err
	})
	if err != nil {
		return out, err
	}
	if in.Login == "" {
		in.Login = had.Name
	}
	if strings.TrimSpace(in.Name) == "" {
		in.Name = user.Name
	}
	if err := checkNewLogin(&in); err != nil {
		return out, err
	}
	if had.Password != "" && kind != tokenBearer {
		if err := a.knows(ctx, had, in.Current, from); err != nil {
			return out, err
		}
	}
	text, err := a.hashers.hash(ctx, in.Password)
	if err != nil {
		return out, err
	}
	err = a.store.Write(ctx, func(tx *db.Tx) error {
		now, err := tx.LoginOf(tx.Context(), who.UserID)
		if err != nil && !db.None(err) {
			return fmt.Errorf("read a login: %w", err)
		}
		if now.Password != had.Password {
			return api.Refuse(api.CodeConflict, "The password was changed meanwhile; nothing was done.")
		}
		if err := putLogin(tx, who.UserID, in, text); err != nil {
			return err
		}
		out = api.Account{UserID: who.UserID, Name: in.Name, Login: in.Login, PasswordSet: api.At(db.Micros(tx.Now))}
		_, err = a.endSignIns(tx, who)
		return err
	})
	return out, err
}

// knows refuses somebody who doesn't know the password that a login has now.
func (a *Accounts) knows(ctx context.Context, had queries.Login, current string, from From) error {
	if err := a.store.Write(ctx, func(tx *db.Tx) error { return takeGuess(tx, guess{had.UserID, had.Name, from.Address}) }); err != nil {
		return err
	}
	fits, err := a.hashers.fits(ctx, current, had.Password)
	if err != nil {
		return err
	}
	if !fits {
		return api.BadField("current", "is not your password")
	}
	return a.store.Write(ctx, func(tx *db.Tx) error { return forgetGuesses(tx, had.Name, from.Address) })
}

// endSignIns ends every browser's sign-in of a user but the one that asks.
func (a *Accounts) endSignIns(tx *db.Tx, who Identity) (int, error) {
	tx.LessRights()
	if _, err := tx.RevokeLinksOf(tx.Context(), queries.RevokeLinksOfParams{Now: db.Micros(tx.Now), UserID: who.UserID}); err != nil {
		return 0, fmt.Errorf("end the links of user %s: %w", who.UserID, err)
	}
	n, err := tx.RevokeSignInsOf(tx.Context(), queries.RevokeSignInsOfParams{Now: db.Micros(tx.Now), UserID: who.UserID, Keep: who.TokenID})
	if err != nil {
		return 0, fmt.Errorf("end the sign-ins of user %s: %w", who.UserID, err)
	}
	return int(n), nil
}

// SignIns lists where the caller is signed in, newest first.
func (a *Accounts) SignIns(ctx context.Context, who Identity, page api.Page) (out api.List[api.SignIn], err error) {
	if err := InPerson(who.Client); err != nil {
		return out, err
	}
	n, before, err := db.PageOf(page, math.MaxInt64)
	if err != nil {
		return out, err
	}
	err = a.store.Read(ctx, func(tx *db.ReadTx) error {
		now := db.Micros(a.store.Now())
		tokens, err := tx.TokensOf(ctx, queries.TokensOfParams{UserID: who.UserID, Now: now, Before: api.TokenID(before), N: n + 1})
		if err != nil {
			return fmt.Errorf("list the sign-ins of user %s: %w", who.UserID, err)
		}
		programs, err := tx.ProgramsOf(ctx, queries.ProgramsOfParams{UserID: who.UserID, Now: now, Before: api.TokenID(before), N: n + 1})
		if err != nil {
			return fmt.Errorf("list the programs of user %s: %w", who.UserID, err)
		}
		all := make([]api.SignIn, 0, len(tokens)+len(programs))
		for _, t := range tokens {
			all = append(all, tokenSignIn(t))
		}
		for _, p := range programs {
			name, err := clientName(ctx, tx, p.Client, now)
			if err != nil {
				return err
			}
			all = append(all, programSignIn(p, name))
		}
		slices.SortFunc(all, func(a, b api.SignIn) int { return cmp.Compare(b.ID, a.ID) })
		out = db.ListOf(all[:min(len(all), int(n)+1)], n, func(s api.SignIn) api.SignIn {
			s.Current = s.ID == who.TokenID
			return s
		}, func(s api.SignIn) int64 { return int64(s.ID) })
		return nil
	})
	return out, err
}

func tokenSignIn(t queries.Token) api.SignIn {
	kind := "browser"
	if t.Kind == tokenBearer {
		kind = "token"
	}
	return api.SignIn{
		ID: t.ID, Kind: kind, Label: t.Label, Address: t.Address, CreatedAt: api.At(t.CreatedAt), LastUsedAt: api.At(t.LastUsedAt),
		ExpiresAt: api.At(t.ExpiresAt),
	}
}

func programSignIn(p queries.Program, name string) api.SignIn {
	return api.SignIn{
		ID: p.ID, Kind: "program", Label: name, Address: p.Address, CreatedAt: api.At(p.CreatedAt),
		LastUsedAt: api.At(p.LastUsedAt), ExpiresAt: api.At(p.ExpiresAt),
	}
}

// EndSignIn ends one of the caller's own sign-ins. Error: not_found.
func (a *Accounts) EndSignIn(ctx context.Context, who Identity, id api.TokenID) error {
	if err := InPerson(who.Client); err != nil {
		return err
	}
	return a.store.Write(ctx, func(tx *db.Tx) error {
		tx.LessRights()
		n, err := tx.RevokeTokenOf(tx.Context(), queries.RevokeTokenOfParams{Now: db.Micros(tx.Now), ID: id, UserID: who.UserID})
		if err != nil || n > 0 {
			return err
		}
		p, err := tx.Program(tx.Context(), id)
		if db.None(err) || (err == nil && (p.UserID != who.UserID || p.RevokedAt != 0)) {
			return db.NotFound("sign-in")
		}
		if err != nil {
			return fmt.Errorf("read program %s: %w", id, err)
		}
		return a.signProgramOut(tx, &p, "")
	})
}

// SignOutEverywhere ends all of the caller's browsers but the one that asks.
// The token in the data directory stays: it is made anew at each start.
func (a *Accounts) SignOutEverywhere(ctx context.Context, who Identity) (out api.SignedOut, err error) {
	if err := InPerson(who.Client); err != nil {
		return out, err
	}
	err = a.store.Write(ctx, func(tx *db.Tx) error {
		out.Ended, err = a.endSignIns(tx, who)
		return err
	})
	return out, err
}
