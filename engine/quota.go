package engine

import (
	"context"
	"fmt"
	"sync/atomic"

	"stint/api"
)

// quota is how much the database takes, of what it may.
type quota struct {
	used   atomic.Int64 // bytes, as measured last
	warned atomic.Int32 // how bad it was at the last warning in the log
}

// What people are shown about the database's size.
const (
	spaceFine = iota
	spaceLow  // nine tenths of what it may take
	spaceUsed // all of it
)

// measure checks how large the database is, and says in the log when that is nearly, or all,
// that it may be.
func (e *Engine) measure(ctx context.Context) error {
	if e.cfg.MaxData == 0 {
		return nil
	}
	used, err := e.store.Size(ctx)
	if err != nil {
		return err
	}
	e.quota.used.Store(used)
	now := e.space()
	if was := int(e.quota.warned.Swap(int32(now))); now > was {
		e.log.Warn(e.Low(), "used", used, "most", e.cfg.MaxData)
	}
	return nil
}

func (e *Engine) space() int {
	switch used, most := e.quota.used.Load(), e.cfg.MaxData; {
	case most == 0 || used < most/10*9:
		return spaceFine
	case used < most:
		return spaceLow
	default:
		return spaceUsed
	}
}

// Low says, when the database takes nearly or all that it may, how much that is and what to
// do; else it is "".
func (e *Engine) Low() string {
	if e.space() == spaceFine {
		return ""
	}
	what := "New sessions are refused once it is full."
	if e.space() == spaceUsed {
		what = "New sessions are refused; what runs goes on and its results are kept."
	}
	return fmt.Sprintf("The database has %s of the %s that STINT_DATA_MIB lets it take. %s Raise the setting and start Stint again.",
		sizeWords(e.quota.used.Load()), sizeWords(e.cfg.MaxData), what)
}

// fits refuses a new session when the database takes all the space that it may.
func (e *Engine) fits() error {
	if e.space() != spaceUsed {
		return nil
	}
	return &api.Error{Code: api.CodeUnavailable, Detail: e.Low(), RetryIn: 600}
}
