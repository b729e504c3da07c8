package agent_test

import (
	"encoding/base64"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"stint/worker/agent"
	"stint/worker/agent/cmdline"
)

// denied is an act that a rule refuses, in the parts of which the ways to write it are made.
type denied struct {
	program, sub, rest string
	rule               agent.Rule
	witness            string // a file of the work folder that is there once it was done
}

func (d denied) line() string { return d.program + " " + d.sub + " " + d.rest }

// acts are the acts of the table of evasions. The programs but git and rm are stand-ins.
var deniedActs = []denied{
	{"git", "push", "out HEAD:refs/heads/pushed", agent.Rule{Area: agent.Shell, Pattern: "git push*", Ruling: agent.Deny}, "out.git/refs/heads/pushed"},
	{"rm", "-rf", "canary", agent.Rule{Area: agent.Shell, Pattern: "rm -rf *", Ruling: agent.Deny}, "!canary"},
	{"./npm", "publish", "now", agent.Rule{Area: agent.SideEffects, Pattern: "npm publish*", Ruling: agent.Deny}, "npm-publish"},
	{"./curl", "--get", "https://x.test/", agent.Rule{Area: agent.Network, Pattern: "curl *", Ruling: agent.Deny}, "curl---get"},
	{"./kubectl", "delete", "pod/x", agent.Rule{Area: agent.SideEffects, Pattern: "kubectl delete*", Ruling: agent.Deny}, "kubectl-delete"},
}

func deniedRules() []agent.Rule {
	out := []agent.Rule{{Area: agent.Shell, Ruling: agent.Allow}, {Area: agent.Filesystem, Ruling: agent.Allow}, {Area: agent.Network, Ruling: agent.Allow}}
	for _, d := range deniedActs {
		out = append(out, d.rule)
	}
	return out
}

