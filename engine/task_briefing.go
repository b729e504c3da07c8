package engine

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"stint/api"
	"stint/db"
	"stint/queries"
)

const (
	maxBriefing      = 256 << 10 // bytes
	briefingComments = 20        // the latest of them
	briefingEvents   = 10        // likewise
)

// TaskBriefing is what an agent is told about a task when it is dispatched. Rights: viewer.
func (e *Engine) TaskBriefing(ctx context.Context, c Caller, ref string) (out api.Briefing, err error) {
	err = e.readTask(ctx, c, ref, func(tx *db.ReadTx, t *taskRow) error {
		out.Task = taskRef(t)
		out.Text, err = briefing(ctx, tx, t)
		return err
	})
	return out, err
}

// briefing compiles what is known of a task, in Markdown. Nothing in it depends on who reads
// it: an agent gets it as text that people wrote (contract 10.3).
func briefing(ctx context.Context, q queries.Querier, t *taskRow) (string, error) {
	var b strings.Builder
	fmt.Fprintf(&b, "# %s: %s\n\n", keyOf(t), t.Title)
	fmt.Fprintf(&b, "State: %s. Priority: %s.", t.State, t.Priority)
	if len(t.Labels) > 0 {
		fmt.Fprintf(&b, " Labels: %s.", strings.Join(t.Labels, ", "))
	}
	before, err := blockersOf(ctx, q, t)
	if err != nil {
		return "", err
	}
	if len(before) > 0 {
		b.WriteString(" After:")
		for i, r := range before {
			sep := ";"
			if i == len(before)-1 {
				sep = "."
			}
			fmt.Fprintf(&b, " %s %s (%s)%s", r.Key, r.Title, r.State, sep)
		}
	}
	b.WriteString("\n")
	if t.Description != "" {
		fmt.Fprintf(&b, "\n## Description\n\n%s\n", strings.TrimSpace(t.Description))
	}
	if len(t.Links) > 0 {
		b.WriteString("\n## Links\n\n")
		for _, l := range t.Links {
			if l.Title == "" {
				fmt.Fprintf(&b, "- <%s>\n", l.URL)
				continue
			}
			fmt.Fprintf(&b, "- %s: <%s>\n", l.Title, l.URL)
		}
	}
	if err := briefActivity(ctx, q, t, &b); err != nil {
		return "", err
	}
	if err := briefComments(ctx, q, t, &b); err != nil {
		return "", err
	}
	return api.Excerpt(b.String(), maxBriefing), nil
}

// briefActivity adds the latest changes of state and dispatches. It names no session: the
// text is the same for everybody.
func briefActivity(ctx context.Context, q queries.Querier, t *taskRow, b *strings.Builder) error {
	rows, err := q.EventsOfTask(ctx, queries.EventsOfTaskParams{TaskID: t.ID, Before: 1 << 62, N: 4 * briefingEvents})
	if err != nil {
		return fmt.Errorf("list the events of task %s: %w", keyOf(t), err)
	}
	var lines []string
	for _, r := range rows {
		ev, what := toEvent(r), ""
		switch {
		case ev.Data["to"] != nil:
			what = fmt.Sprintf("%v to %v", ev.Data["from"], ev.Data["to"])
		case ev.Type == api.EventTaskDispatched:
			what = fmt.Sprintf("dispatched to %v", ev.Data["agent"])
		}
		if what != "" && len(lines) < briefingEvents {
			lines = append(lines, fmt.Sprintf("- %s: %s\n", clock(r.At), what))
		}
	}
	if len(lines) == 0 {
		return nil
	}
	slices.Reverse(lines)
	b.WriteString("\n## Recent activity\n\n" + strings.Join(lines, ""))
	return nil
}

func briefComments(ctx context.Context, q queries.Querier, t *taskRow, b *strings.Builder) error {
	rows, err := q.TaskComments(ctx, queries.TaskCommentsParams{TaskID: t.ID, Before: 1 << 62, N: briefingComments})
	if err != nil {
		return fmt.Errorf("list the comments of task %s: %w", keyOf(t), err)
	}
	if len(rows) == 0 {
		return nil
	}
	b.WriteString("\n## Comments\n")
	for i := len(rows) - 1; i >= 0; i-- {
		fmt.Fprintf(b, "\n%s, %s:\n\n%s\n", authorOf(rows[i].TaskComment, rows[i].Author), clock(rows[i].TaskComment.At), strings.TrimSpace(rows[i].TaskComment.Text))
	}
	return nil
}
