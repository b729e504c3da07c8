package engine

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"stint/api"
	"stint/db"
	"stint/queries"
)

const (
	maxReviewText = 8 << 10 // bytes of a comment
	maxReview     = 200     // comments of one person on one session
)

// Review lists the caller's comments on a session's changes that they haven't sent, oldest
// first.
func (e *Engine) Review(ctx context.Context, c Caller, session api.SessionID) (out api.List[api.ReviewComment], err error) {
	out.Items = []api.ReviewComment{}
	err = e.store.Read(ctx, func(tx *db.ReadTx) error {
		if _, err := answerable(ctx, tx, c, session); err != nil {
			return err
		}
		out.Items, err = reviewOf(ctx, tx, c, session)
		return err
	})
	return out, err
}

func reviewOf(ctx context.Context, q queries.Querier, c Caller, session api.SessionID) ([]api.ReviewComment, error) {
	rows, err := q.ReviewOf(ctx, queries.ReviewOfParams{SessionID: session, UserID: c.UserID})
	if err != nil {
		return nil, fmt.Errorf("read comments on session %s: %w", session, err)
	}
	out := make([]api.ReviewComment, 0, len(rows))
	for _, r := range rows {
		out = append(out, api.ReviewComment{
			ID: r.ID, ReviewInput: api.ReviewInput{Path: r.Path, Line: r.Line, Side: r.Side, Text: r.Text}, Quote: r.Quote, At: api.At(r.At),
		})
	}
	return out, nil
}

// CommentOnChanges notes what the caller has to say about a line, a file or all of a session's
// changes. Nobody else sees it until it is sent. Rights: as for a message to the agent. Errors:
// invalid, conflict for an agent that takes no messages, forbidden, not_found.
func (e *Engine) CommentOnChanges(ctx context.Context, c Caller, session api.SessionID, in api.ReviewInput) (out api.ReviewComment, err error) {
	if in.Side == "" {
		in.Side = api.SideNew
	}
	err = e.writeAs(ctx, c, func(tx *db.Tx) error {
		s, err := answerable(tx.Context(), tx, c, session)
		if err != nil {
			return err
		}
		if _, err := takesMessages(tx.Context(), tx, s); err != nil {
			return err
		}
		row, err := changesRow(tx.Context(), tx, session)
		if err != nil {
			return err
		}
		files, err := filesOf(tx.Context(), tx, row)
		if err != nil {
			return err
		}
		mine, err := reviewOf(tx.Context(), tx, c, session)
		if err != nil {
			return err
		}
		if len(mine) >= maxReview {
			return api.Refuse(api.CodeConflict, fmt.Sprintf("You have %d comments here already: send them first.", maxReview))
		}
		quote, err := checkReview(in, files)
		if err != nil {
			return err
		}
		out = api.ReviewComment{ID: api.ReviewID(tx.NewID()), ReviewInput: in, Quote: quote, At: api.At(db.Micros(tx.Now))}
		err = tx.InsertReview(tx.Context(), queries.InsertReviewParams{
			ID: out.ID, SessionID: session, UserID: c.UserID, Path: in.Path, Line: in.Line, Side: in.Side, Quote: quote, Text: in.Text, At: db.Micros(tx.Now),
		})
		if err != nil {
			return fmt.Errorf("keep a comment on session %s: %w", session, err)
		}
		return nil
	})
	return out, err
}

// checkReview returns the line that a comment is about.
func checkReview(in api.ReviewInput, files []api.ChangedFile) (quote string, err error) {
	var v api.Invalid
	v.CheckText("text", in.Text, maxReviewText)
	v.CheckWritten("text", in.Text)
	if strings.TrimSpace(in.Text) == "" {
		v.Add("text", "is missing: write something")
	}
	if in.Side != api.SideNew && in.Side != api.SideOld {
		v.Add("side", "must be new or old")
	}
	i := slices.IndexFunc(files, func(f api.ChangedFile) bool { return f.Path == in.Path })
	switch {
	case in.Path == "" && in.Line != 0:
		v.Add("line", "belongs to a file: name its path")
	case in.Path != "" && i < 0:
		v.Add("path", "is none of the changed files")
	case in.Line < 0:
		v.Add("line", "must be 0 or more")
	case in.Line > 0:
		var ok bool
		if quote, ok = api.PatchLine(files[i].Patch, in.Side, in.Line); !ok {
			v.Add("line", fmt.Sprintf("%d is not in the diff of this file, on its %s side", in.Line, in.Side))
		}
	}
	return api.Excerpt(quote, 500), v.Err()
}

