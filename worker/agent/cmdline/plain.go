package cmdline

import (
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// Fixed reports whether a line means the same whenever it runs, as far as a reader can see:
// what is approved once may be approved from now on.
func Fixed(text string) bool {
	line := Read(text)
	return line.Unclear == "" && len(line.Acts) > 0 && !slices.ContainsFunc(line.Acts, func(a Act) bool {
		return slices.ContainsFunc(a.Words, func(w string) bool { return strings.ContainsRune(w, unknown) })
	})
}

// single are the words of a line that is one command, with nothing before, after or in it.
func single(text string) []string {
	line, written := Read(text), Write(text)
	if line.Unclear != "" || len(line.Acts) != 1 || len(line.Writes) > 0 || written.Opaque || len(written.Commands) != 1 {
		return nil
	}
	c := written.Commands[0]
	file, err := syntax.NewParser(syntax.Variant(syntax.LangBash)).Parse(strings.NewReader(text), "")
	if err != nil || printedNode(file) != c.Text { // a redirection, & or ! beside it
		return nil
	}
	if !c.Literal || len(c.Inner) > 0 || slices.ContainsFunc(line.Acts[0].Words, Unknown) {
		return nil
	}
	return line.Acts[0].Words
}

// Pattern is what a line is an example of: its words with * in the place of the last one, for
// one word that is no option. It is "" where that would say too much: for a program that takes
// code or other commands, or with nothing but the program named.
func Pattern(text string) string {
	words := single(text)
	if len(words) < 3 || option(words[1]) || option(words[len(words)-1]) {
		return ""
	}
	name := base(words[0])
	if slices.Contains(interpreters, strings.TrimRight(name, "0123456789.")) || slices.Contains(shells, name) || slices.Contains(foreign, name) {
		return ""
	}
	if slices.ContainsFunc(words, func(w string) bool { return w == "*" || Quote([]string{w}) != w }) {
		return ""
	}
	return strings.Join(words[:len(words)-1], " ") + " *"
}

// Fits reports whether a line is one command that a pattern of [Pattern] stands for. A line
// with more than that command in it never is.
func Fits(pattern, text string) bool {
	want, words := strings.Fields(pattern), single(text)
	if len(want) < 2 || len(want) != len(words) || want[len(want)-1] != "*" {
		return false
	}
	last := words[len(words)-1]
	return slices.Equal(want[:len(want)-1], words[:len(words)-1]) && last != "" && !option(last) && !strings.ContainsAny(last, " \t\n")
}
