package engine

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"stint/account"
	"stint/api"
	"stint/db"
	"stint/queries"
)

const (
	maxGitWord = 1000 // bytes of a branch, a commit or a remote
	maxPath    = 4096 // bytes of a file's path, quoted
)

// ReportChanges takes in what a worker found in its session's workspace (contract 16.1). Until
// the last part of a report came, the one before stands. The same parts again change nothing.
// Errors: those of every write under a claim, invalid, user_token_required for a run's token:
// its agent must not say what it changed.
func (e *Engine) ReportChanges(ctx context.Context, c Caller, worker api.WorkerID, session api.SessionID, in api.ChangesReport) (out api.ChangesNoted, err error) {
	if c.Run != nil {
		return out, account.UserTokenRequired("")
	}
	if err := checkChanges(&in); err != nil {
		return out, err
	}
	err = e.writeUnder(ctx, c, worker, session, in.UnderClaim, func(tx *db.Tx, h held) error {
		out.Changed = false
		old, err := tx.Changes(tx.Context(), session)
		if err != nil && !db.None(err) {
			return fmt.Errorf("read the changes of session %s: %w", session, err)
		}
		if old.Snapshot == in.Snapshot {
			return nil
		}
		if err := putFiles(tx, session, in); err != nil || !in.Last {
			return err
		}
		out.Changed = true
		return e.putChanges(tx, h, in)
	})
	return out, err
}

// putFiles stores the files of one part.
func putFiles(tx *db.Tx, session api.SessionID, in api.ChangesReport) error {
	have, err := tx.CountChangedFiles(tx.Context(), queries.CountChangedFilesParams{SessionID: session, Snapshot: in.Snapshot})
	if err != nil {
		return fmt.Errorf("count the changed files of session %s: %w", session, err)
	}
	var v api.Invalid
	if in.First > have.N {
		v.Add("first", fmt.Sprintf("is %d, and earlier parts had %d files: send the parts in order", in.First, have.N))
	}
	bytes := have.Bytes
	for i, f := range in.Files[min(int64(len(in.Files)), have.N-min(in.First, have.N)):] {
		if bytes += int64(len(f.Patch)); bytes > api.MaxPatches {
			v.Add("files", fmt.Sprintf("have patches of more than %d bytes together", api.MaxPatches))
			break
		}
		err := tx.PutChangedFile(tx.Context(), queries.PutChangedFileParams{
			SessionID: session, Snapshot: in.Snapshot, Position: max(in.First, have.N) + int64(i), Path: f.Path, OldPath: f.OldPath, Change: f.Change,
			Added: f.Added, Removed: f.Removed, Binary: db.Flag(f.Binary), Cut: db.Flag(f.Cut), Patch: f.Patch,
		})
		if err != nil {
			return fmt.Errorf("keep a changed file of session %s: %w", session, err)
		}
	}
	return v.Err()
}

// putChanges makes a report that is complete the one that counts.
func (e *Engine) putChanges(tx *db.Tx, h held, in api.ChangesReport) error {
	state, err := json.Marshal(in.State)
	if err != nil {
		return fmt.Errorf("write down changes: %w", err)
	}
	err = tx.PutChanges(tx.Context(), queries.PutChangesParams{
		SessionID: h.s.ID, ThreadID: h.s.ThreadID, WorkspaceID: h.s.WorkspaceID, WorkerID: h.claim.WorkerID, Snapshot: in.Snapshot, State: string(state),
		FileCount: in.FileCount, Added: in.Added, Removed: in.Removed, TakenAt: db.Micros(tx.Now), Waiting: db.Flag(waits(in.State, in.FileCount)),
	})
	if err == nil {
		_, err = tx.DropOtherFiles(tx.Context(), queries.DropOtherFilesParams{SessionID: h.s.ID, Snapshot: in.Snapshot})
	}
	if err == nil {
		_, err = tx.PassChangesOn(tx.Context(), queries.PassChangesOnParams{ThreadID: h.s.ThreadID, WorkerID: h.claim.WorkerID, SessionID: h.s.ID})
	}
	if err != nil {
		return fmt.Errorf("keep the changes of session %s: %w", h.s.ID, err)
	}
	return e.logSession(tx, h.s, h.actor(), api.EventChangesRecorded, api.EventData{
		"files": in.FileCount, "added": in.Added, "removed": in.Removed, "commits": in.State.CommitCount, "dirty": in.State.Dirty,
	})
}

// waits reports whether there is something that can be landed. A plain folder is somebody's own:
// what lies there is theirs already.
func waits(s api.ChangesState, files int64) bool { return s.Place != api.PlaceFolder && files > 0 }

func checkChanges(in *api.ChangesReport) error {
	var v api.Invalid
	v.CheckLine("snapshot", in.Snapshot)
	v.CheckText("snapshot", in.Snapshot, 100)
	if in.Snapshot == "" {
		v.Add("snapshot", "is missing: name the state of the workspace, the same in all parts of a report")
	}
	for field, n := range map[string]int64{"first": in.First, "fileCount": in.FileCount, "added": in.Added, "removed": in.Removed} {
		if n < 0 {
			v.Add(field, "must be 0 or more")
		}
	}
	if n := in.First + int64(len(in.Files)); n > api.MaxChangedFiles || n > in.FileCount {
		v.Add("files", fmt.Sprintf("are too many: at most %d are kept, and no more than fileCount says", api.MaxChangedFiles))
	}
	checkChangesState(&v, "state", &in.State)
	for i := range in.Files {
		checkFile(&v, fmt.Sprintf("files[%d]", i), &in.Files[i])
	}
	return v.Err()
}

