package web

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"stint/account"
	"stint/api"
	"stint/engine"
)

// taskPage is what task.templ draws.
type taskPage struct {
	engine.TaskPage
	by      engine.Caller
	comment Input // as it was typed, when it was refused
}

func (v *visit) task() error { return v.drawTask(http.StatusOK, Input{}) }

func (v *visit) drawTask(status int, comment Input) error {
	view, err := v.web.engine.TaskPageOf(v.r.Context(), v.caller, v.path("task"))
	if err != nil {
		return err
	}
	if v.path("task") != view.Key && v.r.Method == http.MethodGet {
		return v.to(taskURL(view.Key), "")
	}
	comment.ID, comment.Label = "text", "Comment"
	shell := Shell{Title: view.Key + " " + view.Title, Place: "tasks", Talk: true, Now: view.At, Stream: streamURL("task", view.View, "task", view.Key)}
	return v.page(status, shell, task(taskPage{view, v.caller, comment}))
}

func (v *visit) watchTask(ref string) watcher {
	return func(ctx context.Context, c engine.Caller) ([]part, position, error) {
		view, err := v.web.engine.TaskPageOf(ctx, c, ref)
		if err != nil {
			return nil, position{}, err
		}
		p := taskPage{view, c, Input{}}
		return []part{
			{target: "task-head", draw: taskHead(p)},
			{target: "task-body", draw: taskBody(p)},
			{target: "task-changes", draw: taskChanges(p)},
			{target: "task-comments", draw: taskComments(p)},
			{target: "task-sessions", draw: taskSessions(p)},
			{target: "task-history", draw: taskHistory(p)},
			{target: "task-aside", draw: taskAside(p)},
		}, position{seq: view.Seq}, nil
	}
}

// actTask claims, renews, extends or releases the task for the reader.
func (v *visit) actTask() error {
	ctx, eng, key := v.r.Context(), v.web.engine, v.path("task")
	here := taskURL(key)
	switch v.path("verb") {
	case "claim":
		held, err := eng.ClaimTask(ctx, v.caller, key, api.TaskClaimInput{})
		if err != nil {
			return err
		}
		return v.to(here, claimedWords(held))
	case "renew":
		held, err := eng.RenewTask(ctx, v.caller, key)
		if err != nil {
			return err
		}
		return v.to(here, "Renewed until "+leaseEnd(held, v.prefs.zone))
	case "extend":
		hours, err := strconv.ParseFloat(v.r.PostForm.Get("hours"), 64)
		if err != nil {
			return api.BadField("hours", "must be a number of hours, such as 4")
		}
		held, err := eng.ExtendTask(ctx, v.caller, key, api.TaskExtendInput{AddSeconds: int64(hours * float64(time.Hour/time.Second))})
		if err != nil {
			return err
		}
		return v.to(here, "Extended until "+leaseEnd(held, v.prefs.zone))
	default:
		done, err := eng.ReleaseTask(ctx, v.caller, key)
		if err != nil {
			return err
		}
		return v.to(here, said(done.Released, "Released: anybody can take it", "It is nobody's now"))
	}
}

func claimedWords(held api.TaskHeld) string {
	switch {
	case held.Renewed:
		return "You had it already; your lease is renewed"
	case held.TookOverFrom != nil:
		return "It is yours now; it was " + held.TookOverFrom.Name + "'s"
	}
	return "It is yours now"
}

// leaseEnd says when a lease ends, and that it was asked to last longer than leases do.
func leaseEnd(held api.TaskHeld, zone *time.Location) string {
	if held.Task.Lease == nil || held.Task.Lease.Bound {
		return "its session ends"
	}
	end := clockIn(held.Task.Lease.ExpiresAt.Time, held.ServerTime.Time, zone)
	if held.CappedToMax {
		end += ", which is as long as leases last"
	}
	return end
}

// moveTask sets a task's state for the reader. The board's forms bring its filter along and
// lead back to it.
func (v *visit) moveTask() error {
	state := api.TaskState(v.r.PostForm.Get("state"))
	t, err := v.web.engine.EditTask(v.r.Context(), v.caller, v.path("task"), func(in *api.TaskEdit) error {
		in.State = state
		return nil
	})
	if err != nil {
		return err
	}
	if v.r.Header.Get("HX-Request") != "" {
		v.WriteHeader(http.StatusNoContent) // the live page shows it
		return nil
	}
	done := t.Key + " is " + strings.ToLower(taskWord(t.State)) + " now"
	if q := readTasks(v.r.URL.Query()); v.r.URL.RawQuery != "" {
		return v.to(q.url(), done)
	}
	return v.to(taskURL(t.Key), done)
}

func (v *visit) commentTask() error {
	text := lines(v.r.PostForm.Get("text"))
	_, err := v.web.engine.CommentTask(v.r.Context(), v.caller, v.path("task"), api.TaskCommentInput{Text: text})
	if bad, ok := fieldErrors(err); ok && bad["text"] != "" {
		return v.drawTask(http.StatusUnprocessableEntity, Input{Value: text, Error: sentence(bad["text"])})
	}
	if err != nil {
		return err
	}
	return v.to(taskURL(v.path("task")), "")
}

// renews reports whether the lease is the reader's own, which they can renew and release: one
// that lives with a session is the session's.
func (p taskPage) renews() bool { return p.Holds && !p.Lease.Bound }

// waits reports whether the task waits for others.
func (p taskPage) waits() bool { return len(api.OpenKeys(p.BlockedBy)) > 0 }

// dispatches reports whether the reader could dispatch an agent on it now.
func (p taskPage) dispatches() bool {
	free := p.Lease == nil || p.renews() || p.by.Can(account.ForceTasks)
	return p.by.CanEditTasks() && p.State != api.TaskDone && !p.waits() && free
}

// historyWords says in a line what was done to a task; what changed is named.
func historyWords(e api.AuditEntry) string {
	from, to := api.TaskState(dataText(e, "from")), api.TaskState(dataText(e, "to"))
	switch agent := dataText(e, "agent"); {
	case to != "" && taskWord(from) != "":
		return fmt.Sprintf("moved it from “%s” to “%s”", taskWord(from), taskWord(to))
	case e.Type == api.EventTaskDispatched && agent != "":
		return "dispatched " + agent + " on it"
	case e.Type == api.EventTaskEdited:
		if names := dataList(e, "changed"); names != "" {
			return "changed its " + names
		}
	}
	return phrases[e.Type].verb + " it"
}

// sessionOf is the session that did something, if a session did.
func sessionOf(actor string) (api.SessionID, bool) {
	id, err := api.ParseSessionID(actor)
	return id, err == nil && id != 0 && strings.HasPrefix(actor, "ses_")
}

func dataText(e api.AuditEntry, key string) string {
	text, _ := e.Data[key].(string)
	return text
}

// dataList writes the words of a list in an event's data.
func dataList(e api.AuditEntry, key string) string {
	all, _ := e.Data[key].([]any)
	names := make([]string, 0, len(all))
	for _, one := range all {
		if name, ok := one.(string); ok {
			names = append(names, fieldWords[name])
		}
	}
	return strings.Join(names, ", ")
}

// fieldWords are the fields of a task as a sentence names them.
var fieldWords = map[string]string{
	"slug": "slug", "title": "title", "description": "description", "state": "state", "priority": "priority", "labels": "labels",
	"assignee": "assignee", "links": "links", "blockedBy": "blockers",
}
