package worker

import (
	"cmp"
	"crypto/rand"
	"fmt"
	"slices"
	"sync"
	"time"

	"stint/api"
	"stint/worker/proc"
)

const (
	itemBytes  = 64 << 10  // of one item's text, the coordinator's limit
	flushBytes = 128 << 10 // gathered text that is written without waiting for more
	flushAfter = 100 * time.Millisecond
)

// output makes text items of what a command prints: masked, valid, the streams
// kept apart and in order, small pieces put together. What it holds in memory is
// bounded; when the outbox is full it waits, and the command with it.
type output struct {
	s      *session
	prefix string // of the items' client ids: no other run of the session has it

	flushing sync.Mutex // held from taking parts until they are in the outbox

	mu      sync.Mutex
	streams map[proc.Stream]*stream
	parts   []part // guarded by mu
	size    int    // bytes in parts; guarded by mu
	count   int    // items made; guarded by mu
	timer   *time.Timer
	awake   *proc.Awake   // ticked by whoever asks for the silence
	last    time.Duration // when the command last printed, by awake; guarded by mu
	holding bool          // the command waits for us; guarded by mu
}

// stream is the state of one of the two outputs.
type stream struct {
	mask masker
	text texts
	tail tail
}

// part is a piece of one stream that is not in the outbox yet.
type part struct {
	stream proc.Stream
	text   string
	at     time.Time
}

func newOutput(s *session, secrets [][]byte) *output {
	o := &output{s: s, prefix: rand.Text()[:10], awake: proc.NewAwake(s.p.clocks.Look), streams: map[proc.Stream]*stream{}}
	for _, name := range []proc.Stream{proc.Stdout, proc.Stderr} {
		o.streams[name] = &stream{mask: masker{secrets: secrets}, tail: tail{most: maxResult}}
	}
	return o
}

// hide masks more secrets in what comes from now on.
func (o *output) hide(secrets [][]byte) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, st := range o.streams {
		st.mask.secrets = longestFirst(slices.Concat(st.mask.secrets, secrets))
	}
}

// sink takes a chunk from the command. While it works the command's next output waits.
func (o *output) sink(c proc.Chunk) {
	_ = o.s.claimContext.check() // after sleep the lease comes before the output
	o.mu.Lock()
	o.last, o.holding = o.awake.Now(), true
	st := o.streams[c.Stream]
	o.append(c.Stream, st, st.text.write(st.mask.write(c.Data)))
	full := o.size >= flushBytes
	if !full && len(o.parts) > 0 && o.timer == nil {
		o.timer = time.AfterFunc(flushAfter, o.flush)
	}
	o.mu.Unlock()
	if full {
		o.flush()
	}
	o.mu.Lock()
	o.last, o.holding = o.awake.Now(), false
	o.mu.Unlock()
}

// append adds text to the part that is open, or opens another. The caller holds mu.
func (o *output) append(name proc.Stream, st *stream, text string) {
	if text == "" {
		return
	}
	st.tail.add(text)
	o.size += len(text)
	if n := len(o.parts); n > 0 && o.parts[n-1].stream == name {
		o.parts[n-1].text += text
		return
	}
	o.parts = append(o.parts, part{name, text, time.Now()})
}

// flush puts what was gathered into the outbox, when there is room.
func (o *output) flush() {
	o.flushing.Lock()
	defer o.flushing.Unlock()
	o.s.out.room(o.s.claimContext.ctx)
	entries, err := o.items()
	if err != nil {
		o.s.log.Error("output can't be encoded", "error", err)
		return
	}
	if len(entries) > 0 {
		o.store(entries)
	}
}

// items takes the parts and makes entries of them.
func (o *output) items() ([]entry, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.timer != nil {
		o.timer.Stop()
		o.timer = nil
	}
	var out []entry
	for _, p := range o.parts {
		for _, text := range cut(p.text, itemBytes) {
			o.count++
			e, err := newEntry(entryItem, api.ItemInput{
				ClientID: fmt.Sprintf("%s-%d", o.prefix, o.count), Kind: api.ItemText,
				Stream: string(p.stream), Text: text, At: api.Time{Time: p.at},
			})
			if err != nil {
				return nil, err
			}
			out = append(out, e)
		}
	}
	o.parts, o.size = nil, 0
	return out, nil
}

// store waits for space on a full disk as long as the command may run; what the command prints
// while it is being ended may then be lost.
func (o *output) store(entries []entry) {
	var wait backoff
	for {
		err := o.s.out.add(entries...)
		if err == nil {
			o.s.at("output stored")
			return
		}
		o.s.log.Error("output can't be stored", "error", err)
		if !sleep(o.s.claimContext.ctx, wait.next(0), nil) {
			return
		}
	}
}

// close puts the rest into the outbox: the command is gone.
func (o *output) close() {
	o.mu.Lock()
	for _, name := range []proc.Stream{proc.Stdout, proc.Stderr} {
		st := o.streams[name]
		o.append(name, st, st.text.write(st.mask.rest())+st.text.rest())
	}
	o.mu.Unlock()
	o.flush()
}

// silence is how long the command has printed nothing, counted only while we were awake and
// ready to take output. contract 10.11
func (o *output) silence() time.Duration {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.holding {
		return 0
	}
	return o.awake.Now() - o.last
}

// end returns the last lines of a stream, at most its tail's size.
func (o *output) end(name proc.Stream) string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.streams[name].tail.String()
}

// status appends a line about the session that the command didn't print.
func (s *session) status(line string) {
	s.report(entryItem, api.ItemInput{
		ClientID: "status-" + rand.Text()[:16], Kind: api.ItemStatus, Text: line, At: api.Time{Time: time.Now()},
	})
}

// startNotes says what the program is started with, each sentence once however often it is started.
func (s *session) startNotes(sentences []string) {
	for _, sentence := range sentences {
		if !slices.Contains(s.noted, sentence) {
			s.noted = append(s.noted, sentence)
			s.status(sentence)
		}
	}
}

// activity appends a coarse progress or audit entry.
func (s *session) activity(kind api.ActivityType, line string) {
	s.report(entryActivity, api.ActivityInput{Key: rand.Text()[:16], Type: kind, Text: cut(line, maxMessage)[0]})
}

// marked appends an entry that says why the session is no plain success. Unlike other entries
// it is never dropped: without it the session would look as if all had gone well. The same key
// twice is one entry; "" is one of its own.
func (s *session) marked(m api.Mark, kind api.ActivityType, key, line string) {
	e, err := newEntry(entryActivity, api.ActivityInput{Key: cmp.Or(key, rand.Text()[:16]), Type: kind, Text: cut(line, maxMessage)[0], Mark: m})
	if err != nil {
		s.log.Error("a mark can't be encoded", "error", err)
		return
	}
	s.persist("keep a mark of the session", func() error { return s.out.add(e) })
}

// report adds what can be dropped when the disk is full.
func (s *session) report(kind string, body any) {
	e, err := newEntry(kind, body)
	if err == nil {
		err = s.out.add(e)
	}
	if err != nil {
		s.log.Error("an entry for the session is lost", "kind", kind, "error", err)
	}
}
