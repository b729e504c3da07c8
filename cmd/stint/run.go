package main

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"stint/api"
)

type runFlags struct {
	watch, wait, afterAny            bool
	title, at, after, key, untrusted string
	task                             string
	model, effort                    string
	plan                             bool
	files                            []string
	priority                         int64
	limit                            time.Duration
}

func (c *cli) runCommand() *cobra.Command {
	var f runFlags
	cmd := &cobra.Command{
		Use:   "run AGENT [PROMPT|-]",
		Short: "Queue a session of an agent",
		Long: "Queues a session of an agent and prints its id. Without a prompt the agent is\n" +
			"told its own; with '' it is told none, and with - the prompt is read from\n" +
			"stdin. One that begins with a dash goes after --, behind all flags. With --wait\n" +
			"or --watch the exit code says how the session ended.",
		Example: "stint run backup\nstint run review --task T-42\nstint run review 'Look at the newest commit' --watch\ngit diff | stint run review - --wait --timeout 10m",
		Args:    cobra.RangeArgs(1, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.runAgent(cmd, args, f)
		},
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.BoolVar(&f.watch, "watch", false, "follow it: output on stdout, what happens on stderr")
	flags.BoolVar(&f.wait, "wait", false, "wait for its end")
	flags.Var(length{&f.limit}, "timeout", "give up waiting after this `TIME`; the session goes on")
	flags.StringVar(&f.title, "title", "", "what the session is called")
	flags.StringVar(&f.untrusted, "context", "", "a `TEXT` from elsewhere that the agent is not to trust")
	flags.StringVar(&f.task, "task", "", "the `TASK` that it is about; its briefing joins the\ncontext, and it isn't claimed")
	flags.StringVar(&f.model, "model", "", "the `MODEL` in place of the agent's")
	flags.StringVar(&f.effort, "effort", "", "how much the model is to think, such as `HIGH`, in place\nof the agent's")
	flags.BoolVar(&f.plan, "plan", false, "it only looks and plans, and changes nothing")
	flags.StringArrayVar(&f.files, "file", nil, "a `PATH` of a file or an image that comes with the\nprompt; may be given several times")
	flags.StringVar(&f.at, "at", "", "not before this `TIME`: 2h, tomorrow, 2026-11-28T09:00:00Z")
	flags.Int64Var(&f.priority, "priority", 0, "higher goes first (the agent's)")
	flags.StringVar(&f.after, "after", "", "only when this `SESSION` is complete")
	flags.BoolVar(&f.afterAny, "after-any", false, "with --after: however that one ends")
	flags.StringVar(&f.key, "idempotency-key", "", "the same `KEY` twice is one session (a new one)")
	return cmd
}

func (c *cli) runAgent(cmd *cobra.Command, args []string, f runFlags) error {
	what := "cannot run the agent " + args[0]
	if f.afterAny && f.after == "" {
		return usage(what, "--after-any needs --after SESSION", "stint run --help")
	}
	if f.limit > 0 && !f.wait && !f.watch {
		return usage(what, "--timeout needs --wait or --watch: it ends the waiting, not the session", "stint run --help")
	}
	in, err := c.sessionInput(cmd, args, f, what)
	if err != nil {
		return err
	}
	client, err := c.connect(what)
	if err != nil {
		return err
	}
	ctx := cmd.Context()
	if f.after != "" {
		if in.After, err = findSession(ctx, client, f.after); err != nil {
			return err
		}
	}
	agent, err := findAgent(ctx, client, args[0])
	if err != nil {
		return err
	}
	s, err := c.create(ctx, client, agent, in, f.key)
	if err != nil {
		return noAgent(ctx, client, what, agent, err)
	}
	return c.started(ctx, client, s, f)
}

func (c *cli) sessionInput(cmd *cobra.Command, args []string, f runFlags, what string) (api.SessionInput, error) {
	in := api.SessionInput{Title: f.title, Task: f.task, UntrustedContext: f.untrusted, AfterAny: f.afterAny}
	in.RunChoice = api.RunChoice{Model: f.model, Effort: f.effort, PlanMode: f.plan}
	if len(args) > 1 {
		text, err := c.promptText(args[1])
		if err != nil {
			return in, usage(what, "the prompt: "+err.Error(), "stint run --help")
		}
		in.Prompt = &text
	}
	var err error
	if in.Files, err = readFiles(f.files); err != nil {
		return in, usage(what, "--file: "+err.Error(), "stint run --help")
	}
	if cmd.Flags().Changed("priority") {
		in.Priority = &f.priority
	}
	if f.at != "" {
		now := c.now()
		at, err := api.ParseTime(f.at, now, false)
		if err != nil {
			return in, usage(what, "--at: "+err.Error(), "stint run --help")
		}
		if at.Before(now) {
			return in, usage(what, "--at: "+f.at+" has passed; without --at it runs now", "stint run --help")
		}
		in.NotBefore = api.Time{Time: at.UTC()}
	}
	return in, nil
}

// createTries is how often a creation whose answer was lost is sent again; its key makes them
// count as one.
const createTries = 3

func (c *cli) create(ctx context.Context, client *api.Client, agent string, in api.SessionInput, key string) (s api.Session, err error) {
	key = cmp.Or(key, newKey())
	err = untilAnswered(ctx, func() error {
		s, _, err = client.CreateSession(ctx, agent, in, key)
		return err
	})
	return s, err
}

// newKey is an Idempotency-Key that nothing else has.
func newKey() string { return "cli-" + rand.Text() }

// untilAnswered makes a call that a key makes count once, again while its answer is lost.
func untilAnswered(ctx context.Context, do func() error) error {
	for try := 1; ; try++ {
		err := do()
		if !api.Retriable(err) || try == createTries {
			return err
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(max(api.RetryAfter(err), 100*time.Millisecond)):
		}
	}
}

// started announces the new session and, if asked, waits for it.
func (c *cli) started(ctx context.Context, client *api.Client, s api.Session, f runFlags) error {
	ctx, cancel := limited(ctx, f.limit)
	defer cancel()
	switch {
	case f.watch:
		if !c.flags.json {
			c.hint("%s", s.ID)
		}
		return c.watch(ctx, client, s.ID)
	case f.wait:
		return c.wait(ctx, client, s.ID)
	}
	return c.show(s, s.ID.String(), func() error {
		if err := c.say("%s", s.ID); err != nil {
			return err
		}
		state := string(s.Status)
		if s.WaitingFor != nil {
			state += ": " + strings.TrimSuffix(plain(s.WaitingFor.Sentence), ".")
		}
		c.hint("%s. Follow it with: stint watch %s", state, s.ID)
		return nil
	})
}

// wait follows a session without its output. It prints the id at once, so that whoever
// interrupts the wait knows it; with --json the session as it ended.
func (c *cli) wait(ctx context.Context, client *api.Client, id api.SessionID) error {
	f := follower{c: c, client: client, id: id, change: c.tell, asked: true}
	if !c.flags.json {
		if err := c.say("%s", id); err != nil {
			return err
		}
	}
	s, err := f.run(ctx)
	if err != nil && ctx.Err() != nil {
		err = c.gaveUp(ctx, id)
	}
	if c.flags.json && s.ID != 0 {
		err = errors.Join(err, c.document(s))
	}
	if err != nil {
		return explain(fmt.Sprintf("cannot wait for the session %s", id), err, "stint show "+id.String())
	}
	return exitOf(s)
}
