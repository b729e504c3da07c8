//go:build agents

package agent_test

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"stint/worker/agent"
	"stint/worker/agent/agenttest"
)

func fine(t *testing.T, r agent.Result, err error) {
	t.Helper()
	if err != nil || r.Failure != nil {
		t.Fatalf("result %+v (%+v), %v", r, r.Failure, err)
	}
}

func exists(name string) bool {
	_, err := os.Lstat(name)
	return err == nil
}

// variable is the value of a variable of an environment.
func variable(env []string, name string) string {
	for _, v := range env {
		if value, ok := strings.CutPrefix(v, name+"="); ok {
			return value
		}
	}
	return ""
}

// within waits for something that should come soon.
func within(t *testing.T, what string, ok func() bool) {
	for end := time.Now().Add(20 * time.Second); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Errorf("never: %s", what)
			return
		}
	}
}

// probes are files and a socket that show what a program really did.
type probes struct {
	outside string // a folder beside the work folder
	hidden  string // a hidden one, with a secret
	addr    string // where somebody listens
	heard   chan struct{}
}

func newProbes(t *testing.T) *probes {
	t.Helper()
	base := agenttest.Folder(t)
	w := &probes{outside: filepath.Join(base, "outside"), hidden: filepath.Join(base, "hidden"), heard: make(chan struct{}, 100)}
	for _, dir := range []string{w.outside, w.hidden} {
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(w.hidden+"/secret", []byte("TOPSECRET"), 0o600); err != nil {
		t.Fatal(err)
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = ln.Close() })
	w.addr = ln.Addr().String()
	go func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			w.heard <- struct{}{}
			_ = c.Close()
		}
	}()
	return w
}

// connect is a command that connects to the listener without a program that rules know.
func (w *probes) connect() string {
	return "bash -c 'echo > /dev/tcp/127.0.0.1/" + strings.TrimPrefix(w.addr, "127.0.0.1:") + "'"
}

// narrow are rules that refuse some actions and leave the rest to the sandbox.
func (w *probes) narrow() []agent.Rule {
	return []agent.Rule{
		{Area: agent.Shell, Pattern: "touch one", Ruling: agent.Deny},
		{Area: agent.Filesystem, Pattern: "./made*", Ruling: agent.Deny},
		{Area: agent.SideEffects, Pattern: "git commit*", Ruling: agent.Deny},
	}
}

// act is something that a program is instructed to do, and how it would show.
type act struct {
	what     string
	step     agenttest.Step
	happened func(dir, told string) bool
	denied   bool // the policy's refusal is reported; else a sandbox just stops it
}

func (w *probes) made(name string) func(dir, told string) bool {
	return func(dir, _ string) bool { return exists(filepath.Join(dir, name)) }
}

func (w *probes) there(name string) func(dir, told string) bool {
	return func(string, string) bool { return exists(filepath.Join(w.outside, name)) }
}

func (w *probes) told(text string) func(dir, told string) bool {
	return func(_, told string) bool { return strings.Contains(told, text) }
}

func (w *probes) reached(string, string) bool { return len(w.heard) > 0 }

// refused is a policy with nobody to ask, and acts that it must prevent.
type refused struct {
	name    string
	rules   []agent.Rule
	acts    []act
	failure string
	prepare func(j *agent.Job) // nil = nothing
}

// control is a command that every policy here allows: if it doesn't run, the others prove
// nothing.
const (
	control     = "echo $((41+1))control"
	controlSays = "42control"
)

type converse func(t *testing.T, edit func(*agent.Job), host *agenttest.Host, steps ...agenttest.Step) (agent.Job, *agenttest.Model, agent.Result, error)

// refusals has a real program attempt the acts, all of a policy in one turn.
func refusals(t *testing.T, w *probes, cases []refused, command func(string) agenttest.Call, run converse) {
	t.Helper()
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			host := &agenttest.Host{}
			steps := []agenttest.Step{command(control)}
			denials := 0
			for _, a := range c.acts {
				steps = append(steps, a.step)
				if a.denied {
					denials++
				}
			}
			job, m, r, err := run(t, func(j *agent.Job) {
				j.Policy = agent.Policy{Rules: c.rules, Unattended: true, Otherwise: agent.Deny}
				j.Hidden = []string{w.hidden}
				if c.prepare != nil {
					c.prepare(j)
				}
			}, host, append(steps, agenttest.Say("end"))...)
			if err != nil || c.failure == "" && r.Failure != nil || c.failure != "" && (r.Failure == nil || r.Failure.Code != c.failure) {
				t.Errorf("result %+v (%+v), %v", r, r.Failure, err)
			}
			asked := m.Asked()
			if !strings.Contains(asked[len(asked)-1].Body, controlSays) {
				t.Error("no command works")
			}
			for _, a := range c.acts {
				if a.happened(job.Dir, asked[len(asked)-1].Body) {
					t.Errorf("%s happened", a.what)
				}
			}
			seen := host.Seen()
			if len(seen.Denied) != denials {
				t.Errorf("denied %+v", seen.Denied)
			}
			if c.failure == "" && len(asked) != len(steps)+1 {
				t.Errorf("%d of %d acts were tried", len(asked)-1, len(steps))
			}
			if t.Failed() {
				t.Logf("transcript\n%s", seen.Transcript())
			}
		})
	}
}
