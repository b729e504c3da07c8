package account

import (
	"context"
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"stint/api"
	"stint/db"
	"stint/queries"
)

// Why a browser goes to the external provider (contract 8.1).
const (
	PurposeSignIn = "sign_in"
	PurposeJoin   = "join"
	PurposeSetUp  = "set_up"
	PurposeLink   = "link"

	oidcPrefix          = "stint_det_"
	oidcLifetime        = 10 * time.Minute
	oidcStartsPerMinute = 30 // a minute from one address
)

// OIDCSignIn is a browser's way to the external provider and back.
type OIDCSignIn struct {
	Purpose string
	Ticket  string   // code of the invitation, or of the set-up link
	Next    string   // path of the page to go on to
	Who     Identity // who links their account
}

// ExternalIdentity is a person as the external provider describes them. Issuer and Subject say
// who it is; the rest is the provider's text and decides nothing.
type ExternalIdentity struct {
	Issuer, Subject string
	Name, Email     string
	EmailVerified   bool
}

// StartOIDCSignIn notes that a browser leaves for the provider, and answers the
// secret that it comes back with, once, within ten minutes. A ticket that is no
// good is refused before anybody leaves. Errors: unauthenticated,
// too_many_requests.
func (a *Accounts) StartOIDCSignIn(ctx context.Context, d OIDCSignIn, from From) (secret string, err error) {
	err = a.store.Write(ctx, func(tx *db.Tx) error {
		return takeAttempt(tx, bucketOf(oidcStartsPerMinute, time.Minute, "oidc", network(from.Address)))
	})
	if err != nil {
		return "", err
	}
	row := queries.InsertOIDCSignInParams{Purpose: d.Purpose, Next: d.Next, Ticket: []byte{}}
	switch d.Purpose {
	case PurposeJoin:
		err = a.readsInvitation(ctx, d.Ticket)
	case PurposeSetUp:
		err = a.readsLink(ctx, d.Ticket)
	case PurposeLink:
		row.UserID, row.TokenID = d.Who.UserID, d.Who.TokenID
	}
	if err != nil {
		return "", err
	}
	if d.Ticket != "" {
		row.Ticket = hashOf(d.Ticket)
	}
	err = a.store.Write(ctx, func(tx *db.Tx) error {
		secret, row.Hash = randomSecret(oidcPrefix)
		row.ExpiresAt = db.Micros(tx.Now.Add(oidcLifetime))
		return tx.InsertOIDCSignIn(tx.Context(), row)
	})
	if err != nil {
		return "", fmt.Errorf("store a sign-in with the provider: %w", err)
	}
	return secret, nil
}

// Return is a browser that came back from the provider, once.
type Return struct{ row queries.OIDCSignIn }

// Purpose is why it left.
func (r Return) Purpose() string { return r.row.Purpose }

// EndOIDCSignIn takes a browser's secret back: it is good no more, whatever comes of
// it. Error: unauthenticated.
func (a *Accounts) EndOIDCSignIn(ctx context.Context, secret string) (out Return, err error) {
	err = a.store.Write(ctx, func(tx *db.Tx) error {
		row, err := tx.OIDCSignIn(tx.Context(), hashOf(secret))
		if db.None(err) || (err == nil && row.ExpiresAt <= db.Micros(tx.Now)) {
			return api.Refuse(api.CodeUnauthenticated, "This sign-in was used already, or is older than 10 minutes. Begin anew.")
		}
		if err != nil {
			return fmt.Errorf("read a sign-in with the provider: %w", err)
		}
		out = Return{row}
		return db.One(tx.DropOIDCSignIn(tx.Context(), row.Hash))
	})
	return out, err
}

// Arrival is what came of a sign-in with the provider: a browser's cookie, but for those who are
// signed in already and linked their account.
type Arrival struct {
	Cookie  string
	Expires time.Time
	Next    string
}

// errStranger tells that nothing was done: an account isn't made by coming here.
var errStranger = api.Refuse(api.CodeForbidden, "Nobody here is linked to that account. If you are a member, sign in as you did before and link it under Settings → Account; if not, ask an owner for an invitation.")

