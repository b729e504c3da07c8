package main

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"stint/api"
)

const (
	testPatience = 20 * time.Second // how long a test's outcome is waited for
	testPace     = 200 * time.Millisecond
)

func (c *cli) notifyCommand() *cobra.Command {
	return group(&cobra.Command{
		Use: "notify", Short: "Be told what happens: by ntfy, Slack, mail …",
		Long: "Channels tell you, or everybody in the workspace, that a question waits or that an\n" +
			"agent fails. The address of a channel is a secret: it is read from stdin or a file,\n" +
			"and never shown again.",
	},
		c.notifyListCommand(), c.notifyKindsCommand(), c.notifyAddCommand(), c.notifyEditCommand(), c.notifyTestCommand(), c.notifyLogCommand(), c.notifyRemoveCommand())
}

func channelID(text, what string) (api.ChannelID, error) {
	return wholeID[api.ChannelID](text, what, "channel", "stint notify list")
}

func (c *cli) notifyListCommand() *cobra.Command {
	return listing[api.Channel]{
		what: "cannot list the channels", next: "stint notify list", page: (*api.Client).Channels,
		head: []string{"CHANNEL", "STATE", "FOR", "TO", "WHEN", "TELLS"}, flex: 5,
		row:  channelRow,
		none: "No channels. Make one with: stint notify add -",
	}.command(c, "List your channels, and the workspace's if you are an admin")
}

func channelRow(ch api.Channel) []string {
	state := "enabled"
	if !ch.Enabled {
		state = "disabled"
		if ch.DisabledReason != "" {
			state += ": " + ch.DisabledReason
		}
	}
	tells := strings.Join(ch.Causes, ",")
	if len(ch.Causes) == len(api.Causes) {
		tells = "everything"
	}
	return []string{ch.ID.String(), state, string(ch.Scope), ch.Target, channelTimes(ch), tells}
}

func (c *cli) notifyKindsCommand() *cobra.Command {
	return &cobra.Command{
		Use: "kinds", Short: "List the services, and how each one's address is written", Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			return c.show(api.ChannelKinds, "", func() error {
				for _, k := range api.ChannelKinds {
					if err := c.say("%s  %s\n    %s", k.Name, k.Pattern, k.Means); err != nil {
						return err
					}
				}
				c.hint("%s", api.ChannelsInside)
				return nil
			})
		},
	}
}

type notifyFlags struct {
	quiet       string
	digest      string
	zone        string
	description string
	causes      []string
	workspace   bool
	details     bool
	url         string
	enable      bool
	disable     bool
}

func (f *notifyFlags) add(cmd *cobra.Command) {
	names := make([]string, len(api.Causes))
	for i, one := range api.Causes {
		names[i] = string(one.Cause)
	}
	cmd.Flags().StringSliceVar(&f.causes, "tell", nil, "only this `CAUSE`; repeat for more: "+strings.Join(names, ", "))
	cmd.Flags().StringVar(&f.description, "description", "", "what it is for")
	cmd.Flags().BoolVar(&f.details, "details", false, "with questions and errors in their words")
	cmd.Flags().StringVar(&f.quiet, "quiet-hours", "", "tell nothing in these `HOURS`, such as 22:00-07:00; off ends that")
	cmd.Flags().StringVar(&f.digest, "digest", "", "tell all of a day in one message at this `TIME`, such as 08:00;\noff ends that")
	cmd.Flags().StringVar(&f.zone, "tz", "", "the `ZONE` of these times (this machine's)")
}

// times adds to what is sent when the channel may tell; has is the zone that it has already.
func (f *notifyFlags) times(c *cli, cmd *cobra.Command, has func() (string, error), to map[string]any) error {
	changed := cmd.Flags().Changed
	from, until, _ := strings.Cut(switchedOff(f.quiet), "-")
	if changed("quiet-hours") {
		to["quietFrom"], to["quietTo"] = from, until
	}
	if changed("digest") {
		to["digestAt"] = switchedOff(f.digest)
	}
	switch {
	case changed("tz"):
		to["timeZone"] = f.zone
	case from != "" || switchedOff(f.digest) != "":
		zone, err := has()
		if err != nil {
			return err
		}
		to["timeZone"] = cmp.Or(zone, c.machineZone())
	}
	return nil
}

func switchedOff(text string) string {
	if text == "off" {
		return ""
	}
	return text
}

// channelTimes say when a channel tells, if not always.
func channelTimes(ch api.Channel) string {
	var parts []string
	if ch.QuietFrom != "" {
		parts = append(parts, "not "+ch.QuietFrom+"-"+ch.QuietTo)
	}
	if ch.DigestAt != "" {
		parts = append(parts, "daily at "+ch.DigestAt)
	}
	if len(parts) == 0 {
		return ""
	}
	return strings.Join(parts, ", ") + " " + ch.TimeZone
}

