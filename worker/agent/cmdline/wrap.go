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
	"timeout": {before: 1}, "gtimeout": {before: 1}, "flock": {before: 1, shell: []string{"-c", "--command"}}, "chroot": {before: 1}, "taskset": {any: true}, "chrt": {any: true},
	"faketime": {before: 1}, "env": {shell: []string{"-S", "--split-string", "-vS", "-iS"}}, "genv": {}, "su": {any: true, shell: []string{"-c", "--command", "--session-command"}},
	"runuser": {any: true, shell: []string{"-c", "--command"}}, "script": {any: true, shell: []string{"-c", "--command", "-qc", "-qec", "-ec"}},
	"watch": {line: true}, "ssh": {before: 1, line: true}, "repeat": {before: 1}, "npx": {shell: []string{"-c", "--call"}}, "nix-shell": {shell: []string{"--run", "--command"}},
	"bwrap": {any: true}, "systemd-run": {any: true}, "firejail": {any: true}, "unshare": {any: true}, "nsenter": {any: true}, "setpriv": {any: true}, "strace": {any: true}, "ltrace": {any: true},
	"gdb": {any: true}, "perf": {any: true}, "valgrind": {any: true}, "tmux": {any: true, line: true}, "screen": {any: true, line: true}, "start-stop-daemon": {any: true},
	"docker": {after: []string{"run", "exec"}, any: true}, "podman": {after: []string{"run", "exec", "unshare"}, any: true}, "kubectl": {after: []string{"exec"}, any: true},
	"nix": {after: []string{"develop", "shell", "run"}, any: true}, "uv": {after: []string{"run"}, any: true}, "poetry": {after: []string{"run"}}, "pipenv": {after: []string{"run"}},
	"bundle": {after: []string{"exec"}}, "conda": {after: []string{"run"}, any: true}, "direnv": {after: []string{"exec"}, any: true}, "mise": {after: []string{"exec", "x"}, any: true},
	"asdf": {after: []string{"exec"}, any: true}, "rustup": {after: []string{"run"}, any: true}, "pnpm": {after: []string{"exec"}}, "npm": {after: []string{"exec", "x"}}, "yarn": {after: []string{"exec"}},
	"gosu": {before: 1}, "su-exec": {before: 1}, "setuidgid": {before: 1}, "s6-setuidgid": {before: 1}, "envdir": {before: 1}, "envuidgid": {before: 1}, "chpst": {any: true}, "sg": {before: 1, line: true},
	"op": {after: []string{"run"}, any: true}, "doppler": {after: []string{"run"}, any: true}, "dotenvx": {after: []string{"run"}, any: true}, "infisical": {after: []string{"run"}, any: true},
	"aws-vault": {after: []string{"exec"}, any: true}, "chamber": {after: []string{"exec"}, any: true}, "docker-compose": {after: []string{"run", "exec"}, any: true}, "hyperfine": {any: true, line: true},
	"prlimit": {any: true}, "choom": {any: true}, "systemd-inhibit": {any: true}, "ssh-agent": {any: true}, "dotenv": {any: true}, "cross-env": {any: true}, "tini": {any: true}, "dumb-init": {any: true},
	"lldb": {any: true}, "dbus-launch": {any: true}, "xinit": {any: true}, "startx": {any: true}, "proot": {any: true}, "daemon": {any: true}, "daemonize": {any: true}, "minijail0": {any: true}, "nsjail": {any: true},
	"sandbox-exec": {any: true}, "landrun": {any: true}, "hugectl": {any: true}, "schedtool": {any: true}, "cpulimit": {any: true}, "trickle": {any: true}, "softlimit": {any: true}, "timelimit": {any: true},
	"with-lock-ex": {any: true}, "lockrun": {any: true}, "logsave": {before: 1}, "setlock": {before: 1}, "lckdo": {before: 1}, "rr": {after: []string{"record"}, any: true}, "uftrace": {any: true}, "jj": {after: []string{"exec"}}, "pm2": {after: []string{"start"}, any: true},
	"apptainer": {after: []string{"exec", "run", "shell"}, any: true}, "singularity": {after: []string{"exec", "run", "shell"}, any: true}, "guix": {after: []string{"shell", "environment"}, any: true},
	"nerdctl": {after: []string{"run", "exec"}, any: true}, "buildah": {after: []string{"run", "unshare"}, any: true}, "oc": {after: []string{"exec"}, any: true}, "lxc": {after: []string{"exec"}, any: true},
	"lxc-attach": {any: true}, "machinectl": {after: []string{"shell"}, any: true}, "systemd-nspawn": {any: true}, "schroot": {any: true}, "distrobox": {after: []string{"enter"}, any: true}, "toolbox": {after: []string{"run"}, any: true},
	"multipass": {after: []string{"exec"}, any: true}, "wsl": {any: true, line: true}, "flatpak-spawn": {any: true}, "flatpak": {after: []string{"run"}, any: true}, "ip": {after: []string{"exec"}, any: true},
	"watchexec": {any: true, line: true}, "concurrently": {any: true, line: true}, "reflex": {any: true}, "onchange": {any: true}, "cmake": {after: []string{"-E"}, any: true}, "arch": {any: true}, "launchctl": {any: true},
	"just": {after: []string{"-c", "--command"}}, "mosh": {any: true, line: true}, "autossh": {any: true, line: true}, "sshpass": {any: true}, "pssh": {any: true, line: true}, "parallel-ssh": {any: true, line: true}, "pdsh": {any: true, line: true},
	"sops": {after: []string{"exec-env", "exec-file"}, any: true, line: true}, "rvm": {after: []string{"do"}}, "chruby-exec": {any: true}, "qemu-x86_64": {any: true}, "qemu-aarch64": {any: true},
	"fd": {after: []string{"-x", "-X", "--exec", "--exec-batch"}}, "fdfind": {after: []string{"-x", "-X", "--exec", "--exec-batch"}},
}

