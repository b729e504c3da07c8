package proc

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestEnv_OnlyTheListGetsThrough(t *testing.T) {
	t.Parallel()
	source := []string{
		"PATH=/bin", "HOME=/home/ada", "LANG=C.UTF-8", "LC_ALL=C", "LC_TIME=de", "TZ=Europe/Berlin", "TERM=xterm", "COLORTERM=truecolor",
		"TMPDIR=/run/worker", "USER=ada", "SSH_AUTH_SOCK=/x", "AWS_SECRET_ACCESS_KEY=k", "STINT_TOKEN=t", "STINT_URL=u", "LD_PRELOAD=x",
		"NAMED=yes", "PATHS=no", "HOMES=no", "=odd", "NOEQUALS",
	}
	got, err := Env(source, []string{"NAMED", "ABSENT"}, map[string]string{"STINT_FENCE": "7", "HOME": "/work", "EMPTY": ""})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"COLORTERM=truecolor", "EMPTY=", "HOME=/work", "LANG=C.UTF-8", "LC_ALL=C", "LC_TIME=de", "NAMED=yes", "PATH=/bin",
		"STINT_FENCE=7", "TERM=xterm", "TZ=Europe/Berlin",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got, err := Env(nil, nil, nil); err != nil || !cmp.Equal(got, []string{"PATH=" + defaultPath}) {
		t.Errorf("from nothing: %v, %v", got, err)
	}
}

func TestEnv_RefusesWhatCannotBeNamed(t *testing.T) {
	t.Parallel()
	for _, named := range []string{"STINT_TOKEN", "STINT_", "", "A=B", "A\x00"} {
		if _, err := Env(nil, []string{named}, nil); err == nil {
			t.Errorf("extra %q was accepted", named)
		}
	}
	for _, set := range []map[string]string{{"": "x"}, {"A=B": "x"}, {"A": "x\x00y"}} {
		if _, err := Env(nil, nil, set); err == nil {
			t.Errorf("%v was accepted", set)
		}
	}
}

func TestLookPath_UsesTheAgentsPath(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, mode := range map[string]os.FileMode{"bin/tool": 0o755, "closed/tool": 0o644, "work/tool": 0o755} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte("#!/bin/sh\n"), mode); err != nil {
			t.Fatal(err)
		}
	}
	work := filepath.Join(dir, "work")
	path := func(dirs ...string) []string {
		list := "PATH="
		for i, d := range dirs {
			if i > 0 {
				list += ":"
			}
			if d != "." && d != "" {
				d = filepath.Join(dir, d)
			}
			list += d
		}
		return []string{"PATH=/nowhere", list}
	}
	for _, tt := range []struct {
		name string
		env  []string
		want string
		err  error
	}{
		{"tool", path("bin"), "bin/tool", nil},
		{"tool", path("none", "closed", "bin"), "bin/tool", nil},
		{"tool", path("closed"), "", fs.ErrPermission},
		{"tool", path(".", ""), "", exec.ErrNotFound},
		{"tool", nil, "", exec.ErrNotFound},
		{"", path("bin"), "", exec.ErrNotFound},
		{"./tool", nil, "work/tool", nil},
		{"../bin/tool", nil, "bin/tool", nil},
		{filepath.Join(dir, "bin/tool"), nil, "bin/tool", nil},
		{"./none", path("bin"), "", fs.ErrNotExist},
	} {
		got, err := LookPath(tt.name, work, tt.env)
		want := tt.want
		if want != "" {
			want = filepath.Join(dir, want)
		}
		if got != want || !errors.Is(err, tt.err) {
			t.Errorf("%q with %v: %q, %v; want %q, %v", tt.name, tt.env, got, err, want, tt.err)
		}
	}
}
