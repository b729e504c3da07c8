package cmdline

import (
	"regexp"
	"slices"
	"strings"
)

// commandOptions are options, by program, whose values are commands or hold one: as a word of their
// own, after = or attached to a letter. A * stands for any part of a name.
var commandOptions = map[string][]string{
	"git": {
		"-x", "--exec", "--extcmd", "--*-filter", "--upload-pack", "--receive-pack", "-u", "-O", "--open-files-in-pager", "--sendmail-cmd", "--smtp-server", "--to-cmd", "--cc-cmd", "--header-cmd",
		"--access-hook", "--httpd",
	},
	"tar":   {"--to-command", "-I", "--use-compress-program", "--checkpoint-action", "--rsh-command", "-F", "--info-script", "--new-volume-script"},
	"rsync": {"-e", "--rsh", "--rsync-path"},
	"ssh":   {"-o"}, "scp": {"-o", "-S"}, "sftp": {"-o", "-S", "-D"},
	"zip": {"-TT", "--unzip-command"}, "npm": {"-c", "--call"}, "entr": {"-s"}, "env": {"-S", "--split-string"}, "script": {"-c", "--command"},
	"su": {"-c", "--command", "--session-command"}, "runuser": {"-c", "--command", "--session-command"}, "capsh": {"-c"},
	"compgen": {"-C"}, "complete": {"-C"}, "mapfile": {"-C"}, "readarray": {"-C"}, "fc": {"-e"}, "bind": {"-x"},
	"apt": {"-o", "--option"}, "dpkg": {"--pre-invoke", "--post-invoke", "--status-logger"}, "rpm": {"--pipe"},
	"systemd-run": {"-p", "--property"}, "man": {"-P", "--pager", "-H", "--html"},
	"nc": {"-e", "-c", "--exec", "--sh-exec"}, "tcpdump": {"-z"}, "wget": {"--use-askpass"}, "mysql": {"--pager"}, "sort": {"--compress-program"}, "split": {"--filter"},
	"install": {"--strip-program"}, "cpio": {"--rsh-command"}, "diff": {"--diff-program"}, "nano": {"-s", "--speller"}, "gpg": {"--pager", "--photo-viewer", "--*-program"},
	"svn": {"--editor-cmd", "--diff-cmd", "--diff3-cmd", "--config-option"}, "hg": {"--config", "--ssh", "--remotecmd"}, "jj": {"--config"}, "cvs": {"-e"},
	"go": {"-exec", "-toolexec", "-vettool"}, "cargo": {"--config"}, "meson": {"--wrapper"}, "gcc": {"-wrapper"}, "just": {"--shell", "-c", "--command"},
	"fzf": {"--preview", "--bind"}, "bat": {"--pager"}, "rg": {"--pre", "--hostname-bin"}, "nodemon": {"-x", "--exec"}, "chokidar": {"-c", "--command"}, "rofi": {"-run-command"},
	"pandoc": {"-F", "--filter", "--pdf-engine"}, "yt-dlp": {"--exec"}, "aria2c": {"--on-*"}, "stap": {"-c"}, "bpftrace": {"-c"}, "dtrace": {"-c"}, "flatpak": {"--command"},
	"ansible": {"-a", "--args"}, "vagrant": {"-c", "--command"}, "lynx": {"-editor"}, "w3m": {"-o"}, "air": {"-build.cmd"}, "et": {"-c"}, "forever": {"-c"},
}

// likewise are programs with the options of another one.
var likewise = map[string]string{
	"gtar": "tar", "bsdtar": "tar", "apt-get": "apt", "aptitude": "apt", "apt-cache": "apt", "apt-config": "apt", "ncat": "nc", "netcat": "nc", "sk": "fzf", "delta": "bat", "ag": "bat", "ack": "bat",
	"sdiff": "diff", "diff3": "diff", "g++": "gcc", "cc": "gcc", "c++": "gcc", "clang": "gcc", "youtube-dl": "yt-dlp", "gsplit": "split", "gsort": "sort", "dtruss": "dtrace", "gpg2": "gpg",
}

