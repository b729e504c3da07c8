package engine

import (
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"stint/account"
	"stint/api"
	"stint/db"
	"stint/queries"
)

// doctor examines a workspace in one snapshot.
type doctor struct {
	*viewReader
	how Looking
	out *api.Examination
}

// workspace looks at the workspace of the reader.
func (d *doctor) workspace(ctx context.Context) error {
	for _, look := range []func(context.Context) error{d.schedules, d.waits, d.allWorkers, d.senders} {
		if err := look(ctx); err != nil {
			return err
		}
	}
	return nil
}

// otherWorkspaces adds what is wrong in the caller's other workspaces, as far as they may
// examine those too.
func (d *doctor) otherWorkspaces(ctx context.Context) error {
	all, err := d.q.WorkspacesOf(ctx, d.c.UserID)
	if err != nil {
		return fmt.Errorf("list the caller's workspaces: %w", err)
	}
	for _, ws := range all[:min(len(all), examined)] {
		c := d.c
		c.WorkspaceID, c.Workspace = ws.ID, ws.Slug
		if c.Role, err = account.RoleOf(ctx, d.q, ws.ID, c.UserID); err != nil {
			return err
		}
		if ws.ID == d.c.WorkspaceID || !c.Can(account.Examine) {
			continue
		}
		r := *d.viewReader
		r.c = c
		there := doctor{viewReader: &r, how: d.how, out: &api.Examination{}}
		if err := there.workspace(ctx); err != nil {
			return err
		}
		for _, check := range there.out.Checks {
			if !check.OK {
				check.Detail = fmt.Sprintf("In the workspace %s: %s", ws.Slug, check.Detail)
				check.Mend += fmt.Sprintf(" (with --workspace %s)", ws.Slug)
				d.out.Add(check)
			}
		}
	}
	return nil
}

// found adds the findings of a check, or that there are none among so many.
func (d *doctor) found(name string, findings []api.Check, n int, what string) {
	if len(findings) == 0 {
		findings = []api.Check{api.Fine(name, fmt.Sprintf("%d %s", n, what))}
	}
	d.out.Add(findings...)
}

// schedules looks for those that can't fire, and for those whose last slots did nothing.
func (d *doctor) schedules(ctx context.Context) error {
	agents, err := d.q.ListSchedules(ctx, queries.ListSchedulesParams{WorkspaceID: d.c.WorkspaceID, Before: math.MaxInt64, N: examined})
	if err != nil {
		return fmt.Errorf("list schedules: %w", err)
	}
	var broken, zones []api.Check
	named := map[string]bool{}
	for i := range agents {
		a := &agents[i]
		if a.Paused != 0 {
			continue
		}
		if _, err := time.LoadLocation(a.TimeZone); err != nil {
			zones = append(zones, api.Check{
				Name: api.CheckZones, Code: api.FoundZoneUnknown, Detail: fmt.Sprintf("Agent %s has the time zone %q, which isn't known here.", a.Slug, a.TimeZone),
				Mend: fmt.Sprintf("stint agent edit %s --tz Europe/Berlin", a.Slug),
			})
			continue
		}
		named[a.TimeZone] = true
		if check := unreadableSchedule(a); check != nil {
			broken = append(broken, *check)
			continue
		}
		silent, err := silentSchedule(ctx, d.q, a)
		if err != nil {
			return err
		}
		if silent != nil {
			broken = append(broken, *silent)
		}
	}
	d.found(api.CheckZones, zones, len(named), "are in use")
	d.found(api.CheckSchedules, broken, len(agents), "were looked at")
	return nil
}

// unserved are the gates that say that no worker takes the session as things are.
var unserved = map[string]bool{
	gateNoWorker: true, gateWorkerMode: true, gateWorkerOwner: true, gateWorkerType: true, gateWorkerLabels: true, gateWorkerOffline: true,
	gateWorkerSilent: true, gateWorkerPaused: true, gateWorkerStopped: true, gateWorkerDisk: true,
}

