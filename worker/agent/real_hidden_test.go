//go:build agents

package agent_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"stint/worker/agent"
	"stint/worker/agent/agenttest"
)

// reads are the ways in which a program could get at files: by a command that names one, by a
// command that doesn't, by a script in its folder, by its own tool.
func reads(program string, paths []string) []agenttest.Step {
	p := programs[program]
	var relative []string
	for _, path := range paths {
		relative = append(relative, "."+path)
	}
	all := strings.Join(relative, " ")
	out := []agenttest.Step{p.command("cat " + paths[0]), p.command("cd /; cat " + all), p.command("sh script.sh " + all)}
	for _, path := range paths {
		if program == "claude" {
			out = append(out, agenttest.Call{Tool: "Read", Input: obj{"file_path": path}})
		} else if path == paths[0] {
			out = append(out, agenttest.Call{Tool: "view_image", Input: obj{"path": path}}) // the one tool of its own that reads
		}
	}
	return out
}

// Neither hidden files nor the programs' own sign-ins and settings are read by any tool,
// whatever else the owner allows, wherever the work folder lies, and even if they appear there
// after the session has begun.
func TestReal_NothingHiddenIsRead(t *testing.T) {
	t.Parallel()
	everything := []agent.Rule{{Area: agent.Filesystem, Ruling: agent.Allow}, {Area: agent.Network, Ruling: agent.Allow}, {Area: agent.Shell, Ruling: agent.Allow}}
	for name, c := range map[string]struct {
		rules  []agent.Rule
		inside bool // the work folder lies in what is hidden
		rights agent.Permissions
	}{
		"beside":                 {},
		"inside, all files":      {rules: everything[:1], inside: true},
		"inside, no files":       {rules: []agent.Rule{{Area: agent.Filesystem, Ruling: agent.Deny}}, inside: true},
		"beside, all of it":      {rules: everything},
		"inside, through a link": {inside: true},
		"inside, autonomous":     {inside: true, rights: agent.Autonomous},
	} {
		for program := range programs {
			if program == "claude" && len(c.rules) == len(everything) {
				continue // then it has no sandbox, and the session says so
			}
			t.Run(name+", "+program, func(t *testing.T) {
				t.Parallel()
				hidden := agenttest.Folder(t)
				if name == "inside, through a link" {
					link := filepath.Join(agenttest.Folder(t), "link")
					if err := os.Symlink(hidden, link); err != nil {
						t.Fatal(err)
					}
					hidden = link
				}
				dir := agenttest.Folder(t)
				if c.inside {
					dir = filepath.Join(hidden, "worker", "workspaces", "one")
				}
				if err := errors.Join(
					os.MkdirAll(dir, 0o700),
					os.WriteFile(filepath.Join(hidden, "owner.token"), []byte(agenttest.Private), 0o600),
					os.WriteFile(filepath.Join(dir, "script.sh"), []byte("cd /; cat \"$@\"\n"), 0o700),
					os.WriteFile(filepath.Join(dir, "own"), []byte("OWNFILE"), 0o600),
				); err != nil {
					t.Fatal(err)
				}
				p, host := programs[program], &agenttest.Host{}
				late := filepath.Join(hidden, "stint.db-wal") // appears once the session has begun
				// Twice, for Claude Code's sandbox now and then fails a command while another session
				// on the machine cleans up what it had laid beside a folder above both.
				control := p.command("cat own; echo $((41+1))control")
				m := agenttest.NewModel(t, control)
				job := agenttest.RealClaude(t, m)
				if program == "codex" {
					job = codexHere(t, m)
					if c.inside {
						job.StateDir = filepath.Join(hidden, "worker", "agents", "codex")
					}
				}
				job.Dir, job.Hidden = dir, []string{hidden}
				job.Policy, job.Permissions = agent.Policy{Rules: c.rules, Unattended: true, Otherwise: agent.Deny}, c.rights
				paths := []string{filepath.Join(hidden, "owner.token")}
				for _, name := range agenttest.Signed {
					paths = append(paths, filepath.Join(variable(job.Env, "HOME"), name))
				}
				if program == "codex" {
					paths = append(paths, filepath.Join(job.StateDir, "auth.json"))
				}
				// Otherwise no part of a hidden folder is opened again: what lies there at the start is hidden.
				if !c.inside || program == "claude" && len(c.rules) == 0 || job.Permissions == agent.Autonomous {
					paths = append(paths, late)
				}
				steps := append(reads(program, paths), control, agenttest.Say("end"))
				m.Then(steps...)
				go func() {
					<-m.Waiting()
					<-m.Waiting()
					_ = os.WriteFile(late, []byte(agenttest.Private), 0o600)
				}()
				r, err := agenttest.Run(t.Context(), t, p.adapter, job, host)
				fine(t, r, err)
				asked := m.Asked()
				told := asked[len(asked)-1].Body
				if !strings.Contains(told, "42control") || !strings.Contains(told, "OWNFILE") {
					t.Error("no command works in the folder")
				}
				if strings.Contains(told, agenttest.Private) || strings.Contains(told, agenttest.Key) {
					t.Error("something hidden was told")
				}
				if len(asked) != 1+len(steps) {
					t.Errorf("%d of %d steps were taken", len(asked), 1+len(steps))
				}
				if t.Failed() {
					t.Logf("transcript\n%s", host.Seen().Transcript())
				}
			})
		}
	}
}

