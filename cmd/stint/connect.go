package main

import (
	"context"
	"fmt"
	"net/url"

	shellquote "github.com/kballard/go-shellquote"

	"stint/account"
	"stint/api"
)

// defaultAddr is where a coordinator listens by default.
const defaultAddr = "127.0.0.1:7717"

// target is the coordinator that a command calls, and who we are there.
type target struct {
	url, token  string
	context     string                                // the name under which it was found; "" = from the environment
	credentials func(context.Context) (string, error) // in place of token
}

// connect makes the client of a command. what is the command's failure in a few words, for
// when no coordinator can be called.
func (c *cli) connect(what string) (*api.Client, error) {
	p, err := c.find(what)
	if err != nil {
		return nil, err
	}
	return c.clientOf(what, p)
}

func (c *cli) clientOf(what string, p target) (*api.Client, error) {
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

// inWorkspace is a command as it is typed later, in a shell that was told nothing, to work in the
// same workspace. A flag wouldn't do: "stint notify add" has another one of that name.
func (c *cli) inWorkspace(command string) string {
	if name := c.workspace(); name != "" && name != account.DefaultWorkspace {
		return "STINT_WORKSPACE=" + shellquote.Join(name) + " " + command
	}
	return command
}

// find says where the coordinator is and who we are there. STINT_URL and STINT_TOKEN win; then
// the context that STINT_CONTEXT names or that is in use; else it is the coordinator that runs
// on the data directory, which holds its owner's token. That token is sent only to a process
// that holds the directory's lock, so that a process that listens on the port of a stopped
// coordinator learns nothing.
func (c *cli) find(what string) (target, error) {
	p, err := c.target(what)
	if err != nil || p.credentials != nil || p.token != "" {
		return p, err
	}
	d, err := c.dataDir()
	if err != nil {
		return target{}, err
	}
	if p.context != "" || isThisMachine(p.url) {
		if p.token, err = d.readToken(); err != nil {
			return target{}, &problem{
				code: exitNotAllowed, what: what, why: "the owner's token can't be read: " + reason(err),
				next: "run stint as the user who runs the server, or set STINT_TOKEN",
			}
		}
	}
	if p.token == "" {
		return target{}, &problem{
			code: exitNotAllowed, what: what, why: fmt.Sprintf("STINT_TOKEN is not set, you are not signed in there, and there is no token in %s", d),
			next: "stint login --url " + p.url + ", or set STINT_TOKEN",
		}
	}
	return p, nil
}

// target is find without the owner's token.
func (c *cli) target(what string) (target, error) {
	stored, err := newVault().read()
	if err != nil {
		return target{}, &problem{code: exitFailed, what: what, why: api.Plain(err)}
	}
	p := target{url: c.env("STINT_URL"), token: c.env("STINT_TOKEN")}
	if p.url != "" {
		if _, err := api.NewClient(api.ClientConfig{URL: p.url}); err != nil {
			return target{}, badURL(what, err)
		}
		for _, name := range stored.names() {
			if p.token == "" && sameServer(stored.Contexts[name].URL, p.url) {
				p.credentials = c.bearer(name)
				return p, nil
			}
		}
		return p, nil
	}
	name := c.contextName(stored)
	if name == localContext {
		d, err := c.dataDir()
		if err != nil {
			return target{}, err
		}
		p.context = localContext
		p.url, err = c.running(what, d)
		return p, err
	}
	a, ok := stored.Contexts[name]
	if !ok {
		return target{}, noContext(what, name)
	}
	p.url, p.context = a.URL, name
	if p.token == "" {
		p.credentials = c.bearer(name)
	}
	return p, nil
}

// contextName is the context that commands act in: an explicit data directory on
// the command line means the coordinator on it.
func (c *cli) contextName(stored credentials) string {
	switch name := c.env("STINT_CONTEXT"); {
	case c.flags.dataDir != "":
		return localContext
	case name != "":
		return name
	case stored.Current != "":
		return stored.Current
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
	return api.IsThisMachine(u.Hostname())
}
