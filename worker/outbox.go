package worker

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"stint/api"
	"stint/worker/proc"
)

// The kinds of outbox entries. The last three finish a claim; at most one of them is ever
// added for a claim.
const (
	entryItem     = "item"
	entryActivity = "activity"
	entryPatch    = "patch" // of the session: plan, usage, agent session, the end of a turn
	entryChanges  = "changes"
	entryComplete = "complete"
	entryFail     = "fail"
	entryRelease  = "release"
)

func finishes(kind string) bool {
	return kind == entryComplete || kind == entryFail || kind == entryRelease
}

// entry is one thing to report. Its body has neither claim nor instance id: those may change
// before it is accepted.
type entry struct {
	seq  int64
	kind string
	body []byte
}

func newEntry(kind string, body any) (entry, error) {
	b, err := json.Marshal(body, jsontext.AllowInvalidUTF8(true))
	if err != nil {
		return entry{}, fmt.Errorf("encode an outbox entry: %w", err)
	}
	return entry{kind: kind, body: b}, nil
}

const (
	batchBytes = 640 << 10 // encoded, so that a request stays under the coordinator's 1 MiB
	batchLines = 200
)

// outbox is what is still to be reported of one claim, in order. It is on disk before it is
// sent. contract 10.8
type outbox struct {
	state  *state
	heldID int64
	most   int64 // bytes on disk at which output has to wait

	mu       sync.Mutex
	bytes    int64         // on disk; guarded by mu
	since    proc.BootTime // when what waits now began to, or something was answered last; guarded by mu
	done     bool          // the finishing entry is in; guarded by mu
	discard  bool          // nothing can be reported any more; guarded by mu
	added    chan struct{} // one token: the sender should look
	shrunk   chan struct{} // closed and replaced when room was made; guarded by mu
	sentUpTo int64         // entries that were answered; guarded by mu
	secrets  [][]byte      // kept out of every text that is added; guarded by mu
}

// hide keeps more secrets out of what is added from now on.
func (o *outbox) hide(secrets [][]byte) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.secrets = slices.Concat(o.secrets, secrets)
}

// newOutbox takes up what the file holds for the claim.
func newOutbox(s *state, heldID, most int64) (*outbox, error) {
	o := &outbox{state: s, heldID: heldID, most: most, since: proc.BootNow(), added: make(chan struct{}, 1), shrunk: make(chan struct{})}
	var finished int
	err := s.db.QueryRowContext(durable(),
		"SELECT coalesce(sum(octet_length(body)), 0), coalesce(sum(kind IN ('complete', 'fail', 'release')), 0) FROM outbox WHERE held_id = ?1", heldID,
	).Scan(&o.bytes, &finished)
	if err != nil {
		return nil, fmt.Errorf("read the outbox: %w", err)
	}
	o.done = finished > 0
	o.wake()
	return o, nil
}

func (o *outbox) wake() {
	select {
	case o.added <- struct{}{}:
	default: // a look is already due
	}
}

// room waits until output may be added. It returns at once when ctx has ended: then the agent
// is being ended and little more can come.
func (o *outbox) room(ctx context.Context) {
	for {
		o.mu.Lock()
		full, shrunk := o.bytes >= o.most && !o.discard, o.shrunk
		o.mu.Unlock()
		if !full {
			return
		}
		select {
		case <-shrunk:
		case <-ctx.Done():
			return
		}
	}
}

// add appends entries, durable when it returns nil.
func (o *outbox) add(entries ...entry) error {
	return o.insert(entries, nil)
}

// finish appends the entry that finishes the claim and notes in the same step
// that the claim's processes are gone.
func (o *outbox) finish(e entry) error {
	return o.insert([]entry{e}, func(tx *sql.Tx) error {
		_, err := tx.ExecContext(durable(), "UPDATE held SET ended = 1 WHERE id = ?1", o.heldID)
		return err
	})
}

// turnEnds appends a turn's end and notes in the same step what the agent said last.
func (o *outbox) turnEnds(e entry, said string) error {
	return o.insert([]entry{e}, func(tx *sql.Tx) error {
		_, err := tx.ExecContext(durable(), "UPDATE held SET said = ?2 WHERE id = ?1", o.heldID, said)
		return err
	})
}

