package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"stint/api"
)

func (c *cli) workerCommand() *cobra.Command {
	all := append([]*cobra.Command{
		c.workerInitCommand(), c.workerRunCommand(), c.workerDoctorCommand(), c.workerTrustCommand(), c.workerGCCommand(),
		c.workerListCommand(), c.workerShowCommand(),
	}, c.workerSignalCommands()...)
	return group(&cobra.Command{Use: "worker", Aliases: []string{"workers"}, Short: "Run workers, look at them and tell them what to do"},
		append(all, c.workerForgetCommand())...)
}

func (c *cli) workerListCommand() *cobra.Command {
	var agent, cursor string
	var limit int
	cmd := &cobra.Command{
		Use: "list", Aliases: []string{"ls"},
		Short: "List workers",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			what := "cannot list the workers"
			if limit < 1 {
				return usage(what, "--limit is 1 or more", "stint worker list --limit 50")
			}
			client, err := c.connect(what)
			if err != nil {
				return err
			}
			if agent, err = findAgent(cmd.Context(), client, agent); err != nil {
				return err
			}
			list, err := pages(limit, cursor, func(p api.Page) (api.List[api.Worker], error) {
				if agent != "" {
					return client.AgentWorkers(cmd.Context(), agent, p)
				}
				return client.Workers(cmd.Context(), p)
			})
			if err != nil {
				return noAgent(cmd.Context(), client, what, agent, err)
			}
			return c.showWorkers(list)
		},
	}
	cmd.Flags().StringVar(&agent, "agent", "", "only this `AGENT`'s")
	cmd.Flags().IntVar(&limit, "limit", 50, "list at most so many")
	cmd.Flags().StringVar(&cursor, "cursor", "", "go on after the page whose nextCursor this is")
	return cmd
}

func (c *cli) showWorkers(list api.List[api.Worker]) error {
	if c.flags.json {
		return c.document(list)
	}
	t := table{head: []string{"WORKER", "AGENT", "NAME", "STATE", "RUNNING", "LAST BEAT", "PLATFORM"}, flex: 2}
	for _, w := range list.Items {
		state := string(w.State)
		switch {
		case w.PendingSignal != nil:
			state += ", told to " + string(w.PendingSignal.Signal)
		case w.DesiredState != api.DesiredRunning:
			state += ", " + string(w.DesiredState)
		case c.tty:
			state = c.outLook.worker(w.State)
		}
		t.rows = append(t.rows, []string{w.ID.String(), w.AgentSlug, plain(w.Name), state, fmt.Sprintf("%d/%d", w.Running, w.MaxConcurrent), c.ago(w.LastBeatAt), plain(w.Platform)})
	}
	return c.print(t, "There is no worker yet. stint up runs one; elsewhere: stint worker run")
}
