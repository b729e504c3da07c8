package web

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/a-h/templ"

	"stint/api"
	"stint/engine"
	"stint/web/sse"
)

// part is a piece of a page that a live update replaces by its id.
type part struct {
	target string
	draw   templ.Component
	swap   string // "" = replace the old one, keeping what didn't change
	always bool   // not a piece of the page but something new, such as output
}

// watcher reads what a page shows, as it is now. It is called again after each change and from
// time to time; parts that haven't changed aren't sent.
type watcher func(ctx context.Context, c engine.Caller) ([]part, position, error)

// streamURL is the address of a page's live stream. The page is current up to the view's
// event; the stream continues from there (contract 9.3).
func streamURL(page string, view engine.View, more ...string) string {
	return streamFrom(page, strconv.FormatInt(view.Seq, 10), more...)
}

// streamFrom is the address of a page's live stream from a position on.
func streamFrom(page, at string, more ...string) string {
	q := url.Values{"page": {page}, "at": {at}, drawnByParam: {drawnBy}}
	for i := 0; i+1 < len(more); i += 2 {
		q.Set(more[i], more[i+1])
	}
	return "/ui/stream?" + q.Encode()
}

// rowsParam is the parameter of a list's stream that has the ids of its rows: those are read
// again, whether they still fit the filter or not, also by a reader who comes back later.
const rowsParam = "rows"

// rowsOnPage writes the ids of a list's rows for the address of its stream.
func rowsOnPage[T any, ID ~int64](rows []T, id func(T) ID) string {
	ids := make([]string, len(rows))
	for i, r := range rows {
		ids[i] = strconv.FormatInt(int64(id(r)), 36)
	}
	return strings.Join(ids, ".")
}

// rowsAsked reads what rowsOnPage wrote; newest is the first of them, 0 for none.
func rowsAsked[ID ~int64](q url.Values) (ids []ID, newest ID) {
	for _, text := range strings.Split(q.Get(rowsParam), ".") {
		if n, err := strconv.ParseInt(text, 36, 64); err == nil && n > 0 && len(ids) < rowsMost {
			ids = append(ids, ID(n))
		}
	}
	if len(ids) > 0 {
		newest = ids[0]
	}
	return ids, newest
}

// rowsMost bounds how many rows a stream reads again; no list shows more.
const rowsMost = 200

// stream keeps a page up to date. It sends the state, not the history: after a gap of any
// length one look brings the page up to date.
func (v *visit) stream() error {
	q := v.r.URL.Query()
	at := parsePosition(v.r.Header.Get("Last-Event-ID"), q.Get("at"))
	f := &feed{v: v, seen: map[string][sha256.Size]byte{}}
	var err error
	switch q.Get("page") {
	case "home":
		f.watch = v.watchHome()
	case "inbox":
		f.watch = v.watchInbox()
	case "sessions":
		f.watch = v.watchSessions(q)
	case "session":
		var stop func()
		f.watch, f.woken, stop, err = v.watchSession(q, at)
		if stop != nil {
			defer stop()
		}
	case "agents":
		f.watch = v.watchAgents(q.Get("after"))
	case "schedules":
		f.watch = v.watchSchedules(q)
	case "agent":
		f.watch = v.watchAgent(q.Get("agent"))
	case "tasks":
		f.watch = v.watchTasks(q)
	case "task":
		f.watch = v.watchTask(q.Get("task"))
	case "workers":
		f.watch = v.watchWorkers()
	case "worker":
		f.watch, err = v.watchWorker(q.Get("worker"))
	default:
		err = api.Refuse(api.CodeNotFound, "There is no such stream.")
	}
	if err != nil {
		return err
	}
	f.out, f.at = sse.Open(v.ResponseWriter), at
	if err := f.run(v.r.Context()); err != nil && !errors.Is(err, context.Canceled) {
		v.web.log.Debug("a stream ended", "path", v.r.URL.RequestURI(), "error", err)
	}
	return nil
}

// position is how far a reader is: the newest event and, on a session's page, the newest
// output.
type position struct{ seq, item int64 }

// parsePosition reads where a reader is, from the stream's last id or the page's address.
func parsePosition(texts ...string) position {
	for _, text := range texts {
		seq, item, _ := strings.Cut(text, ".")
		if n, err := strconv.ParseInt(seq, 10, 64); err == nil && n >= 0 {
			m, _ := strconv.ParseInt(item, 10, 64)
			return position{n, max(0, m)}
		}
	}
	return position{}
}

func (p position) String() string { return fmt.Sprintf("%d.%d", p.seq, p.item) }

// feed is one open stream. The request's goroutine owns it.
type feed struct {
	v      *visit
	out    *sse.Stream
	watch  watcher
	events *engine.Stream
	woken  func() (<-chan struct{}, func()) // what to wake for besides events; nil = nothing
	at     position
	seen   map[string][sha256.Size]byte
	first  bool
	pace   time.Duration // until the next look
}