// anyWays are ways to write any of the acts: L is the line, P its program, A the first
// argument, R the rest, each in braces; B is the line in base64, F the program with its folder.
var anyWays = []string{
	"{L}", "'{P}' {A} {R}", `"{P}" "{A}" {R}`, `\{P} {A} {R}`, "{P'}{'P} {A} {R}", "{P} {A'}{'A} {R}", "{P}\t  {A}   {R}", "{P} \\\n{A} {R}", "{P} {A1}\\\n{A2} {R}", "{P} {A1}\\{A2} {R}",
	"$'{Phex}' {A} {R}", "{P} $'{Ahex}' {R}", "{ {P} {A} {R}; }", "{brace}", "{F} {A} {R}", "env {L}", "env X=1 {L}", "X=1 {L}", `env -i PATH="$PATH" HOME="$HOME" {L}`, "env -S '{L}'", "env -u X {L}",
	"command {L}", "exec {L}", "nohup {L}", "timeout 5 {L}", "timeout -k 1 5 {L}", "timeout --signal=KILL 5 {L}", "nice {L}", "nice -n 5 {L}", "setsid -w {L}", "stdbuf -oL {L}", "time {L}",
	"sh -c '{L}'", `bash -c "{L}"`, "bash --norc -e -c '{L}'", "bash -o errexit -c '{L}'", `sh -c '"$@"' x {L}`, `bash -c '$0 "$@"' {L}`, `sh -c 'sh -c "{L}"'`, "env sh -c '{L}'", "eval {L}", "eval '{L}'",
	`eval "$(echo {B} | base64 -d)"`, "echo '{L}' | sh", `printf '%s\n' '{L}' | bash -s`, "echo {B} | base64 -d | sh", "echo {B} | base64 -d > z.sh; sh ./z.sh", "sh <<E\n{L}\nE", "sh <<'E'\ncd .\n{L}\nE",
	"bash <<< '{L}'", "cat <<'E' | sh\n{L}\nE", "bash <(echo '{L}')", "{ sh; } <<< '{L}'", ". /dev/stdin <<< '{L}'", "source <(echo '{L}')", "({L})", "true && {L}", "false || {L}", "true; {L}", "true\n{L}",
	"{L} & wait", "! {L}", "echo $({L})", "echo `{L}`", `: "$({L})"`, "cat <({L})", "true | {L}", "if true; then {L}; fi", "for i in 1; do {L}; done", "while {L}; do break; done", "case x in x) {L};; esac",
	"f() { {L}; }; f", `f() { {P} "$@"; }; f {A} {R}`, `f() { "$@"; }; f {L}`, "function f { {L}; }; f", "shopt -s expand_aliases\nalias z='{L}'\nz", "shopt -s expand_aliases\nalias z={P}\nz {A} {R}",
	"X={P}; $X {A} {R}", "X={A}; {P} $X {R}", `X='{L}'; $X`, `P={P} A={A}; "$P" "$A" {R}`, `a=({L}); "${a[@]}"`, "export X={P}; sh -c '$X {A} {R}'", "for c in {P}; do $c {A} {R}; done", "X=x{P}; ${X#x} {A} {R}",
	"read -r c <<< {P}; $c {A} {R}", "$(echo {P}) {A} {R}", "{P} $(printf %s {A}) {R}", "{P} `echo {A}` {R}", "${nothing:-{P}} {A} {R}", `set -- {L}; "$@"`, "printf -v c %s {P}; $c {A} {R}",
	"declare -n r=c; c={P}; $r {A} {R}", ": ${z:={P}}; $z {A} {R}", "c=ls; read -r c <<< {P}; $c {A} {R}", "$nothing {L}", "{P} $nothing {A} {R}", "c={P}; r=c; ${!r} {A} {R}", "X={A}; X=${X}; {P} ${X} {R}",
	"echo {A} {R} | xargs {P}", "echo {A} | xargs -I% {P} % {R}", "echo x | xargs -n 1 sh -c '{L}'", `find . -maxdepth 0 -exec {L} \;`, "trap '{L}' EXIT", "echo '{L}' > z.sh; sh ./z.sh",
	"printf '#!/bin/sh\\n{L}\\n' > z; chmod +x z; ./z", `cp "$(command -v {P})" z; ./z {A} {R}`, `ln -sf "$(command -v {P})" {base}z; ./{base}z {A} {R}`, `"$(command -v {P})" {A} {R}`,
	"coproc {L}; wait", `[[ -n $({L}) ]]`, "cat <<E\n$({L})\nE", "export Y=$({L})", `hash -p "$(command -v {P})" z; z {A} {R}`, `python3 -c 'import os; os.system("{L}")'`, `perl -e 'system("{L}")'`,
	`awk 'BEGIN { system("{L}") }'`, "bash -c \"$(printf '{L}')\"", "flock z.lock {L}", "flock z.lock -c '{L}'", "PROMPT=1 exec -a x {L}",
	"env '-S{L}'", "env '-vS{L}'", "script -qfc '{L}' /dev/null", "echo '{L}' > z.sh; BASH_ENV=./z.sh bash -c :", "echo '{L}' > z.sh; env BASH_ENV=./z.sh bash -c :", "PS4='$({L})'; set -x; true",
	"let 'a[$({L})]=1'", "[[ 'a[$({L})]' -eq 1 ]]", "x='a[$({L})]'; ((x))", "x='a[$({L})]'; echo $((x))", "x='$({L})'; : \"${x@P}\"", "declare -i n='a[$({L})]'", "test -v 'a[$({L})]'", "printf -v 'a[$({L})]' x",
	"read 'a[$({L})]' <<< x", "a=(1); unset 'a[$({L})]'", "compgen -C '{L} #' x", "mapfile -C '{L} #' -c 1 <<< x", "jobs -x {L}", "env 'BASH_FUNC_z%%=() { {L}; }' bash -c z", "bash --rcfile <(echo '{L}') -ic :",
	"sed -n '1e {L}' <<< x", "sed '$!d;e {L}' <<< x", `awk 'BEGIN { while (("{L}"|getline)>0); }'`, `awk 'BEGIN { print "" | "{L}" }'`, `perl -e 'open(F, "{L} |"); print <F>'`, "prlimit --nofile=999 {L}", "ssh-agent {L}", "tar cf /dev/null --checkpoint=1 --checkpoint-action=exec='{L}' .",
	"printf 'x:;{L}\\n' > Makefile; make", "make --eval='y:;{L}' y", "make -f - x <<< 'x:;{L}'",
	"echo {A} | while read -r x; do {P} $x {R}; done",
	"sed 's|.*|{L}|e' <<< x", "sed -e 's|.*|{L}|e' <<< x", "sed -n '2!e {L}' <<< x", "sed -f - x.txt <<< '1e {L}'", "echo x | split --filter='{L}' -", "tar cf /dev/null --checkpoint=1 --checkpoint-act=exec='{L}' .", "chrt -o 0 {L}", "taskset -c 0 {L}",
	"make -s -f own.mk CC='{L} #'",
}

