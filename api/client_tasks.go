package api

import (
	"context"
	"net/http"
	"strings"
)

// Tasks lists tasks, newest first.
func (c *Client) Tasks(ctx context.Context, f TaskFilter, page Page) (List[Task], error) {
	q := page.query()
	states := make([]string, len(f.States))
	for i, s := range f.States {
		states[i] = string(s)
	}
	for name, value := range map[string]string{
		"state": strings.Join(states, ","), "assignee": f.Assignee, "holder": f.Holder, "label": f.Label, "priority": string(f.Priority), "q": f.Query,
	} {
		if value != "" {
			q.Set(name, value)
		}
	}
	return get[List[Task]](ctx, c, path("tasks"), q)
}

// Task returns a task by its id, key or slug.
func (c *Client) Task(ctx context.Context, ref string) (Task, error) {
	return get[Task](ctx, c, path("tasks", ref), nil)
}

// NextTasks returns what the caller is to do, the most pressing first.
func (c *Client) NextTasks(ctx context.Context, page Page) (NextTasks, error) {
	return get[NextTasks](ctx, c, path("tasks", "next"), page.query())
}

// CreateTask creates a task of the fields given. The same key again answers the first one's task.
func (c *Client) CreateTask(ctx context.Context, in any, key string) (Task, error) {
	var out Task
	_, err := c.do(ctx, call{method: http.MethodPost, path: path("tasks"), body: in, header: keyHeader(key)}, &out)
	return out, err
}

// keyHeader is the header of an Idempotency-Key, "" for none.
func keyHeader(key string) http.Header {
	if key == "" {
		return nil
	}
	return http.Header{"Idempotency-Key": {key}}
}

// EditTask changes the fields given.
func (c *Client) EditTask(ctx context.Context, ref string, in any) (Task, error) {
	var out Task
	_, err := c.do(ctx, call{method: http.MethodPatch, path: path("tasks", ref), body: in}, &out)
	return out, err
}

// ClaimTask takes the lease on a task, or renews the caller's own.
func (c *Client) ClaimTask(ctx context.Context, ref string, in TaskClaimInput) (TaskHeld, error) {
	return post[TaskHeld](ctx, c, path("tasks", ref, "claim"), in)
}

// RenewTask renews the caller's lease on a task.
func (c *Client) RenewTask(ctx context.Context, ref string) (TaskHeld, error) {
	return post[TaskHeld](ctx, c, path("tasks", ref, "renew"), nil)
}

// ExtendTask stretches the caller's lease on a task.
func (c *Client) ExtendTask(ctx context.Context, ref string, in TaskExtendInput) (TaskHeld, error) {
	return post[TaskHeld](ctx, c, path("tasks", ref, "extend"), in)
}

// ReleaseTask gives the caller's lease and assignment back.
func (c *Client) ReleaseTask(ctx context.Context, ref string) (TaskReleased, error) {
	return post[TaskReleased](ctx, c, path("tasks", ref, "release"), nil)
}

// DispatchTask claims a task and makes a session that works on it. The same key again answers
// the first one's session.
func (c *Client) DispatchTask(ctx context.Context, ref string, in DispatchInput, key string) (Dispatched, error) {
	var out Dispatched
	_, err := c.do(ctx, call{method: http.MethodPost, path: path("tasks", ref, "dispatch"), body: in, header: keyHeader(key)}, &out)
	return out, err
}

// TaskBriefing returns what an agent is told about a task.
func (c *Client) TaskBriefing(ctx context.Context, ref string) (Briefing, error) {
	return get[Briefing](ctx, c, path("tasks", ref, "briefing"), nil)
}

// CommentTask writes a comment on a task.
func (c *Client) CommentTask(ctx context.Context, ref string, in TaskCommentInput) (TaskComment, error) {
	return post[TaskComment](ctx, c, path("tasks", ref, "comments"), in)
}

// TaskComments lists the comments of a task, newest first.
func (c *Client) TaskComments(ctx context.Context, ref string, page Page) (List[TaskComment], error) {
	return get[List[TaskComment]](ctx, c, path("tasks", ref, "comments"), page.query())
}

// TaskEvents lists what happened to a task, newest first.
func (c *Client) TaskEvents(ctx context.Context, ref string, page Page) (List[Event], error) {
	return get[List[Event]](ctx, c, path("tasks", ref, "events"), page.query())
}

// TaskSessions lists the sessions about a task, newest first.
func (c *Client) TaskSessions(ctx context.Context, ref string, page Page) (List[Session], error) {
	return get[List[Session]](ctx, c, path("tasks", ref, "sessions"), page.query())
}
