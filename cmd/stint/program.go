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
	cmd := listing[api.RegisteredProgram]{
		what: "cannot list the programs", page: (*api.Client).Registrations,
		head: []string{"PROGRAM", "CALLS ITSELF", "ANSWERS GO TO", "SIGN-INS", "LAST USED", "REGISTERED"}, flex: 1,
		row: func(p api.RegisteredProgram) []string {
			return []string{
				p.ID.String(), plain(p.Name), plain(strings.Join(p.RedirectURIs, " ")), strconv.FormatInt(p.SignIns, 10), c.ago(p.LastUsedAt), c.ago(p.RegisteredAt),
			}
		},
		none: "No program has registered itself.",
	}.command(c, "List the programs that registered themselves")
	cmd.Long = "Lists the programs that registered themselves at a server that was started with\n" +
		"--register-programs. Nobody has checked their names."
	return cmd
}

func (c *cli) programRevokeCommand() *cobra.Command {
	return revokeCommand(c, "program", "Forget a program and end its sign-ins, by its id", "stint program list", (*api.Client).RevokeRegistration)
}
