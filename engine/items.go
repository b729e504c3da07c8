package engine

import (
	"context"
	"fmt"
	"math"
	"slices"

	"stint/api"
	"stint/db"
	"stint/queries"
)

// The limits of contract 6.1 and 6.2.
const (
	maxActivityText   = 4 << 10
	maxActivityDetail = 64 << 10
	maxItems          = 1000
	maxPlan           = 64 << 10
	maxURL            = 2000
	maxPromptText     = 64 << 10
	maxTries          = 100_000
)

// AddActivity notes progress under a claim. It never changes the status. A repeated client key
// adds no second activity.
func (e *Engine) AddActivity(ctx context.Context, c Caller, worker api.WorkerID, session api.SessionID, in api.ActivityInput) (out api.Activity, err error) {
	if err := mayNote(c, in); err != nil {
		return out, err
	}
	var v api.Invalid
	if !slices.Contains(api.ActivityTypes, in.Type) {
		v.Add("type", fmt.Sprintf("%q is no activity type: use one of %s", in.Type, api.Listed(api.ActivityTypes)))
	}
	mended(&in.Text, &in.Detail)
	v.CheckText("text", in.Text, maxActivityText)
	v.CheckText("detail", in.Detail, maxActivityDetail)
	v.CheckText("key", in.Key, 100)
	v.CheckLine("key", in.Key)
	if in.Mark != "" && !slices.Contains(api.Marks, in.Mark) {
		v.Add("mark", fmt.Sprintf("%q is no mark: use %s, or none", in.Mark, api.OrList(api.Marks)))
	}
	if err := v.Err(); err != nil {
		return out, err
	}
	err = e.writeUnder(ctx, c, worker, session, in.UnderClaim, func(tx *db.Tx, h held) error {
		row := queries.Activity{
			ID: api.ActivityID(tx.NewID()), SessionID: session, ClientKey: in.Key, Type: in.Type, Text: in.Text, Detail: in.Detail, At: db.Micros(tx.Now), Mark: in.Mark,
		}
		n, err := tx.InsertActivity(tx.Context(), queries.InsertActivityParams(row))
		if err != nil {
			return fmt.Errorf("insert an activity of session %s: %w", session, err)
		}
		if n == 0 {
			row, err = tx.ActivityByKey(tx.Context(), queries.ActivityByKeyParams{SessionID: session, ClientKey: in.Key})
			out = toActivity(row)
			return err
		}
		out = toActivity(row)
		if in.Mark == "" {
			return e.logSession(tx, h.s, h.actor(), api.EventActivity, api.EventData{"type": in.Type})
		}
		if err := e.mark(tx, h.s, in.Mark, in.Text); err != nil {
			return err
		}
		return e.logSession(tx, h.s, h.actor(), api.EventActivity, api.EventData{"type": in.Type, "mark": in.Mark})
	})
	return out, err
}

func toActivity(r queries.Activity) api.Activity {
	return api.Activity{ID: r.ID, SessionID: r.SessionID, Type: r.Type, Text: r.Text, Detail: r.Detail, Mark: r.Mark, At: api.At(r.At)}
}

// Activities lists a session's activities, newest first. A page ends sooner when
// it holds a few MiB of text.
func (e *Engine) Activities(ctx context.Context, c Caller, id api.SessionID, page api.Page) (api.List[api.Activity], error) {
	out := api.List[api.Activity]{Items: []api.Activity{}}
	n, before, err := db.PageOf(page, math.MaxInt64)
	if err != nil {
		return out, err
	}
	err = e.store.Read(ctx, func(tx *db.ReadTx) error {
		if _, err := visible(ctx, tx, c, id); err != nil {
			return err
		}
		out, err = gathering[queries.Activity, api.Activity]{
			read: func(before, n int64) ([]queries.Activity, error) {
				return tx.ListActivities(ctx, queries.ListActivitiesParams{SessionID: id, Before: api.ActivityID(before), N: n})
			},
			key:  func(r queries.Activity) int64 { return int64(r.ID) },
			take: func(r queries.Activity) (api.Activity, bool, error) { return toActivity(r), true, nil },
			size: func(a *api.Activity) int { return len(a.Text) + len(a.Detail) },
		}.page(n, before)
		return err
	})
	return out, err
}

