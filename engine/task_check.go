package engine

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"stint/account"
	"stint/api"
	"stint/db"
	"stint/queries"
)

const (
	maxTaskText = 128 << 10 // bytes of a description
	maxComment  = 32 << 10  // bytes
	maxLinks    = 20
	maxBlockers = 50
)

// taskWords are paths beside tasks, which no slug may be.
var taskWords = []string{"next", "new", "board", "export", "import", "counts"}

// CheckTask tidies what people set on a task and names each field that breaks its rule.
func CheckTask(in *api.TaskInput) error {
	var v api.Invalid
	in.Title, in.Slug = strings.TrimSpace(in.Title), strings.ToLower(strings.TrimSpace(in.Slug))
	switch n := utf8.RuneCountInString(in.Title); {
	case n == 0:
		v.Add("title", "is missing: say in a line what is to be done")
	case n > maxTitle:
		v.Add("title", fmt.Sprintf("has %d characters; at most %d fit", n, maxTitle))
	}
	v.CheckText("title", in.Title, 4*maxTitle)
	v.CheckLine("title", in.Title)
	v.CheckText("description", in.Description, maxTaskText)
	v.CheckWritten("description", in.Description)
	checkTaskSlug(&v, in.Slug)
	if in.State != "" && !slices.Contains(api.TaskStates, in.State) {
		v.Add("state", "must be "+api.OrList(api.TaskStates))
	}
	if !slices.Contains(api.TaskPriorities, in.Priority) {
		v.Add("priority", "must be "+api.OrList(api.TaskPriorities)+"; p1 is the most urgent")
	}
	checkLabels(&v, &in.Labels)
	checkLinks(&v, in.Links)
	if len(in.BlockedBy) > maxBlockers {
		v.Add("blockedBy", fmt.Sprintf("has %d tasks; at most %d fit", len(in.BlockedBy), maxBlockers))
	}
	return v.Err()
}

func checkTaskSlug(v *api.Invalid, slug string) {
	if slug == "" {
		return
	}
	if !api.SlugForm.MatchString(slug) {
		v.Add("slug", "must be 2 to 32 lowercase letters, digits and dashes, beginning with a letter")
		return
	}
	if _, number := taskNumber(slug); number || slices.Contains(taskWords, slug) {
		v.Add("slug", fmt.Sprintf("can't be %q, which means something else: choose another", slug))
	}
}

func checkLinks(v *api.Invalid, links api.TaskLinks) {
	if len(links) > maxLinks {
		v.Add("links", fmt.Sprintf("has %d links; at most %d fit", len(links), maxLinks))
	}
	for i, l := range links {
		field := fmt.Sprintf("links[%d]", i)
		u, err := url.Parse(l.URL)
		switch {
		case err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https":
			v.Add(field+".url", "must be a whole address that begins with http:// or https://")
		case u.User != nil:
			v.Add(field+".url", "holds a name or password: leave it out, for everybody here reads it")
		case strings.ContainsFunc(l.URL, unicode.IsSpace): // which ends it where links are written in lines
			v.Add(field+".url", "holds white space: write %20 for each")
		}
		v.CheckText(field+".url", l.URL, maxURL)
		v.CheckLine(field+".url", l.URL)
		v.CheckText(field+".title", l.Title, 4*maxTitle)
		v.CheckLine(field+".title", l.Title)
	}
}

// fillTask puts what people set into a row, the state excepted, and returns the tasks that are
// to be done before it. What is as it was before isn't checked again.
func fillTask(tx *db.Tx, c Caller, t *taskRow, before, in api.TaskInput) ([]api.TaskID, error) {
	var v api.Invalid
	t.Slug, t.Title, t.Description, t.Priority, t.Labels, t.Links = in.Slug, in.Title, in.Description, in.Priority, in.Labels, in.Links
	if in.Assignee != before.Assignee {
		var err error
		if t.AssigneeUserID, t.AssigneeAgentID, err = assigneeNamed(tx.Context(), tx, c, in.Assignee); err != nil {
			if api.CodeOf(err) == "" {
				return nil, err
			}
			v.Add("assignee", "names nobody who may work on tasks here, and no agent: give a member's id, an agent's slug, or me")
		}
	}
	blockers, err := blockersNamed(tx, t, in.BlockedBy, &v)
	if err != nil {
		return nil, err
	}
	return blockers, v.Err()
}

// assigneeNamed finds whom a text names: a user or an agent, nobody for "".
func assigneeNamed(ctx context.Context, q queries.Querier, c Caller, text string) (user api.UserID, agent api.AgentID, err error) {
	switch text = strings.TrimSpace(text); text {
	case "":
		return 0, 0, nil
	case "me":
		return c.UserID, 0, nil
	}
	if id, perr := api.ParseUserID(text); perr == nil {
		role, err := account.RoleOf(ctx, q, c.WorkspaceID, id)
		if err == nil && !role.AtLeast(account.EditTasks.Role()) {
			return 0, 0, db.NotFound("member")
		}
		return id, 0, err
	}
	a, err := agentOf(ctx, q, c, text)
	if err != nil {
		return 0, 0, err
	}
	return 0, a.ID, nil
}

