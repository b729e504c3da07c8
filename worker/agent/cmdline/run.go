package cmdline

import (
	"path"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// start is a program that is started.
type start struct {
	words []string
	text  string // as it is written
	stdin source
	sure  bool
	set   []*syntax.Assign // what is set for it alone
	depth int
}

// of is what a program starts in turn.
func (s start) of(words []string, sure bool) start {
	s.words, s.sure, s.depth = words, s.sure && sure, s.depth+1
	return s
}

// run notes an act, and what it starts in turn where that can be seen.
func (r *reader) run(s start) {
	if len(s.words) == 0 || s.words[0] == "" && len(s.words) == 1 {
		return
	}
	if s.depth > maxDepth || len(r.out.Acts)-r.out.loose >= maxActs {
		r.unclear(tooDeep)
		return
	}
	if !s.sure && strings.ContainsAny(s.words[0], " \t\n") {
		return // an argument, no program
	}
	if r.loose {
		if r.out.loose++; r.out.loose > maxLoose {
			return
		}
	}
	r.out.Acts = append(r.out.Acts, Act{Text: s.text, Words: s.words, Sure: s.sure, Loose: r.loose})
	name := base(s.words[0])
	if name == "" {
		if s.sure || strings.ContainsRune(s.words[0], unknown) {
			r.unclear(madeUp)
		}
		return
	}
	if strings.Contains(s.words[0], "/") {
		r.ran[name] = true
	}
	r.starts(name, s)
}

// starts follows what a program starts.
func (r *reader) starts(name string, s start) {
	args := s.words[1:]
	name = strings.TrimSuffix(name, ".exe")
	r.told(name, args)
	if slices.Contains(expanding, name) {
		r.expanded(args...)
	}
	switch {
	case slices.Contains(shells, name):
		r.shell(args, s.stdin)
	case name == "eval":
		r.eval(strings.Join(args, " "))
	case name == "source" || name == ".":
		r.file(args)
	case name == "trap":
		r.texts(args, 1)
	case name == "alias":
		for _, a := range args {
			if _, value, ok := strings.Cut(a, "="); ok {
				r.eval(value + " " + string(unknown))
			}
		}
	case name == "find" || name == "bfs":
		r.found(s)
	case name == "start-stop-daemon":
		r.daemon(s)
	case name == "socat":
		r.piped(args)
	case (name == "gh" || name == "glab") && len(args) > 1 && args[0] == "alias":
		r.aliased(args[1:])
	case name == "run-parts":
		r.parts(args)
	case name == "enable" && slices.Contains(args, "-f"):
		r.unclear(fedUnknown)
	case name == "git":
		r.git(s)
	case slices.Contains([]string{"make", "gmake", "bmake"}, name):
		r.makes(args, s.stdin)
	case name == "crontab" && !slices.Contains(args, "-l"):
		r.unclear(fedUnknown)
	case name == "jobs" && len(args) > 1 && args[0] == "-x":
		r.run(s.of(args[1:], true))
	case name == "sed" || name == "gsed" || editors[name] != nil:
		r.commanded(name, args, s.stdin)
		if _, ok := wrappers[name]; ok { // a debugger
			r.wrapped(name, s)
		}
	case strings.HasPrefix(name, "ld-linux") || strings.HasPrefix(name, "ld-musl") || name == "ld.so":
		r.run(s.of(slices.Clone(args), true))
	case name == "xargs" || name == "parallel" || name == "env_parallel" || name == "sem" || name == "rush":
		r.fed(s)
	case slices.Contains(copying, name):
		if len(args) > 0 {
			r.make(args...)
		}
	case name == "exec" && len(args) == 0 && s.stdin.given:
		r.unclear(fedUnknown)
	case name == "hash" && slices.Contains(args, "-p"), slices.Contains(foreign, name), (name == "at" || name == "batch") && !s.stdin.given:
		if len(args) > 0 {
			r.unclear(fedUnknown)
		}
	case name == "at" || name == "batch":
		r.fedShell(s.stdin)
	case slices.Contains(interpreters, strings.TrimRight(name, "0123456789.")):
		r.code(name, args, s.stdin)
	default:
		if _, ok := wrappers[name]; ok {
			r.wrapped(name, s)
			return
		}
		r.perhaps(name, s)
	}
}

var (
	shells = []string{
		"sh", "bash", "dash", "zsh", "ksh", "ash", "mksh", "rbash", "yash", "fish", "hush", "sash", "posh", "osh", "ysh", "oil", "oksh", "loksh", "pdksh", "ksh93", "bosh",
	}
	// foreign are shells of other languages: nothing of what they are told is read.
	foreign = []string{"pwsh", "powershell", "nu", "elvish", "xonsh", "csh", "tcsh", "rc", "es", "cmd", "scsh", "ion", "murex", "execlineb"}
	// copying are programs that make files, the last or each of their arguments.
	copying      = []string{"cp", "ln", "mv", "install", "tee", "link"}
	interpreters = []string{
		"python", "pypy", "perl", "ruby", "node", "nodejs", "deno", "bun", "php", "lua", "luajit", "awk", "gawk", "mawk", "nawk", "tclsh", "expect", "osascript", "guile",
		"Rscript", "R", "julia", "erl", "elixir", "raku", "racket", "sbcl", "octave", "groovy", "jshell", "scala", "clojure", "ghc", "ghci", "irb", "jrunscript", "bpftrace", "latexmk", "rake", "mongo", "mongosh", "puppet",
	}
)

// make notes names of files that are made by a command.
func (r *reader) make(names ...string) {
	for _, name := range names {
		r.made[path.Base(name)] = true
		if strings.HasPrefix(name, ".git/") || strings.Contains(name, "/.git/") {
			r.made[".git"] = true
		}
	}
}

// texts are arguments that a program has a shell read, the first n that aren't options.
func (r *reader) texts(args []string, n int) {
	for _, a := range args {
		if strings.HasPrefix(a, "-") && len(a) > 1 {
			continue
		}
		if n--; n < 0 {
			return
		}
		r.eval(a)
	}
}

// eval reads a text as shell.
func (r *reader) eval(text string) {
	if strings.ContainsRune(strings.TrimSuffix(text, " "+string(unknown)), unknown) || strings.ContainsAny(text, string(inherited)+string(globbed)) {
		r.unclear(fedUnknown)
	}
	if strings.TrimSpace(text) != "" {
		r.within().script(text, source{})
	}
}

// file is a script that the shell itself reads.
func (r *reader) file(args []string) {
	if len(args) == 0 {
		return
	}
	name := args[0]
	if base(name) == "" || strings.HasPrefix(name, "/dev/") || strings.HasPrefix(name, "/proc/") {
		r.unclear(fedUnknown)
		return
	}
	r.ran[base(name)] = true
}

// shell follows sh -c TEXT, a shell with a script, and one that reads its standard input.
func (r *reader) shell(args []string, stdin source) {
	text := false
	i := 0
	for ; i < len(args); i++ {
		a := args[i]
		if a == "--" || a == "-" {
			i++
			break
		}
		if len(a) < 2 || a[0] != '-' && a[0] != '+' {
			break
		}
		switch {
		case strings.HasPrefix(a, "--"):
			text = text || a == "--command"
			if a == "--rcfile" || a == "--init-file" || a == "--init-command" {
				i++
				r.file(args[min(i, len(args)):])
			}
			continue
		case strings.ContainsAny(a, wildRunes):
			r.unclear(fedUnknown)
		}
		text = text || strings.Contains(a, "c")
		if strings.HasSuffix(a, "o") || strings.HasSuffix(a, "O") {
			i++
		}
	}
	rest := args[min(i, len(args)):]
	switch {
	case text && len(rest) > 0:
		in := r.within()
		in.vars.positional = append([]string{}, rest[1:]...)
		if len(rest) == 1 {
			in.vars.positional = []string{"sh"}
		}
		if strings.ContainsAny(rest[0], wildRunes) {
			r.unclear(fedUnknown)
		}
		in.script(rest[0], stdin)
	case text:
	case len(rest) > 0 && !slices.ContainsFunc(args[:i], func(a string) bool { return a == "-s" }):
		r.file(rest)
	default:
		r.fedShell(stdin)
	}
}

// fedShell is a shell that reads its commands from its standard input.
func (r *reader) fedShell(stdin source) {
	if !stdin.given && !stdin.known {
		return // there is none: tools have no terminal
	}
	text, known := r.input(stdin, 0)
	if !known {
		r.unclear(fedUnknown)
		return
	}
	r.within().script(text, source{})
}

// found follows find's -exec.
func (r *reader) found(s start) {
	for i, a := range s.words {
		if !slices.Contains([]string{"-exec", "-execdir", "-ok", "-okdir"}, a) {
			continue
		}
		sub := s.words[i+1:]
		if end := slices.IndexFunc(sub, func(a string) bool { return a == ";" || a == "+" }); end >= 0 {
			sub = sub[:end]
		}
		r.run(s.of(filled(sub, "{}", globbed), true))
	}
}

// filled puts a rune in the place of a placeholder in words.
func filled(words []string, placeholder string, by rune) []string {
	out := make([]string, len(words))
	for i, w := range words {
		out[i] = strings.ReplaceAll(w, placeholder, string(by))
	}
	return out
}

// fed follows xargs and its like, which add arguments that can't be known.
func (r *reader) fed(s start) {
	words := filled(s.words, "{}", unknown)
	for i, w := range s.words {
		place := strings.TrimPrefix(strings.TrimPrefix(w, "-I"), "--replace=")
		if w == "-I" && i+1 < len(s.words) {
			place = s.words[i+1]
		}
		if place != "" && place != w {
			words = slices.Concat(words[:i+1], filled(words[i+1:], place, unknown))
		}
	}
	if at := slices.IndexFunc(words, func(w string) bool { return strings.HasPrefix(w, ":::") }); at >= 0 {
		for _, line := range words[at+1:] {
			r.guess(line)
		}
	}
	s.words = append(words, string(unknown))
	if slices.ContainsFunc(s.words[1:len(s.words)-1], func(w string) bool { return !strings.HasPrefix(w, "-") }) {
		r.wrapped("xargs", s)
	}
}

// git follows the commands that git's arguments and settings hold.
func (r *reader) git(s start) {
	words := s.words
	r.ran[".git"] = true // hooks and settings
	for _, a := range s.set {
		if a.Name != nil && (strings.HasPrefix(a.Name.Value, "GIT_CONFIG") || a.Name.Value == "GIT_EXEC_PATH" || a.Name.Value == "GIT_TEMPLATE_DIR") {
			r.unclear(fedUnknown)
		}
	}
	for i, a := range words {
		next := ""
		if i+1 < len(words) {
			next = words[i+1]
		}
		switch {
		case strings.HasPrefix(a, "--config="):
			r.gitSet(s, strings.TrimPrefix(a, "--config="))
		case strings.HasPrefix(a, "--config-env"), strings.HasPrefix(a, "--template=") && !strings.HasSuffix(a, "="):
			r.unclear(fedUnknown)
		case a == "-c" || a == "--config":
			r.gitSet(s, next)
		case slices.Contains(words[:i], "config") && next != "" && !option(next) && elsewhere(a):
			r.gitSet(s, a+"="+next)
		case i > 0 && slices.Contains(words[:i], "config") && strings.Contains(words[i-1], ".") && !option(a):
			r.guess(strings.TrimLeft(a, "! "))
		case strings.Contains(a, "ext::"):
			_, line, _ := strings.Cut(a, "ext::")
			r.guess(line)
		case strings.HasPrefix(strings.ToLower(a), "alias.") && slices.Contains(words[:i], "config") && next != "":
			r.gitAlias(s, next)
		case (a == "-x" || a == "--exec") && slices.Contains(words[:i], "rebase"):
			r.eval(next)
		case strings.HasPrefix(a, "--exec=") && slices.Contains(words[:i], "rebase"):
			r.eval(strings.TrimPrefix(a, "--exec="))
		case a == "foreach" && slices.Contains(words[:i], "submodule"):
			rest := slices.DeleteFunc(slices.Clone(words[i+1:]), func(w string) bool { return w == "--recursive" || w == "--quiet" || w == "-q" })
			r.eval(strings.Join(rest, " "))
		case a == "run" && slices.Contains(words[:i], "bisect") && next != "":
			r.run(s.of(words[i+1:], true))
		}
	}
}

// elsewhere reports whether a setting of git's names a place from which it takes others, or what it
// runs.
func elsewhere(key string) bool {
	key = strings.ToLower(key)
	return strings.HasPrefix(key, "include.") || strings.HasPrefix(key, "includeif.") || key == "core.hookspath" || key == "init.templatedir"
}

// gitSet follows a setting of git's that the line itself makes, KEY=VALUE.
func (r *reader) gitSet(s start, setting string) {
	key, value, _ := strings.Cut(setting, "=")
	switch {
	case elsewhere(key):
		if value != "" && value != "/dev/null" {
			r.unclear(fedUnknown)
		}
	case strings.HasPrefix(strings.ToLower(key), "alias."):
		r.gitAlias(s, value)
	default:
		r.guess(strings.TrimLeft(value, "! "))
	}
}

// gitAlias is a command of git's that the line itself defines.
func (r *reader) gitAlias(s start, value string) {
	if shell, ok := strings.CutPrefix(value, "!"); ok {
		r.eval(shell + " " + string(unknown))
		return
	}
	r.run(s.of(append(append([]string{"git"}, strings.Fields(value)...), string(unknown)), true))
}

// code looks at a program for an interpreter. It isn't read: it counts as unreadable where it
// seems to start programs.
func (r *reader) code(name string, args []string, stdin source) {
	text := strings.Join(args, " ")
	if in, known := r.input(stdin, 0); known {
		text += in
	} else if stdin.given && (len(args) == 0 || args[len(args)-1] == "-") {
		r.unclear(fedUnknown)
	}
	for _, sign := range signs {
		if strings.Contains(text, sign) {
			r.unclear(fedUnknown)
		}
	}
	if sign := codeSigns[name]; sign != nil && sign.MatchString(text) {
		r.unclear(fedUnknown)
	}
}
