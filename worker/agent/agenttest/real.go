package agenttest

import (
	"bytes"
	"context"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"stint/worker/agent"
)

// The variables that name the real programs, set by make test-agents.
const (
	ClaudeVar   = "STINT_TEST_CLAUDE"
	CodexVar    = "STINT_TEST_CODEX"
	OpencodeVar = "STINT_TEST_OPENCODE"
	GeminiVar   = "STINT_TEST_GEMINI" // its script, which Node runs
	NodeVar     = "STINT_TEST_NODE"
)

// RealClaude is a job for the real Claude Code with our model. Its user is signed in by files;
// the work folder is new and empty.
func RealClaude(t testing.TB, m *Model) agent.Job {
	t.Helper()
	job := realJob(t, ClaudeVar)
	job.Begin = agent.NewID()
	job.Env = append(job.Env, ClaudeEnv(m)...)
	return job
}

// ClaudeEnv is the environment in which Claude Code takes the model for its own. Its sign-in
// to the model is in files, see [SignIn].
func ClaudeEnv(m *Model) []string {
	return []string{
		"ANTHROPIC_BASE_URL=" + m.URL, "CLAUDE_CODE_MAX_RETRIES=0", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1",
	}
}

func realJob(t testing.TB, name string) agent.Job {
	t.Helper()
	program := os.Getenv(name)
	if program == "" {
		t.Fatalf("%s names no program: run make test-agents", name)
	}
	home, work := Folder(t), Folder(t)
	SignIn(t, home)
	return agent.Job{
		Executable: []string{program}, Dir: work, StateDir: filepath.Join(home, "state"), Turn: "Please go on.",
		Env: []string{"PATH=" + os.Getenv("PATH"), "HOME=" + home, "LANG=C.UTF-8"},
	}
}

// Folder is a new empty folder outside the temporary directory, which sandboxes leave open and
// from which Codex doesn't work.
func Folder(t testing.TB) string {
	t.Helper()
	cache, err := os.UserCacheDir()
	if err != nil {
		t.Fatal(err)
	}
	base := filepath.Join(cache, "stint-test")
	if err := os.MkdirAll(base, 0o700); err != nil {
		t.Fatal(err)
	}
	dir, err := os.MkdirTemp(base, "")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Logf("a folder of the test stays: %v", err)
		}
	})
	return dir
}

// Program is a started program.
type Program struct {
	agent.Pipes
	cmd    *exec.Cmd
	in     io.WriteCloser
	errors *lockedBuffer
	ended  chan struct{}
}

type lockedBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

// Start starts what an adapter says, as a worker would, and ends it with the test.
func Start(t testing.TB, a agent.Agent, job agent.Job) *Program {
	t.Helper()
	c, err := a.Command(job)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Prepare(job.StateDir); err != nil {
		t.Fatal(err)
	}
	p := &Program{errors: &lockedBuffer{}, ended: make(chan struct{})}
	p.cmd = exec.CommandContext(context.WithoutCancel(t.Context()), c.Argv[0], c.Argv[1:]...)
	p.cmd.Dir, p.cmd.Env, p.cmd.Stderr = job.Dir, slices.Concat(job.Env, c.Env), p.errors
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	// Pipes of our own: those of exec are closed as soon as the program ends, before its last
	// words are read.
	inR, inW, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	outR, outW, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	p.cmd.Stdin, p.cmd.Stdout, p.in = inR, outW, inW
	p.Pipes = agent.Pipes{In: inW, Out: outR}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	_, _ = inR.Close(), outW.Close()
	go func() {
		_ = p.cmd.Wait()
		close(p.ended)
	}()
	t.Cleanup(func() {
		p.End()
		_ = outR.Close()
		if t.Failed() {
			t.Logf("the program's diagnostics:\n%s", p.errors)
		}
	})
	return p
}

// Kill ends the program with signal 9.
func (p *Program) Kill() {
	_ = syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL)
	<-p.ended
}

// End closes the program's input and ends it by signals if that isn't enough.
func (p *Program) End() {
	_ = p.in.Close()
	for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGKILL} {
		select {
		case <-p.ended:
			return
		case <-time.After(2 * time.Second):
			_ = syscall.Kill(-p.cmd.Process.Pid, sig)
		}
	}
	<-p.ended
}

// Run starts a program, holds a conversation with it and ends it.
func Run(ctx context.Context, t testing.TB, a agent.Agent, job agent.Job, host agent.Host) (agent.Result, error) {
	t.Helper()
	p := Start(t, a, job)
	defer p.End()
	return a.Converse(ctx, p.Pipes, job, host)
}

// RealCodex is a job for the real Codex with our model. Its user is signed in by files; the
// work folder is new and empty.
func RealCodex(t testing.TB, m *Model) agent.Job {
	t.Helper()
	job := realJob(t, CodexVar)
	job.Executable = append(job.Executable, CodexArgs(m)...)
	return job
}

// CodexArgs are the arguments with which Codex takes the model for its own, before the name of
// its subcommand. Its sign-in to the model is in files, see [SignIn].
func CodexArgs(m *Model) []string {
	return []string{
		"-c", `model_provider="scripted"`,
		"-c", `model_providers.scripted={name="scripted",base_url="` + m.URL + `",wire_api="responses",requires_openai_auth=true,request_max_retries=0,stream_max_retries=0}`,
	}
}

// RealOpencode is a job for the real opencode with our model; the work folder is new and empty.
func RealOpencode(t testing.TB, m *Model) agent.Job {
	t.Helper()
	job := realJob(t, OpencodeVar)
	job.Env = append(job.Env, OpencodeEnv(m)...)
	return job
}

// OpencodeEnv is the environment in which opencode takes the model for its own. Its key is in the
// settings, as its user would have it.
func OpencodeEnv(m *Model) []string {
	settings := must(map[string]any{
		"model": "scripted/scripted", "small_model": "scripted/scripted", "permission": map[string]any{"bash": "allow", "edit": "allow"},
		"provider": map[string]any{"scripted": map[string]any{
			"npm": "@ai-sdk/anthropic", "name": "scripted", "options": map[string]any{"baseURL": m.URL + "/v1", "apiKey": Key},
			"models": map[string]any{"scripted": map[string]any{
				"name": "scripted", "cost": map[string]any{"input": 1000, "output": 2000}, "limit": map[string]any{"context": 100_000, "output": 4000},
			}, "other": map[string]any{"name": "other", "limit": map[string]any{"context": 100_000, "output": 4000}}},
		}},
	})
	return []string{"OPENCODE_CONFIG_CONTENT=" + string(settings), "OPENCODE_DISABLE_MODELS_FETCH=1"}
}

// RealGemini is a job for the real Gemini CLI with our model; the work folder is new and empty.
func RealGemini(t testing.TB, m *Model) agent.Job {
	t.Helper()
	job := realJob(t, GeminiVar)
	node := os.Getenv(NodeVar)
	if node == "" {
		t.Fatalf("%s names no program: run make test-agents", NodeVar)
	}
	// By its name the program is known.
	start := filepath.Join(Folder(t), "gemini")
	script := "#!/bin/sh\nexec '" + node + "' '" + job.Executable[0] + "' \"$@\"\n"
	if err := os.WriteFile(start, []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	job.Executable = []string{start}
	job.Model = "gemini-2.5-pro" // else a small model of its own chooses one
	job.Env = append(job.Env, "GOOGLE_GEMINI_BASE_URL="+m.URL, "GEMINI_API_KEY="+Key, "GEMINI_CLI_NO_RELAUNCH=true")
	return job
}
