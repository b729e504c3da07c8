package engine

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"stint/api"
	"stint/db"
	"stint/queries"
)

// View says when a page's content was true: the instant, and the newest event that is already
// in it. A live page continues from there (contract 9.3).
type View struct {
	At  time.Time
	Seq int64
}

// Stretch is a time that a session spent in one status. A zero To means that it still lasts.
type Stretch struct {
	Status api.Status
	From   time.Time
	To     time.Time
}

// SessionView is a session with what else a page shows of it.
type SessionView struct {
	api.Session
	Stretches   []Stretch
	Worker      string        // name of the worker that holds or last held the claim
	WorkerShown bool          // the reader may open that worker's page
	By          string        // name of the person who triggered it, "" for the caller
	LeaseLength time.Duration // from the last renewal to the end; 0 without a live claim
	LastLine    string        // the newest output, of running sessions
	Unlanded    bool          // it has ended, and its changes wait for somebody
}

// RunView is a past or present run of an agent, as a bar of runs shows it.
type RunView struct {
	ID        api.SessionID
	Status    api.Status
	Title     string
	CreatedAt time.Time
	StartedAt time.Time
	EndedAt   time.Time
	Stopped   bool // a person ended it before its work was done

	Mark string // why it is no plain success though complete, in a word or two; "" = it is, or isn't complete
}

// Good reports whether the run did its work.
func (r RunView) Good() bool { return r.Status == api.Complete && !r.Stopped && r.Mark == "" }

// viewReader reads one page in one snapshot; it reads each agent, worker and
// user once. It belongs to one goroutine.
type viewReader struct {
	e       *Engine
	q       queries.Querier
	c       Caller
	now     int64
	agents  map[api.AgentID]*agentRow
	workers map[api.WorkerID]*workerRow
	users   map[api.UserID]string
}

// readView runs fn on one snapshot and says when that was.
func (e *Engine) readView(ctx context.Context, c Caller, fn func(r *viewReader) error) (View, error) {
	return e.viewBy(ctx, c, e.store.Read, fn)
}

// viewBy is readView by a way of reading, such as [store.Search].
func (e *Engine) viewBy(ctx context.Context, c Caller, read func(context.Context, func(*db.ReadTx) error) error, fn func(r *viewReader) error) (View, error) {
	var v View
	err := read(ctx, func(tx *db.ReadTx) error {
		seq, err := tx.Counter(ctx, "event")
		if err != nil {
			return fmt.Errorf("read the newest event: %w", err)
		}
		v = View{At: tx.Now, Seq: seq}
		return fn(&viewReader{
			e: e, q: tx, c: c, now: db.Micros(tx.Now),
			agents: map[api.AgentID]*agentRow{}, workers: map[api.WorkerID]*workerRow{}, users: map[api.UserID]string{},
		})
	})
	return v, err
}

func (r *viewReader) agent(ctx context.Context, id api.AgentID) (*agentRow, error) {
	if a := r.agents[id]; a != nil {
		return a, nil
	}
	a, err := agentEvenDeleted(ctx, r.q, id)
	if err != nil {
		return nil, fmt.Errorf("read agent %s: %w", id, err)
	}
	r.agents[id] = &a
	return &a, nil
}

// shown makes agents' outside form.
func (r *viewReader) shown(ctx context.Context, rows []agentRow) ([]api.Agent, error) {
	out := make([]api.Agent, 0, len(rows))
	for i := range rows {
		a, err := r.e.presentAgent(ctx, r.q, &rows[i])
		if err != nil {
			return nil, fmt.Errorf("present agent %s: %w", rows[i].Slug, err)
		}
		out = append(out, a)
	}
	return out, nil
}

// worker reads a worker once; without an id it is one without a name.
func (r *viewReader) worker(ctx context.Context, id api.WorkerID) (*workerRow, error) {
	if id == 0 {
		return &workerRow{}, nil
	}
	if w, ok := r.workers[id]; ok {
		return w, nil
	}
	w, err := workerEvenDeleted(ctx, r.q, id)
	if err != nil {
		return nil, fmt.Errorf("read worker %s: %w", id, err)
	}
	r.workers[id] = &w
	return &w, nil
}

