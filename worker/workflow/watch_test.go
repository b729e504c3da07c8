package workflow

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type watched struct {
	*Watcher
	t    *testing.T
	path string
	log  *bytes.Buffer
}

// watch begins to follow dir/WORKFLOW.md.
func watch(t *testing.T, dir string) *watched {
	w := &watched{t: t, path: filepath.Join(dir, "WORKFLOW.md"), log: &bytes.Buffer{}}
	w.Watcher = Watch(w.path, env, slog.New(slog.NewTextHandler(w.log, nil)))
	t.Cleanup(func() {
		if err := w.Close(); err != nil {
			t.Error(err)
		}
	})
	return w
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func (w *watched) holds(template string) {
	w.t.Helper()
	got, err := w.Current()
	if err != nil || got.Template != template {
		w.t.Fatalf("%q (%v), want %q", got.Template, err, template)
	}
}

func (w *watched) noticed() {
	w.t.Helper()
	select {
	case <-w.Changed():
	case <-time.After(10 * time.Second):
		w.t.Fatal("the change was not noticed")
	}
}

func TestWatcher_SeesEveryKindOfSave(t *testing.T) {
	dir := t.TempDir()
	w := watch(t, dir)
	write(t, w.path, "zero")
	w.noticed()
	w.holds("zero")
	saves := []struct {
		name string
		save func(text string)
	}{
		{"in place", func(text string) { write(t, w.path, text) }},
		{"by rename", func(text string) {
			write(t, w.path+".tmp", text)
			must(t, os.Rename(w.path+".tmp", w.path))
		}},
		{"deleted and made again", func(text string) {
			must(t, os.Remove(w.path))
			write(t, w.path, text)
		}},
		{"as vim does", func(text string) {
			must(t, os.Rename(w.path, w.path+"~"))
			write(t, w.path, text)
			must(t, os.Remove(w.path+"~"))
		}},
		{"link swapped", func(text string) {
			must(t, os.MkdirAll(filepath.Join(dir, text), 0o700))
			write(t, filepath.Join(dir, text, "file"), text)
			must(t, os.Symlink(filepath.Join(text, "file"), w.path+".new"))
			must(t, os.Rename(w.path+".new", w.path))
		}},
		{"behind the link", func(text string) {
			real, err := filepath.EvalSymlinks(w.path)
			must(t, err)
			write(t, real+".tmp", text)
			must(t, os.Rename(real+".tmp", real))
		}},
	}
	for _, s := range saves {
		for _, round := range []string{"1", "2"} { // naive watching misses the second one
			text := strings.ReplaceAll(s.name, " ", "-") + round
			s.save(text)
			w.noticed()
			w.holds(text)
			for len(w.Changed()) > 0 {
				<-w.Changed()
			}
		}
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestWatcher_SameSizeSameTimeEditIsSeen(t *testing.T) {
	w := watch(t, t.TempDir())
	at := time.Unix(1e9, 0)
	for _, text := range []string{"aaaa", "bbbb", "cccc"} {
		write(t, w.path, text)
		must(t, os.Chtimes(w.path, at, at))
		w.holds(text)
	}
}

func TestWatcher_KeepsTheLastGoodFile(t *testing.T) {
	dir := t.TempDir()
	w := watch(t, dir)
	if got, err := w.Current(); err == nil || got.Path != "" {
		t.Fatalf("without a file: %+v, %v", got, err)
	}
	write(t, w.path, "---\nagent:\n  max_turns: 3\nserver: x\n---\ngood")
	w.holds("good")
	running, _ := w.Current()
	for _, bad := range []string{"---\nagent:\n  max_turns: x\n---\nbad", "---\n- x\n---", ""} {
		if bad == "" {
			must(t, os.Remove(w.path))
		} else {
			write(t, w.path, bad)
		}
		for range 2 {
			got, err := w.Current()
			if err == nil || got.Template != "good" || got.Config.Agent.MaxTurns != 3 {
				t.Fatalf("%q: %+v, %v", bad, got, err)
			}
		}
	}
	write(t, w.path, "---\nagent:\n  max_turns: 4\nserver: x\n---\nbetter")
	w.holds("better")
	if running.Template != "good" || running.Config.Agent.MaxTurns != 3 {
		t.Error("a snapshot changed with the file")
	}
	must(t, os.Remove(w.path))
	write(t, w.path, "---\nagent:\n  max_turns: 3\nserver: x\n---\ngood")
	w.holds("good")
	if got := strings.Count(w.log.String(), "has no effect"); got != 1 {
		t.Errorf("the ignored field was reported %d times:\n%s", got, w.log)
	}
	if got := strings.Count(w.log.String(), "can't be used"); got != 4 {
		t.Errorf("bad files were reported %d times, want 4:\n%s", got, w.log)
	}
}

func TestWatcher_OtherFilesAreNoChange(t *testing.T) {
	dir := t.TempDir()
	w := watch(t, dir)
	write(t, w.path, "text")
	w.noticed()
	w.holds("text")
	for len(w.Changed()) > 0 {
		<-w.Changed()
	}
	write(t, filepath.Join(dir, "other"), "noise")
	must(t, os.Chmod(w.path, 0o644))
	write(t, w.path, "text") // the same again
	write(t, filepath.Join(dir, "last"), "noise")
	time.Sleep(50 * time.Millisecond)
	if len(w.Changed()) > 0 {
		// Writing in place empties the file first, and that is a change.
		<-w.Changed()
		w.holds("text")
	}
	write(t, filepath.Join(dir, "again"), "noise")
	time.Sleep(50 * time.Millisecond)
	if len(w.Changed()) > 0 {
		t.Error("another file's change is taken for the workflow's")
	}
}
