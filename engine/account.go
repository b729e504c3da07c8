package engine

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

// Account tells a user about himself.
func (e *Engine) Account(ctx context.Context, who Identity) (out api.Account, err error) {
	if err := inPerson(who.Client); err != nil {
		return out, err
	}
	err = e.store.Read(ctx, func(tx *db.ReadTx) error {
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
		if none(err) {
			return nil
		}
		out.Login, out.PasswordSet = l.Name, api.At(l.ChangedAt)
		return err
	})
	return out, err
}

// SetLogin changes how a user signs in, and ends his other browsers' sign-ins;
// tokens and API keys go on. Where there is a password, a browser must know it;
// a token proves enough, since whoever reads the data directory is the owner.
// Errors: unauthenticated when current is wrong, too_many_requests, invalid.
func (e *Engine) SetLogin(ctx context.Context, who Identity, in api.LoginInput, from From) (out api.Account, err error) {
	if err := inPerson(who.Client); err != nil {
		return out, err
	}
	var had queries.Login
	var user queries.User
	kind := ""
	err = e.store.Read(ctx, func(tx *db.ReadTx) error {
		if had, err = tx.LoginOf(ctx, who.UserID); err != nil && !none(err) {
			return fmt.Errorf("read a login: %w", err)
		}
		t, err := tx.Token(ctx, who.TokenID)
		if err != nil && !none(err) {
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
		if err := e.knows(ctx, had, in.Current, from); err != nil {
			return out, err
		}
	}
	text, err := e.hashers.hash(ctx, in.Password)
	if err != nil {
		return out, err
	}
	err = e.write(ctx, func(tx *db.Tx) error {
		now, err := tx.LoginOf(wctx(), who.UserID)
		if err != nil && !none(err) {
			return fmt.Errorf("read a login: %w", err)
		}
		if now.Password != had.Password {
			return api.Refuse(api.CodeConflict, "The password was changed meanwhile; nothing was done.")
		}
		if err := putLogin(tx, who.UserID, in, text); err != nil {
			return err
		}
		out = api.Account{UserID: who.UserID, Name: in.Name, Login: in.Login, PasswordSet: api.At(micros(tx.Now))}
		_, err = e.endSignIns(tx, who)
		return err
	})
	return out, err
}

// knows refuses somebody who doesn't know the password that a login has now.
func (e *Engine) knows(ctx context.Context, had queries.Login, current string, from From) error {
	if err := e.write(ctx, func(tx *db.Tx) error { return takeGuess(tx, had.Name, from.Address) }); err != nil {
		return err
	}
	fits, err := e.hashers.fits(ctx, current, had.Password)
	if err != nil {
		return err
	}
	if !fits {
		return &api.Error{
			Code: api.CodeInvalid, Detail: "One field is not valid.",
			Fields: []api.FieldError{{Field: "current", Detail: "is not your password"}},
		}
	}
	return e.write(ctx, func(tx *db.Tx) error { return forgetGuesses(tx, had.Name, from.Address) })
}

// endSignIns ends every browser's sign-in of a user but the one that asks.
func (e *Engine) endSignIns(tx *db.Tx, who Identity) (int, error) {
	e.lessRights(tx)
	if _, err := tx.RevokeLinksOf(wctx(), queries.RevokeLinksOfParams{Now: micros(tx.Now), UserID: who.UserID}); err != nil {
		return 0, fmt.Errorf("end the links of user %s: %w", who.UserID, err)
	}
	n, err := tx.RevokeSignInsOf(wctx(), queries.RevokeSignInsOfParams{Now: micros(tx.Now), UserID: who.UserID, Keep: who.TokenID})
	if err != nil {
		return 0, fmt.Errorf("end the sign-ins of user %s: %w", who.UserID, err)
	}
	return int(n), nil
}

// SignIns lists where the caller is signed in, newest first.
func (e *Engine) SignIns(ctx context.Context, who Identity, page api.Page) (out api.List[api.SignIn], err error) {
	if err := inPerson(who.Client); err != nil {
		return out, err
	}
	n, before, err := pageOf(page, math.MaxInt64)
	if err != nil {
		return out, err
	}
	err = e.store.Read(ctx, func(tx *db.ReadTx) error {
		now := micros(e.Now())
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
		out = listOf(all[:min(len(all), int(n)+1)], n, func(s api.SignIn) api.SignIn {
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
func (e *Engine) EndSignIn(ctx context.Context, who Identity, id api.TokenID) error {
	if err := inPerson(who.Client); err != nil {
		return err
	}
	return e.write(ctx, func(tx *db.Tx) error {
		e.lessRights(tx)
		n, err := tx.RevokeTokenOf(wctx(), queries.RevokeTokenOfParams{Now: micros(tx.Now), ID: id, UserID: who.UserID})
		if err != nil || n > 0 {
			return err
		}
		p, err := tx.Program(wctx(), id)
		if none(err) || (err == nil && (p.UserID != who.UserID || p.RevokedAt != 0)) {
			return notFound("sign-in")
		}
		if err != nil {
			return fmt.Errorf("read program %s: %w", id, err)
		}
		return e.signProgramOut(tx, &p, "")
	})
}

// SignOutEverywhere ends all of the caller's browsers but the one that asks.
// The token in the data directory stays: it is made anew at each start.
func (e *Engine) SignOutEverywhere(ctx context.Context, who Identity) (out api.SignedOut, err error) {
	if err := inPerson(who.Client); err != nil {
		return out, err
	}
	err = e.write(ctx, func(tx *db.Tx) error {
		out.Ended, err = e.endSignIns(tx, who)
		return err
	})
	return out, err
}
