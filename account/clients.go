package account

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"stint/api"
	"stint/db"
	"stint/queries"
)

// Client is a program that may ask people to sign it in (contract 8.2). All are
// public: nothing that a program carries could be kept secret.
type Client struct {
	ID        string
	Name      string   // what the consent page calls it
	Redirects []string // where answers may go; those on this machine match with any port (RFC 8252)

	// Of a program that registered itself; the zero value for one of ours.
	Registered time.Time
	Address    string // it registered from there
}

// CLI is the client id of the command line and of the workers that it starts.
const CLI = "stint-cli"

var clients = []Client{{
	ID: CLI, Name: "Stint on the command line",
	Redirects: []string{"http://127.0.0.1/callback", "http://[::1]/callback"},
}}

// ours is a client that nobody had to register.
func ours(id string) (Client, bool) {
	if i := slices.IndexFunc(clients, func(c Client) bool { return c.ID == id }); i >= 0 {
		return clients[i], true
	}
	return Client{}, false
}

// InPerson refuses a program that isn't one of ours where a person must act
// themselves: nobody vouches for it, and its sign-in must not outlive its end by what
// it made, nor decide what is executed on its person's machine (contract 6.5, 10.2).
func InPerson(client string) error {
	if _, own := ours(client); own || client == "" {
		return nil
	}
	return api.Refuse(api.CodeUserTokenRequired, "A program that registered itself can't do this; do it yourself, in a browser or on the command line.")
}

// ClientOf answers the client of an id; false when nobody has registered it.
func (a *Accounts) ClientOf(ctx context.Context, id string) (out Client, ok bool, err error) {
	err = a.store.Read(ctx, func(tx *db.ReadTx) error {
		out, ok, err = clientOf(ctx, tx, id, db.Micros(a.store.Now()))
		return err
	})
	return out, ok, err
}

func clientOf(ctx context.Context, q queries.Querier, id string, now int64) (Client, bool, error) {
	if c, ok := ours(id); ok {
		return c, true, nil
	}
	row, err := q.OAuthClient(ctx, queries.OAuthClientParams{Client: id, Now: now})
	if db.None(err) {
		return Client{}, false, nil
	}
	if err != nil {
		return Client{}, false, fmt.Errorf("read client %s: %w", id, err)
	}
	return Client{
		ID: row.Client, Name: row.Name, Redirects: strings.Fields(row.Redirects), Registered: time.UnixMicro(row.CreatedAt), Address: row.Address,
	}, true, nil
}

// clientName is what people are told of a client, its id when it is gone.
func clientName(ctx context.Context, q queries.Querier, id string, now int64) (string, error) {
	c, ok, err := clientOf(ctx, q, id, now)
	if !ok {
		return id, err
	}
	return c.Name, nil
}

// Redirect reports whether answers may be sent to a URI: it equals a registered
// one to the letter, but for the port where that is this machine's.
func (c Client) Redirect(uri string) bool {
	for _, registered := range c.Redirects {
		if uri == registered || withoutPort(uri, registered) {
			return true
		}
	}
	return false
}

// withoutPort reports whether uri is registered, but for the port. The text is
// compared, not what a parser makes of it, so that two parsers can't differ.
func withoutPort(uri, registered string) bool {
	u, err := url.Parse(registered)
	if err != nil || u.Scheme != "http" || !OnThisMachine(u.Hostname()) {
		return false
	}
	host := strings.TrimSuffix(u.Host, ":"+u.Port())
	rest, ok := strings.CutPrefix(uri, "http://"+host)
	if !ok {
		return false
	}
	port, ok := strings.CutSuffix(rest, strings.TrimPrefix(registered, "http://"+u.Host))
	if !ok || port == "" {
		return ok
	}
	digits, ok := strings.CutPrefix(port, ":")
	return ok && digits != "" && len(digits) <= 5 && strings.Trim(digits, "0123456789") == ""
}

// OnThisMachine reports whether an answer that is sent to a host stays on the
// machine of the browser.
func OnThisMachine(host string) bool { return host == "localhost" || api.IsLoopback(host) }
