package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"stint/api"
)

func (c *cli) memberCommand() *cobra.Command {
	return group(&cobra.Command{Use: "member", Aliases: []string{"members"}, Short: "Invite people and say what they may do"},
		c.memberListCommand(), c.memberInviteCommand(), c.memberRoleCommand(), c.memberRemoveCommand())
}

func (c *cli) memberListCommand() *cobra.Command {
	return listing[api.WorkspaceMember]{
		what: "cannot list the members", page: (*api.Client).Members,
		head: []string{"USER", "NAME", "SIGNS IN AS", "ROLE", "SINCE"}, flex: 1,
		row: func(m api.WorkspaceMember) []string {
			return []string{m.UserID.String(), plain(m.Name), plain(m.Login), string(m.Role), c.ago(m.JoinedAt)}
		},
		none: "There are no members.",
	}.command(c, "List members")
}

func (c *cli) memberInviteCommand() *cobra.Command {
	var note string
	cmd := &cobra.Command{
		Use:   "invite ROLE",
		Short: "Make a link that makes its holder a member",
		Long: "Makes a link that works once and for 7 days. Whoever opens it chooses a name and\n" +
			"a password and becomes a member with that role: viewer, member, admin or owner.",
		Example: "stint member invite member --note 'for Ann'",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			what := "cannot invite a " + args[0]
			i, err := call(cmd.Context(), c, what, "stint member invite --help", func(client *api.Client, ctx context.Context) (api.Invitation, error) {
				return client.Invite(ctx, api.InvitationInput{Role: api.Role(args[0]), Note: note})
			})
			if err != nil {
				return err
			}
			return c.show(i, i.ID.String(), func() error {
				c.hint("Send this link to nobody else; it works once, until %s.", c.when(i.ExpiresAt))
				return c.say("%s", i.Link)
			})
		},
	}
	cmd.Flags().StringVar(&note, "note", "", "`WHOM` it is for")
	return cmd
}

func (c *cli) memberRoleCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "role MEMBER ROLE",
		Short:   "Give a member another role",
		Example: "stint member role ann admin",
		Args:    cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			what := "cannot change the role of " + args[0]
			client, m, err := c.findMember(cmd.Context(), what, args[0])
			if err != nil {
				return err
			}
			m, err = client.SetRole(cmd.Context(), m.UserID, api.Role(args[1]))
			if err != nil {
				return explain(what, err, "stint member list")
			}
			return c.done(m, m.UserID.String(), "%s is %s now.", m.Name, m.Role)
		},
	}
}

func (c *cli) memberRemoveCommand() *cobra.Command {
	var yes bool
	cmd := &cobra.Command{
		Use: "remove MEMBER", Aliases: []string{"rm"},
		Short: "Remove a member and end what is theirs",
		Long: "Ends a membership: the member's open sessions are cancelled, their local workers\n" +
			"deleted, their API keys revoked, the agents that run as them paused.",
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			what := "cannot remove " + args[0]
			client, m, err := c.findMember(cmd.Context(), what, args[0])
			if err != nil {
				return err
			}
			if err := c.confirm(what, m.Name, yes); err != nil {
				return err
			}
			got, err := client.RemoveMember(cmd.Context(), m.UserID)
			if err != nil {
				return explain(what, err, "stint member list")
			}
			return c.done(got, m.UserID.String(), "Removed %s: %d sessions cancelled, %d workers deleted, %d agents paused.", m.Name, got.Sessions, got.Workers, got.Agents)
		},
	}
	cmd.Flags().BoolVar(&yes, "yes", false, "don't ask")
	return cmd
}

// findMember connects and finds a member by id, by the name to sign in with, or
// by the name that others see.
func (c *cli) findMember(ctx context.Context, what, ref string) (*api.Client, api.WorkspaceMember, error) {
	client, err := c.connect(what)
	if err != nil {
		return nil, api.WorkspaceMember{}, err
	}
	list, err := pages(statusLimit, "", func(p api.Page) (api.List[api.WorkspaceMember], error) { return client.Members(ctx, p) })
	if err != nil {
		return nil, api.WorkspaceMember{}, explain(what, err, "stint member list")
	}
	var found []api.WorkspaceMember
	for _, m := range list.Items {
		if ref == m.UserID.String() || strings.EqualFold(ref, m.Login) {
			return client, m, nil
		}
		if strings.EqualFold(ref, m.Name) {
			found = append(found, m)
		}
	}
	if len(found) == 1 {
		return client, found[0], nil
	}
	why := "there is no such member"
	if len(found) > 1 {
		why = fmt.Sprintf("%d members have that name; use the id", len(found))
	}
	return nil, api.WorkspaceMember{}, &problem{code: exitNotFound, what: what, why: why, next: "stint member list"}
}
