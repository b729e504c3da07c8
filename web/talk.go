package web

import (
	"context"
	"fmt"
	"strings"
	"time"

	"stint/api"
	"stint/engine"
)

// What a page shows of a conversation at once.
const (
	talkBytes = 32 << 10 // of text
	talkMost  = 200      // entries
	talkCut   = 6 << 10  // of a tool's input or result; the log has all of it
	talkOpen  = 100      // tool calls without a result that a live page remembers
)

// talkView is what talkView in talk.templ draws: a conversation, or a page of it.
type talkView struct {
	entries []talkEntry
	first   *talkEntry // what the agent was asked to do, if the page begins at the beginning
	empty   string
	earlier string
	later   string
	live    bool
}

// talkEntry is one thing that was said or done.
type talkEntry struct {
	anchor string
	mark   string // time since the start
	kind   api.ItemKind
	who    string
	text   string
	cut    bool // the text was longer than is shown or kept
	call   *toolCall
	files  []api.Attachment // that came with a message, or with the prompt
}

// toolCall is a call of a tool and, once it is there, its result.
type toolCall struct {
	tool    string
	input   string
	result  string
	done    bool
	failed  bool
	running bool // the session is still running, so a result may come
}

// conversed reports whether the session is a conversation, not the output of a command.
func (p sessionPage) conversed() bool { return p.Agent.Type != api.TypeCommand }

// threadTitle names the list of a thread's sessions. In a conversation most of them are further
// messages, else all are tries of the same.
func (p sessionPage) threadTitle() string {
	if p.conversed() {
		return "In this conversation"
	}
	return "Attempts"
}

// readTalk reads the last part of a conversation before a sequence number (0 = the end).
func (v *visit) readTalk(ctx context.Context, page engine.SessionPage, before int64) (talkView, int64, error) {
	id := page.Session.ID
	items, err := orRemoved(v.web.engine.ItemsBefore(ctx, v.caller, id, before, itemPage))
	if err != nil {
		return talkView{}, 0, err
	}
	size, from := 0, len(items)
	for from > 0 && size < talkBytes && len(items)-from < talkMost {
		from--
		size += min(len(items[from].Text), talkShare(items[from]))
	}
	shown := items[from:]
	t := talkView{live: !page.Session.Status.Terminal() && before == 0, empty: emptyTalk(page.Session)}
	last := page.LastItem
	if len(shown) > 0 && before == 0 {
		last = shown[len(shown)-1].Seq
	}
	if before > 0 {
		t.later = sessionURL(id)
	}
	if len(shown) > 0 && shown[0].Seq > 1 {
		t.earlier = fmt.Sprintf("%s?view=transcript&before=%d", sessionURL(id), shown[0].Seq)
	} else if page.Session.Prompt != "" {
		t.first = &talkEntry{anchor: "asked", kind: api.ItemMessage, who: actorName(page.Session.TriggeredBy, page.Session.By), text: page.Session.Prompt}
	}
	w := newTalkWriter(page.Session)
	if err := w.learn(ctx, v, v.caller, id, shown); err != nil {
		return t, 0, err
	}
	if t.first != nil {
		if w.files, err = v.filesOf(ctx, v.caller, id); err != nil {
			return t, 0, err
		}
		t.first.files = w.files[0]
	}
	for _, it := range shown {
		w.add(it)
	}
	t.entries = w.entries()
	if t.first != nil && len(t.entries) == 0 && page.Session.Status.Terminal() && removedOutput(page.Session) == "" {
		t.empty = "It ended before the agent said anything."
	}
	return t, last, nil
}

// talkShare is how much of an item's text a page shows.
func talkShare(it api.Item) int {
	if it.Kind == api.ItemToolCall || it.Kind == api.ItemToolResult {
		return talkCut
	}
	return len(it.Text)
}

func emptyTalk(s engine.SessionView) string {
	switch {
	case removedOutput(s) != "":
		return removedOutput(s)
	case s.Status.Waiting():
		return "It hasn't started yet."
	case s.Status.Running():
		return "Nothing said yet."
	default:
		return "Nothing was said."
	}
}