// AddItems appends lines of conversation or output under a claim, in order. Client ids that
// are already there are skipped, so that a batch can be sent again. Over-long texts are
// excerpted and marked (contract 6.2).
func (e *Engine) AddItems(ctx context.Context, c Caller, worker api.WorkerID, session api.SessionID, in api.ItemsRequest) (out api.ItemsAnswer, err error) {
	if err := checkItems(in.Items); err != nil {
		return out, err
	}
	if err := mayAppend(c, in.Items); err != nil {
		return out, err
	}
	err = e.writeUnder(ctx, c, worker, session, in.UnderClaim, func(tx *db.Tx, h held) error {
		last, err := tx.LastItem(tx.Context(), session)
		if err != nil {
			return fmt.Errorf("read the last item of session %s: %w", session, err)
		}
		k, err := e.outputOf(tx, session)
		if err != nil {
			return fmt.Errorf("read how much output session %s has: %w", session, err)
		}
		out = api.ItemsAnswer{ServerTime: api.At(db.Micros(tx.Now))}
		for _, item := range in.Items {
			at := api.Micros(item.At.Time)
			if at == 0 {
				at = db.Micros(tx.Now)
			}
			n, err := e.insertItem(tx, queries.InsertItemParams{
				SessionID: session, Seq: last + 1, ClientID: item.ClientID, Kind: item.Kind, Stream: item.Stream, Text: item.Text, At: at,
				Tool: item.Tool, CallID: item.CallID, Failed: db.Flag(item.Failed),
			})
			if err != nil {
				return err
			}
			last += n
			out.Appended += int(n)
			if n > 0 {
				k.add(last, item.Kind, min(len(item.Text), e.cfg.MaxItemText))
			}
		}
		if err := e.keepOutput(tx, k, last); err != nil {
			return err
		}
		out.LastSeq = last
		e.wakeItems(tx, session)
		return nil
	})
	return out, err
}

func (e *Engine) insertItem(tx *db.Tx, p queries.InsertItemParams) (int64, error) {
	mended(&p.Text)
	if len(p.Text) > e.cfg.MaxItemText {
		p.Text, p.Truncated = api.Excerpt(p.Text, e.cfg.MaxItemText), 1
	}
	n, err := tx.InsertItem(tx.Context(), p)
	if err != nil {
		return 0, fmt.Errorf("insert an item of session %s: %w", p.SessionID, err)
	}
	return n, nil
}

// addItem appends one item of the coordinator's own; its number and its time are
// filled in.
func (e *Engine) addItem(tx *db.Tx, item queries.InsertItemParams) error {
	last, err := tx.LastItem(tx.Context(), item.SessionID)
	if err != nil {
		return fmt.Errorf("read the last item of session %s: %w", item.SessionID, err)
	}
	item.Seq, item.At = last+1, db.Micros(tx.Now)
	if _, err := e.insertItem(tx, item); err != nil {
		return err
	}
	e.wakeItems(tx, item.SessionID)
	return nil
}

func checkItems(items []api.ItemInput) error {
	var v api.Invalid
	if len(items) == 0 || len(items) > maxItems {
		v.Add("items", fmt.Sprintf("must hold 1 to %d items", maxItems))
	}
	for i, item := range items {
		field := fmt.Sprintf("items[%d].", i)
		if !slices.Contains(api.WorkerItemKinds, item.Kind) {
			v.Add(field+"kind", fmt.Sprintf("%q is no kind that a worker may append: use one of %s", item.Kind, api.Listed(api.WorkerItemKinds)))
		}
		if item.Stream != "" && item.Stream != "stdout" && item.Stream != "stderr" {
			v.Add(field+"stream", "must be stdout, stderr or empty")
		}
		v.CheckText(field+"clientId", item.ClientID, 100)
		v.CheckLine(field+"clientId", item.ClientID)
		v.CheckText(field+"tool", item.Tool, 200)
		v.CheckLine(field+"tool", item.Tool)
		v.CheckText(field+"callId", item.CallID, 200)
		v.CheckLine(field+"callId", item.CallID)
		if (item.Kind == api.ItemToolCall || item.Kind == api.ItemToolResult) != (item.CallID != "") {
			v.Add(field+"callId", "pairs a tool_call with its tool_result: both need it, nothing else has it")
		}
	}
	return v.Err()
}

