package main

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/spf13/cobra"

	"stint/api"
	"stint/worker"
	"stint/worker/agent"
	"stint/worker/setup"
	"stint/worker/workflow"
)

func (c *cli) workerTrustCommand() *cobra.Command {
	var yes bool
	var state, in string
	cmd := &cobra.Command{
		Use:   "trust AGENT",
		Short: "Accept what an agent executes here",
		Long: "Shows what others decide about what your worker executes for an agent, and\n" +
			"accepts exactly this: the run block, type and instructions of the agent's\n" +
			"record where somebody else changed them last, the hooks, command and workspace\n" +
			"of the workflow file, and what [uses] in your settings lets its program load\n" +
			"where others, or the agent, could have changed it. When any of it changes, it is\n" +
			"not run until you accept it again; of a workflow file, what you accepted last\n" +
			"goes on.",
		Example: "stint worker trust reviewer\nstint worker trust reviewer --yes",
		Args:    cobra.ExactArgs(1),
		RunE:    func(cmd *cobra.Command, args []string) error { return c.trust(cmd.Context(), args[0], state, in, yes) },
	}
	cmd.Flags().BoolVar(&yes, "yes", false, "accept it without being asked")
	cmd.Flags().StringVar(&in, "in", "", "the `DIR` whose files its program may load, in place of\nits work folder: a session's worktree")
	cmd.Flags().StringVar(&state, "state-dir", "", "the worker's own `DIR`, if its settings are there")
	return cmd
}

// offer is what there is to accept for an agent.
type offer struct {
	Agent    string         `json:"agent"`
	Run      *offeredRun    `json:"run,omitzero"`      // nil: set by yourself, or the coordinator wasn't asked
	Workflow *offeredFlow   `json:"workflow,omitzero"` // nil: there is none, or it executes nothing
	Uses     []offeredUse   `json:"uses,omitzero"`     // what the program may load and others could have written
	Accepted bool           `json:"accepted"`          // now all of it is
	was      setup.Accepted // before
	record   api.Agent      // the zero value where the coordinator wasn't asked
	flow     workflow.Executing
	uses     []agent.Source
}

type offeredRun struct {
	Digest       string        `json:"digest"`
	SetBy        string        `json:"setBy"`
	Type         api.AgentType `json:"type"`
	Run          api.Run       `json:"run"`
	Instructions string        `json:"instructions,omitzero"`
	Accepted     bool          `json:"accepted"` // it already was
}

type offeredFlow struct {
	Digest    string            `json:"digest"`
	Path      string            `json:"path"`
	Executing map[string]string `json:"executing"`
	Accepted  bool              `json:"accepted"`
}

func (c *cli) trust(ctx context.Context, ref, state, in string, yes bool) error {
	what := "cannot accept what the agent " + ref + " executes"
	files := setup.Find(state)
	o, err := c.offered(ctx, files, ref, what)
	if err != nil {
		return err
	}
	if err := o.offeredUses(state, in); err != nil {
		return explain(what, err, "stint worker doctor "+o.Agent)
	}
	fresh := o.Run != nil && !o.Run.Accepted || o.Workflow != nil && !o.Workflow.Accepted ||
		slices.ContainsFunc(o.Uses, func(u offeredUse) bool { return !u.Accepted })
	if !c.flags.json && !c.flags.quiet {
		if err := c.showOffer(o); err != nil {
			return err
		}
	}
	switch {
	case !fresh:
		o.Accepted = true
		return c.trusted(o, "Nothing has to be accepted.")
	case !yes && !isTerminal(c.in):
		return usage(what, "nothing was accepted: there is nobody to ask", "stint worker trust "+o.Agent+" --yes")
	case !yes:
		if yes, err = c.agrees(ctx, "Run exactly this on this machine, as you?"); err != nil {
			return explain(what, err, "")
		}
		if !yes {
			c.hint("Nothing was accepted.")
			return quietly(exitFailed)
		}
	}
	if err := files.Accept(o.Agent, o.accepting(api.Time{Time: c.now()})); err != nil {
		return &problem{code: exitFailed, what: what, why: api.Plain(err)}
	}
	o.Accepted = true
	return c.trusted(o, "Accepted.")
}

func (c *cli) trusted(o offer, words string) error {
	return c.done(o, o.Agent, "%s", words)
}

// accepting is what was accepted before, with what is offered replaced.
func (o offer) accepting(now api.Time) setup.Accepted {
	a := o.was
	if o.Run != nil {
		a.Run = &setup.AcceptedRun{Digest: o.Run.Digest, SetBy: o.Run.SetBy, At: now.UTC()}
	}
	if o.Workflow != nil {
		a.Workflow = &setup.AcceptedWorkflow{Path: o.Workflow.Path, Digest: o.Workflow.Digest, At: now.UTC(), Executing: o.flow}
	}
	return a.With(o.uses, now.UTC())
}

