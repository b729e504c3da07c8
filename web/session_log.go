package web

import (
	"context"
	"fmt"
	"strings"
	"time"

	"stint/api"
	"stint/engine"
)

// What a page shows of the output at once. More is slow to draw: 10 thousand lines take a
// browser half a second.
const (
	itemPage  = 500
	logBytes  = 32 << 10 // of text on a page
	logLines  = 400      // on a page
	liveBytes = 96 << 10 // of text in one live update; more is left out, with a note
	blockMost = 32 << 10 // an open line is cut into blocks of this size
)

// readLog reads the last output before a sequence number (0 = the end).
func (v *visit) readLog(ctx context.Context, page engine.SessionPage, before int64) (Log, int64, error) {
	id := page.Session.ID
	items, err := orRemoved(v.web.engine.ItemsBefore(ctx, v.caller, id, before, itemPage))
	if err != nil {
		return Log{}, 0, err
	}
	size, lines, from := 0, 0, len(items)
	for from > 0 && size < logBytes && lines < logLines {
		from--
		size += len(items[from].Text)
		lines += strings.Count(items[from].Text, "\n")
	}
	shown := items[from:]
	l := Log{Live: !page.Session.Status.Terminal() && before == 0, Empty: emptyLog(page.Session)}
	last := page.LastItem
	if len(shown) > 0 {
		l.DownloadURL = sessionURL(id) + "/output.txt"
		if first := shown[0].Seq; first > 1 {
			l.EarlierURL = fmt.Sprintf("%s?view=output&before=%d", sessionURL(id), first)
		}
		if before == 0 {
			last = shown[len(shown)-1].Seq
		}
	}
	if before > 0 {
		l.LaterURL = sessionURL(id)
	}
	w := newLogWriter(page.Session)
	for _, it := range shown {
		w.add(it)
	}
	l.Blocks = w.drawn()
	return l, last, nil
}

// orRemoved is output that was read, none where retention removed it: the page then says so.
func orRemoved(items []api.Item, err error) ([]api.Item, error) {
	if api.CodeOf(err) == api.CodeGone {
		return nil, nil
	}
	return items, err
}

// removedOutput says that retention took the output; "" when it didn't.
func removedOutput(s engine.SessionView) string {
	if s.OutputRemovedAt.IsZero() {
		return ""
	}
	return "Its output was removed on " + s.OutputRemovedAt.Format(time.DateOnly) + ", as old output is."
}

func emptyLog(s engine.SessionView) string {
	switch {
	case removedOutput(s) != "":
		return removedOutput(s)
	case s.Status.Waiting():
		return "It hasn't started yet."
	case s.Status.Running():
		return "Nothing printed yet."
	default:
		return "It printed nothing."
	}
}

// logWriter gathers items into blocks of whole lines.
type logWriter struct {
	start  time.Time // from which marks are counted
	blocks []LogBlock
	texts  []string // of the blocks, as printed
	mark   string   // the last one shown
}

func newLogWriter(s engine.SessionView) *logWriter {
	w := &logWriter{start: s.StartedAt.Time}
	if w.start.IsZero() {
		w.start = s.CreatedAt.Time
	}
	return w
}

// add puts an item into the open block, or begins a new one.
func (w *logWriter) add(it api.Item) {
	n := len(w.blocks)
	if it.Kind == api.ItemText && n > 0 && w.open() && w.blocks[n-1].Class == streamClass(it) {
		w.texts[n-1] += itemText(it)
		w.blocks[n-1].Lines = nil
		return
	}
	mark := Clock(max(0, it.At.Sub(w.start).Truncate(time.Second)))
	b := LogBlock{Anchor: fmt.Sprintf("o%d", it.Seq), Mark: mark, Class: streamClass(it)}
	if mark == w.mark {
		b.Mark = ""
	}
	w.mark = mark
	w.blocks = append(w.blocks, b)
	w.texts = append(w.texts, itemText(it))
}

// drawn are the blocks. Each is rendered once, when everything that goes into it is there: a
// progress bar comes in hundreds of pieces.
func (w *logWriter) drawn() []LogBlock {
	for i := range w.blocks {
		if w.blocks[i].Lines == nil {
			w.blocks[i].Lines = RenderANSI(w.texts[i])
		}
	}
	return w.blocks
}

// open reports whether the last block's last line hasn't ended yet.
func (w *logWriter) open() bool {
	n := len(w.texts)
	if n == 0 || w.blocks[n-1].Class == "said" {
		return false
	}
	text := w.texts[n-1]
	return !strings.HasSuffix(text, "\n") && len(text) < blockMost
}