// Arrive does what a browser left for, now that the provider vouches for a
// person; who is as whom it is signed in. It makes no owner but by the set-up
// link or an owner's invitation, and links nothing to a user who exists but by
// that user themselves (contract 8.1). Errors: forbidden for an unknown person, unauthenticated, conflict.
func (a *Accounts) Arrive(ctx context.Context, r Return, p ExternalIdentity, who Identity, from From) (out Arrival, err error) {
	var refusal error
	err = a.store.Write(ctx, func(tx *db.Tx) error {
		out, refusal = Arrival{Next: r.row.Next}, nil
		known, err := tx.IdentityBySubject(tx.Context(), queries.IdentityBySubjectParams{Issuer: p.Issuer, Subject: p.Subject})
		if err != nil && !db.None(err) {
			return fmt.Errorf("read an identity: %w", err)
		}
		var user api.UserID
		switch r.row.Purpose {
		case PurposeJoin:
			user, err = a.joinExternal(tx, r.row.Ticket, known, p)
		case PurposeSetUp:
			user, err = a.setUpExternal(tx, r.row.Ticket, known, p)
		case PurposeLink:
			if who.TokenID != r.row.TokenID || who.UserID != r.row.UserID {
				return api.Refuse(api.CodeUnauthenticated, "You are not signed in any more as you were when you left. Nothing was linked.")
			}
			return a.link(tx, who.UserID, known, p)
		default:
			user, err = a.signInExternal(tx, known, p)
		}
		if api.CodeOf(err) == api.CodeForbidden {
			refusal = err // and kept in the log, below
			return nil
		}
		if err != nil {
			return err
		}
		if err := a.noteIdentity(tx, user, p, from); err != nil {
			return err
		}
		out.Cookie, out.Expires, err = newCookie(tx, user, from)
		return err
	})
	if err == nil && refusal != nil {
		a.log.Warn("A sign-in through the provider was refused.", "address", from.Address)
		if err := a.strangerRefused(ctx, p, from); err != nil {
			return out, err
		}
		return out, refusal
	}
	return out, err
}

// signInExternal finds the user; an unknown person becomes a viewer where the
// operator said so of the domain of an address that the provider has verified.
func (a *Accounts) signInExternal(tx *db.Tx, known queries.Identity, p ExternalIdentity) (api.UserID, error) {
	if known.ID != 0 {
		n, err := tx.CountMemberships(tx.Context(), known.UserID)
		if err == nil && n == 0 {
			err = errStranger // a member once; only an invitation makes them one again
		}
		return known.UserID, err
	}
	if !a.viewerByDomain(p) {
		return 0, errStranger
	}
	ws, err := tx.WorkspaceBySlug(tx.Context(), DefaultWorkspace)
	if err != nil {
		return 0, fmt.Errorf("read the first workspace: %w", err)
	}
	user, err := a.newExternal(tx, p)
	if err != nil {
		return 0, err
	}
	err = tx.InsertMember(tx.Context(), queries.InsertMemberParams{WorkspaceID: ws.ID, UserID: user, Role: api.Viewer, CreatedAt: db.Micros(tx.Now)})
	if err != nil {
		return 0, fmt.Errorf("make user %s a member: %w", user, err)
	}
	return user, tx.Log(db.Event{Workspace: ws.ID, Actor: user.String(), Type: api.EventMemberJoined, Data: api.EventData{
		"user": user.String(), "name": personName(p), "role": api.Viewer, "domain": domainOf(p.Email),
	}})
}

func (a *Accounts) joinExternal(tx *db.Tx, ticket []byte, known queries.Identity, p ExternalIdentity) (user api.UserID, err error) {
	if user = known.UserID; known.ID == 0 {
		if user, err = a.newExternal(tx, p); err != nil {
			return 0, err
		}
	}
	u, err := tx.User(tx.Context(), user)
	if err != nil {
		return 0, fmt.Errorf("read user %s: %w", user, err)
	}
	_, err = a.joinHashTx(tx, ticket, user, u.Name)
	return user, err
}

