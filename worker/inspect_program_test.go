package worker

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"stint/api"
)

// stubs puts stand-ins of programs in a folder that is the whole PATH except for the system's.
func stubs(t *testing.T, scripts map[string]string) (path string) {
	t.Helper()
	dir := t.TempDir()
	for name, script := range scripts {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"+script), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	return dir + ":/usr/bin:/bin"
}

func checkOf(i Inspection, name string) api.Check {
	for _, c := range i.Checks {
		if c.Name == name {
			return c
		}
	}
	return api.Check{}
}

// Claude Code's sandbox is really tried, inside the owner's own where there is one: a worker
// whose agent couldn't run a single command must not look healthy.
func TestInspect_TriesTheSandboxInTheWrapper(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	o := w.options()
	path := stubs(t, map[string]string{
		"claude": "echo 2.1.328", "socat": "", "bwrap": `[ "$FENCED" != 1 ] || { echo "bwrap: Can't mount proc on /newroot/proc" >&2; exit 1; }`,
		"fence": `FENCED=1 exec "$@"`,
	})
	record := api.Agent{AgentInput: api.AgentInput{Slug: "boxed", Type: api.TypeClaudeCode, Run: api.Run{WorkFolder: t.TempDir()}}}
	for wrapper, wrong := range map[string]string{"": "", "wrapper = ['fence']\n": "Can't mount proc"} {
		w.owns(o, "boxed", "type = 'claude_code'\n"+wrapper)
		got := checkOf(Inspect(t.Context(), o.StateDir, record, "boxed", []string{"PATH=" + path, "HOME=" + w.dir}), "sandbox")
		if got.Name == "" || got.OK != (wrong == "") || !strings.Contains(got.Detail, wrong) {
			t.Errorf("with %q: %+v", wrapper, got)
		}
	}
	w.owns(o, "boxed", "type = 'claude_code'\nrules = [{area = 'filesystem', ruling = 'allow'}, {area = 'network', ruling = 'allow'}, {area = 'shell', ruling = 'allow'}]\n")
	if got := checkOf(Inspect(t.Context(), o.StateDir, record, "boxed", []string{"PATH=" + path, "HOME=" + w.dir}), "sandbox"); got.Name != "" {
		t.Errorf("what has no sandbox is tried: %+v", got)
	}
}

// Codex may be started with a model provider that needs no sign-in to Codex. A provider that
// only the user's settings name isn't used, and the report says so.
func TestInspect_CodexWithAnotherModelProvider(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	o := w.options()
	home := t.TempDir()
	path := stubs(t, map[string]string{"codex": `case "$*" in
*--version) echo 0.169.0 ;;
*"login status") exit 1 ;;
*app-server)
	needs=true
	case "$*" in *model_provider*) needs=false ;; esac
	[ -e "$CODEX_HOME/config.toml" ] && needs=false
	while read -r line; do
		case "$line" in *account/read*) echo '{"id":2,"result":{"account":null,"requiresOpenaiAuth":'$needs'}}' ;; esac
	done ;;
esac`})
	w.must(os.WriteFile(filepath.Join(home, "config.toml"), []byte("model_provider = 'mine'\n"), 0o600))
	record := api.Agent{AgentInput: api.AgentInput{Slug: "codex", Type: api.TypeCodex, Run: api.Run{WorkFolder: t.TempDir()}}}
	for own, c := range map[string]struct {
		fine bool
		says string
	}{
		"executable = ['codex', '-c', 'model_provider=mine']\n": {true, "needs no Codex sign-in"},
		"own_settings = true\nenv = ['CODEX_HOME']\n":           {true, "needs no Codex sign-in"},
		"env = ['CODEX_HOME']\n[uses]\nprovider = true\n":       {true, "needs no Codex sign-in"},
		"env = ['CODEX_HOME']\n":                                {false, `"mine"`},
		"":                                                      {false, "codex login"},
	} {
		w.owns(o, "codex", "type = 'codex'\n"+own)
		i := Inspect(t.Context(), o.StateDir, record, "codex", []string{"PATH=" + path, "HOME=" + w.dir, "CODEX_HOME=" + home})
		if got := checkOf(i, "sign-in"); got.OK != c.fine || !strings.Contains(got.Detail, c.says) || i.Fine() != c.fine {
			t.Errorf("with %q: %+v of %+v", own, got, i.Checks)
		}
	}
}

// A program that speaks ACP introduces itself, within the owner's wrapper; one that speaks another
// version, or nothing that can be read, doesn't look healthy.
func TestInspect_MeetsAProgramByACP(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	o := w.options()
	says := func(result string) string {
		return `[ "$1" = acp ] || exit 3
read -r line
echo "noise"
echo '{"jsonrpc":"2.0","id":1,"result":` + result + `}'
cat > /dev/null`
	}
	path := stubs(t, map[string]string{
		"opencode": says(`{"protocolVersion":1,"agentCapabilities":{"loadSession":true},"agentInfo":{"name":"x","version":"9.8"}}`),
		"old":      says(`{"protocolVersion":0}`), "mute": "exit 4", "forgets": says(`{"protocolVersion":1,"agentInfo":{"version":"1.0"}}`),
		"fence": `exec "$@"`,
	})
	record := api.Agent{AgentInput: api.AgentInput{Slug: "robot", Type: api.TypeACP, Run: api.Run{WorkFolder: t.TempDir(), Executable: "opencode"}}}
	for own, c := range map[string]struct {
		fine    bool
		version string
		says    string
	}{
		"":                                         {true, "9.8", ""},
		"wrapper = ['fence']\n":                    {true, "9.8", ""},
		"executable = ['forgets', 'acp']\n":        {true, "1.0", "begins anew"},
		"executable = ['old', 'acp']\n":            {false, "", "speaks version 0"},
		"executable = ['mute', 'acp']\n":           {false, "", "ended without an answer"},
		"executable = ['opencode', '--version']\n": {false, "", "ended without an answer"},
	} {
		w.owns(o, "robot", "type = 'acp'\n"+own)
		i := Inspect(t.Context(), o.StateDir, record, "robot", []string{"PATH=" + path, "HOME=" + w.dir})
		got := checkOf(i, "protocol")
		if got.OK != c.fine || got.Name == "" || !strings.Contains(got.Detail, c.says) || i.Program.Version != c.version || i.Fine() != c.fine {
			t.Errorf("with %q: %+v, version %q of %+v", own, got, i.Program.Version, i.Checks)
		}
	}
}
