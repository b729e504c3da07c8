package account

import (
	"context"
	"fmt"
	"math"
	"net/url"
	"regexp"
	"strings"
	"time"

	"stint/api"
	"stint/db"
	"stint/queries"
)

// What strangers may leave here by registering (contract 8.2): so many that nobody
// has signed in, the oldest of which make room, each for a day.
const (
	registrationLife    = 24 * time.Hour
	registrationsUnused = 100
	registrations       = 10 // a minute from one address
	registrationsHour   = 60

	maxRedirects  = 5
	maxRedirect   = 512 // bytes
	maxClientName = 64  // characters
)

// Registration is what a program says of itself.
type Registration struct {
	Name      string
	Redirects []string
}

// Register keeps a program that registers itself: a public one, whose answers go
// to this machine or to an https address. Nobody vouches for its name. Errors:
// [OAuthError], too_many_requests.
func (a *Accounts) Register(ctx context.Context, in Registration, from From) (out Client, err error) {
	if in.Name = oneLine(in.Name, maxClientName); in.Name == "" {
		in.Name = "A program without a name"
	}
	if n := len(in.Redirects); n == 0 || n > maxRedirects {
		return out, &OAuthError{"invalid_redirect_uri", fmt.Sprintf("Register 1 to %d addresses for the answer.", maxRedirects)}
	}
	for _, uri := range in.Redirects {
		if !mayRegister(uri) {
			return out, &OAuthError{"invalid_redirect_uri", "An answer goes to https, or to http on 127.0.0.1, [::1] or localhost, without user, query and fragment."}
		}
	}
	err = a.store.Write(ctx, func(tx *db.Tx) error {
		at := network(from.Address)
		if err := takeAttempt(tx, bucketOf(registrations, time.Minute, "register", at), bucketOf(registrationsHour, time.Hour, "register by the hour", at)); err != nil {
			return err
		}
		unused, err := tx.UnusedOAuthClients(tx.Context(), registrationsUnused)
		if err != nil {
			return fmt.Errorf("list what registered: %w", err)
		}
		if len(unused) == registrationsUnused {
			if _, err := tx.DropUnusedOAuthClients(tx.Context(), unused[len(unused)-1]); err != nil {
				return fmt.Errorf("make room for a registration: %w", err)
			}
		}
		id := api.ClientID(tx.NewID())
		out = Client{ID: id.String(), Name: in.Name, Redirects: in.Redirects, Registered: tx.Now, Address: from.Address}
		return tx.InsertOAuthClient(tx.Context(), queries.InsertOAuthClientParams{
			ID: id, Client: out.ID, Name: out.Name, Redirects: strings.Join(in.Redirects, " "), Address: from.Address,
			CreatedAt: db.Micros(tx.Now), ExpiresAt: db.Micros(tx.Now.Add(registrationLife)),
		})
	})
	return out, err
}

// What an address may be made of, so that it is the same to every parser, and in
// a page's content policy.
var (
	redirectText = regexp.MustCompile(`^https?://[A-Za-z0-9.:\[\]-]+(/[A-Za-z0-9._~!$&()*+=:@%/-]*)?$`)
	redirectHost = regexp.MustCompile(`^([a-z0-9]([a-z0-9-]*[a-z0-9])?\.)*[a-z0-9]([a-z0-9-]*[a-z0-9])?(:[0-9]{1,5})?$|^\[::1\](:[0-9]{1,5})?$`)
)

func mayRegister(uri string) bool {
	if len(uri) > maxRedirect || !redirectText.MatchString(uri) {
		return false
	}
	u, err := url.Parse(uri)
	if err != nil || !redirectHost.MatchString(u.Host) {
		return false
	}
	switch u.Hostname() {
	case "localhost", "127.0.0.1", "::1":
		return true
	}
	return u.Scheme == "https"
}

