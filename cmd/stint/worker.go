package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"stint/api"
)

func (c *cli) workerCommand() *cobra.Command {
	all := append([]*cobra.Command{
		c.workerInitCommand(), c.workerRunCommand(), c.workerDoctorCommand(), c.workerTrustCommand(), c.workerRulesCommand(), c.workerGCCommand(),
		c.workerListCommand(), c.workerShowCommand(),
	}, c.workerSignalCommands()...)
	return group(&cobra.Command{Use: "worker", Aliases: []string{"workers"}, Short: "Run workers, look at them and tell them what to do"},
		append(all, c.workerForgetCommand())...)
}

func (c *cli) workerListCommand() *cobra.Command {
	var agent string
	var p paging
	l := listing[api.Worker]{
		what: "cannot list the workers",
		head: []string{"WORKER", "AGENT", "NAME", "STATE", "RUNNING", "LAST BEAT", "PLATFORM"}, flex: 2,
		row:  c.workerRow,
		none: "There is no worker yet. stint up runs one; elsewhere: stint worker run",
	}
	cmd := l.command(c, "List workers")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if err := p.check(l.what, "stint worker list --limit 50"); err != nil {
			return err
		}
		return l.ofAgent(cmd.Context(), c, agent, p, workersOf)
	}
	cmd.Flags().StringVar(&agent, "agent", "", "only this `AGENT`'s")
	p.add(cmd.Flags())
	return cmd
}

// workersOf is a page of an agent's workers, or with "" of all.
func workersOf(ctx context.Context, client *api.Client, agent string, p api.Page) (api.List[api.Worker], error) {
	if agent != "" {
		return client.AgentWorkers(ctx, agent, p)
	}
	return client.Workers(ctx, p)
}

func (c *cli) workerRow(w api.Worker) []string {
	state := string(w.State)
	switch {
	case w.PendingSignal != nil:
		state += ", told to " + string(w.PendingSignal.Signal)
	case w.DesiredState != api.DesiredRunning:
		state += ", " + string(w.DesiredState)
	case c.tty:
		state = c.outLook.worker(w.State)
	}
	return []string{w.ID.String(), w.AgentSlug, plain(w.Name), state, fmt.Sprintf("%d/%d", w.Running, w.MaxConcurrent), c.ago(w.LastBeatAt), plain(w.Platform)}
}
