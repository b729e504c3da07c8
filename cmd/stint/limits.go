package main

import (
	"strconv"

	"stint/engine"
	"stint/server"
)

// limits are the coordinator's numbers that the environment can change.
type limits struct {
	engine *engine.Config
	held   server.Limits
}

// setLimit is a number that the environment can change.
type setLimit struct {
	name  string // of the variable
	least int64
	in    func(*limits) *int64
	unit  int64 // 0 = 1
}

// byDefault is the number that nothing changes.
func (l setLimit) byDefault() string {
	cfg := engine.DefaultConfig()
	return strconv.FormatInt(*l.in(&limits{engine: &cfg, held: server.DefaultLimits()})/max(l.unit, 1), 10)
}

// limitTable lists them all, as docs/configuration.md does.
var limitTable = []setLimit{
	{"STINT_RUN_DEPTH", 0, func(l *limits) *int64 { return &l.engine.RunDepth }, 0},
	{"STINT_RUN_STARTS", 0, func(l *limits) *int64 { return &l.engine.RunStarts }, 0},
	{"STINT_DATA_MIB", 0, func(l *limits) *int64 { return &l.engine.MaxData }, 1 << 20},
	{"STINT_SESSION_OUTPUT_MIB", 4, func(l *limits) *int64 { return &l.engine.MaxOutput }, 1 << 20},
	{"STINT_STREAMS_PERSON", 1, func(l *limits) *int64 { return &l.held.Streams.Person }, 0},
	{"STINT_STREAMS_ADDRESS", 1, func(l *limits) *int64 { return &l.held.Streams.Address }, 0},
	{"STINT_STREAMS_ALL", 1, func(l *limits) *int64 { return &l.held.Streams.All }, 0},
	{"STINT_WAITS_PERSON", 1, func(l *limits) *int64 { return &l.held.Waits.Person }, 0},
	{"STINT_WAITS_ADDRESS", 1, func(l *limits) *int64 { return &l.held.Waits.Address }, 0},
	{"STINT_WAITS_ALL", 1, func(l *limits) *int64 { return &l.held.Waits.All }, 0},
}

// limits reads which numbers the environment sets: those of sessions that agents start go into
// cfg, those of held requests are returned.
func (c *cli) limits(cfg *engine.Config) (server.Limits, error) {
	all := limits{engine: cfg, held: server.DefaultLimits()}
	for _, row := range limitTable {
		text := c.env(row.name)
		if text == "" {
			continue
		}
		n, err := strconv.ParseInt(text, 10, 32)
		if err != nil || n < row.least {
			from := strconv.FormatInt(row.least, 10)
			return all.held, usage("cannot start the server", row.name+" is a number from "+from+" on, not "+strconv.Quote(text), row.name+"=3 stint serve")
		}
		*row.in(&all) = n * max(row.unit, 1)
	}
	return all.held, nil
}
