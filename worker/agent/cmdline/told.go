package cmdline

import (
	"regexp"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// bunches are programs among those whose one-letter options may stand in a bunch before it.
var bunches = []string{"env", "script", "su", "runuser", "tar", "rsync", "git", "entr"}

// told guesses at what a program's options have it start.
func (r *reader) told(name string, args []string) {
	if other, ok := likewise[name]; ok {
		name = other
	}
	for _, option := range commandOptions[name] {
		for i, a := range args {
			value, ok := valueOf(a, option, slices.Contains(bunches, name))
			if ok && value == "" && i+1 < len(args) {
				value = args[i+1]
			}
			if !ok || value == "" {
				continue
			}
			r.optional(name, value)
		}
	}
}

// optional guesses at the value of an option that is a command, or has one: KEY=COMMAND, as of apt's
// -o and ssh's, or KEY COMMAND.
func (r *reader) optional(name, value string) {
	if name == "gcc" {
		value = strings.ReplaceAll(value, ",", " ")
	}
	r.guess(strings.TrimLeft(value, "!| "))
	if key := strings.ToLower(value); name == "ssh" && (strings.HasPrefix(key, "include") || strings.HasPrefix(key, "match")) {
		r.unclear(fedUnknown)
	}
	first, rest, ok := strings.Cut(value, "=")
	if !ok || strings.Contains(first, " ") {
		if first, rest, ok = strings.Cut(value, " "); !ok || !strings.HasSuffix(strings.ToLower(first), "command") {
			_, rest, ok = strings.Cut(value, ":")
		}
	}
	if !ok {
		return
	}
	r.guess(strings.TrimLeft(rest, "!| "))
	if open := strings.IndexByte(rest, '('); open > 0 { // fzf's execute(…)
		r.guess(strings.TrimSuffix(rest[open+1:], ")"))
	}
}

// valueOf is the value that a word gives an option, "" if that is the next word; ok is false when it
// is another option.
func valueOf(word, option string, bunch bool) (value string, ok bool) {
	long := len(option) > 2
	if name, value, has := strings.Cut(word, "="); has && long && (Glob(option, name) || abbreviates(name, option)) {
		return value, true
	}
	switch {
	case Glob(option, word), abbreviates(word, option):
		return "", true
	case len(option) != 2 || len(word) < 2 || word[0] != '-' || word[1] == '-':
		return "", false
	case strings.HasPrefix(word, option):
		return word[2:], true
	}
	at := strings.IndexByte(word, option[1])
	if !bunch || at < 0 || strings.Trim(word[1:at], "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0") != "" {
		return "", false
	}
	return word[at+1:], true
}

// abbreviates reports whether a word is the beginning of a long option, as GNU programs take it.
func abbreviates(word, option string) bool {
	return len(word) > len("--ab") && strings.HasPrefix(option, "--") && strings.HasPrefix(option, word)
}

// expanding are builtins that expand arguments which are quoted: the subscripts of arrays.
var expanding = []string{"let", "test", "[", "printf", "read", "unset", "declare", "typeset", "local", "export", "readonly", "mapfile", "readarray", "wait", "getopts"}

// end closes a here-document, in which no quotes count.
const end = "END_OF_WHAT_IS_EXPANDED"

// expanded guesses at commands in texts that the shell expands although they are quoted.
func (r *reader) expanded(texts ...string) {
	for _, text := range texts {
		if strings.Contains(text, "$(") || strings.Contains(text, "`") {
			r.guess("cat <<" + end + "\n" + text + "\n" + end)
		}
	}
}

// conditions are the operands of [[ ]].
func (r *reader) conditions(node *syntax.TestClause) {
	syntax.Walk(node, func(node syntax.Node) bool {
		if word, ok := node.(*syntax.Word); ok {
			r.expanded(r.vars.texts(word)...)
		}
		return true
	})
}

// exported guesses at a variable that a program gets, NAME=VALUE.
func (r *reader) exported(word string) {
	name, value, ok := strings.Cut(word, "=")
	switch {
	case !ok:
	case strings.HasPrefix(name, "BASH_FUNC_"):
		r.guess("f" + value)
	case name == "BASH_ENV" || name == "ENV":
		r.file([]string{value})
	case startsCommands(name):
		r.guess(strings.TrimLeft(value, "|- ")) // as in LESSOPEN
	case (name == "VIMINIT" || name == "EXINIT" || name == "LESS") && bang.MatchString(value):
		r.unclear(fedUnknown)
	case name == "TAR_OPTIONS":
		r.told("tar", strings.Fields(value))
	case name == "MAKEFLAGS" && strings.Contains(value, "eval"), name == "MAKEFILES" && value != "":
		r.unclear(fedUnknown)
	}
}

// signs are what gives a program away that starts others, in code for an interpreter.
var signs = []string{
	"system(", "system (", `system "`, "system '", "system*", "exec", "spawn", "popen", "subprocess", "child_process", "`", "qx", "%x(", "%x{", "%x[", "do shell script", `shell "`, "shell '",
	"|getline", "| getline", "print |", "passthru", "os:cmd", "Deno.Command", "proc_open",
}

// codeSigns are further ones of some languages: pipes of awk, and files of perl and ruby that are
// programs.
var codeSigns = map[string]*regexp.Regexp{
	"awk": awkPipe, "gawk": awkPipe, "mawk": awkPipe, "nawk": awkPipe, "perl": openPipe, "ruby": openPipe,
	"ghc": haskell, "ghci": haskell, "scala": regexp.MustCompile(`\.!|sys\.process`), "rake": regexp.MustCompile(`\bsh\b`), "mongo": shellOfMongo, "mongosh": shellOfMongo,
	"latexmk": regexp.MustCompile(`-\w*(la)?tex=`), "sbcl": regexp.MustCompile(`run-program`),
}

var (
	awkPipe  = regexp.MustCompile(`(^|[^|])\|&?\s*(["]|getline)`)
	openPipe = regexp.MustCompile(`(?s)open.*\|`)

	haskell      = regexp.MustCompile(`:!|System\.Process`)
	shellOfMongo = regexp.MustCompile(`\brun\w*\(`)
)

// commanded looks for commands in what a program that isn't an interpreter is told.
func (r *reader) commanded(name string, args []string, stdin source) {
	all := strings.Join(args, "\n")
	if in, known := r.input(stdin, 0); known {
		all += "\n" + in
	}
	if name == "sed" || name == "gsed" {
		r.edited(args, stdin)
		return
	}
	if sign := editors[name]; sign != nil && sign.MatchString(all) {
		r.unclear(fedUnknown)
	}
}

// lets are the operands of let.
func (r *reader) lets(node *syntax.LetClause) {
	syntax.Walk(node, func(node syntax.Node) bool {
		if word, ok := node.(*syntax.Word); ok {
			r.expanded(r.vars.texts(word)...)
		}
		return true
	})
}

// makes notes the files that make reads its commands from.
func (r *reader) makes(args []string, stdin source) {
	for i, a := range args {
		switch {
		case strings.HasPrefix(a, "--eval"), strings.HasPrefix(a, "SHELL=") && !slices.Contains(shells, base(strings.TrimPrefix(a, "SHELL="))), strings.HasPrefix(a, "-E"):
			r.unclear(fedUnknown)
		case !option(a) && strings.Contains(a, "=") && strings.Contains(a, " "):
			_, value, _ := strings.Cut(a, "=")
			r.guess(value)
		case strings.HasPrefix(a, "--file="), strings.HasPrefix(a, "--makefile="):
			_, name, _ := strings.Cut(a, "=")
			r.file([]string{name})
		case (a == "-f" || a == "--file" || a == "--makefile") && i+1 < len(args) && args[i+1] == "-", a == "-f-":
			if stdin.given || stdin.known {
				r.unclear(fedUnknown)
			}
		case (a == "-f" || a == "--file" || a == "--makefile") && i+1 < len(args):
			r.file(args[i+1:])
		}
	}
	for _, name := range []string{"Makefile", "makefile", "GNUmakefile"} {
		r.ran[name] = true
	}
}
