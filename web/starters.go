package web

import (
	"fmt"
	"net/url"
	"os"
	"path/filepath"

	"stint/api"
	"stint/engine"
)

// starter is a filled-in form to begin from.
type starter struct {
	key, title, text string
	values           map[string]string
	project          bool // it works on the user's own project, whose folder only they know
}

var starters = []starter{
	{"hello", "Say hello every minute", "A one-line command, to see a schedule at work", map[string]string{
		"slug": "hello", "name": "Hello", "command": `sh -c 'date; echo hello'`, "schedule": "@every 1m",
	}, false},
	{"nightly", "Nightly check of a project", "Runs its tests at 02:30 and keeps the output", map[string]string{
		"slug": "nightly-check", "name": "Nightly check", "command": "make test", "schedule": "30 2 * * *",
	}, true},
	{"ask", "Claude Code that asks me", "Works in its folder, and asks before anything that its sandbox doesn't cover", preset("ask", map[string]string{
		"slug": "helper", "name": "Helper", "type": string(api.TypeClaudeCode),
	}), true},
	{"unattended", "Claude Code by night", "Works in its folder, and beyond its sandbox runs the commands you list; asks nobody", preset("unattended", map[string]string{
		"slug": "night-helper", "name": "Night helper", "type": string(api.TypeClaudeCode), "schedule": "30 2 * * *", "prompt": "Look through the issues and mend one.",
	}), true},
	{"prompt", "A command that reads a prompt", "The prompt comes on standard input", map[string]string{
		"slug": "summarise", "name": "Summarise", "command": `sh -c 'echo "You asked:"; cat'`, "prompt": "Summarise what changed since yesterday.",
	}, false},
}

// begin fills a form with a starter's values. One that needs no project of the user's gets a
// folder of its own, if this machine runs the agents itself: two sessions never run in one
// folder at once (contract 10.2).
func (v *visit) begin(s starter, typed url.Values) {
	for name, value := range s.values {
		typed.Set(name, value)
	}
	if v.web.folders != "" && !s.project {
		typed.Set("workFolder", filepath.Join(v.web.folders, s.values["slug"]))
	}
}

// makeFolder creates a work folder that a starter proposed. No other folder is ever created:
// what lies elsewhere belongs to its owner.
func (d *dashboard) makeFolder(path string, c engine.Caller) error {
	if d.folders == "" || filepath.Dir(path) != d.folders || !c.CanEditAgents() {
		return nil
	}
	if err := os.MkdirAll(path, 0o700); err != nil {
		return fmt.Errorf("make the work folder: %w", err)
	}
	return nil
}
