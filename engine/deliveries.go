package engine

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json"

	"stint/api"
	"stint/db"
	"stint/queries"
)

const (
	maxAnswer   = 1 << 10 // bytes of an answer that are kept
	testMessage = "stint.test"
)

// messageTypes are what webhooks can send: the types of events, prefixed with the noun that
// they are about.
var messageTypes = func() []string {
	all := []string{testMessage}
	for _, t := range api.EventTypes {
		all = append(all, messageType(t))
	}
	slices.Sort(all)
	return all
}()

// messageType names an event for other programs: what happens to sessions is reported as an
// agent's, as agent.session_queued is.
func messageType(event string) string {
	if noun, _, _ := strings.Cut(event, "_"); noun == "worker" || noun == "webhook" || noun == "channel" || noun == "agent" || noun == "task" || noun == "finding" {
		return noun + "." + event[len(noun)+1:]
	}
	return "agent." + event
}

// eventOf is the type of event that a type of message is about.
var eventOf = func() map[string]string {
	all := map[string]string{}
	for _, t := range api.EventTypes {
		all[messageType(t)] = t
	}
	return all
}()

// cloudEvent is a message's body (CloudEvents 1.0, JSON format).
type cloudEvent struct {
	SpecVersion     string        `json:"specversion"`
	ID              string        `json:"id"`
	Source          string        `json:"source"`
	Type            string        `json:"type"`
	Subject         string        `json:"subject,omitzero"`
	Time            api.Time      `json:"time"`
	DataContentType string        `json:"datacontenttype"`
	Data            api.EventData `json:"data"`
}

func message(workspace api.WorkspaceID, ev api.Event, kind, id string) cloudEvent {
	data := api.EventData{"seq": ev.Seq, "actor": ev.Actor}
	if ev.AgentID != 0 {
		data["agentId"] = ev.AgentID.String()
	}
	subject := ev.AgentID.String()
	if ev.SessionID != 0 {
		subject = ev.SessionID.String()
		data["sessionId"] = subject
	}
	if ev.TaskID != 0 {
		subject = ev.TaskID.String()
		data["taskId"] = subject
	}
	for k, v := range ev.Data {
		data[k] = v
	}
	return cloudEvent{
		SpecVersion: "1.0", ID: id, Source: "/api/v1/workspaces/" + workspace.String(), Type: kind, Subject: subject,
		Time: ev.At, DataContentType: "application/json", Data: data,
	}
}

// ExpandWebhooks makes deliveries of the events that webhooks haven't processed yet. How far a
// webhook has read moves in the transaction that makes its deliveries, so that none is lost
// and none is made twice.
func (e *Engine) ExpandWebhooks(ctx context.Context) error {
	for {
		var behind []api.WebhookID
		err := e.store.ReadTimer(ctx, func(tx *db.ReadTx) error {
			newest, err := tx.Counter(ctx, "event")
			if err != nil {
				return err
			}
			behind, err = tx.WebhooksBehind(ctx, queries.WebhooksBehindParams{Newest: newest, N: batch})
			return err
		})
		if err != nil || len(behind) == 0 {
			return err
		}
		for _, id := range behind {
			if err := e.write(ctx, func(tx *db.Tx) error { return e.expand(tx, id) }); err != nil {
				return fmt.Errorf("make the deliveries of webhook %s: %w", id, err)
			}
		}
	}
}

func (e *Engine) expand(tx *db.Tx, id api.WebhookID) error {
	w, err := tx.Webhook(tx.Context(), id)
	if db.None(err) || (err == nil && w.Enabled == 0) {
		return nil
	}
	if err != nil {
		return err
	}
	if gone, err := e.lostReader(tx, &w); err != nil || gone {
		return err
	}
	newest, err := tx.Counter(tx.Context(), "event")
	if err != nil {
		return err
	}
	visible, err := readerOf(tx, &w)
	if err != nil {
		return err
	}
	rows, err := tx.EventsAfter(tx.Context(), queries.EventsAfterParams{After: w.AfterSeq, WorkspaceID: w.WorkspaceID, Me: visible.caller.UserID, N: batch})
	if err != nil {
		return err
	}
	workers := freedAgents{last: map[api.AgentID]api.Event{}, announced: map[api.SessionID]bool{}}
	for _, r := range rows {
		ev, seen, err := visible.shown(tx.Context(), r.Event)
		if err != nil {
			return err
		}
		if !seen {
			continue
		}
		if w.Scope != "" {
			if err := e.tellEvent(tx, &w, ev); err != nil {
				return err
			}
			continue
		}
		if err := e.deliverEvent(tx, &w, ev); err != nil {
			return err
		}
		workers.note(ev)
	}
	if err := e.deliverReady(tx, &w, workers); err != nil {
		return err
	}
	last := newest
	if n := len(rows); n > 0 {
		// The counter lags behind the events of the current transaction.
		last = max(last, rows[n-1].Event.Seq)
		if n == batch {
			last = rows[n-1].Event.Seq
		}
	}
	return db.One(tx.MoveWebhook(tx.Context(), queries.MoveWebhookParams{AfterSeq: max(last, w.AfterSeq), ID: id, FromSeq: w.AfterSeq}))
}

