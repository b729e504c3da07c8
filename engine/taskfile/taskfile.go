// Package taskfile reads and writes files of tasks, as JSON and as CSV: what people set on each
// task, so that another workspace can make the same ones.
package taskfile

import (
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"stint/api"
	"stint/engine"
)

// Longest is how large a file may be that is imported, in bytes.
const Longest = 64 << 20

// Row is one task of an exported file: what people set on it, and the key by which other
// rows of the file name it.
type Row struct {
	Key string `json:"key"`
	api.TaskInput
	Comments []Comment `json:"comments,omitzero"` // the oldest first; a table has none

	Line int `json:"-"` // where in the file it begins
}

// Comment is what somebody wrote about a task.
type Comment struct {
	Author string   `json:"author"`
	At     api.Time `json:"at"`
	Text   string   `json:"text"`
}

// CommentOf is a comment as a file has it.
func CommentOf(c api.TaskComment) Comment {
	return Comment{Author: c.Author.Name, At: c.At, Text: c.Text}
}

// attribution is how the text of a comment begins that an import wrote.
var attribution = regexp.MustCompile(`^\*[^\n]+, \d{4}-\d\d-\d\d \d\d:\d\d UTC:\*\n\n`)

// Attributed is the text with whose it is and of when, for it will be written by whoever imports
// it. A text that says so already, and one that it makes too long, is as it was.
func (c Comment) Attributed() string {
	text := strings.TrimSpace(c.Text)
	if c.Author == "" || c.At.IsZero() || attribution.MatchString(text) {
		return text
	}
	author := strings.Join(strings.Fields(c.Author), " ")
	full := fmt.Sprintf("*%s, %s UTC:*\n\n%s", author, c.At.UTC().Format("2006-01-02 15:04"), text)
	if _, err := engine.CheckComment(full); err != nil {
		return text
	}
	return full
}

// BadRow is what is wrong with one row of a file.
type BadRow struct {
	Line int
	Why  string
}

// file is an exported file in JSON.
type file struct {
	Items []Row `json:"items"`
}

// RowOf is a task as a file has it. A lease isn't in it: it says who is at work now.
func RowOf(t api.Task) Row {
	r := Row{Key: t.Key, TaskInput: api.TaskInput{
		Slug: t.Slug, Title: t.Title, Description: t.Description, State: t.State, Priority: t.Priority,
		Labels: t.Labels, BlockedBy: []string{}, Links: t.Links,
	}}
	if t.Assignee != nil {
		if r.Assignee = t.Assignee.ID; t.Assignee.Type == api.PersonAgent {
			r.Assignee = t.Assignee.Name
		}
	}
	for _, b := range t.BlockedBy {
		r.BlockedBy = append(r.BlockedBy, b.Key)
	}
	return r
}

// WriteJSON writes the tasks of a file as one JSON object with “items”.
func WriteJSON(w io.Writer, rows []Row) error {
	if err := json.MarshalWrite(w, file{rows}, json.Deterministic(true), jsontext.WithIndent("  ")); err != nil {
		return err
	}
	_, err := io.WriteString(w, "\n")
	return err
}

// column is one column of the CSV format.
type column struct {
	name string
	get  func(Row) string
	set  func(*Row, string)
}

// allColumns are all of them, in the order in which they are written. Several labels or tasks
// in one cell are separated by spaces, several links by line breaks.
var allColumns = []column{
	{"key", func(r Row) string { return r.Key }, func(r *Row, v string) { r.Key = v }},
	{"slug", func(r Row) string { return r.Slug }, func(r *Row, v string) { r.Slug = v }},
	{"title", func(r Row) string { return r.Title }, func(r *Row, v string) { r.Title = v }},
	{"description", func(r Row) string { return r.Description }, func(r *Row, v string) { r.Description = v }},
	{"state", func(r Row) string { return string(r.State) }, func(r *Row, v string) { r.State = api.TaskState(v) }},
	{"priority", func(r Row) string { return string(r.Priority) }, func(r *Row, v string) { r.Priority = api.TaskPriority(v) }},
	{"labels", func(r Row) string { return strings.Join(r.Labels, " ") }, func(r *Row, v string) { r.Labels = strings.Fields(v) }},
	{"assignee", func(r Row) string { return r.Assignee }, func(r *Row, v string) { r.Assignee = v }},
	{"blockedBy", func(r Row) string { return strings.Join(r.BlockedBy, " ") }, func(r *Row, v string) { r.BlockedBy = strings.Fields(v) }},
	{"links", func(r Row) string { return r.Links.Lines() }, func(r *Row, v string) { r.Links = api.TaskLinksOf(strings.Split(v, "\n")) }},
}

// A spreadsheet takes a cell that begins with one of these for a formula.
const formulaStarts = "=+-@\t\r"

// asText marks a cell that a spreadsheet would execute with an apostrophe, as spreadsheets do.
func asText(cell string) string {
	if needsMark(cell) {
		return "'" + cell
	}
	return cell
}

// unmarked undoes asText.
func unmarked(cell string) string {
	if rest, ok := strings.CutPrefix(cell, "'"); ok && needsMark(rest) {
		return rest
	}
	return cell
}

// needsMark reports whether a cell begins like a formula, or like one that was marked already.
func needsMark(cell string) bool {
	text := strings.TrimLeft(cell, "'")
	return text != "" && strings.Contains(formulaStarts, text[:1])
}