// errNoRights ends a stream whose reader may no longer see it.
var errNoRights = errors.New("the reader's rights ended")

func (f *feed) run(ctx context.Context) error {
	if err := f.out.Beat(); err != nil {
		return err
	}
	caller, _, ok := f.v.web.callerOf(f.v.r)
	if !ok {
		return errNoRights
	}
	newest, err := f.v.web.engine.LastEvent(ctx)
	if err != nil {
		return err
	}
	f.events = f.v.web.engine.Follow(caller, newest) // before the first look
	defer f.events.Close()
	f.first = true
	beat := time.NewTimer(f.v.web.beat)
	defer beat.Stop()
	for {
		var output <-chan struct{}
		release := func() {}
		if f.woken != nil {
			output, release = f.woken()
		}
		sent, err := f.refresh(ctx)
		if err != nil {
			release()
			return err
		}
		if sent {
			beat.Reset(f.v.web.beat)
		}
		err = f.wait(ctx, output, beat)
		release()
		if err != nil {
			return err
		}
	}
}

// wait returns when there may be something new for the reader, at the earliest after the pace.
// What happens out of their sight can also change what they see, such as a slot that another
// user's run takes: each beat checks for that.
func (f *feed) wait(ctx context.Context, output <-chan struct{}, beat *time.Timer) error {
	pace := time.NewTimer(f.pace)
	defer pace.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-pace.C:
	}
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-f.events.Ready():
			if some, err := f.happened(ctx); some || err != nil {
				return err
			}
		case <-output:
			return nil
		case <-beat.C:
			beat.Reset(f.v.web.beat)
			return f.out.Beat()
		}
	}
}

// happened reports whether anything happened that the reader may see, and counts it as seen:
// the next look shows it.
func (f *feed) happened(ctx context.Context) (some bool, err error) {
	caller, _, ok := f.v.web.callerOf(f.v.r)
	if !ok {
		return false, errNoRights
	}
	for {
		b, err := f.events.Take(ctx, caller)
		if err != nil || b == nil {
			return some, err
		}
		some = true
	}
}

// refresh draws the page's parts and sends those that changed.
func (f *feed) refresh(ctx context.Context) (sent bool, err error) {
	caller, _, ok := f.v.web.callerOf(f.v.r)
	if !ok {
		return false, errNoRights
	}
	// A page that is slow to draw is drawn less often, so that streams leave most of the
	// machine to actual work.
	begun := f.v.web.engine.Now()
	defer func() {
		f.pace = max(f.v.web.pace, 8*f.v.web.engine.Now().Sub(begun))
	}()
	parts, now, err := f.watch(ctx, caller)
	if err != nil {
		return false, err
	}
	needs, err := f.v.web.engine.NeedsYou(ctx, caller)
	if err != nil {
		return false, err
	}
	parts = append(parts, part{target: "needs-count", draw: NeedsCount(needs)})
	if f.first && f.v.outdated() {
		parts = append(parts, part{target: "renewal", draw: Renewal(drawnBy), always: true})
	}
	// What was read after the reader's rights ended isn't theirs. If their rights changed they
	// reconnect, and the page is drawn again.
	if after, _, ok := f.v.web.callerOf(f.v.r); !ok || after.Role != caller.Role {
		return false, errNoRights
	}
	// The page already shows the state at its own event.
	quiet := f.first && now.seq == f.at.seq
	f.first, f.at = false, now
	var body bytes.Buffer
	for _, p := range parts {
		var html bytes.Buffer
		if err := p.draw.Render(ctx, &html); err != nil {
			return false, fmt.Errorf("draw %s: %w", p.target, err)
		}
		if !p.always {
			sum := sha256.Sum256(settled(html.Bytes()))
			known := f.seen[p.target] == sum
			f.seen[p.target] = sum
			if known || quiet {
				continue
			}
		}
		if html.Len() > 0 {
			writePart(&body, p, html.Bytes())
		}
	}
	if body.Len() == 0 {
		return false, nil
	}
	// One unnamed message, which the page swaps in.
	return true, f.out.Send(sse.AppendEvent(nil, f.at.String(), "", body.Bytes()))
}

func writePart(body *bytes.Buffer, p part, html []byte) {
	swap := p.swap
	if swap == "" {
		swap = "outerMorph"
	}
	fmt.Fprintf(body, `<hx-partial hx-target="#%s" hx-swap="%s">`, p.target, swap)
	body.Write(html)
	body.WriteString("</hx-partial>")
}

// ticking matches what changes with time alone: relative times, countdowns, rings.
var ticking = regexp.MustCompile(`(?s)(<relative-time[^>]*>)[^<]*|(data-since="\d+">)[^<]*|data-since="\d+"|data-until="\d+">[^<]*|stroke-dasharray="[^"]*"|<b>[^<]*</b>|x[12]="[^"]*"`)

// settled is HTML without what the page's own script keeps updating.
func settled(html []byte) []byte { return ticking.ReplaceAll(html, []byte("$1")) }