// What Claude Code keeps of other conversations, including later ones, is read by no tool. Its
// own is read: the long output of a command lies there. It can be resumed as well.
func TestReal_OtherConversationsAreHidden(t *testing.T) {
	t.Parallel()
	for name, rules := range map[string][]agent.Rule{
		"plain": nil, "all files": {{Area: agent.Filesystem, Ruling: agent.Allow}}, "no files": {{Area: agent.Filesystem, Ruling: agent.Deny}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			long := func(word string) agenttest.Step { return bash("cat long; echo " + word + "$((41+1))") }
			m := agenttest.NewModel(t, long("OTHER"), agenttest.Say("first"))
			job := agenttest.RealClaude(t, m)
			job.Policy = agent.Policy{Rules: rules, Unattended: true, Otherwise: agent.Deny}
			if err := os.WriteFile(filepath.Join(job.Dir, "long"), []byte(strings.Repeat("a line of what is very long\n", 3_000)), 0o600); err != nil {
				t.Fatal(err)
			}
			talk := func() *agenttest.Host {
				host := &agenttest.Host{}
				r, err := agenttest.Run(t.Context(), t, agent.Claude{}, job, host)
				fine(t, r, err)
				return host
			}
			home := filepath.Join(variable(job.Env, "HOME"), ".claude", "projects")
			talk()
			// Now and then the program keeps the transcript without the long output beside it.
			for range 2 {
				if kept, _ := filepath.Glob(filepath.Join(home, "*", job.Begin, "tool-results", "*")); len(kept) > 0 {
					break
				}
				job.Begin = agent.NewID()
				m.Then(long("OTHER"), agenttest.Say("first"))
				talk()
			}
			remaining := func(id string) (transcript, result string) {
				t.Helper()
				found, _ := filepath.Glob(filepath.Join(home, "*", id+".jsonl"))
				results, _ := filepath.Glob(filepath.Join(home, "*", id, "tool-results", "*"))
				if len(found) != 1 || len(results) != 1 {
					t.Fatalf("Claude Code keeps %q and %q", found, results)
				}
				return found[0], results[0]
			}
			transcript, result := remaining(job.Begin)
			job.Begin = agent.NewID()
			later := filepath.Join(filepath.Dir(transcript), agent.NewID()+".jsonl")
			read := func(path string) agenttest.Step {
				return agenttest.Call{Tool: "Read", Input: obj{"file_path": path, "offset": 3_000}}
			}
			m.Then(long("OWN"))
			m.Then(bash("cd /; cat ."+transcript+" ."+result+" ."+later), bash("grep -rs OTHER4 ~/.claude"), read(transcript), read(result), read(later),
				agenttest.Call{Tool: "Grep", Input: obj{"pattern": "OTHER4", "path": filepath.Dir(filepath.Dir(home)), "output_mode": "content"}},
				agenttest.Call{Tool: "Grep", Input: obj{"pattern": "OTHER4", "path": home, "output_mode": "content"}},
				agenttest.Say("second"))
			go func() {
				for range 4 {
					<-m.Waiting()
				}
				_ = os.WriteFile(later, []byte("OTHER42"), 0o600)
			}()
			second := talk()
			asked := m.Asked()
			if told := asked[len(asked)-1].Body; strings.Contains(told, "OTHER42") {
				t.Errorf("another conversation was told:\n%.6000s", second.Seen().Transcript())
			}
			_, result = remaining(job.Begin)
			job.Session = job.Begin
			m.Then(read(result), bash("tail -n 1 "+result), agenttest.Say("third"))
			third := talk()
			asked = m.Asked()
			told := asked[len(asked)-1].Body
			if !strings.Contains(told, "second") || strings.Count(told[strings.Index(told, "second"):], "OWN42") < 2 {
				t.Errorf("it doesn't read its own:\n%.6000s", third.Seen().Transcript())
			}
		})
	}
}