// talkWriter turns items into entries. A result goes to its call.
type talkWriter struct {
	start   time.Time
	running bool
	mark    string
	names   map[api.UserID]string
	files   map[api.MessageID][]api.Attachment
	list    []*talkEntry
	calls   map[string]*talkEntry // without a result yet, by call id
}

func newTalkWriter(s engine.SessionView) *talkWriter {
	w := &talkWriter{start: s.StartedAt.Time, running: s.Status.Running(), names: map[api.UserID]string{}, calls: map[string]*talkEntry{}}
	if w.start.IsZero() {
		w.start = s.CreatedAt.Time
	}
	return w
}

// learn reads the names of the authors.
func (w *talkWriter) learn(ctx context.Context, v *visit, c engine.Caller, id api.SessionID, items []api.Item) error {
	for _, it := range items {
		if it.Kind == api.ItemMessage && it.CallID != "" { // it came with files
			var err error
			if w.files, err = v.filesOf(ctx, c, id); err != nil {
				return err
			}
			break
		}
	}
	for _, it := range items {
		if it.UserID == 0 || w.names[it.UserID] != "" {
			continue
		}
		name, err := v.web.engine.Author(ctx, c, id, it.UserID)
		if err != nil {
			return err
		}
		w.names[it.UserID] = name
	}
	return nil
}

// add turns an item into an entry, or returns the earlier entry that it completes.
func (w *talkWriter) add(it api.Item) (completed *talkEntry) {
	e := &talkEntry{anchor: fmt.Sprintf("t%d", it.Seq), kind: it.Kind, text: it.Text, cut: it.Truncated, who: w.names[it.UserID]}
	switch it.Kind {
	case api.ItemMessage:
		var m api.MessageID
		if m.UnmarshalText([]byte(it.CallID)) == nil && m != 0 {
			e.files = w.files[m]
		}
	case api.ItemToolCall:
		e.call = &toolCall{tool: it.Tool, running: w.running}
		e.call.input, e.cut = shortened(it.Text, it.Truncated)
		if it.CallID != "" && len(w.calls) < talkOpen {
			w.calls[it.CallID] = e
		}
	case api.ItemToolResult:
		result, cut := shortened(it.Text, it.Truncated)
		if of := w.calls[it.CallID]; of != nil {
			delete(w.calls, it.CallID)
			of.call.result, of.call.done, of.call.failed, of.cut = result, true, it.Failed, of.cut || cut
			return of
		}
		e.call, e.cut = &toolCall{tool: it.Tool, result: result, done: true, failed: it.Failed}, cut
	}
	mark := Clock(max(0, it.At.Sub(w.start).Truncate(time.Second)))
	if mark != w.mark {
		e.mark, w.mark = mark, mark
	}
	w.list = append(w.list, e)
	return nil
}

func shortened(text string, truncated bool) (string, bool) {
	if len(text) <= talkCut {
		return text, truncated
	}
	return strings.ToValidUTF8(text[:talkCut], ""), true
}

// entries are copies, so that what is drawn later doesn't change meanwhile.
func (w *talkWriter) entries() []talkEntry {
	out := make([]talkEntry, 0, len(w.list))
	for _, e := range w.list {
		out = append(out, e.copy())
	}
	return out
}

func (e *talkEntry) copy() talkEntry {
	out := *e
	if e.call != nil {
		call := *e.call
		out.call = &call
	}
	return out
}

// title is the one line of a tool call that is visible while it is folded.
func (c *toolCall) title() string {
	if c.input == "" {
		return c.outcome()
	}
	line := firstLine(c.input, 120)
	if line == "{" || line == "[" { // of JSON, the values say more than its first brace
		line = firstLine(strings.Join(strings.Fields(c.input), " "), 120)
	}
	return line
}

