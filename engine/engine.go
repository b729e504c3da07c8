// Package engine owns every rule of Stint: who may run what, when a session may
// be claimed, what a lapse does, which slot fires. Each exported verb is one
// transaction of the store; each status change goes through move and leaves an
// event in the same transaction.
//
// It knows neither HTTP nor pages, and it runs no agent: server, web and cmd
// call its verbs, and workers reach it only over HTTP.
package engine

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"sync"
	"sync/atomic"
	"time"

	"stint/api"
	"stint/db"
	"stint/queries"
	"stint/scheduler"
)

// Config holds the clocks and limits of the coordinator. Every clock can be set
// down to one second.
type Config struct {
	TickEvery      time.Duration // the scheduler's longest sleep
	AliveEvery     time.Duration // how often the coordinator writes down that it lives
	OutageAfter    time.Duration // silence after which it counts as having been away
	Grace          time.Duration // what running work gets after an outage (contract 4.6)
	BeatEvery      time.Duration // what workers are told
	StaleAfter     time.Duration // a worker without a beat for so long is stale
	OfflineAfter   time.Duration // … and offline
	AffinityWait   time.Duration // how long a resumable session waits for its worker process
	MinLease       time.Duration
	MaxLease       time.Duration
	DefaultLease   time.Duration
	OnTime         time.Duration // a slot this late is not missed
	AutoPauseAfter int64         // scheduled runs in a row that end in error
	MaxItemText    int           // bytes of one item's text
	KeyLife        time.Duration // of an Idempotency-Key
	AccessLife     time.Duration // of a signed-in program's access token
	RunDepth       int64         // how deep agents start each other
	RunStarts      int64         // sessions that an agent starts under one claim

	ViewerDomains []string // of verified e-mail addresses whose holders become viewers through the provider

	CheckWebhookURL func(*url.URL) error // why messages may not go there; nil = anywhere

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
		OnTime:         time.Minute,
		AutoPauseAfter: 5,
		MaxItemText:    64 << 10,
		KeyLife:        24 * time.Hour,
		AccessLife:     15 * time.Minute,
		RunDepth:       3,
		RunStarts:      20,
		Log:            slog.Default(),
	}
}

// Engine is the coordinator's rules over one store. Its methods may be called
// from any goroutine.
type Engine struct {
	store *db.Store
	cfg   Config
	log   *slog.Logger

	pulse  pulse // touched only by closures and after their commits, which never overlap
	events signal
	items  itemSignals
	seats  seats // held claim-next requests

	deliverable signal // a webhook's message waits
	hashers     *hashers
	epoch       atomic.Uint64 // counts what took rights away

	cron, lapse, admit, deadlines *scheduler.Loop

	replan     atomic.Bool  // next slots must be derived again
	duplicates atomic.Int64 // slots that another tick had fired already
}

// New makes an engine over an open store.
func New(store *db.Store, cfg Config) *Engine {
	if cfg.Log == nil {
		cfg.Log = slog.Default()
	}
	if cfg.CheckWebhookURL == nil {
		cfg.CheckWebhookURL = func(*url.URL) error { return nil }
	}
	e := &Engine{store: store, cfg: cfg, log: cfg.Log, hashers: newHashers()}
	e.replan.Store(true)
	e.cron = &scheduler.Loop{Name: "cron", Every: cfg.TickEvery, Do: e.Tick, Log: cfg.Log}
	// Half the shortest lease, so that the loop sees each claim before it can
	// lapse and need not be woken by every one.
	e.lapse = &scheduler.Loop{Name: "lapse", Every: min(cfg.TickEvery, cfg.MinLease/2), Do: e.Lapse, Log: cfg.Log}
	e.admit = &scheduler.Loop{Name: "admit", Every: cfg.TickEvery, Do: e.Admit, Log: cfg.Log}
	e.deadlines = &scheduler.Loop{Name: "deadlines", Every: cfg.TickEvery, Do: e.Deadlines, Log: cfg.Log}
	return e
}

// Config returns the clocks and limits in force.
func (e *Engine) Config() Config { return e.cfg }

// Now is the coordinator's clock, the only one that counts.
func (e *Engine) Now() time.Time { return e.store.Now() }

