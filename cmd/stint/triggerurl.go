package main

import (
	"cmp"

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
			client, err := c.connect(what)
			if err != nil {
				return err
			}
			agent, err := findAgent(cmd.Context(), client, args[0])
			if err != nil {
				return err
			}
			t, err := client.OpenTriggerURL(cmd.Context(), agent, api.TriggerURLInput{Signature: api.SignatureScheme(signature), Description: description})
			if err != nil {
				return noAgent(cmd.Context(), client, what, args[0], err)
			}
			if c.flags.json {
				return c.document(t)
			}
			c.hint("Address and secret, shown this once:")
			return c.say("%s\n%s", cmp.Or(t.URL, client.URL()+t.Path), t.Secret)
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
			what := "cannot list the addresses"
			client, err := c.connect(what)
			if err != nil {
				return err
			}
			agent, err := findAgent(cmd.Context(), client, args[0])
			if err != nil {
				return err
			}
			list, err := pages(1000, "", func(p api.Page) (api.List[api.TriggerURL], error) {
				return client.TriggerURLs(cmd.Context(), agent, p)
			})
			if err != nil {
				return noAgent(cmd.Context(), client, what, args[0], err)
			}
			if c.flags.json {
				return c.document(list)
			}
			t := table{head: []string{"ADDRESS", "SIGNATURE", "LAST USED", "DESCRIPTION"}, flex: 3}
			for _, u := range list.Items {
				used := "never"
				if !u.LastUsedAt.IsZero() {
					used = c.ago(u.LastUsedAt)
				}
				t.rows = append(t.rows, []string{u.ID.String(), string(u.Signature), used, u.Description})
			}
			return c.print(t, "No addresses. Make one with: stint trigger-url open "+args[0])
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
			client, err := c.connect(what)
			if err != nil {
				return err
			}
			agent, err := findAgent(cmd.Context(), client, args[0])
			if err != nil {
				return err
			}
			if err := client.CloseTriggerURL(cmd.Context(), agent, id); err != nil {
				return noAgent(cmd.Context(), client, what, args[0], err)
			}
			return nil
		},
	}
}