// commandVariables are variables whose values are commands, beside those that end in EDITOR, PAGER or
// ASKPASS.
var commandVariables = []string{
	"GIT_SSH_COMMAND", "GIT_SSH", "GIT_EXTERNAL_DIFF", "GIT_PROXY_COMMAND", "PROMPT_COMMAND", "LESSOPEN", "LESSCLOSE", "BROWSER", "PS0", "PS1", "PS2", "PS4", "VISUAL", "RSYNC_RSH", "CVS_RSH", "SVN_SSH", "HGSSH",
	"FZF_DEFAULT_COMMAND", "RUSTC_WRAPPER", "RUSTC", "npm_config_script_shell", "CC", "CXX", "LD", "AR",
}

// editors run a command after !, or after a word of their own.
var editors = map[string]*regexp.Regexp{
	"vi": bang, "vim": bang, "nvim": bang, "ex": bang, "view": bang, "vimdiff": bang, "rvim": bang, "ed": bang, "red": bang, "dc": bang, "less": bang, "more": bang, "most": bang, "vifm": bang,
	"sftp": atBegin, "ftp": atBegin, "telnet": atBegin, "mail": atBegin, "mailx": atBegin, "lftp": regexp.MustCompile(`(^|[\n;])\s*(!|shell\b)`), "ranger": regexp.MustCompile(`shell\s`),
	"lf":  regexp.MustCompile(`(^|\n)[$!%&]`),
	"gdb": debugger, "lldb": debugger, "sqlite3": regexp.MustCompile(`\.(sh|sy)`), "psql": regexp.MustCompile(`\\!|(?i)program\s*'`), "mysql": regexp.MustCompile(`\\!|(^|\n)system\s`),
	"emacs": regexp.MustCompile(`shell-command|call-process|start-process|make-process`), "gnuplot": regexp.MustCompile(`system|!|<`), "m4": regexp.MustCompile(`e?syscmd`),
	"rpm": macro, "rpmbuild": macro, "rpmspec": macro, "gs": regexp.MustCompile(`%pipe%`), "mutt": regexp.MustCompile("`"),
	"tex": writes18, "latex": writes18, "pdftex": writes18, "pdflatex": writes18, "xelatex": writes18, "lualatex": writes18,
}

var (
	bang     = regexp.MustCompile(`!\s*[\w./$({"']|system\(|jobstart|termopen|(^|\n)[:+]*\s*(sil\w*!?\s+)?(py\w*|lua\w*|perl|ruby|tcl|mz\w*|te(rm(inal)?)?|so(urce)?|ru(ntime)?)\s+\S`)
	atBegin  = regexp.MustCompile(`(^|\n)\s*~?!`)
	debugger = regexp.MustCompile(`(^|[\n=])\s*((shell|make|pipe|python|platform\s+shell|script)\b|!)`)
	macro    = regexp.MustCompile(`%\(`)
	writes18 = regexp.MustCompile(`write18|\\input\s*\|`)
)

// sedRuns is a script of sed's that begins with its command for running others.
var sedRuns = regexp.MustCompile(`(^|[;{}\n])\s*([0-9$]+|/[^/]*/)?(,([0-9$]+|/[^/]*/))?\s*!?\s*e(\s|$)`)

// edited looks at the scripts of sed.
func (r *reader) edited(args []string, stdin source) {
	var scripts []string
	first := true
	for i, a := range args {
		next := ""
		if i+1 < len(args) {
			next = args[i+1]
		}
		switch name, value, _ := strings.Cut(a, "="); {
		case a == "-e" || abbreviates(a, "--expression") && value == "":
			scripts, first = append(scripts, next), false
		case abbreviates(name, "--expression"):
			scripts, first = append(scripts, value), false
		case a == "-f" || a == "--file":
			first = false
			if in, known := r.input(stdin, 0); next == "-" || next == "/dev/stdin" {
				if !known {
					r.unclear(fedUnknown)
				}
				scripts = append(scripts, in)
			} else {
				r.file([]string{next})
			}
		case first && !option(a):
			scripts, first = append(scripts, a), false
		}
	}
	for _, script := range scripts {
		if sedRuns.MatchString(script) || substitutes(script) {
			r.unclear(fedUnknown)
		}
	}
}

