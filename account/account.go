// Package account owns who somebody is: passwords, external sign-in, devices, the
// programs that people sign in, API keys, the tokens of agents' runs, invitations,
// and how often each may be tried. It answers the [Caller] whom every verb of the
// engine takes, and holds the table of what each role may do.
//
// It must not know what sessions do: it starts, ends and changes none. With a role or
// a membership ends work too, so that members are the engine's.
package account

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"stint/db"
	"stint/scheduler"
)

// Config holds the clocks and rules of signing in that can be set.
type Config struct {
	AccessLife    time.Duration // of a signed-in program's access token
	ViewerDomains []string      // of verified e-mail addresses whose holders become viewers through the provider

	Log *slog.Logger // nil = slog.Default()
}

// DefaultConfig returns the contract's defaults.
func DefaultConfig() Config { return Config{AccessLife: 15 * time.Minute, Log: slog.Default()} }

// Accounts are the people of one store and what signs them in. The methods may be
// called from any goroutine; each is one transaction of the store.
type Accounts struct {
	store   *db.Store
	cfg     Config
	log     *slog.Logger
	hashers *hashers
}

// New makes the accounts of an open store.
func New(store *db.Store, cfg Config) *Accounts {
	if cfg.Log == nil {
		cfg.Log = slog.Default()
	}
	return &Accounts{store: store, cfg: cfg, log: cfg.Log, hashers: newHashers()}
}

// Run forgets from time to time what is over, until ctx ends.
func (a *Accounts) Run(ctx context.Context) {
	var wg sync.WaitGroup
	for name, do := range map[string]func(context.Context, time.Time) (time.Time, error){
		"attempts": a.dropOldAttempts,
		"programs": a.dropPrograms,
	} {
		l := &scheduler.Loop{Name: name, Every: time.Hour, Do: do, Now: a.store.Now, Log: a.log}
		wg.Go(func() { l.Run(ctx) })
	}
	wg.Wait()
}

// writeAs is a write for a caller: the events of fn tell where the call came from.
func (a *Accounts) writeAs(ctx context.Context, c Caller, fn func(tx *db.Tx) error) error {
	return a.store.Write(ctx, func(tx *db.Tx) error {
		tx.From, tx.Via = c.From, c.Via
		return fn(tx)
	})
}