func checkChangesState(v *api.Invalid, field string, s *api.ChangesState) {
	if !slices.Contains(api.Places, s.Place) {
		v.Add(field+".place", "must be "+api.OrList(api.Places))
	}
	for name, text := range map[string]*string{"branch": &s.Branch, "baseBranch": &s.BaseBranch, "base": &s.Base, "head": &s.Head, "remote": &s.Remote} {
		mended(text)
		v.CheckText(field+"."+name, *text, maxGitWord)
		v.CheckLine(field+"."+name, *text)
	}
	if len(s.Commits) > api.MaxCommits || int64(len(s.Commits)) > s.CommitCount {
		v.Add(field+".commits", fmt.Sprintf("are too many: at most %d are kept, and no more than commitCount says", api.MaxCommits))
	}
	if s.CommitCount < 0 || s.Unpushed < 0 {
		v.Add(field+".commitCount", "must be 0 or more, like unpushed")
	}
	for i := range s.Commits {
		m := &s.Commits[i]
		mended(&m.Subject)
		m.Subject = api.Excerpt(api.Line(m.Subject), maxGitWord)
		v.CheckText(field+".commits", m.ID, maxGitWord)
		v.CheckLine(field+".commits", m.ID)
	}
	if s.Commits == nil {
		s.Commits = []api.Commit{}
	}
}

func checkFile(v *api.Invalid, field string, f *api.ChangedFile) {
	mended(&f.Path, &f.OldPath, &f.Patch)
	for name, text := range map[string]string{"path": f.Path, "oldPath": f.OldPath} {
		v.CheckText(field+"."+name, text, maxPath)
		v.CheckPlace(field+"."+name, text)
	}
	if f.Path == "" {
		v.Add(field+".path", "is missing")
	}
	if !slices.Contains(api.FileChanges, f.Change) {
		v.Add(field+".change", "must be "+api.OrList(api.FileChanges))
	}
	if f.Added < 0 || f.Removed < 0 {
		v.Add(field+".added", "must be 0 or more, like removed")
	}
	v.CheckText(field+".patch", f.Patch, api.MaxPatch)
}

// Changes reads what a session changed, with what the caller may do about it. Errors: not_found,
// also where nothing was recorded.
func (e *Engine) Changes(ctx context.Context, c Caller, session api.SessionID) (out api.Changes, err error) {
	err = e.store.Read(ctx, func(tx *db.ReadTx) error {
		s, err := visible(ctx, tx, c, session)
		if err != nil {
			return err
		}
		row, err := changesRow(ctx, tx, session)
		if err != nil {
			return err
		}
		if out, err = changesFrom(ctx, tx, c, s, row); err != nil {
			return err
		}
		out.Files, err = filesOf(ctx, tx, row)
		return err
	})
	return out, err
}

// changesRow reads the row of a session's changes. Errors: not_found where none was recorded.
func changesRow(ctx context.Context, q queries.Querier, session api.SessionID) (queries.Change, error) {
	row, err := q.Changes(ctx, session)
	if db.None(err) {
		return row, api.Refuse(api.CodeNotFound, "No changes were recorded for this session: it hasn't worked in a git repository, or its worker doesn't look.")
	}
	if err != nil {
		return row, fmt.Errorf("read the changes of session %s: %w", session, err)
	}
	return row, nil
}

// changesFrom is Changes without its files.
func changesFrom(ctx context.Context, q queries.Querier, c Caller, s *sessionRow, row queries.Change) (out api.Changes, err error) {
	out = api.Changes{
		SessionID: s.ID, Files: []api.ChangedFile{}, FileCount: row.FileCount, Added: row.Added, Removed: row.Removed,
		TakenAt: api.At(row.TakenAt), Waits: row.Waiting == 1 && s.Status.Terminal(), Verbs: []api.LandVerb{},
	}
	if err := json.Unmarshal([]byte(row.State), &out.ChangesState); err != nil {
		return out, fmt.Errorf("read the changes of session %s: %w", s.ID, err)
	}
	last, err := q.LastLanding(ctx, s.ID)
	if err == nil {
		shown, err := toLanding(last.Landing, last.Name)
		if err != nil {
			return out, err
		}
		out.Landing = &shown
	} else if !db.None(err) {
		return out, fmt.Errorf("read what was asked about session %s: %w", s.ID, err)
	}
	return out, offerVerbs(ctx, q, c, s, &row, &out)
}

func filesOf(ctx context.Context, q queries.Querier, row queries.Change) ([]api.ChangedFile, error) {
	rows, err := q.ChangedFiles(ctx, queries.ChangedFilesParams{SessionID: row.SessionID, Snapshot: row.Snapshot})
	if err != nil {
		return nil, fmt.Errorf("read the changed files of session %s: %w", row.SessionID, err)
	}
	out := make([]api.ChangedFile, 0, len(rows))
	for _, f := range rows {
		out = append(out, api.ChangedFile{
			Path: f.Path, OldPath: f.OldPath, Change: f.Change, Added: f.Added, Removed: f.Removed,
			Binary: f.Binary != 0, Patch: f.Patch, Cut: f.Cut != 0,
		})
	}
	return out, nil
}
