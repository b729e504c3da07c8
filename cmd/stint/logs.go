package main

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"stint/api"
)

type logsFlags struct {
	follow     bool
	raw        bool
	stderr     bool
	timestamps bool
	tail       int
	since      string
}

func (c *cli) logsCommand() *cobra.Command {
	var f logsFlags
	cmd := &cobra.Command{
		Use:   "logs SESSION|AGENT",
		Short: "Print the output of a session, or of an agent's last one",
		Long: "Prints all that a session has put out. On a terminal its colours are kept and\n" +
			"everything else that acts on a terminal is left out; in a pipe it is plain text.\n" +
			"Of a conversation it prints what was said, and a line for each tool call.",
		Example: "stint logs ses_02r3v0n8e2 -f\nstint logs backup\nstint logs ses_02r3v0n8e2 --tail 20\nstint logs ses_02r3v0n8e2 --raw > build.log",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			what := "cannot print the output of " + args[0]
			if cmd.Flags().Changed("tail") && f.tail < 0 {
				return usage(what, "--tail: "+strconv.Itoa(f.tail)+" is no number of lines; write 20 for the last 20", "stint logs --help")
			}
			p, err := c.newPrinter(f, what)
			if err != nil {
				return err
			}
			return c.withLastSession(cmd.Context(), what, args[0], func(ctx context.Context, client *api.Client, id api.SessionID) error {
				err := c.logs(ctx, client, id, f, p)
				if err != nil && ctx.Err() != nil && f.follow {
					return c.gaveUp(ctx, id)
				}
				return explain(what, err, "stint sessions")
			})
		},
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.BoolVarP(&f.follow, "follow", "f", false, "go on until the session has ended")
	flags.IntVar(&f.tail, "tail", -1, "begin with the last `N` lines")
	flags.Lookup("tail").DefValue = "0" // so that help shows no default
	flags.StringVar(&f.since, "since", "", "begin at this `TIME`: 5m, 2026-11-01")
	flags.BoolVar(&f.stderr, "stderr", false, "only what went to the standard error")
	flags.BoolVar(&f.timestamps, "timestamps", false, "begin each line with its time")
	flags.BoolVar(&f.raw, "raw", false, "keep every byte, escape sequences too")
	return cmd
}

// logs prints what is stored and, with -f, what comes.
func (c *cli) logs(ctx context.Context, client *api.Client, id api.SessionID, f logsFlags, p *printer) error {
	fol := follower{c: c, client: client, id: id, lines: p.print}
	if f.tail >= 0 {
		items, err := lastLines(ctx, client, id, f.tail, p)
		if err != nil {
			return err
		}
		if fol.after, err = lastSeq(ctx, client, id, items); err != nil {
			return err
		}
		if err := p.print(items); err != nil {
			return err
		}
	}
	var err error
	if f.follow {
		_, err = fol.run(ctx)
	} else if _, err = client.Session(ctx, id); err == nil && f.tail < 0 {
		err = fol.drain(ctx)
	}
	if err != nil {
		_ = p.close() // the terminal is restored; the error says more
		return err
	}
	return p.close()
}

// lastLines gathers the items with the last n lines of output, from the end backwards, and
// cuts the first of them to what was asked for. A line may begin in one item and end in
// another.
func lastLines(ctx context.Context, client *api.Client, id api.SessionID, n int, p *printer) ([]api.Item, error) {
	var items []api.Item
	var before int64
	for n > 0 {
		page, err := client.ItemsBefore(ctx, id, before, pageSize)
		if err != nil {
			return nil, err
		}
		for _, item := range slices.Backward(page.Items) {
			if n == 0 || !p.wants(item) {
				continue
			}
			item = p.spoken(item)
			item.Text, n = tailOf(item.Text, n, len(items) == 0)
			items = append(items, item)
		}
		if len(page.Items) == 0 || page.Items[0].Seq <= 1 {
			break
		}
		before = page.Items[0].Seq
	}
	slices.Reverse(items)
	return items, nil
}

// lastSeq is where a follower continues after the items of --tail.
func lastSeq(ctx context.Context, client *api.Client, id api.SessionID, items []api.Item) (int64, error) {
	if len(items) > 0 {
		return items[len(items)-1].Seq, nil
	}
	page, err := client.ItemsBefore(ctx, id, 0, 1)
	return page.LastSeq, err
}

// tailOf cuts text to what belongs to the last n lines, and returns how many more line breaks
// are to be found before it. The break at the very end of all output (last) ends the last line
// and begins no other.
func tailOf(text string, n int, last bool) (string, int) {
	end := len(text)
	if last {
		end = len(strings.TrimSuffix(text, "\n"))
	}
	for {
		end = strings.LastIndexByte(text[:end], '\n')
		if end < 0 {
			return text, n
		}
		if n--; n == 0 {
			return text[end+1:], 0
		}
	}
}

// printer writes items of output for a reader.
type printer struct {
	c          *cli
	out        output
	onlyStderr bool
	timestamps bool
	since      time.Time
	midLine    bool // the last thing written did not end its line
}

func (c *cli) newPrinter(f logsFlags, what string) (*printer, error) {
	p := &printer{c: c, out: output{w: c.out}, onlyStderr: f.stderr, timestamps: f.timestamps}
	switch {
	case f.raw:
		p.out.keep = keepAll
	case c.outLook.on:
		p.out.keep = keepColor
	}
	if f.since != "" {
		at, err := api.ParseTime(f.since, c.now(), true)
		if err != nil {
			return nil, usage(what, "--since: "+err.Error(), "stint logs --help")
		}
		p.since = at
	}
	return p, nil
}

// wants reports whether an item is output that the reader asked for, or a part of a
// conversation that a line is printed for.
func (p *printer) wants(item api.Item) bool {
	talk := !p.onlyStderr && p.out.keep != keepAll && !p.c.flags.json
	return (item.Kind == api.ItemText || talk && item.Told()) && (!p.onlyStderr || item.Stream == "stderr") && !item.At.Before(p.since)
}

func (p *printer) print(items []api.Item) error {
	for _, item := range items {
		if p.c.flags.json {
			if item.At.Before(p.since) || p.onlyStderr && item.Stream != "stderr" {
				continue
			}
			if err := p.c.line(item); err != nil {
				return err
			}
			continue
		}
		if !p.wants(item) {
			continue
		}
		if err := p.text(p.spoken(item)); err != nil {
			return err
		}
	}
	return nil
}

func (p *printer) text(item api.Item) error {
	if item.Text == "" {
		return nil
	}
	if item.Stream == "" && p.midLine && p.out.keep != keepAll {
		if err := p.out.write("\n"); err != nil {
			return err
		}
		p.midLine = false
	}
	text := item.Text
	if p.timestamps {
		text = p.stamped(item)
	}
	p.midLine = !strings.HasSuffix(text, "\n")
	return p.out.write(text)
}

// stamped puts the item's time before each line that begins in it.
func (p *printer) stamped(item api.Item) string {
	var b strings.Builder
	for line := range strings.Lines(item.Text) {
		if !p.midLine {
			b.WriteString(item.At.String() + " ")
		}
		b.WriteString(line)
		p.midLine = !strings.HasSuffix(line, "\n")
	}
	return b.String()
}

// close ends, on a terminal, a last line without an end, and resets its colours.
func (p *printer) close() error {
	if err := p.out.close(); err != nil {
		return err
	}
	if p.midLine && p.c.tty && !p.c.flags.json {
		_, err := fmt.Fprintln(p.c.out)
		return err
	}
	return nil
}
