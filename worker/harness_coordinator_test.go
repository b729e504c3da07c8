package worker

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"time"

	"stint/account"
	"stint/api"
	"stint/db"
	"stint/engine"
	"stint/engine/enginetest"
	"stint/server"
	"stint/worker/workertest"
)

// outside is a coordinator in a process of its own, which can be killed, behind a proxy, and its
// owner.
type outside struct {
	*fixture
	addr string

	mu  sync.Mutex
	cmd *exec.Cmd // guarded by mu
}

func newOutside(t *testing.T) *outside {
	t.Helper()
	w := &outside{fixture: &fixture{T: t, dir: t.TempDir()}}
	path := filepath.Join(w.dir, "stint.db")
	enginetest.Lay(t, path)
	store, err := db.Open(t.Context(), db.Options{Path: path, Log: slog.New(slog.DiscardHandler)})
	w.must(err)
	w.token, _, err = account.New(store, account.DefaultConfig()).EnsureOwner(t.Context())
	w.must(err)
	w.must(store.Close())
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	w.must(err)
	w.addr = ln.Addr().String()
	w.must(ln.Close())
	w.direct = "http://" + w.addr
	w.proxy = workertest.NewProxy(t, w.direct)
	transport := &http.Transport{DisableKeepAlives: true} // none to a coordinator that was killed
	w.client, err = api.NewClient(api.ClientConfig{URL: w.direct, Token: w.token, Transport: transport})
	w.must(err)
	w.serve(0)
	t.Cleanup(w.kill)
	return w
}

// serve starts the coordinator with a clock that is ahead, and returns once it answers.
func (w *outside) serve(ahead time.Duration) {
	w.Helper()
	self, err := os.Executable()
	w.must(err)
	cmd := exec.Command(self, coordinatorArg, filepath.Join(w.dir, "stint.db"), w.addr, strconv.FormatInt(int64(ahead), 10))
	cmd.Stderr = testLog{w.T}
	_, err = cmd.StdinPipe() // its end is the coordinator's end
	w.must(err)
	out, err := cmd.StdoutPipe()
	w.must(err)
	w.must(cmd.Start())
	w.mu.Lock()
	w.cmd = cmd
	w.mu.Unlock()
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil || line != "ready\n" {
		w.Fatalf("the coordinator says %q, %v", line, err)
	}
}

// kill ends the coordinator with signal 9, once. Any goroutine may call it.
func (w *outside) kill() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.cmd != nil {
		_ = w.cmd.Process.Kill()
		_ = w.cmd.Wait()
		w.cmd = nil
	}
}

// dead reports whether it was killed.
func (w *outside) dead() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.cmd == nil
}

const coordinatorArg = "coordinator-process"

func coordinatorMain(path, addr, ahead string) {
	check := func(err error) {
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(90)
		}
	}
	skew, err := strconv.ParseInt(ahead, 10, 64)
	check(err)
	log := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
	ctx := context.Background()
	store, err := db.Open(ctx, db.Options{Path: path, Log: log, Clock: func() time.Time { return time.Now().Add(time.Duration(skew)) }})
	check(err)
	e := engine.New(store, testEngine(log))
	ln, err := net.Listen("tcp", addr)
	check(err)
	srv := server.New(server.Options{Engine: e, Accounts: account.New(store, account.DefaultConfig()), Addr: addr, Log: log})
	go func() { _ = e.Run(ctx) }()
	go func() { check(srv.Serve(ctx, ln)) }()
	fmt.Println("ready")
	_, _ = io.Copy(io.Discard, os.Stdin)
	os.Exit(0)
}
