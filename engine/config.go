package engine

import (
	"log/slog"
	"net/url"
	"time"

	"stint/api"
)

// Config holds the clocks and limits of the coordinator. Every clock can be set
// down to one second.
type Config struct {
	TickEvery      time.Duration // the scheduler's longest sleep
	AliveEvery     time.Duration // how often the coordinator records that it is alive
	OutageAfter    time.Duration // silence after which it counts as having been away
	Grace          time.Duration // what running work gets after an outage (contract 4.6)
	BeatEvery      time.Duration // what workers are asked for
	StaleAfter     time.Duration // a worker without a beat for this long is stale
	OfflineAfter   time.Duration // … and offline
	AffinityWait   time.Duration // how long a resumable session waits for its worker process
	MinLease       time.Duration
	MaxLease       time.Duration
	DefaultLease   time.Duration
	TaskLease      time.Duration // of a task, when nobody says
	MaxTaskLease   time.Duration
	OnTime         time.Duration // a slot this late is not missed
	AutoPauseAfter int64         // scheduled runs in a row that end in error
	MaxItemText    int           // bytes of one item's text
	MaxData        int64         // bytes that the database may take; 0 = no limit
	MaxOutput      int64         // bytes of one session's output that are kept
	KeyLife        time.Duration // of an Idempotency-Key
	RunDepth       int64         // how deep agents start each other
	RunStarts      int64         // sessions that an agent starts under one claim

	Observer Observer // who measures; nil = nobody

	// SessionEnded is told of each session after the commit that ended it, for [Engine.Life];
	// nil = nobody asks. Like an observer's methods it must be quick.
	SessionEnded func(api.SessionID)

	Backups   Backups
	Retention Retention

	GatherFor   time.Duration // that what channels tell waits for what happens with it; questions don't wait
	GatherEvery time.Duration // at least between two messages of a channel that aren't questions

	FreeBytes func() (int64, error) // on the disk of the data directory; nil = not looked at

	CheckWebhookURL func(*url.URL) error // why messages may not go there; nil = anywhere
	// CheckChannelURL says what may be shown of a channel's address, or why nothing may be told
	// there; nil = anywhere, and only the service is shown.
	CheckChannelURL func(address string) (target string, err error)

	Log *slog.Logger
}

// DefaultConfig returns the contract's defaults.
func DefaultConfig() Config {
	return Config{
		TickEvery:      30 * time.Second,
		AliveEvery:     5 * time.Second,
		OutageAfter:    15 * time.Second,
		Grace:          60 * time.Second,
		BeatEvery:      30 * time.Second,
		StaleAfter:     2 * time.Minute,
		OfflineAfter:   10 * time.Minute,
		AffinityWait:   5 * time.Minute,
		MinLease:       time.Minute,
		MaxLease:       4 * time.Hour,
		DefaultLease:   15 * time.Minute,
		TaskLease:      2 * time.Hour,
		MaxTaskLease:   24 * time.Hour,
		OnTime:         time.Minute,
		AutoPauseAfter: 5,
		MaxItemText:    64 << 10,
		MaxOutput:      64 << 20,
		KeyLife:        24 * time.Hour,
		RunDepth:       3,
		RunStarts:      20,
		GatherFor:      15 * time.Second,
		GatherEvery:    5 * time.Minute,
		Retention:      DefaultRetention(),
		Log:            slog.Default(),
	}
}
