// Package engine owns every rule of Stint: who may run what, when a session may be claimed,
// what a lapse does, which slot fires. Each exported verb is one transaction of the store;
// each status change goes through move and leaves an event in the same transaction.
//
// It knows neither HTTP nor pages, and it runs no agent: server, web and cmd call its verbs,
// and workers reach it only over HTTP.
package engine

import (
	"context"
	"errors"
	"log/slog"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"stint/account"
	"stint/api"
	"stint/db"
	"stint/queries"
	"stint/scheduler"
)

// Engine is the coordinator's rules over one store. Its methods may be called
// from any goroutine.
type Engine struct {
	store *db.Store
	cfg   Config
	log   *slog.Logger

	liveness liveness // touched only by closures and after their commits, which never overlap
	items    itemSignals
	messages itemSignals // to the agents of sessions
	waiters  waiters     // held requests of workers
	hub      hub         // of the live streams

	quota quota
	pages pageWatch

	backupFailed atomic.Pointer[queries.Backup] // the last failure, until a backup succeeds

	upSince atomic.Int64 // since when the coordinator has been there without a break

	fencesFrom atomic.Pointer[int64] // an id of the last restore, 0 before the first; nil = not read yet

	pruneMu sync.Mutex // one step of retention at a time
	pruning pruning    // the loop's round

	deliverable db.Signal // a webhook's message waits

	cron, lapse, admit, unclaimed, lift, deadlines, watch *scheduler.Loop

	replan     atomic.Bool  // next slots must be derived again
	duplicates atomic.Int64 // slots that another tick had already fired
}

// New makes an engine over an open store.
func New(store *db.Store, cfg Config) *Engine {
	if cfg.Log == nil {
		cfg.Log = slog.Default()
	}
	if cfg.CheckWebhookURL == nil {
		cfg.CheckWebhookURL = func(*url.URL) error { return nil }
	}
	if cfg.CheckChannelURL == nil {
		cfg.CheckChannelURL = func(address string) (string, error) {
			scheme, _, _ := strings.Cut(address, ":")
			return scheme + "://…", nil
		}
	}
	e := &Engine{store: store, cfg: cfg, log: cfg.Log}
	e.replan.Store(true)
	e.upSince.Store(db.Micros(store.Now()))
	e.cron = e.loop("cron", cfg.TickEvery, e.Tick)
	// Half the shortest lease or silence, so that the loop sees each claim and worker before
	// it can lapse and need not be woken by every one.
	e.lapse = e.loop("lapse", min(cfg.TickEvery, cfg.MinLease/2, cfg.StaleAfter/2, cfg.OfflineAfter/2), e.Lapse)
	e.admit = e.loop("admit", cfg.TickEvery, e.Admit)
	e.unclaimed = e.loop("unclaimed", cfg.TickEvery, e.EndUnclaimed)
	e.lift = e.loop("lift", cfg.TickEvery, e.Lift)
	e.deadlines = e.loop("deadlines", cfg.TickEvery, e.Deadlines)
	e.watch = e.loop("watch", cfg.TickEvery, e.Watch)
	return e
}

// Config returns the clocks and limits in force.
func (e *Engine) Config() Config { return e.cfg }

// Run runs the timer loops until ctx ends, and waits for them.
func (e *Engine) Run(ctx context.Context) error {
	if err := errors.Join(e.Alive(ctx), e.measure(ctx)); err != nil && ctx.Err() == nil {
		return err
	}
	loops := []*scheduler.Loop{
		e.loop("alive", e.cfg.AliveEvery, func(ctx context.Context, _ time.Time) (time.Time, error) {
			return time.Time{}, errors.Join(e.Alive(ctx), e.measure(ctx))
		}),
		e.cron, e.lapse, e.admit, e.unclaimed, e.lift, e.deadlines, e.watch,
		e.loop("repair", time.Hour, e.Repair),
		e.loop("keys", time.Hour, e.dropKeys),
		e.loop("space", time.Hour, e.giveBack),
		e.loop("pages", time.Hour, e.WatchPages),
		e.loop("retention", pruneEvery, e.Prune),
	}
	if every := e.cfg.Backups.Every; every > 0 {
		loops = append(loops, e.loop("backup", min(every, e.cfg.TickEvery), e.BackUp))
	}
	var wg sync.WaitGroup
	for _, l := range loops {
		wg.Go(func() { l.Run(ctx) })
	}
	wg.Wait()
	return nil
}

// loop makes a timer loop by the coordinator's clock.
func (e *Engine) loop(name string, every time.Duration, do func(context.Context, time.Time) (time.Time, error)) *scheduler.Loop {
	return &scheduler.Loop{Name: name, Every: every, Do: do, Now: e.Now, Log: e.log}
}

// Ready reports whether requests are served: the store can be read, and the last write was
// accepted. Errors: unavailable while writes are refused, as on a full or failing disk, until
// one is accepted again, which is tried every few seconds (contract 13); database_moved and
// database_damaged until people repair that.
func (e *Engine) Ready(ctx context.Context) error {
	if err := e.store.Writable(); err != nil {
		return err
	}
	_, err := e.LastEvent(ctx)
	return err
}

// Trouble is why nothing can be written at the moment, in words for people, or nil.
func (e *Engine) Trouble() *api.Error {
	var why *api.Error
	if errors.As(e.store.Writable(), &why) {
		return why
	}
	return nil
}

// Caller is who asks a verb of the engine: every one takes it.
type Caller = account.Caller

type (
	sessionRow = queries.Session
	agentRow   = queries.Agent
	workerRow  = queries.Worker
	claimRow   = queries.Claim
)
