package engine

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"stint/api"
	"stint/db"
	"stint/queries"
)

// The coarse facts: an operating system and a machine's kind by their well-known
// names, and versions. Nothing that names a machine, a person or a place.
var (
	systems  = []string{"aix", "android", "darwin", "dragonfly", "freebsd", "illumos", "ios", "linux", "macos", "netbsd", "openbsd", "plan9", "solaris", "windows"}
	machines = []string{
		"386", "amd64", "arm", "arm64", "aarch64", "armv6", "armv7", "i386", "i686", "loong64", "mips", "mips64", "mips64le", "mipsle",
		"ppc64", "ppc64le", "riscv64", "s390x", "wasm", "x86", "x86_64",
	}
	versionForm = regexp.MustCompile(`^[0-9A-Za-z()][0-9A-Za-z.+_() -]{0,39}$`)
)

// checkFacts limits what a worker says about itself to coarse facts (contract 5.2).
func checkFacts(v *api.Invalid, platform, version string) {
	system, machine, both := strings.Cut(platform, "/")
	if platform != "" && (!slices.Contains(systems, system) || (both && !slices.Contains(machines, machine))) {
		v.Add("platform", "must be coarse: an operating system and a kind of machine, such as linux/amd64")
	}
	if version != "" && !versionForm.MatchString(version) {
		v.Add("version", "must be a version of at most 40 characters, such as 1.4.0")
	}
}

const (
	maxNotices       = 10
	maxUnsentSeconds = 365 * 24 * 3600
	maxNoticeText    = 500 // bytes
)

func checkNotices(v *api.Invalid, notices []api.Notice) {
	if len(notices) > maxNotices {
		v.Add("notices", fmt.Sprintf("has more than %d entries", maxNotices))
	}
	for i := range notices {
		n, field := &notices[i], fmt.Sprintf("notices[%d].", i)
		mended(&n.Text)
		if !slices.Contains(api.NoticeCodes, n.Code) {
			v.Add(field+"code", "must be one of "+api.Listed(api.NoticeCodes))
		}
		v.CheckText(field+"text", n.Text, maxNoticeText)
	}
}

// noticesOf reads what a worker's row stores.
func noticesOf(w *workerRow) ([]api.Notice, error) {
	if w.Notices == "" {
		return nil, nil
	}
	var out []api.Notice
	if json.Unmarshal([]byte(w.Notices), &out) != nil {
		return nil, nil // damaged; the worker says them again with its next beat
	}
	return out, nil
}

// noticeOf is the text of a worker's notice of a kind, "" when there is none.
func noticeOf(w *workerRow, code string) string {
	notices, err := noticesOf(w)
	if err != nil {
		return ""
	}
	for _, n := range notices {
		if n.Code == code {
			return n.Text
		}
	}
	return ""
}

// Beat reports that the worker is alive, renews the claims it lists, all or nothing for each,
// and notes those that are drained. A beat itself writes no event (contract 4.4, 5.2). Errors:
// not_found when the worker was deleted, instance_superseded.
func (e *Engine) Beat(ctx context.Context, c Caller, id api.WorkerID, in api.Beat) (out api.BeatAnswer, err error) {
	var v api.Invalid
	checkFacts(&v, in.Platform, in.Version)
	checkNotices(&v, in.Notices)
	if u := in.Unsent; u.Reports < 0 || u.Seconds < 0 || u.Seconds > maxUnsentSeconds {
		v.Add("unsent", fmt.Sprintf("is not a number of reports and 0 to %d seconds", maxUnsentSeconds))
	}
	if len(in.ClaimIDs) > 1000 || len(in.Drained) > 1000 {
		v.Add("claimIds", "has more than 1000 entries")
	}
	if err := v.Err(); err != nil {
		return out, err
	}
	err = e.writeAs(ctx, c, func(tx *db.Tx) error {
		w, err := workerOf(tx.Context(), tx, c, id)
		if err != nil {
			return err
		}
		if err := sameInstance(w, in.InstanceID); err != nil {
			return err
		}
		if err := e.beatTx(tx, w, in); err != nil {
			return err
		}
		out = api.BeatAnswer{Claims: []api.ClaimBeat{}, ServerTime: api.At(db.Micros(tx.Now))}
		for _, claim := range in.ClaimIDs {
			answer, err := e.beatClaim(tx, w, claim)
			if err != nil {
				return err
			}
			out.Claims = append(out.Claims, answer)
		}
		if out.Approvals, err = approvalsAsked(tx.Context(), tx, w); err != nil {
			return err
		}
		out.Worker, err = e.showWorker(tx.Context(), tx, w)
		return err
	})
	return out, err
}

