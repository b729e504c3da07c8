package main

import (
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"stint/api"
)

func (c *cli) programCommand() *cobra.Command {
	return group(&cobra.Command{Use: "program", Aliases: []string{"programs"}, Short: "Look at programs that registered themselves, and revoke them"},
		c.programListCommand(), c.programRevokeCommand())
}

func (c *cli) programListCommand() *cobra.Command {
	return &cobra.Command{
		Use: "list", Aliases: []string{"ls"},
		Short: "List the programs that registered themselves",
		Long: "Lists the programs that registered themselves at a server that was started with\n" +
			"--register-programs. Nobody has checked their names.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			what := "cannot list the programs"
			client, err := c.connect(what)
			if err != nil {
				return err
			}
			list, err := pages(statusLimit, "", func(p api.Page) (api.List[api.RegisteredProgram], error) {
				return client.Registrations(cmd.Context(), p)
			})
			if err != nil {
				return explain(what, err, "stint status")
			}
			if c.flags.json {
				return c.document(list)
			}
			t := table{head: []string{"PROGRAM", "CALLS ITSELF", "ANSWERS GO TO", "SIGN-INS", "LAST USED", "REGISTERED"}, flex: 1}
			for _, p := range list.Items {
				t.rows = append(t.rows, []string{
					p.ID.String(), plain(p.Name), plain(strings.Join(p.RedirectURIs, " ")), strconv.FormatInt(p.SignIns, 10), c.ago(p.LastUsedAt), c.ago(p.RegisteredAt),
				})
			}
			return c.print(t, "No program has registered itself.")
		},
	}
}

func (c *cli) programRevokeCommand() *cobra.Command {
	return &cobra.Command{
		Use: "revoke PROGRAM", Aliases: []string{"rm"},
		Short: "Forget a program and end its sign-ins, by its id",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			what := "cannot revoke the program " + args[0]
			id, err := wholeID[api.ClientID](args[0], what, "program", "stint program list")
			if err != nil {
				return err
			}
			client, err := c.connect(what)
			if err != nil {
				return err
			}
			if err := client.RevokeRegistration(cmd.Context(), id); err != nil {
				return explain(what, err, "stint program list")
			}
			return c.show(map[string]string{"revoked": id.String()}, id.String(), func() error {
				c.hint("Revoked %s.", id)
				return nil
			})
		},
	}
}
