package db

import (
	"context"
	"fmt"
	"time"

	"stint/queries"
)

// counter is a row of the counters table while a transaction is open.
type counter struct {
	name   string
	loaded bool
	stored int64 // what the row says
	value  int64 // what it has to hold at COMMIT
}

func (c *counter) load(q *queries.Queries) error {
	value, err := q.Counter(context.Background(), c.name)
	if err != nil {
		return fmt.Errorf("read counter %s: %w", c.name, err)
	}
	c.loaded, c.stored, c.value = true, value, value
	return nil
}

func (c *counter) store(q *queries.Queries) error {
	if !c.loaded || c.value == c.stored {
		return nil
	}
	rows, err := q.SetCounter(context.Background(), queries.SetCounterParams{Name: c.name, Value: c.value})
	if err != nil {
		return fmt.Errorf("store counter %s: %w", c.name, err)
	}
	if rows != 1 {
		return fmt.Errorf("store counter %s: %d rows changed, not 1", c.name, rows)
	}
	return nil
}

const (
	idTimeBits = 32
	idLowBits  = 18
)

// idEpoch is 2024-01-01T00:00:00Z in Unix seconds.
const idEpoch = 1704067200

// FirstID returns the smallest id that anything made at now or later can have.
func FirstID(now time.Time) int64 { return idFloor(now) }

// MadeAt is when an id was made, to the second.
func MadeAt(id int64) time.Time { return time.Unix(id>>idLowBits+idEpoch, 0).UTC() }

// idFloor returns the smallest id of the second of now, or 0 when the clock is outside the 136
// years that fit. Seconds, not milliseconds, keep an id within six bytes of the store until
// 2041; a busy second borrows from the next.
func idFloor(now time.Time) int64 {
	s := now.Unix() - idEpoch
	if s < 0 || s >= 1<<idTimeBits {
		return 0
	}
	return s << idLowBits
}
