package engine_test

import (
	"fmt"
	"slices"

	"stint/api"
	"stint/engine"
)

// edits changes a task by hand.
func (p *play) edits(verb string, c engine.Caller, t *seenTask, refused api.Code, next seenTask, change func(*api.TaskEdit)) {
	p.Helper()
	if c.Role == api.Viewer {
		refused = api.CodeForbidden
	}
	if p.onTask(verb+" of "+t.key(), c, *t, refused, func() error {
		_, err := p.w.EditTask(p.ctx(), c, t.key(), func(in *api.TaskEdit) error { change(in); return nil })
		return err
	}) {
		next.Version = max(t.Version, next.Version)
		*t = next
	}
}

func (p *play) setTaskState() {
	t, c := p.aTask(), p.who()
	if t == nil {
		return
	}
	state := api.TaskStates[p.d.draw("state", len(api.TaskStates))]
	if t.State == api.TaskDone && !p.yes("still done", 3) {
		state = api.TaskTodo // opened again
	}
	next, refused := p.expected(t, func(t *seenTask) api.Code { return t.set(c, state, p.now()) })
	if refused == "" && state != t.State {
		next.Version++
	}
	p.edits("set "+string(state), c, t, refused, next, func(in *api.TaskEdit) { in.State = state })
}

// editTask changes whose a task is, what it waits for, or its title; now and then of a version
// that isn't the present one.
func (p *play) editTask() {
	t, c := p.aTask(), p.who()
	if t == nil {
		return
	}
	var refused api.Code
	next, change := *t, func(*api.TaskEdit) {}
	switch p.d.draw("what", 3) {
	case 0:
		refused, change = p.reassign(&next)
	case 1:
		b := p.aTask()
		if p.leads(t.ID, b.ID) {
			refused = api.CodeInvalid
		}
		next.Before = []int64{b.ID}
		change = func(in *api.TaskEdit) { in.BlockedBy = []string{b.key()} }
	case 2:
		title := fmt.Sprintf("title %d", p.steps)
		next.Version++
		change = func(in *api.TaskEdit) { in.Title = title }
	}
	version := []int64{0, t.Version, t.Version + 1, max(1, t.Version-1)}[p.d.draw("version", 4)]
	if version != 0 && version != t.Version {
		refused = api.CodeStaleVersion
	}
	next.set(c, "", p.now()) // what is done is nobody's
	p.edits("edit", c, t, refused, next, func(in *api.TaskEdit) { change(in); in.Version = version })
}

func (p *play) reassign(next *seenTask) (refused api.Code, change func(*api.TaskEdit)) {
	to := ""
	next.User, next.Agent = 0, 0
	switch p.d.draw("to", 3) {
	case 0:
		if c := p.who(); c.Role == api.Viewer {
			to, refused = c.UserID.String(), api.CodeInvalid
		} else {
			to, next.User = c.UserID.String(), int64(c.UserID)
		}
	case 1:
		if a, ok := pick(p, "agent", p.agents); ok {
			to, next.Agent = a.String(), int64(a)
		}
	}
	return refused, func(in *api.TaskEdit) { in.Assignee = to }
}

// giveToAgent makes an agent the assignee, whoever holds the task.
func (p *play) giveToAgent() {
	t, c := p.aTask(), p.who()
	a, ok := pick(p, "agent", p.agents)
	if t == nil || !ok {
		return
	}
	next := *t
	next.User, next.Agent = 0, int64(a)
	next.set(c, "", p.now())
	p.edits("give to an agent", c, t, "", next, func(in *api.TaskEdit) { in.Assignee = a.String() })
}

func (p *play) commentTask() {
	t, c := p.aTask(), p.who()
	if t == nil {
		return
	}
	var refused api.Code
	if c.Role == api.Viewer {
		refused = api.CodeForbidden
	}
	p.onTask("comment on "+t.key(), c, *t, refused, func() error {
		_, err := p.w.CommentTask(p.ctx(), c, t.key(), api.TaskCommentInput{Text: "so"})
		return err
	})
}

// changeRole makes a colleague a viewer, who may work on nothing, or what they were.
func (p *play) changeRole() {
	i := 1 + p.d.draw("whose", 2)
	if j := slices.IndexFunc(p.people[:3], func(c engine.Caller) bool { return c.Role == api.Viewer }); j > 0 {
		i = j // first the one who is a viewer now
	}
	c := &p.people[i]
	role := []api.Role{api.Admin, api.Member}[i-1]
	if c.Role == role {
		role = api.Viewer
		for _, t := range p.tasks {
			t.gone(int64(c.UserID), 0)
		}
	}
	_, err := p.w.SetRole(p.ctx(), p.w.Owner, c.UserID, role)
	p.judge("make "+c.Name+" "+string(role), err)
	c.Role = role
}
