package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"stint/api"
)

type sessionsFlags struct {
	statuses []string
	phase    string
	agent    string
	trigger  string
	query    string
	since    string
	archived bool
	unlanded bool
	paging
}

func (c *cli) sessionsCommand() *cobra.Command {
	var f sessionsFlags
	cmd := &cobra.Command{
		Use: "sessions", Aliases: []string{"list", "ls"},
		Short:   "List sessions, the newest first",
		Example: "stint sessions --agent backup --since yesterday\nstint sessions --status active,stale --json",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			what := "cannot list the sessions"
			filter, err := c.sessionFilter(f, what)
			if err != nil {
				return err
			}
			return c.withAgent(cmd.Context(), what, filter.Agent, func(ctx context.Context, client *api.Client, agent string) error {
				filter.Agent = agent
				found, err := pages(f.limit, f.cursor, func(p api.Page) (api.List[api.Session], error) { return client.Sessions(ctx, filter, p) })
				if err != nil {
					return noAgent(ctx, client, what, agent, err)
				}
				return c.showSessions(found)
			})
		},
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.StringSliceVar(&f.statuses, "status", nil, "only these `STATUSES`, such as active,stale")
	flags.StringSliceVar(&f.statuses, "state", nil, "the same as --status")
	_ = flags.MarkHidden("state")
	flags.StringVar(&f.phase, "phase", "", "only this `PHASE`: pending, running, complete, failed")
	flags.StringVar(&f.agent, "agent", "", "only this `AGENT`'s")
	flags.StringVar(&f.trigger, "triggered-by", "", "only `BY` user, scheduler, webhook or agent")
	flags.StringVar(&f.query, "query", "", "only what fits a `QUERY`: 'code:TIMEOUT cost:>1 some text' (stint docs sessions)")
	flags.StringVar(&f.since, "since", "", "only since this `TIME`: 2h, yesterday, 2026-11-01")
	flags.BoolVar(&f.archived, "archived", false, "archived ones too")
	flags.BoolVar(&f.unlanded, "unlanded", false, "only those with changes that nobody has landed")
	f.paging.add(flags)
	return cmd
}

// sessionFilter checks the flags and makes a filter from them.
func (c *cli) sessionFilter(f sessionsFlags, what string) (api.SessionFilter, error) {
	refuse := func(why string) (api.SessionFilter, error) {
		return api.SessionFilter{}, usage(what, why, "stint sessions --help")
	}
	if err := f.check(what, "stint sessions --help"); err != nil {
		return api.SessionFilter{}, err
	}
	filter, err := api.ParseSessionQuery(f.query, c.now())
	if bad, ok := errors.AsType[*api.Error](err); ok {
		return api.SessionFilter{}, badQuery(what, bad)
	}
	flags := api.SessionFilter{Agent: f.agent, Trigger: api.Trigger(f.trigger), Archived: f.archived, Unlanded: f.unlanded}
	for _, word := range f.statuses {
		status := api.Status(strings.ReplaceAll(strings.ToLower(word), "-", "_"))
		if !slices.Contains(api.Statuses, status) {
			return refuse(fmt.Sprintf("--status %s is none of %s", word, joined(api.Statuses)))
		}
		flags.Statuses = append(flags.Statuses, status)
	}
	if f.since != "" {
		at, err := api.ParseTime(f.since, c.now(), true)
		if err != nil {
			return refuse("--since: " + err.Error())
		}
		flags.Since = api.Time{Time: at.UTC()}
	}
	phase := api.SessionFilter{}
	if f.phase != "" {
		if phase.Statuses = api.Phase(f.phase).Statuses(); phase.Statuses == nil {
			return refuse("--phase " + f.phase + " is none of pending, running, complete, failed")
		}
	}
	for _, more := range []api.SessionFilter{flags, phase} {
		var clash string
		if filter, clash = filter.And(more); clash != "" {
			return refuse("what is said of " + clash + " can't all be true of one session")
		}
	}
	return filter, nil
}

// badQuery tells what a query says that can't be read, and where its words are told.
func badQuery(what string, err *api.Error) error {
	return usage(what, "--query: "+err.Fields[0].Detail, "stint help query")
}

func joined[T ~string](words []T) string {
	text := make([]string, len(words))
	for i, w := range words {
		text[i] = string(w)
	}
	return strings.Join(text, ", ")
}

