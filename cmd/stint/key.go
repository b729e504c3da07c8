package main

import (
	"cmp"
	"context"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"stint/api"
)

func (c *cli) keyCommand() *cobra.Command {
	return group(&cobra.Command{Use: "key", Aliases: []string{"keys"}, Short: "Make and revoke API keys for programs"},
		c.keyCreateCommand(), c.keyListCommand(), c.keyRevokeCommand())
}

func (c *cli) keyCreateCommand() *cobra.Command {
	var scopes []string
	var days int
	cmd := &cobra.Command{
		Use:   "create NAME",
		Short: "Make an API key; it is printed this once",
		Long: "Makes a key that acts for you in this workspace, as far as its scopes go: read,\n" +
			"trigger (run agents), cancel, tasks, calendar. It can't run workers, answer, or\n" +
			"change anything else. It is printed this once; one for the calendar alone is\n" +
			"printed as the address that calendar programs subscribe to.",
		Example: "stint key create ci --scope trigger --scope read --days 30\nstint key create phone --scope calendar",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			what := "cannot make the key " + args[0]
			if days < 1 || days > 366 {
				return usage(what, "--days is 1 to 366", "stint key create "+args[0]+" --days 90")
			}
			in := api.KeyInput{Name: args[0]}
			for _, s := range scopes {
				in.Scopes = append(in.Scopes, api.Scope(s))
			}
			if cmd.Flags().Changed("days") || !api.ForCalendar(in.Scopes) {
				in.ExpiresAt = api.Time{Time: c.now().Add(time.Duration(days) * 24 * time.Hour)}
			}
			k, err := call(cmd.Context(), c, what, "stint key create --help", func(client *api.Client, ctx context.Context) (api.Key, error) {
				return client.CreateKey(ctx, in)
			})
			if err != nil {
				return err
			}
			return c.show(k, k.ID.String(), func() error {
				c.hint("Keep it now; it isn't shown again. It ends %s.", c.when(k.ExpiresAt))
				return c.say("%s", cmp.Or(k.CalendarURL, k.Key))
			})
		},
	}
	cmd.Flags().StringSliceVar(&scopes, "scope", []string{string(api.ScopeRead)}, "what it is good for: read, trigger, cancel, tasks,\ncalendar; repeat for more")
	cmd.Flags().IntVar(&days, "days", 90, "for how many days it is good, at most 366; 366 for the\ncalendar alone")
	return cmd
}

func (c *cli) keyListCommand() *cobra.Command {
	return listing[api.Key]{
		what: "cannot list the API keys", page: (*api.Client).Keys,
		head: []string{"KEY", "NAME", "SCOPES", "FOR", "LAST USED", "ENDS"}, flex: 1,
		row: func(k api.Key) []string {
			return []string{k.ID.String(), plain(k.Name), scopeWords(k.Scopes), plain(k.User), c.ago(k.LastUsedAt), c.ago(k.ExpiresAt)}
		},
		none: "There are no API keys. Make one with: stint key create NAME --scope trigger",
	}.command(c, "List API keys")
}

func scopeWords(scopes []api.Scope) string {
	words := make([]string, len(scopes))
	for i, s := range scopes {
		words[i] = string(s)
	}
	return strings.Join(words, ",")
}

func (c *cli) keyRevokeCommand() *cobra.Command {
	return revokeCommand(c, "key", "Revoke an API key, by its id", "stint key list", (*api.Client).RevokeKey)
}