func (o *outbox) insert(entries []entry, also func(*sql.Tx) error) error {
	o.mu.Lock()
	gone, acked, secrets := o.discard || o.done, o.sentUpTo, o.secrets
	o.mu.Unlock()
	if gone {
		return nil
	}
	entries, err := masked(entries, secrets)
	if err != nil {
		return err
	}
	var bytes int64
	err = o.state.tx("put into the outbox", func(tx *sql.Tx) error {
		// What was answered is deleted with the next entries, so that it costs no sync of its
		// own.
		if _, err := tx.ExecContext(durable(), "DELETE FROM outbox WHERE held_id = ?1 AND seq <= ?2", o.heldID, acked); err != nil {
			return err
		}
		for _, e := range entries {
			if _, err := tx.ExecContext(durable(), "INSERT INTO outbox (held_id, kind, body) VALUES (?1, ?2, ?3)", o.heldID, e.kind, string(e.body)); err != nil {
				return err
			}
			bytes += int64(len(e.body))
		}
		if also == nil {
			return nil
		}
		return also(tx)
	})
	if err != nil {
		return err
	}
	o.mu.Lock()
	if o.bytes == 0 {
		o.since = proc.BootNow()
	}
	o.bytes += bytes
	o.done = o.done || finishes(entries[len(entries)-1].kind)
	o.mu.Unlock()
	o.wake()
	return nil
}

// empty waits until everything was answered, or ctx ends.
func (o *outbox) empty(ctx context.Context) {
	for {
		o.mu.Lock()
		left, shrunk := o.bytes > 0 && !o.discard, o.shrunk
		o.mu.Unlock()
		if !left {
			return
		}
		select {
		case <-shrunk:
		case <-ctx.Done():
			return
		}
	}
}

// unsent counts what waits, and says for how long nothing of it was taken.
func (o *outbox) unsent(now proc.BootTime) (reports int64, stuck time.Duration, err error) {
	o.mu.Lock()
	after, since, none := o.sentUpTo, o.since, o.discard || o.bytes == 0
	o.mu.Unlock()
	if none {
		return 0, 0, nil
	}
	err = o.state.db.QueryRowContext(durable(), "SELECT count(*) FROM outbox WHERE held_id = ?1 AND seq > ?2", o.heldID, after).Scan(&reports)
	if err != nil {
		return 0, 0, fmt.Errorf("count the outbox: %w", err)
	}
	return reports, max(now.Sub(since), 0), nil
}

// finished reports whether the finishing entry is in.
func (o *outbox) finished() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.done
}

// next returns the entries to send next: some items, or one of another kind. It is empty when
// everything was answered.
func (o *outbox) next() ([]entry, error) {
	o.mu.Lock()
	after, discard := o.sentUpTo, o.discard
	o.mu.Unlock()
	if discard {
		return nil, nil
	}
	rows, err := o.state.db.QueryContext(durable(),
		"SELECT seq, kind, body FROM outbox WHERE held_id = ?1 AND seq > ?2 ORDER BY seq LIMIT ?3", o.heldID, after, batchLines)
	if err != nil {
		return nil, fmt.Errorf("read the outbox: %w", err)
	}
	defer func() { _ = rows.Close() }()
	var out []entry
	size := 0
	for rows.Next() {
		var e entry
		if err := rows.Scan(&e.seq, &e.kind, &e.body); err != nil {
			return nil, fmt.Errorf("read the outbox: %w", err)
		}
		size += len(e.body) + 1
		if len(out) > 0 && (e.kind != entryItem || size > batchBytes) {
			break
		}
		out = append(out, e)
		if e.kind != entryItem {
			break
		}
	}
	return out, rows.Err()
}

// answered notes that entries were accepted or refused for good. They leave the
// file with the next entries or with the claim: sending them again would do no harm.
func (o *outbox) answered(sent []entry) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, e := range sent {
		o.bytes -= int64(len(e.body))
	}
	o.sentUpTo, o.since = max(o.sentUpTo, sent[len(sent)-1].seq), proc.BootNow()
	close(o.shrunk)
	o.shrunk = make(chan struct{})
}

// finishing returns the entry that finishes the claim.
func (o *outbox) finishing() (entry, error) {
	var e entry
	err := o.state.db.QueryRowContext(durable(),
		"SELECT seq, kind, body FROM outbox WHERE held_id = ?1 AND kind IN ('complete', 'fail', 'release')", o.heldID,
	).Scan(&e.seq, &e.kind, &e.body)
	if err != nil {
		return entry{}, fmt.Errorf("read the result in the outbox: %w", err)
	}
	return e, nil
}

// skipTo gives up everything up to e.
func (o *outbox) skipTo(e entry) { o.answered([]entry{e}) }

// drop lets nothing more in: the claim is gone and nothing can be reported for it.
func (o *outbox) drop() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.discard = true
	close(o.shrunk)
	o.shrunk = make(chan struct{})
}

// under composes the proof of the claim that entries are sent with.
func under(claim api.ClaimID, instance string) api.UnderClaim {
	return api.UnderClaim{ClaimID: claim, InstanceID: instance}
}

// decode reads an entry's body back.
func decode[T any](e entry) (T, error) {
	var out T
	if err := json.Unmarshal(e.body, &out); err != nil {
		return out, fmt.Errorf("read an outbox entry of kind %s: %w", e.kind, err)
	}
	return out, nil
}
