package engine

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"strings"

	"stint/account"
	"stint/api"
	"stint/db"
	"stint/queries"
)

// CheckComment tidies the text of a comment, or says what is wrong with it.
func CheckComment(text string) (string, error) {
	var v api.Invalid
	text = strings.TrimSpace(text)
	if text == "" {
		v.Add("text", "is missing: write the comment")
	}
	v.CheckText("text", text, maxComment)
	v.CheckWritten("text", text)
	return text, v.Err()
}

// CommentTask writes a comment on a task. An agent's run comments on its own. Rights: member.
func (e *Engine) CommentTask(ctx context.Context, c Caller, ref string, in api.TaskCommentInput) (out api.TaskComment, err error) {
	text, err := CheckComment(in.Text)
	if err != nil {
		return out, err
	}
	err = e.writeAs(ctx, c, func(tx *db.Tx) error {
		t, err := taskOf(tx.Context(), tx, c, ref)
		if err != nil {
			return err
		}
		row := queries.TaskComment{ID: api.CommentID(tx.NewID()), TaskID: t.ID, UserID: c.UserID, Text: text, At: db.Micros(tx.Now)}
		if c.Run != nil {
			row.SessionID = c.Run.Session
		} else if err := c.May(account.EditTasks); err != nil {
			return err
		}
		if err := tx.InsertTaskComment(tx.Context(), queries.InsertTaskCommentParams(row)); err != nil {
			return fmt.Errorf("insert a comment on task %s: %w", keyOf(t), err)
		}
		if err := db.One(tx.CountComment(tx.Context(), t.ID)); err != nil {
			return fmt.Errorf("count the comments of task %s: %w", keyOf(t), err)
		}
		if out, err = showComment(tx.Context(), newVisibility(tx, c), row, c.Name); err != nil {
			return err
		}
		return e.logTask(tx, t, c.Actor(), api.EventTaskCommented, api.EventData{"comment": row.ID.String()})
	})
	return out, err
}

// authorOf names who wrote a comment: a user, or their agent.
func authorOf(row queries.TaskComment, user string) string {
	if row.SessionID != 0 {
		return user + "'s agent"
	}
	return user
}

func showComment(ctx context.Context, y *visibility, row queries.TaskComment, author string) (api.TaskComment, error) {
	out := api.TaskComment{
		ID: row.ID, TaskID: row.TaskID, Text: row.Text, At: api.At(row.At),
		Author: api.Person{Type: api.PersonUser, ID: row.UserID.String(), Name: authorOf(row, author)},
	}
	if row.SessionID == 0 {
		return out, nil
	}
	seen, err := y.seesSession(ctx, row.SessionID)
	out.Author.Type = api.PersonAgent
	if seen {
		out.SessionID = row.SessionID
	}
	return out, err
}

// TaskComments lists the comments of a task, newest first. Rights: viewer.
func (e *Engine) TaskComments(ctx context.Context, c Caller, ref string, page api.Page) (out api.List[api.TaskComment], err error) {
	n, before, err := db.PageOf(page, math.MaxInt64)
	if err != nil {
		return out, err
	}
	err = e.readTask(ctx, c, ref, func(tx *db.ReadTx, t *taskRow) error {
		rows, err := tx.TaskComments(ctx, queries.TaskCommentsParams{TaskID: t.ID, Before: api.CommentID(before), N: n + 1})
		if err != nil {
			return fmt.Errorf("list the comments of task %s: %w", keyOf(t), err)
		}
		y := newVisibility(tx, c)
		var failed error
		out = db.ListOf(rows, n, func(r queries.TaskCommentsRow) api.TaskComment {
			shown, err := showComment(ctx, y, r.TaskComment, r.Author)
			failed = cmp.Or(failed, err)
			return shown
		}, func(r queries.TaskCommentsRow) int64 { return int64(r.TaskComment.ID) })
		return failed
	})
	return out, err
}
