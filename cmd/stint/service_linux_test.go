package main

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// notices listens as a supervisor does for what its service tells.
func notices(t *testing.T) (path string, told <-chan string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "notify")
	ln, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	all := make(chan string, 100)
	go func() {
		defer close(all)
		b := make([]byte, 1024)
		for {
			n, err := ln.Read(b)
			if err != nil {
				return
			}
			all <- string(b[:n])
		}
	}()
	t.Cleanup(func() { _ = ln.Close() })
	return path, all
}

// expect waits until a state was told.
func expect(t *testing.T, told <-chan string, state string) {
	t.Helper()
	for {
		select {
		case got := <-told:
			if got == state {
				return
			}
		case <-time.After(patience):
			t.Fatalf("%s was never told", state)
		}
	}
}

// handed starts a program, "" for this one, with a listener that its supervisor holds open, as
// systemd does: the socket as descriptor 3, its own process id in the environment.
func (h *home) handed(built string, socket *os.File, notify string) *exec.Cmd {
	h.Helper()
	self, err := os.Executable()
	h.must(err)
	if built != "" {
		self = built
	}
	cmd := exec.CommandContext(h.Context(), "/bin/sh", "-c", `LISTEN_PID=$$ WATCHDOG_PID=$$; export LISTEN_PID WATCHDOG_PID; exec "$0" serve`, self)
	// sh gives the program its path as a name, by which the test binary doesn't know what to be.
	link := filepath.Join(h.TempDir(), asIs)
	h.must(os.Symlink(self, link))
	cmd.Args[3] = link
	cmd.Env = append(h.env, "LISTEN_FDS=1", "NOTIFY_SOCKET="+notify, "WATCHDOG_USEC=300000")
	cmd.Dir, cmd.ExtraFiles, cmd.Stderr = h.dir, []*os.File{socket}, os.Stderr
	in, err := cmd.StdinPipe()
	h.must(err)
	h.must(cmd.Start())
	h.Cleanup(func() {
		_ = in.Close()
		if cmd.ProcessState == nil {
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
		}
	})
	return cmd
}

// A supervisor that holds the socket replaces the server by a newer one, again and again, and
// nobody who asks meanwhile is refused or cut off.
func TestService_TheServerIsReplacedAndNobodyIsRefused(t *testing.T) {
	h := newHome(t)
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	h.must(err)
	socket, err := ln.(*net.TCPListener).File()
	h.must(err)
	h.must(ln.Close()) // the file keeps it open
	url := "http://" + ln.Addr().String()
	notify, told := notices(t)

	serving := h.handed("", socket, notify)
	expect(t, told, "READY=1")
	expect(t, told, "WATCHDOG=1")

	asking, stop := context.WithCancel(t.Context())
	var answered atomic.Int64
	failures := make(chan error, 4)
	for range cap(failures) {
		go func() { failures <- askOn(asking, url+"/healthz", &answered) }()
	}
	for range 3 {
		before := answered.Load()
		h.must(serving.Process.Signal(syscall.SIGTERM))
		expect(t, told, "STOPPING=1")
		_ = serving.Wait() // its code says that a signal ended it
		serving = h.handed("", socket, notify)
		expect(t, told, "READY=1")
		for answered.Load() < before+20 {
			time.Sleep(time.Millisecond)
			if t.Context().Err() != nil {
				t.Fatal("nobody is answered")
			}
		}
	}
	stop()
	for range cap(failures) {
		if err := <-failures; err != nil {
			t.Error(err)
		}
	}
	t.Logf("%d requests were answered", answered.Load())
}

// askOn asks, each time by a new connection, until ctx ends. A connection that waits for the
// next process is fine; one that is refused or ends without an answer isn't.
func askOn(ctx context.Context, url string, answered *atomic.Int64) error {
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	for {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			return err
		}
		resp, err := client.Do(req)
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return err
		}
		_, err = io.Copy(io.Discard, resp.Body)
		_ = resp.Body.Close()
		if err != nil || resp.StatusCode != http.StatusOK {
			return errors.Join(err, errors.New(resp.Status))
		}
		answered.Add(1)
	}
}

// here is a service of a program and a user that this machine has.
func here(s service, program string) service {
	s.program = program
	if s.system {
		s.runAs = "daemon"
	}
	return s
}

// systemd itself understands the units, those with names that need quoting too.
func TestService_SystemdTakesTheUnits(t *testing.T) {
	analyze, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Fatal("there is no systemd-analyze here; tools/ensure-helpers installs Debian's systemd")
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	odd := filepath.Join(t.TempDir(), `a b%c"d$e\f`)
	if err := os.MkdirAll(odd, 0o700); err != nil {
		t.Fatal(err)
	}
	spaced := filepath.Join(t.TempDir(), "a b%c$d")
	if err := os.MkdirAll(spaced, 0o700); err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(spaced, "stint")
	if err := os.Symlink(self, program); err != nil {
		t.Fatal(err)
	}
	for name, s := range map[string]service{
		"mine":              {program: self, addr: defaultAddr, env: "/home/ann/.config/stint/service.env"},
		"mine, odd":         {program: program, addr: "[::1]:7718", dataDir: odd, env: odd + "/x"},
		"machine":           {system: true, program: self, addr: defaultAddr, runAs: "daemon", env: "/etc/stint/service.env"},
		"machine, odd":      {system: true, program: program, addr: defaultAddr, dataDir: odd, runAs: "daemon", env: "/etc/stint/service.env"},
		"mine, packaged":    here(packaged(false), self),
		"machine, packaged": here(packaged(true), self),
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			args := []string{"verify", "--man=no"}
			if !s.system {
				args = append(args, "--user")
			}
			for _, unit := range unitNames {
				path := filepath.Join(dir, unit)
				if err := os.WriteFile(path, []byte(s.units()[unit]), 0o600); err != nil {
					t.Fatal(err)
				}
				args = append(args, path)
			}
			cmd := exec.CommandContext(t.Context(), analyze, args...)
			cmd.Env = append(os.Environ(), "XDG_RUNTIME_DIR="+t.TempDir(), "HOME="+t.TempDir())
			out, err := cmd.CombinedOutput()
			for line := range strings.Lines(string(out)) {
				if strings.Contains(line, "stint") {
					t.Error(line)
				}
			}
			if err != nil {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
}
