package cmdline

import (
	"regexp"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// commandOptions are options, by program, whose values are commands: as a word of their own, after =
// or attached to a letter. A trailing * stands for the rest of a name.
var commandOptions = map[string][]string{
	"git":     {"-x", "--exec", "--extcmd", "--*-filter", "--upload-pack", "--receive-pack", "-u", "-O", "--open-files-in-pager"},
	"tar":     {"--to-command", "-I", "--use-compress-program", "--checkpoint-action", "--rsh-command", "-F", "--info-script", "--new-volume-script"},
	"rsync":   {"-e", "--rsh", "--rsync-path"},
	"ssh":     {"-o"},
	"scp":     {"-o", "-S"},
	"sftp":    {"-o", "-S"},
	"zip":     {"-TT", "--unzip-command"},
	"npm":     {"-c", "--call"},
	"entr":    {"-s"},
	"env":     {"-S", "--split-string"},
	"script":  {"-c", "--command"},
	"su":      {"-c", "--command", "--session-command"},
	"runuser": {"-c", "--command", "--session-command"},
	"capsh":   {"-c"},
	"compgen": {"-C"}, "complete": {"-C"}, "mapfile": {"-C"}, "readarray": {"-C"}, "fc": {"-e"}, "bind": {"-x"},
}

// bunches are programs among those whose one-letter options may stand in a bunch before it.
var bunches = []string{"env", "script", "su", "runuser", "tar", "rsync", "git", "entr"}

// told guesses at what a program's options have it start.
func (r *reader) told(name string, args []string) {
	if name == "gtar" || name == "bsdtar" {
		name = "tar"
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
			for _, prefix := range []string{"exec=", "ProxyCommand=", "ProxyCommand ", "LocalCommand=", "LocalCommand "} {
				value = strings.TrimPrefix(value, prefix)
			}
			r.guess(value)
		}
	}
}

// valueOf is the value that a word gives an option, "" if that is the next word; ok is false when it
// is another option.
func valueOf(word, option string, bunch bool) (value string, ok bool) {
	if name, value, has := strings.Cut(word, "="); has && strings.HasPrefix(option, "--") && Glob(option, name) {
		return value, true
	}
	switch {
	case Glob(option, word):
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
}

var (
	awkPipe  = regexp.MustCompile(`(^|[^|])\|&?\s*(["]|getline)`)
	openPipe = regexp.MustCompile(`(?s)open.*\|`)
)

// editors run a command after !, or after a word of their own.
var editors = map[string]*regexp.Regexp{
	"vi": bang, "vim": bang, "nvim": bang, "ex": bang, "view": bang, "ed": bang, "red": bang, "dc": bang,
	"gdb": regexp.MustCompile(`(^|\n)(shell|make|pipe|!)`), "sqlite3": regexp.MustCompile(`\.(sh|sy)`), "psql": regexp.MustCompile(`\\!|(?i)program\s*'`), "mysql": regexp.MustCompile(`\\!|(^|\n)system\s`),
	"emacs": regexp.MustCompile(`shell-command|call-process|start-process|make-process`), "gnuplot": regexp.MustCompile(`system|!|<`), "m4": regexp.MustCompile(`e?syscmd`),
}

var bang = regexp.MustCompile(`!\s*[\w./$({"']|system\(|jobstart|termopen`)

// sedRuns is a script of sed's that begins with its command for running others.
var sedRuns = regexp.MustCompile(`(^|[;{}\n])\s*([0-9$]+|/[^/]*/)?(,([0-9$]+|/[^/]*/))?\s*e(\s|$)`)

// commanded looks for commands in what a program that isn't an interpreter is told.
func (r *reader) commanded(name string, args []string, stdin source) {
	all := strings.Join(args, "\n")
	if in, known := r.input(stdin, 0); known {
		all += "\n" + in
	}
	if name == "sed" || name == "gsed" {
		if slices.ContainsFunc(args, sedRuns.MatchString) {
			r.unclear(fedUnknown)
		}
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
		case strings.HasPrefix(a, "--eval"), strings.HasPrefix(a, "SHELL=") && strings.Contains(a, " "), strings.HasPrefix(a, "-E"):
			r.unclear(fedUnknown)
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
