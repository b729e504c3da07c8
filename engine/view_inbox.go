package engine

import (
	"context"
	"fmt"
	"slices"
	"time"

	"stint/account"
	"stint/api"
	"stint/db"
	"stint/queries"
)

// How much the inbox holds of each kind, and how far back it looks. Every page counts it, so
// each look is short whatever the store holds.
const (
	inboxMost   = 50
	inboxFailed = 20   // agents with a failed session
	failedScan  = 1000 // unarchived sessions in error that are looked at, newest first
	failedRuns  = 20   // later runs of the same agent that may have made up for a failure
	failedFor   = 7 * 24 * time.Hour
)

// InboxView is the inbox's page.
type InboxView struct {
	View
	Items []api.InboxItem
}

// Inbox reads everything that waits for a person and that the caller may see: open questions
// (also of sessions that are parked or lost their worker), sessions that lost their worker and
// that none will take, sessions that failed, agents that failures have paused, webhooks and
// channels that were disabled, and what the watch found wrong. A limited number of each kind,
// newest first.
func (e *Engine) Inbox(ctx context.Context, c Caller) (out InboxView, err error) {
	out.View, err = e.readView(ctx, c, func(r *viewReader) error {
		out.Items, _, err = r.inbox(ctx)
		return err
	})
	return out, err
}

// NeedsYou counts the caller's inbox, by the same rules and with less to read.
func (e *Engine) NeedsYou(ctx context.Context, c Caller) (n int, err error) {
	_, err = e.readView(ctx, c, func(r *viewReader) error {
		asking, err := r.asking(ctx)
		if err != nil {
			return err
		}
		lost, err := r.lost(ctx)
		if err != nil {
			return err
		}
		failed, err := r.failed(ctx)
		if err != nil {
			return err
		}
		agents, hooks, err := r.stopped(ctx)
		if err != nil {
			return err
		}
		channels, err := r.silenced(ctx)
		if err != nil {
			return err
		}
		noticed, err := r.noticed(ctx)
		if err != nil {
			return err
		}
		findings, err := r.findings(ctx)
		n = len(asking) + len(lost) + len(failed) + len(agents) + len(hooks) + len(channels) + len(noticed) + len(findings)
		return err
	})
	return n, err
}

// inbox reads the items and also the views of their sessions.
func (r *viewReader) inbox(ctx context.Context) (items []api.InboxItem, sessions []SessionView, err error) {
	items = []api.InboxItem{}
	add := func(kind api.InboxKind, views []SessionView, since func(SessionView) api.Time, right account.Over) {
		for i := range views {
			s := views[i].Session
			items = append(items, api.InboxItem{Kind: kind, Since: since(views[i]), Session: &s, MayAct: r.c.CanWith(s, right)})
		}
		sessions = append(sessions, views...)
	}
	rows, err := r.asking(ctx)
	if err != nil {
		return nil, nil, err
	}
	asking, err := r.sessions(ctx, rows)
	if err != nil {
		return nil, nil, err
	}
	add(api.InboxPrompt, asking, func(v SessionView) api.Time { return v.Prompted.CreatedAt }, account.ToAnswer)
	stale, err := r.lost(ctx)
	if err != nil {
		return nil, nil, err
	}
	add(api.InboxStale, stale, func(v SessionView) api.Time { return v.QueuedAt }, account.ToRetry)
	if rows, err = r.failed(ctx); err != nil {
		return nil, nil, err
	}
	failed, err := r.sessions(ctx, rows)
	if err != nil {
		return nil, nil, err
	}
	add(api.InboxFailed, failed, func(v SessionView) api.Time { return v.EndedAt }, account.ToRetry)
	failing, hooks, err := r.stopped(ctx)
	if err != nil {
		return nil, nil, err
	}
	agents, err := r.shown(ctx, failing)
	if err != nil {
		return nil, nil, err
	}
	for i := range agents {
		items = append(items, api.InboxItem{Kind: api.InboxAgentPaused, Since: api.At(failing[i].PausedAt), Agent: &agents[i], MayAct: r.c.CanEditAgents()})
	}
	for i := range hooks {
		hook := toWebhook(&hooks[i])
		items = append(items, api.InboxItem{Kind: api.InboxWebhookDisabled, Webhook: &hook, MayAct: true})
	}
	silenced, err := r.silenced(ctx)
	if err != nil {
		return nil, nil, err
	}
	for i := range silenced {
		channel := toChannel(&silenced[i])
		items = append(items, api.InboxItem{Kind: api.InboxChannelDisabled, Channel: &channel, MayAct: true})
	}
	noticed, err := r.noticed(ctx)
	if err != nil {
		return nil, nil, err
	}
	for i := range noticed {
		w, err := r.e.showWorker(ctx, r.q, &noticed[i])
		if err != nil {
			return nil, nil, err
		}
		items = append(items, api.InboxItem{Kind: api.InboxWorkerNotice, Since: w.NoticesSince, Worker: &w, MayAct: true})
	}
	findings, err := r.findings(ctx)
	if err != nil {
		return nil, nil, err
	}
	for i := range findings {
		item, err := r.findingItem(ctx, &findings[i])
		if err != nil {
			return nil, nil, err
		}
		items = append(items, item)
	}
	return items, sessions, nil
}