// offered gathers what there is to accept. Without a coordinator that is only the workflow
// file.
func (c *cli) offered(ctx context.Context, files setup.Files, ref, what string) (offer, error) {
	o := offer{Agent: strings.ToLower(strings.TrimSpace(ref))}
	client, err := c.connect(what)
	var away *problem
	switch {
	case errors.As(err, &away) && away.code == exitUnreachable:
		if _, found, err := files.Agent(o.Agent); err != nil || !found {
			return o, away
		}
	case err != nil:
		return o, err
	default:
		if o.Run, err = c.offeredRecord(ctx, client, &o, ref, what); err != nil {
			return o, err
		}
	}
	if o.was, err = files.Accepted(o.Agent); err != nil {
		return o, &problem{code: exitFailed, what: what, why: api.Plain(err)}
	}
	if o.Run != nil {
		o.Run.Accepted = o.was.Runs(o.Run.Digest)
	}
	own, _, err := files.Agent(o.Agent)
	if err != nil || own.Workflow == "" {
		return o, explain(what, err, "edit "+files.Path(o.Agent))
	}
	w, err := worker.LoadWorkflow(own.Workflow)
	if err != nil {
		return o, explain(what, err, "edit "+own.Workflow)
	}
	if o.flow = w.Executing(); len(o.flow) > 0 {
		_, changed, err := o.was.Follow(w)
		o.Workflow = &offeredFlow{Digest: o.flow.Digest(), Path: w.Path, Executing: o.flow, Accepted: !changed && err == nil}
	}
	return o, nil
}

// offeredRecord is the agent's record, unless the caller set it themselves.
func (c *cli) offeredRecord(ctx context.Context, client *api.Client, o *offer, ref, what string) (*offeredRun, error) {
	ref, err := findAgent(ctx, client, ref)
	if err != nil {
		return nil, err
	}
	a, err := client.Agent(ctx, ref)
	if err != nil {
		return nil, noAgent(ctx, client, what, ref, err)
	}
	o.Agent, o.record = a.Slug, a
	me, err := client.Whoami(ctx)
	if err != nil {
		return nil, explain(what, err, "stint status")
	}
	if a.RunSetBy == me.UserID.String() || a.RunSetBy == me.Name {
		return nil, nil
	}
	digest, err := setup.RunDigest(a.Type, a.Run, a.Instructions)
	if err != nil {
		return nil, explain(what, err, "")
	}
	return &offeredRun{Digest: digest, SetBy: a.RunSetBy, Type: a.Type, Run: a.Run, Instructions: a.Instructions}, nil
}

// showOffer shows all of it, with nothing in it that could hide the rest.
func (c *cli) showOffer(o offer) error {
	f := &facts{}
	f.add("agent", o.Agent)
	if r := o.Run; r != nil {
		f.add("record", mark(r.Accepted)+", last changed by "+workflow.Visible(cmp.Or(r.SetBy, "a program")))
		f.add("type", workflow.Visible(string(r.Type)))
		text, err := json.Marshal(r.Run)
		if err != nil {
			return err
		}
		members := map[string]jsontext.Value{} // all of them, including those that a newer server adds
		if err := json.Unmarshal(text, &members); err != nil {
			return err
		}
		for _, name := range slices.Sorted(maps.Keys(members)) {
			f.add(name, workflow.Visible(string(members[name])))
		}
		for line := range strings.Lines(r.Instructions) {
			f.add("instructions", workflow.Visible(strings.TrimRight(line, "\r\n")))
		}
		f.add("digest", r.Digest)
	} else {
		f.add("record", "yours, or not asked for")
	}
	for _, u := range o.Uses {
		useFacts(f, u)
	}
	w := o.Workflow
	if w == nil {
		return f.print(c)
	}
	f.add("workflow file", workflow.Visible(w.Path)+", "+mark(w.Accepted))
	f.add("digest", w.Digest)
	if err := f.print(c); err != nil {
		return err
	}
	return c.say("%s", strings.TrimRight(o.flow.String(), "\n"))
}

func mark(accepted bool) string {
	if accepted {
		return "accepted"
	}
	return "not accepted"
}

// acceptFlow asks whether to accept what the workflow file executes, right after the owner
// named it.
func (c *cli) acceptFlow(ctx context.Context, f *initFlags, asks bool) error {
	if f.settings.Workflow == "" {
		return nil
	}
	w, err := worker.LoadWorkflow(f.settings.Workflow)
	if err != nil {
		return err
	}
	was, err := f.files.Accepted(f.agent)
	if err != nil {
		return err
	}
	if _, changed, err := was.Follow(w); err == nil && !changed {
		return nil
	}
	o := offer{Agent: f.agent, flow: w.Executing(), was: was}
	o.Workflow = &offeredFlow{Digest: o.flow.Digest(), Path: w.Path}
	yes := f.yes
	if asks {
		c.hint("The workflow file says what to execute and where:\n%s", o.flow.String())
		if yes, err = c.agrees(ctx, "Run exactly this on this machine, as you?"); err != nil {
			return err
		}
	}
	if !yes {
		c.hint("What the workflow file executes is not accepted yet: stint worker trust %s", f.agent)
		return nil
	}
	return f.files.Accept(f.agent, o.accepting(api.Time{Time: c.now()}))
}
