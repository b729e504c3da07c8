package web

import (
	"fmt"
	"math"
	"net/url"
	"strconv"
	"strings"

	"stint/api"
)

// typeOptions are the types to choose from.
func typeOptions() (out []Option) {
	for _, p := range api.AgentTypes {
		out = append(out, Option{string(p.Type), p.Word})
	}
	return out
}

var permissionOptions = []Option{
	{"approval", "A person is asked, unless a rule decides"}, {"autonomous", "Never: what lies beyond is refused"},
}

var workspaceOptions = []Option{
	{"folder", "The folder itself"}, {"worktree", "A git worktree for each conversation"},
}

// preset fills a starter with the rules of a preset.
func preset(name string, values map[string]string) map[string]string {
	p, _ := api.PresetNamed(name)
	out := url.Values{}
	talkForm(api.AgentInput{Run: p.Run}, out)
	for _, field := range []string{"permissions", "unattended", "rules"} {
		values[field] = out.Get(field)
	}
	return values
}

// talkForm fills in the fields of conversing agents, and what agents may spend.
func talkForm(in api.AgentInput, out url.Values) {
	for name, value := range map[string]string{
		"model": in.Run.Model, "effort": in.Run.Effort, "models": strings.Join(in.Run.Models, ", "), "executable": programText(in), "permissions": in.Run.Permissions, "rules": rulesText(in.Run.Rules),
		"workspaceMode": in.Run.Workspace, "baseBranch": in.Run.BaseBranch,
		"maxTurns": strconv.FormatInt(in.Run.MaxTurns, 10), "sessionLimit": amount(in.SessionSpendLimitMicros), "dailyLimit": amount(in.DailySpendLimitMicros),
	} {
		out.Set(name, value)
	}
	for name, on := range map[string]bool{"unattended": in.Run.Unattended, "planMode": in.Run.PlanMode} {
		if on {
			out.Set(name, "true")
		}
	}
}

// programText is the program of an agent that converses as the form takes it.
func programText(in api.AgentInput) string {
	if in.Type == api.TypeACP && in.Run.Executable == "" {
		return commandLine(in.Run.Command)
	}
	return in.Run.Executable
}

// fillTalk reads the fields of conversing agents. A command line that the agent had before it
// became one is removed.
func fillTalk(in *api.AgentInput, form url.Values, bad map[string]string) {
	run := &in.Run
	run.Command, run.Check = nil, nil
	for name, to := range map[string]*string{
		"model": &run.Model, "effort": &run.Effort, "executable": &run.Executable, "permissions": &run.Permissions, "workspaceMode": &run.Workspace, "baseBranch": &run.BaseBranch,
	} {
		text := strings.TrimSpace(form.Get(name))
		unsaid := *to == "" && (text == permissionOptions[0].Value || text == workspaceOptions[0].Value) // which mean the same as nothing
		if form.Has(name) && !unsaid {
			*to = text
		}
	}
	if in.Type == api.TypeACP {
		fillProgram(run, bad)
	}
	if text := strings.TrimSpace(form.Get("maxTurns")); text != "" {
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			bad["run.maxTurns"] = "must be a whole number"
		}
		run.MaxTurns = n
	}
	run.Unattended, run.PlanMode = form.Get("unattended") == "true", form.Get("planMode") == "true"
	if form.Has("models") {
		run.Models = append([]string(nil), strings.FieldsFunc(form.Get("models"), func(r rune) bool { return r == ',' || r == ' ' })...)
	}
	if form.Has("rules") {
		rules, wrong := rulesFrom(form.Get("rules"))
		if wrong != "" {
			bad["run.rules"] = wrong
		}
		run.Rules = rules
	}
}

// fillProgram takes a program that is given with its arguments apart, as is possible by ACP.
func fillProgram(run *api.Run, bad map[string]string) {
	argv, err := SplitCommand(run.Executable)
	switch {
	case err != nil:
		bad["run.executable"] = fmt.Sprintf("can't be read as a command line: %v", err)
	case len(argv) > 1:
		run.Command, run.Executable = argv, ""
	}
}

func fillSpend(in *api.AgentInput, form url.Values, bad map[string]string) {
	for name, to := range map[string]*int64{"sessionLimit": &in.SessionSpendLimitMicros, "dailyLimit": &in.DailySpendLimitMicros} {
		if !form.Has(name) {
			continue
		}
		text := strings.TrimPrefix(strings.TrimSpace(form.Get(name)), "$")
		if text == "" {
			*to = 0
			continue
		}
		n, err := strconv.ParseFloat(text, 64)
		if err != nil || math.IsNaN(n) || n < 0 || n > 1e9 {
			bad[name] = "must be an amount such as 2.50"
			continue
		}
		*to = int64(math.Round(n * 1e6))
	}
}

// amount is a number of dollars as the form takes it; "" for none.
func amount(micros int64) string {
	if micros == 0 {
		return ""
	}
	return strconv.FormatFloat(float64(micros)/1e6, 'f', -1, 64)
}

// rulesText has one rule a line: ruling, area, pattern.
func rulesText(rules []api.RunRule) string {
	var out []string
	for _, r := range rules {
		out = append(out, r.String())
	}
	return strings.Join(out, "\n")
}

// rulesFrom reads rules; the engine decides which words are valid.
func rulesFrom(text string) (rules []api.RunRule, wrong string) {
	n := 0
	for line := range strings.Lines(text) {
		n++
		words := strings.Fields(line)
		if len(words) == 0 {
			continue
		}
		if len(words) < 2 {
			return nil, fmt.Sprintf("line %d names no area: write a ruling, an area and a pattern", n)
		}
		rest := strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(line), words[0]))
		rules = append(rules, api.RunRule{Ruling: api.Ruling(words[0]), Area: api.Area(words[1]), Pattern: strings.TrimSpace(strings.TrimPrefix(rest, words[1]))})
	}
	return rules, ""
}

// spentWords say what an agent has spent today and of how much; "" when there is
// nothing to say.
func spentWords(a api.Agent) string {
	switch {
	case a.DailySpendLimitMicros > 0:
		return api.Dollars(a.SpentTodayMicros) + " of " + api.Dollars(a.DailySpendLimitMicros)
	case a.SpentTodayMicros > 0:
		return api.Dollars(a.SpentTodayMicros)
	}
	return ""
}

// ruleCounts say how many rules of each ruling there are.
func ruleCounts(rules []api.RunRule) string {
	if len(rules) == 0 {
		return "None"
	}
	counts := map[api.Ruling]int{}
	for _, r := range rules {
		counts[r.Ruling]++
	}
	var out []string
	for _, ruling := range api.Rulings {
		if n := counts[ruling]; n > 0 {
			out = append(out, fmt.Sprintf("%d %s", n, ruling))
		}
	}
	return strings.Join(out, ", ")
}

// asksWords say whom an agent asks.
func asksWords(run api.Run) string {
	switch {
	case run.Unattended:
		return "nobody: what no rule allows is refused"
	case run.Permissions == "autonomous":
		return "nothing beyond its sandbox: that is refused"
	}
	return "a person, before it leaves its sandbox"
}

func fromBranch(branch string) string {
	if branch == "" {
		return ""
	}
	return "from " + branch
}
