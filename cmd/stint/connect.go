package main

import (
	"context"
	"fmt"
	"net"
	"net/url"
	"strings"

	"stint/api"
)

// defaultAddr is where a coordinator listens unless told otherwise.
const defaultAddr = "127.0.0.1:7717"

// place is the coordinator that a command calls, and who we are to it.
type place struct {
	url, token  string
	context     string                                // by whose name it was found; "" = the environment said it
	credentials func(context.Context) (string, error) // in place of token
}

// connect makes the client of a command. what is the command's failure in a
// few words, for when there is nobody to call.
func (c *cli) connect(what string) (*api.Client, error) {
	p, err := c.find(what)
	if err != nil {
		return nil, err
	}
	return c.clientOf(what, p)
}

func (c *cli) clientOf(what string, p place) (*api.Client, error) {
	client, err := api.NewClient(api.ClientConfig{
		URL: p.url, Token: p.token, Credentials: p.credentials, Workspace: c.workspace(), Agent: c.agent(),
	})
	if err != nil {
		return nil, badURL(what, err)
	}
	return client, nil
}

func badURL(what string, err error) error {
	return usage(what, "STINT_URL: "+err.Error(), "STINT_URL=http://"+defaultAddr+" stint status")
}

// workspace is the one that the flag or the environment names, "" for the default.
func (c *cli) workspace() string {
	if c.flags.workspace != "" {
		return c.flags.workspace
	}
	return c.env("STINT_WORKSPACE")
}

// find tells where the coordinator is and who we are to it. STINT_URL and
// STINT_TOKEN win; then the context that STINT_CONTEXT names or that is in use;
// else it is the coordinator that runs on the data directory, whose owner's token
// lies there. That token is sent to nobody but a process that holds the
// directory's lock, so that whoever listens on the port of a coordinator that has
// gone learns nothing.
func (c *cli) find(what string) (place, error) {
	p, err := c.place(what)
	if err != nil || p.credentials != nil || p.token != "" {
		return p, err
	}
	d, err := c.dataDir()
	if err != nil {
		return place{}, err
	}
	if p.context != "" || isThisMachine(p.url) {
		if p.token, err = d.readToken(); err != nil {
			return place{}, &problem{
				code: exitNotAllowed, what: what, why: "the owner's token can't be read: " + reason(err),
				next: "run stint as the user who runs the server, or set STINT_TOKEN",
			}
		}
	}
	if p.token == "" {
		return place{}, &problem{
			code: exitNotAllowed, what: what, why: fmt.Sprintf("STINT_TOKEN is not set, you are not signed in there, and there is no token in %s", d),
			next: "stint login --url " + p.url + ", or set STINT_TOKEN",
		}
	}
	return p, nil
}

// place is find without the owner's token.
func (c *cli) place(what string) (place, error) {
	kept, err := newVault().read()
	if err != nil {
		return place{}, &problem{code: exitFailed, what: what, why: err.Error()}
	}
	p := place{url: c.env("STINT_URL"), token: c.env("STINT_TOKEN")}
	if p.url != "" {
		if _, err := api.NewClient(api.ClientConfig{URL: p.url}); err != nil {
			return place{}, badURL(what, err)
		}
		for _, name := range kept.names() {
			if p.token == "" && sameServer(kept.Contexts[name].URL, p.url) {
				p.credentials = c.bearer(name)
				return p, nil
			}
		}
		return p, nil
	}
	name := c.contextName(kept)
	if name == localContext {
		d, err := c.dataDir()
		if err != nil {
			return place{}, err
		}
		p.context = localContext
		p.url, err = c.running(what, d)
		return p, err
	}
	a, ok := kept.Contexts[name]
	if !ok {
		return place{}, noContext(what, name)
	}
	p.url, p.context = a.URL, name
	if p.token == "" {
		p.credentials = c.bearer(name)
	}
	return p, nil
}

// contextName is the context that commands act in: an explicit data directory on
// the command line means the coordinator on it.
func (c *cli) contextName(kept credentials) string {
	switch name := c.env("STINT_CONTEXT"); {
	case c.flags.dataDir != "":
		return localContext
	case name != "":
		return name
	case kept.Current != "":
		return kept.Current
	}
	return localContext
}

func (c *cli) bearer(name string) func(context.Context) (string, error) {
	b := &bearer{vault: newVault(), name: name, now: c.now, agent: c.agent()}
	return b.token
}

// running is the URL of the coordinator that runs on the data directory.
func (c *cli) running(what string, d dataDir) (string, error) {
	if !lockHeld(d) {
		return "", &problem{
			code: exitUnreachable, what: what, why: fmt.Sprintf("no server runs on the data directory %s", d),
			next: "stint up, or name the server's data directory with --data-dir",
		}
	}
	if f, ok := d.readServer(); ok {
		return f.URL, nil
	}
	return "", &problem{
		code: exitUnreachable, what: what, why: fmt.Sprintf("the server on the data directory %s has not said yet where it listens", d),
		next: "try again in a moment",
	}
}

// isThisMachine reports whether a URL's host is this machine.
func isThisMachine(text string) bool {
	u, err := url.Parse(text)
	if err != nil {
		return false
	}
	host := strings.ToLower(u.Hostname())
	if ip := net.ParseIP(host); ip != nil {
		return ip.IsLoopback()
	}
	return host == "localhost" || strings.HasSuffix(host, ".localhost")
}
