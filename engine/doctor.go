package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"stint/account"
	"stint/api"
	"stint/db"
)

// Looking says how long an examination may take, and of what.
type Looking struct {
	Rules   time.Duration // for the promises
	Pages   time.Duration // for damaged pages; 0 = they aren't looked at
	Stopped bool          // no coordinator runs on the directory: nobody is there to serve anything
}

// The lengths of time and sizes from which on something is worth telling.
const (
	logLarge     = 256 << 20          // bytes; a slow reader lets the log grow to 64 MiB and more for a moment
	setBackFor   = 7 * 24 * time.Hour // since the clock was set back
	clockMargin  = 2 * time.Minute    // that the clock may be behind what was written
	servedWithin = time.Minute        // a new agent's worker takes it up within seconds
	waitsLong    = 24 * time.Hour
	lastSlots    = 3   // of a schedule, none of which fired
	examined     = 500 // rows of each kind that are looked at
)

// Examine looks for what is wrong with the store, with a workspace, and with the others in which
// the caller has the same right. It changes nothing and takes little more than what how allows. No path, person or machine is named. Rights: admin.
// Error: forbidden, user_token_required.
func (e *Engine) Examine(ctx context.Context, c Caller, how Looking) (out api.Examination, err error) {
	if err := c.May(account.Examine); err != nil {
		return out, err
	}
	out.Add() // nothing is wrong so far
	damaged, err := e.examinePages(ctx, how, &out)
	if err != nil {
		return out, err
	}
	if damaged {
		return out, nil // what is read from such a file proves nothing
	}
	if out.Schema, err = e.store.Schema(ctx); err != nil {
		return out, fmt.Errorf("read the schema: %w", err)
	}
	for _, look := range []func(context.Context, Looking, *api.Examination) error{e.examineWrites, e.examineLog, e.examinePromises, e.examineClock, e.examineBackups} {
		if err := look(ctx, how, &out); err != nil {
			return out, err
		}
	}
	_, err = e.readView(ctx, c, func(r *viewReader) error {
		found := out
		found.Checks = slices.Clone(out.Checks) // the read may run again
		d := doctor{viewReader: r, how: how, out: &found}
		if err := d.workspace(ctx); err != nil {
			return err
		}
		err := d.otherWorkspaces(ctx)
		out = found
		return err
	})
	return out, err
}

// examinePages looks for damage; with it nothing else can be trusted.
func (e *Engine) examinePages(ctx context.Context, how Looking, out *api.Examination) (damaged bool, err error) {
	if how.Pages == 0 {
		return false, nil
	}
	found, err := e.store.CheckPages(ctx, how.Pages)
	if err != nil {
		return false, fmt.Errorf("look for damaged pages: %w", err)
	}
	out.Add(PagesFound(found))
	return len(found.Damage) > 0, nil
}

// PagesFound puts into words what was found of the file's pages.
func PagesFound(found db.PagesChecked) api.Check {
	if len(found.Damage) > 0 {
		return api.Check{
			Name: api.CheckPages, Code: api.FoundPagesDamaged, Detail: "The database is damaged: " + strings.Join(found.Damage, "; ") + ".",
			Mend: "stop Stint, keep a copy of all files of the data directory, and restore the last good backup; then check the disk",
		}
	}
	return api.Fine(api.CheckPages, fmt.Sprintf("%d of %d tables were looked at", found.Tables, found.Of))
}

// examineWrites says whether the store takes writes, and how much room it has.
func (e *Engine) examineWrites(_ context.Context, _ Looking, out *api.Examination) error {
	why, low := e.Trouble(), e.Low()
	if why != nil {
		out.Add(api.Check{
			Name: api.CheckDatabase, Code: api.FoundWritesRefused, Detail: why.Detail,
			Mend: "free space on the disk, or see to it that it can be written to; writes go on by themselves then",
		})
	}
	if low != "" {
		out.Add(*limitFound(low))
	}
	if why == nil && low == "" {
		out.Add(api.Fine(api.CheckDatabase, fmt.Sprintf("schema %d", out.Schema)))
	}
	return nil
}

