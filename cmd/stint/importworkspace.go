package main

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	shellquote "github.com/kballard/go-shellquote"
	"github.com/spf13/cobra"

	"stint/api"
	"stint/engine/workspacefile"
)

func (c *cli) importWorkspaceCommand() *cobra.Command {
	var create, active bool
	cmd := &cobra.Command{
		Use: "workspace FILE|-", Short: "Make what a document of stint export has", Args: cobra.ExactArgs(1),
		Long: "Shows what of a document of stint export would be made in the workspace, what\n" +
			"is there already and is left alone, and what has to be set up by hand because\n" +
			"its address is a secret. With --create it makes the agents, paused, and the\n" +
			"tasks. One that broke off can be repeated: it makes what is missing. What an\n" +
			"imported agent executes counts as nobody's: look at it, then accept it for your\n" +
			"worker with stint worker trust AGENT.",
		Example: "stint import workspace lab.json\nstint --workspace den import workspace lab.json --create",
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return []string{"json"}, cobra.ShellCompDirectiveFilterFileExt
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			what := "cannot import the workspace of " + args[0]
			text, err := c.fileText(args[0])
			if err != nil {
				return usage(what, api.Plain(err), "stint import workspace --help")
			}
			d, bad, err := workspacefile.Read(text)
			if err != nil {
				return usage(what, api.Plain(err), "stint export shows what a document looks like")
			}
			client, err := c.connect(what)
			if err != nil {
				return err
			}
			m := workspaceImport{
				c: c, client: client, what: what, document: d, create: create, active: active,
				tasks: taskImport{c: c, client: client, what: what, rows: d.Tasks, bad: bad, lenient: true, name: "workspace-" + rand.Text()[:10]},
			}
			return m.run(cmd.Context())
		},
	}
	cmd.Flags().BoolVar(&create, "create", false, "make what is shown")
	cmd.Flags().BoolVar(&active, "active", false, "with --create: don't leave agents paused that weren't")
	return cmd
}

// workspaceImport makes what a document has and the workspace lacks.
type workspaceImport struct {
	c        *cli
	client   *api.Client
	what     string
	document workspacefile.Document
	create   bool
	active   bool
	tasks    taskImport
	order    []int // of the tasks

	agentState []string
	byHand     []arrival
}

// arrival is one thing of a document, and what becomes of it.
type arrival struct {
	Kind   string `json:"kind"`         // agent, task, webhook, channel or trigger_url
	Name   string `json:"name"`         // slug, key or what may be shown of the address
	State  string `json:"state"`        // new, made, there or by_hand
	Detail string `json:"detail"`       // of what is to be set up by hand, the command that does it
	Key    string `json:"key,omitzero"` // of a task that is here
}

// What becomes of a thing of a document.
const (
	arrivalNew    = "new"
	arrivalMade   = "made"
	arrivalThere  = "there"
	arrivalByHand = "by_hand"
)

// arrived is what an import of a workspace answers.
type arrived struct {
	Items      []arrival `json:"items"`
	LeftOut    []string  `json:"leftOut"`    // by whoever made the document
	Unassigned []string  `json:"unassigned"` // tasks whose assignee isn't here
}

func (m *workspaceImport) run(ctx context.Context) error {
	if err := m.check(ctx); err != nil {
		return explain(m.what, err, "stint import workspace --help")
	}
	if len(m.tasks.bad) > 0 {
		return m.tasks.refused()
	}
	if !m.create {
		return m.tell()
	}
	err := m.make(ctx)
	if shown := m.tell(); shown != nil && err == nil {
		return shown
	}
	return explain(m.what, err, "nothing is lost: mend it and import again; what was made is left alone")
}

