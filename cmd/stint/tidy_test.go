package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// What others wrote appears in a table among our own colours, and has no effect there.
func TestTable_TakesNothingButTextAndColours(t *testing.T) {
	var out bytes.Buffer
	tab := table{head: []string{"NAME", "X"}, rows: [][]string{{"\x1b[32mgood\x1b[0m", "a\u202eb\x1b]0;title\x07\x1b[2Jc\nd\x00e"}}}
	if err := tab.aligned(&out, styles{}, 80); err != nil {
		t.Fatal(err)
	}
	if got := strings.Split(out.String(), "\n"); len(got) != 3 || got[1] != "\x1b[32mgood\x1b[0m  abc de" {
		t.Errorf("it prints %q", out.String())
	}
	c := &cli{tty: true}
	out.Reset()
	c.out = &out
	f := &facts{}
	f.add("name", "a\u202eb\x1b[2Jc\rd")
	if err := f.print(c); err != nil || out.String() != "name  abc d\n" {
		t.Errorf("it prints %q, %v", out.String(), err)
	}
}

// Go's own error says nothing to people.
func TestExplain_SaysInWordsThatItTookTooLong(t *testing.T) {
	got := explain("cannot list", fmt.Errorf("ask: %w", context.DeadlineExceeded), "").Error()
	if strings.Contains(got, "context") || !strings.Contains(got, "too long") {
		t.Errorf("it says %q", got)
	}
}

func TestDataDir_TidiesWhatAKilledStartLeft(t *testing.T) {
	d := dataDir(t.TempDir())
	left := []string{".writable-123", "server.json.4567", "owner.token.89"}
	stored := []string{"server.json", "owner.token", "owner.token.bak", "server.json.", "stint.db", "notes.1"}
	for _, name := range append(left, stored...) {
		if err := os.WriteFile(filepath.Join(string(d), name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := d.tidy(); err != nil {
		t.Fatal(err)
	}
	for i, name := range append(left, stored...) {
		if _, err := os.Lstat(filepath.Join(string(d), name)); (err == nil) != (i >= len(left)) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
