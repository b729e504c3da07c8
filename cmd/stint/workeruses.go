package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"stint/worker"
	"stint/worker/agent"
	"stint/worker/workflow"
)

// offeredUse is a file or folder that the agent's program may load and that has to be accepted.
type offeredUse struct {
	Use      string `json:"use"`
	Name     string `json:"name"`
	Path     string `json:"path"`
	Why      string `json:"why"` // it has to be accepted
	Digest   string `json:"digest"`
	Accepted bool   `json:"accepted"` // it already was
}

// offeredUses adds those in a folder, "" for the agent's work folder.
func (o *offer) offeredUses(state, folder string) error {
	all, left, err := worker.Sources(state, o.record, o.Agent, folder, os.Environ())
	if err != nil {
		return err
	}
	o.uses = all
	for _, s := range all {
		if !s.Asks() {
			continue
		}
		accepted := true
		for _, l := range left {
			accepted = accepted && (l.Use != s.Use || l.Name != s.Name)
		}
		o.Uses = append(o.Uses, offeredUse{s.Use, s.Name, s.Path, worker.SourceWords(s), s.Digest, accepted})
	}
	return nil
}

// useFacts show what a file says, or what lies in a folder.
func useFacts(f *facts, u offeredUse) {
	f.add("uses", workflow.Visible(u.Why)+", "+mark(u.Accepted))
	f.add("digest", u.Digest)
	if u.Accepted {
		return
	}
	f.add("look at", workflow.Visible(u.Path))
	const most = 200 // lines
	count := 0
	show := func(line string) {
		if count++; count <= most {
			f.add("", workflow.Visible(line))
		} else if count == most+1 {
			f.add("", "… there is more: look at it yourself")
		}
	}
	if info, err := os.Stat(u.Path); err != nil || info.IsDir() {
		_ = filepath.WalkDir(u.Path, func(path string, e fs.DirEntry, err error) error { // what can't be read isn't loaded either
			if err == nil && !e.IsDir() {
				show(path)
			}
			return nil
		})
		return
	}
	text, err := os.ReadFile(u.Path)
	if err != nil {
		return
	}
	for line := range strings.Lines(string(text)) {
		show(strings.TrimRight(line, "\r\n"))
	}
}

// usesHelp says for each switch what it opens.
func usesHelp() string {
	var lines []string
	for _, u := range agent.UseNames {
		lines = append(lines, "  "+u.Name+strings.Repeat(" ", 14-len(u.Name))+folded(u.Opens, 62, strings.Repeat(" ", 16)))
	}
	return strings.Join(lines, "\n")
}

// folded breaks a text into lines of at most width characters, those after the first indented.
func folded(text string, width int, indent string) string {
	var out strings.Builder
	at := 0
	for i, word := range strings.Fields(text) {
		switch {
		case i == 0:
		case at+1+len(word) > width:
			out.WriteString("\n" + indent)
			at = 0
		default:
			out.WriteString(" ")
			at++
		}
		out.WriteString(word)
		at += len(word)
	}
	return out.String()
}
