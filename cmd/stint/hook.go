package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/spf13/cobra"

	"stint/api"
	"stint/worker/agent"
)

const (
	// hookShare is how much of the agent's time a hook's calls may take. What takes longer goes
	// on in a process of its own, which the agent doesn't wait for.
	hookShare = 40 * time.Millisecond

	// hookPatience bounds those calls in all: if a lease isn't renewed then, the next use of a
	// tool does it.
	hookPatience = 10 * time.Second

	// hookLimit is when the agent ends a hook, should the machine be so busy.
	hookLimit = 6 * time.Second

	// longestEvent bounds, in bytes, what is read of an event that Claude Code tells of.
	longestEvent = 1 << 20
)

// goOnAfter are the reasons that Claude Code gives for the end of a conversation, as it calls
// them in a SessionEnd, after which the same process goes on with another one.
var goOnAfter = []string{"clear", "resume"}

func (c *cli) hookCommand() *cobra.Command {
	var task string
	hook := &cobra.Command{Use: "hook", Short: "Keep a lease by an agent program's own hooks"}
	claude := &cobra.Command{
		Use:   "claude",
		Short: "Print settings with which Claude Code keeps a lease",
		Long: "Prints settings for Claude Code that renew a lease after each use of a tool and\n" +
			"each turn, and release it at the end: that on a task with --task, else that on a\n" +
			"session that you hold by hand. A worker keeps its leases itself.\n\n" +
			"For a session the hooks read STINT_SESSION_ID, and STINT_CLAIM_ID and\n" +
			"STINT_INSTANCE_ID of the claim where STINT_TOKEN isn't the run's own. They never\n" +
			"fail: when the coordinator is away, Claude Code goes on.",
		Example: `claude --settings "$(stint hook claude)"
stint claim T-42 && claude --settings "$(stint hook claude --task T-42)"`,
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error { return c.printHooks(task) },
	}
	claude.Flags().StringVar(&task, "task", "", "the `TASK` whose lease is kept")
	return group(hook, claude,
		hookStep(c, "renew", "Renew the lease", false, c.renewByHook, (*api.Client).RenewTask),
		hookStep(c, "release", "Release the task or the session", true, c.releaseByHook, (*api.Client).ReleaseTask))
}

// hookStep is a command of the settings. It does one thing to the task that its flag names, or
// to the session that the environment names. Whatever comes of it, the agent goes on, and soon:
// a host that doesn't answer takes nothing but hookShare of its time. A step that atEnd is for the
// end of the program does nothing while the program goes on.
func hookStep[T any](c *cli, use, short string, atEnd bool, session func(context.Context, *api.Client, api.Session) error, onTask func(*api.Client, context.Context, string) (T, error)) *cobra.Command {
	var task string
	var aside bool
	cmd := &cobra.Command{
		Use: use, Short: short, Args: cobra.NoArgs, Hidden: true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			within := hookShare
			if aside {
				within = hookPatience
			}
			late, err := c.underHook(cmd.Context(), within, func(ctx context.Context, client *api.Client) error {
				if atEnd && !aside {
					if anew, err := c.onlyAnew(ctx); anew || err != nil {
						return err
					}
				}
				if task == "" {
					return c.onHeldSession(ctx, client, session)
				}
				_, err := onTask(client, ctx, task)
				return err
			})
			if late && !aside {
				err = goOnAside(c.hookLine(use, task, "--aside"))
			}
			if err != nil {
				c.hint("stint hook %s: %s", use, plain(err.Error()))
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&task, "task", "", "the `TASK`, instead of a session")
	cmd.Flags().BoolVar(&aside, "aside", false, "nobody waits for it")
	return cmd
}

// hookLine are the arguments of a step. It has the environment of the command that prints the
// settings, and not its flags.
func (c *cli) hookLine(step, task string, more ...string) []string {
	line := append([]string{"hook", step}, more...)
	for _, flag := range [][2]string{{"--task", task}, {"--workspace", c.flags.workspace}, {"--data-dir", c.flags.dataDir}} {
		if flag[1] != "" {
			line = append(line, flag[0], flag[1])
		}
	}
	return line
}

// goOnAside starts a step in a process that outlives this one and holds nothing of the agent's
// that it might wait for.
func goOnAside(line []string) error {
	self, err := ourProgram()
	if err != nil {
		return fmt.Errorf("find this program: %w", err)
	}
	cmd := exec.CommandContext(context.Background(), self, line...)
	cmd.Args[0] = os.Args[0]
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("go on aside: %w", err)
	}
	return cmd.Process.Release()
}

