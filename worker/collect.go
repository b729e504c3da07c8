package worker

import (
	"context"
	"maps"
	"slices"

	"stint/api"
	"stint/worker/proc"
	"stint/worker/setup"
	"stint/worker/workspace"
)

// Collectable says where a user's workers have their workspaces, and what the owner's files say
// about removing them.
type Collectable struct {
	Roots []string        // folders of workspaces, sorted; none of them need exist
	Rules workspace.Rules // KeepIgnored, Hooks and Env alone
}

// CollectableBy gathers that from the owner's files and adds roots to what they name. source is
// the environment that git and the hooks get theirs from. bad are the files that can't be used:
// what they say of workspaces to keep is then unknown.
func CollectableBy(files setup.Files, source []string, roots ...string) (c Collectable, bad []error) {
	env, err := proc.Env(source, nil, nil)
	if err != nil {
		return c, []error{err}
	}
	slugs, err := files.Slugs()
	if err != nil {
		bad = append(bad, err)
	}
	all, hooks := map[string]bool{}, map[string]workspace.Hooks{}
	for _, root := range roots {
		all[root] = true
	}
	for _, slug := range slugs {
		a, h, err := collectable(files, slug, source)
		if err != nil {
			bad = append(bad, err)
			continue
		}
		if a.Workspace.Root != "" {
			all[a.Workspace.Root] = true
		}
		c.Rules.KeepIgnored = append(c.Rules.KeepIgnored, a.KeepIgnored...)
		hooks[slug] = h
	}
	c.Roots, c.Rules.Env = slices.Sorted(maps.Keys(all)), env
	c.Rules.Hooks = func(agent string) workspace.Hooks { return hooks[agent] }
	return c, bad
}

// collectable is an agent's settings with the accepted hook before removal.
func collectable(files setup.Files, slug string, source []string) (setup.Agent, workspace.Hooks, error) {
	own, _, err := files.Agent(slug)
	if err != nil || own.Workflow == "" {
		return own, workspace.Hooks{}, err
	}
	w, err := LoadWorkflow(own.Workflow)
	if err != nil {
		return own, workspace.Hooks{}, err
	}
	accepted, err := files.Accepted(slug)
	if err != nil {
		return own, workspace.Hooks{}, err
	}
	w, _, err = accepted.Follow(w)
	if err != nil {
		return own, workspace.Hooks{}, err
	}
	set, err := own.Variables()
	if err != nil {
		return own, workspace.Hooks{}, err
	}
	env, err := proc.Env(source, own.Env, set)
	return own.Under(w), workspace.Hooks{
		Scripts: map[string]string{workspace.BeforeRemove: w.Config.Hooks.BeforeRemove}, Timeout: w.Config.Hooks.Timeout, Env: env,
	}, err
}

// GoesOn asks a coordinator whether a session may continue, as [workspace.Rules] wants it. unknown
// is what holds for one that the coordinator has never heard of.
func GoesOn(client *api.Client, unknown func(context.Context) (bool, error)) func(context.Context, string) (bool, error) {
	return func(ctx context.Context, id string) (bool, error) {
		var session api.SessionID
		if err := session.UnmarshalText([]byte(id)); err != nil {
			return true, err
		}
		s, err := client.Session(ctx, session)
		switch err := ours(err, s.ID, session); {
		case api.CodeOf(err) == api.CodeGone:
			return false, nil
		case api.CodeOf(err) == api.CodeNotFound:
			return unknown(ctx)
		case err != nil:
			return true, err
		}
		return !s.Status.Terminal(), nil
	}
}
