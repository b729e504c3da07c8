package worker

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/go-json-experiment/json"

	"stint/api"
	"stint/worker/git"
	"stint/worker/landing"
	"stint/worker/setup"
	"stint/worker/workspace"
)

// landLimit bounds what is done for one request to land: a push, and checkouts of a large tree.
const landLimit = 15 * time.Minute

// landingOrder is what a record is asked to land. The record's lock guards it.
type landingOrder struct {
	asked *api.Landing // as the last answer said
	busy  bool         // one is being carried out
}

// lands carries out what the record is asked to land, one at a time, beside everything else.
func (r *record) lands() {
	r.mu.Lock()
	asked := r.landing.asked != nil && !r.landing.busy
	r.mu.Unlock()
	if !asked || !r.p.admit() { // an ending process leaves it to the next one
		return
	}
	r.mu.Lock()
	l := r.landing.asked
	if l == nil || r.landing.busy {
		r.mu.Unlock()
		r.p.parts.Done()
		return
	}
	r.landing.busy = true
	r.mu.Unlock()
	go func() {
		defer r.p.parts.Done()
		r.land(*l)
		r.mu.Lock()
		r.landing.asked, r.landing.busy = nil, false
		r.mu.Unlock()
		r.wake() // the beat says whether there is another
	}()
}

// land does what is asked, unless an earlier process has done it, and answers. What was done is
// journaled before it is told: a request whose answer was lost isn't carried out twice.
func (r *record) land(l api.Landing) {
	log := r.log.With("session", l.SessionID.String(), "landing", l.ID.String(), "verb", string(l.Verb))
	row, err := r.p.state.landRow(l.ID)
	if err != nil {
		log.Error("what was landed isn't known", "error", err)
		return // asked again with the next beat
	}
	var report api.LandReport
	if row.report != "" {
		err = json.Unmarshal([]byte(row.report), &report)
	} else {
		report = r.carryOut(l, row)
		log.Info("asked to land changes", "by", l.RequestedName, "state", string(report.State), "code", report.Code, "commit", report.Commit)
		var text []byte
		if text, err = json.Marshal(report); err == nil {
			err = r.p.state.landEnds(l.ID, string(text))
		}
	}
	if err != nil {
		log.Error("what was landed can't be journaled", "error", err)
		return
	}
	r.p.at("landed")
	report.InstanceID = r.p.instance
	err = r.p.insist(r.p.reporting, "tell what was landed", func() error {
		ctx, cancel := context.WithTimeout(r.p.reporting, r.p.clocks.Answer)
		defer cancel()
		got, err := r.p.client.AnswerLanding(ctx, r.agent, r.id(), l.ID, report)
		return ours(err, got.ID, l.ID)
	})
	if err != nil {
		log.Warn("what was landed could not be told", "error", err)
	}
	if err == nil || refusedForGood(err) {
		if err := r.p.state.landOver(l.ID); err != nil {
			log.Error("the journal's line on a landing stays", "error", err)
		}
	}
	r.p.at("told")
}

func landRefused(code, text string) api.LandReport {
	return api.LandReport{State: api.LandRefused, LandOutcome: api.LandOutcome{Code: code, Detail: text}}
}

// carryOut holds the workspace and does what is asked. It is never cut short half way but by its
// time limit; what reaches other machines ends with this process.
func (r *record) carryOut(l api.Landing, row landRow) api.LandReport {
	slug := r.agentSlug()
	files := setup.Find(r.p.opts.StateDir)
	own, _, err := files.Agent(slug)
	if err != nil {
		return landRefused(api.LandNotAllowed, "The owner's own file on this agent can't be used; “stint worker doctor "+slug+"” on the worker's machine says why.")
	}
	if !own.Land.Allows(l.Verb) {
		return landRefused(api.LandNotAllowed, "The worker's owner doesn't allow this: the setting land in their file on this agent.")
	}
	at, err := r.p.takePlace(l.SessionID)
	if errors.Is(err, workspace.ErrGone) && l.Verb == api.VerbDiscard && row.begun {
		return api.LandReport{State: api.LandDone, LandOutcome: api.LandOutcome{Detail: "The workspace is removed."}}
	}
	if err != nil {
		return r.unplaced(err)
	}
	defer at.release()
	at.Protected = own.LandProtected
	base := context.WithoutCancel(r.p.reporting)
	if l.Verb == api.VerbPush || l.Verb == api.VerbPullRequest {
		base = r.p.reporting
	}
	ctx, cancel := context.WithTimeout(base, landLimit)
	defer cancel()
	t, err := landing.Open(ctx, at.Place)
	if err != nil {
		state, out := at.Outcome(api.LandOutcome{}, err)
		return api.LandReport{State: state, LandOutcome: out}
	}
	w := landWork{p: r.p, agent: slug, files: files, landing: l, row: row, at: at, tree: t}
	return w.do(ctx)
}