// deliverEvent makes the deliveries of one event. One that says that a session can be claimed
// from now on is also sent as agent.session_queued, whatever its own type: created and queued
// in one step, given back, lost by its worker.
func (e *Engine) deliverEvent(tx *db.Tx, w *queries.Webhook, ev api.Event) error {
	id := "evt-" + strconv.FormatInt(ev.Seq, 10)
	if err := e.deliver(tx, w, message(w.WorkspaceID, ev, messageType(ev.Type), id)); err != nil {
		return err
	}
	if ev.Type != api.EventSessionQueued && saysClaimable(ev) {
		return e.deliver(tx, w, message(w.WorkspaceID, ev, messageType(api.EventSessionQueued), id+"-queued"))
	}
	return nil
}

// saysClaimable reports whether a session can be claimed since an event, if that depends only
// on the session.
func saysClaimable(ev api.Event) bool {
	to := ev.Data["to"]
	return ev.Type == api.EventSessionQueued || to == string(api.Queued) || to == string(api.Stale) && ev.Data["held"] == nil
}

// freedAgents are the agents that have a free place since some events, by the last of these,
// and the sessions that those events report as claimable themselves.
type freedAgents struct {
	last      map[api.AgentID]api.Event
	announced map[api.SessionID]bool
}

func (p freedAgents) note(ev api.Event) {
	if saysClaimable(ev) {
		p.announced[ev.SessionID] = true
	}
	switch ev.Type {
	case api.EventSessionError, api.EventSessionCancelled:
		if from := ev.Data["from"]; from != string(api.Active) && from != string(api.AwaitingInput) {
			return // it never had a place
		}
		p.last[ev.AgentID] = ev
	case api.EventClaimDrained, api.EventSessionComplete, api.EventSessionReleased:
		p.last[ev.AgentID] = ev
	}
}

// addFolders adds the agents whose workers share a folder with one that has a free place: the
// folder may be free too.
func (p freedAgents) addFolders(tx *db.Tx) error {
	for agent, ev := range maps.Clone(p.last) {
		others, err := tx.AgentsInFoldersOf(tx.Context(), agent)
		if err != nil {
			return fmt.Errorf("read who shares a folder with agent %s: %w", agent, err)
		}
		for _, other := range others {
			if _, known := p.last[other]; !known {
				p.last[other] = ev
			}
		}
	}
	return nil
}

// deliverReady reports sessions that can be claimed because their agent has a free place,
// unless a worker has taken them meanwhile.
func (e *Engine) deliverReady(tx *db.Tx, w *queries.Webhook, freed freedAgents) error {
	kind := messageType(api.EventSessionQueued)
	if len(w.Types) > 0 && !slices.Contains(w.Types, kind) {
		return nil
	}
	if err := freed.addFolders(tx); err != nil {
		return err
	}
	for agent, ev := range freed.last {
		a, err := agentEvenDeleted(tx.Context(), tx, agent)
		if err != nil {
			return fmt.Errorf("read agent %s: %w", agent, err)
		}
		gate := gateAgentFull
		if agent != ev.AgentID {
			gate = gateFolderBusy
		}
		ready, err := readyOf(tx, &a, db.Micros(tx.Now))
		if err != nil {
			return err
		}
		for _, s := range ready {
			if freed.announced[s.ID] || s.Mode == api.Local && s.OwnerUserID != w.CreatedBy {
				continue
			}
			about := api.Event{Seq: ev.Seq, At: ev.At, Actor: api.ActorSystem, AgentID: agent, SessionID: s.ID, Data: api.EventData{"reason": gate}}
			id := "evt-" + strconv.FormatInt(ev.Seq, 10) + "-queued-" + s.ID.String()
			if err := e.deliver(tx, w, message(w.WorkspaceID, about, kind, id)); err != nil {
				return err
			}
		}
	}
	return nil
}

func (e *Engine) deliver(tx *db.Tx, w *queries.Webhook, m cloudEvent) error {
	if len(w.Types) > 0 && !slices.Contains(w.Types, m.Type) && m.Type != testMessage {
		return nil
	}
	body, err := json.Marshal(m, json.Deterministic(true))
	if err != nil {
		return fmt.Errorf("write a message: %w", err)
	}
	return e.putDelivery(tx, queries.Delivery{WebhookID: w.ID, Message: m.ID, Type: m.Type, Body: string(body)})
}

func (e *Engine) putDelivery(tx *db.Tx, d queries.Delivery) error {
	if d.ID == 0 {
		d.ID = api.DeliveryID(tx.NewID())
	}
	now := db.Micros(tx.Now)
	err := tx.InsertDelivery(tx.Context(), queries.InsertDeliveryParams{
		ID: d.ID, WebhookID: d.WebhookID, Message: d.Message, Type: d.Type, Body: d.Body, NextAt: max(now, d.NextAt), AgainOf: d.AgainOf, CreatedAt: now,
		Cause: d.Cause, Held: d.Held,
	})
	if err != nil {
		return fmt.Errorf("insert a delivery of webhook %s: %w", d.WebhookID, err)
	}
	tx.AfterCommit(e.deliverable.Wake)
	return nil
}

// NextDelivery returns the first instant later than now at which a delivery is due; the zero
// time when none waits. now is what [Engine.TakeDeliveries] was given.
func (e *Engine) NextDelivery(ctx context.Context, now time.Time) (next time.Time, err error) {
	err = e.store.ReadTimer(ctx, func(tx *db.ReadTx) error {
		at, err := tx.NextDelivery(ctx, db.Micros(now))
		if db.None(err) {
			return nil
		}
		next = time.UnixMicro(at)
		return err
	})
	return next, err
}

// Deliverable returns a channel that is closed when there may be something to
// deliver. Take it before you look.
func (e *Engine) Deliverable() <-chan struct{} { return e.deliverable.Wait() }
