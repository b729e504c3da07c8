package main

import (
	"context"
	"encoding"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"stint/api"
)

const (
	sessionPrefix = "ses_"
	agentPrefix   = "agt_"
	pageSize      = 200 // the most that one page of a list holds
	searchPages   = 50  // how far back the beginning of an id is searched for
	manyNamed     = 5   // how many candidates the error for an ambiguous beginning names
)

// wholeID reads the complete id of a thing that the command line names. An invalid id is
// treated as unknown.
func wholeID[T ~int64](text, what, thing, next string) (id T, err error) {
	if err := any(&id).(encoding.TextUnmarshaler).UnmarshalText([]byte(text)); err != nil || id == 0 {
		kind, _, _ := strings.Cut(fmt.Sprint(T(1)), "_")
		return 0, &problem{code: exitNotFound, what: what, why: fmt.Sprintf("%q is no %s's id; one begins with %s_", text, thing, kind), next: next}
	}
	return id, nil
}

// idLength is how long every id is.
var idLength = len(api.SessionID(1).String())

// findSession finds a session by its id or by the beginning of one, "ses_" or not.
func findSession(ctx context.Context, client *api.Client, ref string) (api.SessionID, error) {
	text := strings.ToLower(strings.TrimSpace(ref))
	if !strings.HasPrefix(text, sessionPrefix) {
		text = sessionPrefix + text
	}
	var id api.SessionID
	if err := id.UnmarshalText([]byte(text)); err == nil {
		return id, nil
	}
	what := "cannot find the session " + ref
	if len(text) == len(sessionPrefix) || len(text) >= idLength {
		return 0, orAgent(ctx, client, ref, &problem{code: exitNotFound, what: what, why: "it is no session's id, nor the beginning of one", next: "stint sessions"})
	}
	found, err := beginning(ctx, text, func(p api.Page) ([]string, string, error) {
		list, err := client.Sessions(ctx, api.SessionFilter{Archived: true}, p)
		ids := make([]string, len(list.Items))
		for i, s := range list.Items {
			ids[i] = s.ID.String()
		}
		return ids, list.NextCursor, err
	})
	if err != nil {
		return 0, explain(what, err, "stint sessions")
	}
	if err := one(what, found, "stint sessions"); err != nil {
		return 0, orAgent(ctx, client, ref, err)
	}
	return id, id.UnmarshalText([]byte(found[0]))
}

// orAgent is the error that ref finds no session, and says where its sessions are if it is an
// agent's slug.
func orAgent(ctx context.Context, client *api.Client, ref string, err error) error {
	a, ok := agentInstead(ctx, client, ref, err)
	if !ok {
		return err
	}
	return &problem{code: exitNotFound, what: "cannot find the session " + ref, why: a.Slug + " is an agent; its sessions have ids of their own", next: "stint sessions --agent " + a.Slug}
}

// agentInstead is the agent that ref names, where the error says that it finds no session.
func agentInstead(ctx context.Context, client *api.Client, ref string, err error) (a api.Agent, ok bool) {
	var p *problem
	if strings.HasPrefix(ref, sessionPrefix) || !errors.As(err, &p) || p.code != exitNotFound {
		return a, false
	}
	a, unknown := client.Agent(ctx, ref)
	return a, unknown == nil
}

// findAgent turns the beginning of an agent's id into the id; a slug stays as it is.
func findAgent(ctx context.Context, client *api.Client, ref string) (string, error) {
	text := strings.ToLower(strings.TrimSpace(ref))
	if !strings.HasPrefix(text, agentPrefix) || len(text) >= idLength {
		return text, nil
	}
	what := "cannot find the agent " + ref
	found, err := beginning(ctx, text, func(p api.Page) ([]string, string, error) {
		list, err := client.Agents(ctx, p)
		ids := make([]string, len(list.Items))
		for i, a := range list.Items {
			ids[i] = a.ID.String()
		}
		return ids, list.NextCursor, err
	})
	if err != nil {
		return "", explain(what, err, "stint agent list")
	}
	if err := one(what, found, "stint agent list"); err != nil {
		return "", err
	}
	return found[0], nil
}

// beginning gathers the ids that begin with text from a list that is newest first. Ids sort by
// creation, so it can stop below the first older one.
func beginning(ctx context.Context, text string, page func(api.Page) ([]string, string, error)) ([]string, error) {
	var found []string
	cursor := ""
	for range searchPages {
		ids, next, err := page(api.Page{Cursor: cursor, Limit: pageSize})
		if err != nil {
			return nil, err
		}
		for _, id := range ids {
			if strings.HasPrefix(id, text) {
				found = append(found, id)
			} else if id < text {
				return found, nil
			}
		}
		if next == "" || len(found) > manyNamed {
			return found, nil
		}
		cursor = next
	}
	return found, ctx.Err()
}

// one refuses the beginning of an id that matches none or several.
func one(what string, found []string, next string) error {
	switch {
	case len(found) == 0:
		return &problem{code: exitNotFound, what: what, why: "nothing here has an id that begins like that", next: next}
	case len(found) == 1:
		return nil
	}
	shown, more := found, ""
	if len(found) > manyNamed {
		shown, more = found[:manyNamed], " and others"
	}
	return &problem{
		code: exitNotFound, what: what, why: fmt.Sprintf("it fits %s%s", strings.Join(shown, ", "), more),
		next: "write more of the id",
	}
}

// noAgent adds to the refusal of an unknown agent the slug that was probably meant.
func noAgent(ctx context.Context, client *api.Client, what, ref string, err error) error {
	next := ""
	if api.CodeOf(err) == api.CodeNotFound {
		next = "stint agent list"
		if list, listErr := client.Agents(ctx, api.Page{Limit: pageSize}); listErr == nil {
			if near := nearest(ref, list.Items); near != "" {
				next = "did you mean " + near + "?"
			}
		}
	}
	return explain(what, err, next)
}

// nearest is the slug closest to ref, by cobra's own measure for mistyped commands.
func nearest(ref string, agents []api.Agent) string {
	menu := &cobra.Command{SuggestionsMinimumDistance: 2}
	for _, a := range agents {
		menu.AddCommand(&cobra.Command{Use: a.Slug, Run: func(*cobra.Command, []string) {}})
	}
	if like := menu.SuggestionsFor(ref); len(like) > 0 {
		return like[0]
	}
	return ""
}

// pages gathers a list up to limit things or to its end.
func pages[T any](limit int, cursor string, page func(api.Page) (api.List[T], error)) (api.List[T], error) {
	all := api.List[T]{Items: []T{}}
	for {
		part, err := page(api.Page{Cursor: cursor, Limit: min(limit-len(all.Items), pageSize)})
		if err != nil {
			return all, err
		}
		all.Items = append(all.Items, part.Items...)
		all.NextCursor, cursor = part.NextCursor, part.NextCursor
		if cursor == "" || len(all.Items) >= limit {
			return all, nil
		}
	}
}
