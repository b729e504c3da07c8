package engine

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
	DetourSignIn = "sign_in"
	DetourJoin   = "join"
	DetourSetUp  = "set_up"
	DetourLink   = "link"

	detourPrefix = "stint_det_"
	detourLife   = 10 * time.Minute
	detourStarts = 30 // a minute from one address
)

// Detour is a browser's way to the external provider and back.
type Detour struct {
	Purpose string
	Ticket  string   // code of the invitation, or of the set-up link
	Next    string   // path of the page to go on to
	Who     Identity // who links his account
}

// Vouched is a person as the external provider tells him. Issuer and Subject say
// who it is; the rest is the provider's text and decides nothing.
type Vouched struct {
	Issuer, Subject string
	Name, Email     string
	EmailVerified   bool
}

// StartDetour notes that a browser leaves for the provider, and answers the
// secret that it comes back with, once, within ten minutes. A ticket that is no
// good is refused before anybody leaves. Errors: unauthenticated,
// too_many_requests.
func (e *Engine) StartDetour(ctx context.Context, d Detour, from From) (secret string, err error) {
	err = e.write(ctx, func(tx *db.Tx) error {
		return takeTry(tx, bucketOf(detourStarts, time.Minute, "detour", network(from.Address)))
	})
	if err != nil {
		return "", err
	}
	row := queries.InsertDetourParams{Purpose: d.Purpose, Next: d.Next, Ticket: []byte{}}
	switch d.Purpose {
	case DetourJoin:
		err = e.readsInvitation(ctx, d.Ticket)
	case DetourSetUp:
		err = e.readsLink(ctx, d.Ticket)
	case DetourLink:
		row.UserID, row.TokenID = d.Who.UserID, d.Who.TokenID
	}
	if err != nil {
		return "", err
	}
	if d.Ticket != "" {
		row.Ticket = hashOf(d.Ticket)
	}
	err = e.write(ctx, func(tx *db.Tx) error {
		secret, row.Hash = randomSecret(detourPrefix)
		row.ExpiresAt = micros(tx.Now.Add(detourLife))
		return tx.InsertDetour(wctx(), row)
	})
	if err != nil {
		return "", fmt.Errorf("keep a detour: %w", err)
	}
	return secret, nil
}

// Return is a browser that came back from the provider, once.
type Return struct{ row queries.Detour }

// Purpose is why it left.
func (r Return) Purpose() string { return r.row.Purpose }

// EndDetour takes a browser's secret back: it is good no more, whatever comes of
// it. Error: unauthenticated.
func (e *Engine) EndDetour(ctx context.Context, secret string) (out Return, err error) {
	err = e.write(ctx, func(tx *db.Tx) error {
		row, err := tx.Detour(wctx(), hashOf(secret))
		if none(err) || (err == nil && row.ExpiresAt <= micros(tx.Now)) {
			return api.Refuse(api.CodeUnauthenticated, "This sign-in was used already, or is older than 10 minutes. Begin anew.")
		}
		if err != nil {
			return fmt.Errorf("read a detour: %w", err)
		}
		out = Return{row}
		return one(tx.DropDetour(wctx(), row.Hash))
	})
	return out, err
}

// Arrival is what came of a detour: a browser's cookie, but for those who are
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
// that user himself (contract 8.1). Errors: forbidden for an unknown person, unauthenticated, conflict.
func (e *Engine) Arrive(ctx context.Context, r Return, p Vouched, who Identity, from From) (out Arrival, err error) {
	var refusal error
	err = e.write(ctx, func(tx *db.Tx) error {
		out, refusal = Arrival{Next: r.row.Next}, nil
		known, err := tx.IdentityBySubject(wctx(), queries.IdentityBySubjectParams{Issuer: p.Issuer, Subject: p.Subject})
		if err != nil && !none(err) {
			return fmt.Errorf("read an identity: %w", err)
		}
		var user api.UserID
		switch r.row.Purpose {
		case DetourJoin:
			user, err = e.joinVouched(tx, r.row.Ticket, known, p)
		case DetourSetUp:
			user, err = e.setUpVouched(tx, r.row.Ticket, known, p)
		case DetourLink:
			if who.TokenID != r.row.TokenID || who.UserID != r.row.UserID {
				return api.Refuse(api.CodeUnauthenticated, "You are not signed in any more as you were when you left. Nothing was linked.")
			}
			return e.link(tx, who.UserID, known, p)
		default:
			user, err = e.signInVouched(tx, known, p)
		}
		if api.CodeOf(err) == api.CodeForbidden {
			refusal = err // and kept in the log, below
			return nil
		}
		if err != nil {
			return err
		}
		if err := e.noteIdentity(tx, user, p, from); err != nil {
			return err
		}
		out.Cookie, out.Expires, err = newCookie(tx, user, from)
		return err
	})
	if err == nil && refusal != nil {
		e.log.Warn("A sign-in through the provider was refused.", "address", from.Address)
		if err := e.strangerRefused(ctx, p, from); err != nil {
			return out, err
		}
		return out, refusal
	}
	return out, err
}