func (r *viewReader) user(ctx context.Context, id api.UserID) (string, error) {
	if id == 0 || id == r.c.UserID {
		return "", nil
	}
	if name, ok := r.users[id]; ok {
		return name, nil
	}
	u, err := r.q.User(ctx, id)
	if err != nil {
		return "", fmt.Errorf("read user %s: %w", id, err)
	}
	r.users[id] = u.Name
	return u.Name, nil
}

// session makes a row's view.
func (r *viewReader) session(ctx context.Context, s *sessionRow) (SessionView, error) {
	a, err := r.agent(ctx, s.AgentID)
	if err != nil {
		return SessionView{}, err
	}
	out := SessionView{}
	if out.Session, err = r.e.present(ctx, r.q, s, a, r.now); err != nil {
		return out, err
	}
	w, err := r.worker(ctx, s.WorkerID)
	if err != nil {
		return out, err
	}
	out.Worker, out.WorkerShown = w.Name, w.DeletedAt == 0 && seesWorker(r.c, w)
	if out.By, err = r.user(ctx, s.TriggeredByUserID); err != nil {
		return out, err
	}
	if out.Stretches, err = r.stretches(ctx, s); err != nil {
		return out, err
	}
	if out.Unlanded, err = r.waits(ctx, s); err != nil {
		return out, err
	}
	if s.ClaimID != 0 {
		c, err := claimOf(ctx, r.q, s)
		if err != nil {
			return out, fmt.Errorf("read the claim of session %s: %w", s.ID, err)
		}
		out.LeaseLength = time.Duration(c.ExpiresAt-c.RenewedAt) * time.Microsecond
	}
	return out, nil
}

func (r *viewReader) sessions(ctx context.Context, rows []sessionRow) ([]SessionView, error) {
	out := make([]SessionView, 0, len(rows))
	for i := range rows {
		v, err := r.session(ctx, &rows[i])
		if err != nil {
			return nil, err
		}
		out = append(out, v)
	}
	return out, nil
}

// maxTurns bounds how many status changes of one session are drawn.
const maxTurns = 100

// stretches derives from the events where the time of a session went.
func (r *viewReader) stretches(ctx context.Context, s *sessionRow) ([]Stretch, error) {
	rows, err := r.q.ViewTurns(ctx, queries.ViewTurnsParams{SessionID: s.ID, N: maxTurns})
	if err != nil {
		return nil, fmt.Errorf("read the course of session %s: %w", s.ID, err)
	}
	var out []Stretch
	for _, row := range rows {
		var data struct {
			To api.Status `json:"to"`
		}
		if json.Unmarshal([]byte(row.Data), &data) != nil || data.To == "" {
			continue
		}
		at := api.At(row.At).Time
		if n := len(out); n > 0 {
			out[n-1].To = at
		}
		if data.To.Terminal() {
			return out, nil
		}
		out = append(out, Stretch{Status: data.To, From: at})
	}
	return out, nil
}

// lastLine is the newest output of a session, whole as it was stored.
func (r *viewReader) lastLine(ctx context.Context, id api.SessionID) (string, error) {
	rows, err := r.q.ItemsBefore(ctx, queries.ItemsBeforeParams{SessionID: id, Before: maxSeq, N: 5})
	if err != nil {
		return "", fmt.Errorf("read the newest output of session %s: %w", id, err)
	}
	for _, row := range rows {
		if row.Kind == api.ItemText {
			return row.Text, nil
		}
	}
	return "", nil
}

const maxSeq = 1<<63 - 1

func (r *viewReader) runs(ctx context.Context, agent api.AgentID, n int64) ([]RunView, error) {
	rows, err := r.q.ViewRuns(ctx, queries.ViewRunsParams{AgentID: agent, Me: r.c.UserID, N: n})
	if err != nil {
		return nil, fmt.Errorf("read the runs of agent %s: %w", agent, err)
	}
	out := make([]RunView, 0, len(rows))
	for i := len(rows) - 1; i >= 0; i-- {
		row := rows[i]
		out = append(out, RunView{
			ID: row.ID, Status: row.Status, Title: row.Title, CreatedAt: api.At(row.CreatedAt).Time,
			StartedAt: api.At(row.StartedAt).Time, EndedAt: api.At(row.EndedAt).Time, Stopped: row.Outcome == api.OutcomeStopped,
			Mark: api.MarkWord(row.Outcome),
		})
	}
	return out, nil
}
