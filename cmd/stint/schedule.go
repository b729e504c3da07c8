package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"stint/api"
	"stint/scheduler"
)

func (c *cli) scheduleCommand() *cobra.Command {
	return group(&cobra.Command{Use: "schedule", Short: "Look at schedules, and skip what comes next"},
		c.scheduleListCommand(), c.scheduleNextCommand(), c.scheduleSkipCommand())
}

func (c *cli) scheduleListCommand() *cobra.Command {
	l := listing[api.Agent]{
		what: "cannot list the schedules", page: (*api.Client).Schedules,
		head: []string{"AGENT", "NEXT", "STATE", "ZONE", "SCHEDULE"}, flex: 4,
		row: func(a api.Agent) []string {
			return []string{a.Slug, c.ago(a.NextSlotAt), c.scheduleState(a), a.TimeZone, cmp.Or(plain(a.ScheduleWords), plain(a.Schedule))}
		},
		none: "No agent has a schedule. Give one with: stint agent edit AGENT --schedule '0 9 * * 1-5'",
	}
	return l.paged(c, "List the agents that have a schedule")
}

// scheduleState says whether the next slot fires.
func (c *cli) scheduleState(a api.Agent) string {
	switch {
	case a.ScheduleError != "":
		return "broken"
	case a.Paused:
		return "paused"
	case !a.NextSlotAt.IsZero() && a.Skips(a.NextSlotAt):
		return "skipped until " + c.when(a.SkipUntil)
	case a.NextSlotAt.IsZero():
		return "never fires"
	}
	return "on"
}

func (c *cli) scheduleSkipCommand() *cobra.Command {
	var until string
	var undo bool
	cmd := &cobra.Command{
		Use:   "skip AGENT",
		Short: "Leave out an agent's next slot, or all until a time",
		Long: "The slots are noted in the agent's ledger when they come, and don't run. What you\n" +
			"start by hand runs all the same; to hold that back too, pause the agent.",
		Example: "stint schedule skip backup\nstint schedule skip backup --until 2026-12-27\nstint schedule skip backup --undo",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			what := "cannot skip slots of the agent " + args[0]
			if undo && until != "" {
				return usage(what, "--undo takes all back: leave --until out", "stint schedule skip "+args[0]+" --undo")
			}
			var to api.Time
			if until != "" {
				at, err := api.ParseTime(until, c.now(), false)
				if err != nil {
					return usage(what, "--until: "+err.Error(), "stint schedule skip --help")
				}
				to = api.Time{Time: at}
			}
			return c.withAgent(cmd.Context(), what, args[0], func(ctx context.Context, client *api.Client, ref string) error {
				skip := func() (api.AgentChanged, error) { return client.SkipSlots(ctx, ref, to) }
				if undo {
					skip = func() (api.AgentChanged, error) { return client.KeepSlots(ctx, ref) }
				}
				got, err := skip()
				if err != nil {
					return noAgent(ctx, client, what, ref, err)
				}
				return c.show(got, got.Agent.ID.String(), func() error {
					c.hint("%s", c.skippedWords(got))
					return nil
				})
			})
		},
	}
	cmd.Flags().StringVar(&until, "until", "", "skip all slots up to this `TIME` (the next slot)")
	cmd.Flags().BoolVar(&undo, "undo", false, "let the slots that haven't come yet run again")
	return cmd
}

// skippedWords say what comes of an agent's slots now.
func (c *cli) skippedWords(got api.AgentChanged) string {
	a, nothing := got.Agent, ""
	if !got.Changed {
		nothing = "Nothing to do: "
	}
	if a.SkipUntil.IsZero() {
		return fmt.Sprintf("%sno slot of %s is skipped; next %s.", nothing, a.Slug, c.ago(a.NextSlotAt))
	}
	return fmt.Sprintf("%sno slot of %s runs until after %s.", nothing, a.Slug, c.when(a.SkipUntil))
}

// maxSlots is the most slots that a preview shows.
const maxSlots = 1000

func (c *cli) scheduleNextCommand() *cobra.Command {
	var zone, from string
	var n int
	cmd := &cobra.Command{
		Use:   "next EXPR",
		Short: "Print the next slots of a schedule; needs no server",
		Long: "Prints what a schedule means and its next slots, worked out by the scheduler's\n" +
			"own code. It needs no server.",
		Example: `stint schedule next "0 9 * * 1-5" --tz Europe/Berlin -n 5
stint schedule next "@every 90m" --from 2026-11-28T09:00:00Z
stint schedule next "30 2 * * *" --tz America/New_York --from 2026-03-07 --json`,
		Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			if zone == "" {
				zone = c.machineZone()
			}
			p, err := c.preview(args[0], zone, from, n)
			if err != nil {
				return err
			}
			if c.flags.json {
				return c.document(p)
			}
			return c.printPreview(p)
		},
	}
	cmd.Flags().StringVar(&zone, "tz", "", "the `ZONE` the schedule is read in (this machine's)")
	cmd.Flags().StringVar(&from, "from", "now", "show slots after this `TIME`")
	cmd.Flags().IntVarP(&n, "count", "n", 5, "how many slots, 1 to 1000")
	return cmd
}

// preview computes the slots of an expression as the coordinator does.
func (c *cli) preview(expr, zone, from string, n int) (api.SchedulePreview, error) {
	what := fmt.Sprintf("cannot tell the slots of %q", expr)
	if n < 1 || n > maxSlots {
		return api.SchedulePreview{}, usage(what, "-n is 1 to 1000", "stint schedule next --help")
	}
	now := c.now()
	start, err := api.ParseTime(from, now, false)
	if err != nil {
		return api.SchedulePreview{}, usage(what, "--from: "+err.Error(), "stint schedule next --help")
	}
	s, err := scheduler.Parse(expr, zone, start)
	if err != nil {
		var bad *scheduler.Error
		if errors.As(err, &bad) {
			return api.SchedulePreview{}, usage(what, flagOf(bad.Field)+bad.Reason, `stint schedule next "0 9 * * 1-5" --tz Europe/Berlin`)
		}
		return api.SchedulePreview{}, usage(what, err.Error(), "")
	}
	p := api.SchedulePreview{Schedule: s.String(), TimeZone: s.Zone().String(), Words: s.Words(), Warnings: s.Warnings(start)}
	for _, at := range s.Preview(start, start, n) {
		p.Slots = append(p.Slots, api.SlotPreview{
			At: api.Time{Time: at.UTC()}, Local: at.Format(time.RFC3339), InSeconds: int64(at.Sub(now) / time.Second),
		})
	}
	return p, nil
}

// flagOf names the flag behind a field of the scheduler's refusal.
func flagOf(field string) string {
	if field == "timeZone" {
		return "--tz: "
	}
	return ""
}

func (c *cli) printPreview(p api.SchedulePreview) error {
	t := table{head: []string{"IN ITS ZONE", "HERE", ""}}
	for _, slot := range p.Slots {
		if !c.tty {
			t.rows = append(t.rows, []string{slot.Local, slot.At.String()})
			continue
		}
		own, err := time.Parse(time.RFC3339, slot.Local)
		if err != nil {
			return err
		}
		t.rows = append(t.rows, []string{own.Format("Mon ") + slot.Local, slot.At.Local().Format("Mon " + time.RFC3339), relative(slot.At.Time, c.now())})
	}
	c.hint("%s", p.Words)
	for _, w := range p.Warnings {
		c.hint("%s", c.errLook.sgr("33", "! "+w))
	}
	return c.print(t, "It has no slot.")
}
