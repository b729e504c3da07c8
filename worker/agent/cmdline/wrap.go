package cmdline

import (
	"slices"
	"strings"
)

// wrapper is how a program starts another one that its arguments name.
type wrapper struct {
	before int      // arguments that aren't options before it, such as timeout's duration
	after  []string // the subcommand that it follows, such as exec; any of them
	any    bool     // options are too many to know which have values: any word may begin it
	shell  []string // options whose value a shell reads, such as -c
	line   bool     // what follows is joined and read by a shell
}

var wrappers = map[string]wrapper{
	"timeout": {before: 1}, "gtimeout": {before: 1}, "flock": {before: 1, shell: []string{"-c", "--command"}}, "chroot": {before: 1}, "taskset": {before: 1}, "chrt": {before: 1},
	"faketime": {before: 1}, "env": {shell: []string{"-S", "--split-string", "-vS", "-iS"}}, "genv": {}, "su": {any: true, shell: []string{"-c", "--command", "--session-command"}},
	"runuser": {any: true, shell: []string{"-c", "--command"}}, "script": {any: true, shell: []string{"-c", "--command", "-qc", "-qec", "-ec"}},
	"watch": {line: true}, "ssh": {before: 1, line: true}, "repeat": {before: 1}, "npx": {shell: []string{"-c", "--call"}}, "nix-shell": {shell: []string{"--run", "--command"}},
	"bwrap": {any: true}, "systemd-run": {any: true}, "firejail": {any: true}, "unshare": {any: true}, "nsenter": {any: true}, "setpriv": {any: true}, "strace": {any: true}, "ltrace": {any: true},
	"gdb": {any: true}, "perf": {any: true}, "valgrind": {any: true}, "tmux": {any: true, line: true}, "screen": {any: true, line: true}, "start-stop-daemon": {any: true},
	"docker": {after: []string{"run", "exec"}, any: true}, "podman": {after: []string{"run", "exec"}, any: true}, "kubectl": {after: []string{"exec"}, any: true},
	"nix": {after: []string{"develop", "shell", "run"}, any: true}, "uv": {after: []string{"run"}, any: true}, "poetry": {after: []string{"run"}}, "pipenv": {after: []string{"run"}},
	"bundle": {after: []string{"exec"}}, "conda": {after: []string{"run"}, any: true}, "direnv": {after: []string{"exec"}, any: true}, "mise": {after: []string{"exec", "x"}, any: true},
	"asdf": {after: []string{"exec"}, any: true}, "rustup": {after: []string{"run"}, any: true}, "pnpm": {after: []string{"exec"}}, "npm": {after: []string{"exec", "x"}}, "yarn": {after: []string{"exec"}},
	"gosu": {before: 1}, "su-exec": {before: 1}, "setuidgid": {before: 1}, "s6-setuidgid": {before: 1}, "envdir": {before: 1}, "envuidgid": {before: 1}, "chpst": {any: true}, "sg": {before: 1, line: true},
	"op": {after: []string{"run"}, any: true}, "doppler": {after: []string{"run"}, any: true}, "dotenvx": {after: []string{"run"}, any: true}, "infisical": {after: []string{"run"}, any: true},
	"aws-vault": {after: []string{"exec"}, any: true}, "chamber": {after: []string{"exec"}, any: true}, "docker-compose": {after: []string{"run", "exec"}, any: true}, "hyperfine": {any: true, line: true},
	"prlimit": {any: true}, "choom": {any: true}, "systemd-inhibit": {any: true}, "ssh-agent": {any: true}, "dotenv": {any: true}, "cross-env": {any: true}, "tini": {any: true}, "dumb-init": {any: true},
	"fd": {after: []string{"-x", "-X", "--exec", "--exec-batch"}}, "fdfind": {after: []string{"-x", "-X", "--exec", "--exec-batch"}},
}

// setting are wrappers that set variables which stand before the program.
var setting = []string{"env", "genv", "sudo", "doas", "cross-env"}

func init() {
	for _, name := range []string{
		"sudo", "doas", "pkexec", "run0", "nohup", "nice", "ionice", "setsid", "stdbuf", "time", "gtime", "command", "exec", "builtin", "xargs", "noglob", "nocorrect", "busybox", "toybox",
		"unbuffer", "caffeinate", "proxychains", "proxychains4", "torsocks", "dbus-run-session", "xvfb-run", "rlwrap", "winpty", "fakeroot", "catchsegv", "setarch", "linux64", "numactl", "cgexec",
		"entr", "chronic", "ts", "coproc", "-", "systemd-cat", "linux32", "i386", "x86_64", "uname26", "torify", "ifne", "nocache",
	} {
		wrappers[name] = wrapper{}
	}
	for _, name := range []string{"rbenv", "pyenv", "nodenv", "goenv", "jenv", "luaenv"} {
		wrappers[name] = wrapper{after: []string{"exec"}}
	}
}

// wrapped follows a program that starts another one.
func (r *reader) wrapped(name string, s start) {
	w, ok := wrappers[name]
	if !ok {
		return
	}
	words := s.words
	if len(w.after) > 0 {
		at := slices.IndexFunc(words, func(word string) bool { return slices.Contains(w.after, word) })
		if at < 0 {
			return
		}
		words = words[at:]
	}
	for i, word := range words[:len(words)-1] {
		if slices.Contains(w.shell, word) {
			r.eval(words[i+1])
		}
	}
	for _, word := range words[1:] { // --split-string=…
		if option, value, ok := strings.Cut(word, "="); ok && slices.Contains(w.shell, option) {
			r.eval(value)
		}
	}
	before := w.before
	for i := 1; i < len(words); i++ {
		word := words[i]
		if word == "--" {
			continue
		}
		if name == "xargs" && i == len(words)-1 {
			return // what it adds itself
		}
		if len(word) > 1 && strings.HasPrefix(word, "-") || slices.Contains(setting, name) && strings.Contains(word, "=") {
			r.exported(word)
			continue
		}
		previous := words[i-1]
		value := i > 1 && previous != "--" && strings.HasPrefix(previous, "-") && !strings.Contains(previous, "=")
		if before > 0 && !value {
			before--
			continue
		}
		if w.line {
			r.guess(strings.Join(words[i:], " "))
		}
		r.run(s.of(words[i:], !value && !w.any))
		if !value && !w.any {
			return
		}
	}
}