// examineLog looks at the size of the write-ahead log.
func (e *Engine) examineLog(ctx context.Context, _ Looking, out *api.Examination) error {
	files, err := e.store.FileSizes(ctx)
	if err != nil {
		return fmt.Errorf("measure the files: %w", err)
	}
	if files.Log >= logLarge {
		out.Add(api.Check{
			Name: api.CheckLog, Code: api.FoundLogLarge, Detail: fmt.Sprintf("The write-ahead log takes %s: something reads the database without an end, or the log could not be written back.", sizeWords(files.Log)),
			Mend: "end other programs that have the database open, then stop Stint and start it again",
		})
		return nil
	}
	out.Add(api.Fine(api.CheckLog, fmt.Sprintf("%s beside %s of the database", sizeWords(files.Log), sizeWords(files.Database))))
	return nil
}

// examinePromises checks what must never happen. The rows are named only where nobody but the
// machine's owner reads it: they may be another person's.
func (e *Engine) examinePromises(ctx context.Context, how Looking, out *api.Examination) error {
	found, err := e.CheckWithin(ctx, how.Rules)
	if err != nil && !errors.Is(err, db.ErrDamaged) {
		return fmt.Errorf("check the promises: %w", err)
	}
	rows := map[string][]string{}
	var rules []string
	for _, v := range found.Broken {
		if rows[v.Rule] == nil {
			rules = append(rules, v.Rule)
		}
		rows[v.Rule] = append(rows[v.Rule], v.Detail)
	}
	for _, rule := range rules {
		told := fmt.Sprintf("in %d places at least", len(rows[rule]))
		mend := "stop Stint and run: stint doctor, which names the rows; keep a copy of the data directory and report it"
		if how.Stopped {
			told, mend = strings.Join(rows[rule], "; "), "keep a copy of the data directory, report it, and restore the last good backup"
		}
		out.Add(api.Check{Name: api.CheckPromises, Code: api.FoundPromiseBroken, Detail: fmt.Sprintf("It doesn't hold that %s: %s.", rule, told), Mend: mend})
	}
	if len(rules) == 0 {
		out.Add(api.Fine(api.CheckPromises, fmt.Sprintf("%d of %d rules were checked", found.Rules, found.Of)))
	}
	return nil
}

// examineClock compares the clock with what was written by it.
func (e *Engine) examineClock(ctx context.Context, how Looking, out *api.Examination) error {
	var back, ahead time.Time
	var now time.Time
	err := e.store.ReadTimer(ctx, func(tx *db.ReadTx) error {
		now, back = tx.Now, time.Time{}
		for counter, at := range map[string]func(int64) time.Time{"alive": time.UnixMicro, "id": db.MadeAt} {
			value, err := tx.Counter(ctx, counter)
			if err != nil {
				return err
			}
			if t := at(value); value != 0 && t.After(ahead) {
				ahead = t
			}
		}
		seq, err := tx.AnyEventOfType(ctx, api.EventClockBack)
		if db.None(err) {
			return nil
		}
		if err != nil {
			return err
		}
		ev, err := tx.LastEventUpTo(ctx, seq)
		back = time.UnixMicro(ev.At)
		return err
	})
	if err != nil {
		return fmt.Errorf("read the times of what was written: %w", err)
	}
	const mend = "set the clock and keep it right: timedatectl set-ntp true"
	switch {
	case ahead.Sub(now) > clockMargin:
		out.Add(api.Check{
			Name: api.CheckClock, Code: api.FoundClockBehind, Mend: mend,
			Detail: fmt.Sprintf("The clock is %s behind the newest entry of the database: it was ahead then, or is wrong now.", ahead.Sub(now).Round(time.Second)),
		})
	case !back.IsZero() && now.Sub(back) < setBackFor:
		out.Add(api.Check{Name: api.CheckClock, Code: api.FoundClockSetBack, Detail: "The clock was set back on " + clock(db.Micros(back)) + "; see: stint audit --type " + api.EventClockBack + ".", Mend: mend})
	default:
		out.Add(api.Fine(api.CheckClock, ""))
	}
	return nil
}

// examineBackups looks at the scheduled backups.
func (e *Engine) examineBackups(ctx context.Context, how Looking, out *api.Examination) error {
	check, fine, err := e.backupFinding(ctx, !how.Stopped)
	if err != nil {
		return err
	}
	if check == nil {
		check = new(api.Fine(api.CheckBackup, fine))
	}
	out.Add(*check)
	return nil
}
