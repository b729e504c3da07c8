//go:build agents

package agent_test

import (
	"encoding/base64"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"stint/worker/agent"
	"stint/worker/agent/agenttest"
)

// pixel is an image of one pixel.
const pixel = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="

// given writes an image and a text into a folder of their own.
func given(t *testing.T) []agent.File {
	t.Helper()
	dir := t.TempDir()
	raw, err := base64.StdEncoding.DecodeString(pixel)
	if err != nil {
		t.Fatal(err)
	}
	out := []agent.File{{Name: "shot.png", Path: filepath.Join(dir, "shot.png"), Type: "image/png"}, {Name: "notes.txt", Path: filepath.Join(dir, "notes.txt"), Type: "text/plain"}}
	for i, data := range [][]byte{raw, []byte("NOTEDTEXT")} {
		if err := os.WriteFile(out[i].Path, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return out
}

// The model gets an image as one, and the agent reads a file that came with the prompt without
// asking anybody.
func TestRealClaude_FilesWithAPrompt(t *testing.T) {
	t.Parallel()
	files := given(t)
	host := &agenttest.Host{}
	_, m, r, err := realClaude(t, func(j *agent.Job) { j.Files, j.FilesDir = files, filepath.Dir(files[0].Path) }, host,
		agenttest.Call{Tool: "Read", Input: obj{"file_path": files[1].Path}}, agenttest.Say("end"))
	fine(t, r, err)
	asked := m.Asked()
	if !strings.Contains(asked[0].Body, `"image/png"`) || !strings.Contains(asked[0].Body, pixel[:40]) || !strings.Contains(asked[1].Body, "NOTEDTEXT") || len(host.Seen().Asked) > 0 {
		t.Errorf("asked %d times; transcript\n%s", len(asked), host.Seen().Transcript())
	}
}

func TestRealCodex_FilesWithAPrompt(t *testing.T) {
	t.Parallel()
	files := given(t)
	host := &agenttest.Host{}
	_, m, r, err := realCodex(t, func(j *agent.Job) { j.Files, j.FilesDir = files, filepath.Dir(files[0].Path) }, host, sh("cat "+files[1].Path), agenttest.Say("end"))
	fine(t, r, err)
	asked := m.Asked()
	if !strings.Contains(asked[0].Body, "data:image/png;base64,") || !strings.Contains(asked[1].Body, "NOTEDTEXT") || len(host.Seen().Asked) > 0 {
		t.Errorf("asked %d times; transcript\n%s", len(asked), host.Seen().Transcript())
	}
}

func TestRealOpencode_FilesWithAPrompt(t *testing.T) {
	t.Parallel()
	files := given(t)
	host := &agenttest.Host{Answer: agenttest.Approves}
	_, m, r, err := realOpencode(t, func(j *agent.Job) { j.Files, j.FilesDir = files, filepath.Dir(files[0].Path) }, host, agenttest.Say("end"))
	fine(t, r, err)
	if body := m.Asked()[0].Body; !strings.Contains(body, "NOTEDTEXT") {
		t.Errorf("the model was asked by %.3000s", body)
	}
}