// substitutes reports whether a script of sed's has a command s with the flag e, which runs what it
// makes.
func substitutes(script string) bool {
	for at := 0; at+1 < len(script); at++ {
		if script[at] != 's' || at > 0 && !strings.ContainsRune(" ;{}\n0123456789/$!", rune(script[at-1])) {
			continue
		}
		by, i := script[at+1], at+2
		if strings.IndexByte(" ;{}\n\\", by) >= 0 || by >= 'a' && by <= 'z' || by >= 'A' && by <= 'Z' {
			continue
		}
		for parts := 0; parts < 2 && i < len(script); i++ {
			switch script[i] {
			case '\\':
				i++
			case by:
				parts++
			}
		}
		for ; i < len(script) && strings.IndexByte("gpiImMew0123456789", script[i]) >= 0; i++ {
			if script[i] == 'e' {
				return true
			}
		}
	}
	return false
}

// daemon follows start-stop-daemon, whose options name the program and whose arguments stand after --.
func (r *reader) daemon(s start) {
	var programs, args []string
	for i, a := range s.words[1:] {
		if a == "--" {
			args = s.words[i+2:]
			break
		}
		for _, name := range []string{"-x", "--exec", "-a", "--startas"} {
			if value, ok := valueOf(a, name, false); ok {
				if value == "" && i+2 < len(s.words) {
					value = s.words[i+2]
				}
				programs = append(programs, value)
			}
		}
	}
	for _, program := range programs {
		r.run(s.of(slices.Concat([]string{program}, args), true))
	}
	r.wrapped("start-stop-daemon", s)
}

// parts are programs of a folder that run-parts runs, whatever they are.
func (r *reader) parts(args []string) {
	if !slices.Contains(args, "--test") && !slices.Contains(args, "--list") {
		r.unclear(fedUnknown)
	}
}

// piped follows socat, which starts what stands after some words.
func (r *reader) piped(args []string) {
	for _, a := range args {
		if kind, line, ok := strings.Cut(a, ":"); ok && slices.Contains([]string{"EXEC", "SYSTEM", "SHELL"}, strings.ToUpper(kind)) {
			r.guess(line)
		}
	}
}

// aliased follows the aliases that gh and glab are taught.
func (r *reader) aliased(args []string) {
	for _, a := range args {
		r.guess(strings.TrimLeft(a, "! "))
	}
}

const (
	mostLoose = 40  // words of one command that are tried
	maxLoose  = 500 // loose acts of a line: more are not looked at, and that says nothing
)

// quiet are programs that take text, or words that are names of programs, and start none of them.
var quiet = map[string]bool{}

func init() {
	for _, name := range strings.Fields(`echo printf print grep egrep fgrep zgrep rg ag ack which type whereis whatis apropos man info tldr help cat head tail tac less more most bat
		ls test [ [[ true false : cd pushd popd set logger figlet cowsay say notify-send wall basename dirname declare typeset local export readonly unset read let return shift getopts
		gh glab hub tea jj hg svn bzr fossil darcs jq yq diff cmp comm sort uniq wc tr cut paste column fold fmt mkdir touch rm rmdir cp mv ln chmod chown stat file du df kill pkill pgrep
		killall ps hash history seq expr tee ansible-doc dpkg-query brew port`) {
		quiet[name] = true
	}
}

// perhaps looks at a program of which nothing is known: it may start what its arguments name.
func (r *reader) perhaps(name string, s start) {
	if !s.sure || r.lenient || quiet[name] {
		return
	}
	in := r.within()
	in.lenient, in.loose = true, true
	for i, word := range s.words[1:min(len(s.words), mostLoose)] {
		if base(word) == "" {
			continue // whatever it is, any program may be given it
		}
		_, value, has := strings.Cut(word, "=")
		switch {
		case strings.ContainsAny(word, " \t\n"):
			if option(word) && has {
				word = value
			}
			in.guess(strings.TrimLeft(word, "! "))
		case !option(word) && i+2 < len(s.words):
			in.run(s.of(s.words[i+1:], false))
		}
	}
}