// check looks up what is there already, and finds what is wrong before anything is made.
func (m *workspaceImport) check(ctx context.Context) error {
	var here workspacefile.Document
	agents, err := everything(func(p api.Page) (api.List[api.Agent], error) { return m.client.Agents(ctx, p) })
	if err != nil {
		return err
	}
	states := map[string]string{}
	for _, a := range agents {
		states[a.Slug] = arrivalThere
	}
	for i, a := range m.document.Agents {
		if slices.Contains(m.tasks.agents, a.Slug) {
			return usage(m.what, fmt.Sprintf("agents[%d]: %q is the slug of another agent of it, too", i, a.Slug), "")
		}
		m.agentState = append(m.agentState, cmp.Or(states[a.Slug], arrivalNew))
		m.tasks.agents = append(m.tasks.agents, a.Slug)
	}
	m.tasks.titles = map[string][]api.Task{}
	tasks, err := everything(func(p api.Page) (api.List[api.Task], error) { return m.client.Tasks(ctx, api.TaskFilter{}, p) })
	if err != nil {
		return err
	}
	for _, t := range slices.Backward(tasks) {
		if t.Slug == "" {
			m.tasks.titles[t.Title] = append(m.tasks.titles[t.Title], t)
		}
	}
	if err := m.tasks.check(ctx); err != nil {
		return err
	}
	m.order = m.tasks.order()
	agents = slices.DeleteFunc(agents, func(a api.Agent) bool {
		return !slices.ContainsFunc(m.document.TriggerURLs, func(u workspacefile.TriggerURL) bool { return u.Agent == a.Slug })
	})
	if err := byHandOf(ctx, m.client, agents, &here); err != nil {
		return err
	}
	m.findByHand(here)
	return nil
}

// findByHand lists what people have to set up, with the command that does it; here is what they
// did already.
func (m *workspaceImport) findByHand(here workspacefile.Document) {
	add := func(kind, name string, there bool, command ...string) {
		state := arrivalByHand
		if there {
			state = arrivalThere
		}
		text := shellquote.Join(slices.DeleteFunc(command, func(s string) bool { return s == "" })...)
		m.byHand = append(m.byHand, arrival{Kind: kind, Name: name, State: state, Detail: m.c.inWorkspace(text)})
	}
	with := func(flag, value string) string {
		if value == "" {
			return ""
		}
		return flag + "=" + value
	}
	when := func(is bool, flag string) string {
		if is {
			return flag
		}
		return ""
	}
	for _, w := range m.document.Webhooks {
		add("webhook", w.Target, has(here.Webhooks, w),
			"stint", "webhook", "create", "URL", with("--type", strings.Join(w.Types, ",")), with("--description", w.Description))
	}
	for _, ch := range m.document.Channels {
		add("channel", ch.Target, has(here.Channels, ch),
			"stint", "notify", "add", "-", with("--tell", chosenCauses(ch.Causes)), when(ch.Scope == api.ScopeWorkspace, "--workspace"), when(ch.Details, "--details"),
			with("--quiet-hours", strings.Trim(ch.QuietFrom+"-"+ch.QuietTo, "-")), with("--digest", ch.DigestAt), with("--tz", ch.TimeZone), with("--description", ch.Description))
	}
	for _, u := range m.document.TriggerURLs {
		add("trigger_url", u.Agent, has(here.TriggerURLs, u),
			"stint", "trigger-url", "open", u.Agent, with("--signature", string(u.Signature)), with("--description", u.Description))
	}
}

// chosenCauses are the causes of a channel as a flag has them; none if it tells what a channel
// tells without any choice.
func chosenCauses(causes api.Labels) string {
	if slices.Equal(causes.Normal(), api.DefaultCauses()) {
		return ""
	}
	return strings.Join(causes, ",")
}

func has[T any](all []T, one T) bool {
	return slices.ContainsFunc(all, func(other T) bool { return reflect.DeepEqual(other, one) })
}

