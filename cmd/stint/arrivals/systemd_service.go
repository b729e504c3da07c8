package arrivals

import (
	"cmp"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/kballard/go-shellquote"
)

// Settings of a service that say how it is started, and no more than that.
var (
	plainService = []string{
		"Type", "ExecStart", "ExecStartPre", "ExecStartPost", "WorkingDirectory", "User", "Environment", "RuntimeMaxSec", "TimeoutStartSec", "TimeoutSec",
		"RemainAfterExit", "SyslogIdentifier", "StandardOutput", "StandardError",
	}
	refusedService = []string{"ExecCondition", "EnvironmentFile", "DynamicUser", "RootDirectory", "RootImage", "LoadCredential", "SetCredential", "PAMName", "StandardInput"}
)

// service turns the service that a timer starts into what the agent runs.
func (s systemd) service(j *Job, name string, u settings) {
	a := &j.Agent
	if kind := u.last("Service", "Type"); kind == "forking" || kind == "dbus" {
		j.refuse("Its service has the type %s: what goes on after the command has ended is ended with a run.", kind)
		return
	}
	for _, o := range u {
		switch {
		case o.Section == "Unit" && (strings.HasPrefix(o.Name, "Condition") || strings.HasPrefix(o.Name, "Assert")):
			j.refuse("It runs only under a condition (%s): let the command ask for it.", o.Name)
			return
		case o.Section == "Service" && slices.Contains(refusedService, o.Name):
			j.refuse("Its service needs %s, which no agent has: let the command do it.", o.Name)
			return
		}
	}
	if user := u.last("Service", "User"); s.system && user != s.here.User || !s.system && user != "" && user != s.here.User {
		user = cmp.Or(user, "root")
		j.refuse("It runs as %s. An agent runs as the user of its worker: import it as %s, for a worker of theirs.", user, user)
		return
	}
	fill := specifiers(s.here, name)
	a.WorkFolder = s.here.Home
	if s.system {
		a.WorkFolder = "/"
	}
	if dir := strings.TrimPrefix(u.last("Service", "WorkingDirectory"), "-"); dir == "~" {
		a.WorkFolder = s.here.Home
	} else if dir != "" {
		full, why := fill(dir)
		if why != "" {
			j.refuse("%s", why)
			return
		}
		a.WorkFolder = full
	}
	env, why := variables(u, fill)
	if why != "" {
		j.refuse("%s", why)
		return
	}
	if a.Command, why = s.command(u, fill, env); why != "" {
		j.refuse("%s", why)
		return
	}
	j.sets("service", env)
	limit := cmp.Or(u.last("Service", "RuntimeMaxSec"), u.last("Service", "TimeoutStartSec"), u.last("Service", "TimeoutSec"))
	if limit != "" && limit != "infinity" {
		seconds, ok := span(limit)
		if !ok {
			j.refuse("%q is no time span that is known here.", limit)
			return
		}
		a.Timeout = seconds
	}
	var lost []string
	for _, o := range u {
		if o.Section == "Service" && !slices.Contains(plainService, o.Name) && !slices.Contains(lost, o.Name) {
			lost = append(lost, o.Name)
		}
	}
	if len(lost) > 0 {
		j.note("Settings of the service that no agent has: %s.", strings.Join(lost, ", "))
	}
	if u.last("Unit", "OnFailure") != "" {
		j.note("OnFailure doesn't come: notifications tell of failures.")
	}
}

