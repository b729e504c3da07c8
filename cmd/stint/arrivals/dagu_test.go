package arrivals

import (
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/kballard/go-shellquote"
)

func daguJobs(t *testing.T, text string) []Job {
	t.Helper()
	jobs := Dagu("/home/ann/dags/nightly.yaml", []byte(text), here)
	NameThem(jobs, "")
	return jobs
}

func TestDagu_AFileOfOneStep(t *testing.T) {
	jobs := daguJobs(t, `
description: Backs up
schedule: "0 2 * * *"
workingDir: /srv
timeoutSec: 600
tags: [ops]
histRetentionDays: 30
mailOn: {failure: true}
env:
  - TARGET: /backup
  - LEVEL: 3
params: "DAY=mon"
steps:
  - name: one
    command: tar czf "$TARGET/www.tgz" /var/www
`)
	if len(jobs) != 1 || jobs[0].Refused != "" {
		t.Fatalf("%+v", jobs)
	}
	a := jobs[0].Agent
	want := []string{"/usr/bin/env", "TARGET=/backup", "LEVEL=3", "DAY=mon", "/bin/sh", "-ec", "(\ntar czf \"$TARGET/www.tgz\" /var/www\n)"}
	if !slices.Equal(a.Command, want) || a.Slug != "nightly" || a.Schedule != "0 2 * * *" || a.WorkFolder != "/srv" || a.Timeout != 600 || a.Name != "Backs up" || a.TimeZone != "UTC" {
		t.Errorf("%+v", a)
	}
	notes := strings.Join(jobs[0].Notes, "\n")
	if !strings.Contains(notes, "histRetentionDays, mailOn") || !strings.Contains(notes, "TARGET, LEVEL, DAY") {
		t.Errorf("notes %q", notes)
	}
}

// The steps run as Dagu runs them: each in its folder, and none after one that failed.
func TestDagu_StepsRunInTheirOrder(t *testing.T) {
	for text, want := range map[string]struct {
		prints string
		fails  bool
	}{
		"steps:\n  - command: echo a\n  - name: b\n    command: cd /; pwd\n  - command: basename $PWD\n":                 {prints: "a\n/\nhere\n"},
		"steps:\n  - name: x\n    command: echo x\n  - name: y\n    depends: x\n    command: echo y\n":                   {prints: "x\ny\n"},
		"steps:\n  - name: x\n    command: \"false\"\n  - name: y\n    depends: [x]\n    command: echo y\n":              {fails: true},
		"steps:\n  - name: x\n    command: |\n      false\n      echo on\n    continueOn: {failure: true}\n  - echo y\n": {prints: "y\n"},
		"steps:\n  x:\n    command: echo x\n  a:\n    depends: [x]\n    command: echo a\n":                               {prints: "x\na\n"},
		"steps:\n  - script: |\n      for i in 1 2; do echo $i; done\n":                                                  {prints: "1\n2\n"},
		"steps:\n  - command: [printf, '%s\\n', 'a b', '$HOME']\n":                                                       {prints: "a b\n$HOME\n"},
		"steps:\n  - command: printf\n    args: ['%s\\n', 'a b']\n":                                                      {prints: "a b\n"},
		"steps:\n  - dir: /\n    command: pwd\n  - basename $PWD\n":                                                      {prints: "/\nhere\n"},
		"env:\n  A: x y\nsteps:\n  - echo \"$A\"\n":                                                                      {prints: "x y\n"},
	} {
		jobs := daguJobs(t, text)
		if jobs[0].Refused != "" {
			t.Errorf("%q is refused: %s", text, jobs[0].Refused)
			continue
		}
		argv := jobs[0].Agent.Command
		cmd := exec.CommandContext(t.Context(), argv[0], argv[1:]...) //nolint:gosec // the test's own
		cmd.Dir = t.TempDir() + "/here"
		if err := exec.CommandContext(t.Context(), "mkdir", cmd.Dir).Run(); err != nil { //nolint:gosec // the test's own
			t.Fatal(err)
		}
		out, err := cmd.Output()
		if string(out) != want.prints || (err != nil) != want.fails {
			t.Errorf("%q prints %q (%v), want %q", text, out, err, want.prints)
		}
	}
}

