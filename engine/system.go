package engine

import (
	"context"
	"fmt"
	"runtime"
	"time"

	"stint/account"
	"stint/api"
	"stint/db"
)

// System tells an admin how the coordinator itself is. Errors: forbidden.
func (e *Engine) System(ctx context.Context, c Caller) (out api.System, err error) {
	if err := c.May(account.Audit); err != nil {
		return out, err
	}
	if out.Retention, err = e.retentionState(ctx); err != nil {
		return out, err
	}
	if err := e.measureSystem(ctx, &out); err != nil {
		return out, err
	}
	have, err := e.backups(ctx)
	if err != nil {
		return out, err
	}
	b, now := &out.Backup, e.Now()
	b.EverySeconds, b.Keep = int64(e.cfg.Backups.Every/time.Second), e.cfg.Backups.Keep
	if b.EverySeconds > 0 {
		b.NextAt = api.At(db.Micros(e.backupDue(&have, now)))
	}
	if have.GoodAt != 0 {
		b.LastGood = &api.GoodBackup{
			At: api.At(have.GoodAt), AgeSeconds: max(0, (db.Micros(now)-have.GoodAt)/1_000_000), File: have.File, Bytes: have.Bytes, SHA256: have.Sha256,
		}
	}
	if have.FailedAt != 0 {
		b.LastFailure = &api.FailedBackup{At: api.At(have.FailedAt), Reason: have.Failure}
	}
	return out, nil
}

// measureSystem adds how large everything is and how workers and schedules stand.
func (e *Engine) measureSystem(ctx context.Context, out *api.System) error {
	out.Version, out.UpSince = e.cfg.Backups.Version, api.At(e.upSince.Load())
	if why := e.Trouble(); why != nil {
		out.Trouble = why.Detail
	}
	var err error
	if out.Schema, err = e.store.Schema(ctx); err != nil {
		return fmt.Errorf("read the schema: %w", err)
	}
	files, err := e.store.FileSizes(ctx)
	if err != nil {
		return fmt.Errorf("measure the files: %w", err)
	}
	out.Files = api.FileSizes{Database: files.Database, Free: files.Free, Log: files.Log, Limit: e.cfg.MaxData}
	if e.cfg.FreeBytes != nil {
		if out.Files.DiskFree, err = e.cfg.FreeBytes(); err != nil {
			e.log.Warn("the disk's free space can't be asked for", "error", err)
			out.Files.DiskFree = 0
		}
	}
	return e.store.ReadTimer(ctx, func(tx *db.ReadTx) error {
		out.Work = api.Work{Workers: map[api.WorkerState]int64{}}
		rows, err := tx.MeasureWorkers(ctx)
		if err != nil {
			return fmt.Errorf("count the workers: %w", err)
		}
		for _, r := range rows {
			out.Work.Workers[r.State] = r.N
		}
		if out.Work.ScheduleErrors, err = tx.MeasureScheduleErrors(ctx); err != nil {
			return fmt.Errorf("count the schedules that can't be read: %w", err)
		}
		waiting, err := tx.MeasureDeliveries(ctx)
		if err != nil {
			return fmt.Errorf("count the messages that wait: %w", err)
		}
		out.Work.Deliveries = waiting.N
		next, err := tx.NextAgentSlot(ctx, db.Micros(tx.Now))
		if err != nil && !db.None(err) {
			return fmt.Errorf("find the next slot: %w", err)
		}
		out.Work.NextSlotAt = api.At(next)
		return nil
	})
}

// SupportBundle gathers what somebody who helps needs to know. What goes in is chosen, piece by
// piece: nothing that people or agents wrote is among it. Rights: admin. Errors: forbidden.
func (e *Engine) SupportBundle(ctx context.Context, c Caller, how Looking) (out api.SupportBundle, err error) {
	if out.System, err = e.System(ctx, c); err != nil {
		return out, err
	}
	if out.Examination, err = e.Examine(ctx, c, how); err != nil {
		return out, err
	}
	out.Examination.Version = out.System.Version
	for i := range out.Examination.Checks { // their words name agents and workers
		out.Examination.Checks[i].Detail, out.Examination.Checks[i].Mend = "", ""
	}
	counts, err := e.SessionCounts(ctx, c, api.SessionFilter{})
	if err != nil {
		return out, err
	}
	var memory runtime.MemStats
	runtime.ReadMemStats(&memory)
	out.MadeAt, out.Sessions = api.At(db.Micros(e.Now())), counts.ByStatus
	out.Program = api.ProgramFacts{
		Go: runtime.Version(), OS: runtime.GOOS, Arch: runtime.GOARCH, CPUs: runtime.NumCPU(), Goroutines: runtime.NumGoroutine(), HeapBytes: int64(memory.HeapAlloc),
	}
	out.Clocks = map[string]int64{}
	for name, d := range map[string]time.Duration{
		"tick": e.cfg.TickEvery, "beat": e.cfg.BeatEvery, "stale": e.cfg.StaleAfter, "offline": e.cfg.OfflineAfter, "grace": e.cfg.Grace,
		"affinity": e.cfg.AffinityWait, "minLease": e.cfg.MinLease, "defaultLease": e.cfg.DefaultLease, "maxLease": e.cfg.MaxLease,
	} {
		out.Clocks[name] = int64(d / time.Second)
	}
	out.Limits = map[string]int64{"dataBytes": e.cfg.MaxData, "outputBytes": e.cfg.MaxOutput, "runDepth": e.cfg.RunDepth, "runStarts": e.cfg.RunStarts}
	return out, nil
}