// unplaced is the answer when a session's place can't be taken.
func (r *record) unplaced(err error) api.LandReport {
	switch {
	case errors.Is(err, workspace.ErrBusy):
		return landRefused(api.LandBusy, "Another session, or a clean-up, is using the workspace. Ask again later.")
	case errors.Is(err, workspace.ErrGone):
		return landRefused(api.LandGone, "The workspace is gone from the worker's machine.")
	}
	r.log.Warn("a session's workspace can't be landed", "error", err)
	return landRefused(api.LandFailed, "The workspace can't be used; the worker's log says why.")
}

// takenPlace is a session's place that nobody else uses.
type takenPlace struct {
	landing.Place
	kept    landPlace
	held    *workspace.Held // nil for a plain folder
	release func()
}

// takePlace finds where a session worked and keeps others out of it. The error may be one of
// workspace.Hold's.
func (p *Process) takePlace(id api.SessionID) (out takenPlace, err error) {
	kept, found, err := p.state.placeOf(id)
	if err != nil {
		return out, err
	}
	if !found {
		return out, workspace.ErrGone
	}
	out.kept = kept
	if kept.Kind == api.PlaceFolder {
		leave, free := p.folders.try(kept.Path)
		if !free {
			return out, workspace.ErrBusy
		}
		out.release = leave
		out.Place, err = p.landingPlace(kept, workspace.Facts{})
	} else {
		if out.held, err = workspace.Hold(kept.Root, kept.Key); err != nil {
			return out, err
		}
		out.release = func() { _ = out.held.Close() }
		out.Place, err = p.landingPlace(kept, out.held.Facts)
	}
	if err != nil {
		out.release()
	}
	return out, err
}

// landingPlace puts together what landing wants to know of a place.
func (p *Process) landingPlace(kept landPlace, f workspace.Facts) (landing.Place, error) {
	scratch := p.scratch()
	if err := os.MkdirAll(scratch, 0o700); err != nil {
		return landing.Place{}, fmt.Errorf("make a folder for landing: %w", err)
	}
	out := landing.Place{Kind: kept.Kind, Path: kept.Path, Start: kept.Start, Env: p.source, Scratch: scratch, Routes: kept.Routes}
	if kept.Kind != api.PlaceFolder {
		out.Path, out.Repository, out.Branch, out.Start = f.Path, f.Repository, f.Branch, f.Base
		out.Base, out.Routes, out.Landed = f.BaseBranch, both(f.Routes, kept.Routes), f.Landed
	}
	return out, nil
}

// scratch is where landing puts what it needs for a moment, away from agents.
func (p *Process) scratch() string { return Scratch(p.opts.StateDir) }

// Scratch is where a worker with a state directory puts what it needs for a moment.
func Scratch(stateDir string) string { return filepath.Join(stateDir, "landing") }

// gitWith is this process as one who calls git.
func (p *Process) gitWith(env []string) git.Caller { return git.Caller{Env: env, Room: p.scratch()} }

// sweepScratch removes what an earlier process left there.
func (p *Process) sweepScratch() error { return os.RemoveAll(p.scratch()) }

// landWork is one request that is being carried out.
type landWork struct {
	p       *Process
	agent   string // slug
	files   setup.Files
	landing api.Landing
	row     landRow
	at      takenPlace
	tree    *landing.Tree
}

func (w landWork) do(ctx context.Context) api.LandReport {
	head, err := w.tree.Head(ctx)
	unseen := err == nil && w.unseen(head) // before the journal: what is begun isn't asked again
	if err == nil && !unseen {
		err = w.p.state.landBegins(w.landing.ID, head)
	}
	if err != nil {
		state, out := w.at.Outcome(api.LandOutcome{}, err)
		return api.LandReport{State: state, LandOutcome: out}
	}
	w.p.at("land begun")
	var report api.LandReport
	switch {
	case w.landing.Verb == api.VerbDiscard:
		report, err = w.discard(ctx)
	case unseen:
		err = &landing.Refusal{Code: api.LandBusy, Text: "The branch stands at another commit than when its changes were last looked at. Its commits are shown as they are now: ask again once you know what they change."}
	default:
		report.LandOutcome, err = w.verb(ctx, head)
	}
	if err != nil || report.State == "" {
		report.State, report.LandOutcome = w.at.Outcome(report.LandOutcome, err)
	}
	if w.landing.Verb != api.VerbDiscard || report.State != api.LandDone {
		if now, err := w.tree.State(ctx); err == nil {
			report.Now = &now
			w.shown(now.Head)
		} else {
			w.p.log.Warn("how the workspace stands can't be told", "session", w.landing.SessionID, "error", err)
		}
	}
	return report
}