// Folders in the home of whose the files are come as whole paths; the shell of an agent would
// take ~ and variables for names.
func TestDagu_FoldersAreWholePaths(t *testing.T) {
	for named, want := range map[string]string{
		"~": "/home/ann", "~/x y": "/home/ann/x y", "$HOME": "/home/ann", "${HOME}/x": "/home/ann/x", "/srv": "/srv", "sub": "/home/ann/dags/sub",
	} {
		jobs := daguJobs(t, "workingDir: '"+named+"'\nsteps: [echo]\n")
		if got := jobs[0].Agent.WorkFolder; got != want || jobs[0].Refused != "" {
			t.Errorf("%s is %q, %q", named, got, jobs[0].Refused)
		}
		if named == "sub" {
			want = "sub" // of the folder that its agent works in
		}
		jobs = daguJobs(t, "steps:\n  - {dir: '"+named+"', command: echo}\n")
		if got := strings.Join(jobs[0].Agent.Command, " "); !strings.Contains(got, "cd "+shellquote.Join(want)+"\n") {
			t.Errorf("a step in %s becomes %q", named, got)
		}
	}
	d := dagu{} // whose the files are isn't known
	if _, refused := d.folder("~/x"); !strings.Contains(refused, "isn't known") {
		t.Errorf("refused by %q", refused)
	}
}

func TestDagu_Schedules(t *testing.T) {
	jobs := daguJobs(t, "schedule:\n  - CRON_TZ=Europe/Berlin 0 9 * * 1-5\n  - \"0 12 * * 6\"\n  - 61 * * * *\nsteps: [echo x]\n")
	if len(jobs) != 3 {
		t.Fatalf("%+v", jobs)
	}
	if a := jobs[0].Agent; a.Schedule != "0 9 * * 1-5" || a.TimeZone != "Europe/Berlin" || a.Slug != "nightly" {
		t.Errorf("%+v", a)
	}
	if a := jobs[1].Agent; a.Schedule != "0 12 * * 6" || a.TimeZone != "UTC" || a.Slug != "nightly-2" {
		t.Errorf("%+v", a)
	}
	if !strings.Contains(jobs[2].Refused, "61") {
		t.Errorf("%+v", jobs[2])
	}
	if jobs := daguJobs(t, "steps: [echo x]\n"); jobs[0].Agent.Schedule != "" || !strings.Contains(strings.Join(jobs[0].Notes, " "), "no schedule") {
		t.Errorf("%+v", jobs)
	}
}

func TestDagu_WhatOnlyDaguDoesIsRefused(t *testing.T) {
	for text, reason := range map[string]string{
		"steps: [":                           "can't be read",
		"schedule: 0 1 * * *":                "no steps",
		"preconditions: []\nsteps: [echo]\n": "preconditions",
		"handlerOn: {}\nsteps: [echo]\n":     "handlerOn",
		"schedule: {start: 0 1 * * *, stop: 0 2 * * *}\nsteps: [echo]\n":                                                         "times to start, stop",
		"steps:\n  - name: a\n    run: other.yaml\n":                                                                             "has run",
		"steps:\n  - name: a\n    executor: docker\n    command: x\n":                                                            "has executor",
		"steps:\n  - {name: a, command: a}\n  - {name: b, command: b, depends: a}\n  - {name: c, command: c, depends: a}\n":      "depends on more",
		"steps:\n  - {name: a, command: a}\n  - {name: b, command: b, depends: a}\n  - {name: c, command: c, depends: [a, b]}\n": "depends on more",
		"type: graph\nsteps:\n  - {name: a, command: a}\n  - {name: b, command: b}\n":                                            "beside others",
		"steps:\n  - [echo a, echo b]\n":                                                                                         "beside each other",
		"steps:\n  - name: a\n":                                                                                                  "no command",
		"steps:\n  - {script: 'print(1)', command: python}\n":                                                                    "no shell",
		"steps:\n  - {command: a, continueOn: {exitCode: 3}}\n":                                                                  "continueOn",
		"env:\n  A: \"`date`\"\nsteps: [echo]\n":                                                                                 "computes A",
		"params: first second\nsteps: [echo $1]\n":                                                                               "without names",
		"steps:\n  - {dir: ~root/x, command: a}\n":                                                                               "somebody's home folder (~root/x)",
		"steps:\n  - {dir: $HOMEWARD, command: a}\n":                                                                             "has a variable ($HOMEWARD)",
		"steps:\n  - {dir: '/srv/${NAME}', command: a}\n":                                                                        "has a variable (/srv/${NAME})",
		"workingDir: /srv/`date`\nsteps: [echo]\n":                                                                               "workingDir has a variable",
		"steps: ['echo ${DAG_NAME}']\n":                                                                                          "DAG_",
	} {
		if j := daguJobs(t, text)[0]; !strings.Contains(j.Refused, reason) || j.Agent.Command != nil {
			t.Errorf("%q is refused by %q, want one that says %q", text, j.Refused, reason)
		}
	}
}
