package main

import (
	"context"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"stint/api"
)

func (c *cli) webhookCommand() *cobra.Command {
	return group(&cobra.Command{Use: "webhook", Short: "Tell other programs what happens"},
		c.webhookListCommand(), c.webhookCreateCommand(), c.webhookEditCommand(), c.webhookVerbCommand(webhookRotate),
		c.webhookVerbCommand(webhookTest), c.webhookDeliveriesCommand(), c.webhookRedeliverCommand(), c.webhookVerbCommand(webhookDelete))
}

func webhookID(text, what string) (id api.WebhookID, err error) {
	return wholeID[api.WebhookID](text, what, "webhook", "stint webhook list")
}

func (c *cli) webhookListCommand() *cobra.Command {
	return listing[api.Webhook]{
		what: "cannot list the webhooks", next: "stint webhook list", page: (*api.Client).Webhooks,
		head: []string{"WEBHOOK", "STATE", "URL", "TYPES"}, flex: 2,
		row: func(w api.Webhook) []string {
			return []string{w.ID.String(), webhookState(w), w.URL, strings.Join(w.Types, ",")}
		},
		none: "No webhooks. Make one with: stint webhook create URL",
	}.command(c, "List the workspace's webhooks")
}

func webhookState(w api.Webhook) string {
	switch {
	case w.Enabled:
		return "enabled"
	case w.DisabledReason != "":
		return "disabled: " + w.DisabledReason
	default:
		return "disabled"
	}
}

type webhookFlags struct {
	types       []string
	description string
	url         string
	enable      bool
	disable     bool
}

func (c *cli) webhookCreateCommand() *cobra.Command {
	var f webhookFlags
	cmd := &cobra.Command{
		Use: "create URL", Short: "Make a webhook and print its secret, this once",
		Example: "stint webhook create https://example.org/hook --type agent.session_error",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			what := "cannot make the webhook"
			w, err := call(cmd.Context(), c, what, "stint webhook create --help", func(client *api.Client, ctx context.Context) (api.Webhook, error) {
				return client.CreateWebhook(ctx, map[string]any{"url": args[0], "types": append([]string{}, f.types...), "description": f.description})
			})
			if err != nil {
				return err
			}
			return c.showWebhook(w)
		},
	}
	f.add(cmd)
	return cmd
}

func (f *webhookFlags) add(cmd *cobra.Command) {
	cmd.Flags().StringSliceVar(&f.types, "type", nil, "only messages of this `TYPE`; repeat for more")
	cmd.Flags().StringVar(&f.description, "description", "", "what it is for")
}

func (c *cli) showWebhook(w api.Webhook) error {
	return c.show(w, w.ID.String(), func() error {
		if err := c.say("%s  %s  %s", w.ID, webhookState(w), w.URL); err != nil || w.Secret == "" {
			return err
		}
		c.hint("The secret is shown this once:")
		return c.say("%s", w.Secret)
	})
}

func (c *cli) webhookEditCommand() *cobra.Command {
	var f webhookFlags
	cmd := &cobra.Command{
		Use: "edit WEBHOOK", Short: "Change a webhook", Args: cobra.ExactArgs(1),
		Example: "stint webhook edit whk_0nw59sg001 --enable\nstint webhook edit whk_0nw59sg001 --url https://example.org/new",
		RunE: func(cmd *cobra.Command, args []string) error {
			what := "cannot change the webhook"
			id, err := webhookID(args[0], what)
			if err != nil {
				return err
			}
			if f.enable && f.disable {
				return usage(what, "--enable and --disable are one or the other", "stint webhook edit --help")
			}
			patch := map[string]any{}
			flags := cmd.Flags()
			for _, part := range []struct {
				flag, field string
				value       any
			}{{"url", "url", f.url}, {"type", "types", f.types}, {"description", "description", f.description}, {"enable", "enabled", true}, {"disable", "enabled", false}} {
				if flags.Changed(part.flag) {
					patch[part.field] = part.value
				}
			}
			w, err := call(cmd.Context(), c, what, "stint webhook list", func(client *api.Client, ctx context.Context) (api.Webhook, error) {
				return client.EditWebhook(ctx, id, patch)
			})
			if err != nil {
				return err
			}
			return c.showWebhook(w)
		},
	}
	f.add(cmd)
	cmd.Flags().StringVar(&f.url, "url", "", "send to this `URL`")
	cmd.Flags().BoolVar(&f.enable, "enable", false, "send again, from now on")
	cmd.Flags().BoolVar(&f.disable, "disable", false, "send nothing")
	return cmd
}

