package main

import (
	"context"
	"time"

	"stint/api"
	"stint/server/traces"
)

// tracesWithin is what the end of the process waits for a collector.
const tracesWithin = 3 * time.Second

// makeTraces makes what tells a collector of sessions, if OpenTelemetry's variables name one.
// They are often set for everything on a machine: what can't be done as they say is a warning,
// and the server runs without traces.
func (c *cli) makeTraces(ctx context.Context, k *coordinator) {
	s, err := traces.FromEnv(c.env)
	if err == nil && s != nil {
		k.traces, err = traces.New(ctx, *s, builtFrom().Version, k.log)
	}
	if err != nil {
		k.log.Warn("no traces are sent", "error", api.Plain(err))
	}
}