// unseen reports whether people were shown another commit than the one that would be landed: a later
// turn of the conversation, or somebody by hand, has committed since. What a killed process had
// begun goes on.
func (w landWork) unseen(head string) bool {
	return !w.row.begun && w.landing.Verb != api.VerbKeep && w.landing.Verb != api.VerbDiscard && w.at.kept.Head != "" && w.at.kept.Head != head
}

// shown notes which commit people are told of.
func (w landWork) shown(head string) {
	place := w.at.kept
	place.Head = head
	if err := w.p.state.setPlace(w.landing.SessionID, place); err != nil {
		w.p.log.Warn("it is not noted which commit is shown", "session", w.landing.SessionID, "error", err)
	}
}

func (w landWork) verb(ctx context.Context, head string) (api.LandOutcome, error) {
	message := landing.Message(w.landing.Message)
	switch w.landing.Verb {
	case api.VerbKeep:
		out, err := w.tree.Keep(ctx, message)
		if refused := (*landing.Refusal)(nil); w.row.begun && errors.As(err, &refused) && refused.Code == api.LandNothing && head != w.row.head {
			return api.LandOutcome{Commit: head, Detail: "Everything is committed."}, nil // by the process that was killed
		}
		return out, err
	case api.VerbPush:
		return w.tree.Push(ctx, landing.Again(w.row.begun))
	case api.VerbPullRequest:
		return w.tree.PullRequest(ctx, message)
	case api.VerbMerge:
		return w.merge(ctx, head, message)
	}
	return api.LandOutcome{}, &landing.Refusal{Code: api.LandUnsupported, Text: "This worker can't do that: it is older than the coordinator."}
}

// merge merges unless the process that was killed has, and notes in the workspace what was landed.
func (w landWork) merge(ctx context.Context, head string, message landing.Message) (out api.LandOutcome, err error) {
	done := false
	if w.row.planned != "" {
		if done, err = w.tree.InBase(ctx, w.row.planned); err != nil {
			return out, err
		}
	}
	if done {
		head = w.row.head
		out = api.LandOutcome{Commit: w.row.planned, Detail: "The changes are in the base branch."}
	} else {
		out, err = w.tree.Merge(ctx, landing.Merge{Method: w.landing.Method, Message: message, Plan: func(commit string) error {
			if err := w.p.state.landPlans(w.landing.ID, commit); err != nil {
				return err
			}
			w.p.at("land planned")
			return nil
		}})
		w.p.at("land merged")
	}
	if err == nil && w.at.Kind == api.PlaceWorktree {
		if err := w.at.held.Land(head); err != nil {
			w.p.log.Warn("the workspace doesn't know that it was landed", "session", w.landing.SessionID, "error", err)
		}
	}
	return out, err
}

// discard says what would be lost or, with the word for exactly that, removes the workspace.
func (w landWork) discard(ctx context.Context) (api.LandReport, error) {
	loss, err := w.tree.Loss(ctx)
	if err != nil {
		return api.LandReport{}, err
	}
	if loss.Token != w.landing.Confirm {
		return api.LandReport{State: api.LandAsks, LandOutcome: api.LandOutcome{Detail: loss.Text, Paths: loss.Paths, Token: loss.Token}}, nil
	}
	_, hooks, err := collectable(w.files, w.agent, w.p.source)
	if err != nil {
		w.p.log.Warn("the hook before a removal can't be read, and isn't run", "agent", w.agent, "error", err)
	}
	err = w.at.held.Discard(ctx, loss.Tip, hooks, w.p.source, func() error {
		again, err := w.tree.Loss(ctx)
		if err == nil && again.Token != loss.Token {
			err = &landing.Refusal{Code: api.LandBusy, Text: "The workspace changed while it was to be removed. Look again at what would be lost."}
		}
		return err
	})
	return api.LandReport{LandOutcome: api.LandOutcome{Detail: "The workspace is removed."}}, err
}