// webhookVerb is a command on one webhook that takes nothing else.
type webhookVerb struct {
	use, short, what string
	do               func(ctx context.Context, c *cli, client *api.Client, id api.WebhookID) error
}

var (
	webhookRotate = webhookVerb{
		"rotate WEBHOOK", "Give a webhook a new secret; the old one signs too for a day", "cannot change the secret",
		func(ctx context.Context, c *cli, client *api.Client, id api.WebhookID) error {
			w, err := client.RotateWebhook(ctx, id)
			if err != nil {
				return err
			}
			return c.showWebhook(w)
		},
	}
	webhookTest = webhookVerb{
		"test WEBHOOK", "Send a message of type stint.test", "cannot send the test",
		func(ctx context.Context, c *cli, client *api.Client, id api.WebhookID) error {
			d, err := client.TestWebhook(ctx, id)
			if err != nil {
				return err
			}
			return c.deliveries().show(c, api.List[api.Delivery]{Items: []api.Delivery{d}})
		},
	}
	webhookDelete = webhookVerb{
		"delete WEBHOOK", "Remove a webhook; what waits is not sent", "cannot remove the webhook",
		func(ctx context.Context, _ *cli, client *api.Client, id api.WebhookID) error {
			return client.DeleteWebhook(ctx, id)
		},
	}
)

func (c *cli) webhookVerbCommand(v webhookVerb) *cobra.Command {
	return &cobra.Command{
		Use: v.use, Short: v.short, Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			id, err := webhookID(args[0], v.what)
			if err != nil {
				return err
			}
			client, err := c.connect(v.what)
			if err != nil {
				return err
			}
			if err := v.do(cmd.Context(), c, client, id); err != nil {
				return explain(v.what, err, "stint webhook list")
			}
			return nil
		},
	}
}

func (c *cli) webhookDeliveriesCommand() *cobra.Command {
	var p paging
	cmd := &cobra.Command{
		Use: "deliveries WEBHOOK", Short: "List what a webhook has sent, the newest first", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			l := c.deliveries()
			id, err := webhookID(args[0], l.what)
			if err != nil {
				return err
			}
			if err := p.check(l.what, "stint webhook deliveries --help"); err != nil {
				return err
			}
			l.page = func(client *api.Client, ctx context.Context, p api.Page) (api.List[api.Delivery], error) {
				return client.Deliveries(ctx, id, p)
			}
			return l.run(cmd.Context(), c, p)
		},
	}
	cmd.Flags().IntVar(&p.limit, "limit", 50, "list at most so many")
	return cmd
}

func (c *cli) deliveries() listing[api.Delivery] {
	return listing[api.Delivery]{
		what: "cannot list the deliveries", next: "stint webhook list",
		head: []string{"DELIVERY", "STATE", "TYPE", "TRIES", "CREATED", "ANSWER"}, flex: 5,
		row: func(d api.Delivery) []string {
			answer := d.Problem
			if answer == "" && d.StatusCode != 0 {
				answer = strconv.FormatInt(d.StatusCode, 10)
			}
			return []string{d.ID.String(), string(d.State), d.Type, strconv.FormatInt(d.Tries, 10), c.ago(d.CreatedAt), answer}
		},
		none: "Nothing was sent yet. Try it with: stint webhook test WEBHOOK",
	}
}

func (c *cli) webhookRedeliverCommand() *cobra.Command {
	return &cobra.Command{
		Use: "redeliver WEBHOOK DELIVERY", Short: "Send a message once more, under the same id", Args: cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			what := "cannot send the message again"
			id, err := webhookID(args[0], what)
			if err != nil {
				return err
			}
			delivery, err := wholeID[api.DeliveryID](args[1], what, "delivery", "stint webhook deliveries "+args[0])
			if err != nil {
				return err
			}
			d, err := call(cmd.Context(), c, what, "stint webhook deliveries "+args[0], func(client *api.Client, ctx context.Context) (api.Delivery, error) {
				return client.Redeliver(ctx, id, delivery)
			})
			if err != nil {
				return err
			}
			return c.deliveries().show(c, api.List[api.Delivery]{Items: []api.Delivery{d}})
		},
	}
}