// setUpExternal links the provider's account to the owner, whose one-time link the
// ticket is, while nobody can sign in.
func (a *Accounts) setUpExternal(tx *db.Tx, ticket []byte, known queries.Identity, p ExternalIdentity) (api.UserID, error) {
	user, err := a.setUpBy(tx, ticket)
	if err != nil {
		return 0, err
	}
	if known.ID == 0 { // the owner has no name of their own yet
		if err := db.One(tx.RenameUser(tx.Context(), queries.RenameUserParams{Name: personName(p), ID: user})); err != nil {
			return 0, fmt.Errorf("name user %s: %w", user, err)
		}
	}
	return user, a.link(tx, user, known, p)
}

// newExternal makes a user who signs in through the provider alone.
func (a *Accounts) newExternal(tx *db.Tx, p ExternalIdentity) (api.UserID, error) {
	user := api.UserID(tx.NewID())
	if err := tx.InsertUser(tx.Context(), queries.InsertUserParams{ID: user, Name: personName(p), CreatedAt: db.Micros(tx.Now)}); err != nil {
		return 0, fmt.Errorf("make a user: %w", err)
	}
	return user, a.link(tx, user, queries.Identity{}, p)
}

func (a *Accounts) noteIdentity(tx *db.Tx, user api.UserID, p ExternalIdentity, from From) error {
	i, err := tx.IdentityBySubject(tx.Context(), queries.IdentityBySubjectParams{Issuer: p.Issuer, Subject: p.Subject})
	if err != nil {
		return fmt.Errorf("read an identity: %w", err)
	}
	if err := db.One(tx.UseIdentity(tx.Context(), queries.UseIdentityParams{Label: identityLabel(p), Now: db.Micros(tx.Now), ID: i.ID})); err != nil {
		return fmt.Errorf("note a use of identity %s: %w", i.ID, err)
	}
	return a.logSignIn(tx, user, api.EventSignedIn, api.EventData{"identity": i.ID.String(), "issuer": p.Issuer, "for": short(from.Label, maxLabelText)}, from.Address)
}

// strangerRefused tells the owner's log of a person whom nobody knows, once a
// minute for a person and an address.
func (a *Accounts) strangerRefused(ctx context.Context, p ExternalIdentity, from From) error {
	return a.store.Write(ctx, func(tx *db.Tx) error {
		err := takeAttempt(tx, bucketOf(1, time.Minute, "stranger", p.Issuer, p.Subject, network(from.Address)))
		if api.CodeOf(err) == api.CodeTooMany {
			return nil
		}
		if err != nil {
			return err
		}
		owner, err := tx.FirstOwner(tx.Context())
		if err != nil {
			return fmt.Errorf("read the owner: %w", err)
		}
		return a.logOfUser(tx, owner.ID, api.ActorSystem, api.EventSignInRefused, api.EventData{"issuer": p.Issuer, "label": identityLabel(p)}, from.Address)
	})
}

func (a *Accounts) viewerByDomain(p ExternalIdentity) bool {
	domain := domainOf(p.Email)
	if domain == "" || !p.EmailVerified {
		return false
	}
	for _, d := range a.cfg.ViewerDomains {
		if strings.EqualFold(d, domain) {
			return true
		}
	}
	return false
}

func domainOf(email string) string {
	_, domain, _ := strings.Cut(email, "@")
	if strings.Contains(domain, "@") {
		return ""
	}
	return domain
}

// personName is what others see of a person who has chosen no name here.
func personName(p ExternalIdentity) string {
	for _, text := range []string{p.Name, p.Email} {
		if text = oneLine(text, maxPersonName); text != "" {
			return text
		}
	}
	return "Member"
}

// identityLabel tells the provider's account to people.
func identityLabel(p ExternalIdentity) string {
	for _, text := range []string{p.Email, p.Name, p.Subject} {
		if text = oneLine(text, maxLabelText); text != "" {
			return text
		}
	}
	return "an account"
}

// oneLine makes a text that somebody else chose fit to be shown: what a screen
// would not show, or show as something else, is left out.
func oneLine(text string, most int) string {
	text = strings.Map(func(r rune) rune {
		if r == utf8.RuneError || unicode.In(r, unicode.Z, unicode.Co) && r != ' ' {
			return -1
		}
		return r
	}, api.Line(text))
	if r := []rune(strings.Join(strings.Fields(text), " ")); len(r) > most {
		return strings.TrimSpace(string(r[:most]))
	}
	return strings.Join(strings.Fields(text), " ")
}
