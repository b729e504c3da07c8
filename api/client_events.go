package api

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"

	"github.com/go-json-experiment/json"
)

// ErrReset says that events after the requested one are no longer kept: read the current
// state, then follow from now.
var ErrReset = errors.New("the coordinator no longer keeps the events after the one asked for")

const (
	streamSilence = 45 * time.Second // three missed comments of a live stream
	eventLimit    = 8 << 20          // bytes of one event
)

// Events lists up to limit events with a sequence number above after, ascending.
func (c *Client) Events(ctx context.Context, after int64, limit int) (List[Event], error) {
	q := Page{Limit: limit}.query()
	q.Set("after", strconv.FormatInt(after, 10))
	return get[List[Event]](ctx, c, "events", q)
}

// Follow calls each for every event after the given sequence number, as they happen; a
// negative number means from now on, and now is when opened is called, which may be nil. It
// returns when ctx ends, when each returns an error, or when the stream breaks, which is an
// [*Unanswered]: follow again from the last event seen. [ErrReset] means that there is a gap.
func (c *Client) Follow(ctx context.Context, after int64, opened func(), each func(Event) error) error {
	return c.follow(ctx, after, streamSilence, opened, each)
}

func (c *Client) follow(ctx context.Context, after int64, silence time.Duration, opened func(), each func(Event) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	k := call{method: http.MethodGet, path: "events", header: http.Header{"Accept": {"text/event-stream"}}}
	if after >= 0 {
		k.header.Set("Last-Event-ID", strconv.FormatInt(after, 10))
	}
	req, err := c.request(ctx, k)
	if err != nil {
		return err
	}
	op := k.method + " " + req.URL.Path
	quiet := time.AfterFunc(silence, func() { cancel(fmt.Errorf("nothing came for %v", silence)) })
	defer quiet.Stop()
	resp, err := c.http.Do(req)
	if err != nil {
		return &Unanswered{Op: op, Err: broken(ctx, withoutURL(err))}
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusOK {
		b, _ := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
		return refusal(op, resp, b)
	}
	if opened != nil {
		opened()
	}
	lines := bufio.NewScanner(resp.Body)
	lines.Buffer(make([]byte, 0, 64<<10), eventLimit)
	var kind string
	var data []byte
	for lines.Scan() {
		quiet.Reset(silence)
		line := lines.Bytes()
		name, value, _ := bytes.Cut(line, []byte(":"))
		value = bytes.TrimPrefix(value, []byte(" "))
		switch {
		case len(line) == 0:
			if err := dispatch(op, kind, data, each); err != nil {
				return err
			}
			kind, data = "", nil
		case string(name) == "event":
			kind = string(value)
		case string(name) == "data":
			if data != nil {
				data = append(data, '\n')
			}
			data = append(data, value...)
		}
	}
	err = lines.Err()
	if err == nil {
		err = io.ErrUnexpectedEOF
	}
	return &Unanswered{Op: op, Status: resp.StatusCode, Err: broken(ctx, err)}
}

// broken prefers the reason why the stream's context ended to the read error.
func broken(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	return err
}

func dispatch(op, kind string, data []byte, each func(Event) error) error {
	if kind == "reset" {
		return ErrReset
	}
	if data == nil {
		return nil
	}
	var e Event
	if err := json.Unmarshal(data, &e); err != nil {
		return &Unanswered{Op: op, Status: http.StatusOK, Err: fmt.Errorf("an event is not a coordinator's: %w", err)}
	}
	return each(e)
}
