package setup

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"stint/api"
	"stint/worker/agent"
	"stint/worker/workflow"
)

// owned is an owner's folder with one file of settings in it.
func owned(t *testing.T, text string) Files {
	t.Helper()
	t.Setenv("HOME", t.TempDir())
	f := Files(t.TempDir())
	put(t, f.Path("robot"), text)
	return f
}

func put(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

const everything = `
type = "claude_code"
executable = ["/opt/claude", "--verbose"]
model = "large"
name = "nightly"
keep_ignored = ["*.db"]
preset = "unattended"
permissions = "approval"
otherwise = "deny_stop"
own_settings = true
stint_tools = true
task_updates = ["completed", "failed"]
instructions = "Be kind."
folder = "~/app/"
shared = true
workflow = "~/app/WORKFLOW.md"
env = ["LANG_X"]
env_files = ["~/.secrets"]
wrapper = ["bwrap", "--ro-bind", "/", "/"]
max_retries = 0
land = "pull_request"
land_protected = ["release/*"]

[workspace]
mode = "worktree"
root = "/srv/trees"
base_branch = "main"
directory = "cmd"

[spend]
session_usd = 1.5
session_tokens = 1000

[uses]
skills = true

[[rules]]
area = "shell"
pattern = "git push*"
ruling = "deny"
`

func TestAgent_EverySettingIsRead(t *testing.T) {
	f := owned(t, everything)
	home := os.Getenv("HOME")
	none := 0
	want := Agent{
		Type: api.TypeClaudeCode, Executable: []string{"/opt/claude", "--verbose"}, Model: "large", Name: "nightly", KeepIgnored: []string{"*.db"}, Preset: "unattended",
		Permissions: agent.Approval, Otherwise: agent.DenyStop, OwnSettings: true, StintTools: true, TaskUpdates: &[]string{"completed", "failed"}, Instructions: "Be kind.",
		Folder: home + "/app", Shared: true, Workflow: home + "/app/WORKFLOW.md", Env: []string{"LANG_X"}, EnvFiles: []string{home + "/.secrets"},
		Wrapper: []string{"bwrap", "--ro-bind", "/", "/"}, MaxRetries: &none,
		Land: api.LandPullRequest, LandProtected: []string{"release/*"},
		Workspace: Workspace{Mode: "worktree", Root: "/srv/trees", BaseBranch: "main", Directory: "cmd"},
		Spend:     Spend{SessionUSD: 1.5, SessionTokens: 1000}, Uses: agent.Uses{Skills: true},
		Rules: []agent.Rule{{Area: agent.Shell, Pattern: "git push*", Ruling: agent.Deny}},
	}
	got, found, err := f.Agent("robot")
	if err != nil || !found {
		t.Fatal(found, err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if err := f.Save("other", got); err != nil {
		t.Fatal(err)
	}
	again, _, err := f.Agent("other")
	if diff := cmp.Diff(want, again); diff != "" || err != nil {
		t.Error(diff, err)
	}
	if info, err := os.Stat(f.Path("other")); err != nil || info.Mode().Perm() != 0o600 {
		t.Error(info, err)
	}
	if slugs, err := f.Slugs(); err != nil || cmp.Diff([]string{"other", "robot"}, slugs) != "" {
		t.Error(slugs, err)
	}
	if got.Spend.SessionMicros() != 1_500_000 {
		t.Error(got.Spend)
	}
}

func TestAgent_WithoutAFile(t *testing.T) {
	f := Files(filepath.Join(t.TempDir(), "none"))
	a, found, err := f.Agent("robot")
	if diff := cmp.Diff(Agent{}, a); diff != "" || found || err != nil {
		t.Error(diff, found, err)
	}
	if slugs, err := f.Slugs(); len(slugs) != 0 || err != nil {
		t.Error(slugs, err)
	}
}

func TestAgent_WhatIsUnfitIsNamed(t *testing.T) {
	for text, want := range map[string]string{
		`modle = "x"`:                                        "modle: no setting of this name",
		"[workspace]\nmodes = 1":                             "workspace.modes: no setting of this name is known (line 2)",
		`type = "robot"`:                                     "type: ",
		`type = 5`:                                           "type: ",
		"[spend]\nsession_usd = \"much\"":                    "spend.session_usd: ",
		`preset = "wild"`:                                    "preset: ",
		"type = \"codex\"\npreset = \"command\"":             "preset: ",
		`permissions = "all"`:                                "permissions: ",
		`otherwise = "maybe"`:                                "otherwise: ",
		`executable = [""]`:                                  "executable: ",
		`executable = "claude"`:                              "executable: ",
		`wrapper = ["bwrap", "\u0000"]`:                      "wrapper: ",
		`instructions = "` + strings.Repeat("x", 2001) + `"`: "instructions: ",
		`env = ["A=B"]`:                                      "env: ",
		`env = ["STINT_TOKEN"]`:                              "env: ",
		`folder = "app"`:                                     "folder: ",
		`workflow = "./WORKFLOW.md"`:                         "workflow: ",
		`env_files = ["x"]`:                                  "env_files: ",
		"[workspace]\nmode = \"tree\"":                       "workspace.mode: ",
		"[workspace]\nroot = \"trees\"":                      "workspace.root: ",
		"[workspace]\ndirectory = \"../x\"":                  "workspace.directory: ",
		"[workspace]\nbase_branch = \"--force\"":             "workspace.base_branch: ",
		`keep_ignored = ["["]`:                               "keep_ignored: ",
		`may_leave = ["["]`:                                  "may_leave: ",
		`land = "everything"`:                                "land: ",
		`land_protected = ["[x"]`:                            "land_protected: ",
		`task_updates = ["done"]`:                            "task_updates: ",
		`name = "` + strings.Repeat("x", 65) + `"`:           "name: ",
		`max_retries = -1`:                                   "max_retries: ",
		"[uses]\nmagic = true":                               "uses.magic: ",
		"type = \"codex\"\n[uses]\nsettings = true":          "uses.settings: ",
		"[spend]\nsession_tokens = -1":                       "spend: ",
		"[[rules]]\narea = \"sky\"\nruling = \"ask\"":        "rules[0].area: ",
		"[[rules]]\narea = \"shell\"":                        "rules[0].ruling: ",
		"folder = \"/a\"\nfolder = \"/b\"":                   "folder",
		"folder":                                             "line 1",
	} {
		f := owned(t, text)
		_, _, err := f.Agent("robot")
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), f.Path("robot")) {
			t.Errorf("%s\n got %v\nwant …%s…", text, err, want)
		}
	}
}

func TestAgent_FilesThatOthersCanWriteAreRefused(t *testing.T) {
	f := owned(t, `model = "x"`)
	for _, at := range []string{f.Path("robot"), filepath.Dir(f.Path("robot"))} {
		for _, bits := range []os.FileMode{0o020, 0o002} {
			info, err := os.Stat(at)
			if err != nil {
				t.Fatal(err)
			}
			if err := os.Chmod(at, info.Mode().Perm()|bits); err != nil {
				t.Fatal(err)
			}
			if _, _, err := f.Agent("robot"); !errors.Is(err, ErrExposed) {
				t.Errorf("%s with mode %o: %v", at, info.Mode().Perm()|bits, err)
			}
			if err := os.Chmod(at, info.Mode().Perm()); err != nil {
				t.Fatal(err)
			}
		}
	}
	if _, _, err := f.Agent("robot"); err != nil {
		t.Fatal(err)
	}
	open := t.TempDir()
	put(t, filepath.Join(open, "shared.toml"), `model = "x"`)
	if err := os.Chmod(open, 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join(open, "shared.toml"), f.Path("linked")); err != nil {
		t.Fatal(err)
	}
	if _, _, err := f.Agent("linked"); !errors.Is(err, ErrExposed) {
		t.Errorf("a link into a folder that all can write: %v", err)
	}
}

func TestFiles_SlugsArePlainNames(t *testing.T) {
	f := owned(t, "")
	for _, slug := range []string{"", "../robot", "a/b", "Robot", "x", "-a"} {
		if _, _, err := f.Agent(slug); err == nil {
			t.Errorf("%q is taken", slug)
		}
		if err := f.Save(slug, Agent{}); err == nil {
			t.Errorf("%q is written", slug)
		}
		if _, err := f.Accepted(slug); err == nil {
			t.Errorf("%q is taken as accepted", slug)
		}
	}
}

func TestPresets(t *testing.T) {
	rule := []agent.Rule{{Area: agent.Shell, Pattern: "go test*", Ruling: agent.Allow}}
	for _, c := range []struct {
		a      Agent
		rights agent.Permissions
		policy agent.Policy
	}{
		{Agent{}, agent.Approval, agent.Policy{}},
		{Agent{Preset: DefaultPreset, Rules: rule}, agent.Approval, agent.Policy{Rules: []agent.Rule{{Area: agent.Shell, Pattern: "go test*", Ruling: agent.Allow}}}},
		{Agent{Preset: "unattended"}, agent.Approval, agent.PolicyOf(api.Presets()[1].Run)},
		{Agent{Preset: "autonomous"}, agent.Autonomous, agent.Policy{Otherwise: agent.Deny, Unattended: true}},
		{Agent{Preset: "autonomous", Otherwise: agent.DenyStop, Permissions: agent.Approval, Rules: rule}, agent.Approval, agent.Policy{
			Otherwise: agent.DenyStop, Unattended: true, Rules: []agent.Rule{{Area: agent.Shell, Pattern: "go test*", Ruling: agent.Allow}},
		}},
	} {
		if c.a.Rights() != c.rights {
			t.Errorf("%+v gives %s, want %s", c.a, c.a.Rights(), c.rights)
		}
		if diff := cmp.Diff(c.policy, c.a.Policy()); diff != "" {
			t.Errorf("%+v: %s", c.a, diff)
		}
	}
}

// flow is a workflow read from a file with this text.
func flow(t *testing.T, text string) workflow.Workflow {
	t.Helper()
	path := filepath.Join(t.TempDir(), "WORKFLOW.md")
	put(t, path, text)
	w, err := workflow.Load(path, func(string) string { return "" })
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func TestUnder_TheOwnersFileCountsFirst(t *testing.T) {
	w := flow(t, "---\nworkspace: {repository: /w/repo, mode: worktree, root: /w/root, base_branch: w, directory: w}\nagent: {max_retry_attempts: 5}\ncodex: {command: /w/codex app-server}\n---")
	five, one := 5, 1
	for _, c := range []struct{ a, want Agent }{
		{
			Agent{Type: api.TypeCodex},
			Agent{Type: api.TypeCodex, Folder: "/w/repo", Executable: []string{"/w/codex"}, MaxRetries: &five, Workspace: Workspace{"worktree", "/w/root", "w", "w"}},
		},
		{Agent{}, Agent{Folder: "/w/repo", MaxRetries: &five, Workspace: Workspace{"worktree", "/w/root", "w", "w"}}},
		{
			Agent{Type: api.TypeCodex, Folder: "/o", Executable: []string{"/o/codex"}, MaxRetries: &one, Workspace: Workspace{"folder", "/o/root", "o", "o"}},
			Agent{Type: api.TypeCodex, Folder: "/o", Executable: []string{"/o/codex"}, MaxRetries: &one, Workspace: Workspace{"folder", "/o/root", "o", "o"}},
		},
	} {
		if diff := cmp.Diff(c.want, c.a.Under(w)); diff != "" {
			t.Error(diff)
		}
	}
	if got := (Agent{Type: api.TypeCodex}).Under(flow(t, "prompt")); cmp.Diff(Agent{Type: api.TypeCodex}, got) != "" {
		t.Errorf("a workflow that says nothing changes %+v", got)
	}
}

func TestFollow_OnlyAcceptedPartsRun(t *testing.T) {
	good := flow(t, "---\nhooks: {before_run: good}\n---\nold")
	evil := good
	evil, err := evil.With(workflow.Executing{"hooks.before_run": "evil"})
	if err != nil {
		t.Fatal(err)
	}
	accepted := func(w workflow.Workflow, path string) Accepted {
		return Accepted{Workflow: &AcceptedWorkflow{Path: path, Digest: w.Executing().Digest(), Executing: w.Executing()}}
	}
	for _, c := range []struct {
		name    string
		a       Accepted
		file    workflow.Workflow
		runs    string
		changed bool
	}{
		{"accepted as it is", accepted(good, good.Path), good, "good", false},
		{"changed since", accepted(good, good.Path), evil, "good", true},
		{"never accepted", Accepted{}, evil, "", true},
		{"accepted at another path", accepted(good, "/elsewhere"), good, "", true},
		{"nothing to accept", Accepted{}, flow(t, "only a prompt"), "", false},
	} {
		got, changed, err := c.a.Follow(c.file)
		if err != nil || changed != c.changed || got.Config.Hooks.BeforeRun != c.runs || got.Template != c.file.Template {
			t.Errorf("%s: runs %q, changed %v, %v", c.name, got.Config.Hooks.BeforeRun, changed, err)
		}
	}
}

func TestAccept_IsStoredExactly(t *testing.T) {
	f := owned(t, "")
	if got, err := f.Accepted("robot"); err != nil || cmp.Diff(Accepted{}, got) != "" {
		t.Fatal(got, err)
	}
	run := api.Run{Command: []string{"a", "b"}, WorkFolder: "/x", Env: []string{"E"}}
	digest, err := RunDigest(api.TypeCommand, run, "be kind")
	if err != nil {
		t.Fatal(err)
	}
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	e := workflow.Executing{"hooks.before_run": "echo \"a\\b\"\n\techo 'c' \u202e\n", "hooks.timeout_ms": "5"}
	want := Accepted{Run: &AcceptedRun{digest, "ann", at}, Workflow: &AcceptedWorkflow{"/x/WORKFLOW.md", e.Digest(), at, e}}
	if err := f.Accept("robot", want); err != nil {
		t.Fatal(err)
	}
	got, err := f.Accepted("robot")
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Error(diff, err)
	}
	bare := api.Run{Command: run.Command, WorkFolder: run.WorkFolder}
	with := bare
	with.Env = []string{}
	one, err := RunDigest(api.TypeCommand, bare, "")
	two, err2 := RunDigest(api.TypeCommand, with, "")
	if err != nil || err2 != nil || one != two {
		t.Error("an empty list isn't as a missing one")
	}
	if !got.Runs(digest) || (Accepted{}).Runs("") {
		t.Error("what was accepted doesn't run, or what wasn't does")
	}
	for _, other := range []struct {
		kind api.AgentType
		run  api.Run
		text string
	}{
		{api.TypeCodex, run, "be kind"},
		{api.TypeCommand, api.Run{Command: []string{"a b"}, WorkFolder: "/x", Env: []string{"E"}}, "be kind"},
		{api.TypeCommand, api.Run{Command: run.Command, WorkFolder: "/y", Env: run.Env}, "be kind"},
		{api.TypeCommand, api.Run{Command: run.Command, WorkFolder: "/x"}, "be kind"},
		{api.TypeCommand, run, "be cruel"},
	} {
		if d, err := RunDigest(other.kind, other.run, other.text); err != nil || d == digest {
			t.Errorf("%+v has the digest of another (%v)", other, err)
		}
	}
	text, err := os.ReadFile(filepath.Join(string(f), "accepted", "robot.toml"))
	if err != nil {
		t.Fatal(err)
	}
	put(t, filepath.Join(string(f), "accepted", "robot.toml"), strings.Replace(string(text), "echo", "evil", 1))
	if _, err := f.Accepted("robot"); err == nil {
		t.Error("content that isn't what the digest names is taken as accepted")
	}
}

// What is accepted counts for exactly that content of that name; several forms of one name may be.
func TestUnaccepted_IsWhatChanged(t *testing.T) {
	one := agent.Source{Use: "tool_servers", Name: ".mcp.json", Runs: true, Digest: "1"}
	two, own, elsewhere := one, one, one
	two.Digest, own.Home, elsewhere.Name = "2", true, "../.mcp.json"
	all := []agent.Source{one, own}
	a := Accepted{}.With(all, time.Now())
	if len(a.Uses) != 1 || len(a.Unaccepted(all)) != 0 {
		t.Errorf("accepted %+v", a)
	}
	for _, other := range []agent.Source{two, elsewhere} {
		if left := a.Unaccepted([]agent.Source{one, other}); len(left) != 1 || left[0] != other {
			t.Errorf("left %+v", left)
		}
	}
	if a = a.With([]agent.Source{two}, time.Now()); len(a.Unaccepted([]agent.Source{one, two})) != 0 {
		t.Error("the form of another worktree is forgotten")
	}
	f := owned(t, "")
	if err := f.Accept("robot", a); err != nil {
		t.Fatal(err)
	}
	got, err := f.Accepted("robot")
	if err != nil || len(got.Unaccepted([]agent.Source{one, two})) != 0 {
		t.Error(got, err)
	}
	if used := (Agent{OwnSettings: true}).Used(); used != agent.UsesAll {
		t.Errorf("own_settings is %+v", used)
	}
}

func TestVariables(t *testing.T) {
	dir := t.TempDir()
	first, second := filepath.Join(dir, "a.env"), filepath.Join(dir, "b.env")
	put(t, first, "# secrets\nexport A=one two\n\nB='pa$$ = \"x\"'\nC=\"\nD=\n")
	put(t, second, "A=three\r\nE=\"quoted\"\r\n")
	got, err := Agent{EnvFiles: []string{first, second}}.Variables()
	want := map[string]string{"A": "three", "B": `pa$$ = "x"`, "C": `"`, "D": "", "E": "quoted"}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Error(diff, err)
	}
	for _, text := range []string{"no assignment: hunter2", "=hunter2", "A B=hunter2", "STINT_TOKEN=hunter2", "A=\x00hunter2"} {
		put(t, first, text)
		if _, err := (Agent{EnvFiles: []string{first}}).Variables(); err == nil || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%q: %v", text, err)
		}
	}
	put(t, first, "A=1")
	for _, mode := range []os.FileMode{0o640, 0o604} {
		if err := os.Chmod(first, mode); err != nil {
			t.Fatal(err)
		}
		if _, err := (Agent{EnvFiles: []string{first}}).Variables(); err == nil {
			t.Errorf("a file of secrets with mode %o is read", mode)
		}
	}
	if _, err := (Agent{EnvFiles: []string{filepath.Join(dir, "none")}}).Variables(); err == nil {
		t.Error("a missing file is passed over")
	}
}