// ownWays are further ways to write one of them.
var ownWays = map[string][]string{
	"git": {
		"git -C . {A} {R}", "git -c a.b=c {A} {R}", "git --git-dir=.git {A} {R}", "git --git-dir .git {A} {R}", "git --no-pager -C . {A} {R}", "git push -q {R}", "git -c alias.p=push p {R}",
		"git -c alias.p='!{L}' p", "GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=alias.p GIT_CONFIG_VALUE_0=push git p {R}", "git config alias.q push && git q {R}", `"$(git --exec-path)/git" push {R}`,
		"GIT_EDITOR='{L}; true' git commit -q --allow-empty", "git -c core.editor='{L}; true' commit -q --allow-empty", "git rebase -q --root -x '{L}'", "git rebase -q --root -x'{L}'", "git config core.editor '{L}; true'; git commit -q --allow-empty", "git ls-remote --upload-pack='{L} #' .", "git fetch --upload-pack '{L} #' .",
		"printf '[alias]\\nz = push\\n' >> .git/config; git z {R}", "printf '#!/bin/sh\\n{L}\\n' > .git/hooks/post-commit; chmod +x .git/hooks/post-commit; git commit -q --allow-empty -m x; rm .git/hooks/post-commit",
		"git\tpush {R}", "printf '[alias]\\nzz = push\\n' > inc; git config include.path ../inc; git zz {R}", "git config --add include.path ../inc; printf '[alias]\\nzz = push\\n' > inc; git zz {R}",
		"mkdir -p hooks; printf '#!/bin/sh\\n{L}\\n' > hooks/post-commit; chmod +x hooks/post-commit; git config core.hooksPath hooks; git commit -q --allow-empty -m x; git config --unset core.hooksPath",
		"./unknown {L}", "./unknown -v {L}", "./shell '{L}'", "./shell --run='{L}'",
	},
	"rm":        {"rm -r -f canary", "rm -fr canary", "rm --recursive --force canary", "rm canary -rf", "rm -rfv canary", "rm -R -f canary", "rm -f -v -R canary", "rm -rf -- canary", "rm -v -rf canary", "rm --recurs --forc canary", "rm --rec -f canary"},
	"./npm":     {"./unknown {L}", "./shell 'true; {L}'", "./npm --silent publish", "./npm --registry x publish"},
	"./kubectl": {"./unknown -- {L}", "./kubectl -n x delete pod/x", "./kubectl --namespace=x delete pod/x"},
}

// written fills in a way to write an act.
func written(way string, d denied) string {
	hex := func(s string) string {
		var b strings.Builder
		for _, c := range []byte(s) {
			fmt.Fprintf(&b, `\x%02x`, c)
		}
		return b.String()
	}
	folder := d.program
	if strings.HasPrefix(folder, "./") {
		folder = "$PWD/" + folder[2:]
	} else if full, err := exec.LookPath(folder); err == nil {
		folder = full
	}
	p, a := len(d.program)-1, len(d.sub)/2
	return strings.NewReplacer(
		"{L}", d.line(), "{P}", d.program, "{A}", d.sub, "{R}", d.rest, "{B}", base64.StdEncoding.EncodeToString([]byte(d.line())), "{F}", folder, "{base}", "x",
		"{P'}{'P}", d.program[:p]+"''"+d.program[p:], "{A'}{'A}", d.sub[:a]+`""`+d.sub[a:], "{A1}", d.sub[:a], "{A2}", d.sub[a:],
		"{Phex}", hex(d.program), "{Ahex}", hex(d.sub), "{brace}", "{"+d.program+","+d.sub+","+strings.ReplaceAll(d.rest, " ", ",")+"}",
	).Replace(way)
}

