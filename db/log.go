package db

import (
	"fmt"
	"maps"

	"stint/api"
	"stint/queries"
)

// Event is something that happened, as the log holds it. What it is of is in one
// of the ids: a session, an agent or a task of a workspace, or a workspace.
type Event struct {
	Workspace api.WorkspaceID
	Agent     api.AgentID
	Session   api.SessionID
	Task      api.TaskID
	Actor     string
	Type      string
	Data      api.EventData
}

// Log appends an event in the transaction that makes the change, and wakes those
// who wait for [Store.Changed] after its commit. From and Via are added to the data.
func (tx *Tx) Log(ev Event) error {
	_, err := tx.LogNumbered(ev)
	return err
}

// LogNumbered is Log and answers the event's number.
func (tx *Tx) LogNumbered(ev Event) (int64, error) {
	data := ""
	if all := tx.whence(ev.Data); len(all) > 0 {
		b, err := AppendJSON(make([]byte, 0, 256), all)
		if err != nil {
			return 0, fmt.Errorf("write the data of event %s: %w", ev.Type, err)
		}
		data = string(b)
	}
	seq := tx.NextEvent()
	h := &tx.w.held
	if h.events = append(h.events, queries.Event{
		Seq: seq, WorkspaceID: ev.Workspace, AgentID: ev.Agent, SessionID: ev.Session, TaskID: ev.Task,
		At: Micros(tx.Now), Actor: ev.Actor, Type: ev.Type, Data: data,
	}); len(h.events) == maxHeld {
		if err := tx.w.flush(); err != nil {
			return 0, fmt.Errorf("append event %s: %w", ev.Type, err)
		}
	}
	tx.w.guard.dirty = true
	tx.AfterCommit(tx.w.wakeReaders)
	return seq, nil
}

// What the data of an event says of where its call came from, if not from here.
const (
	DataFrom = "address"
	DataVia  = "via"
)

func (tx *Tx) whence(data api.EventData) api.EventData {
	if tx.From == "" && tx.Via == "" {
		return data
	}
	out := maps.Clone(data)
	if out == nil {
		out = api.EventData{}
	}
	if tx.From != "" {
		out[DataFrom] = tx.From
	}
	if tx.Via != "" {
		out[DataVia] = tx.Via
	}
	return out
}