func (c *cli) showSessions(found api.List[api.Session]) error {
	l := listing[api.Session]{
		head: []string{"SESSION", "STATUS", "AGENT", "TITLE", "BY", "CREATED", "TOOK"}, flex: 3,
		row:  c.sessionRow,
		none: "No session fits. Start one with: stint run AGENT",
	}
	if found.NextCursor != "" {
		l.none = "None among the newest sessions."
	}
	if err := l.show(c, found); err != nil {
		return err
	}
	if found.NextCursor != "" && c.tty && !c.flags.json {
		c.hint("%s", c.errLook.quiet("Older ones: --limit N, or --cursor "+found.NextCursor))
	}
	return nil
}

func (c *cli) sessionRow(s api.Session) []string {
	row := []string{s.ID.String(), c.sessionStatus(s), s.AgentSlug, title(s), string(s.TriggeredBy), c.ago(s.CreatedAt), c.took(s)}
	if !c.tty {
		row = append(row, s.Outcome)
	}
	return row
}

// sessionStatus is a session's status for a table. People see at once what was stopped; for
// programs the outcome is a separate column.
func (c *cli) sessionStatus(s api.Session) string {
	if c.tty && s.Status == api.Complete && s.Stopped() {
		return c.outLook.quiet(looks[api.Cancelled].glyph + " stopped")
	}
	if c.tty && s.Mark() != "" {
		return c.outLook.quiet(looks[api.Cancelled].glyph + " " + api.MarkWord(s.Outcome))
	}
	return c.status(s.Status)
}

// status is a status for a table: glyph and colour for people, the word for programs.
func (c *cli) status(s api.Status) string {
	if !c.tty {
		return string(s)
	}
	return c.outLook.status(s)
}

// title is a session's title where there is one line for it.
func title(s api.Session) string {
	if t := firstLine(s.Title); t != "" {
		return t
	}
	return firstLine(s.Prompt)
}

// took is how long a session ran or has been running: seconds for programs.
func (c *cli) took(s api.Session) string {
	if s.StartedAt.IsZero() {
		return ""
	}
	end := s.EndedAt.Time
	if s.EndedAt.IsZero() {
		if !s.Status.Running() {
			return ""
		}
		end = c.now()
	}
	d := max(end.Sub(s.StartedAt.Time), 0)
	if !c.tty {
		return strconv.FormatFloat(d.Seconds(), 'f', 3, 64)
	}
	return span(d)
}

func (c *cli) showCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "show SESSION",
		Short: "Show one session",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			what := "cannot show the session " + args[0]
			return c.withSession(cmd.Context(), what, args[0], func(ctx context.Context, client *api.Client, id api.SessionID) error {
				s, err := client.Session(ctx, id)
				if err != nil {
					return explain(what, err, "stint sessions")
				}
				return c.show(s, s.ID.String(), func() error { return c.sessionFacts(s).print(c) })
			})
		},
	}
}

// withSession connects and finds the session that an argument names.
func (c *cli) withSession(ctx context.Context, what, ref string, do func(context.Context, *api.Client, api.SessionID) error) error {
	return c.withFound(ctx, what, ref, findSession, do)
}

// withLastSession is withSession for a command that takes an agent for its newest session, too.
func (c *cli) withLastSession(ctx context.Context, what, ref string, do func(context.Context, *api.Client, api.SessionID) error) error {
	return c.withFound(ctx, what, ref, func(ctx context.Context, client *api.Client, ref string) (api.SessionID, error) {
		id, err := findSession(ctx, client, ref)
		a, ok := agentInstead(ctx, client, ref, err)
		if !ok {
			return id, err
		}
		list, err := client.Sessions(ctx, api.SessionFilter{Agent: a.ID.String(), Archived: true}, api.Page{Limit: 1})
		switch {
		case err != nil:
			return 0, explain(what, err, "stint sessions --agent "+a.Slug)
		case len(list.Items) == 0:
			return 0, &problem{code: exitNotFound, what: what, why: "the agent " + a.Slug + " has no session that you may see", next: "stint run " + a.Slug}
		}
		c.hint("The last session of %s: %s, %s.", a.Slug, list.Items[0].ID, list.Items[0].Status)
		return list.Items[0].ID, nil
	}, do)
}

// withFound connects and does something with the session that is found.
func (c *cli) withFound(ctx context.Context, what, ref string, find func(context.Context, *api.Client, string) (api.SessionID, error), do func(context.Context, *api.Client, api.SessionID) error) error {
	client, err := c.connect(what)
	if err != nil {
		return err
	}
	id, err := find(ctx, client, ref)
	if err != nil {
		return err
	}
	return do(ctx, client, id)
}

