package main

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"

	shellquote "github.com/kballard/go-shellquote"
	"github.com/spf13/cobra"

	"stint/api"
	"stint/engine"
	"stint/engine/taskfile"
)

func (c *cli) taskImportCommand() *cobra.Command {
	var name string
	var unassigned bool
	cmd := &cobra.Command{
		Use: "import FILE|-", Short: "Make the tasks of a file", Args: cobra.ExactArgs(1),
		Long: "Makes the tasks of a JSON or CSV file as stint task export prints it. They get\n" +
			"new keys; the blockers that they name are first looked for in the file. A task\n" +
			"whose slug there is already is left alone, which is said. Nothing of a file in\n" +
			"which a row is wrong is imported. What was in progress becomes todo, because\n" +
			"nobody is at work on it here.\n\n" +
			"An import that breaks off says which tasks it has made, and the command that\n" +
			"makes the others. It works for a day, as long as the file is the same.",
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
			m := taskImport{c: c, client: client, what: what, file: args[0], rows: rows, bad: bad, name: name}
			return m.run(cmd.Context())
		},
	}
	cmd.Flags().StringVar(&name, "resume", "", "go on with the import of this `NAME`, which broke off")
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
	file   string
	rows   []taskfile.Row
	bad    []taskfile.BadRow
	name   string // of an import that broke off and goes on; "" = a new one

	named   map[string]int        // row by key and by slug
	there   map[int]string        // key of the task that has a row's slug already
	same    map[int]bool          // of these: its title and description are the row's, too, so it is what the row was made into
	titles  map[string][]api.Task // tasks without a slug, by their titles, that rows without one may be; nil = none may
	others  map[string]string     // key of the tasks outside the file, by what rows call them
	people  map[string]bool       // whether an assignee is here
	made    []api.Task
	skipped []string
	keys    []string // of the rows' tasks, as far as they are here

	agents     []string // slugs of agents that are made before the tasks
	lenient    bool     // a task whose assignee isn't here is nobody's, else it is wrong
	unassigned []string // these tasks
}

// imported is what an import answers: the tasks that were made, the slugs that were there, and, if
// it broke off, by what name it goes on.
type imported struct {
	Created []api.Task `json:"created"`
	Skipped []string   `json:"skipped"`
	Resume  string     `json:"resume,omitzero"`
}

func (m *taskImport) run(ctx context.Context) error {
	if err := m.check(ctx); err != nil {
		return explain(m.what, err, taskHelp)
	}
	order := m.order()
	if len(m.bad) > 0 {
		return m.refused()
	}
	resumed := m.name != ""
	m.name = cmp.Or(m.name, "import-"+rand.Text()[:10])
	line, err := m.create(ctx, order, resumed)
	if err != nil {
		return m.brokenOff(line, err)
	}
	return m.show("")
}

// brokenOff tells what was made of a file before the rest could not be, and how to go on. Each
// task was made whole or not at all.
func (m *taskImport) brokenOff(line int, err error) error {
	if shown := m.show(m.name); shown != nil {
		return shown
	}
	if !m.c.flags.json {
		m.c.hint("%d tasks of the file are not made yet.", len(m.rows)-len(m.made)-len(m.skipped))
		if api.Retriable(err) {
			m.c.hint("Whether that of line %d is made isn't known: the answer was lost.", line)
		}
	}
	next := fmt.Sprintf("stint task import %s --resume %s", shellquote.Join(m.file), m.name)
	if api.CodeOf(err) == api.CodeIdempotencyReuse {
		return usage(m.what, fmt.Sprintf("line %d is not what it was when this import began", line), "put what is missing into a file of its own")
	}
	return explain(fmt.Sprintf("%s, line %d", m.what, line), err, next)
}

func (m *taskImport) wrong(r taskfile.Row, format string, args ...any) {
	m.bad = append(m.bad, taskfile.BadRow{Line: r.Line, Why: fmt.Sprintf(format, args...)})
}

