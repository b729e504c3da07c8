package main

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"stint/api"
)

// listing is what a command lists: where it comes from, and how people see it.
type listing[T any] struct {
	what string // what failed when it can't be listed
	next string // the command that helps then; "" = stint status
	page func(*api.Client, context.Context, api.Page) (api.List[T], error)
	head []string
	flex int // the column that gives way when the terminal is narrow
	row  func(T) []string
	id   func(T) string // what other commands call a thing; nil = its first cell
	none string         // said to people when there is nothing
}

// command is the command “list” of a group, which takes no arguments and shows all there is.
func (l listing[T]) command(c *cli, short string) *cobra.Command {
	return &cobra.Command{
		Use: "list", Aliases: []string{"ls"}, Short: short, Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return l.run(cmd.Context(), c, paging{limit: statusLimit})
		},
	}
}

// paged is command for a list that may be long: with flags for a part of it.
func (l listing[T]) paged(c *cli, short string) *cobra.Command {
	var p paging
	cmd := l.command(c, short)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if err := p.check(l.what, cmd.CommandPath()+" --limit 50"); err != nil {
			return err
		}
		return l.run(cmd.Context(), c, p)
	}
	p.add(cmd.Flags())
	return cmd
}

// run gathers the list and shows it.
func (l listing[T]) run(ctx context.Context, c *cli, p paging) error {
	found, err := call(ctx, c, l.what, cmp.Or(l.next, "stint status"), func(client *api.Client, ctx context.Context) (api.List[T], error) {
		return pages(p.limit, p.cursor, func(p api.Page) (api.List[T], error) { return l.page(client, ctx, p) })
	})
	if err != nil {
		return err
	}
	return l.show(c, found)
}

// ofAgent is run for a list that an agent may narrow; the page gets what names it, "" for all.
func (l listing[T]) ofAgent(ctx context.Context, c *cli, ref string, p paging, page func(context.Context, *api.Client, string, api.Page) (api.List[T], error)) error {
	return c.withAgent(ctx, l.what, ref, func(ctx context.Context, client *api.Client, agent string) error {
		found, err := pages(p.limit, p.cursor, func(p api.Page) (api.List[T], error) { return page(ctx, client, agent, p) })
		if err != nil {
			return noAgent(ctx, client, l.what, agent, err)
		}
		return l.show(c, found)
	})
}

// show prints a list as the flags ask: its JSON, the ids, or a table for people.
func (l listing[T]) show(c *cli, found api.List[T]) error {
	if c.flags.json {
		return c.document(found)
	}
	t := table{head: l.head, flex: l.flex}
	for _, one := range found.Items {
		t.rows = append(t.rows, l.row(one))
		if l.id != nil {
			t.ids = append(t.ids, l.id(one))
		}
	}
	return c.print(t, l.none)
}

// paging is which part of a list is asked for.
type paging struct {
	limit  int
	cursor string
}

func (p *paging) add(flags *pflag.FlagSet) {
	flags.IntVar(&p.limit, "limit", 50, "list at most so many")
	flags.StringVar(&p.cursor, "cursor", "", "go on after the page whose nextCursor this is")
}

// check refuses a limit of nothing; next is the command that shows the right usage.
func (p paging) check(what, next string) error {
	if p.limit < 1 {
		return usage(what, "--limit is 1 or more", next)
	}
	return nil
}

// call connects and makes one call, or several that fail as one. Next is the command that helps
// when it fails. do takes the client first, as the client's own methods do.
func call[T any](ctx context.Context, c *cli, what, next string, do func(*api.Client, context.Context) (T, error)) (out T, err error) {
	client, err := c.connect(what)
	if err != nil {
		return out, err
	}
	out, err = do(client, ctx)
	return out, explain(what, err, next)
}

// each does one thing to every thing named. All are tried; the first failure determines the exit
// code, the others are reported.
func each[T any](ctx context.Context, c *cli, things []T, do func(T) error) error {
	var first error
	for _, one := range things {
		if err := do(one); first == nil {
			first = err
		} else if err != nil {
			c.report(err)
		}
		if ctx.Err() != nil {
			break
		}
	}
	return first
}

// revokeCommand is the command that ends one kind of thing, each named by its id, for good; next
// lists them.
func revokeCommand[T interface {
	~int64
	fmt.Stringer
}](c *cli, thing, short, next string, do func(*api.Client, context.Context, T) error,
) *cobra.Command {
	return &cobra.Command{
		Use: "revoke " + strings.ToUpper(thing), Aliases: []string{"rm"}, Short: short, Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			what := "cannot revoke the " + thing + " " + args[0]
			id, err := wholeID[T](args[0], what, thing, next)
			if err != nil {
				return err
			}
			client, err := c.connect(what)
			if err != nil {
				return err
			}
			if err := do(client, cmd.Context(), id); err != nil {
				return explain(what, err, next)
			}
			return c.done(map[string]string{"revoked": id.String()}, id.String(), "Revoked %s.", id)
		},
	}
}
