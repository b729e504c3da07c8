package main

import (
	"bufio"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"stint/api"
)

func (c *cli) accountCommand() *cobra.Command {
	return group(&cobra.Command{Use: "account", Short: "How you sign in, and where you are signed in"},
		c.accountShowCommand(), c.accountPasswordCommand(), c.accountUnlinkCommand(), c.accountSignInsCommand(), c.accountSignOutCommand())
}

func (c *cli) accountShowCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "show",
		Short: "Show who you are",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			what := "cannot show your account"
			a, err := call(cmd.Context(), c, what, "stint status", (*api.Client).Account)
			if err != nil {
				return err
			}
			return c.show(a, a.UserID.String(), func() error { return c.printAccount(a) })
		},
	}
}

func (c *cli) printAccount(a api.Account) error {
	var f facts
	f.add("user", a.UserID.String())
	f.add("name", a.Name)
	f.add("signs in as", a.Login)
	f.add("password set", c.when(a.PasswordSet))
	for _, i := range a.Identities {
		f.add("linked", fmt.Sprintf("%s  %s at %s", i.ID, plain(i.Label), plain(i.Issuer)))
	}
	return f.print(c)
}

func (c *cli) accountPasswordCommand() *cobra.Command {
	var login, name string
	cmd := &cobra.Command{
		Use:   "password",
		Short: "Set the name and password that you sign in with",
		Long: "Sets the password with which you sign in from a browser, and with --login the\n" +
			"name for it. It is asked for on the terminal, or read as one line from standard\n" +
			"input. All your browsers are signed out.",
		Example: "stint account password --login ann",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			what := "cannot set the password"
			client, err := c.connect(what)
			if err != nil {
				return err
			}
			password, err := c.readPassword(what)
			if err != nil {
				return err
			}
			a, err := client.SetLogin(cmd.Context(), api.LoginInput{Login: login, Name: name, Password: password})
			if err != nil {
				return explain(what, err, "stint account password --login NAME")
			}
			return c.done(a, a.UserID.String(), "You sign in as %s now.", a.Login)
		},
	}
	cmd.Flags().StringVar(&login, "login", "", "the `NAME` to sign in with (as it is)")
	cmd.Flags().StringVar(&name, "name", "", "the `NAME` that others see (as it is)")
	return cmd
}

// readPassword asks twice on a terminal without showing what is typed, and
// elsewhere reads one line.
func (c *cli) readPassword(what string) (string, error) {
	in, ok := c.in.(*os.File)
	if !ok || !isTerminal(c.in) || !c.talks {
		line, err := bufio.NewReader(c.in).ReadString('\n')
		if line = strings.TrimRight(line, "\r\n"); line == "" {
			return "", usage(what, "no password came on standard input", "stint account password < FILE")
		}
		if err != nil && line == "" {
			return "", err
		}
		return line, nil
	}
	var typed [2]string
	for i, ask := range []string{"New password: ", "The same again: "} {
		fmt.Fprint(c.err, ask)
		text, err := term.ReadPassword(int(in.Fd()))
		fmt.Fprintln(c.err)
		if err != nil {
			return "", &problem{code: exitFailed, what: what, why: api.Plain(err)}
		}
		typed[i] = string(text)
	}
	if typed[0] != typed[1] {
		return "", usage(what, "the two differ", "stint account password")
	}
	return typed[0], nil
}

func (c *cli) accountSignInsCommand() *cobra.Command {
	cmd := listing[api.SignIn]{
		what: "cannot list your sign-ins", page: (*api.Client).SignIns,
		head: []string{"SIGN-IN", "WITH", "FROM", "LAST USED", "ENDS"}, flex: 1,
		row: func(s api.SignIn) []string {
			return []string{s.ID.String(), plain(s.Label), plain(s.Address), c.ago(s.LastUsedAt), c.ago(s.ExpiresAt)}
		},
		none: "You are signed in nowhere.",
	}.command(c, "List where you are signed in")
	cmd.Use, cmd.Aliases = "sign-ins", nil
	return cmd
}

func (c *cli) accountUnlinkCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "unlink ID",
		Short: "End that an account at an external provider signs you in",
		Long: "Ends that an account at an external provider signs you in. stint account show\n" +
			"lists them with their ids; one is linked in the browser, under Settings → Account.\n" +
			"All your browsers are signed out.",
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			what := "cannot unlink " + args[0]
			id, err := wholeID[api.IdentityID](args[0], what, "linked account", "stint account show")
			if err != nil {
				return err
			}
			client, err := c.connect(what)
			if err != nil {
				return err
			}
			if err := client.Unlink(cmd.Context(), id); err != nil {
				return explain(what, err, "stint account show")
			}
			c.hint("Unlinked; your browsers are signed out.")
			return nil
		},
	}
}

func (c *cli) accountSignOutCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "sign-out-everywhere",
		Short: "Sign all your browsers out",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			what := "cannot sign you out"
			got, err := call(cmd.Context(), c, what, "stint status", (*api.Client).SignOutEverywhere)
			if err != nil {
				return err
			}
			return c.done(got, fmt.Sprint(got.Ended), "Signed %d browsers out.", got.Ended)
		},
	}
}
