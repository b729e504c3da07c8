package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"stint/api"
	"stint/engine"
	"stint/engine/taskfile"
)

func (c *cli) taskExportCommand() *cobra.Command {
	var format string
	cmd := &cobra.Command{
		Use: "export", Short: "Print all tasks as JSON or CSV", Args: cobra.NoArgs,
		Long: "Prints all tasks, the oldest first, in the form that stint task import reads.\n" +
			"Comments and leases aren't in it.",
		Example: "stint task export > tasks.json\nstint task export --format csv > tasks.csv",
		RunE: func(cmd *cobra.Command, _ []string) error {
			what := "cannot export the tasks"
			if c.flags.json && !cmd.Flags().Changed("format") {
				format = "json"
			}
			write, known := map[string]func(io.Writer, []taskfile.Row) error{"json": taskfile.WriteJSON, "csv": taskfile.WriteCSV}[format]
			if !known || c.flags.json && format != "json" {
				return usage(what, "--format is json or csv", "stint task export --format csv")
			}
			found, err := call(cmd.Context(), c, what, taskHelp, func(client *api.Client, ctx context.Context) (api.List[api.Task], error) {
				return pages(math.MaxInt, "", func(p api.Page) (api.List[api.Task], error) { return client.Tasks(ctx, api.TaskFilter{}, p) })
			})
			if err != nil {
				return err
			}
			rows := make([]taskfile.Row, 0, len(found.Items))
			for _, t := range slices.Backward(found.Items) {
				if c.flags.quiet {
					if err := c.say("%s", t.Key); err != nil {
						return err
					}
				}
				rows = append(rows, taskfile.RowOf(t))
			}
			if c.flags.quiet {
				return nil
			}
			return write(c.out, rows)
		},
	}
	cmd.Flags().StringVar(&format, "format", "json", "json or csv")
	completeWords(cmd, "format", []string{"json", "csv"})
	return cmd
}

func (c *cli) taskImportCommand() *cobra.Command {
	var unassigned bool
	cmd := &cobra.Command{
		Use: "import FILE|-", Short: "Make the tasks of a file", Args: cobra.ExactArgs(1),
		Long: "Makes the tasks of a JSON or CSV file as stint task export prints it. They get\n" +
			"new keys; the blockers that they name are first looked for in the file. A task\n" +
			"whose slug there is already is left alone, which is said. Nothing of a file in\n" +
			"which a row is wrong is imported. What was in progress becomes todo, because\n" +
			"nobody is at work on it here.",
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return []string{"json", "csv"}, cobra.ShellCompDirectiveFilterFileExt
		},
		Example: "stint task import tasks.json\nstint --workspace lab task export | stint task import - --without-assignees",
		RunE: func(cmd *cobra.Command, args []string) error {
			what := "cannot import the tasks of " + args[0]
			text, err := c.fileText(args[0])
			if err != nil {
				return usage(what, api.Plain(err), "stint task import --help")
			}
			rows, bad, err := taskfile.Read(text)
			if err != nil {
				return usage(what, api.Plain(err), "stint task export shows what a file looks like")
			}
			client, err := c.connect(what)
			if err != nil {
				return err
			}
			if unassigned {
				for i := range rows {
					rows[i].Assignee = ""
				}
			}
			m := taskImport{c: c, client: client, what: what, rows: rows, bad: bad}
			return m.run(cmd.Context())
		},
	}
	cmd.Flags().BoolVar(&unassigned, "without-assignees", false, "assign no task to anybody, for a workspace with other people")
	return cmd
}

// fileText reads a file, or standard input for -.
func (c *cli) fileText(name string) ([]byte, error) {
	in := c.in
	if name != "-" {
		f, err := os.Open(name)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		in = f
	}
	text, err := io.ReadAll(io.LimitReader(in, taskfile.Longest+1))
	if err == nil && len(text) > taskfile.Longest {
		err = errors.New("it is over 64 MiB: import it in parts")
	}
	return text, err
}

// taskImport makes the tasks of a file: first everything is checked, then they are made, those
// that others wait for first.
type taskImport struct {
	c      *cli
	client *api.Client
	what   string
	rows   []taskfile.Row
	bad    []taskfile.BadRow

	named   map[string]int    // row by key and by slug
	there   map[int]string    // key of the task that has a row's slug already
	others  map[string]string // key of the tasks outside the file, by what rows call them
	people  map[string]bool   // whether an assignee is here
	made    []api.Task
	skipped []string
}

// imported is what an import answers: the tasks that were made, and the slugs that were there.
type imported struct {
	Created []api.Task `json:"created"`
	Skipped []string   `json:"skipped"`
}

func (m *taskImport) run(ctx context.Context) error {
	if err := m.check(ctx); err != nil {
		return explain(m.what, err, taskHelp)
	}
	order := m.order()
	if len(m.bad) > 0 {
		return m.refused()
	}
	if err := m.create(ctx, order); err != nil {
		if len(m.made) > 0 {
			m.c.hint("%d of %d were made, %s to %s.", len(m.made), len(m.rows), m.made[0].Key, m.made[len(m.made)-1].Key)
		}
		return explain(m.what, err, taskHelp)
	}
	return m.show()
}

