package worker

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"

	"github.com/go-json-experiment/json"

	"stint/api"
	"stint/worker/setup"
)

const (
	longestApproval  = 4 << 10   // bytes of what one allows that are reported
	longestApprovals = 900 << 10 // of a whole report: what leaves room within a body
)

// minds brings the coordinator's list of the standing approvals to what the owner's file has,
// and removes there what the owner asked to remove. contract 15.3
func (r *record) minds(asked api.ApprovalsAsked) {
	report, err := r.approvals()
	if err != nil {
		r.log.Debug("the standing approvals can't be read", "error", err) // a notice says so
		return
	}
	if report.State == asked.State && len(asked.Remove) == 0 {
		return
	}
	r.mu.Lock()
	busy := r.minding
	r.mu.Unlock()
	if busy || !r.p.admit() { // an ending process leaves it to the next one
		return
	}
	r.mu.Lock()
	r.minding = true
	r.mu.Unlock()
	go func() {
		defer r.p.parts.Done()
		r.mind(asked)
		r.mu.Lock()
		r.minding = false
		r.mu.Unlock()
	}()
}

// mind removes what is asked and reports what is left. Only beats call it, one at a time; what
// fails is done with the next one.
func (r *record) mind(asked api.ApprovalsAsked) {
	slug := r.agentSlug()
	files := setup.Find(r.p.opts.StateDir)
	for _, id := range asked.Remove {
		gone, err := files.Revoke(slug, id)
		if err != nil {
			r.log.Error("a standing approval can't be removed", "approval", id, "error", err)
			return
		}
		if len(gone) > 0 {
			r.log.Info("asked to remove a standing approval", "approval", id)
		}
	}
	report, err := r.approvals()
	if err == nil {
		ctx, cancel := context.WithTimeout(r.p.reporting, r.p.clocks.Answer)
		defer cancel()
		err = r.p.client.ReportApprovals(ctx, r.agent, r.id(), report)
	}
	if err != nil {
		r.log.Warn("the standing approvals can't be reported", "error", err)
	}
}

// approvals is the report of what this worker's owner allowed from now on.
func (r *record) approvals() (out api.ApprovalsReport, err error) {
	slug := r.agentSlug()
	files := setup.Find(r.p.opts.StateDir)
	all, err := files.Approvals(slug)
	if all = givenBy(all, r.p.me.UserID); err != nil || len(all) == 0 {
		return api.ApprovalsReport{InstanceID: r.p.instance, Approvals: []api.Approval{}}, err
	}
	uses, err := files.Uses(slug)
	if err != nil {
		r.log.Warn("how often standing approvals were used isn't known", "error", err)
	}
	secrets := secretsOf(r.p.source, r.p.token())
	out.InstanceID = r.p.instance
	for most := longestApproval; ; most /= 2 {
		out.Approvals = make([]api.Approval, len(all))
		for i, a := range all {
			out.Approvals[i] = a.Shown(uses[a.ID])
			out.Approvals[i].What = api.Excerpt(maskString(a.What, secrets), most)
		}
		text, err := json.Marshal(out.Approvals)
		if err != nil {
			return out, fmt.Errorf("write the standing approvals: %w", err)
		}
		if len(text) <= longestApprovals {
			sum := sha256.Sum256(text)
			out.State = hex.EncodeToString(sum[:12])
			return out, nil
		}
	}
}

func (r *record) agentSlug() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.slug
}

// approvalsNotice says that the owner's file of standing approvals can't be used.
func (p *Process) approvalsNotice(slug string) []api.Notice {
	if _, err := setup.Find(p.opts.StateDir).Approvals(slug); err == nil {
		return nil
	}
	return []api.Notice{{Code: api.NoticeSetupInvalid, Text: "The owner's file of what this agent may do from now on can't be used; none of it counts. See “stint worker rules " + slug + "” on the worker's machine."}}
}

// givenBy leaves the approvals that hold for the workers of a person: those of theirs, and those
// of an older version, which didn't say whose they are.
func givenBy(all []setup.Approval, user api.UserID) []setup.Approval {
	return slices.DeleteFunc(all, func(a setup.Approval) bool { return a.By != "" && a.By != user.String() })
}
