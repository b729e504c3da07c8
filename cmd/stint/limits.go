package main

import (
	"strconv"

	"stint/engine"
)

// runLimits reads what the environment says of sessions that agents start.
func (c *cli) runLimits(cfg *engine.Config) error {
	for name, limit := range map[string]*int64{"STINT_RUN_DEPTH": &cfg.RunDepth, "STINT_RUN_STARTS": &cfg.RunStarts} {
		text := c.env(name)
		if text == "" {
			continue
		}
		n, err := strconv.ParseInt(text, 10, 32)
		if err != nil || n < 0 {
			return usage("cannot start the server", name+" is a number from 0 on, not "+strconv.Quote(text), name+"=3 stint serve")
		}
		*limit = n
	}
	return nil
}