func (c *cli) notifyAddCommand() *cobra.Command {
	var f notifyFlags
	cmd := &cobra.Command{
		Use: "add FILE", Short: "Make a channel from the address in a file; - reads stdin", Args: cobra.MaximumNArgs(1),
		Example: "echo ntfy://ntfy.sh/my-secret-topic | stint notify add -\nstint notify add --workspace --tell failing,needs_you ./team-channel",
		RunE: func(cmd *cobra.Command, args []string) error {
			what, next := "cannot make the channel", "stint notify kinds"
			if len(args) == 0 {
				return usage(what, "no address is given: "+addressFrom, pipeAddress)
			}
			address, err := c.channelAddress(args[0])
			if errors.Is(err, fs.ErrNotExist) {
				return usage(what, strconv.Quote(args[0])+" is no file: "+addressFrom, pipeAddress)
			}
			if err != nil {
				return usage(what, api.Plain(err), next)
			}
			in := map[string]any{"url": address, "description": f.description, "details": f.details, "scope": api.ScopePerson}
			if f.workspace {
				in["scope"] = api.ScopeWorkspace
			}
			if cmd.Flags().Changed("tell") {
				in["causes"] = f.causes
			}
			if err := f.times(c, cmd, func() (string, error) { return "", nil }, in); err != nil {
				return err
			}
			ch, err := call(cmd.Context(), c, what, next, func(client *api.Client, ctx context.Context) (api.Channel, error) {
				return client.CreateChannel(ctx, in)
			})
			if err != nil {
				return err
			}
			return c.showChannel(ch)
		},
	}
	f.add(cmd)
	cmd.Flags().BoolVar(&f.workspace, "workspace", false, "of what everybody may see, for a place that all read;\nadmins only")
	return cmd
}

// What to tell people who expect to give an address, or a name, as an argument.
const (
	addressFrom = "the address is a secret, and is read from standard input (-) or from a file"
	pipeAddress = "echo ntfy://ntfy.sh/TOPIC | stint notify add -"
)

// channelAddress reads an address from stdin or a file. As an argument every user of the
// machine could read it, and the shell would keep it.
func (c *cli) channelAddress(from string) (string, error) {
	if strings.Contains(from, "://") {
		return "", errors.New("an address is a secret, and arguments can be read by others: write it into a file, or give - and write it to stdin")
	}
	text, err := c.fileText(from)
	return strings.TrimSpace(string(text)), err
}

func (c *cli) showChannel(ch api.Channel) error {
	return c.show(ch, ch.ID.String(), func() error {
		row := channelRow(ch)
		if err := c.say("%s  %s  %s", row[0], row[1], row[3]); err != nil {
			return err
		}
		c.hint("Try it with: stint notify test " + row[0])
		return nil
	})
}

func (c *cli) notifyEditCommand() *cobra.Command {
	var f notifyFlags
	cmd := &cobra.Command{
		Use: "edit CHANNEL", Short: "Change a channel", Args: cobra.ExactArgs(1),
		Example: "stint notify edit chn_0nw59sg001 --tell needs_you\nstint notify edit chn_0nw59sg001 --url -\nstint notify edit chn_0nw59sg001 --quiet-hours 22:00-07:00 --tz Europe/Berlin",
		RunE: func(cmd *cobra.Command, args []string) error {
			what := "cannot change the channel"
			id, err := channelID(args[0], what)
			if err != nil {
				return err
			}
			if f.enable && f.disable {
				return usage(what, "--enable and --disable are one or the other", "stint notify edit --help")
			}
			flags, patch := cmd.Flags(), map[string]any{}
			for _, part := range []struct {
				flag, field string
				value       any
			}{{"tell", "causes", f.causes}, {"description", "description", f.description}, {"details", "details", f.details}, {"enable", "enabled", true}, {"disable", "enabled", false}} {
				if flags.Changed(part.flag) {
					patch[part.field] = part.value
				}
			}
			if flags.Changed("url") {
				if patch["url"], err = c.channelAddress(f.url); err != nil {
					return usage(what, api.Plain(err), "stint notify kinds")
				}
			}
			has := func() (string, error) {
				ch, err := call(cmd.Context(), c, what, "stint notify list", func(client *api.Client, ctx context.Context) (api.Channel, error) {
					return client.Channel(ctx, id)
				})
				return ch.TimeZone, err
			}
			if err := f.times(c, cmd, has, patch); err != nil {
				return err
			}
			ch, err := call(cmd.Context(), c, what, "stint notify list", func(client *api.Client, ctx context.Context) (api.Channel, error) {
				return client.EditChannel(ctx, id, patch)
			})
			if err != nil {
				return err
			}
			return c.showChannel(ch)
		},
	}
	f.add(cmd)
	cmd.Flags().StringVar(&f.url, "url", "", "the new address, from a `FILE`; - reads stdin")
	cmd.Flags().BoolVar(&f.enable, "enable", false, "tell again, from now on")
	cmd.Flags().BoolVar(&f.disable, "disable", false, "tell nothing")
	return cmd
}

