package worker

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"stint/api"
)

// What the owner's settings let a program load and the agent could have written runs only as the
// owner accepted it: not before, and not after a change. What needs no acceptance isn't asked about.
func TestConverse_UsesOnlyWhatWasAccepted(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	a, o, _ := w.talks("talker", nil)
	folder := t.TempDir()
	servers := filepath.Join(folder, ".mcp.json")
	w.must(os.WriteFile(servers, []byte("{}"), 0o600))
	settings := "type = 'claude_code'\nfolder = '" + folder + "'\n[uses]\n"
	files := w.owns(o, a.Slug, settings+"instructions = true\n")
	w.start(o)
	ends := func(status api.Status) api.Session {
		t.Helper()
		return w.untilStatus(w.trigger(a, "!say hello"), status)
	}
	ends(api.Complete)
	w.owns(o, a.Slug, settings+"tool_servers = true\n")
	refused := func() {
		t.Helper()
		if s := ends(api.Failed); s.Error.Code != CodePolicyBlocked || !strings.Contains(s.Error.Message, ".mcp.json (tool_servers;") || !strings.Contains(s.Error.Message, "stint worker trust talker") {
			t.Errorf("it ended with %+v", s.Error)
		}
	}
	refused()
	all, left, err := Sources(o.StateDir, a, a.Slug, "", []string{"HOME=" + t.TempDir()})
	if err != nil || len(all) != 1 || len(left) != 1 {
		t.Fatalf("to accept: %+v of %+v, %v", left, all, err)
	}
	was, err := files.Accepted(a.Slug)
	w.must(err)
	w.must(files.Accept(a.Slug, was.With(left, time.Now())))
	ends(api.Complete)
	w.must(os.WriteFile(servers, []byte(`{"mcpServers":{}}`), 0o600))
	refused()
	// Other's hands may have been on what needs no acceptance else.
	w.owns(o, a.Slug, settings+"instructions = true\n")
	w.must(os.WriteFile(filepath.Join(folder, "CLAUDE.md"), []byte("x"), 0o600))
	ends(api.Complete)
	w.must(os.Chmod(folder, 0o770))
	if s := ends(api.Failed); s.Error.Code != CodePolicyBlocked || !strings.Contains(s.Error.Message, "can be written by others") {
		t.Errorf("it ended with %+v", s.Error)
	}
}
