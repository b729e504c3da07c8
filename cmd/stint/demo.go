package main

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"os"

	"stint/api"
	"stint/engine"
)

const demoSlug = "demo"

// demoScript is what the demo agent runs: a few seconds of progress in colour, with nothing
// but POSIX tools.
//
//go:embed demo.sh
var demoScript string

// demonstrate creates the agent `demo` if there is none and triggers it once. It returns the
// page of the session.
func (k *coordinator) demonstrate(ctx context.Context) (page string, err error) {
	folder := k.dir.demo()
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return "", fmt.Errorf("make the demo's work folder: %w", err)
	}
	owner, err := k.accounts.Owner(ctx)
	if err != nil {
		return "", fmt.Errorf("find the owner: %w", err)
	}
	caller, err := k.accounts.In(ctx, owner, "default")
	if err != nil {
		return "", fmt.Errorf("enter the workspace: %w", err)
	}
	in := k.engine.DefaultAgent()
	in.Slug, in.Name = demoSlug, "Demo"
	in.Description = "Prints some progress every minute. Delete it when you have seen enough."
	in.Run = api.Run{Command: []string{"sh", "-c", demoScript}, WorkFolder: folder}
	in.Schedule = "@every 1m"
	var refused *api.Error
	if _, err := k.engine.CreateAgent(ctx, caller, in); err != nil && !(errors.As(err, &refused) && refused.Code == api.CodeSlugTaken) {
		return "", fmt.Errorf("make the demo agent: %w", err)
	}
	s, _, err := k.engine.CreateSession(ctx, caller, demoSlug, api.SessionInput{Title: "A first look"}, engine.Idempotency{})
	if err != nil {
		return "", fmt.Errorf("trigger the demo agent: %w", err)
	}
	return "/sessions/" + s.ID.String(), nil
}
