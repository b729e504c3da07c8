package workspace

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// Ignored by git and brought back by nothing: kept without any settings, unless tools have put
// it there, or the owner says that it isn't wanted.
func TestCollect_KeepsWhatGitWasToldToIgnoreButNothingBringsBack(t *testing.T) {
	b := newBench(t)
	b.put("repo/.git/info/exclude", ".env*\n*.db\n/data/\nnode_modules/\n*.pem\nkeys/\n*.tmp\n")
	want := map[string]string{}
	for name, file := range map[string]string{
		"settings": ".env", "variant": ".env.production", "database": "sub/app.db", "folder": "data/deep/app.sqlite3", "key": "keys/id_ed25519",
		"package": "node_modules/tls/test/cert.pem", "scrap": "x.tmp",
	} {
		w := b.prepare(b.spec(name))
		b.put("root/"+name+"/"+file, "x")
		b.must(w.Close(true))
		b.age(name, month)
		want[name] = file
	}
	r := b.collect(Rules{OlderThan: 1, DryRun: true, KeepIgnored: []string{"!.env"}})
	gone := map[string]bool{}
	for _, i := range r.Removed {
		gone[i.Name] = true
	}
	if len(gone) != 3 || !gone["package"] || !gone["scrap"] || !gone["settings"] {
		t.Errorf("with an exception these would go: %v", gone)
	}
	r = b.collect(Rules{OlderThan: 1})
	if len(r.Removed) != 2 || len(r.Retained) != 5 {
		t.Errorf("removed %+v, kept %+v", r.Removed, r.Retained)
	}
	for _, i := range r.Retained {
		if !strings.Contains(i.Why, "to be kept: "+want[i.Name]) {
			t.Errorf("%s is kept because %q", i.Name, i.Why)
		}
	}
}

// A process that works in a workspace, or has a file open in it, would lose its files.
func TestCollect_NeverWhereAProcessStands(t *testing.T) {
	b := newBench(t)
	b.put("repo/.git/info/exclude", "*.tmp\n/at/\n")
	for name, start := range map[string]func(cmd *exec.Cmd, path string){
		"stands": func(cmd *exec.Cmd, path string) { cmd.Dir = filepath.Join(path, "at") },
		"holds": func(cmd *exec.Cmd, path string) {
			f, err := os.Create(filepath.Join(path, "held.tmp"))
			b.must(err)
			t.Cleanup(func() { f.Close() })
			cmd.Stdout = f
		},
	} {
		w := b.prepare(b.spec(name))
		b.put("root/"+name+"/at/scrap", "x")
		cmd := exec.Command("cat")
		start(cmd, w.Path)
		in, err := cmd.StdinPipe()
		b.must(err)
		b.must(cmd.Start())
		end := func() { _ = in.Close(); _ = cmd.Wait() }
		t.Cleanup(end)
		b.must(w.Close(true))
		b.age(name, month)
		r := b.collect(Rules{OlderThan: 1})
		if len(r.Removed) != 0 || !strings.Contains(r.Retained[0].Why, "a process works in it: cat") {
			t.Errorf("%s: removed %+v, kept %+v", name, r.Removed, r.Retained)
		}
		end()
		if r := b.collect(Rules{OlderThan: 1}); len(r.Removed) != 1 {
			t.Errorf("%s: once it has gone it is kept: %+v", name, r.Retained)
		}
	}
}