// DropComment removes one of the caller's comments that was not sent. Errors: not_found.
func (e *Engine) DropComment(ctx context.Context, c Caller, session api.SessionID, id api.ReviewID) error {
	return e.writeAs(ctx, c, func(tx *db.Tx) error {
		if _, err := answerable(tx.Context(), tx, c, session); err != nil {
			return err
		}
		n, err := tx.DropReviewComment(tx.Context(), queries.DropReviewCommentParams{ID: id, SessionID: session, UserID: c.UserID})
		if err == nil && n == 0 {
			return db.NotFound("comment")
		}
		return err
	})
}

// SendReview sends the caller's comments on a session's changes to its agent, as one message
// with file and line (contract 16.2), and forgets them as such. Rights and errors: those of
// [Engine.PostMessage]; conflict when there is nothing to send.
func (e *Engine) SendReview(ctx context.Context, c Caller, session api.SessionID, in api.ReviewSend) (out api.Posted, err error) {
	var v api.Invalid
	v.CheckText("text", in.Text, maxReviewText)
	v.CheckWritten("text", in.Text)
	if err := v.Err(); err != nil {
		return out, err
	}
	err = e.writeAs(ctx, c, func(tx *db.Tx) error {
		if _, err := answerable(tx.Context(), tx, c, session); err != nil {
			return err
		}
		mine, err := reviewOf(tx.Context(), tx, c, session)
		if err != nil {
			return err
		}
		text := reviewText(strings.TrimSpace(in.Text), mine)
		switch {
		case text == "":
			return api.Refuse(api.CodeConflict, "You have no comments here that were not sent.")
		case len(text) > maxMessageText:
			return api.Refuse(api.CodeConflict, fmt.Sprintf("Together your comments have %d bytes, and a message holds %d: remove some, and send them afterwards.", len(text), maxMessageText))
		}
		if out, err = e.postTx(tx, c, session, api.MessageInput{Text: text}); err != nil {
			return err
		}
		_, err = tx.DropReviewBy(tx.Context(), queries.DropReviewByParams{SessionID: session, UserID: c.UserID})
		return err
	})
	return out, err
}

// reviewHead is the first line of a review that would begin with a place in a file: the session
// is named by that line.
func reviewHead(comments []api.ReviewComment) string {
	if len(comments) == 0 || comments[0].Path == "" {
		return ""
	}
	var files []string
	for _, c := range comments {
		if !slices.Contains(files, c.Path) {
			files = append(files, c.Path)
		}
	}
	head := "Comments on your changes"
	switch more := len(files) - 1; {
	case more == 0:
		head += " to " + files[0]
	case more == 1:
		head += " to " + files[0] + " and another file"
	case more > 1:
		head += fmt.Sprintf(" to %s and %d other files", files[0], more)
	}
	return head + ":"
}

// reviewText is what an agent reads of comments: file by file, in the order of lines.
func reviewText(before string, comments []api.ReviewComment) string {
	comments = slices.Clone(comments)
	slices.SortStableFunc(comments, func(a, b api.ReviewComment) int {
		if c := strings.Compare(a.Path, b.Path); c != 0 {
			return c
		}
		return int(a.Line - b.Line)
	})
	var b strings.Builder
	b.WriteString(cmp.Or(before, reviewHead(comments)))
	for _, c := range comments {
		if b.Len() > 0 {
			b.WriteString("\n\n")
		}
		switch {
		case c.Line > 0 && c.Side == api.SideOld:
			fmt.Fprintf(&b, "%s, line %d as it was before your changes:\n> %s\n", c.Path, c.Line, c.Quote)
		case c.Line > 0:
			fmt.Fprintf(&b, "%s, line %d:\n> %s\n", c.Path, c.Line, c.Quote)
		case c.Path != "":
			fmt.Fprintf(&b, "%s:\n", c.Path)
		}
		b.WriteString(strings.TrimSpace(c.Text))
	}
	return b.String()
}