func (e *Engine) beatTx(tx *db.Tx, w *workerRow, in api.Beat) error {
	now := db.Micros(tx.Now)
	for _, claim := range in.Drained {
		row, err := tx.Claim(tx.Context(), claim.Key)
		if db.None(err) || (err == nil && (!proves(claim, &row) || row.WorkerID != w.ID || row.ClosedAt == 0 || row.Drained != 0)) {
			continue
		}
		if err != nil {
			return fmt.Errorf("read a claim: %w", err)
		}
		if err := e.drained(tx, &row, w.ID.String()); err != nil {
			return err
		}
	}
	state, was := api.Online, w.State
	if in.Goodbye {
		state = api.Offline
	}
	if in.Platform != "" {
		w.Platform = in.Platform
	}
	if in.Version != "" {
		w.Version = in.Version
	}
	notices, err := written(in.Notices)
	if err != nil {
		return err
	}
	if notices != w.Notices {
		w.Notices, w.NoticesSince = notices, now
	}
	w.Unsent, w.UnsentSince = in.Unsent.Reports, 0
	if w.Unsent > 0 {
		w.UnsentSince = now - db.Span(time.Duration(in.Unsent.Seconds)*time.Second)
	}
	err = db.One(tx.BeatWorker(tx.Context(), queries.BeatWorkerParams{
		LastBeatAt: now, State: state, Platform: w.Platform, Version: w.Version, Notices: w.Notices, NoticesSince: w.NoticesSince,
		Unsent: w.Unsent, UnsentSince: w.UnsentSince, ID: w.ID,
	}))
	if err != nil {
		return fmt.Errorf("note the beat of worker %s: %w", w.ID, err)
	}
	lost := w.LostAt != 0 || w.LastBeatAt+db.Span(e.cfg.StaleAfter) <= now
	w.LastBeatAt, w.LostAt, w.State = now, 0, state
	if lost && !in.Goodbye {
		e.wakeWorker(tx, w.ID) // its held request may be given work again
	}
	switch {
	case in.Goodbye && was != api.Offline:
		if err := e.endClaims(tx, w, closedByOffline); err != nil {
			return err
		}
		return e.logWorker(tx, w, w.ID.String(), api.EventWorkerOffline, api.EventData{"reason": "goodbye"})
	case !in.Goodbye && was != api.Online:
		return e.logWorker(tx, w, w.ID.String(), api.EventWorkerOnline, nil)
	}
	return nil
}

// beatClaim renews one claim that a beat lists and says what happened to it.
func (e *Engine) beatClaim(tx *db.Tx, w *workerRow, id api.ClaimID) (api.ClaimBeat, error) {
	lost := api.ClaimBeat{ClaimID: id, State: api.BeatLost}
	row, err := tx.Claim(tx.Context(), id.Key)
	if db.None(err) || (err == nil && (!proves(id, &row) || row.WorkerID != w.ID)) {
		return lost, nil
	}
	if err != nil {
		return lost, fmt.Errorf("read a claim: %w", err)
	}
	now := db.Micros(tx.Now)
	if row.ClosedBy == closedByCancel {
		lost.State = api.BeatCancelled
		return lost, nil
	}
	if row.ClosedAt != 0 || row.ExpiresAt <= now {
		return lost, nil
	}
	if err := renewTo(tx, &row, now+db.Seconds(row.LeaseSeconds), now); err != nil {
		return lost, err
	}
	s, err := tx.Session(tx.Context(), row.SessionID)
	if err != nil {
		return lost, fmt.Errorf("read session %s: %w", row.SessionID, err)
	}
	out := api.ClaimBeat{ClaimID: id, State: api.BeatRenewed, LeaseExpiresAt: api.At(row.ExpiresAt)}
	if s.StopRequestedAt != 0 {
		out.State = api.BeatStopRequested
	}
	return out, nil
}