func (c *cli) notifyTestCommand() *cobra.Command {
	return &cobra.Command{
		Use: "test CHANNEL", Short: "Send a test and say what came of it", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			what, next := "cannot send the test", "stint notify list"
			id, err := channelID(args[0], what)
			if err != nil {
				return err
			}
			sent, err := call(cmd.Context(), c, what, next, func(client *api.Client, ctx context.Context) (api.ChannelDelivery, error) {
				return tested(ctx, client, id)
			})
			if err != nil {
				return err
			}
			if err := c.channelLog().show(c, api.List[api.ChannelDelivery]{Items: []api.ChannelDelivery{sent}}); err != nil {
				return err
			}
			if sent.State != api.DeliveryDelivered {
				return explain(what, errors.New(cmp.Or(sent.Problem, "it is still being sent")), "stint notify log "+args[0])
			}
			return nil
		},
	}
}

// tested sends a test and waits until it has been tried.
func tested(ctx context.Context, client *api.Client, id api.ChannelID) (api.ChannelDelivery, error) {
	d, err := client.TestChannel(ctx, id)
	for waited := time.Duration(0); err == nil && d.State == api.DeliveryWaiting && waited < testPatience; waited += testPace {
		pause := time.NewTimer(testPace)
		select {
		case <-ctx.Done():
			pause.Stop()
			return d, ctx.Err()
		case <-pause.C:
		}
		d, err = client.ChannelDelivery(ctx, id, d.ID)
	}
	return d, err
}

func (c *cli) notifyLogCommand() *cobra.Command {
	var p paging
	cmd := &cobra.Command{
		Use: "log CHANNEL", Short: "List what a channel has told, the newest first", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			l := c.channelLog()
			id, err := channelID(args[0], l.what)
			if err != nil {
				return err
			}
			if err := p.check(l.what, "stint notify log --help"); err != nil {
				return err
			}
			l.page = func(client *api.Client, ctx context.Context, p api.Page) (api.List[api.ChannelDelivery], error) {
				return client.ChannelDeliveries(ctx, id, p)
			}
			return l.run(cmd.Context(), c, p)
		},
	}
	cmd.Flags().IntVar(&p.limit, "limit", 50, "list at most so many")
	return cmd
}

func (c *cli) channelLog() listing[api.ChannelDelivery] {
	return listing[api.ChannelDelivery]{
		what: "cannot list what was told", next: "stint notify list",
		head: []string{"MESSAGE", "STATE", "TITLE", "TRIES", "CREATED", "ANSWER"}, flex: 5,
		row: func(d api.ChannelDelivery) []string {
			answer := d.Problem
			if answer == "" && d.StatusCode != 0 {
				answer = strconv.FormatInt(d.StatusCode, 10)
			}
			switch {
			case d.State == api.DeliveryWaiting && d.HeldBack != "" && d.Tries == 0:
				answer = "held back " + d.HeldBack
			case d.State == api.DeliveryWaiting && d.Tries > 0:
				answer += "; next try " + c.when(d.NextTryAt)
			case d.PartOf != 0:
				answer = strings.TrimSpace("in one message with " + d.PartOf.String() + " " + answer)
			}
			return []string{d.ID.String(), string(d.State), d.Title, strconv.FormatInt(d.Tries, 10), c.ago(d.CreatedAt), plain(answer)}
		},
		none: "Nothing was told yet. Try it with: stint notify test CHANNEL",
	}
}

func (c *cli) notifyRemoveCommand() *cobra.Command {
	return &cobra.Command{
		Use: "remove CHANNEL", Short: "Remove a channel and its address; what waits is not told", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			what := "cannot remove the channel"
			id, err := channelID(args[0], what)
			if err != nil {
				return err
			}
			client, err := c.connect(what)
			if err != nil {
				return err
			}
			if err := client.DeleteChannel(cmd.Context(), id); err != nil {
				return explain(what, err, "stint notify list")
			}
			return nil
		},
	}
}
