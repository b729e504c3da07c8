package regular

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

func TestRead_WaitsForNobody(t *testing.T) {
	dir := t.TempDir()
	pipe, link, file := filepath.Join(dir, "pipe"), filepath.Join(dir, "link"), filepath.Join(dir, "file")
	if err := errors.Join(exec.Command("mkfifo", pipe).Run(), os.Symlink(pipe, link), os.WriteFile(file, []byte("text"), 0o600)); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]error{pipe: ErrEndless, link: ErrEndless, "/dev/zero": ErrEndless, filepath.Join(dir, "none"): fs.ErrNotExist, os.DevNull: nil, file: nil} {
		if text, err := Read(path); !errors.Is(err, want) || path == file && string(text) != "text" {
			t.Errorf("%s: %q, %v", path, text, err)
		}
	}
	if err := os.Truncate(file, most+1); err != nil {
		t.Fatal(err)
	}
	if _, err := Read(file); err == nil {
		t.Error("a file without end is read")
	}
}
