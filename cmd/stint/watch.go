package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/spf13/cobra"

	"stint/api"
)

func (c *cli) watchCommand() *cobra.Command {
	var limit time.Duration
	cmd := &cobra.Command{
		Use:   "watch [SESSION]",
		Short: "Follow a session to its end, or all that happens",
		Long: "Follows a session: its output comes on stdout, what happens to it on stderr, and\n" +
			"the exit code says how it ended. Without a session it prints every event.\n" +
			"Ctrl-C detaches; the session goes on.",
		Example: "stint watch ses_02r3v0n8e2\nstint watch --json | jq .type",
		Args:    cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx, cancel := limited(cmd.Context(), limit)
			defer cancel()
			if len(args) == 0 {
				return c.watchAll(ctx)
			}
			return c.withSession(ctx, "cannot watch the session "+args[0], args[0], func(ctx context.Context, client *api.Client, id api.SessionID) error {
				return c.watch(ctx, client, id)
			})
		},
	}
	cmd.Flags().Var(length{&limit}, "timeout", "give up after this `TIME`")
	return cmd
}

// watch follows one session to its end: its output, or with --json its items.
func (c *cli) watch(ctx context.Context, client *api.Client, id api.SessionID) error {
	what := "cannot watch the session " + id.String()
	p, err := c.newPrinter(logsFlags{}, what)
	if err != nil {
		return err
	}
	f := follower{c: c, client: client, id: id, lines: p.print, change: c.tell, asked: true}
	s, err := f.run(ctx)
	closed := p.close()
	if err != nil && ctx.Err() != nil {
		return c.gaveUp(ctx, id)
	}
	if err = errors.Join(err, closed); err != nil {
		return explain(what, err, "stint show "+id.String())
	}
	return exitOf(s)
}

// tell prints what has happened to a session.
func (c *cli) tell(s api.Session) error {
	text := c.errLook.status(s.Status)
	switch {
	case s.Status.Terminal():
		l := looks[s.Status]
		if s.Stopped() || s.Mark() != "" {
			l = looks[api.Cancelled]
		}
		text = c.errLook.sgr(l.sgr, l.glyph+" "+ended(s, c.now()))
	case s.WaitingFor != nil:
		text += ": " + plain(s.WaitingFor.Sentence)
	case s.Prompted != nil:
		text += ": " + promptText(s.Prompted)
	}
	c.hint("%s %s", s.ID, text)
	if s.Prompted != nil && s.Status == api.AwaitingInput {
		c.tellPrompt(s)
	}
	return nil
}

// tellPrompt prints the parts of a question and how to answer it.
func (c *cli) tellPrompt(s api.Session) {
	f := &facts{}
	promptFacts(c, f, s.Prompted)
	for i, name := range f.names {
		if name != "asks" { // already said
			c.hint("  %s %s", c.errLook.quiet(name+":"), f.values[i])
		}
	}
	c.hint("  %s", answerHow(s.ID, s.Prompted))
}

// reconnect is how long a live view waits before it calls a coordinator that went away again.
const reconnect = time.Second

// watchAll prints every event from now on until it is interrupted.
func (c *cli) watchAll(ctx context.Context) error {
	what := "cannot watch"
	client, err := c.connect(what)
	if err != nil {
		return err
	}
	after, begun, lost := int64(-1), false, false
	each := func(e api.Event) error {
		after, begun = e.Seq, true
		if lost {
			lost = false
			c.hint("The server is back.")
		}
		return c.event(e)
	}
	if err := client.Healthy(ctx); err != nil {
		return explain(what, err, "stint up")
	}
	begun = true
	for {
		err := client.Follow(ctx, after, nil, each)
		switch {
		case errors.Is(context.Cause(ctx), errTimeout):
			return quietly(exitTimeout)
		case ctx.Err() != nil:
			return quietly(exitInterrupted)
		case errors.Is(err, api.ErrReset):
			c.hint("Some events are no longer kept; going on from now.")
			after = -1
		case !begun || !api.Retriable(err):
			return explain(what, err, "stint status")
		case !lost:
			lost = true
			c.hint("The server does not answer; waiting for it.")
		}
		select {
		case <-ctx.Done():
		case <-time.After(reconnect):
		}
	}
}

// event prints one event on a line.
func (c *cli) event(e api.Event) error {
	if c.flags.json {
		return c.line(e)
	}
	data, err := json.Marshal(e.Data, json.Deterministic(true))
	if err != nil {
		return fmt.Errorf("print event %d: %w", e.Seq, err)
	}
	if c.tty {
		return c.say("%s  %s  %s  %s", c.outLook.quiet(e.At.Local().Format("15:04:05")), plain(e.Type), e.SessionID, c.outLook.quiet(plain(string(data))))
	}
	return c.say("%s", strings.Join([]string{fmt.Sprint(e.Seq), e.At.String(), plain(e.Type), e.SessionID.String(), e.AgentID.String(), plain(e.Actor), string(data)}, tabulators))
}