// setting are wrappers that set variables which stand before the program.
var setting = []string{"env", "genv", "sudo", "doas", "cross-env"}

func init() {
	for _, name := range []string{
		"sudo", "doas", "pkexec", "run0", "nohup", "nice", "ionice", "setsid", "stdbuf", "time", "gtime", "command", "exec", "builtin", "xargs", "noglob", "nocorrect", "busybox", "toybox",
		"unbuffer", "caffeinate", "proxychains", "proxychains4", "torsocks", "dbus-run-session", "xvfb-run", "rlwrap", "winpty", "fakeroot", "catchsegv", "setarch", "linux64", "numactl", "cgexec",
		"eatmydata", "fakechroot", "tsocks", "zrun", "cronic", "detach", "catatonit", "with-contenv", "kstart", "cygstart", "wine", "box64", "dtruss", "heaptrack", "env-cmd", "xcrun", "esy", "bunx", "uvx",
		"entr", "chronic", "ts", "coproc", "-", "systemd-cat", "linux32", "i386", "x86_64", "uname26", "torify", "ifne", "nocache",
	} {
		wrappers[name] = wrapper{}
	}
	for _, name := range []string{"rbenv", "pyenv", "nodenv", "goenv", "jenv", "luaenv", "opam", "stack", "cabal", "dune", "fnm", "nvm", "n", "tox"} {
		wrappers[name] = wrapper{after: []string{"exec"}, any: true}
	}
	for _, name := range []string{"devbox", "micromamba", "pixi", "pipx", "hatch", "pdm", "rye", "volta", "foreman", "honcho", "teller", "zellij"} {
		wrappers[name] = wrapper{after: []string{"run"}, any: true}
	}
	for _, name := range []string{"xterm", "urxvt", "rxvt", "konsole", "alacritty", "kitty", "foot", "gnome-terminal", "xfce4-terminal", "x-terminal-emulator", "wezterm"} {
		wrappers[name] = wrapper{any: true, line: true}
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