// command is what a service runs, one line after the other.
func (s systemd) command(u settings, fill func(string) (string, string), env []string) (argv []string, refused string) {
	type step struct {
		argv    []string
		mayFail bool
	}
	var steps []step
	for _, line := range slices.Concat(u.all("Service", "ExecStartPre"), u.all("Service", "ExecStart"), u.all("Service", "ExecStartPost")) {
		var one step
		for ; line != "" && strings.ContainsRune("-@:+!|", rune(line[0])); line = line[1:] {
			switch line[0] {
			case '-':
				one.mayFail = true
			case '@', '|':
				return nil, "It starts its program under another name or in a login shell (" + line[:1] + "), which no agent does."
			case '+', '!':
				return nil, "It starts its program with other rights than the service's (" + line[:1] + "), which no agent does."
			}
		}
		if strings.Contains(line, `\`) {
			return nil, `It has a backslash in its command, which systemd reads by rules of its own: move the command into a script.`
		}
		words, err := shellquote.Split(line)
		if err != nil || len(words) == 0 {
			return nil, "Its command can't be read: " + line
		}
		for i, word := range words {
			if word == ";" {
				return nil, "It has several commands in one line (;): give each an ExecStart of its own."
			}
			full, why := fill(word)
			if why == "" {
				full, why = expand(full, s.here, env)
			}
			if why != "" {
				return nil, why
			}
			words[i] = full
		}
		one.argv = words
		steps = append(steps, one)
	}
	switch {
	case len(u.all("Service", "ExecStart")) == 0:
		return nil, "Its service starts no command."
	case len(steps) == 1 && !steps[0].mayFail:
		return steps[0].argv, ""
	}
	var lines []string
	for _, one := range steps {
		line := shellquote.Join(one.argv...)
		if one.mayFail {
			line += " || true"
		}
		lines = append(lines, line)
	}
	return []string{"/bin/sh", "-ec", strings.Join(lines, "\n")}, ""
}

// variables are what a service sets for its commands.
func variables(u settings, fill func(string) (string, string)) (env []string, refused string) {
	for _, line := range u.all("Service", "Environment") {
		words, err := shellquote.Split(line)
		if err != nil {
			return nil, "Its Environment can't be read: " + line
		}
		for _, word := range words {
			full, why := fill(word)
			if why != "" {
				return nil, why
			}
			name, _, _ := strings.Cut(full, "=")
			env = slices.DeleteFunc(env, func(set string) bool { return strings.HasPrefix(set, name+"=") })
			env = append(env, full)
		}
	}
	return env, ""
}

// specifiers fill in what a unit's text says by a percent sign.
func specifiers(here Here, name string) func(string) (text, refused string) {
	base := strings.TrimSuffix(name, path.Ext(name))
	prefix, instance, _ := strings.Cut(base, "@")
	known := map[byte]string{'%': "%", 'h': here.Home, 'u': here.User, 'n': name, 'N': base, 'p': prefix, 'i': instance, 'I': instance}
	return func(text string) (string, string) {
		var b strings.Builder
		for i := 0; i < len(text); i++ {
			if text[i] != '%' {
				b.WriteByte(text[i])
				continue
			}
			i++
			if i == len(text) {
				return "", "A percent sign ends " + text + "."
			}
			value, ok := known[text[i]]
			if !ok {
				return "", fmt.Sprintf("It names %%%c, which only systemd can fill in.", text[i])
			}
			b.WriteString(value)
		}
		return b.String(), ""
	}
}

var variable = regexp.MustCompile(`\$(\$|\{[^}]*\}|[A-Za-z_][A-Za-z0-9_]*)`)

// expand fills in variables as systemd does before it starts a program.
func expand(word string, here Here, env []string) (text, refused string) {
	values := map[string]string{"HOME": here.Home, "USER": here.User, "LOGNAME": here.User}
	for _, set := range env {
		name, value, _ := strings.Cut(set, "=")
		values[name] = value
	}
	text = variable.ReplaceAllStringFunc(word, func(found string) string {
		name := strings.Trim(found[1:], "{}")
		if name == "$" {
			return "$"
		}
		value, ok := values[name]
		if !ok || (value != "" && found[1] != '{' && strings.ContainsAny(value, " \t")) {
			refused = fmt.Sprintf("Its command takes %s from the service manager's environment: write it out.", found)
		}
		return value
	})
	return text, refused
}
