package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"stint/api"
)

func (c *cli) logoutCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "logout [CONTEXT]",
		Short: "Sign out of a server",
		Long:  "Ends the sign-in at the server and forgets it here. Without a name it is the\ncontext in use. Workers that act by it stop at their next call.",
		Args:  cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			name := ""
			if len(args) > 0 {
				name = args[0]
			}
			return c.logout(cmd.Context(), name)
		},
	}
}

func (c *cli) logout(ctx context.Context, name string) error {
	what := "cannot sign out"
	stored, err := newVault().read()
	if err != nil {
		return &problem{code: exitFailed, what: what, why: api.Plain(err)}
	}
	if name == "" {
		if name = c.env("STINT_CONTEXT"); name == "" {
			name = stored.Current
		}
	}
	a, ok := stored.Contexts[name]
	if !ok {
		return &problem{code: exitNotFound, what: what, why: "you are not signed in" + to(name), next: "stint context list"}
	}
	gone := c.endLogin(ctx, a)
	err = newVault().change(ctx, func(now *credentials) error {
		delete(now.Contexts, name)
		if now.Current == name {
			now.Current = ""
		}
		return nil
	})
	if err != nil {
		return &problem{code: exitFailed, what: what, why: api.Plain(err)}
	}
	if gone != nil {
		c.hint("The server could not be told (%v). The sign-in is forgotten here; Settings → Account there ends it.", gone)
	}
	c.hint("Signed out of %s.", a.URL)
	return nil
}

func to(name string) string {
	if name == "" || name == localContext {
		return ": the server on the data directory needs no signing in"
	}
	return " to a server called " + name
}

// standpoint is who we are and where, as `stint whoami` prints it.
type standpoint struct {
	api.Whoami
	URL     string `json:"url"`
	Context string `json:"context,omitzero"` // empty if STINT_URL or STINT_TOKEN is used
}

func (c *cli) whoamiCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "whoami",
		Short: "Show as whom and where commands act",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			what := "cannot tell who you are"
			p, err := c.find(what)
			if err != nil {
				return err
			}
			client, err := c.clientOf(what, p)
			if err != nil {
				return err
			}
			who, err := client.Whoami(cmd.Context())
			if err != nil {
				return explain(what, err, "stint login")
			}
			s := standpoint{Whoami: who, URL: client.URL(), Context: p.context}
			return c.show(s, who.UserID.String(), func() error {
				var f facts
				f.add("user", who.UserID.String())
				f.add("name", who.Name)
				if who.KeyID != 0 {
					f.add("API key", who.KeyID.String())
				}
				f.add("server", c.shown(s.URL))
				f.add("context", s.Context)
				return f.print(c)
			})
		},
	}
}

// contextEntry is a line of `stint context list`.
type contextEntry struct {
	Name    string `json:"name"`
	URL     string `json:"url,omitzero"`
	User    string `json:"user,omitzero"`
	Current bool   `json:"current"`
}

func (c *cli) contextCommand() *cobra.Command {
	list := &cobra.Command{
		Use: "list", Aliases: []string{"ls"},
		Short: "List the servers that you are signed in to",
		Args:  cobra.NoArgs,
		RunE:  func(*cobra.Command, []string) error { return c.listContexts() },
	}
	use := &cobra.Command{
		Use:     "use CONTEXT",
		Short:   "Say on which server commands act",
		Example: "stint context use stint.example.com\nstint context use local    # the server on the data directory",
		Args:    cobra.ExactArgs(1),
		RunE:    func(cmd *cobra.Command, args []string) error { return c.useContext(cmd.Context(), args[0]) },
	}
	current := &cobra.Command{
		Use:   "current",
		Short: "Print on which server commands act",
		Args:  cobra.NoArgs,
		RunE:  func(*cobra.Command, []string) error { return c.currentContext() },
	}
	return group(&cobra.Command{Use: "context", Short: "The servers that you are signed in to"}, list, use, current)
}

// currentContext prints the context that commands act in: the one of this shell's environment,
// before the one that was chosen for all.
func (c *cli) currentContext() error {
	what := "cannot tell the context"
	stored, err := newVault().read()
	if err != nil {
		return &problem{code: exitFailed, what: what, why: api.Plain(err)}
	}
	e := contextEntry{Name: c.contextName(stored), Current: true}
	switch a, known := stored.Contexts[e.Name]; {
	case c.env("STINT_URL") != "":
		e.Name, e.URL = "STINT_URL", c.env("STINT_URL")
	case known:
		e.URL, e.User = a.URL, a.User
	case e.Name != localContext:
		return noContext(what, e.Name)
	}
	return c.show(e, e.Name, func() error { return c.say("%s", e.Name) })
}

func (c *cli) listContexts() error {
	stored, err := newVault().read()
	if err != nil {
		return &problem{code: exitFailed, what: "cannot list the contexts", why: api.Plain(err)}
	}
	all := []contextEntry{{Name: localContext, Current: stored.Current == ""}}
	for _, name := range stored.names() {
		a := stored.Contexts[name]
		all = append(all, contextEntry{Name: name, URL: a.URL, User: a.User, Current: stored.Current == name})
	}
	if c.flags.json {
		return c.document(api.List[contextEntry]{Items: all})
	}
	t := table{head: []string{"", "CONTEXT", "SERVER", "AS"}, flex: 2}
	for _, e := range all {
		mark := ""
		if e.Current {
			mark = "*"
		}
		t.rows, t.ids = append(t.rows, []string{mark, e.Name, e.URL, plain(e.User)}), append(t.ids, e.Name)
	}
	return c.print(t, "")
}

func (c *cli) useContext(ctx context.Context, name string) error {
	what := "cannot use the context " + name
	err := newVault().change(ctx, func(stored *credentials) error {
		if name == localContext {
			stored.Current = ""
			return nil
		}
		if _, ok := stored.Contexts[name]; !ok {
			return noContext(what, name)
		}
		stored.Current = name
		return nil
	})
	if err != nil {
		return explain(what, err, "stint context list")
	}
	c.hint("Commands act on %s now.", name)
	return nil
}

func noContext(what, name string) error {
	return &problem{code: exitNotFound, what: what, why: fmt.Sprintf("you are not signed in to a server called %s", name), next: "stint context list, or stint login --url URL"}
}
