package cmdline

import (
	"slices"
	"strings"
)

// Answer is whether an act is what a pattern names.
type Answer int

// The answers, in order of certainty.
const (
	No    Answer = iota
	Maybe        // it depends on what is only known when it runs
	Yes
)

// Is reports whether an act is what a pattern names, however it is written: with the program's
// folder, with options before the subcommand or in another order or with other names. In the
// pattern * stands for any text; the empty one names everything.
func (a Act) Is(pattern string) Answer {
	if !a.Loose {
		return a.is(pattern)
	}
	a.Text = ""
	words := strings.Fields(pattern)
	if len(words) > 1 && strings.Trim(words[0], "*") != "" && strings.Trim(words[1], "*") != "" && a.is(pattern) == Yes {
		return Yes
	}
	return No // else it would be a guess at a guess
}

func (a Act) is(pattern string) Answer {
	if pattern == "" || Glob(pattern, a.Text) {
		return Yes
	}
	best := No
	for _, words := range a.ways() {
		text := strings.Join(words, " ")
		if Glob(pattern, text) {
			return Yes
		}
		if best == No && meets(pattern, text) {
			best = Maybe
		}
		best = max(best, ordered(strings.Fields(pattern), words))
	}
	return best
}

// Verb is a program and one of the words that may be its subcommand.
type Verb struct{ Name, Sub string }

// Verbs are the programs and subcommands that an act may be; "" as a subcommand is none, and a
// word with … in it any.
func (a Act) Verbs() []Verb {
	var out []Verb
	for _, words := range a.ways() {
		v := Verb{Name: words[0]}
		if len(words) > 1 && !option(words[1]) {
			v.Sub = words[1]
		}
		if !slices.Contains(out, v) {
			out = append(out, v)
		}
	}
	return out
}

// Unknown reports whether a word of [Act.Words] can't be known as a whole.
func Unknown(word string) bool { return strings.ContainsAny(word, wildRunes) }

// maxStripped bounds the options that are looked past.
const maxStripped = 24

// ways are an act's words as they may as well be written: the program by its name alone, and
// without the options before a subcommand.
func (a Act) ways() [][]string {
	if len(a.Words) == 0 {
		return nil
	}
	rests := [][]string{a.Words[1:]}
	if there := slices.DeleteFunc(slices.Clone(a.Words[1:]), func(w string) bool { return w == string(inherited) }); len(there) < len(a.Words)-1 {
		rests = append(rests, there) // empty variables
	}
	var out [][]string
	for _, name := range names(a.Words[0]) {
		for _, rest := range rests {
			out = append(out, slices.Concat(name, rest))
			rest = slices.Concat(name[1:], rest)
			for i := 0; i < min(len(rest), maxStripped); i++ {
				if rest[i] == "--" || !option(rest[i]) && (i == 0 || !option(rest[i-1])) {
					break
				}
				out = append(out, slices.Concat(name[:1], rest[i+1:]))
			}
		}
	}
	return out
}

func option(word string) bool { return len(word) > 1 && (word[0] == '-' || word[0] == '+') }

// names are what a program may be called as: git for /usr/bin/git, GIT, =git and git-push.
func names(word string) [][]string {
	out := [][]string{{word}}
	add := func(name ...string) {
		if !slices.ContainsFunc(out, func(have []string) bool { return slices.Equal(have, name) }) {
			out = append(out, name)
		}
	}
	name := base(word)
	if name == "" {
		return out
	}
	add(name)
	name = strings.TrimSuffix(strings.ToLower(name), ".exe") // file systems that don't tell cases apart
	add(name)
	if sub, ok := strings.CutPrefix(name, "git-"); ok {
		add("git", sub)
	}
	return out
}

// same are other names of options, by program.
var same = map[string]map[string]string{
	"rm":  {"--recursive": "-r", "--force": "-f", "-R": "-r", "--dir": "-d"},
	"git": {"--force": "-f", "--delete": "-d", "--no-verify": "-n", "--all": "-a", "--hard": "--hard"},
	"cp":  {"--recursive": "-r", "-R": "-r", "--force": "-f"}, "chmod": {"--recursive": "-R"}, "chown": {"--recursive": "-R"}, "chgrp": {"--recursive": "-R"},
}

