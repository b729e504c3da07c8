package server

import (
	"context"
	"net/http"
	"slices"
	"strconv"

	"stint/api"
	"stint/engine"
)

const oneTask = base + "/tasks/{task}"

// taskRoutes are the paths of tasks; the fixed ones stand before those that name a task.
var taskRoutes = []route{
	{get, base + "/tasks", (*Server).listTasks},
	{post, base + "/tasks", (*Server).createTask},
	{get, base + "/tasks/next", (*Server).nextTasks},
	{get, base + "/tasks/counts", (*Server).countTasks},
	{get, oneTask, (*Server).showTask},
	{patch, oneTask, (*Server).editTask},
	{post, oneTask + "/claim", (*Server).claimTask},
	{post, oneTask + "/renew", (*Server).renewTask},
	{post, oneTask + "/extend", (*Server).extendTask},
	{post, oneTask + "/release", (*Server).releaseTask},
	{post, oneTask + "/dispatch", (*Server).dispatchTask},
	{get, oneTask + "/briefing", (*Server).taskBriefing},
	{get, oneTask + "/comments", (*Server).taskComments},
	{post, oneTask + "/comments", (*Server).commentTask},
	{get, oneTask + "/events", (*Server).taskEvents},
	{get, oneTask + "/sessions", (*Server).taskSessions},
}

func (s *Server) listTasks(x *exchange) (response, error) {
	q := x.query()
	f := api.TaskFilter{Assignee: q.text("assignee"), Holder: q.text("holder"), Label: q.text("label"), Priority: api.TaskPriority(q.text("priority")), Query: q.text("q")}
	for _, word := range q.words("state") {
		state := api.TaskState(word)
		if !slices.Contains(api.TaskStates, state) {
			q.bad.Add("state", strconv.Quote(word)+" is no state: it is one of todo, in_progress, blocked, review, done")
			continue
		}
		f.States = append(f.States, state)
	}
	if f.Holder != "" && f.Holder != "me" && f.Holder != "any" {
		q.bad.Add("holder", "must be me or any")
	}
	if f.Priority != "" && !slices.Contains(api.TaskPriorities, f.Priority) {
		q.bad.Add("priority", "must be p1, p2 or p3")
	}
	page := q.page()
	if err := q.end(); err != nil {
		return response{}, err
	}
	return reply(s.engine.Tasks(x.r.Context(), x.caller, f, page))
}

func (s *Server) countTasks(x *exchange) (response, error) {
	if err := x.query().end(); err != nil {
		return response{}, err
	}
	return reply(s.engine.TaskCounts(x.r.Context(), x.caller))
}

const nextPage = 20 // tasks that are next, when the request doesn't say

func (s *Server) nextTasks(x *exchange) (response, error) {
	q := x.query()
	limit := q.whole("limit", 1, maxLimit, nextPage)
	if err := q.end(); err != nil {
		return response{}, err
	}
	return reply(s.engine.NextTasks(x.r.Context(), x.caller, int(limit)))
}

func (s *Server) createTask(x *exchange) (response, error) {
	in := engine.DefaultTask()
	key, err := x.decodeKeyed(&in, "POST tasks")
	if err != nil {
		return response{}, err
	}
	t, replayed, err := s.engine.CreateTask(x.r.Context(), x.caller, in, key)
	if err != nil {
		return response{}, err
	}
	return made(t, x.under("tasks", t.Key), replayed), nil
}

func (s *Server) showTask(x *exchange) (response, error) {
	if err := x.query().end(); err != nil {
		return response{}, err
	}
	return reply(s.engine.Task(x.r.Context(), x.caller, x.vars["task"]))
}

// editTask merges the body into the task: absent = unchanged, null = cleared (contract 9.2).
func (s *Server) editTask(x *exchange) (response, error) {
	merge, err := merging(x, api.TaskEdit{TaskInput: engine.DefaultTask()})
	if err != nil {
		return response{}, err
	}
	return reply(s.engine.EditTask(x.r.Context(), x.caller, x.vars["task"], merge))
}

func (s *Server) claimTask(x *exchange) (response, error) {
	var in api.TaskClaimInput
	if err := x.decodeOptional(&in); err != nil {
		return response{}, err
	}
	return reply(s.engine.ClaimTask(x.r.Context(), x.caller, x.vars["task"], in))
}

func (s *Server) renewTask(x *exchange) (response, error) {
	if err := x.decodeOptional(&noBody{}); err != nil {
		return response{}, err
	}
	return reply(s.engine.RenewTask(x.r.Context(), x.caller, x.vars["task"]))
}

func (s *Server) extendTask(x *exchange) (response, error) {
	var in api.TaskExtendInput
	if err := x.decode(&in); err != nil {
		return response{}, err
	}
	return reply(s.engine.ExtendTask(x.r.Context(), x.caller, x.vars["task"], in))
}

func (s *Server) releaseTask(x *exchange) (response, error) {
	if err := x.decodeOptional(&noBody{}); err != nil {
		return response{}, err
	}
	return reply(s.engine.ReleaseTask(x.r.Context(), x.caller, x.vars["task"]))
}

func (s *Server) dispatchTask(x *exchange) (response, error) {
	var in api.DispatchInput
	key, err := x.decodeKeyed(&in, "POST dispatch")
	if err != nil {
		return response{}, err
	}
	out, replayed, err := s.engine.DispatchTask(x.r.Context(), x.caller, x.vars["task"], in, key)
	if err != nil || in.Print || replayed {
		return response{body: out, replayed: replayed}, err
	}
	return response{status: http.StatusCreated, body: out, location: x.under("sessions", out.Session.ID.String())}, nil
}

func (s *Server) taskBriefing(x *exchange) (response, error) {
	if err := x.query().end(); err != nil {
		return response{}, err
	}
	return reply(s.engine.TaskBriefing(x.r.Context(), x.caller, x.vars["task"]))
}

func (s *Server) commentTask(x *exchange) (response, error) {
	var in api.TaskCommentInput
	if err := x.decode(&in); err != nil {
		return response{}, err
	}
	made, err := s.engine.CommentTask(x.r.Context(), x.caller, x.vars["task"], in)
	return response{status: http.StatusCreated, body: made}, err
}

func (s *Server) taskComments(x *exchange) (response, error) {
	return taskPage(x, s.engine.TaskComments)
}

func (s *Server) taskEvents(x *exchange) (response, error) { return taskPage(x, s.engine.TaskEvents) }

func (s *Server) taskSessions(x *exchange) (response, error) {
	return taskPage(x, s.engine.TaskSessions)
}

// taskPage answers one page of a list below a task.
func taskPage[T any](x *exchange, read func(context.Context, engine.Caller, string, api.Page) (api.List[T], error)) (response, error) {
	q := x.query()
	page := q.page()
	if err := q.end(); err != nil {
		return response{}, err
	}
	return reply(read(x.r.Context(), x.caller, x.vars["task"], page))
}
