package workflow

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// Executing are the parts of a file that decide what is executed and where: codex.command, the
// hooks and the workspace. Fields by name, values as written. It is what an owner approves,
// and can be kept to continue with when the file changes. contract 10.2
type Executing map[string]string

// Executing returns the executing parts that the file sets; empty when it sets none
// and so needs no approval.
func (w Workflow) Executing() Executing {
	e := Executing{}
	for name, text := range w.said {
		if supported[name].executing {
			e[name] = text
		}
	}
	return e
}

// Digest names the exact content. Layout, comments and the order of the file's lines
// don't change it; any value does.
func (e Executing) Digest() string {
	h := sha256.New()
	for _, name := range slices.Sorted(maps.Keys(e)) {
		// Lengths keep two different contents from having the same encoding.
		fmt.Fprintf(h, "%d:%s=%d:%s\n", len(name), name, len(e[name]), e[name])
	}
	return "sha256:" + hex.EncodeToString(h.Sum(nil))
}

// String shows all of it, a field a line, scripts indented below theirs, so that a person can
// judge it. Control characters are shown as escapes.
func (e Executing) String() string {
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(e)) {
		lines := strings.Split(strings.TrimRight(e[name], "\n"), "\n")
		if len(lines) == 1 {
			fmt.Fprintf(&b, "%s: %s\n", name, Visible(lines[0]))
			continue
		}
		fmt.Fprintf(&b, "%s:\n", name)
		for _, line := range lines {
			fmt.Fprintf(&b, "    %s\n", Visible(line))
		}
	}
	return b.String()
}

// Visible shows a line with nothing in it that could hide the rest from a reader.
func Visible(line string) string {
	var b strings.Builder
	for _, r := range line {
		if r == '\t' || strconv.IsPrint(r) {
			b.WriteRune(r)
			continue
		}
		quoted := strconv.QuoteRuneToASCII(r)
		b.WriteString(quoted[1 : len(quoted)-1])
	}
	return b.String()
}

// With returns the workflow with other executing parts: those that the owner approved last,
// while the file says others. Everything else stays as the file says.
//
// The error is a *Error.
func (w Workflow) With(e Executing) (Workflow, error) {
	said := fields{}
	for name, text := range w.said {
		if !supported[name].executing {
			said[name] = text
		}
	}
	for name, text := range e {
		if supported[name].executing {
			said[name] = text
		}
	}
	config, problems := said.config(w.origin)
	if len(problems) > 0 {
		return Workflow{}, &Error{Code: Invalid, Path: w.Path, Problems: problems}
	}
	w.said, w.Config = said, config
	return w, nil
}
