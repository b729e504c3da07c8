package agent_test

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"

	"stint/worker/agent"
)

// If the work folder lies in a hidden one, each program is given the whole of it to hide if it
// can open the work folder again, otherwise what lies beside the work folder.
func TestHidden_TheWorkFolderAloneStaysOpen(t *testing.T) {
	root := filepath.Join(t.TempDir(), "root")
	for _, path := range []string{"data/worker/workspaces/a", "data/worker/workspaces/b", "data/worker/agents", "data/stint.db"} {
		if err := os.MkdirAll(filepath.Join(root, path), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	root, err := filepath.EvalSymlinks(root)
	if err != nil {
		t.Fatal(err)
	}
	deny := []agent.Rule{{Area: agent.Filesystem, Ruling: agent.Deny}}
	job := codexJob(filepath.Join(root, "data/worker/workspaces/a"))
	job.StateDir, job.Hidden = filepath.Join(root, "state"), []string{filepath.Join(root, "data/stint.db"), filepath.Join(root, "data")}
	pieces := map[string]string{"data/stint.db": "deny", "data/worker/agents": "deny", "data/worker/workspaces/b": "deny"}
	for name, c := range map[string]struct {
		rights agent.Permissions
		rules  []agent.Rule
		want   map[string]string
	}{
		"never out of its sandbox":        {agent.Autonomous, nil, map[string]string{"data": "deny", "data/worker/workspaces/a": "write"}},
		"out of it with somebody's leave": {agent.Approval, nil, pieces},
		"read-only":                       {agent.Autonomous, deny, pieces},
	} {
		job.Permissions, job.Policy.Rules = c.rights, c.rules
		start, err := started(t, job)
		if err != nil {
			t.Fatal(err)
		}
		var files map[string]string
		if err := json.Unmarshal([]byte(text(start.At("params", "config", "permissions", "stint", "filesystem"))), &files); err != nil {
			t.Fatal(err)
		}
		// The writable folders above a hidden one are pinned in place.
		if pinned := c.rules == nil; (files[root] == "write") != pinned || (files[root+"/.git"] == "write") != pinned {
			t.Errorf("%s: the folder above what is hidden is %q", name, files[root])
		}
		maps.DeleteFunc(files, func(path, _ string) bool { return !strings.HasPrefix(path, root+"/data") })
		for path, access := range c.want {
			if files[filepath.Join(root, path)] != access {
				t.Errorf("%s: %s is %q, not %q", name, path, files[filepath.Join(root, path)], access)
			}
		}
		if len(files) != len(c.want) {
			t.Errorf("%s: %v", name, files)
		}
	}
	job.Policy.Rules = nil
	cmd, err := agent.Claude{}.Command(claudeJobIn(job))
	if err != nil {
		t.Fatal(err)
	}
	settings := cmd.Argv[slices.Index(cmd.Argv, "--settings")+1]
	if strings.Contains(settings, "Read(/"+root+"/data)") || !strings.Contains(settings, "Read(/"+root+"/data/worker/workspaces/b/**)") {
		t.Errorf("Claude Code gets %s", settings)
	}
}

// However many worktrees lie beside the work folder, Claude Code gets the same number of rules,
// which fit each of them and not the work folder: an argument has at most 128 KiB.
func TestHidden_WhatClaudeCodeGetsDoesNotGrowWithTheWorktrees(t *testing.T) {
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	own := "thr_02r3V0n8e2"
	make := func(names ...string) {
		for _, name := range names {
			if err := os.MkdirAll(filepath.Join(root, "state/workspaces", name, "src"), 0o700); err != nil {
				t.Fatal(err)
			}
		}
	}
	job := claudeJobIn(codexJob(filepath.Join(root, "state/workspaces", own)))
	job.Hidden = []string{filepath.Join(root, "state")}
	denied := func() (rules []string) {
		t.Helper()
		cmd, err := agent.Claude{}.Command(job)
		if err != nil {
			t.Fatal(err)
		}
		var settings struct {
			Permissions struct {
				Deny []string `json:"deny"`
			} `json:"permissions"`
		}
		if err := json.Unmarshal([]byte(cmd.Argv[slices.Index(cmd.Argv, "--settings")+1]), &settings); err != nil {
			t.Fatal(err)
		}
		return settings.Permissions.Deny
	}
	fits := func(rules []string, path string) bool {
		return slices.ContainsFunc(rules, func(rule string) bool {
			pattern := strings.ToLower(strings.TrimSuffix(strings.TrimPrefix(rule, "Read(/"), ")"))
			fits, err := filepath.Match(strings.ReplaceAll(pattern, "-]", `\-]`), strings.ToLower(path))
			return err == nil && fits
		})
	}
	others := []string{"thr_02r3v0n8e", "thr_02r3V0n8e2-2", "thr_02r3v0n8e3", "x", ".stint", "näher", "thr_02r3v0n8"}
	make(own)
	make(others...)
	for i := range 100 {
		make(fmt.Sprintf("thr_%04d", i))
	}
	few := denied()
	for i := range 1500 {
		make(fmt.Sprintf("thr_%05d", i))
	}
	many := denied()
	if len(many) != len(few) {
		t.Errorf("%d rules became %d", len(few), len(many))
	}
	for _, name := range append(others, "thr_0001", "thr_01499", "thr_later") {
		if !fits(many, filepath.Join(root, "state/workspaces", name)) {
			t.Errorf("%s is open", name)
		}
	}
	for _, path := range []string{"state", "state/workspaces", "state/workspaces/" + own, "state/workspaces/" + own + "/src"} {
		if fits(many, filepath.Join(root, path)) {
			t.Errorf("%s is shut", path)
		}
	}
}

// claudeJobIn is a job for Claude Code in given folders.
func claudeJobIn(job agent.Job) agent.Job {
	job.Begin, job.StateDir = agent.NewID(), ""
	return job
}

// Of all of Claude Code's conversations only its own is open, to commands and to its own
// tools; with the owner's own settings all are, for the memories among them.
func TestHidden_OtherConversationsOfClaudeCode(t *testing.T) {
	home, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	job := claudeJobIn(codexJob("/work/some_folder"))
	job.Env = []string{"HOME=" + home}
	talks := filepath.Join(home, ".claude", "projects")
	refused := func(job agent.Job) func(path string) bool {
		cmd, err := agent.Claude{}.Command(job)
		if err != nil {
			t.Fatal(err)
		}
		var settings struct {
			Permissions struct {
				Deny []string `json:"deny"`
			} `json:"permissions"`
		}
		if err := json.Unmarshal([]byte(cmd.Argv[slices.Index(cmd.Argv, "--settings")+1]), &settings); err != nil {
			t.Fatal(err)
		}
		return func(path string) bool {
			return slices.ContainsFunc(settings.Permissions.Deny, func(rule string) bool {
				pattern := strings.TrimSuffix(strings.TrimPrefix(rule, "Read(/"), ")")
				fits, err := filepath.Match(strings.ReplaceAll(pattern, "-]", `\-]`), path)
				return err == nil && fits
			})
		}
	}
	own, other := job.Begin, agent.NewID()
	for name, c := range map[string]struct {
		session string
		own     bool // its own settings
		want    map[string]bool
	}{
		"a new one":    {"", false, map[string]bool{own: false, own + ".jsonl": false, other: true, other + ".jsonl": true, "memory": true}},
		"one resumed":  {other, false, map[string]bool{own: true, own + ".jsonl": true, other: false, "memory": true}},
		"own settings": {"", true, map[string]bool{own: false, other: false, "memory": false}},
	} {
		job.Session, job.Uses.Settings = c.session, c.own
		hides := refused(job)
		for path, want := range c.want {
			if hides(filepath.Join(talks, "-work-some-folder", path)) != want {
				t.Errorf("%s: %s is refused: %v", name, path, !want)
			}
		}
	}
}

// A worktree lies within the worker's own folder. Commands write there: the folder is out of
// their sight, and refused to be written only where nothing of it may be.
func TestHidden_AWorktreeWithinIsWritten(t *testing.T) {
	bin, state := t.TempDir(), t.TempDir()
	for _, name := range []string{"bwrap", "socat"} {
		if err := os.WriteFile(filepath.Join(bin, name), []byte("#!/bin/sh\n"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	job := claudeJob(filepath.Join(state, "workspaces", "one"))
	job.Env, job.Hidden = []string{"PATH=" + bin}, []string{state, "/srv/stint"}
	if err := os.MkdirAll(job.Dir, 0o700); err != nil {
		t.Fatal(err)
	}
	for ruling, want := range map[agent.Ruling][]string{"": {"/srv/stint"}, agent.Deny: {job.Dir, "/srv/stint", state}} {
		job.Policy.Rules = nil
		if ruling != "" {
			job.Policy.Rules = []agent.Rule{{Area: agent.Filesystem, Ruling: ruling}}
		}
		cmd, err := agent.Claude{}.Command(job)
		if err != nil {
			t.Fatal(err)
		}
		var settings struct {
			Sandbox struct {
				Filesystem struct{ DenyRead, DenyWrite []string }
			}
		}
		if err := json.Unmarshal([]byte(cmd.Argv[slices.Index(cmd.Argv, "--settings")+1]), &settings, json.MatchCaseInsensitiveNames(true)); err != nil {
			t.Fatal(err)
		}
		files := settings.Sandbox.Filesystem
		slices.Sort(files.DenyWrite)
		slices.Sort(want)
		if !slices.Equal(files.DenyWrite, want) || !slices.Contains(files.DenyRead, state) {
			t.Errorf("%q: not written %q, not read %q", ruling, files.DenyWrite, files.DenyRead)
		}
	}
}
