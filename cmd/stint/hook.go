package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/spf13/cobra"

	"stint/api"
	"stint/worker/agent"
)

// hookPatience bounds how much of the agent's time a hook may take: if a lease isn't renewed
// now, the next one does it.
const hookPatience = 3 * time.Second

func (c *cli) hookCommand() *cobra.Command {
	hook := &cobra.Command{Use: "hook", Short: "Keep a lease by an agent program's own hooks"}
	claude := &cobra.Command{
		Use:   "claude",
		Short: "Print settings with which Claude Code keeps a session's lease",
		Long: "Prints settings for Claude Code that renew the lease of a session after each use\n" +
			"of a tool and each turn, and release it at the end. It is for a session that you\n" +
			"hold by hand; a worker keeps its leases itself.\n\n" +
			"The hooks read STINT_SESSION_ID, and STINT_CLAIM_ID and STINT_INSTANCE_ID of the\n" +
			"claim where STINT_TOKEN isn't the run's own. They never fail: when the\n" +
			"coordinator is away, Claude Code goes on.",
		Example: `claude --settings "$(stint hook claude)"`,
		Args:    cobra.NoArgs,
		RunE:    func(*cobra.Command, []string) error { return c.printHooks() },
	}
	step := func(use, short string, do func(context.Context, *api.Client, api.Session) error) *cobra.Command {
		return &cobra.Command{
			Use: use, Short: short, Args: cobra.NoArgs, Hidden: true,
			RunE: func(cmd *cobra.Command, _ []string) error {
				if err := c.underHook(cmd.Context(), do); err != nil {
					c.hint("stint hook %s: %s", use, plain(err.Error()))
				}
				return nil // whatever happened: the agent goes on
			},
		}
	}
	return group(hook, claude, step("renew", "Renew the session's lease", c.renewByHook), step("release", "Release the session", c.releaseByHook))
}

// printHooks prints the settings, in Claude Code's format.
func (c *cli) printHooks() error {
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
		return []matcher{{[]command{{"command", agent.ShellQuote(self) + " hook " + step, int(2 * hookPatience / time.Second)}}}}
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

// underHook does something for the session that the environment names. What the agent program
// says about itself on standard input is not used.
func (c *cli) underHook(ctx context.Context, do func(context.Context, *api.Client, api.Session) error) error {
	ctx, cancel := context.WithTimeout(ctx, hookPatience)
	defer cancel()
	var id api.SessionID
	if err := id.UnmarshalText([]byte(c.env("STINT_SESSION_ID"))); err != nil || id == 0 {
		return fmt.Errorf("STINT_SESSION_ID names no session")
	}
	client, err := c.connect("cannot reach the coordinator")
	if err != nil {
		return err
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
