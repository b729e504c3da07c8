package main

import (
	"fmt"
	"net"
	"net/url"
	"strings"

	"stint/api"
)

// defaultAddr is where a coordinator listens unless told otherwise.
const defaultAddr = "127.0.0.1:7717"

// place is the coordinator that a command calls: its URL, and the token for it.
type place struct{ url, token string }

// connect makes the client of a command. what is the command's failure in a
// few words, for when there is nobody to call.
func (c *cli) connect(what string) (*api.Client, error) {
	p, err := c.find(what)
	if err != nil {
		return nil, err
	}
	client, err := api.NewClient(api.ClientConfig{
		URL: p.url, Token: p.token, Workspace: c.workspace(), Agent: "stint-cli/" + builtFrom().Version,
	})
	if err != nil {
		return nil, usage(what, "STINT_URL: "+err.Error(), "STINT_URL=http://"+defaultAddr+" stint status")
	}
	return client, nil
}

// workspace is the one that the flag or the environment names, "" for the default.
func (c *cli) workspace() string {
	if c.flags.workspace != "" {
		return c.flags.workspace
	}
	return c.env("STINT_WORKSPACE")
}

// find tells where the coordinator is and who we are to it. STINT_URL and
// STINT_TOKEN win; else it is the one that runs on the data directory, whose
// owner's token lies there. The token is sent to nobody but a process that
// holds the directory's lock, so that whoever listens on the port of a
// coordinator that has gone learns nothing.
func (c *cli) find(what string) (place, error) {
	d, err := c.dataDir()
	if err != nil {
		return place{}, err
	}
	p := place{url: c.env("STINT_URL"), token: c.env("STINT_TOKEN")}
	named := p.url != ""
	if !named {
		if p.url, err = c.running(what, d); err != nil {
			return place{}, err
		}
	}
	if p.token == "" && (!named || isThisMachine(p.url)) {
		if p.token, err = d.readToken(); err != nil {
			return place{}, &problem{
				code: exitNotAllowed, what: what, why: "the owner's token can't be read: " + reason(err),
				next: "run stint as the user who runs the server, or set STINT_TOKEN",
			}
		}
	}
	if p.token == "" {
		return place{}, &problem{
			code: exitNotAllowed, what: what, why: fmt.Sprintf("STINT_TOKEN is not set and there is no token in %s", d),
			next: "set STINT_TOKEN, or name the server's data directory with --data-dir",
		}
	}
	return p, nil
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
