package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"stint/api"
	"stint/engine"
)

// retentionFlags are the flags of up and serve about what is kept, by the kind.
type retentionFlags map[string]*string

func (f *retentionFlags) add(flags *pflag.FlagSet) {
	*f = retentionFlags{}
	defaults := engine.DefaultRetention()
	for _, k := range engine.RetentionKinds {
		(*f)[k.Name] = flags.String("retention-"+k.Name, "", fmt.Sprintf("keep %s within `LIMITS` such as %s,count=500,bytes=5GiB\n(%s; else %s)",
			k.Name, spoken(k.In(&defaults).Age), retentionVariable(k.Name), spoken(k.In(&defaults).Age)))
	}
}

func retentionVariable(kind string) string { return "STINT_RETENTION_" + strings.ToUpper(kind) }

// spoken is an age in days where it is a number of them.
func spoken(age time.Duration) string {
	const day = 24 * time.Hour
	if age%day == 0 {
		return strconv.Itoa(int(age/day)) + "d"
	}
	return brief(age)
}

// retention is what is kept, by the flags or the environment.
func (c *cli) retention(f retentionFlags) (engine.Retention, error) {
	out := engine.DefaultRetention()
	for _, k := range engine.RetentionKinds {
		text, name := c.env(retentionVariable(k.Name)), retentionVariable(k.Name)
		if set := f[k.Name]; set != nil && *set != "" {
			text, name = *set, "--retention-"+k.Name
		}
		if text == "" {
			continue
		}
		limit, err := parseRetention(text, *k.In(&out))
		if err != nil {
			return out, usage("cannot start the server", name+": "+err.Error(), "stint serve --retention-"+k.Name+" 90d,count=1000,bytes=10GiB")
		}
		*k.In(&out) = limit
	}
	return out, nil
}

// parseRetention reads limits: an age, count=N, bytes=SIZE, joined by commas; or never. What isn't
// named stays as it is.
func parseRetention(text string, out engine.RetentionLimit) (engine.RetentionLimit, error) {
	for _, part := range strings.Split(text, ",") {
		key, value, named := strings.Cut(strings.TrimSpace(part), "=")
		if !named {
			key, value = "age", key
		}
		var err error
		switch {
		case key == "age" && value == "never":
			out.Age = 0
		case key == "age":
			if out.Age, err = api.ParseLength(value); err == nil && out.Age < engine.Settled {
				err = fmt.Errorf("an age of %s is less than an hour", value)
			}
		case key == "count":
			if out.Count, err = strconv.ParseInt(value, 10, 32); err != nil || out.Count < 1 {
				err = fmt.Errorf("count is a number from 1 on, not %q", value)
			}
		case key == "bytes":
			out.Bytes, err = parseSize(value)
		default:
			err = fmt.Errorf("%q is neither an age such as 30d nor never, count=N or bytes=SIZE", part)
		}
		if err != nil {
			return out, err
		}
	}
	return out, nil
}

// parseSize reads a number of bytes such as 500MiB.
func parseSize(text string) (int64, error) {
	for unit, of := range map[string]int64{"KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40} {
		if digits, ok := strings.CutSuffix(text, unit); ok {
			if n, err := strconv.ParseInt(digits, 10, 32); err == nil && n > 0 && n <= 1<<62/of {
				return n * of, nil
			}
		}
	}
	return 0, fmt.Errorf("bytes is a whole number of KiB, MiB, GiB or TiB such as 500MiB, not %q", text)
}

func (c *cli) keepCommand() *cobra.Command {
	release := false
	var of chosen
	cmd := &cobra.Command{
		Use: "keep SESSION… | --query QUERY", Short: "Keep sessions from being removed when they are old",
		Long: "Keeps sessions, with their output, events and the rest of their conversation, until they\n" +
			"are let go with --release. Others are removed once they are old: see stint prune.",
		Example: "stint keep ses_02r3v0n8e2\nstint keep ses_02r3v0n8e2 --release",
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.eachSession(cmd.Context(), "keep", of, args, nil, func(ctx context.Context, client *api.Client, id api.SessionID, count int) error {
				answer, err := client.KeepSession(ctx, id, !release)
				if err != nil {
					return err
				}
				return c.several(answer, id.String(), count, func() error {
					switch {
					case !answer.Changed && release:
						c.hint("Nothing to do: %s isn't kept.", id)
					case !answer.Changed:
						c.hint("Nothing to do: %s is kept already.", id)
					case release:
						c.hint("%s is removed once it is old.", id)
					default:
						c.hint("%s is kept until it is released.", id)
					}
					return nil
				})
			})
		},
	}
	cmd.Flags().BoolVar(&release, "release", false, "let them go again")
	of.add(cmd, "agent:deps status:error")
	return cmd
}