func (c *cli) sessionFacts(s api.Session) *facts {
	f := &facts{}
	f.add("session", s.ID.String())
	f.add("status", c.status(s.Status))
	f.add("agent", s.AgentSlug)
	f.add("title", firstLine(s.Title))
	if s.Task != nil {
		f.add("task", taskLine(*s.Task))
	}
	f.add("prompt", opening(s.Prompt))
	f.add("triggered by", string(s.TriggeredBy))
	f.add("triggered", c.when(s.TriggeredAt))
	if s.WaitingFor != nil {
		f.add("waits", plain(s.WaitingFor.Sentence))
	}
	if s.Error != nil {
		f.add("error", plain(s.Error.Code+": "+s.Error.Message))
	}
	if s.Prompted != nil {
		promptFacts(c, f, s.Prompted)
	}
	f.add("not before", c.when(s.NotBefore))
	f.add("after", s.After.String())
	f.add("worker", s.WorkerID.String())
	if s.Status.Running() {
		f.add("lease until", c.when(s.LeaseExpiresAt))
	}
	f.add("stop asked", c.when(s.StopRequestedAt))
	if s.Attempt > 1 {
		f.add("attempt", strconv.FormatInt(s.Attempt, 10))
	}
	f.add("retry of", s.RetryOf.String())
	if s.Lapses > 0 {
		f.add("lapses", strconv.FormatInt(s.Lapses, 10))
	}
	f.add("created", c.when(s.CreatedAt))
	f.add("started", c.when(s.StartedAt))
	f.add("ended", c.when(s.EndedAt))
	f.add("took", c.took(s))
	f.add("kept since", c.when(s.KeptAt))
	f.add("output removed", c.when(s.OutputRemovedAt))
	f.add("events removed", c.when(s.EventsRemovedAt))
	f.add("outcome", plain(s.Outcome))
	f.add("because", plain(s.Mark()))
	if s.Refused > 0 {
		f.add("refused", strconv.FormatInt(s.Refused, 10))
	}
	f.add("result", opening(s.Result))
	f.add("url", plain(s.ExternalURL))
	f.add("model", plain(s.Model))
	f.add("effort", plain(s.Effort))
	if s.PlanMode {
		f.add("plan mode", "yes: it only looks and plans")
	}
	f.add("works in", plain(s.WorkPath))
	if s.Mode == api.Local {
		f.add("agent session", plain(s.AgentSessionID))
		if s.AgentSessionID != "" && s.ResumeCommand == "" {
			f.add("resume by hand", "no command of its program is known: say more to it with stint say")
		}
	}
	f.add("resume by hand", plain(s.ResumeCommand))
	f.add("plan", planFact(s.Plan))
	if u := s.Usage; u.InputTokens+u.OutputTokens > 0 {
		f.add("tokens", fmt.Sprintf("%d in, %d out", u.InputTokens, u.OutputTokens))
	}
	if s.Usage.CostMicros > 0 {
		f.add("cost", dollars{&s.Usage.CostMicros}.String())
	}
	return f
}

// ended says how a session ended, in half a sentence for people.
func ended(s api.Session, now time.Time) string {
	text := string(s.Status)
	if s.Status == api.Complete && s.Stopped() {
		text = "stopped by a person"
	}
	if s.Mark() != "" {
		text = api.MarkWord(s.Outcome)
	}
	if s.Error != nil && s.Error.Code != text {
		text += " " + plain(s.Error.Code)
	}
	if !s.StartedAt.IsZero() && !s.EndedAt.IsZero() {
		text += " after " + span(s.EndedAt.Sub(s.StartedAt.Time))
	} else if !s.EndedAt.IsZero() {
		text += " " + relative(s.EndedAt.Time, now)
	}
	if s.Error != nil && s.Error.Message != "" {
		text += ": " + plain(s.Error.Message)
	} else if why := s.Mark(); why != "" {
		text += ": " + plain(why)
	}
	return text
}

// planFact says how far along a plan is: its steps are lines of a Markdown task list.
func planFact(plan string) string {
	done, steps := 0, 0
	for line := range strings.Lines(plan) {
		switch box, _, _ := strings.Cut(strings.TrimSpace(strings.TrimLeft(strings.TrimSpace(line), "-*+ ")), "]"); box {
		case "[x", "[X":
			done, steps = done+1, steps+1
		case "[ ":
			steps++
		}
	}
	if steps == 0 {
		return firstLine(plan)
	}
	return fmt.Sprintf("%d of %d steps done", done, steps)
}
