package arrivals

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"

	"github.com/goccy/go-yaml"

	"stint/api"
)

// Claude reads the scheduled tasks that Claude Code keeps in a project, or with its own settings
// in a person's home: those of the command line in .claude/scheduled_tasks.json, those of the
// desktop program, whose times only that program knows, in .claude/scheduled-tasks. folder is the
// path of the project.
//
// The error is that of a file that can't be read.
func Claude(project fs.FS, folder string, here Here) ([]Job, error) {
	jobs, err := claudeTasks(project, folder, here)
	if err != nil {
		return nil, err
	}
	desktop, err := claudeDesktop(project)
	jobs = append(jobs, desktop...)
	NameThem(jobs, "")
	return jobs, err
}

func claudeTasks(project fs.FS, folder string, here Here) ([]Job, error) {
	const file = ".claude/scheduled_tasks.json"
	text, err := fs.ReadFile(project, file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var kept struct {
		Tasks []struct {
			ID        string `json:"id"`
			Cron      string `json:"cron"`
			Prompt    string `json:"prompt"`
			Recurring bool   `json:"recurring"`
			Permanent bool   `json:"permanent"`
		} `json:"tasks"`
	}
	if err := json.Unmarshal(text, &kept); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	var jobs []Job
	for _, t := range kept.Tasks {
		j := Job{Source: limited(cmp.Or(strings.Join(strings.Fields(t.Prompt), " "), "task "+t.ID), 80)}
		j.Agent = Agent{
			Slug: firstWords(t.Prompt), Type: string(api.TypeClaudeCode), Prompt: t.Prompt, WorkFolder: folder, TimeZone: here.Zone,
			CatchUp: "none", Description: "Imported from a scheduled task of Claude Code.",
		}
		var why string
		switch fields := strings.Fields(t.Cron); {
		case t.Prompt == "":
			why = "It has no prompt."
		case !t.Recurring:
			why = fmt.Sprintf("It runs once, at the next %q. A run at one time needs no schedule: stint run AGENT --at TIME.", t.Cron)
		case len(fields) != 5:
			why = fmt.Sprintf("%q isn't five fields of cron.", t.Cron)
		default:
			if j.Agent.Schedule, why = cronSchedule(fields); why == "" {
				why = unfit(j.Agent.Schedule, here.Zone, here)
			}
		}
		if why != "" {
			j.refuse("%s", why)
			jobs = append(jobs, j)
			continue
		}
		if !t.Permanent {
			j.note("Claude Code forgets it after some days; here it goes on until you pause it.")
		}
		j.note("Each run starts a new conversation; what no rule allows is asked in the inbox.")
		jobs = append(jobs, j)
	}
	return jobs, nil
}

func claudeDesktop(project fs.FS) ([]Job, error) {
	files, err := fs.Glob(project, ".claude/scheduled-tasks/*/SKILL.md")
	if err != nil {
		return nil, err
	}
	var jobs []Job
	for _, file := range files {
		text, err := fs.ReadFile(project, file)
		if err != nil {
			return nil, err
		}
		name := path.Base(path.Dir(file))
		j := Job{Source: name}
		var head struct {
			Name        string `yaml:"name"`
			Description string `yaml:"description"`
		}
		prompt := strings.ReplaceAll(string(text), "\r\n", "\n")
		if rest, ok := strings.CutPrefix(prompt, "---\n"); ok {
			front, body, ok := strings.Cut(rest, "\n---")
			if !ok || yaml.Unmarshal([]byte(front), &head) != nil {
				j.refuse("The lines between --- at its beginning can't be read.")
				jobs = append(jobs, j)
				continue
			}
			_, prompt, _ = strings.Cut(body, "\n")
		}
		if prompt = strings.TrimSpace(prompt); prompt == "" {
			j.refuse("It has no prompt.")
			jobs = append(jobs, j)
			continue
		}
		j.Agent = Agent{
			Slug: cmp.Or(head.Name, name), Name: limited(head.Description, 100), Type: string(api.TypeClaudeCode), Prompt: prompt,
			Description: "Imported from a scheduled task of Claude's desktop program.",
		}
		j.note("Its times, folder and model are known to the desktop program alone: give the agent a schedule and a work folder.")
		jobs = append(jobs, j)
	}
	return jobs, nil
}

// firstWords are those of a prompt that name it.
func firstWords(prompt string) string {
	words := strings.Fields(prompt)
	return strings.Join(words[:min(len(words), 4)], " ")
}