// waits looks for agents with work that nobody takes, and for sessions that wait too long.
func (d *doctor) waits(ctx context.Context) error {
	var long, alone []api.Check
	told, n := map[api.AgentID]bool{}, 0
	for _, status := range []api.Status{api.Queued, api.Pending, api.Stale} {
		views, err := d.waiting(ctx, status, examined)
		if err != nil {
			return err
		}
		n += len(views)
		for i := range views {
			v := &views[i]
			since := v.CreatedAt.Time
			if v.NotBefore.After(since) {
				since = v.NotBefore.Time
			}
			waited := time.UnixMicro(d.now).Sub(since)
			if v.WaitingFor == nil || v.Prompted != nil {
				continue
			}
			switch {
			case unserved[v.WaitingFor.Code]:
				if !d.how.Stopped && waited >= servedWithin && !told[v.AgentID] {
					told[v.AgentID] = true
					alone = append(alone, api.Check{
						Name: api.CheckAgents, Code: api.FoundNoWorker, Detail: fmt.Sprintf("Work of agent %s waits and nobody takes it. %s", v.AgentSlug, v.WaitingFor.Sentence),
						Mend: mendUnserved(v.AgentSlug),
					})
				}
			case waited >= waitsLong:
				long = append(long, api.Check{
					Name: api.CheckSessions, Code: api.FoundSessionWaits, Detail: fmt.Sprintf("Session %s of agent %s has waited since %s. %s", v.ID, v.AgentSlug, clock(db.Micros(since)), v.WaitingFor.Sentence),
					Mend: fmt.Sprintf("stint show %s, and if it isn't needed any more: stint cancel %s", v.ID, v.ID),
				})
			}
		}
	}
	if d.how.Stopped {
		d.out.Add(api.Fine(api.CheckAgents, "not looked at: no server runs"))
	} else {
		d.found(api.CheckAgents, alone, n, "sessions wait")
	}
	d.found(api.CheckSessions, long, n, "wait, none too long")
	return nil
}

// reportsStuck is how long a worker gets none of its reports taken before that is a finding.
const reportsStuck = 5 * time.Minute

// allWorkers looks for workers that fell silent and for what they report of themselves.
func (d *doctor) allWorkers(ctx context.Context) error {
	if d.how.Stopped {
		d.out.Add(api.Fine(api.CheckWorkers, "not looked at: no server runs"))
		return nil
	}
	rows, err := d.workerRows(ctx, 0)
	if err != nil {
		return err
	}
	rows = slices.DeleteFunc(rows, func(w workerRow) bool { return w.State == api.Offline })
	var findings []api.Check
	for i := range rows {
		w := &rows[i]
		if w.State == api.WorkerStale {
			findings = append(findings, api.Check{
				Name: api.CheckWorkers, Code: api.FoundWorkerSilent, Detail: fmt.Sprintf("Worker %s has not been heard of since %s; it may be frozen or without a network.", w.ID, clock(w.LastBeatAt)),
				Mend: "look at its machine and log, and start it again there: stint worker run",
			})
		}
		if since := api.At(w.UnsentSince); w.Unsent > 0 && d.e.Now().Sub(since.Time) >= reportsStuck {
			findings = append(findings, api.Check{
				Name: api.CheckWorkers, Code: api.FoundReportsUnsent, Detail: fmt.Sprintf("Worker %s holds %d reports of its sessions, none of which was taken since %s.", w.ID, w.Unsent, clock(w.UnsentSince)),
				Mend: "look at its log, and at the disks of both machines; the reports stay on the worker's disk until they are taken",
			})
		}
		shown, err := d.e.showWorker(ctx, d.q, w)
		if err != nil {
			return err
		}
		for _, notice := range shown.Notices {
			findings = append(findings, api.Check{
				Name: api.CheckWorkers, Code: api.FoundWorkerNotice, Detail: fmt.Sprintf("Worker %s of agent %s says: %s", w.ID, shown.AgentSlug, notice.Text),
				Mend: "on its machine: stint worker doctor " + shown.AgentSlug,
			})
		}
	}
	d.found(api.CheckWorkers, findings, len(rows), "are there")
	return nil
}

