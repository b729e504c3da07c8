//go:build agents

package worker

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"stint/api"
	"stint/docs"
	"stint/worker/agent/agenttest"
)

// opencode, which has no sandbox, in the fence that docs/agents.md shows for it: it works in its
// folder and keeps its conversation, and what it is told to do outside shows nowhere, though all
// commands and files are allowed.
func TestReal_OpencodeInTheFenceOfTheDocumentation(t *testing.T) {
	t.Parallel()
	w, r := newFixture(t), reals["opencode"]
	doc, err := docs.Files.ReadFile("agents.md")
	w.must(err)
	shown := regexp.MustCompile(`(?s)wrapper = \['bwrap'.*?\]\n`).Find(doc)
	if shown == nil {
		t.Fatal("docs/agents.md shows no wrapper")
	}
	folder, home := agenttest.Folder(t), w.userHome()
	outside := agenttest.Folder(t)
	command := "echo made > made; echo evil > " + outside + "/evil; cat " + home + "/.ssh/key; echo so: $(ls -A " + home + "/.ssh)"
	m := agenttest.NewModel(t, r.shell(command), agenttest.Say("done"))
	a, o := r.agent(w, m, func(in *api.AgentInput) {
		in.Run.WorkFolder, in.Run.Rules = folder, []api.RunRule{{Area: "shell", Ruling: "allow"}, {Area: "filesystem", Ruling: "allow"}}
	})
	for _, dir := range []string{".ssh", ".config/opencode", ".local/share/opencode", ".local/state/opencode", ".cache/opencode"} {
		w.must(os.MkdirAll(filepath.Join(home, dir), 0o700))
	}
	w.must(os.WriteFile(filepath.Join(home, ".ssh", "key"), []byte("TOPSECRET"), 0o600))
	// It makes this at its first start, which must not have been in the fence.
	w.must(os.WriteFile(filepath.Join(home, ".config/opencode", ".gitignore"), nil, 0o600))
	w.owns(o, "real", strings.NewReplacer("/home/me/src/app", folder, "/home/me", home).Replace(string(shown)))
	w.start(o)
	s := w.untilStatus(w.trigger(a, "Please go on."), api.Complete)
	if s.Result != "done" || s.AgentSessionID == "" {
		t.Errorf("it ended as %+v", s)
	}
	asked := m.Asked()
	if last := asked[len(asked)-1].Body; strings.Contains(last, "TOPSECRET") || !strings.Contains(last, `so:\\n`) && !strings.Contains(last, `so:\n`) {
		t.Errorf("the command printed something else; transcript %q", kinds(w.items(s.ID), api.ItemToolResult))
	}
	if !exists(filepath.Join(folder, "made")) || exists(filepath.Join(outside, "evil")) {
		t.Error("nothing was made in the folder, or something outside")
	}
}