// blockersNamed finds the tasks that are named as to be done before another, and refuses a
// circle.
func blockersNamed(tx *db.Tx, t *taskRow, refs []string, v *api.Invalid) ([]api.TaskID, error) {
	out := make([]api.TaskID, 0, len(refs))
	have, err := tx.BlockerIDs(tx.Context(), t.ID)
	if err != nil {
		return nil, fmt.Errorf("list what task %s waits for: %w", keyOf(t), err)
	}
	walked := map[api.TaskID]bool{}
	behind, err := tx.BlockedIDs(tx.Context(), t.ID)
	if err != nil {
		return nil, fmt.Errorf("list what waits for task %s: %w", keyOf(t), err)
	}
	for _, ref := range refs {
		b, err := findTask(tx.Context(), tx, t.WorkspaceID, ref)
		switch {
		case api.CodeOf(err) != "":
			v.Add("blockedBy", fmt.Sprintf("names %q, which is no task of this workspace", ref))
			continue
		case err != nil:
			return nil, err
		case b.ID == t.ID:
			v.Add("blockedBy", "names the task itself")
			continue
		}
		circle := false
		if len(behind) > 0 && !slices.Contains(have, b.ID) { // else nothing leads back to it
			if circle, err = precedes(tx, t.ID, b.ID, walked); err != nil {
				return nil, err
			}
		}
		if circle {
			v.Add("blockedBy", fmt.Sprintf("names %s, which waits for this task itself: that would be a circle", keyOf(b)))
			continue
		}
		if !slices.Contains(out, b.ID) {
			out = append(out, b.ID)
		}
	}
	return out, nil
}

// precedes reports whether a task is to be done, directly or not, before another. seen are
// those that didn't lead there before, and gets what doesn't now.
func precedes(tx *db.Tx, first, then api.TaskID, seen map[api.TaskID]bool) (bool, error) {
	if seen[then] {
		return false, nil
	}
	seen[then] = true
	open := []api.TaskID{then}
	for len(open) > 0 {
		id := open[len(open)-1]
		open = open[:len(open)-1]
		if id == first {
			return true, nil
		}
		more, err := tx.BlockerIDs(tx.Context(), id)
		if err != nil {
			return false, fmt.Errorf("list what task %s waits for: %w", id, err)
		}
		for _, b := range more {
			if !seen[b] {
				seen[b] = true
				open = append(open, b)
			}
		}
	}
	return false, nil
}

// setBlockers makes exactly these the tasks that a task waits for, and reports whether they
// weren't already.
func setBlockers(tx *db.Tx, t *taskRow, want []api.TaskID) (changed bool, err error) {
	have, err := tx.BlockerIDs(tx.Context(), t.ID)
	if err != nil {
		return false, fmt.Errorf("list what task %s waits for: %w", keyOf(t), err)
	}
	change := func(id api.TaskID, n int64, err error) error {
		if err := db.One(n, err); err != nil {
			return fmt.Errorf("change what task %s waits for: %w", keyOf(t), err)
		}
		changed = true
		return db.One(tx.RecountBlocked(tx.Context(), id))
	}
	for _, id := range want {
		if slices.Contains(have, id) {
			continue
		}
		n, err := tx.AddBlocker(tx.Context(), queries.AddBlockerParams{TaskID: t.ID, BlockerID: id})
		if err := change(id, n, err); err != nil {
			return false, err
		}
	}
	for _, id := range have {
		if slices.Contains(want, id) {
			continue
		}
		n, err := tx.DropBlocker(tx.Context(), queries.DropBlockerParams{TaskID: t.ID, BlockerID: id})
		if err := change(id, n, err); err != nil {
			return false, err
		}
	}
	if !changed {
		return false, nil
	}
	return true, db.One(tx.RecountBlockers(tx.Context(), t.ID))
}

// recountAround counts again how many open tasks stand before and behind the neighbours of one
// that was done or opened again.
func recountAround(tx *db.Tx, t *taskRow) error {
	behind, err := tx.BlockedIDs(tx.Context(), t.ID)
	if err != nil {
		return fmt.Errorf("list what waits for task %s: %w", keyOf(t), err)
	}
	for _, id := range behind {
		if err := db.One(tx.RecountBlockers(tx.Context(), id)); err != nil {
			return fmt.Errorf("count what task %s waits for: %w", id, err)
		}
	}
	before, err := tx.BlockerIDs(tx.Context(), t.ID)
	if err != nil {
		return fmt.Errorf("list what task %s waits for: %w", keyOf(t), err)
	}
	for _, id := range before {
		if err := db.One(tx.RecountBlocked(tx.Context(), id)); err != nil {
			return fmt.Errorf("count what waits for task %s: %w", id, err)
		}
	}
	return nil
}
