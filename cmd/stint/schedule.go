package main

import (
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"stint/api"
	"stint/scheduler"
)

func (c *cli) scheduleCommand() *cobra.Command {
	return group(&cobra.Command{Use: "schedule", Short: "Look at schedules"},
		c.scheduleNextCommand())
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
		t.rows = append(t.rows, []string{slot.Local, slot.At.Local().Format(time.RFC3339), relative(slot.At.Time, c.now())})
	}
	c.hint("%s", p.Words)
	for _, w := range p.Warnings {
		c.hint("%s", c.errLook.sgr("33", "! "+w))
	}
	return c.print(t, "It has no slot.")
}