// outcome is the first line of the result.
func (c *toolCall) outcome() string {
	switch {
	case c.done && strings.TrimSpace(c.result) == "":
		return "No output"
	case c.done:
		return firstLine(c.result, 120)
	case c.running:
		return "Runs"
	default:
		return "No result"
	}
}

func (c *toolCall) class() string {
	switch {
	case c.failed:
		return statusClass(api.Failed)
	case c.done:
		return statusClass(api.Complete)
	case c.running:
		return statusClass(api.Active)
	default:
		return statusClass(api.Cancelled)
	}
}

// word says the same as the icon, for those who don't see it.
func (c *toolCall) word() string {
	switch {
	case c.failed:
		return "failed"
	case c.done:
		return "done"
	case c.running:
		return "running"
	default:
		return "without a result"
	}
}

func (c *toolCall) icon() string {
	switch {
	case c.failed:
		return "circle-x"
	case c.done:
		return "check"
	case c.running:
		return "circle-play"
	default:
		return "circle-slash"
	}
}

// talkTail follows a conversation for one stream.
type talkTail struct {
	v    *visit
	id   api.SessionID
	last int64
	w    *talkWriter
}

// openTalk begins after an item. The calls that had no result there are read again, so that
// results find them.
func (v *visit) openTalk(ctx context.Context, id api.SessionID, last int64) (*talkTail, error) {
	s, err := v.web.engine.Session(ctx, v.caller, id)
	if err != nil {
		return nil, err
	}
	t := &talkTail{v: v, id: id, last: last, w: newTalkWriter(engine.SessionView{Session: s})}
	if last == 0 {
		return t, nil
	}
	items, err := orRemoved(v.web.engine.ItemsBefore(ctx, v.caller, id, last+1, talkMost))
	if err != nil {
		return nil, err
	}
	for _, it := range items {
		t.w.add(it)
	}
	t.w.list = nil
	return t, nil
}

func (t *talkTail) at() int64 { return t.last }

// read draws what was said since: calls with their results again, the rest after what is
// there.
func (t *talkTail) read(ctx context.Context, c engine.Caller, page engine.SessionPage) ([]part, error) {
	t.w.running = page.Session.Status.Running()
	var parts []part
	items, last, err := t.v.web.engine.Items(ctx, c, t.id, t.last, itemPage)
	if err != nil {
		return nil, err
	}
	if len(items) == 0 {
		return nil, nil
	}
	if last > items[len(items)-1].Seq {
		// Far behind: show where the conversation is now, not everything before that.
		if items, err = t.v.web.engine.ItemsBefore(ctx, c, t.id, last+1, talkMost); err != nil {
			return nil, err
		}
	}
	items = newestBytes(items, liveBytes)
	if gap := items[0].Seq - t.last - 1; gap > 0 {
		note := talkEntry{anchor: fmt.Sprintf("gap%d", items[0].Seq), kind: api.ItemStatus, text: fmt.Sprintf("%d entries left out here; “Earlier” has them", gap)}
		parts = append(parts, part{target: "talk-lines", draw: talkEntries([]talkEntry{note}), swap: "beforeend", always: true})
	}
	if err := t.w.learn(ctx, t.v, c, t.id, items); err != nil {
		return nil, err
	}
	for _, it := range items {
		of := t.w.add(it)
		if of == nil || t.fresh(of) {
			continue
		}
		parts = append(parts, part{target: of.anchor, draw: talkEntries([]talkEntry{of.copy()}), always: true})
	}
	if len(t.w.list) > 0 {
		parts = append(parts, part{target: "talk-lines", draw: talkEntries(t.w.entries()), swap: "beforeend", always: true})
	}
	parts = append(parts, part{target: "talk-empty", draw: talkEmpty("")})
	t.last, t.w.list = items[len(items)-1].Seq, nil
	return parts, nil
}

// fresh reports whether this update is the first to contain an entry.
func (t *talkTail) fresh(e *talkEntry) bool {
	for _, one := range t.w.list {
		if one == e {
			return true
		}
	}
	return false
}