func (m *taskImport) wrong(r taskfile.Row, format string, args ...any) {
	m.bad = append(m.bad, taskfile.BadRow{Line: r.Line, Why: fmt.Sprintf(format, args...)})
}

// check finds everything that is wrong with the rows, with the rules that the coordinator has.
func (m *taskImport) check(ctx context.Context) error {
	m.named, m.there, m.others, m.people = map[string]int{}, map[int]string{}, map[string]string{}, map[string]bool{"": true, "me": true}
	for i := range m.rows {
		r := &m.rows[i]
		if err := engine.CheckTask(&r.TaskInput); err != nil {
			var refused *api.Error
			if !errors.As(err, &refused) {
				return err
			}
			m.wrong(*r, "%s", refusedBecause(refused))
		}
		for _, name := range []string{strings.ToLower(r.Key), r.Slug} {
			if first, taken := m.named[name]; taken && first != i {
				m.wrong(*r, "%q is the name of the task on line %d too", name, m.rows[first].Line)
			} else if name != "" {
				m.named[name] = i
			}
		}
	}
	for i, r := range m.rows {
		if err := m.lookUp(ctx, i, r); err != nil {
			return err
		}
	}
	return nil
}

// lookUp asks the coordinator for what a row names.
func (m *taskImport) lookUp(ctx context.Context, i int, r taskfile.Row) error {
	if r.Slug != "" {
		t, err := m.client.Task(ctx, r.Slug)
		if err == nil {
			m.there[i] = t.Key
			return nil
		}
		if code := api.CodeOf(err); code != api.CodeNotFound {
			return err
		}
	}
	here, asked := m.people[r.Assignee]
	if !asked {
		_, err := m.client.Tasks(ctx, api.TaskFilter{Assignee: r.Assignee}, api.Page{Limit: 1})
		if err != nil && api.CodeOf(err) != api.CodeInvalid {
			return err
		}
		here = err == nil && r.Assignee != "none"
		m.people[r.Assignee] = here
	}
	if !here {
		m.wrong(r, "assignee: %q is no member and no agent of this workspace; --without-assignees leaves them all out", r.Assignee)
	}
	for _, ref := range r.BlockedBy {
		name := strings.ToLower(ref)
		if _, inFile := m.named[name]; inFile || m.others[name] != "" {
			continue
		}
		t, err := m.client.Task(ctx, ref)
		switch {
		case api.CodeOf(err) == api.CodeNotFound:
			m.wrong(r, "blockedBy: %q is no task of the file and none of this workspace", ref)
		case err != nil:
			return err
		}
		m.others[name] = t.Key
	}
	return nil
}

// order sorts the rows so that each comes after those that it waits for. A circle is wrong.
func (m *taskImport) order() []int {
	const open, done = 1, 2
	state := make([]int, len(m.rows))
	var out []int
	var visit func(i int) bool
	visit = func(i int) bool {
		if state[i] != 0 {
			return state[i] == done
		}
		state[i] = open
		for _, ref := range m.rows[i].BlockedBy {
			if j, ok := m.named[strings.ToLower(ref)]; ok && !visit(j) {
				m.wrong(m.rows[i], "blockedBy: %q waits for this task itself: that would be a circle", ref)
			}
		}
		state[i] = done
		out = append(out, i)
		return true
	}
	for i := range m.rows {
		visit(i)
	}
	return out
}

// refused reports all that is wrong; nothing was imported.
func (m *taskImport) refused() error {
	slices.SortStableFunc(m.bad, func(a, b taskfile.BadRow) int { return cmp.Compare(a.Line, b.Line) })
	for _, b := range m.bad {
		m.c.hint("line %d: %s", b.Line, plain(b.Why))
	}
	return usage(m.what, "rows are wrong, so nothing was imported", "stint task import --help")
}

func (m *taskImport) create(ctx context.Context, order []int) error {
	key := make([]string, len(m.rows))
	for _, i := range order {
		r := m.rows[i]
		if key[i] = m.there[i]; key[i] != "" {
			m.skipped = append(m.skipped, r.Slug)
			continue
		}
		in := r.TaskInput
		if in.State == api.TaskInProgress {
			in.State = api.TaskTodo
		}
		in.BlockedBy = []string{}
		for _, ref := range r.BlockedBy {
			name := strings.ToLower(ref)
			to := m.others[name]
			if j, inFile := m.named[name]; inFile {
				to = key[j]
			}
			in.BlockedBy = append(in.BlockedBy, to)
		}
		t, err := m.client.CreateTask(ctx, in)
		if err != nil {
			return explain(fmt.Sprintf("%s, line %d", m.what, r.Line), err, taskHelp)
		}
		key[i] = t.Key
		m.made = append(m.made, t)
	}
	return nil
}

func (m *taskImport) show() error {
	if m.c.flags.json {
		return m.c.document(imported{Created: append([]api.Task{}, m.made...), Skipped: append([]string{}, m.skipped...)})
	}
	for _, t := range m.made {
		if err := m.c.say("%s", t.Key); err != nil {
			return err
		}
	}
	for _, slug := range m.skipped {
		m.c.hint("%s was there already and is left alone.", slug)
	}
	m.c.hint("%d made, %d left alone.", len(m.made), len(m.skipped))
	return nil
}