// Run turns the timer loops until ctx ends, and waits for them.
func (e *Engine) Run(ctx context.Context) error {
	if err := e.Alive(ctx); err != nil && ctx.Err() == nil {
		return err
	}
	loops := []*scheduler.Loop{
		{Name: "alive", Every: e.cfg.AliveEvery, Do: func(ctx context.Context) (time.Time, error) {
			return time.Time{}, e.Alive(ctx)
		}, Log: e.log},
		e.cron, e.lapse, e.admit, e.deadlines,
		{Name: "keys", Every: time.Hour, Do: e.dropKeys, Log: e.log},
		{Name: "deliveries", Every: time.Hour, Do: e.dropDeliveries, Log: e.log},
		{Name: "tries", Every: time.Hour, Do: e.dropTries, Log: e.log},
		{Name: "programs", Every: time.Hour, Do: e.dropPrograms, Log: e.log},
	}
	var wg sync.WaitGroup
	for _, l := range loops {
		wg.Go(func() { l.Run(ctx) })
	}
	wg.Wait()
	return nil
}

// write runs fn in the store's write path, after settling an outage that the
// clock shows, so that no verb can mistake the coordinator's absence for a
// worker's silence (contract 4.6).
func (e *Engine) write(ctx context.Context, fn func(tx *db.Tx) error) error {
	return refused(e.store.Write(ctx, func(tx *db.Tx) error {
		if err := e.settle(tx); err != nil {
			return fmt.Errorf("settle an outage: %w", err)
		}
		return fn(tx)
	}))
}

// Ready reports whether requests are served: the store can be read, and the last
// write was taken. Errors: unavailable while writes are refused, as on a full
// disk, until one is taken again, which is tried every few seconds (contract 13);
// outcome_unknown once the disk has failed, until the process starts again.
func (e *Engine) Ready(ctx context.Context) error {
	if err := e.store.Writable(); err != nil {
		return refused(err)
	}
	_, err := e.LastEvent(ctx)
	return err
}

// writeAs is write for a caller: the events of fn tell where the call came from.
func (e *Engine) writeAs(ctx context.Context, c Caller, fn func(tx *db.Tx) error) error {
	return e.write(ctx, func(tx *db.Tx) error {
		tx.From, tx.Via = c.From, c.Via
		return fn(tx)
	})
}

// refused puts into the product's words the states of the store that a caller
// can act on (contract 13, 14); the store's own error stays in the chain.
func refused(err error) error {
	switch {
	case errors.Is(err, db.ErrOutcomeUnknown):
		return errors.Join(api.Refuse(api.CodeOutcomeUnknown, "The disk failed while this was being written: it may or may not be kept. Ask again, and look before you repeat it."), err)
	case errors.Is(err, db.ErrFull), errors.Is(err, db.ErrReadOnly), errors.Is(err, db.ErrClosed):
		return errors.Join(&api.Error{Code: api.CodeUnavailable, Detail: "The store can't take writes now; nothing was changed.", RetryIn: 5}, err)
	}
	return err
}

// wctx is the context of statements inside a write: the store runs closures to
// their end whatever happens to the caller (design: a cancelled INSERT would
// take the whole batch with it).
func wctx() context.Context { return context.Background() }

func micros(t time.Time) int64 { return t.UnixMicro() }

func seconds(n int64) int64 { return n * 1_000_000 }

func span(d time.Duration) int64 { return d.Microseconds() }

// errGuard says that a guarded statement changed no row though the row had just
// been read in the same transaction: another process moved it in between.
var errGuard = errors.New("the row was changed meanwhile")

// one turns the row count of a guarded statement into a conflict.
func one(n int64, err error) error {
	if err != nil {
		return err
	}
	if n != 1 {
		return errGuard
	}
	return nil
}

func flag(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

// none reports whether a query found no row.
func none(err error) bool { return errors.Is(err, sql.ErrNoRows) }

func notFound(what string) *api.Error {
	return api.Refuse(api.CodeNotFound, "There is no such "+what+" here.")
}

// load reads one row; a missing one is answered as 404 about what.
func load[T any](row T, err error, what string) (T, error) {
	if none(err) {
		return row, notFound(what)
	}
	return row, err
}

type (
	sessionRow = queries.Session
	agentRow   = queries.Agent
	workerRow  = queries.Worker
	claimRow   = queries.Claim
)
