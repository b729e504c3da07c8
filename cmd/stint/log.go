package main

import (
	"log/slog"
	"time"

	"github.com/lmittmann/tint"
)

// newLog is the log of a server or worker process, on stderr: for people on a terminal, JSON
// elsewhere, unless the environment says otherwise.
func (c *cli) newLog(quietest slog.Level) (*slog.Logger, error) {
	level := quietest
	if text := c.env("STINT_LOG_LEVEL"); text != "" {
		if err := level.UnmarshalText([]byte(text)); err != nil {
			return nil, usage("cannot log at the level "+text, "STINT_LOG_LEVEL is debug, info, warn or error", "STINT_LOG_LEVEL=info stint serve")
		}
	}
	text := c.talks
	switch format := c.env("STINT_LOG_FORMAT"); format {
	case "":
	case "text", "json":
		text = format == "text"
	default:
		return nil, usage("cannot log in the format "+format, "STINT_LOG_FORMAT is text or json", "STINT_LOG_FORMAT=json stint serve")
	}
	if text {
		return slog.New(tint.NewTextHandler(c.err, &tint.Options{Level: level, TimeFormat: time.TimeOnly, NoColor: !c.errLook.on})), nil
	}
	return slog.New(slog.NewJSONHandler(c.err, &slog.HandlerOptions{Level: level, ReplaceAttr: spellDuration})), nil
}

// spellDuration writes a length of time with its unit; JSON's default is a bare number of
// nanoseconds.
func spellDuration(_ []string, a slog.Attr) slog.Attr {
	if a.Value.Kind() == slog.KindDuration {
		a.Value = slog.StringValue(a.Value.Duration().String())
	}
	return a
}
