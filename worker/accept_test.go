package worker

import (
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"stint/api"
	"stint/worker/setup"
	"stint/worker/workflow"
)

// owner is a worker process of user 7 with its own settings files.
func owner(t *testing.T) (*Process, setup.Files) {
	t.Helper()
	state := t.TempDir()
	if err := os.Mkdir(filepath.Join(state, "setup"), 0o700); err != nil {
		t.Fatal(err)
	}
	p := &Process{
		me: api.Whoami{UserID: 7, Name: "me"}, source: []string{"PATH=/bin:/usr/bin"}, opts: Options{StateDir: state, adapters: ownAdapters()},
		flows: map[string]*workflow.Watcher{}, log: slog.New(slog.DiscardHandler),
	}
	t.Cleanup(p.closeFlows)
	return p, setup.Find(state)
}

// Whatever somebody else sets in a record changes nothing that is executed until the owner
// accepts exactly that. contract 10.2
func TestPlanFor_AnotherUsersEditCountsOnlyAccepted(t *testing.T) {
	folder, elsewhere := t.TempDir(), t.TempDir()
	foreign := api.Trusted{
		AgentSlug: "robot", Type: api.TypeCommand, RunSetBy: 8, Instructions: "be kind",
		Run: api.Run{Command: []string{"echo", "hi"}, WorkFolder: folder, Env: []string{"LANG_X"}},
	}
	p, files := owner(t)
	accept := func(t api.Trusted) error {
		digest, err := setup.RunDigest(t.Type, t.Run, t.Instructions)
		if err != nil {
			return err
		}
		return files.Accept("robot", setup.Accepted{Run: &setup.AcceptedRun{Digest: digest}})
	}
	if err := accept(foreign); err != nil {
		t.Fatal(err)
	}
	if got, failure := p.planFor(api.Claim{Trusted: foreign}); failure != nil || got.argv[0] != "echo" || got.folder.path != folder {
		t.Fatalf("accepted: %+v, %+v", got, failure)
	}
	for name, edit := range map[string]func(*api.Trusted){
		"command":      func(t *api.Trusted) { t.Run.Command = []string{"echo", "evil"} },
		"an argument":  func(t *api.Trusted) { t.Run.Command = append(t.Run.Command, "x") },
		"split anew":   func(t *api.Trusted) { t.Run.Command = []string{"echo hi"} },
		"work folder":  func(t *api.Trusted) { t.Run.WorkFolder = elsewhere },
		"environment":  func(t *api.Trusted) { t.Run.Env = []string{"AWS_SECRET"} },
		"type":         func(t *api.Trusted) { t.Type = api.TypeClaudeCode },
		"executable":   func(t *api.Trusted) { t.Run.Executable = "/tmp/evil" },
		"permissions":  func(t *api.Trusted) { t.Run.Permissions = "autonomous" },
		"unattended":   func(t *api.Trusted) { t.Run.Unattended = true },
		"model":        func(t *api.Trusted) { t.Run.Model = "other" },
		"rules":        func(t *api.Trusted) { t.Run.Rules = []api.RunRule{{Area: "shell", Ruling: "allow"}} },
		"workspace":    func(t *api.Trusted) { t.Run.Workspace = "worktree" },
		"instructions": func(t *api.Trusted) { t.Instructions = "be evil" },
	} {
		changed := foreign
		edit(&changed)
		if got, failure := p.planFor(api.Claim{Trusted: changed}); failure == nil || failure.Code != CodePolicyBlocked {
			t.Errorf("another %s: %+v, %+v", name, got, failure)
		}
	}
	// The owner's own file says everything that is executed; then nothing in the record
	// counts.
	if err := files.Save("robot", setup.Agent{Type: api.TypeCommand, Executable: []string{"true"}, Folder: folder}); err != nil {
		t.Fatal(err)
	}
	if err := files.Accept("robot", setup.Accepted{}); err != nil {
		t.Fatal(err)
	}
	foreign.Run.WorkFolder = elsewhere
	got, failure := p.planFor(api.Claim{Trusted: foreign})
	if failure != nil || len(got.argv) != 1 || got.argv[0] != "true" || got.folder.path != folder || len(got.envNames) != 0 {
		t.Errorf("the owner's own file: %+v, %+v", got, failure)
	}
}

// What a workflow file executes is what the owner accepted, whatever a commit or an agent does
// to the file.
func TestPlanFor_AChangedWorkflowRunsWhatWasAccepted(t *testing.T) {
	p, files := owner(t)
	folder := t.TempDir()
	path := filepath.Join(folder, "WORKFLOW.md")
	write := func(text string) {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := files.Save("robot", setup.Agent{Type: api.TypeCommand, Executable: []string{"true"}, Folder: folder, Workflow: path}); err != nil {
		t.Fatal(err)
	}
	plan := func() plan {
		got, failure := p.planFor(api.Claim{Trusted: api.Trusted{AgentSlug: "robot", Type: api.TypeCommand, RunSetBy: 7}})
		if failure != nil {
			t.Fatal(failure)
		}
		return got
	}
	write("---\nhooks:\n  before_run: good\n---\nfirst")
	if got := plan(); got.hooks.BeforeRun != "" || got.template != "first" {
		t.Errorf("never accepted, %q runs", got.hooks.BeforeRun)
	}
	w, err := LoadWorkflow(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := files.Accept("robot", setup.Accepted{Workflow: &setup.AcceptedWorkflow{Path: path, Digest: w.Executing().Digest(), Executing: w.Executing()}}); err != nil {
		t.Fatal(err)
	}
	if got := plan(); got.hooks.BeforeRun != "good" {
		t.Errorf("accepted, %q runs", got.hooks.BeforeRun)
	}
	write("---\nhooks:\n  before_run: evil\n  after_run: evil\nworkspace: {root: /evil, mode: empty}\nagent: {max_turns: 3}\n---\nsecond")
	if got := plan(); got.hooks.BeforeRun != "good" || got.hooks.AfterRun != "" || got.workspace.Root != "" || got.template != "second" || got.maxTurns != 3 {
		t.Errorf("changed, %+v runs in %+v with %q", got.hooks, got.workspace, got.template)
	}
	write("---\nhooks: [\n---\nthird")
	if got := plan(); got.hooks.BeforeRun != "good" || got.template != "second" {
		t.Errorf("broken, %q runs with %q", got.hooks.BeforeRun, got.template)
	}
}
