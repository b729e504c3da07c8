//go:build agents

package worker

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"stint/api"
	"stint/worker/agent/agenttest"
)

// forget removes what a program keeps of an agent session.
func forget(w *fixture, o Options, agentSession string) {
	w.Helper()
	roots := []string{w.userHome(), o.StateDir}
	for _, v := range o.environ {
		if name, dir, _ := strings.Cut(v, "="); name == "CLAUDE_CONFIG_DIR" {
			roots = append(roots, dir)
		}
	}
	removed := 0
	for _, root := range roots {
		w.must(filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
			if err == nil && strings.Contains(e.Name(), agentSession) && strings.HasSuffix(e.Name(), ".jsonl") {
				removed++
				return os.Remove(path)
			}
			return nil
		}))
	}
	if removed == 0 {
		w.Fatal("the transcript can't be found")
	}
}

// A thread whose transcript was removed continues in a new agent session, which gets what was
// said so far.
func TestReal_ARemovedTranscriptIsGoneOnWithout(t *testing.T) {
	each(t, func(t *testing.T, w *fixture, r real) {
		m := agenttest.NewModel(t, agenttest.Say("The attic is tidy."), agenttest.Say("second"))
		a, o := r.agent(w, m, nil)
		w.start(o)
		id := w.trigger(a, "Please tidy.")
		one := w.untilStatus(id, api.Complete)
		w.untilDrained(a)
		forget(w, o, one.AgentSessionID)
		_, err := w.client.PostMessage(t.Context(), id, api.MessageInput{Text: "And the cellar."})
		w.must(err)
		list, err := w.client.Sessions(t.Context(), api.SessionFilter{ThreadID: one.ThreadID}, api.Page{})
		w.must(err)
		two := w.untilStatus(list.Items[0].ID, api.Complete)
		if two.ID == one.ID || two.Result != "second" || two.AgentSessionID == one.AgentSessionID || two.AgentSessionID == "" {
			t.Errorf("it goes on as %+v", two)
		}
		if told := kinds(w.items(two.ID), api.ItemStatus); !slices.ContainsFunc(told, func(line string) bool { return strings.Contains(line, "does not know the agent session") }) {
			t.Errorf("people see %q", told)
		}
		asked := m.Asked()
		if last := asked[len(asked)-1].Body; !strings.Contains(last, "And the cellar.") || !strings.Contains(last, "The attic is tidy.") {
			t.Error("the new agent session isn't told what was said")
		}
	})
}
