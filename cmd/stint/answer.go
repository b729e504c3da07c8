package main

import (
	"context"
	"crypto/rand"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"stint/api"
)

type answerFlags struct {
	approve, forSession bool
	standing, deny      string
	options             []string
}

func (c *cli) answerCommand() *cobra.Command {
	var f answerFlags
	cmd := &cobra.Command{
		Use:   "answer SESSION [TEXT|-]",
		Short: "Answer what a session asks",
		Long: "Answers the open question of a session, once. With - the text is read from\n" +
			"stdin; so is the value of --option ID=-, which keeps secrets off the command\n" +
			"line. Without an answer it shows the question in full and changes nothing.",
		Example: "stint answer ses_02r3v0n8e2\n" +
			"stint answer ses_02r3v0n8e2 'the second one'\n" +
			"stint answer ses_02r3v0n8e2 --approve\n" +
			"stint answer ses_02r3v0n8e2 --from-now-on 'git push origin *'\n" +
			"stint answer ses_02r3v0n8e2 --deny 'not on a Friday'\n" +
			"stint answer ses_02r3v0n8e2 --option colour=red --option token=- < token",
		Args: cobra.RangeArgs(1, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			what := "cannot answer the session " + args[0]
			if cmd.Flags().Changed("deny") && (f.approve || f.forSession || f.standing != "") {
				return usage(what, "--approve and --deny exclude each other", "stint answer --help")
			}
			return c.withSession(cmd.Context(), what, args[0], func(ctx context.Context, client *api.Client, id api.SessionID) error {
				s, err := client.Session(ctx, id)
				if err != nil {
					return explain(what, err, "stint inbox")
				}
				if s.Prompted == nil {
					if s.Prompted, err = lastPrompt(ctx, client, id); err != nil {
						return explain(what, err, "stint inbox")
					}
					if in, given, err := c.answerOf(cmd, s.Prompted, args[1:], f, what); s.Prompted != nil && given && err == nil {
						return c.sendAnswer(ctx, client, s, in, what) // the refusal says who was first
					}
					return &problem{code: exitConflict, what: what, why: fmt.Sprintf("it asks nothing now (status %s)", s.Status), next: "stint inbox"}
				}
				in, given, err := c.answerOf(cmd, s.Prompted, args[1:], f, what)
				if err != nil {
					return err
				}
				if !given {
					return c.showPrompt(s)
				}
				return c.sendAnswer(ctx, client, s, in, what)
			})
		},
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.BoolVar(&f.approve, "approve", false, "approve it, once")
	flags.BoolVar(&f.forSession, "for-session", false, "approve it and its like for the rest of the session")
	flags.StringVar(&f.standing, "from-now-on", "", "approve it, and from now on exactly this (exact) or what\nfits a `PATTERN` that the question proposes")
	flags.StringVar(&f.deny, "deny", "", "refuse it, for this `REASON`")
	flags.StringArrayVar(&f.options, "option", nil, "the answer `ID=VALUE` to one of several questions;\nrepeat for more, also of one that takes several; VALUE -\nreads stdin")
	return cmd
}

// lastPrompt is the question that a session asked last, nil if its newest items mention none.
func lastPrompt(ctx context.Context, client *api.Client, id api.SessionID) (*api.Prompt, error) {
	page, err := client.ItemsBefore(ctx, id, 0, 200)
	if err != nil {
		return nil, err
	}
	for _, it := range slices.Backward(page.Items) {
		var prompt api.PromptID
		if it.Kind != api.ItemPromptResolved || prompt.UnmarshalText([]byte(it.CallID)) != nil {
			continue
		}
		p, err := client.AwaitAnswer(ctx, id, prompt, api.ClaimID{}, 0)
		return &p, err
	}
	return nil, nil
}

// answerOf makes the answer from arguments and flags; given is false when there are none. The
// coordinator decides whether it fits the prompt.
func (c *cli) answerOf(cmd *cobra.Command, p *api.Prompt, args []string, f answerFlags, what string) (a api.Answer, given bool, err error) {
	if len(args) > 0 {
		if a.Text, err = c.promptText(args[0]); err != nil {
			return a, false, usage(what, "the answer: "+err.Error(), "stint answer --help")
		}
		given = true
	}
	approved := f.approve || f.forSession || f.standing != ""
	switch {
	case cmd.Flags().Changed("deny"):
		a.Approved, a.Text, given = &approved, f.deny, true
	case approved:
		a.Approved, a.ForSession, a.Standing, given = &approved, f.forSession, f.standing, true
		if f.standing == "exact" && p != nil && p.Action != nil && len(p.Action.Standing) > 0 {
			a.Standing = p.Action.Standing[0]
		}
	}
	for _, option := range f.options {
		id, value, ok := strings.Cut(option, "=")
		if !ok {
			return a, false, usage(what, "--option "+option+" has no =", "--option ID=VALUE")
		}
		if value == "-" {
			if value, err = c.promptText("-"); err != nil {
				return a, false, usage(what, "--option "+id+": "+err.Error(), "stint answer --help")
			}
			value = strings.TrimRight(value, "\r\n")
		}
		if a.Choices == nil {
			a.Choices = map[string]string{}
		}
		if had := a.Choices[id]; had != "" && takesSeveral(p, id) {
			value = had + "\n" + value
		}
		a.Choices[id], given = value, true
	}
	// A single question needs no name.
	if p != nil && p.Kind == api.PromptQuestions && len(p.Choices) == 1 && len(a.Choices) == 0 && a.Text != "" {
		a.Choices, a.Text = map[string]string{p.Choices[0].ID: a.Text}, ""
	}
	return a, given, nil
}

// takesSeveral reports whether a question may be answered with several options.
func takesSeveral(p *api.Prompt, id string) bool {
	return p != nil && slices.ContainsFunc(p.Choices, func(q api.Choice) bool { return q.ID == id && q.Several })
}

func (c *cli) sendAnswer(ctx context.Context, client *api.Client, s api.Session, a api.Answer, what string) error {
	out, err := client.AnswerPrompt(ctx, s.ID, api.AnswerInput{PromptID: s.Prompted.ID, Answer: a})
	if err != nil {
		return explain(what, err, "stint answer "+s.ID.String()+" shows what it asks")
	}
	return c.done(out, out.ID.String(), "Answered: %s is %s.", out.ID, out.Status)
}

// showPrompt prints the whole question and how it is answered.
func (c *cli) showPrompt(s api.Session) error {
	p := s.Prompted
	err := c.show(p, p.ID.String(), func() error {
		f := &facts{}
		f.add("session", s.ID.String())
		f.add("agent", s.AgentSlug)
		promptFacts(c, f, p)
		return f.print(c)
	})
	if err != nil {
		return err
	}
	c.hint("%s", answerHow(s.ID, p))
	return quietly(exitUnfinished)
}

// promptFacts are the parts of a prompt, each in full.
func promptFacts(c *cli, f *facts, p *api.Prompt) {
	if !p.Repeats() {
		f.add("asks", promptText(p))
	}
	if p.Action != nil {
		f.add("tool", plain(p.Action.Tool))
		f.add("area", plain(p.Action.Area))
		f.add("wants to", visible(p.Action.What))
		f.add("says why", visible(p.Action.Why))
		for i, what := range p.Action.Standing {
			f.add("from now on", map[bool]string{true: "exact", false: visible(what)}[i == 0])
		}
	}
	for _, q := range p.Choices {
		text := plain(q.Text)
		if q.Header != "" {
			text = plain(q.Header) + ": " + text
		}
		if len(q.Options) > 0 {
			text += " [" + plain(strings.Join(q.Options, " | ")) + "]"
		}
		switch {
		case q.Other:
			text += " or a text"
		case q.Secret:
			text += " (kept secret)"
		}
		if q.Several {
			text += ", one or more"
		}
		f.add("question "+plain(q.ID), text)
		for i, o := range q.Options {
			f.add("option "+plain(o), plain(q.Of(i).Description))
			f.add("preview of "+plain(o), plain(q.Of(i).Preview))
		}
	}
	f.add("deadline", c.when(p.DeadlineAt))
	f.add("then counts", defaultAnswer(p))
}

// visible is what a person decides on, on one line that hides nothing.
func visible(text string) string {
	return strings.NewReplacer("\n", `\n`, "\t", `\t`).Replace(api.Visible(text))
}

// promptText is the text of a prompt on one line.
func promptText(p *api.Prompt) string {
	if p.Kind == api.PromptApproval {
		return visible(p.Text)
	}
	return plain(p.Text)
}

func defaultAnswer(p *api.Prompt) string {
	d := p.Default
	switch {
	case d == nil:
		return ""
	case p.Kind == api.PromptApproval:
		return plain(strings.TrimSuffix("denied: "+d.Text, ": "))
	case p.Kind == api.PromptQuestions:
		var parts []string
		for _, q := range p.Choices {
			parts = append(parts, q.ID+"="+d.Choices[q.ID])
		}
		return plain(strings.Join(parts, " "))
	}
	return plain(d.Text)
}

// answerHow is the command that answers a prompt.
func answerHow(id api.SessionID, p *api.Prompt) string {
	switch p.Kind {
	case api.PromptApproval:
		return fmt.Sprintf("Answer it with: stint answer %s --approve, or --deny REASON", id)
	case api.PromptQuestions:
		var parts []string
		for _, q := range p.Choices {
			parts = append(parts, "--option "+plain(q.ID)+"=VALUE")
		}
		return fmt.Sprintf("Answer it with: stint answer %s %s", id, strings.Join(parts, " "))
	}
	return fmt.Sprintf("Answer it with: stint answer %s TEXT", id)
}

func (c *cli) sayCommand() *cobra.Command {
	var now bool
	var paths []string
	cmd := &cobra.Command{
		Use:   "say SESSION TEXT|-",
		Short: "Write to the agent of a session",
		Long: "Writes to the agent of a session, which takes it in between its turns. Where the\n" +
			"session has ended, the conversation goes on in a new one. With --now the turn\n" +
			"that runs takes it in, which agents of type claude_code and codex can. With -\n" +
			"the text is read from stdin.",
		Example: "stint say ses_02r3v0n8e2 'Leave the tests as they are'\nstint say ses_02r3v0n8e2 --now 'Not that folder'\ngit diff | stint say ses_02r3v0n8e2 -",
		Args:    cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			what := "cannot write to the session " + args[0]
			text, err := c.promptText(args[1])
			if err != nil {
				return usage(what, "the message: "+err.Error(), "stint say --help")
			}
			files, err := readFiles(paths)
			if err != nil {
				return usage(what, "--file: "+err.Error(), "stint say --help")
			}
			return c.withSession(cmd.Context(), what, args[0], func(ctx context.Context, client *api.Client, id api.SessionID) error {
				posted, err := c.post(ctx, client, id, api.MessageInput{Text: text, Now: now, Files: files})
				if err != nil {
					return explain(what, err, nextFor(err, id))
				}
				return c.show(posted, posted.Session.ID.String(), func() error {
					if posted.Message != nil && now {
						c.hint("Sent: the agent takes it in while it works.")
						return nil
					}
					if posted.Message != nil {
						c.hint("Sent: the agent takes it in between its turns.")
						return nil
					}
					c.hint("The conversation goes on in %s. Follow it with: stint watch %s", posted.Session.ID, posted.Session.ID)
					return c.say("%s", posted.Session.ID)
				})
			})
		},
	}
	cmd.Flags().StringArrayVar(&paths, "file", nil, "a `PATH` of a file or an image that comes with it;\nmay be given several times")
	cmd.Flags().BoolVar(&now, "now", false, "for the turn that runs, not for after it")
	return cmd
}

// post sends a message; its key makes repetitions after a lost answer count as one.
func (c *cli) post(ctx context.Context, client *api.Client, id api.SessionID, in api.MessageInput) (out api.Posted, err error) {
	in.ClientID = "cli-" + rand.Text()
	for try := range createTries {
		if out, err = client.PostMessage(ctx, id, in); !api.Retriable(err) || try == createTries-1 {
			return out, err
		}
		select {
		case <-ctx.Done():
			return out, context.Cause(ctx)
		case <-time.After(max(api.RetryAfter(err), 100*time.Millisecond)):
		}
	}
	return out, err
}
