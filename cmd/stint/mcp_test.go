package main

import (
	"bufio"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

const hello = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"x","version":"1"}}}` + "\n"

// Programs come and go, some of them by kill -9 while something else holds their pipes open:
// none of what they started stays.
func TestMCP_NoServerOutlivesItsProgram(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	stint := filepath.Join(dir, "stint")
	if err := os.Symlink(self, stint); err != nil {
		t.Fatal(err)
	}
	type child struct {
		cmd  *exec.Cmd
		in   io.WriteCloser
		gone chan struct{}
	}
	begin := func(name string, args ...string) child {
		t.Helper()
		cmd := exec.Command(name, args...)
		cmd.Dir, cmd.Env = dir, append(os.Environ(), "STINT_DATA_DIR="+dir)
		stdin, hold, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		out, stdout, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		cmd.Stdin, cmd.Stdout = stdin, stdout
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		_, _ = stdin.Close(), stdout.Close()
		c := child{cmd, hold, make(chan struct{})}
		t.Cleanup(func() { _ = hold.Close(); _ = cmd.Process.Kill(); _ = cmd.Wait() })
		r := bufio.NewReader(out)
		if _, err := io.WriteString(hold, hello); err != nil {
			t.Fatal(err)
		}
		if _, err := r.ReadString('\n'); err != nil {
			t.Fatalf("it says nothing: %v", err)
		}
		go func() {
			defer close(c.gone)
			_, _ = io.Copy(io.Discard, r) // ends when the last process that could write is gone
		}()
		return c
	}
	var all []child
	for i := range 30 {
		if i < 15 {
			all = append(all, begin(stint, "mcp"))
			continue
		}
		all = append(all, begin("sh", "-c", `"$0" mcp; true`, stint))
	}
	begun := time.Now()
	for i, c := range all {
		if i < 15 {
			_ = c.in.Close()
		} else if err := c.cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
	}
	for i, c := range all {
		select {
		case <-c.gone:
		case <-time.After(patience):
			t.Errorf("server %d is still there", i)
		}
	}
	t.Logf("all were gone after %v", time.Since(begun))
}
