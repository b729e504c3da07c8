package main

import (
	"cmp"
	"context"

	"github.com/spf13/cobra"

	"stint/api"
)

func (c *cli) triggerURLCommand() *cobra.Command {
	return group(&cobra.Command{Use: "trigger-url", Short: "Let other programs start an agent"},
		c.triggerURLOpenCommand(), c.triggerURLListCommand(), c.triggerURLCloseCommand())
}

func (c *cli) triggerURLOpenCommand() *cobra.Command {
	var signature, description string
	cmd := &cobra.Command{
		Use: "open AGENT", Short: "Make an address and a secret, and print them this once",
		Example: "stint trigger-url open backup\nstint trigger-url open triage --signature github",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			what := "cannot open an address"
			return c.withAgent(cmd.Context(), what, args[0], func(ctx context.Context, client *api.Client, agent string) error {
				t, err := client.OpenTriggerURL(ctx, agent, api.TriggerURLInput{Signature: api.SignatureScheme(signature), Description: description})
				if err != nil {
					return noAgent(ctx, client, what, agent, err)
				}
				if c.flags.json {
					return c.document(t)
				}
				c.hint("Address and secret, shown this once:")
				return c.say("%s\n%s", cmp.Or(t.URL, client.URL()+t.Path), t.Secret)
			})
		},
	}
	cmd.Flags().StringVar(&signature, "signature", string(api.SignedStandard), "how calls are signed: `standard` or github")
	cmd.Flags().StringVar(&description, "description", "", "what it is for")
	return cmd
}

func (c *cli) triggerURLListCommand() *cobra.Command {
	return &cobra.Command{
		Use: "list AGENT", Aliases: []string{"ls"}, Short: "List an agent's addresses, without what is secret", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return listing[api.TriggerURL]{
				what: "cannot list the addresses",
				head: []string{"ADDRESS", "SIGNATURE", "LAST USED", "DESCRIPTION"}, flex: 3,
				row: func(u api.TriggerURL) []string {
					return []string{u.ID.String(), string(u.Signature), cmp.Or(c.ago(u.LastUsedAt), "never"), u.Description}
				},
				none: "No addresses. Make one with: stint trigger-url open " + args[0],
			}.ofAgent(cmd.Context(), c, args[0], paging{limit: statusLimit}, func(ctx context.Context, client *api.Client, agent string, p api.Page) (api.List[api.TriggerURL], error) {
				return client.TriggerURLs(ctx, agent, p)
			})
		},
	}
}

func (c *cli) triggerURLCloseCommand() *cobra.Command {
	return &cobra.Command{
		Use: "close AGENT ADDRESS", Short: "Make an address useless", Args: cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			what := "cannot close the address"
			id, err := wholeID[api.TriggerID](args[1], what, "address", "stint trigger-url list "+args[0])
			if err != nil {
				return err
			}
			return c.withAgent(cmd.Context(), what, args[0], func(ctx context.Context, client *api.Client, agent string) error {
				if err := client.CloseTriggerURL(ctx, agent, id); err != nil {
					return noAgent(ctx, client, what, agent, err)
				}
				return nil
			})
		},
	}
}