// ordered matches a pattern that names options with words that have them elsewhere.
func ordered(pattern, words []string) Answer {
	if !slices.ContainsFunc(pattern, option) || len(words) < 2 {
		return No
	}
	open := strings.HasSuffix(pattern[len(pattern)-1], "*")
	var wanted, operands []string
	for _, p := range pattern {
		switch {
		case option(p):
			wanted = append(wanted, p)
		case p != "*":
			operands = append(operands, p)
		}
	}
	options, rest, wild := split(words)
	answer := Yes
	for _, p := range wanted {
		if has(words[0], options, p) {
			continue
		}
		if !wild {
			return No
		}
		answer = Maybe
	}
	text, want := strings.Join(rest, " "), strings.Join(operands, " ")
	if open {
		want = strings.TrimSuffix(want, "*") + "*"
	}
	switch {
	case Glob(want, text):
		return answer
	case meets(want, text):
		return Maybe
	}
	return No
}

// split parts words into options and the rest, and reports whether any of them may be more
// options.
func split(words []string) (options, rest []string, wild bool) {
	for i, w := range words {
		switch {
		case w == "--":
			return options, append(rest, words[i+1:]...), wild
		case option(w):
			options = append(options, w)
			wild = wild || Unknown(w)
		default:
			rest = append(rest, w)
			wild = wild || i > 0 && (strings.HasPrefix(w, string(unknown)) || w == string(inherited))
		}
	}
	return options, rest, wild
}

// has reports whether a program's options hold one that a pattern names, alone, in a bunch of
// letters or by another name.
func has(program string, options []string, pattern string) bool {
	letters := ""
	for _, o := range options {
		other, known := same[program][o]
		if !known && strings.HasPrefix(o, "--") && len(o) > len("--x") { // as GNU programs and git take it
			for name, letter := range same[program] {
				if strings.HasPrefix(name, o) {
					other, known = letter, true
				}
			}
			if strings.HasPrefix(pattern, o) && same[program] != nil {
				return true
			}
		}
		if Glob(pattern, o) || known && Glob(pattern, other) {
			return true
		}
		if known {
			o = other
		}
		if len(o) > 1 && o[0] == '-' && o[1] != '-' {
			letters += o[1:]
			if program == "rm" {
				letters += strings.ToLower(o[1:])
			}
		}
	}
	want := strings.TrimSuffix(pattern, "*")
	if other, known := same[program][want]; known {
		want = other
	}
	if len(want) < 2 || want[1] == '-' {
		return false
	}
	for _, l := range want[1:] {
		if !strings.ContainsRune(letters, l) {
			return false
		}
	}
	return true
}

// Glob reports whether a text matches a pattern in which * stands for any text.
func Glob(pattern, text string) bool {
	if pattern == "" {
		return true
	}
	parts := strings.Split(pattern, "*")
	if len(parts) == 1 {
		return pattern == text
	}
	first, last := parts[0], parts[len(parts)-1]
	if len(text) < len(first)+len(last) || !strings.HasPrefix(text, first) || !strings.HasSuffix(text, last) {
		return false
	}
	text = text[len(first) : len(text)-len(last)]
	for _, part := range parts[1 : len(parts)-1] {
		i := strings.Index(text, part)
		if i < 0 {
			return false
		}
		text = text[i+len(part):]
	}
	return true
}

// meets reports whether a text with unknown parts may match a pattern: it follows all places
// of the pattern at which it may be.
func meets(pattern, text string) bool {
	if !strings.ContainsAny(text, wildRunes) {
		return false
	}
	for _, space := range []string{" " + string(unknown), string(unknown) + " "} { // it may be words, or none
		text = strings.ReplaceAll(text, space, string(unknown))
	}
	p := []rune(pattern)
	at := make([]bool, len(p)+1)
	at[0] = true
	for _, c := range text {
		next := make([]bool, len(p)+1)
		for i := range at {
			if !at[i] {
				continue
			}
			star := i < len(p) && p[i] == '*'
			switch {
			case c == unknown || c == inherited || c == globbed:
				for k := i; k <= len(p); k++ {
					next[k] = true
					if k < len(p) && p[k] != '*' && (c == inherited && p[k] == ' ' || c == globbed && k == i && p[k] == '-') {
						break
					}
				}
			case star:
				next[i] = true
				at[i+1] = true
			case i < len(p) && p[i] == c:
				next[i+1] = true
			}
			if star {
				at[i+1] = true
			}
		}
		at = next
	}
	for i := len(p); i > 0 && !at[len(p)] && p[i-1] == '*'; i-- {
		at[len(p)] = at[i-1]
	}
	return at[len(p)]
}