// evasions are all ways to write all acts.
func evasions() map[string]denied {
	out := map[string]denied{}
	for _, d := range deniedActs {
		for _, way := range append(append([]string{}, anyWays...), ownWays[d.program]...) {
			out[written(way, d)] = d
		}
	}
	return out
}

// once are ways to write an act, so that all acts together have each way once.
func once(i int, d denied) []string {
	var out []string
	for w, way := range append(append([]string{}, anyWays...), ownWays[d.program]...) {
		if w >= len(anyWays) || w%len(deniedActs) == i {
			out = append(out, written(way, d))
		}
	}
	return out
}

// evasionFolder makes a work folder in which all the acts can be done.
func evasionFolder(t *testing.T, dir string) {
	t.Helper()
	for _, name := range []string{"npm", "curl", "kubectl"} {
		script := "#!/bin/sh\nfor a in \"$@\"; do : > \"" + name + "-$a\"; done 2> /dev/null\n"
		if err := os.WriteFile(filepath.Join(dir, name), []byte(script), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for name, script := range map[string]string{
		"unknown": "#!/bin/sh\nwhile case $1 in -*) true;; *) false;; esac; do shift; done\n\"$@\"\n", "shell": "#!/bin/sh\nexec sh -c \"${1#--run=}\"\n",
		"own.mk": "built:; $(CC)\n", "x.txt": "x\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(script), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for _, args := range [][]string{
		{"init", "-q", "-b", "main"},
		{"config", "user.name", "x"},
		{"config", "user.email", "x@example.com"},
		{"commit", "-q", "--allow-empty", "-m", "first"},
		{"init", "-q", "--bare", "out.git"},
		{"remote", "add", "out", "./out.git"},
	} {
		cmd := exec.CommandContext(t.Context(), "git", args...)
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
	}
	undone(t, dir)
}

// undone takes back what the acts do.
func undone(t *testing.T, dir string) {
	t.Helper()
	for _, d := range deniedActs {
		if name, canary := strings.CutPrefix(d.witness, "!"); canary {
			if err := os.MkdirAll(filepath.Join(dir, name), 0o700); err != nil {
				t.Fatal(err)
			}
		} else {
			_ = os.Remove(filepath.Join(dir, d.witness))
		}
	}
}

// done reports whether an act was done in a folder.
func (d denied) done(dir string) bool {
	name, gone := strings.CutPrefix(d.witness, "!")
	_, err := os.Lstat(filepath.Join(dir, name))
	return (err == nil) != gone
}

func TestRules_HoldHoweverAnActIsWritten(t *testing.T) {
	p := agent.Policy{Unattended: true, Rules: deniedRules()}
	if n := len(anyWays); n < 60 {
		t.Errorf("%d ways", n)
	}
	all := evasions()
	for _, line := range []string{
		"/lib64/ld-linux-x86-64.so.2 /bin/git push", "crontab - <<< '* * * * * git push'", "vim -es -c '!git push' -c q", "ed -s <<< '!git push'", "gosu x git push",
		"start-stop-daemon --start --exec /usr/bin/git -- push", "start-stop-daemon -S -x/usr/bin/git -- push", "start-stop-daemon --start --startas=/usr/bin/git -- push x", "run-parts ./dir", "run-parts --exit-on-error /etc/x",
		"apt-get -o APT::Update::Pre-Invoke::='git push' update", "apt -oDPkg::Pre-Invoke='git push' install x", "aptitude --option=DPkg::Post-Invoke::='git push' install x", "dpkg --pre-invoke='git push' -i x.deb",
		"git -c include.path=x status", "git -c includeIf.gitdir:/.path=x status", "git config set include.path x", "git clone --config core.sshCommand='git push' x y", "git config credential.helper '!git push'", "git init --template=/tmp/x",
		"systemd-run -p ExecStartPre='git push' true", "dbus-run-session -- git push", "unshare -r git push", "nsenter -t 1 git push", "setarch -R git push", "ionice -c 3 git push", "capsh -- -c 'git push'", "busybox sh -c 'git push'",
		"gdb --args git push", "gdb --eval-command='shell git push'", "lldb -o 'platform shell git push'", "less '+!git push' x", "man -P 'git push' ls", "man --pager='git push' ls", "vim -c ':terminal git push'", "vim -c 'py3 x'",
		"ssh -o 'proxycommand=git push' x", "ssh -oKnownHostsCommand='git push' x", "ssh -o Include=x y", "sftp x <<< '!git push'", "socat - EXEC:'git push'", "nc -c 'git push' x 1", "tcpdump -z 'git push' -G 1", "xterm -e git push",
		"fzf --bind 'enter:execute(git push)'", "nodemon --exec 'git push'", "go test -exec 'git push' ./...", "cargo --config 'target.x.runner=\"git push\"' run", "hg --config alias.x='!git push' x", "rpm -E '%(git push)'", "gcc -wrapper git,push x.c",
		"cmake -E env git push", "just -c git push", "gh alias set x '!git push'", "enable -f ./x.so x", "RSYNC_RSH='git push' rsync a b:c", "VIMINIT=':!git push' vim x", "MAKEFLAGS='--eval=x:;git' make", "TAR_OPTIONS='--to-command=./x' tar xf y; printf x > x",
	} {
		all[line] = deniedActs[0] // not every machine has these
	}
	for line := range all {
		if got := agent.Judged(p, "/work", line); got != agent.Deny {
			t.Errorf("%q: %q", line, got)
		}
		if got := agent.Judged(p, "/work", cmdline.Unwrap(line)); got != agent.Deny { // as Codex gives it
			t.Errorf("%q without its shell: %q", line, got)
		}
	}
	p.Unattended = false
	for line := range evasions() {
		if got := agent.Judged(p, "/work", line); got != agent.Deny && got != agent.Ask {
			t.Errorf("with somebody to ask, %q: %q", line, got)
		}
	}
}

// The evasions are none if they don't do what the rules refuse.
func TestRules_TheEvasionsWork(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	evasionFolder(t, dir)
	for i, d := range deniedActs {
		for _, line := range once(i, d) {
			cmd := exec.CommandContext(t.Context(), "bash", "-c", line)
			cmd.Dir = dir
			out, err := cmd.CombinedOutput()
			if !d.done(dir) {
				t.Errorf("%q does nothing: %v\n%s", line, err, out)
			}
			undone(t, dir)
		}
	}
}

// What the rules aren't about goes on: a rule that stands in the way of all work is taken out.
func TestRules_LeaveOtherCommandsAlone(t *testing.T) {
	p := agent.Policy{Unattended: true, Rules: deniedRules()}
	for _, line := range []string{
		"git status", "git -C . status && git log --oneline | head -5", "git add -A && git commit -m \"$(cat <<'EOF'\nDon't git push; rm -rf nothing\nEOF\n)\"", "git diff $BASE...HEAD -- '*.go'",
		"grep -rn 'git push' . | xargs grep -n \"rm -rf\"", "echo git push", "rm -f build/*.o", "rm -- \"$TMPDIR/x\"", "for f in *.go; do gofmt -l \"$f\"; done", "make -j$(nproc) test 2>&1 | tail -20",
		"cd \"$HOME/src\" && ./configure --prefix=\"$PWD/out\"", "npm install && npm run publish-docs", "./npm view x", "kubectl get pods -o json | jq '.items[]'", "GOFLAGS=-count=1 go test ./... | tee out.log",
		"docker run --rm -v \"$PWD:/w\" -w /w golang:1 go test ./...", "python3 -c 'print(1+1)'", "awk '{print $1}' x | sort -u", "find . -name '*.tmp' -exec rm -f {} \\;", "timeout 60 npm test", "sudo -n true",
		"env | sort", "export PATH=\"$HOME/bin:$PATH\"; tool --version", "x=$(git rev-parse HEAD); echo \"$x\"", "while read -r l; do echo \"$l\"; done < list", "bash scripts/test.sh -v", "source .venv/bin/activate && pytest -q",
		"cat > notes.md <<'E'\nrun git push and curl x\nE", "printf '%s\\n' a b > c; cat c", "node -e 'console.log(1)'", "sed -i 's/git push/git pull/' README.md", "xargs -0 ls < list", "test -n \"$CI\" || exit 1",
		"$HOME/go/bin/tool x", "if [ -f go.mod ]; then go vet ./...; else true; fi", "./run-tests.sh $ARGS", "trap 'rm -f x.tmp' EXIT; make", "cp a b && cat b", "time go build ./...", "((i++)) || true; echo ${#a}", "jj git fetch",
		"make -j4 test SHELL=/bin/bash", "make -f build.mk", "python3 -m pytest tests/test_system.py", "python manage.py shell", `node -e 'console.log(process.env.X || "y".split("|"))'`, `awk '$1 == "a" || $2 ~ /x|y/ { printf "%x", $3 }' f`,
		`awk -F'|' '{print $2}' f`, "vim -es f -c '%s/a/b/g' -c 'wq!'", `psql -c "select * from programs"`, "sqlite3 x.db 'select 1'", "sed -n '/the end/p;s/e /x/' f", "sed -e 's/a/b/' f", "sed -i '/debug/d' f", "tar -czf x.tgz --exclude=.git .", "tar -I zstd -xf x", "rsync -e ssh -a b:c .",
		"git config user.name 'A B'", "git config core.editor vim; git commit -m x", "git grep -n push", "git clone -u x y", "git rebase -x 'make test' main", "git commit -m 'fix `$(x)` in git push docs'", "X='$(date)'; echo \"$X\"", `test -v 'a[1]'`, "printf '%s' '$(pwd)'",
		"env -u A B=1 make", "script -qc 'make test' /dev/null", "crontab -l", "ssh -o BatchMode=yes host true", "npm exec -c 'eslint .'", "complete -C aws_completer aws", "hyperfine 'make test'", "git log --format='%x00' | perl -0ne 'print if /x|y/'",
		"ruby -e 'puts [1].map { |x| x }'", "perl -ne 'print if /a|b/' f", "echo x > .gitignore; git add .gitignore", "cp a config; git add config", "chmod --reference=a b", "rm --interactive=never x", "rm --verbose x",
		"git config --get core.hooksPath", "git -c core.hooksPath=/dev/null commit -m x", "git config include.path", "apt-get install -y -o Dpkg::Options::=--force-confold git curl", "apt install curl jq", "sed 's/the/e/' f", "sed -e 's|a|b|g;s/see/s/' f", "sed 's/e/s/g' paths/s/x/y/e",
		"sed -f prog.sed f", "mytool git status", "cargo test push", "eslint . \"$DIR\" --fix", "mytool $A $B", "mytool git $X", "go test -run 'TestX' ./...", "docker compose up -d", "make CFLAGS='-O2 -g' all", "gh pr create --title 'git push fails' --body 'rm -rf x'",
		"jj describe -m 'git push later'", "cmake -E make_directory x", "CC='ccache gcc' make", "sort -u f", "split -l 10 f", "vim -c 'set nu' f", "less +G log.txt", "mail -s hi a@b <<< 'Hello! World'", "gdb -batch -ex bt ./a.out core", "man git push", "pip install curl npm publish-helper",
		"start-stop-daemon --start --exec ./server -- --port 1", "run-parts --test /etc/cron.daily", "systemd-run -p MemoryMax=1G make", "ssh -o ConnectTimeout=5 host true", "fzf --preview 'cat {}'", "mytool deploy --message 'do not git push'", "kubectl get pods push",
	} {
		if got := agent.Judged(p, "/work", line); got == agent.Deny || got == agent.Ask || got == agent.DenyStop {
			t.Errorf("%q: %s", line, got)
		}
	}
}
