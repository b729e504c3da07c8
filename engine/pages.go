package engine

import (
	"context"
	"sync/atomic"
	"time"

	"stint/api"
	"stint/db"
)

const (
	pagesEvery  = 24 * time.Hour  // from the beginning of one pass through the file to that of the next
	pagesPause  = time.Minute     // between two slices of a pass
	pagesBudget = 2 * time.Second // after which a slice ends with the table that it is at
)

// pageWatch looks through the file for damage, a slice at a time: what no request reads, none
// would meet until it is needed.
type pageWatch struct {
	at     string    // the table that this pass has come to; owned by the loop
	began  time.Time // this pass; owned by the loop
	damage []string  // of this pass; owned by the loop

	found atomic.Pointer[api.Check] // what the last whole pass, or this one, found; nil = nothing
	whole atomic.Bool               // a pass has been whole
}

// WatchPages looks at the next slice of the file and returns when to look at the one after.
func (e *Engine) WatchPages(ctx context.Context, now time.Time) (time.Time, error) {
	p := &e.pages
	if p.at == "" {
		if next := p.began.Add(pagesEvery); !p.began.IsZero() && now.Before(next) && !now.Before(p.began) {
			return next, nil
		}
		p.began, p.damage = now, nil
	}
	at, damage, err := e.store.CheckTables(ctx, p.at, pagesBudget)
	p.at = at
	if err != nil {
		return time.Time{}, err
	}
	p.damage = append(p.damage, damage...)
	if len(damage) > 0 {
		check := PagesFound(db.PagesChecked{Damage: p.damage[:min(len(p.damage), db.MaxDamage)]})
		if p.found.Swap(&check) == nil {
			e.log.Error("the database is damaged", "found", check.Detail, "mend", check.Mend)
			e.watch.Wake()
		}
	}
	if at != "" {
		return now.Add(pagesPause), nil
	}
	if len(p.damage) == 0 {
		p.found.Store(nil)
	}
	p.whole.Store(true)
	return p.began.Add(pagesEvery), nil
}

// Warning says what needs attention although requests are served: a damaged file, or one that
// is nearly full; else it is "".
func (e *Engine) Warning() string {
	if check := e.pages.found.Load(); check != nil {
		return check.Detail + " To mend it: " + check.Mend + "."
	}
	return e.Low()
}