// printHooks prints the settings, in Claude Code's format.
func (c *cli) printHooks(task string) error {
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find this program: %w", err)
	}
	type command struct {
		Type    string `json:"type"`
		Command string `json:"command"`
		Timeout int    `json:"timeout"` // seconds
	}
	type matcher struct {
		Hooks []command `json:"hooks"`
	}
	run := func(step string) []matcher {
		words := append([]string{self}, c.hookLine(step, task)...)
		for i := range words {
			words[i] = agent.ShellQuote(words[i])
		}
		return []matcher{{[]command{{"command", strings.Join(words, " "), int(hookLimit / time.Second)}}}}
	}
	b, err := json.Marshal(map[string]any{"hooks": map[string][]matcher{
		"PostToolUse": run("renew"), "Stop": run("renew"), "SessionEnd": run("release"),
	}}, json.Deterministic(true), jsontext.WithIndent("  "))
	if err != nil {
		return fmt.Errorf("write the settings: %w", err)
	}
	_, err = fmt.Fprintln(c.out, string(b))
	return err
}

// onlyAnew reports whether the agent program only begins another conversation, by the event that it
// tells of on standard input. If it tells of none there, it has ended. Error: that of ctx, when
// nothing came in time.
func (c *cli) onlyAnew(ctx context.Context) (bool, error) {
	if isTerminal(c.in) {
		return false, nil
	}
	reason := make(chan string, 1)
	go func() { // which stays behind when nothing comes: the process ends soon
		var event struct {
			Reason string `json:"reason"`
		}
		text, err := jsontext.NewDecoder(io.LimitReader(c.in, longestEvent)).ReadValue() // who keeps the stream open is not waited for
		if err == nil {
			err = json.Unmarshal(text, &event)
		}
		if err != nil {
			event.Reason = ""
		}
		reason <- event.Reason
	}()
	select {
	case why := <-reason:
		return slices.Contains(goOnAfter, why), nil
	case <-ctx.Done():
	}
	select { // on a busy machine both may have come
	case why := <-reason:
		return slices.Contains(goOnAfter, why), nil
	default:
		return false, ctx.Err()
	}
}

// underHook does something within a time, and reports whether that was too short.
func (c *cli) underHook(ctx context.Context, within time.Duration, do func(context.Context, *api.Client) error) (late bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	client, err := c.connect("cannot reach the coordinator")
	if err == nil {
		err = do(ctx, client)
	}
	return err != nil && errors.Is(ctx.Err(), context.DeadlineExceeded), err
}

// onHeldSession does something for the session that the environment names, unless it is over.
func (c *cli) onHeldSession(ctx context.Context, client *api.Client, do func(context.Context, *api.Client, api.Session) error) error {
	var id api.SessionID
	if err := id.UnmarshalText([]byte(c.env("STINT_SESSION_ID"))); err != nil || id == 0 {
		return fmt.Errorf("STINT_SESSION_ID names no session")
	}
	s, err := client.Session(ctx, id)
	if err != nil {
		return err
	}
	if s.Status.Terminal() {
		return nil
	}
	return do(ctx, client, s)
}

// hookClaim is the proof of the claim from the environment; a run's own token needs none.
func (c *cli) hookClaim() (api.UnderClaim, error) {
	out := api.UnderClaim{InstanceID: c.env("STINT_INSTANCE_ID")}
	if err := out.ClaimID.UnmarshalText([]byte(c.env("STINT_CLAIM_ID"))); err != nil {
		return out, fmt.Errorf("STINT_CLAIM_ID: %w", err)
	}
	return out, nil
}

func (c *cli) renewByHook(ctx context.Context, client *api.Client, s api.Session) error {
	proof, err := c.hookClaim()
	if err != nil {
		return err
	}
	_, err = client.Renew(ctx, api.Held{Agent: s.AgentID, Worker: s.WorkerID, Session: s.ID}, api.RenewRequest{UnderClaim: proof})
	return err
}

func (c *cli) releaseByHook(ctx context.Context, client *api.Client, s api.Session) error {
	proof, err := c.hookClaim()
	if err != nil {
		return err
	}
	_, err = client.Release(ctx, api.Held{Agent: s.AgentID, Worker: s.WorkerID, Session: s.ID}, api.ReleaseRequest{UnderClaim: proof, Reason: "agent_ended"})
	return err
}