// useClient notes that somebody signed a program in: what it registered lives at
// least as long as its sign-ins. Error: [OAuthError] when it is gone.
func useClient(tx *db.Tx, client string) error {
	if _, ok := ours(client); ok {
		return nil
	}
	n, err := tx.UseOAuthClient(tx.Context(), queries.UseOAuthClientParams{Now: db.Micros(tx.Now), ExpiresAt: db.Micros(tx.Now.Add(programLife)), Client: client})
	if err != nil {
		return fmt.Errorf("note a use of client %s: %w", client, err)
	}
	if n == 0 {
		return errInvalidGrant
	}
	return nil
}

// mayManageClients refuses whoever owns no workspace: what registered itself is
// nobody's in particular.
func mayManageClients(ctx context.Context, q queries.Querier, who Identity) error {
	if !who.Person() {
		return UserTokenRequired("")
	}
	if err := InPerson(who.Client); err != nil {
		return err
	}
	_, err := q.OwnsAny(ctx, who.UserID)
	if db.None(err) {
		return api.Refuse(api.CodeForbidden, "Only an owner of a workspace sees and revokes the programs that registered themselves.")
	}
	if err != nil {
		return fmt.Errorf("read the memberships of user %s: %w", who.UserID, err)
	}
	return nil
}

// Registrations lists the programs that registered themselves, newest first.
// Rights: owner of a workspace.
func (a *Accounts) Registrations(ctx context.Context, who Identity, page api.Page) (out api.List[api.RegisteredProgram], err error) {
	n, before, err := db.PageOf(page, math.MaxInt64)
	if err != nil {
		return out, err
	}
	err = a.store.Read(ctx, func(tx *db.ReadTx) error {
		if err := mayManageClients(ctx, tx, who); err != nil {
			return err
		}
		rows, err := tx.OAuthClients(ctx, queries.OAuthClientsParams{Now: db.Micros(a.store.Now()), Before: api.ClientID(before), N: n + 1})
		if err != nil {
			return fmt.Errorf("list what registered: %w", err)
		}
		out = db.ListOf(rows, n, func(r queries.OAuthClientsRow) api.RegisteredProgram {
			c := r.OauthClient
			return api.RegisteredProgram{
				ID: c.ID, Name: c.Name, RedirectURIs: strings.Fields(c.Redirects), Address: c.Address, RegisteredAt: api.At(c.CreatedAt),
				LastUsedAt: api.At(r.LastUsedAt), ExpiresAt: api.At(c.ExpiresAt), SignIns: r.SignIns,
			}
		}, func(r queries.OAuthClientsRow) int64 { return int64(r.OauthClient.ID) })
		return nil
	})
	return out, err
}

// RevokeRegistration forgets a program that registered itself and ends its
// sign-ins, whoever signed it in. Rights: owner of a workspace. Errors: forbidden,
// not_found.
func (a *Accounts) RevokeRegistration(ctx context.Context, who Identity, id api.ClientID) error {
	return a.store.Write(ctx, func(tx *db.Tx) error {
		if err := mayManageClients(tx.Context(), tx, who); err != nil {
			return err
		}
		name, err := clientName(tx.Context(), tx, id.String(), 0)
		if err != nil {
			return err
		}
		n, err := tx.DeleteOAuthClient(tx.Context(), id)
		if err != nil {
			return fmt.Errorf("revoke client %s: %w", id, err)
		}
		if n == 0 {
			return db.NotFound("program")
		}
		programs, err := tx.ProgramsOfClient(tx.Context(), id.String())
		if err != nil {
			return fmt.Errorf("list the sign-ins of client %s: %w", id, err)
		}
		for i := range programs {
			if err := a.signProgramOut(tx, &programs[i], ""); err != nil {
				return err
			}
		}
		return a.logSignIn(tx, who.UserID, api.EventProgramRevoked, api.EventData{"program": id.String(), "name": name, "endedSignIns": len(programs)}, "")
	})
}
