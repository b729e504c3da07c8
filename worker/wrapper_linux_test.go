package worker

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"stint/api"
)

// fence is how docs/safety.md fences in a command, with folder as the work folder.
func fence(t *testing.T, folder string) []string {
	t.Helper()
	doc, err := os.ReadFile(filepath.Join("..", "docs", "safety.md"))
	if err != nil {
		t.Fatal(err)
	}
	shown := regexp.MustCompile(`--run '(bwrap [^']*) \./report\.sh'`).FindSubmatch(doc)
	if shown == nil {
		t.Fatal("docs/safety.md shows no command for bwrap")
	}
	return strings.Fields(strings.ReplaceAll(string(shown[1]), "/srv/report", folder))
}

// An agent behind the fence from the documentation, whether the command includes it or it is
// the owner's wrapper: what the agent tries outside its folder shows nowhere, and what it
// leaves running ends with it. Where the system allows no fence, nothing runs at all.
func TestWrapper_TheFenceOfTheDocumentation(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	outside := filepath.Join(w.dir, "outside")
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	w.must(err)
	defer ln.Close()
	reached := make(chan struct{}, 1)
	go func() {
		for conn, err := ln.Accept(); err == nil; conn, err = ln.Accept() {
			_ = conn.Close()
			reached <- struct{}{}
		}
	}()
	private := []string{filepath.Join(w.dir, "stint.db")}
	for _, name := range []string{"owner.token", "stint.db-wal", "credentials.json", "worker/setup/agents/other.toml", "worker/worker.db"} {
		path := filepath.Join(w.dir, name)
		w.must(os.MkdirAll(filepath.Dir(path), 0o700))
		if _, err := os.Stat(path); err != nil {
			touch(t, path)
		}
		private = append(private, path)
	}
	script := fmt.Sprintf(`read -r prompt; echo "$prompt"
		echo evil > %[1]s || echo no write
		for file in %[2]s; do cat "$file" && echo "read $file"; done; echo no read
		exec 3<>/dev/tcp/%[3]s || echo no network
		setsid sh -c 'while :; do echo . >> ticks; sleep 0.05; done' > /dev/null 2>&1 &
		echo made > made; sleep 600`, outside, strings.Join(private, " "), strings.Replace(ln.Addr().String(), ":", "/", 1))
	o := w.options()
	folder := t.TempDir()
	own := w.agentWith("fenced", func(in *api.AgentInput) { in.Run.WorkFolder = folder }, append(fence(t, folder), "bash", "-c", script)...)
	wrapped := w.agent("wrapped", "bash", "-c", script)
	w.owns(o, "wrapped", "wrapper = ['"+strings.Join(fence(t, wrapped.Run.WorkFolder), "', '")+"']\n")
	w.start(o)
	probe := append(fence(t, folder), "true")
	possible := exec.CommandContext(t.Context(), probe[0], probe[1:]...).Run() == nil
	for _, a := range []api.Agent{own, wrapped} {
		id := w.trigger(a, "hello")
		if !possible {
			s := w.untilStatus(id, api.Failed)
			if _, err := os.Stat(filepath.Join(a.Run.WorkFolder, "made")); err == nil || !strings.Contains(s.Error.Message, "bwrap") {
				t.Errorf("without a fence %s ended with %+v, made something: %v", a.Slug, s.Error, err == nil)
			}
			continue
		}
		ticks := func() int64 {
			info, err := os.Stat(filepath.Join(a.Run.WorkFolder, "ticks"))
			if err != nil {
				return 0
			}
			return info.Size()
		}
		w.eventually("what it left behind runs", func() bool {
			s, err := w.client.Session(t.Context(), id)
			w.must(err)
			if s.Status.Terminal() {
				t.Fatalf("%s ended %s: %+v, printed %q", a.Slug, s.Status, s.Error, w.text(id, "stderr"))
			}
			return ticks() > 0 && strings.Contains(w.text(id, "stdout"), "no network")
		})
		_, err := w.client.CancelSession(t.Context(), id, api.CancelInput{})
		w.must(err)
		w.untilDrained(a)
		last := ticks()
		if got := w.text(id, "stdout"); got != "hello\nno write\nno read\nno network\n" {
			t.Errorf("%s printed %q", a.Slug, got)
		}
		if made, err := os.ReadFile(filepath.Join(a.Run.WorkFolder, "made")); err != nil || string(made) != "made\n" {
			t.Errorf("%s made %q in its folder, %v", a.Slug, made, err)
		}
		if now := ticks(); now != last {
			t.Errorf("%s is over, and something of it still writes", a.Slug)
		}
	}
	if _, err := os.Stat(outside); err == nil {
		t.Error("something was written outside of the folder")
	}
	select {
	case <-reached:
		t.Error("the network was reached")
	default:
	}
}