// make makes the agents, then the tasks, which may be assigned to them.
func (m *workspaceImport) make(ctx context.Context) error {
	for i, a := range m.document.Agents {
		if m.agentState[i] == arrivalThere {
			continue
		}
		a.Paused = a.Paused || !m.active
		_, err := m.client.ImportAgent(ctx, a)
		switch {
		case api.CodeOf(err) == api.CodeSlugTaken: // since it was looked up
			m.agentState[i] = arrivalThere
		case err != nil:
			return fmt.Errorf("agent %s: %w", a.Slug, err)
		default:
			m.agentState[i] = arrivalMade
		}
	}
	if line, err := m.tasks.create(ctx, m.order, false); err != nil {
		return fmt.Errorf("the task of line %d: %w", line, err)
	}
	return nil
}

// items are all things of the document as they are now.
func (m *workspaceImport) items() []arrival {
	out := []arrival{}
	for i, a := range m.document.Agents {
		command := cmp.Or(shellquote.Join(a.Run.Command...), a.Prompt)
		out = append(out, arrival{Kind: "agent", Name: a.Slug, State: m.agentState[i], Detail: strings.TrimSpace(a.Schedule + " " + command)})
	}
	for i, r := range m.tasks.rows {
		one := arrival{Kind: "task", Name: cmp.Or(r.Slug, r.Key), State: arrivalNew, Detail: r.Title}
		switch {
		case m.tasks.there[i] != "":
			one.State, one.Key = arrivalThere, m.tasks.there[i]
		case m.tasks.keys != nil && m.tasks.keys[i] != "":
			one.State, one.Key = arrivalMade, m.tasks.keys[i]
		}
		out = append(out, one)
	}
	return append(out, m.byHand...)
}

// tell shows the document's things, and says what comes next.
func (m *workspaceImport) tell() error {
	c, items := m.c, m.items()
	if c.flags.json {
		return c.document(arrived{items, append([]string{}, m.document.LeftOut...), append([]string{}, m.tasks.unassigned...)})
	}
	shown := table{head: []string{"KIND", "NAME", "STATE", "WHAT"}, flex: 3}
	count := map[string]int{}
	for _, one := range items {
		count[one.Kind+one.State]++
		count[one.State]++
		shown.rows = append(shown.rows, []string{one.Kind, plain(one.Name), one.State, plain(one.Detail)})
		shown.ids = append(shown.ids, cmp.Or(one.Key, one.Name))
	}
	if err := c.print(shown, "There is nothing in it."); err != nil {
		return err
	}
	for _, one := range m.document.LeftOut {
		c.hint("· Whoever exported it could not read %s.", plain(one))
	}
	for _, one := range m.tasks.unassigned {
		c.hint("· %s is assigned to nobody: who has it there isn't here.", plain(one))
	}
	if n := count[arrivalThere]; n > 0 {
		c.hint("%s there already and left alone.", numberOf(n, "is", "are"))
	}
	if n := count[arrivalByHand]; n > 0 {
		c.hint("%s to be set up by hand, because addresses are secrets: WHAT is the command.", numberOf(n, "is", "are"))
	}
	agents := func(state string) string { return numberOf(count["agent"+state], "agent", "agents") }
	tasks := func(state string) string { return numberOf(count["task"+state], "task", "tasks") }
	switch {
	case !m.create:
		c.hint("%s and %s can come. Nothing is made yet: --create makes them, the agents paused.", agents(arrivalNew), tasks(arrivalNew))
	case m.active:
		c.hint("Made %s and %s.", agents(arrivalMade), tasks(arrivalMade))
	default:
		c.hint("Made %s, paused, and %s. Go on with: %s", agents(arrivalMade), tasks(arrivalMade), c.inWorkspace("stint agent resume AGENT"))
	}
	if count["agent"+arrivalMade] > 0 {
		c.hint("Your worker runs none of these agents before you have accepted what it executes: %s", c.inWorkspace("stint worker trust AGENT"))
	}
	return nil
}

// because is why something was refused, in words.
func because(err error) string {
	var refused *api.Error
	if errors.As(err, &refused) {
		return refusedBecause(refused)
	}
	return api.Plain(err)
}
