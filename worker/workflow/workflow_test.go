package workflow

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func env(name string) string {
	return map[string]string{"HOME": "/home/ann", "TREES": "/srv/trees"}[name]
}

func mustParse(t *testing.T, text string) Workflow {
	t.Helper()
	w, err := parse("/repo/WORKFLOW.md", []byte(text), env)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// all is a file that sets every supported field, each to something other than its default.
const all = `---
workspace:
  root: $TREES/x
  repository: ../app
  mode: worktree
  base_branch: origin/main
  directory: cmd/app/
hooks:
  after_create: |
    echo one
    echo two
  before_run: echo before
  after_run: "echo after"
  before_remove: >
    echo
    gone
  timeout_ms: 1500
agent:
  max_concurrent_agents: 3
  max_turns: "7"
  max_retry_backoff_ms: 20000
  max_retry_attempts: 2
codex:
  command: /opt/bin/codex app-server
  turn_timeout_ms: 60000
  stall_timeout_ms: -1
  read_timeout_ms: 2000
polling:
  interval_ms: 5000
---

Do it.
`

func TestParse_EverySupportedFieldIsObeyed(t *testing.T) {
	w := mustParse(t, all)
	want := Config{
		Workspace: Workspace{Root: "/srv/trees/x", Repository: "/app", Mode: ModeWorktree, BaseBranch: "origin/main", Directory: "cmd/app"},
		Hooks: Hooks{
			AfterCreate: "echo one\necho two\n", BeforeRun: "echo before", AfterRun: "echo after", BeforeRemove: "echo gone\n",
			Timeout: 1500 * time.Millisecond,
		},
		Agent:        Agent{MaxConcurrent: 3, MaxTurns: 7, MaxRetryBackoff: 20 * time.Second, MaxRetryAttempts: 2},
		Codex:        Codex{Command: []string{"/opt/bin/codex", "app-server"}, TurnTimeout: time.Minute, StallTimeout: 0, ReadTimeout: 2 * time.Second},
		PollInterval: 5 * time.Second,
	}
	if diff := cmp.Diff(want, w.Config); diff != "" {
		t.Error(diff)
	}
	if w.Template != "Do it." || len(w.Ignored) != 0 {
		t.Errorf("template %q, ignored %v", w.Template, w.Ignored)
	}
	for name := range supported {
		if !w.Says(name) {
			t.Errorf("%s is supported and not in the test's file", name)
		}
	}
}

func TestParse_DefaultsWithoutFields(t *testing.T) {
	for _, text := range []string{
		"Just a prompt", "---\n---\nJust a prompt", "---\n# nothing yet\n---\nJust a prompt",
		"---\nhooks:\ncodex:\n  command:\n---\r\nJust a prompt\r\n", "\ufeff---\r\nhooks: {}\r\n---\r\nJust a prompt",
	} {
		w := mustParse(t, text)
		if diff := cmp.Diff(Defaults(), w.Config); diff != "" {
			t.Errorf("%q: %s", text, diff)
		}
		if w.Template != "Just a prompt" || len(w.Executing()) != 0 {
			t.Errorf("%q: template %q, executing %v", text, w.Template, w.Executing())
		}
	}
}

func TestParse_IgnoredFieldsAreEachNamed(t *testing.T) {
	w := mustParse(t, `---
tracker:
  kind: linear
  provider: {api_key: $KEY, a: [1, 2]}
server: {port: 80}
thread_sandbox: x
agent:
  max_concurrent_agents_by_state: {todo: 1}
  colour: blue
codex:
  approval_policy: never
  thread_sandbox: danger-full-access
  turn_sandbox_policy: {type: dangerFullAccess}
---`)
	want := []string{
		"tracker.kind", "tracker.provider", "server", "thread_sandbox", "agent.max_concurrent_agents_by_state", "agent.colour",
		"codex.approval_policy", "codex.thread_sandbox", "codex.turn_sandbox_policy",
	}
	var got []string
	for _, i := range w.Ignored {
		got = append(got, i.Field)
		if i.Reason == "" || i.Line < 2 {
			t.Errorf("%+v says neither why nor where", i)
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("ignored %q, want %q", got, want)
	}
	if diff := cmp.Diff(Defaults(), w.Config); diff != "" {
		t.Error(diff)
	}
}

func TestParse_BadValuesNameTheirFieldAndLine(t *testing.T) {
	for _, c := range []struct{ field, value string }{
		{"workspace.mode", "tree"},
		{"workspace.directory", "../x"},
		{"workspace.directory", "/x"},
		{"workspace.root", "~bob/x"},
		{"workspace.root", "$NOWHERE/x"},
		{"workspace.root", "[a, b]"},
		{"workspace.root", "7"},
		{"workspace.base_branch", "--upload-pack=x"},
		{"workspace.base_branch", "a..b"},
		{"hooks.after_create", "true"},
		{"hooks.before_run", "{a: b}"},
		{"hooks.timeout_ms", "soon"},
		{"hooks.timeout_ms", "0"},
		{"hooks.timeout_ms", "1.5"},
		{"hooks.timeout_ms", "99999999999999999999"},
		{"agent.max_concurrent_agents", "0"},
		{"agent.max_turns", "-1"},
		{"agent.max_retry_backoff_ms", "true"},
		{"agent.max_retry_attempts", "-1"},
		{"codex.turn_timeout_ms", "0"},
		{"codex.read_timeout_ms", "''"},
		{"codex.stall_timeout_ms", "99999999999"},
		{"polling.interval_ms", "-5"},
		{"codex.command", "codex exec"},
		{"codex.command", "bin/codex app-server"},
		{"codex.command", "/bin/sh app-server"},
		{"codex.command", "codex app-server; touch /tmp/x"},
		{"codex.command", "codex --config x=y app-server"},
		{"codex.command", "'codex app-server $(touch /tmp/x)'"},
		{"codex.command", "\"codex app-server\\ntouch /tmp/x\""},
	} {
		section, name, _ := strings.Cut(c.field, ".")
		_, err := parse("/repo/WORKFLOW.md", fmt.Appendf(nil, "---\n%s:\n  # why\n  %s: %s\n---\n", section, name, c.value), env)
		var bad *Error
		if !errors.As(err, &bad) || bad.Code != Invalid || len(bad.Problems) != 1 || bad.Problems[0].Field != c.field || bad.Problems[0].Line != 4 {
			t.Errorf("%s: %s: %v", c.field, c.value, err)
		}
	}
}

func TestParse_AllBadFieldsAtOnce(t *testing.T) {
	_, err := parse("/repo/WORKFLOW.md", []byte("---\nhooks: 5\nagent:\n  max_turns: x\n  max_retry_attempts: -1\n---"), env)
	var bad *Error
	if !errors.As(err, &bad) || len(bad.Problems) != 3 {
		t.Fatal(err)
	}
}

func TestParse_UnusableFiles(t *testing.T) {
	for text, code := range map[string]Code{
		"---\n- a\n- b\n---":             NotAMap,
		"---\nplain words\n---":          NotAMap,
		"---\na: 1\n---\n":               "",
		"---\na: [1\n---\n":              Unparsable,
		"---\na: 1\na: 2\n---\n":         Unparsable,
		"---\n\ta: 1\n---\n":             Unparsable,
		"\xff\xfe":                       Unparsable,
		"":                               Unparsable, // as an editor leaves it for a moment
		"\ufeff \r\n\n":                  Unparsable,
		"---\n# soon\n---\n":             Unparsable,
		"<!-- x -->":                     Unparsable,
		"\n<!-- x\n\ny -->\n<!--z":       Unparsable,
		"\u200b\n":                       Unparsable,
		"\u00ad\u2060":                   Unparsable,
		"---\n---\n\ufeff":               Unparsable,
		"{{/* c */}}":                    Unparsable,
		"---\n{}\n---\n{# c #}":          Unparsable,
		"{% comment %}c{% endcomment %}": Unparsable,
		"---\n---\n{{ \"\" }}\n":         Unparsable,
		"<!-- x --> go":                  "",
		"去":                              "",
		"🚀":                              "",
		"---\na: 1\n":                    "", // never closed: all front matter, as in Symphony
		"---\nx: *gone\n---\nyes":        "",
		"---\nx: " + strings.Repeat("[", 8<<10) + "\n---\n":  Unparsable,
		"---\nx: " + strings.Repeat("y", 33<<10) + "\n---\n": Unparsable,
	} {
		_, err := parse("/repo/WORKFLOW.md", []byte(text), env)
		var bad *Error
		errors.As(err, &bad)
		if (bad == nil) != (code == "") || bad != nil && bad.Code != code {
			t.Errorf("%.40q: %v, want %q", text, err, code)
		}
	}
}

func TestParse_AliasesAreFollowedOnceAndBombsCostNothing(t *testing.T) {
	bomb := "---\na: &a [x, x, x, x, x, x, x, x, x, x]\n"
	for i := range 20 {
		bomb += fmt.Sprintf("%c: &%c [*%c, *%c, *%c, *%c, *%c, *%c, *%c, *%c]\n", 'b'+i, 'b'+i, 'a'+i, 'a'+i, 'a'+i, 'a'+i, 'a'+i, 'a'+i, 'a'+i, 'a'+i)
	}
	w := mustParse(t, bomb+"limits: &l 4\nscript: &s |\n  echo hi\nagent:\n  max_turns: *l\nhooks:\n  before_run: *s\n---\n")
	if w.Config.Agent.MaxTurns != 4 || w.Config.Hooks.BeforeRun != "echo hi\n" {
		t.Errorf("%+v", w.Config)
	}
}

func TestParse_Paths(t *testing.T) {
	for text, want := range map[string]string{
		"~/trees": "/home/ann/trees", "'~'": "/home/ann", "$TREES": "/srv/trees", "${TREES}/a": "/srv/trees/a", "trees": "/repo/trees",
		"./a/../b/": "/repo/b", "/x//y": "/x/y", "$UNSET": "", "''": "", "'~x~/a'": "bad", "a~b": "/repo/a~b",
	} {
		w, err := parse("/repo/WORKFLOW.md", []byte("---\nworkspace:\n  root: "+text+"\n---"), env)
		if want == "bad" {
			if err == nil {
				t.Errorf("%s is taken as %q", text, w.Config.Workspace.Root)
			}
			continue
		}
		if err != nil || w.Config.Workspace.Root != want {
			t.Errorf("%s is %q, want %q (%v)", text, w.Config.Workspace.Root, want, err)
		}
	}
}

func TestLoad_NotAFile(t *testing.T) {
	dir := t.TempDir()
	big := filepath.Join(dir, "big")
	if err := os.WriteFile(big, make([]byte, MaxSize+1), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{dir, filepath.Join(dir, "none"), big, "/dev/zero", "WORKFLOW.md"} {
		var bad *Error
		if _, err := Load(path, env); !errors.As(err, &bad) || bad.Code != Missing {
			t.Errorf("%s: %v", path, err)
		}
	}
}

func TestExecuting_DigestFollowsValuesAlone(t *testing.T) {
	w := mustParse(t, all)
	digest := w.Executing().Digest()
	same := mustParse(t, strings.ReplaceAll(strings.ReplaceAll(all, "Do it.", "Do something else."), "max_turns: \"7\"", "max_turns: 8 # more"))
	if got := same.Executing().Digest(); got != digest {
		t.Error("a template or a limit changes the digest")
	}
	for _, change := range [][2]string{
		{"$TREES/x", "$TREES/y"},
		{"../app", "../other"},
		{"worktree", "folder"},
		{"origin/main", "main"},
		{"cmd/app/", "cmd"},
		{"echo one", "echo One"},
		{"echo before", "echo  before"},
		{"echo after", "echo after;"},
		{"    gone", "    forever"},
		{"timeout_ms: 1500", "timeout_ms: 1501"},
		{"/opt/bin/codex", "/opt/codex"},
		{"  before_run: echo before\n", ""},
	} {
		if got := mustParse(t, strings.Replace(all, change[0], change[1], 1)).Executing().Digest(); got == digest {
			t.Errorf("%q to %q leaves the digest as it is", change[0], change[1])
		}
	}
}

func TestWith_KeepsApprovedPartsAndTakesTheRest(t *testing.T) {
	approved := mustParse(t, "---\nhooks:\n  before_run: good\n---\nold").Executing()
	changed := mustParse(t, "---\nhooks:\n  before_run: evil\n  after_run: evil\nworkspace:\n  root: /evil\nagent:\n  max_turns: 3\n---\nnew")
	w, err := changed.With(approved)
	if err != nil {
		t.Fatal(err)
	}
	want := Defaults()
	want.Hooks.BeforeRun, want.Agent.MaxTurns = "good", 3
	if diff := cmp.Diff(want, w.Config); diff != "" {
		t.Error(diff)
	}
	if w.Template != "new" || w.Executing().Digest() != approved.Digest() {
		t.Errorf("%q, %v", w.Template, w.Executing())
	}
	if changed.Config.Hooks.BeforeRun != "evil" {
		t.Error("With changed its receiver")
	}
	if _, err := changed.With(Executing{"codex.command": "sh", "agent.max_turns": "99"}); err == nil {
		t.Error("a command that is none is taken from what was approved")
	}
}

func TestExecuting_StringHidesNothing(t *testing.T) {
	e := Executing{"hooks.before_run": "echo ok\r\x1b[2K\u202eecho bad\n\techo more\n"}
	if got, want := e.String(), "hooks.before_run:\n    echo ok\\r\\x1b[2K\\u202eecho bad\n    \techo more\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