// signInVouched finds the user; an unknown person becomes a viewer where the
// operator said so of the domain of an address that the provider has verified.
func (e *Engine) signInVouched(tx *db.Tx, known queries.Identity, p Vouched) (api.UserID, error) {
	if known.ID != 0 {
		n, err := tx.CountMemberships(wctx(), known.UserID)
		if err == nil && n == 0 {
			err = errStranger // a member once; only an invitation makes him one again
		}
		return known.UserID, err
	}
	if !e.viewerByDomain(p) {
		return 0, errStranger
	}
	ws, err := tx.WorkspaceBySlug(wctx(), DefaultWorkspace)
	if err != nil {
		return 0, fmt.Errorf("read the first workspace: %w", err)
	}
	user, err := e.newVouched(tx, p)
	if err != nil {
		return 0, err
	}
	err = tx.InsertMember(wctx(), queries.InsertMemberParams{WorkspaceID: ws.ID, UserID: user, Role: api.Viewer, CreatedAt: micros(tx.Now)})
	if err != nil {
		return 0, fmt.Errorf("make user %s a member: %w", user, err)
	}
	return user, e.logPeople(tx, ws.ID, user.String(), evMemberJoined, api.EventData{
		"user": user.String(), "name": personName(p), "role": api.Viewer, "domain": domainOf(p.Email),
	})
}

func (e *Engine) joinVouched(tx *db.Tx, ticket []byte, known queries.Identity, p Vouched) (user api.UserID, err error) {
	if user = known.UserID; known.ID == 0 {
		if user, err = e.newVouched(tx, p); err != nil {
			return 0, err
		}
	}
	u, err := tx.User(wctx(), user)
	if err != nil {
		return 0, fmt.Errorf("read user %s: %w", user, err)
	}
	_, err = e.joinHashTx(tx, ticket, user, u.Name)
	return user, err
}

// setUpVouched links the provider's account to the owner, whose one-time link the
// ticket is, while nobody can sign in.
func (e *Engine) setUpVouched(tx *db.Tx, ticket []byte, known queries.Identity, p Vouched) (api.UserID, error) {
	user, err := e.setUpBy(tx, ticket)
	if err != nil {
		return 0, err
	}
	if known.ID == 0 { // the owner has no name of his own yet
		if err := one(tx.RenameUser(wctx(), queries.RenameUserParams{Name: personName(p), ID: user})); err != nil {
			return 0, fmt.Errorf("name user %s: %w", user, err)
		}
	}
	return user, e.link(tx, user, known, p)
}

// newVouched makes a user who signs in through the provider alone.
func (e *Engine) newVouched(tx *db.Tx, p Vouched) (api.UserID, error) {
	user := api.UserID(tx.NewID())
	if err := tx.InsertUser(wctx(), queries.InsertUserParams{ID: user, Name: personName(p), CreatedAt: micros(tx.Now)}); err != nil {
		return 0, fmt.Errorf("make a user: %w", err)
	}
	return user, e.link(tx, user, queries.Identity{}, p)
}

func (e *Engine) noteIdentity(tx *db.Tx, user api.UserID, p Vouched, from From) error {
	i, err := tx.IdentityBySubject(wctx(), queries.IdentityBySubjectParams{Issuer: p.Issuer, Subject: p.Subject})
	if err != nil {
		return fmt.Errorf("read an identity: %w", err)
	}
	if err := one(tx.UseIdentity(wctx(), queries.UseIdentityParams{Label: identityLabel(p), Now: micros(tx.Now), ID: i.ID})); err != nil {
		return fmt.Errorf("note a use of identity %s: %w", i.ID, err)
	}
	return e.logSignIn(tx, user, evSignedIn, api.EventData{"identity": i.ID.String(), "issuer": p.Issuer, "for": short(from.Label, maxLabelText)}, from.Address)
}

// strangerRefused tells the owner's log of a person whom nobody knows, once a
// minute for a person and an address.
func (e *Engine) strangerRefused(ctx context.Context, p Vouched, from From) error {
	return e.write(ctx, func(tx *db.Tx) error {
		err := takeTry(tx, bucketOf(1, time.Minute, "stranger", p.Issuer, p.Subject, network(from.Address)))
		if api.CodeOf(err) == api.CodeTooMany {
			return nil
		}
		if err != nil {
			return err
		}
		owner, err := tx.FirstOwner(wctx())
		if err != nil {
			return fmt.Errorf("read the owner: %w", err)
		}
		return e.logOfUser(tx, owner.ID, actorSystem, evSignInRefused, api.EventData{"issuer": p.Issuer, "label": identityLabel(p)}, from.Address)
	})
}

func (e *Engine) viewerByDomain(p Vouched) bool {
	domain := domainOf(p.Email)
	if domain == "" || !p.EmailVerified {
		return false
	}
	for _, d := range e.cfg.ViewerDomains {
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
func personName(p Vouched) string {
	for _, text := range []string{p.Name, p.Email} {
		if text = oneLine(text, maxName); text != "" {
			return text
		}
	}
	return "Member"
}

// identityLabel tells the provider's account to people.
func identityLabel(p Vouched) string {
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
		if r == utf8.RuneError || r != ' ' && !unicode.IsGraphic(r) || unicode.Is(unicode.Z, r) && r != ' ' {
			return -1
		}
		return r
	}, text)
	if r := []rune(strings.Join(strings.Fields(text), " ")); len(r) > most {
		return strings.TrimSpace(string(r[:most]))
	}
	return strings.Join(strings.Fields(text), " ")
}