// findings are what the watch found wrong and the caller may know, lost sessions excepted.
func (r *viewReader) findings(ctx context.Context) ([]queries.Finding, error) {
	rows, err := r.q.OpenFindings(ctx, queries.OpenFindingsParams{WorkspaceID: r.c.WorkspaceID, N: inboxMost})
	if err != nil {
		return nil, fmt.Errorf("read what is wrong: %w", err)
	}
	return slices.DeleteFunc(rows, func(f queries.Finding) bool { return !seesFinding(r.c, f.Kind) }), nil
}

func (r *viewReader) findingItem(ctx context.Context, f *queries.Finding) (api.InboxItem, error) {
	out := api.InboxItem{Kind: api.InboxKind(f.Kind), Since: api.At(f.Since), Title: f.Title, Detail: f.Detail, Mend: f.Mend, MayAct: true}
	if f.AgentID == 0 {
		return out, nil
	}
	a, err := r.agent(ctx, f.AgentID)
	if err != nil {
		return out, err
	}
	shown, err := r.shown(ctx, []agentRow{*a})
	if err != nil {
		return out, err
	}
	out.Agent, out.MayAct = &shown[0], r.c.CanEditAgents()
	return out, nil
}

func (r *viewReader) asking(ctx context.Context) ([]sessionRow, error) {
	rows, err := r.q.ViewAsking(ctx, queries.ViewAskingParams{WorkspaceID: r.c.WorkspaceID, Me: r.c.UserID, N: inboxMost})
	if err != nil {
		return nil, fmt.Errorf("read sessions with a question: %w", err)
	}
	return rows, nil
}

// lost are the stale sessions that no worker is about to take.
func (r *viewReader) lost(ctx context.Context) ([]SessionView, error) {
	stale, err := r.waiting(ctx, api.Stale, inboxMost)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(stale, func(v SessionView) bool { return !abandoned(&v.Session) }), nil
}

// failed are the newest failures of each agent that nothing has made up for since: no later
// session of the thread, no later complete run.
func (r *viewReader) failed(ctx context.Context) ([]sessionRow, error) {
	rows, err := r.q.ViewFailed(ctx, queries.ViewFailedParams{
		WorkspaceID: r.c.WorkspaceID, Me: r.c.UserID, Scan: failedScan, Since: r.now - failedFor.Microseconds(), N: inboxFailed,
	})
	if err != nil {
		return nil, fmt.Errorf("read sessions that failed: %w", err)
	}
	var left []sessionRow
	for i := range rows {
		s := &rows[i]
		newest, err := laterOf(ctx, r.q, s)
		if err != nil {
			return nil, err
		}
		if newest.ID != s.ID {
			continue
		}
		runs, err := r.runs(ctx, s.AgentID, failedRuns)
		if err != nil {
			return nil, err
		}
		mended := slices.ContainsFunc(runs, func(run RunView) bool { return run.ID > s.ID && run.Good() })
		if !mended {
			left = append(left, *s)
		}
	}
	return left, nil
}

// stopped are the agents and, for those who may look at them, the webhooks that
// failures have switched off.
func (r *viewReader) stopped(ctx context.Context) (agents []agentRow, hooks []queries.Webhook, err error) {
	agents, err = r.q.ViewFailingAgents(ctx, queries.ViewFailingAgentsParams{WorkspaceID: r.c.WorkspaceID, N: inboxMost})
	if err != nil {
		return nil, nil, fmt.Errorf("read paused agents: %w", err)
	}
	if !r.c.CanManageWebhooks() {
		return agents, nil, nil
	}
	hooks, err = r.q.ViewDisabledWebhooks(ctx, queries.ViewDisabledWebhooksParams{WorkspaceID: r.c.WorkspaceID, N: inboxMost})
	if err != nil {
		return nil, nil, fmt.Errorf("read disabled webhooks: %w", err)
	}
	return agents, hooks, nil
}

// silenced are the channels that failures have switched off: the caller's own, and those of
// the workspace for those who may look at them.
func (r *viewReader) silenced(ctx context.Context) ([]queries.Webhook, error) {
	if !r.c.CanHaveChannels() {
		return nil, nil
	}
	rows, err := r.q.ViewDisabledChannels(ctx, queries.ViewDisabledChannelsParams{
		WorkspaceID: r.c.WorkspaceID, Me: r.c.UserID, MayAll: db.Flag(r.c.CanManageWebhooks()), N: inboxMost,
	})
	if err != nil {
		return nil, fmt.Errorf("read disabled channels: %w", err)
	}
	return rows, nil
}

// noticed are the caller's workers that want something looked at.
func (r *viewReader) noticed(ctx context.Context) ([]workerRow, error) {
	rows, err := r.q.NoticedWorkers(ctx, queries.NoticedWorkersParams{WorkspaceID: r.c.WorkspaceID, Me: r.c.UserID, N: inboxMost})
	if err != nil {
		return nil, fmt.Errorf("read workers with notices: %w", err)
	}
	return slices.DeleteFunc(rows, func(w workerRow) bool { return !actsAs(r.c, &w) }), nil
}
