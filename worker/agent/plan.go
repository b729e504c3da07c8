package agent

import (
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// step is a line of an agent's plan.
type step struct {
	id     string
	text   string
	status string // pending, in_progress, completed
}

// plan is what Claude Code says it will do: a list that is written as a whole, or tasks that
// come one by one.
type plan struct {
	steps []step
	calls map[string]planCall // open calls of the task tools
}

type planCall struct {
	Subject string `json:"subject"`
	Task    string `json:"taskId"`
	Status  string `json:"status"`
	create  bool
}

// called takes a tool call, and reports whether the plan has changed.
func (p *plan) called(id, tool string, input jsontext.Value) bool {
	switch tool {
	case "TodoWrite":
		var in struct {
			Todos []struct {
				Content string `json:"content"`
				Status  string `json:"status"`
			} `json:"todos"`
		}
		if json.Unmarshal(input, &in, lenient) != nil {
			return false
		}
		p.steps = nil
		for _, todo := range in.Todos {
			p.steps = append(p.steps, step{text: todo.Content, status: todo.Status})
		}
		return true
	case "TaskCreate", "TaskUpdate":
		c := planCall{create: tool == "TaskCreate"}
		if json.Unmarshal(input, &c, lenient) == nil {
			if p.calls == nil {
				p.calls = map[string]planCall{}
			}
			p.calls[id] = c
		}
	}
	return false
}

// returned takes a tool's result, and reports whether the plan has changed.
func (p *plan) returned(id string, result jsontext.Value, failed bool) bool {
	c, ok := p.calls[id]
	delete(p.calls, id)
	if !ok || failed {
		return false
	}
	if c.create {
		var out struct {
			Task struct {
				ID string `json:"id"`
			} `json:"task"`
		}
		if json.Unmarshal(result, &out, lenient) != nil || out.Task.ID == "" {
			return false
		}
		p.steps = append(p.steps, step{id: out.Task.ID, text: c.Subject})
		return true
	}
	i := slices.IndexFunc(p.steps, func(s step) bool { return s.id == c.Task })
	if i < 0 {
		return false
	}
	if c.Status == "deleted" {
		p.steps = slices.Delete(p.steps, i, i+1)
		return true
	}
	p.steps[i].text, p.steps[i].status = or(c.Subject, p.steps[i].text), or(c.Status, p.steps[i].status)
	return true
}

// markdown is the plan as a task list.
func (p *plan) markdown() string {
	var b strings.Builder
	for _, s := range p.steps {
		b.WriteString(taskLine(s.text, s.status == "completed", s.status == "in_progress"))
	}
	return b.String()
}

// taskLine is one line of a Markdown task list.
func taskLine(text string, done, now bool) string {
	text = strings.Join(strings.Fields(text), " ")
	switch {
	case done:
		return "- [x] " + text + "\n"
	case now:
		return "- [ ] " + text + " (in progress)\n"
	default:
		return "- [ ] " + text + "\n"
	}
}
