package engine_test

import (
	"slices"

	"stint/api"
)

// signal sends a worker a signal, mostly to resume.
func (p *play) signal() {
	k, ok := pick(p, "worker", p.workers)
	if !ok {
		return
	}
	kind := api.SignalResume
	if p.yes("not to resume", 2) {
		kind = api.SignalKinds[p.d.draw("signal", len(api.SignalKinds))]
	}
	before := p.worker(k.ID)
	got, err := p.w.SignalWorker(p.ctx(), p.w.Owner, k.ID, kind)
	p.judge("signal "+string(kind), err)
	same := before.PendingSignal != nil && before.PendingSignal.Signal == kind
	if got.Changed == same || got.Worker.PendingSignal == nil || got.Worker.PendingSignal.Signal != kind {
		p.broken("with %+v pending, %s answered %+v", before.PendingSignal, kind, got)
	}
	if same != (before.PendingSignal != nil && before.PendingSignal.ID == got.Worker.PendingSignal.ID) {
		p.broken("signal %+v was replaced by %+v", before.PendingSignal, got.Worker.PendingSignal)
	}
	p.signals = append(p.signals, got.Worker.PendingSignal.ID)
}

// acknowledge acknowledges the pending signal of a worker, or another one.
func (p *play) acknowledge() {
	k, ok := pick(p, "worker", p.workers)
	if !ok {
		return
	}
	pending := p.worker(k.ID).PendingSignal
	if pending != nil && !p.yes("another", 4) {
		for range 1 + p.d.draw("again", 2) {
			_, err := p.w.AcknowledgeSignal(p.ctx(), k.Caller, k.ID, api.SignalAck{InstanceID: k.Instance, SignalID: pending.ID})
			p.judge("acknowledge", err)
		}
		if left := p.worker(k.ID).PendingSignal; left != nil {
			p.broken("after its acknowledgement %+v is pending", left)
		}
		return
	}
	id, ok := pick(p, "signal", p.signals)
	if !ok || (pending != nil && pending.ID == id) {
		return
	}
	acknowledged := p.row("SELECT 'x' FROM signals g WHERE id = ?1 AND worker_id = ?2 AND resolution = 'acknowledged' AND NOT EXISTS (SELECT 1 FROM signals n WHERE n.worker_id = g.worker_id AND n.id > g.id)", id, k.ID) != ""
	_, err := p.w.AcknowledgeSignal(p.ctx(), k.Caller, k.ID, api.SignalAck{InstanceID: k.Instance, SignalID: id})
	if r := p.judge("acknowledge another", err, api.CodeStaleSignal); (r == nil) != acknowledged {
		p.broken("acknowledging another signal answered %v; it was acknowledged before: %v", err, acknowledged)
	}
	if pending != nil && !slices.Contains(p.signals, pending.ID) {
		p.broken("a signal is pending that nobody sent")
	}
}

func (p *play) worker(id api.WorkerID) api.Worker {
	p.Helper()
	w, err := p.w.Engine.Worker(p.ctx(), p.w.Owner, id)
	if err != nil {
		p.broken("read worker %s: %v", id, err)
	}
	return w
}
