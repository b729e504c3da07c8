package main

import (
	"io"
	"strings"

	"github.com/charmbracelet/x/ansi"
)

// table is a list for people: aligned under a head on a terminal, else
// tab-separated lines without a head that cut(1) and awk(1) read.
type table struct {
	head []string
	rows [][]string
	ids  []string // what other commands call each row, if that isn't its first cell
	flex int      // the column that gives way when the terminal is narrow
}

const (
	columnGap  = "  "
	narrowest  = 12 // a flexible column is not cut below this
	tabulators = "\t"
)

// print writes the table, or on a terminal the sentence for an empty one; with --quiet only
// the ids.
func (c *cli) print(t table, empty string) error {
	if c.flags.quiet {
		return c.printIDs(t)
	}
	if !c.tty {
		return t.separated(c.out)
	}
	if len(t.rows) == 0 {
		c.hint("%s", empty)
		return nil
	}
	return t.aligned(c.out, c.outLook, width(c.out))
}

func (c *cli) printIDs(t table) error {
	ids := t.ids
	if ids == nil {
		for _, row := range t.rows {
			ids = append(ids, row[0])
		}
	}
	for _, id := range ids {
		if err := c.say("%s", plain(id)); err != nil {
			return err
		}
	}
	return nil
}

func (t table) separated(w io.Writer) error {
	var b strings.Builder
	for _, row := range t.rows {
		for i, cell := range row {
			if i > 0 {
				b.WriteString(tabulators)
			}
			b.WriteString(plain(cell))
		}
		b.WriteByte('\n')
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func (t table) aligned(w io.Writer, s styles, cols int) error {
	widths := make([]int, len(t.head))
	total := len(columnGap) * (len(t.head) - 1)
	for i, head := range t.head {
		widths[i] = ansi.StringWidth(head)
		for _, row := range t.rows {
			widths[i] = max(widths[i], ansi.StringWidth(tidy(row[i])))
		}
		total += widths[i]
	}
	if over := total - cols; over > 0 {
		widths[t.flex] = max(narrowest, widths[t.flex]-over)
	}
	var b strings.Builder
	for i, head := range t.head {
		t.cell(&b, s.quiet(head), widths[i], i)
	}
	for _, row := range t.rows {
		for i, text := range row {
			t.cell(&b, text, widths[i], i)
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func (t table) cell(b *strings.Builder, text string, width, column int) {
	text = ansi.Truncate(tidy(text), width, "…")
	b.WriteString(text)
	if column == len(t.head)-1 {
		b.WriteByte('\n')
		return
	}
	b.WriteString(strings.Repeat(" ", max(0, width-ansi.StringWidth(text))))
	b.WriteString(columnGap)
}

// facts is what is known about one thing: a name and a value a line, the empty ones left out.
type facts struct {
	names, values []string
}

func (f *facts) add(name, value string) {
	if value != "" {
		f.names, f.values = append(f.names, name), append(f.values, value)
	}
}

// print writes the facts: names aligned on a terminal, tab-separated elsewhere.
func (f *facts) print(c *cli) error {
	longest := 0
	for _, n := range f.names {
		longest = max(longest, len(n))
	}
	var b strings.Builder
	for i, name := range f.names {
		if !c.tty {
			b.WriteString(name + "\t" + plain(f.values[i]) + "\n")
			continue
		}
		b.WriteString(c.outLook.quiet(name) + strings.Repeat(" ", longest-len(name)) + columnGap + tidy(f.values[i]) + "\n")
	}
	_, err := io.WriteString(c.out, b.String())
	return err
}