func TestFind(t *testing.T) {
	state := t.TempDir()
	if got := Find(state); strings.HasPrefix(string(got), state) {
		t.Errorf("%s is used and not there", got)
	}
	if err := os.Mkdir(filepath.Join(state, "setup"), 0o700); err != nil {
		t.Fatal(err)
	}
	if got := Find(state); string(got) != filepath.Join(state, "setup") {
		t.Errorf("%s is used instead of the state directory's own", got)
	}
}

// The env files of all settings are known, including those of other agents and workers, and of
// settings that can't be used for another reason.
func TestEnvFiles_OfAllSettings(t *testing.T) {
	dir, home := t.TempDir(), t.TempDir()
	t.Setenv("HOME", home)
	for name, text := range map[string]string{
		"config/agents/one.toml":             "env_files = ['/run/one', '~/two', 'relative']",
		"config/agents/mistaken.toml":        "env_files = ['/run/three']\nanswer_within_seconds = -1\nnonsense = true\ntype = 5\n",
		"config/agents/broken.toml":          "env_files = ['/run/never'",
		"state/setup/agents/other.toml":      "env_files = ['/run/four']",
		"state/agents/claude_code/note.toml": "env_files = ['/run/never']",
	} {
		path := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	got := EnvFiles([]string{filepath.Join(dir, "config"), filepath.Join(dir, "state"), filepath.Join(dir, "none")})
	slices.Sort(got)
	if want := []string{"/run/four", "/run/one", "/run/three", home + "/two"}; !slices.Equal(slices.Compact(got), want) {
		t.Errorf("%q, not %q", got, want)
	}
}

// Uses are counted in a file of their own, and end with their approval.
func TestUses(t *testing.T) {
	f, now := Files(t.TempDir()), time.Date(2026, 3, 7, 10, 0, 0, 0, time.UTC)
	var ids []string
	for _, what := range []string{"make", "make dist"} {
		a, err := f.Approve("robot", Approval{Area: api.AreaShell, What: what, By: "usr_0000000007"})
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, a.ID)
	}
	if again, err := f.Approve("robot", Approval{Area: api.AreaShell, What: "make", By: "usr_0000000007"}); err != nil || again.ID != ids[0] {
		t.Errorf("the same again is %+v, %v", again, err)
	}
	if other, err := f.Approve("robot", Approval{Area: api.AreaShell, What: "make", By: "usr_0000000008"}); err != nil || other.ID == ids[0] {
		t.Errorf("another person's is %+v, %v", other, err)
	}
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			if err := f.Used("robot", ids[0], now); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if err := f.Used("robot", ids[1], now.Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	uses, err := f.Uses("robot")
	if err != nil || uses[ids[0]].Times != 20 || !uses[ids[1]].At.Equal(now.Add(time.Hour)) {
		t.Errorf("%+v, %v", uses, err)
	}
	if _, err := f.Revoke("robot", ids[0]); err != nil {
		t.Fatal(err)
	}
	if uses, err := f.Uses("robot"); err != nil || len(uses) != 1 {
		t.Errorf("after a removal: %+v, %v", uses, err)
	}
	if slugs, err := f.Approving(); err != nil || cmp.Diff([]string{"robot"}, slugs) != "" {
		t.Error(slugs, err)
	}
}