func streamClass(it api.Item) string {
	switch {
	case it.Kind != api.ItemText:
		return "said"
	case it.Stream == "stderr":
		return "err"
	default:
		return ""
	}
}

// itemText is what is shown of an item: output as it was printed, anything else in words.
func itemText(it api.Item) string {
	if it.Kind == api.ItemText {
		text := it.Text
		if it.Truncated {
			text += "\x1b[0m\n[cut here: the line was too long]\n"
		}
		return whole(it, text)
	}
	words := map[api.ItemKind]string{
		api.ItemPrompt: "Asked: ", api.ItemPromptResolved: "Answered: ", api.ItemMessage: "Message: ",
		api.ItemToolCall: "Called: ", api.ItemToolResult: "Result: ", api.ItemThinking: "Thought: ",
		api.ItemLateResult: "Came late: ",
	}
	return words[it.Kind] + PlainText(it.Text) + "\n"
}

// whole ends what an agent said: each text of a conversation stands for itself, while the
// output of a command continues where it was.
func whole(it api.Item, text string) string {
	if it.Stream == "" && !strings.HasSuffix(text, "\n") {
		return text + "\n"
	}
	return text
}

// logTail follows the output of a session for one stream.
type logTail struct {
	v    *visit
	id   api.SessionID
	last int64 // newest item sent
	w    *logWriter
}

// openTail begins after an item. The line that was open there is read again, so that what
// follows can continue it.
func (v *visit) openTail(ctx context.Context, id api.SessionID, last int64) (*logTail, error) {
	t := &logTail{v: v, id: id, last: last}
	s, err := v.web.engine.Session(ctx, v.caller, id)
	if err != nil {
		return nil, err
	}
	t.w = newLogWriter(engine.SessionView{Session: s})
	items, err := orRemoved(v.web.engine.ItemsBefore(ctx, v.caller, id, last+1, 50))
	if err != nil {
		return nil, err
	}
	if last == 0 {
		items = nil
	}
	for _, it := range items {
		t.w.add(it)
	}
	t.keepOpen()
	return t, nil
}

func (t *logTail) at() int64 { return t.last }

// keepOpen forgets all blocks except the open one.
func (t *logTail) keepOpen() {
	if n := len(t.w.blocks); n > 0 && t.w.open() {
		t.w.blocks, t.w.texts = t.w.blocks[n-1:], t.w.texts[n-1:]
		return
	}
	t.w.blocks, t.w.texts = nil, nil
}

// read draws what was printed since: the open block again, whole blocks after it.
func (t *logTail) read(ctx context.Context, c engine.Caller, page engine.SessionPage) ([]part, error) {
	items, last, err := t.v.web.engine.Items(ctx, c, t.id, t.last, itemPage)
	if items, err = orRemoved(items, err); err != nil || len(items) == 0 {
		return nil, err
	}
	if last > items[len(items)-1].Seq {
		// Far behind: show where the output is now, not everything before that.
		if items, err = t.v.web.engine.ItemsBefore(ctx, c, t.id, last+1, itemPage); err != nil {
			return nil, err
		}
	}
	items = newestBytes(items, liveBytes)
	var parts []part
	if gap := items[0].Seq - t.last - 1; gap > 0 {
		t.w.blocks, t.w.texts = nil, nil
		note := LogBlock{Anchor: fmt.Sprintf("gap%d", items[0].Seq), Class: "said", Lines: []string{
			fmt.Sprintf("… %d pieces of output left out here; “Earlier output” and the plain text have them", gap),
		}}
		parts = append(parts, part{target: "log-lines", draw: LogBlocks([]LogBlock{note}), swap: "beforeend", always: true})
	}
	had := len(t.w.blocks)
	for _, it := range items {
		t.w.add(it)
	}
	blocks := t.w.drawn()
	if had == 1 {
		b := blocks[0]
		parts = append(parts, part{target: b.Anchor, draw: LogBlocks([]LogBlock{b}), swap: "outerHTML", always: true})
	}
	if fresh := blocks[had:]; len(fresh) > 0 {
		parts = append(parts, part{target: "log-lines", draw: LogBlocks(append([]LogBlock(nil), fresh...)), swap: "beforeend", always: true})
	}
	parts = append(parts, part{target: "log-empty", draw: logEmpty("")})
	t.last = items[len(items)-1].Seq
	t.keepOpen()
	return parts, nil
}

// newestBytes are the last items whose texts fit into a size; at least one.
func newestBytes(items []api.Item, most int) []api.Item {
	size, from := 0, len(items)
	for from > 0 {
		size += len(items[from-1].Text)
		if size > most && from < len(items) {
			break
		}
		from--
	}
	return items[from:]
}