// WriteCSV writes the tasks of a file as CSV (RFC 4180), the columns named in the first line. A cell
// that a spreadsheet would execute is marked with an apostrophe.
func WriteCSV(w io.Writer, rows []Row) error {
	out := csv.NewWriter(w)
	record := make([]string, len(allColumns))
	for i, column := range allColumns {
		record[i] = column.name
	}
	if err := out.Write(record); err != nil {
		return err
	}
	for _, r := range rows {
		for i, column := range allColumns {
			record[i] = asText(column.get(r))
		}
		if err := out.Write(record); err != nil {
			return err
		}
	}
	out.Flush()
	return out.Error()
}

// Read reads a file of either format, told apart by how it begins. bad are the rows that
// can't be read; err is what keeps all from being read.
func Read(text []byte) (rows []Row, bad []BadRow, err error) {
	text = bytes.TrimPrefix(text, []byte("\ufeff")) // spreadsheets begin their files with it
	switch start := bytes.TrimLeft(text, " \t\r\n"); {
	case len(start) == 0:
		return nil, nil, errors.New("it is empty")
	case start[0] == '{', start[0] == '[':
		return readJSON(text)
	}
	return readCSV(text)
}

func newRow(line int) Row { return Row{TaskInput: engine.DefaultTask(), Line: line} }

func readJSON(text []byte) (rows []Row, bad []BadRow, err error) {
	in := jsontext.NewDecoder(bytes.NewReader(text))
	lineAt := func(offset int64) int { return 1 + bytes.Count(text[:offset], []byte("\n")) }
	broken := func(err error) error {
		at := in.InputOffset()
		var syntax *jsontext.SyntacticError
		if errors.As(err, &syntax) {
			at, err = syntax.ByteOffset, syntax.Err
		}
		return fmt.Errorf("line %d is no JSON of tasks: %w", lineAt(min(at, int64(len(text)))), err)
	}
	if in.PeekKind() == '{' {
		if _, err := in.ReadToken(); err != nil {
			return nil, nil, broken(err)
		}
		if name, err := in.ReadToken(); err != nil {
			return nil, nil, broken(err)
		} else if name.Kind() != '"' || name.String() != "items" {
			return nil, nil, broken(errors.New(`the one member is "items"`))
		}
	}
	if start, err := in.ReadToken(); err != nil {
		return nil, nil, broken(err)
	} else if start.Kind() != '[' {
		return nil, nil, broken(errors.New("a list of tasks is missing"))
	}
	for in.PeekKind() != ']' {
		value, err := in.ReadValue()
		if err != nil {
			return nil, nil, broken(err)
		}
		r := newRow(lineAt(in.InputOffset() - int64(len(value))))
		if err := json.Unmarshal(value, &r, json.RejectUnknownMembers(true)); err != nil {
			bad = append(bad, BadRow{r.Line, misread(err)})
			continue
		}
		rows = append(rows, r)
	}
	for { // what is behind the list has to be JSON too, so that a file that was cut off is found
		_, err := in.ReadToken()
		if errors.Is(err, io.EOF) {
			return rows, bad, nil
		}
		if err != nil {
			return nil, nil, broken(err)
		}
	}
}

// misread puts into words why a value isn't a task.
func misread(err error) string {
	var meaning *json.SemanticError
	if !errors.As(err, &meaning) {
		return api.Plain(err)
	}
	name := meaning.JSONPointer.LastToken()
	switch {
	case errors.Is(err, json.ErrUnknownName):
		return fmt.Sprintf("there is no member %q; the members are %s, comments", name, columnNames())
	case name == "":
		return "it is no JSON object"
	}
	return name + ": is of the wrong type"
}

func readCSV(text []byte) (rows []Row, bad []BadRow, err error) {
	in := csv.NewReader(bytes.NewReader(text))
	in.FieldsPerRecord = -1
	head, err := in.Read()
	if err != nil {
		return nil, nil, err
	}
	columns := make([]column, len(head))
	for i, name := range head {
		at := slices.IndexFunc(allColumns, func(c column) bool { return strings.EqualFold(c.name, strings.TrimSpace(name)) })
		if at < 0 {
			return nil, nil, fmt.Errorf("line 1: there is no column %q; the columns are %s", name, columnNames())
		}
		columns[i] = allColumns[at]
	}
	if !slices.ContainsFunc(columns, func(c column) bool { return c.name == "title" }) {
		return nil, nil, fmt.Errorf("line 1: the column title is missing; the columns are %s", columnNames())
	}
	for {
		record, err := in.Read()
		if errors.Is(err, io.EOF) {
			return rows, bad, nil
		}
		if err != nil {
			return nil, nil, err // names its line itself
		}
		line, _ := in.FieldPos(0)
		if len(record) != len(columns) {
			bad = append(bad, BadRow{line, fmt.Sprintf("it has %d cells, the first line has %d", len(record), len(columns))})
			continue
		}
		r := newRow(line)
		for i, cell := range record {
			if cell != "" {
				columns[i].set(&r, unmarked(cell))
			}
		}
		rows = append(rows, r)
	}
}

func columnNames() string {
	names := make([]string, len(allColumns))
	for i, c := range allColumns {
		names[i] = c.name
	}
	return strings.Join(names, ", ")
}
