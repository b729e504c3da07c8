package main

import (
	"context"
	"fmt"

	"stint/server"
)

// offerSetUp prints the link with which the owner chooses a name and a password, as long as
// there is none. It works once, for 10 minutes, on this machine. Only a terminal gets it:
// others may read a log.
func (c *cli) offerSetUp(ctx context.Context, k *coordinator) error {
	ctx = context.WithoutCancel(ctx) // an interrupt in between is not a failure
	needed, err := k.accounts.NeedsSetUp(ctx)
	if err != nil || !needed {
		return err
	}
	if !c.talks {
		k.log.Info("Nobody can sign in with a password yet: run stint account password --login NAME.")
		return nil
	}
	owner, err := k.accounts.Owner(ctx)
	if err != nil {
		return fmt.Errorf("find the owner: %w", err)
	}
	link, err := k.accounts.NewLink(ctx, owner)
	if err != nil {
		return fmt.Errorf("make a set-up link: %w", err)
	}
	c.hint("Nobody can sign in with a password yet. On this machine, within 10 minutes:\n  %s\nor later: stint account password --login NAME", server.SetUpLink(server.ForBrowsers(k.url()), link))
	return nil
}

// announce prints the one line that says that the server is ready.
func (c *cli) announce(k *coordinator) error {
	k.log.Info("Ready.", "url", k.url(), "data", string(k.dir))
	if c.tty {
		return c.say("%s", k.browserURL()) // a person will follow it; programs get the one that every resolver knows
	}
	return c.say("%s", k.url())
}

// welcomeWithout says how to sign in if no browser was opened. Without one on this machine the
// owner's first sign-in is by a link, as for serve.
func (c *cli) welcomeWithout(ctx context.Context, k *coordinator, f upFlags) error {
	if f.noOpen && !c.talks {
		return nil // nobody asked for one, and nobody is reading
	}
	if c.opener() != "" {
		c.hint("%s", c.errLook.quiet("Open the dashboard signed in with: stint open    End with Ctrl-C."))
		return nil
	}
	needed, err := k.accounts.NeedsSetUp(ctx)
	switch {
	case err != nil:
		return fmt.Errorf("see whether anybody can sign in: %w", err)
	case needed:
		return c.offerSetUp(ctx, k)
	}
	c.hint("%s", c.errLook.quiet("There is no browser here. Sign in at "+k.browserURL()+" with your password, or with the file that stint open --page prints."))
	return nil
}

// welcome opens the browser, or says how to.
func (c *cli) welcome(ctx context.Context, k *coordinator, f upFlags, page string) error {
	opener := ""
	if !f.noOpen {
		opener = c.opener()
	}
	if opener == "" {
		return c.welcomeWithout(ctx, k, f)
	}
	owner, err := k.accounts.Owner(ctx)
	if err != nil {
		return fmt.Errorf("find the owner: %w", err)
	}
	link, err := k.accounts.NewLink(ctx, owner)
	if err != nil {
		return fmt.Errorf("make a sign-in link: %w", err)
	}
	file, err := k.dir.writeOpenFile(server.ForBrowsers(k.url()), link, page)
	if err != nil {
		return err
	}
	return show(opener, file)
}
