package account

import (
	"context"
	"fmt"

	"stint/api"
	"stint/db"
	"stint/queries"
)

// link makes a provider's account one by which a user signs in. Error: conflict
// when it is somebody else's, or the user has another at that provider.
func (a *Accounts) link(tx *db.Tx, user api.UserID, known queries.Identity, p ExternalIdentity) error {
	if known.ID != 0 {
		if known.UserID == user {
			return nil
		}
		return api.Refuse(api.CodeConflict, "That account is linked to another user here. Nothing was linked.")
	}
	id := api.IdentityID(tx.NewID())
	err := tx.InsertIdentity(tx.Context(), queries.InsertIdentityParams{
		ID: id, UserID: user, Issuer: p.Issuer, Subject: p.Subject, Label: identityLabel(p), CreatedAt: db.Micros(tx.Now),
	})
	if db.IsUnique(err) {
		return api.Refuse(api.CodeConflict, "You are linked to another account there. Unlink that one first.")
	}
	if err != nil {
		return fmt.Errorf("link an identity to user %s: %w", user, err)
	}
	return a.logSignIn(tx, user, api.EventIdentityLinked, api.EventData{"identity": id.String(), "issuer": p.Issuer, "label": identityLabel(p)}, "")
}

func toAPIIdentity(i queries.Identity) api.Identity {
	return api.Identity{ID: i.ID, Issuer: i.Issuer, Label: i.Label, LinkedAt: api.At(i.CreatedAt), LastUsedAt: api.At(i.LastUsedAt)}
}

// Unlink ends that a provider's account signs the caller in, and the sign-ins of
// their other browsers. Errors: not_found; conflict when it is their only way to sign
// in; user_token_required for a program that somebody signed in.
func (a *Accounts) Unlink(ctx context.Context, who Identity, id api.IdentityID) error {
	if who.Client != "" {
		return api.Refuse(api.CodeUserTokenRequired, "A program can't change how you sign in; do it in a browser.")
	}
	return a.store.Write(ctx, func(tx *db.Tx) error {
		all, err := tx.IdentitiesOf(tx.Context(), who.UserID)
		if err != nil {
			return fmt.Errorf("list the identities of user %s: %w", who.UserID, err)
		}
		_, err = tx.LoginOf(tx.Context(), who.UserID)
		if err != nil && !db.None(err) {
			return fmt.Errorf("read a login: %w", err)
		}
		only := db.None(err) && len(all) == 1
		for _, i := range all {
			if i.ID != id {
				continue
			}
			if only {
				return api.Refuse(api.CodeConflict, "It is your only way to sign in. Set a password first.")
			}
			if err := db.One(tx.DeleteIdentity(tx.Context(), queries.DeleteIdentityParams{ID: id, UserID: who.UserID})); err != nil {
				return fmt.Errorf("unlink identity %s: %w", id, err)
			}
			if _, err := a.endSignIns(tx, who); err != nil {
				return err
			}
			return a.logSignIn(tx, who.UserID, api.EventIdentityUnlinked, api.EventData{"identity": id.String(), "issuer": i.Issuer, "label": i.Label}, "")
		}
		return db.NotFound("linked account")
	})
}

// MayLink checks what a browser must know before an account is linked to its
// user: their password, where they have one. Errors: invalid, too_many_requests.
func (a *Accounts) MayLink(ctx context.Context, who Identity, current string, from From) error {
	var had queries.Login
	err := a.store.Read(ctx, func(tx *db.ReadTx) (err error) {
		had, err = tx.LoginOf(ctx, who.UserID)
		return err
	})
	if db.None(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read a login: %w", err)
	}
	return a.knows(ctx, had, current, from)
}
