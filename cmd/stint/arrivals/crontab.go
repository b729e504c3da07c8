package arrivals

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Crontab reads a table of cron as crontab(5) of Debian describes it, those of the system with
// a user on each line. Tables of cronie with CRON_TZ and RANDOM_DELAY are read too.
func Crontab(text string, system bool, here Here) []Job {
	t := crontab{here: here, system: system, env: map[string]string{}}
	for i, line := range strings.Split(text, "\n") {
		t.read(i+1, strings.TrimSuffix(line, "\r"))
	}
	NameThem(t.jobs, "")
	return t.jobs
}

type crontab struct {
	here    Here
	system  bool
	env     map[string]string // so far
	comment string            // on the line above
	jobs    []Job
}

// setting is a line that sets a variable for those below it.
var setting = regexp.MustCompile(`^\s*(?:"([^"]+)"|'([^']+)'|([^\s="'@*0-9][^\s=]*))\s*=\s*(.*?)\s*$`)

func (t *crontab) read(n int, line string) {
	text := strings.TrimLeft(line, " \t")
	if text == "" {
		t.comment = ""
		return
	}
	if comment, ok := strings.CutPrefix(text, "#"); ok {
		t.comment = strings.TrimSpace(strings.TrimLeft(comment, "#"))
		return
	}
	if m := setting.FindStringSubmatch(line); m != nil {
		value := m[4]
		if len(value) > 1 && (value[0] == '"' || value[0] == '\'') && value[len(value)-1] == value[0] {
			value = value[1 : len(value)-1]
		}
		t.env[m[1]+m[2]+m[3]] = value
		return
	}
	j := Job{Line: n, Source: text}
	t.entry(&j, text)
	t.jobs = append(t.jobs, j)
	t.comment = ""
}

// entry reads a line with a command.
func (t *crontab) entry(j *Job, text string) {
	text = strings.TrimPrefix(text, "-") // some crons don't log such a line
	fields := 5
	if strings.HasPrefix(text, "@") {
		fields = 1
	}
	if t.system {
		fields++
	}
	words, command := firstFields(text, fields)
	if command == "" {
		j.refuse("It has no command: %d fields come before one.", fields)
		return
	}
	if t.system {
		if user := words[len(words)-1]; user != t.here.User {
			j.refuse("It runs as %s. An agent runs as the user of its worker: import it as %s, for a worker of theirs.", user, user)
			return
		}
		words = words[:len(words)-1]
	}
	schedule, why := cronSchedule(words)
	if why != "" {
		j.refuse("%s", why)
		return
	}
	j.Agent.Schedule, j.Agent.TimeZone, j.Agent.CatchUp = schedule, t.here.Zone, "none"
	t.variables(j, command)
	if j.Refused != "" {
		return
	}
	if why := unfit(schedule, j.Agent.TimeZone, t.here); why != "" {
		j.refuse("%s", why)
		return
	}
	j.Agent.Name = limited(t.comment, 100)
	j.Agent.Description = fmt.Sprintf("Imported from line %d of a crontab.", j.Line)
}

// firstFields cuts the fields before a command from it.
func firstFields(text string, n int) (words []string, rest string) {
	rest = text
	for range n {
		rest = strings.TrimLeft(rest, " \t")
		end := strings.IndexAny(rest, " \t")
		if end < 0 {
			return append(words, rest), ""
		}
		words, rest = append(words, rest[:end]), rest[end:]
	}
	return words, strings.TrimSpace(rest)
}

var everyStar = regexp.MustCompile(`^\*/1$`)

// cronSchedule is a schedule that fires when cron would. Where both the day of the month and
// that of the week are given, cron asks for either, but for both if one of them begins with a
// star (*/2, for example); here either is enough, always. What can't be said here is refused.
func cronSchedule(words []string) (schedule, refused string) {
	if words[0] == "@reboot" {
		return "", "It runs when the machine starts, which is no time that a schedule names. Run it from the worker's own service instead."
	}
	if strings.HasPrefix(words[0], "@") {
		return words[0], ""
	}
	for i, w := range words {
		if everyStar.MatchString(w) {
			words[i] = "*"
		}
	}
	day, weekday := words[2], words[4]
	for _, w := range []string{day, weekday} {
		if strings.Contains(w[1:], "*") {
			return "", fmt.Sprintf("%q is read differently by cron and here: write the days out.", w)
		}
	}
	if free(day) || free(weekday) {
		return strings.Join(words, " "), ""
	}
	if day[0] == '*' || weekday[0] == '*' {
		return "", fmt.Sprintf("Cron runs it on days that fit both %q and %q. No schedule here says so: let the command ask for one of them.", day, weekday)
	}
	return strings.Join(words, " "), ""
}

// free reports whether a field restricts nothing.
func free(field string) bool { return field == "*" }

// variables turn what is set above a line, and the line's command, into the agent's.
func (t *crontab) variables(j *Job, command string) {
	a := &j.Agent
	shell := "/bin/sh"
	a.WorkFolder = t.here.Home
	var set []string
	for _, name := range slices.Sorted(maps.Keys(t.env)) {
		value := t.env[name]
		switch name {
		case "SHELL":
			shell = value
		case "HOME":
			a.WorkFolder = value
			set = append(set, "HOME="+value)
		case "MAILTO", "MAILFROM":
			if name == "MAILTO" && value != "" {
				j.note("Its output is not mailed to %s: each run keeps it, and notifications tell of failures.", value)
			}
		case "CRON_TZ":
			a.TimeZone = value
		case "RANDOM_DELAY":
			minutes, err := strconv.ParseInt(value, 10, 32)
			if err != nil || minutes < 0 {
				j.refuse("RANDOM_DELAY=%s is no number of minutes.", value)
				return
			}
			a.Jitter = minutes * 60
		case "START_HOURS_RANGE", "LOGNAME", "USER":
			j.note("%s=%s has no effect here.", name, value)
		default:
			set = append(set, name+"="+value)
		}
	}
	line, input := percents(command)
	a.Command, a.Prompt = []string{shell, "-c", line}, input
	j.sets("table", set)
	a.Slug = called(line)
}

// percents splits a command from its standard input: cron turns the first % that no backslash
// precedes into the end of the command, and each later one into the end of a line.
func percents(text string) (command, input string) {
	var parts [2]strings.Builder
	at := 0
	for i := 0; i < len(text); i++ {
		switch {
		case text[i] == '\\' && i+1 < len(text) && text[i+1] == '%':
			parts[at].WriteByte('%')
			i++
		case text[i] != '%':
			parts[at].WriteByte(text[i])
		case at == 0:
			at = 1
		default:
			parts[1].WriteByte('\n')
		}
	}
	if input = parts[1].String(); at == 1 && !strings.HasSuffix(input, "\n") {
		input += "\n"
	}
	return strings.TrimRight(parts[0].String(), " \t"), input
}

// limited cuts a text at a length.
func limited(text string, most int) string {
	if r := []rune(text); len(r) > most {
		return string(r[:most-1]) + "…"
	}
	return text
}