func toItem(r queries.Item) api.Item {
	return api.Item{
		Seq: r.Seq, Kind: r.Kind, Stream: r.Stream, Tool: r.Tool, CallID: r.CallID, Failed: r.Failed != 0,
		UserID: r.UserID, Text: r.Text, Truncated: r.Truncated != 0, At: api.At(r.At),
	}
}

// withOutput refuses to read the output of a session that retention took it from: an empty one
// would read as if there had been none.
func withOutput(ctx context.Context, q queries.Querier, c Caller, id api.SessionID) error {
	s, err := visible(ctx, q, c, id)
	if err == nil && s.OutputRemovedAt != 0 {
		err = api.Refuse(api.CodeGone, "The output of this session was removed on "+day(s.OutputRemovedAt)+": old output is, unless its session is kept.")
	}
	return err
}

// Items returns items after a sequence number, oldest first, and the session's
// last sequence number. limit is clamped to 1–1000; a page ends sooner when it
// holds 1 MiB of text, so that its size is bounded whatever was printed.
func (e *Engine) Items(ctx context.Context, c Caller, id api.SessionID, after int64, limit int) (items []api.Item, last int64, err error) {
	err = e.store.Read(ctx, func(tx *db.ReadTx) error {
		if err := withOutput(ctx, tx, c, id); err != nil {
			return err
		}
		if last, err = tx.LastItem(ctx, id); err != nil {
			return err
		}
		items, err = pageOfItems(limit, after, func(from, n int64) ([]queries.Item, error) {
			return tx.ItemsAfter(ctx, queries.ItemsAfterParams{SessionID: id, After: from, N: n})
		})
		return err
	})
	return items, last, err
}

// ItemsBefore returns the last items before a sequence number (0 = the end),
// oldest first. A page is bounded as one of [Engine.Items] is.
func (e *Engine) ItemsBefore(ctx context.Context, c Caller, id api.SessionID, before int64, limit int) (items []api.Item, err error) {
	if before <= 0 {
		before = math.MaxInt64
	}
	err = e.store.Read(ctx, func(tx *db.ReadTx) error {
		if err := withOutput(ctx, tx, c, id); err != nil {
			return err
		}
		items, err = pageOfItems(limit, before, func(from, n int64) ([]queries.Item, error) {
			return tx.ItemsBefore(ctx, queries.ItemsBeforeParams{SessionID: id, Before: from, N: n})
		})
		slices.Reverse(items)
		return err
	})
	return items, err
}

const (
	pageBytes = 1 << 20 // text bytes in a page of items; larger than any single item
	firstRead = 16      // items: as many of the longest as fit a page
)

// pageOfItems reads items from a sequence number on, as many as fit a page and hardly more:
// the first few show how many that will be.
func pageOfItems(limit int, from int64, read func(from, n int64) ([]queries.Item, error)) ([]api.Item, error) {
	items := []api.Item{}
	limit = min(max(limit, 1), maxItems)
	size := 0
	for step := firstRead; len(items) < limit; step = 1 + (pageBytes-size)*len(items)/max(size, 1) {
		n := min(step, limit-len(items))
		rows, err := read(from, int64(n))
		if err != nil {
			return nil, err
		}
		for _, r := range rows {
			if size += len(r.Text); size > pageBytes && len(items) > 0 {
				return items, nil
			}
			items = append(items, toItem(r))
			from = r.Seq
		}
		if len(rows) < n {
			break
		}
	}
	return items, nil
}
