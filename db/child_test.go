package db

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
)

const pathVariable = "STINT_DB_TEST_PATH"

// child prepares this test binary as another process that uses the file at path.
func child(t *testing.T, name, path string) *exec.Cmd {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "/proc/self/exe")
	cmd.Env = append(os.Environ(), childVariable+"="+name, pathVariable+"="+path)
	return cmd
}

func childOptions() (Options, error) {
	migrations, err := overlay(map[string]string{"9000_notes.sql": notes})
	return Options{Path: os.Getenv(pathVariable), Migrations: migrations}, err
}

// writeUntilKilled writes notes from eight goroutines and prints the id of each
// that was acknowledged.
func writeUntilKilled() error {
	o, err := childOptions()
	if err != nil {
		return err
	}
	s, err := Open(context.Background(), o)
	if err != nil {
		return err
	}
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for err == nil {
				var id int64
				err := s.Write(context.Background(), func(tx *Tx) error {
					id = tx.NextEvent()
					return errors.Join(
						tx.exec(insertNote, id, fmt.Sprint("note ", id)),
						tx.exec(countNote, "notes"),
					)
				})
				if err != nil {
					fmt.Fprintln(os.Stderr, err)
					os.Exit(1)
				}
				fmt.Fprintf(os.Stdout, "%d\n", id) // one write each: whole or not at all
			}
		})
	}
	wg.Wait()
	return nil
}

// TestKill_LosesNothingAcknowledged kills a writing process with SIGKILL, again
// and again on one file (contract 14).
func TestKill_LosesNothingAcknowledged(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "stint.db")
	var told []int64
	for round := range 8 {
		told = append(told, killAfter(t, path, 1+rand.IntN(200))...)
		if err := holds(path, told, true); err != nil {
			t.Fatalf("after kill %d: %v", round+1, err)
		}
	}
	t.Logf("%d acknowledged writes survived 8 kills", len(told))
}

// killAfter runs a writing process until it has acknowledged n writes and returns everything
// that it acknowledged before it died.
func killAfter(t *testing.T, path string, n int) (told []int64) {
	t.Helper()
	cmd := child(t, "write", path)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewReader(out)
	for {
		line, err := lines.ReadString('\n')
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		id, err := strconv.ParseInt(strings.TrimSpace(line), 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		if told = append(told, id); len(told) == n {
			if err := cmd.Process.Kill(); err != nil {
				t.Fatal(err)
			}
		}
	}
	var exit *exec.ExitError
	if err := cmd.Wait(); !errors.As(err, &exit) || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
		t.Fatalf("the child was to die by SIGKILL: %v\n%s", err, stderr.String())
	}
	return told
}

// openAndClose opens the store once there is a line on the standard input.
func openAndClose() error {
	if _, err := bufio.NewReader(os.Stdin).ReadString('\n'); err != nil {
		return err
	}
	o, err := childOptions()
	if err != nil {
		return err
	}
	s, err := Open(context.Background(), o)
	if err != nil {
		return err
	}
	return s.Close()
}

// TestOpen_ProcessesThatStartTogether has three processes find an empty file.
func TestOpen_ProcessesThatStartTogether(t *testing.T) {
	path := filepath.Join(t.TempDir(), "stint.db")
	var started []*exec.Cmd
	var starts []io.WriteCloser
	for range 3 {
		cmd := child(t, "open", path)
		cmd.Stderr = os.Stderr
		in, err := cmd.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		started, starts = append(started, cmd), append(starts, in)
	}
	for _, in := range starts {
		if _, err := io.WriteString(in, "go\n"); err != nil {
			t.Error(err)
		}
	}
	for _, cmd := range started {
		if err := cmd.Wait(); err != nil {
			t.Error(err)
		}
	}
	migratedOnce(t, open(t, func(o *Options) { o.Path = path }))
}

// TestOpen_DirectoryThatCannotBeWrittenTo runs as the user nobody, because root may write
// everywhere.
func TestOpen_DirectoryThatCannotBeWrittenTo(t *testing.T) {
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o555); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.Chmod(dir, 0o755); err != nil {
			t.Error(err)
		}
	})
	cmd := child(t, "open", filepath.Join(dir, "stint.db"))
	cmd.Stdin = strings.NewReader("go\n")
	cmd.Dir = "/"
	if os.Geteuid() == 0 {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	}
	out, err := cmd.CombinedOutput()
	want := "the directory " + dir + " cannot be written to"
	if err == nil || !strings.Contains(string(out), want) {
		t.Errorf("said %q (%v), want %q", out, err, want)
	}
}