// check finds everything that is wrong with the rows, with the rules that the coordinator has.
func (m *taskImport) check(ctx context.Context) error {
	m.named, m.there, m.same, m.others, m.people = map[string]int{}, map[int]string{}, map[int]bool{}, map[string]string{}, map[string]bool{"": true, "me": true}
	for _, slug := range m.agents {
		m.people[slug] = true
	}
	for i := range m.rows {
		r := &m.rows[i]
		if err := engine.CheckTask(&r.TaskInput); err != nil {
			var refused *api.Error
			if !errors.As(err, &refused) {
				return err
			}
			m.wrong(*r, "%s", refusedBecause(refused))
		}
		for n, one := range r.Comments {
			if _, err := engine.CheckComment(one.Text); err != nil {
				m.wrong(*r, "comments[%d]: %s", n, because(err))
			}
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
			m.there[i], m.same[i] = t.Key, t.Title == r.Title && t.Description == r.Description
			return nil
		}
		if code := api.CodeOf(err); code != api.CodeNotFound {
			return err
		}
	} else if found := m.titles[r.Title]; len(found) > 0 {
		// The one that it was made into, if there is that; else one that is somebody's own.
		n := max(0, slices.IndexFunc(found, func(t api.Task) bool { return t.Description == r.Description }))
		m.there[i], m.same[i] = found[n].Key, found[n].Description == r.Description
		m.titles[r.Title] = slices.Delete(slices.Clone(found), n, n+1)
		return nil
	}
	here, err := m.isHere(ctx, r.Assignee)
	if err != nil {
		return err
	}
	if !here && m.lenient {
		m.rows[i].Assignee = ""
		m.unassigned = append(m.unassigned, cmp.Or(r.Slug, r.Key, r.Title))
	} else if !here {
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

// isHere reports whether tasks can be assigned to somebody.
func (m *taskImport) isHere(ctx context.Context, assignee string) (bool, error) {
	if here, asked := m.people[assignee]; asked {
		return here, nil
	}
	_, err := m.client.Tasks(ctx, api.TaskFilter{Assignee: assignee}, api.Page{Limit: 1})
	if err != nil && api.CodeOf(err) != api.CodeInvalid {
		return false, err
	}
	m.people[assignee] = err == nil && assignee != "none"
	return m.people[assignee], nil
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
	all := &api.Error{Code: api.CodeInvalid, Detail: "Rows are wrong, so nothing was imported."}
	for _, b := range m.bad {
		all.Fields = append(all.Fields, api.FieldError{Field: "line " + strconv.Itoa(b.Line), Detail: b.Why})
		if !m.c.flags.json {
			m.c.hint("line %d: %s", b.Line, plain(b.Why))
		}
	}
	return &problem{code: exitUsage, what: m.what, why: "rows are wrong, so nothing was imported", next: "stint task import --help", refused: all}
}

// create makes the tasks in their order. It returns the line at which it had to end.
func (m *taskImport) create(ctx context.Context, order []int, resumed bool) (line int, err error) {
	key := make([]string, len(m.rows))
	m.keys = key
	for _, i := range order {
		r := m.rows[i]
		if key[i] = m.there[i]; key[i] != "" && !resumed {
			m.skipped = append(m.skipped, cmp.Or(r.Slug, key[i]))
			if m.titles != nil && m.same[i] { // the import that made it may have broken off before they were written
				if err := m.comment(ctx, r, key[i], true); err != nil {
					return r.Line, err
				}
			}
			continue
		}
		t, err := makeTask(ctx, m.client, m.input(r, key), fmt.Sprintf("%s-%d", m.name, i+1))
		if key[i] != "" && api.CodeOf(err) == api.CodeSlugTaken { // it is none that this import made
			m.skipped = append(m.skipped, r.Slug)
			continue
		}
		if err != nil {
			return r.Line, err
		}
		key[i] = t.Key
		m.made = append(m.made, t)
		if err := m.comment(ctx, r, t.Key, resumed); err != nil {
			return r.Line, err
		}
	}
	return 0, nil
}

// comment writes a row's comments on its task. Where some may be there already, only the others.
func (m *taskImport) comment(ctx context.Context, r taskfile.Row, key string, some bool) error {
	there := map[string]int{} // two may have the same text
	if some && len(r.Comments) > 0 {
		found, err := commentsOf(ctx, m.client, key)
		if err != nil {
			return err
		}
		for _, one := range found {
			there[one.Text]++
		}
	}
	for _, one := range r.Comments {
		text := one.Attributed()
		if as := strings.TrimSpace(one.Text); there[text] > 0 {
			there[text]--
			continue
		} else if there[as] > 0 {
			there[as]--
			continue
		}
		if _, err := m.client.CommentTask(ctx, key, api.TaskCommentInput{Text: text}); err != nil {
			return err
		}
	}
	return nil
}

// input is the task of a row; key has those of the rows that were made before it.
func (m *taskImport) input(r taskfile.Row, key []string) api.TaskInput {
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
	return in
}

func (m *taskImport) show(resume string) error {
	if m.c.flags.json {
		return m.c.document(imported{Created: append([]api.Task{}, m.made...), Skipped: append([]string{}, m.skipped...), Resume: resume})
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