// sender is how a webhook or a channel is spoken of.
type sender struct {
	check, disabled, fails string // the check and its codes
	word                   string
	mended, log            string // commands, before the id
}

var (
	ofWebhooks = sender{api.CheckWebhooks, api.FoundWebhookDisabled, api.FoundWebhookFails, "Webhook", "mend the other program, then: stint webhook edit %s --enable", "see what the other program answers: stint webhook deliveries %s"}
	ofChannels = sender{api.CheckChannels, api.FoundChannelDisabled, api.FoundChannelFails, "Channel", "mend its address or its service, then: stint notify edit %s --enable", "see what its service answers: stint notify log %s"}
)

// senders looks for webhooks, and for channels of the caller's and the workspace's, that failures
// have switched off or that fail now. Their addresses aren't named: they may be secret.
func (d *doctor) senders(ctx context.Context) error {
	if !d.c.CanManageWebhooks() {
		return nil
	}
	hooks, err := d.q.ListWebhooks(ctx, queries.ListWebhooksParams{WorkspaceID: d.c.WorkspaceID, Before: math.MaxInt64, N: examined})
	if err != nil {
		return fmt.Errorf("list webhooks: %w", err)
	}
	if err := d.sent(ctx, ofWebhooks, hooks); err != nil {
		return err
	}
	channels, err := d.q.ListChannels(ctx, queries.ListChannelsParams{WorkspaceID: d.c.WorkspaceID, Before: math.MaxInt64, Me: d.c.UserID, MayAll: 1, N: examined})
	if err != nil {
		return fmt.Errorf("list channels: %w", err)
	}
	return d.sent(ctx, ofChannels, channels)
}

func (d *doctor) sent(ctx context.Context, of sender, all []queries.Webhook) error {
	var findings []api.Check
	for i := range all {
		h := &all[i]
		id := h.ID.String()
		if h.Scope != "" {
			id = api.ChannelID(h.ID).String()
		}
		if h.DisabledReason != "" && h.Enabled == 0 {
			findings = append(findings, api.Check{
				Name: of.check, Code: of.disabled, Detail: fmt.Sprintf("%s %s sends nothing any more: %s", of.word, id, fullStop(h.DisabledReason)),
				Mend: fmt.Sprintf(of.mended, id),
			})
			continue
		}
		if h.Enabled == 0 {
			continue
		}
		tries, err := d.failing(ctx, h.ID)
		if err != nil {
			return err
		}
		if tries > 0 {
			findings = append(findings, api.Check{
				Name: of.check, Code: of.fails, Detail: fmt.Sprintf("%s %s fails: its last message came to nothing after %d tries.", of.word, id, tries),
				Mend: fmt.Sprintf(of.log, id),
			})
		}
	}
	d.found(of.check, findings, len(all), "were looked at")
	return nil
}

// failing is how often the last message that was tried has come to nothing, 0 when it was
// delivered.
func (d *doctor) failing(ctx context.Context, id api.WebhookID) (tries int64, err error) {
	rows, err := d.q.ListDeliveries(ctx, queries.ListDeliveriesParams{WebhookID: id, Before: math.MaxInt64, N: 20})
	if err != nil {
		return 0, fmt.Errorf("list what %s sent: %w", id, err)
	}
	rows = slices.DeleteFunc(rows, func(r queries.Delivery) bool {
		return r.TriedAt == 0 || r.State == string(api.DeliveryWaiting) && r.Problem == ""
	})
	if len(rows) == 0 {
		return 0, nil
	}
	last := slices.MaxFunc(rows, func(a, b queries.Delivery) int { return int(a.TriedAt - b.TriedAt) })
	if last.State == string(api.DeliveryDelivered) {
		return 0, nil
	}
	return last.Tries, nil
}

// fullStop ends a text with a full stop.
func fullStop(text string) string {
	if text == "" || text[len(text)-1] == '.' {
		return text
	}
	return text + "."
}
