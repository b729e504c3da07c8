// Package arrivals reads what other schedulers run, so that Stint can run it.
//
// Nothing is changed in a source. What can't be carried over is never dropped in silence: a job
// says what of it is different here, or why it can't come at all.
package arrivals

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/kballard/go-shellquote"

	"stint/scheduler"
)

// Job is one scheduled command of another scheduler, as an agent would run it.
type Job struct {
	Line   int    `json:"line,omitzero"`  // in its file, from 1 on
	Source string `json:"source"`         // the line, or what names the job there
	Agent  Agent  `json:"agent,omitzero"` // empty if it is refused

	Notes   []string `json:"notes,omitzero"`   // what is different here
	Refused string   `json:"refused,omitzero"` // why it can't be carried over
}

// Agent are the settings that a job gives; the others are the coordinator's own.
type Agent struct {
	Slug        string   `json:"slug,omitzero"`
	Name        string   `json:"name,omitzero"`
	Description string   `json:"description,omitzero"`
	Type        string   `json:"type,omitzero"` // empty = command
	Command     []string `json:"command,omitzero"`
	WorkFolder  string   `json:"workFolder,omitzero"`
	Prompt      string   `json:"prompt,omitzero"` // its standard input
	Schedule    string   `json:"schedule,omitzero"`
	TimeZone    string   `json:"timeZone,omitzero"`
	CatchUp     string   `json:"catchUp,omitzero"`
	Jitter      int64    `json:"jitterSeconds,omitzero"`
	Timeout     int64    `json:"turnTimeoutSeconds,omitzero"`
}

// Here is the machine and the person that the jobs come to.
type Here struct {
	User string // the name of the person's account
	Home string // their home folder
	Zone string // the machine's, in which other schedulers read times
	Now  time.Time
}

func (j *Job) note(format string, args ...any) {
	j.Notes = append(j.Notes, fmt.Sprintf(format, args...))
}

// sets has the job's command run with what its source, such as the table, sets for it.
func (j *Job) sets(source string, env []string) {
	if len(env) == 0 {
		return
	}
	names := make([]string, len(env))
	for i, set := range env {
		names[i], _, _ = strings.Cut(set, "=")
	}
	j.Agent.Command = slices.Concat([]string{"/usr/bin/env"}, env, j.Agent.Command)
	j.note("What the %s sets (%s) is written into the command, where everybody who sees the agent can read it.", source, strings.Join(names, ", "))
}

func (j *Job) refuse(format string, args ...any) {
	j.Agent, j.Notes, j.Refused = Agent{}, nil, fmt.Sprintf(format, args...)
}

// unfit says why a schedule can't be one here.
func unfit(schedule, zone string, here Here) string {
	_, err := scheduler.Parse(schedule, zone, here.Now)
	if why := (*scheduler.Error)(nil); errors.As(err, &why) {
		return why.Reason
	}
	if err != nil {
		return err.Error()
	}
	return ""
}

// Line is the command as one line of a shell.
func (a Agent) Line() string {
	if n := len(a.Command); n > 2 && strings.HasPrefix(a.Command[n-2], "-") {
		return a.Command[n-1] // of the shell that runs it
	}
	return shellquote.Join(a.Command...)
}

// NameThem gives each job a slug of its own that begins with prefix, by the one that its reader
// gave it, and those that would share it a number in their names.
func NameThem(jobs []Job, prefix string) {
	taken := map[string]bool{}
	for i := range jobs {
		a := &jobs[i].Agent
		if jobs[i].Refused != "" {
			continue
		}
		base, name := slugOf(prefix+slugOf(a.Slug)), a.Name
		a.Slug = base
		for n := 2; taken[a.Slug]; n++ {
			end := fmt.Sprintf("-%d", n)
			a.Slug = strings.TrimRight(base[:min(len(base), longestSlug-len(end))], "-") + end
			if name != "" { // a timer with several times: people tell its agents apart, too
				a.Name = fmt.Sprintf("%s (%d)", limited(name, 90), n)
			}
		}
		taken[a.Slug] = true
	}
}

const longestSlug = 32

// slugOf makes a slug of any text.
func slugOf(text string) string {
	var b strings.Builder
	for _, r := range strings.ToLower(text) {
		switch {
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9':
			b.WriteRune(r)
		case b.Len() > 0 && !strings.HasSuffix(b.String(), "-"):
			b.WriteByte('-')
		}
	}
	s := strings.Trim(b.String(), "-")
	if s == "" || s[0] < 'a' || len(s) < 2 || s == "new" {
		s = strings.Trim("job-"+s, "-")
	}
	return strings.TrimRight(s[:min(len(s), longestSlug)], "-")
}

// before are the words that stand before the program that a line is about.
var before = map[string]bool{"cd": true, "nice": true, "ionice": true, "sudo": true, "env": true, "time": true, "exec": true, "test": true, "[": true, "flock": true, "chronic": true, "timeout": true}

// called is what a shell's line is about: the name of its program, or of the script that an
// interpreter is given.
func called(line string) string {
	for part := range strings.FieldsFuncSeq(line, func(r rune) bool { return r == ';' || r == '&' || r == '|' }) {
		for word := range strings.FieldsSeq(part) {
			word = strings.Trim(word, `"'()`)
			name := path.Base(word)
			switch {
			case before[name]:
				if name == "cd" || name == "test" || name == "[" {
					word = "" // the part holds no program
				}
			case strings.Contains(word, "="), strings.HasPrefix(word, "-"), strings.HasPrefix(word, "$"), word == "", word[0] >= '0' && word[0] <= '9':
				continue
			case interpreters[name]:
				continue
			default:
				return strings.TrimSuffix(name, path.Ext(name))
			}
			if word == "" {
				break
			}
		}
	}
	return "job"
}

var interpreters = map[string]bool{"sh": true, "bash": true, "zsh": true, "python": true, "python3": true, "php": true, "perl": true, "ruby": true, "node": true}