func (c *cli) pruneCommand() *cobra.Command {
	var in api.PruneInput
	cmd := &cobra.Command{
		Use: "prune", Short: "Remove now what is old, or say what that would be", Args: cobra.NoArgs,
		Long: "Removes what is beyond the limits of retention: the output, events and rows of sessions\n" +
			"that have ended, entries of the audit, and messages to webhooks and channels. The server\n" +
			"does that by itself every hour. What runs, waits or is kept stays, and so do the ledger\n" +
			"of schedules and the daily figures. It covers the whole server.",
		Example: "stint prune --dry-run\nstint prune",
		RunE: func(cmd *cobra.Command, _ []string) error {
			client, err := c.connect("cannot prune")
			if err != nil {
				return err
			}
			got, err := prune(cmd.Context(), client, in)
			if err != nil {
				return explain("cannot prune", err, "stint prune --dry-run")
			}
			return c.show(got, "", func() error { return c.sayPruned(got, in.DryRun) })
		},
	}
	cmd.Flags().BoolVar(&in.DryRun, "dry-run", false, "remove nothing, only say what would go")
	return cmd
}

// prune asks until all is removed: the server answers before a request takes too long.
func prune(ctx context.Context, client *api.Client, in api.PruneInput) (out api.Pruned, err error) {
	for {
		got, err := client.Prune(ctx, in)
		if err != nil {
			return out, err
		}
		out.Sessions += got.Sessions
		out.Output += got.Output
		out.Events += got.Events
		out.Audit += got.Audit
		out.Deliveries += got.Deliveries
		if out.Done = got.Done; out.Done || in.DryRun {
			return out, nil
		}
	}
}

func (c *cli) sayPruned(got api.Pruned, dry bool) error {
	rows := []struct {
		n    int64
		what string
	}{
		{got.Sessions, "sessions, with all that is theirs"},
		{got.Output, "sessions' output"},
		{got.Events, "events"},
		{got.Audit, "entries of the audit"},
		{got.Deliveries, "messages to webhooks and channels"},
	}
	for _, r := range rows {
		if err := c.say("%8d  %s", r.n, r.what); err != nil {
			return err
		}
	}
	switch {
	case dry && got == (api.Pruned{Done: true}):
		c.hint("Nothing is old enough to go now.")
	case dry && got.Done:
		c.hint("That much would go now. Remove it with: stint prune")
	case dry:
		c.hint("At least that much would go now: counting ended at 50,000 of a kind.")
	}
	return nil
}

func (c *cli) supportBundleCommand() *cobra.Command {
	return &cobra.Command{
		Use: "support-bundle [FILE|-]", Short: "Write what somebody who helps needs to know, without secrets", Args: cobra.MaximumNArgs(1),
		Long: "Writes one JSON document with versions, sizes, counts, limits and the codes of what is\n" +
			"wrong. No prompt, output, address, secret or name is in it. FILE must not exist; none is\n" +
			"stint-support.json in this directory, and - is stdout.",
		Example: "stint support-bundle\nstint support-bundle - | jq .system.files",
		RunE: func(cmd *cobra.Command, args []string) error {
			const what = "cannot make a support bundle"
			client, err := c.connect(what)
			if err != nil {
				return err
			}
			got, err := client.SupportBundle(cmd.Context())
			if err != nil {
				return explain(what, err, "stint doctor")
			}
			name := "stint-support.json"
			if len(args) > 0 {
				name = args[0]
			}
			if name == "-" {
				return c.line(got)
			}
			text, err := json.Marshal(got, json.Deterministic(true))
			if err == nil {
				err = writeNew(name, append(text, '\n'))
			}
			if err != nil {
				return &problem{code: exitFailed, what: what, why: name + ": " + reason(err), next: "stint support-bundle OTHER.json"}
			}
			return c.say("%s", name)
		},
	}
}

// writeNew writes a file that must not be there yet, for its owner alone.
func writeNew(name string, text []byte) error {
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	return errors.Join(err, f.Close())
}
