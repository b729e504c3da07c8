package engine_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"stint/api"
	"stint/db"
	"stint/engine"
	"stint/engine/enginetest"
	"stint/queries"
)

func TestEvents_EachTypeSaysWhatItIsAbout(t *testing.T) {
	for _, kind := range engine.EventTypes() {
		if !engine.Classified(kind) {
			t.Errorf("events of type %s are about nothing: say about what, so that it is known who may be told", kind)
		}
	}
}

// gallery is one thing of each kind and owner, and who looks at it.
type gallery struct {
	w       *enginetest.Fixture
	viewers map[string]engine.Caller
	shown   []exhibit
}

// exhibit is a thing that events are about.
type exhibit struct {
	name    string
	types   []string
	agent   api.AgentID
	session api.SessionID
	data    string
	listed  func(c engine.Caller) bool // whether the list of its kind shows it
	private bool                       // events of it aren't in the stream, for anybody
}

func typesOf(nouns ...string) (out []string) {
	for _, kind := range engine.EventTypes() {
		if slices.ContainsFunc(nouns, func(noun string) bool { return strings.HasPrefix(kind, noun) }) {
			out = append(out, kind)
		}
	}
	return out
}

func newGallery(t *testing.T) *gallery {
	t.Helper()
	w := enginetest.Open(t) // without the check at its end: the log contains what never happened
	g := &gallery{w: w, viewers: map[string]engine.Caller{"owner": w.Owner}}
	for name, role := range map[string]api.Role{"second owner": api.Owner, "admin": api.Admin, "ben": api.Member, "member": api.Member, "viewer": api.Viewer} {
		c := w.Owner
		c.UserID, c.Name, c.Role = w.User(name).UserID, name, role
		err := w.Store.Write(t.Context(), func(tx *db.Tx) error {
			return tx.InsertMember(context.Background(), queries.InsertMemberParams{WorkspaceID: c.WorkspaceID, UserID: c.UserID, Role: role, CreatedAt: tx.Now.UnixMicro()})
		})
		if err != nil {
			t.Fatal(err)
		}
		g.viewers[name] = c
	}
	for _, name := range []string{"owner", "admin", "ben"} {
		key, program := g.viewers[name], g.viewers[name]
		key.KeyID, key.Scopes = 1, []api.Scope{api.ScopeRead}
		program.Client = "registered-itself"
		g.viewers[name+"'s key"], g.viewers[name+"'s program"] = key, program
	}
	stranger := w.Owner
	stranger.WorkspaceID, stranger.UserID = w.Owner.WorkspaceID+1, w.User("stranger").UserID
	g.viewers["stranger"] = stranger
	g.hang(t)
	return g
}

func (g *gallery) hang(t *testing.T) {
	w, ben := g.w, g.viewers["ben"]
	here := func(c engine.Caller) bool { return c.WorkspaceID == w.Owner.WorkspaceID }
	cloud := w.Agent(func(in *api.AgentInput) { in.Mode = api.Cloud })
	local := w.Agent(func(in *api.AgentInput) { in.Mode = api.Local })
	admin := g.viewers["admin"]
	theirs := must[api.Agent](t)(w.CreateAgent(t.Context(), admin, func() api.AgentInput {
		in := engine.DefaultConfig().DefaultAgent()
		in.Slug, in.Mode, in.Prompt, in.Run.Command = "theirs", api.Local, "do it", []string{"true"}
		in.RunsAsUserID = admin.UserID
		return in
	}()))
	g.show(exhibit{name: "an agent", types: typesOf("agent_", "slot_", "slots_", "schedule_"), agent: cloud.ID, listed: func(c engine.Caller) bool {
		_, err := w.Engine.Agent(t.Context(), c, cloud.ID.String())
		return err == nil
	}})
	g.show(exhibit{name: "the workspace", types: typesOf("workspace_", "coordinator_outage", "clock_", "backup_restored"), listed: here})
	g.show(exhibit{name: "a member", types: typesOf("member_joined", "member_role", "member_removed"), listed: here})
	g.sessions(t, cloud, w.Owner, "a cloud session")
	g.sessions(t, local, ben, "ben's local session")
	g.worker(t, cloud, w.Owner, "a cloud worker")
	g.worker(t, local, w.Owner, "the owner's local worker")
	g.worker(t, local, ben, "ben's local worker")
	for _, who := range []string{"owner", "ben"} {
		k := must[api.Key](t)(w.CreateKey(t.Context(), g.viewers[who], api.KeyInput{Name: who, Scopes: api.Scopes}))
		g.show(exhibit{name: who + "'s API key", types: typesOf("key_"), data: fmt.Sprintf(`{"key":%q}`, k.ID), listed: func(c engine.Caller) bool {
			list, err := w.Keys(t.Context(), c, api.Page{Limit: 100})
			return err == nil && slices.ContainsFunc(list.Items, func(one api.Key) bool { return one.ID == k.ID })
		}})
	}
	i := must[api.Invitation](t)(w.Invite(t.Context(), w.Owner, api.InvitationInput{Role: api.Viewer, Note: "for a friend"}))
	g.show(exhibit{name: "an invitation", types: typesOf("member_invited", "invitation_"), data: fmt.Sprintf(`{"invitation":%q,"note":"for a friend"}`, i.ID), listed: func(c engine.Caller) bool {
		list, err := w.Invitations(t.Context(), c, api.Page{Limit: 100})
		return err == nil && len(list.Items) == 1
	}})
	hook := webhookOf(t, w, w.Owner, "https://owner.example/x")
	webhookOf(t, w, g.viewers["admin"], "https://admin.example/x")
	g.show(exhibit{name: "a webhook", types: typesOf("webhook_"), data: fmt.Sprintf(`{"webhook":%q}`, hook.ID), listed: func(c engine.Caller) bool {
		list, err := w.Webhooks(t.Context(), c, api.Page{Limit: 100})
		return err == nil && slices.ContainsFunc(list.Items, func(one api.Webhook) bool { return one.ID == hook.ID })
	}})
	for name, by := range map[string]struct {
		c     engine.Caller
		scope api.ChannelScope
	}{"ben's channel": {ben, api.ScopePerson}, "the workspace's channel": {admin, api.ScopeWorkspace}} {
		in := engine.DefaultChannel()
		in.URL, in.Scope = "ntfy://ntfy.sh/topic", by.scope
		ch := must[api.Channel](t)(w.CreateChannel(t.Context(), by.c, in))
		g.show(exhibit{name: name, types: typesOf("channel_"), data: fmt.Sprintf(`{"channel":%q}`, ch.ID), listed: func(c engine.Caller) bool {
			list, err := w.Channels(t.Context(), c, api.Page{Limit: 100})
			return err == nil && slices.ContainsFunc(list.Items, func(one api.Channel) bool { return one.ID == ch.ID })
		}})
	}
	for name, by := range map[string]struct {
		a api.Agent
		c engine.Caller
	}{"a cloud agent's trigger URL": {cloud, w.Owner}, "the admin's local agent's trigger URL": {theirs, admin}} {
		u := must[api.TriggerURL](t)(w.OpenTriggerURL(t.Context(), by.c, by.a.Slug, api.TriggerURLInput{}))
		g.show(exhibit{name: name, types: typesOf("trigger_"), agent: by.a.ID, data: fmt.Sprintf(`{"trigger":%q}`, u.ID), listed: func(c engine.Caller) bool {
			list, err := w.TriggerURLs(t.Context(), c, by.a.ID.String(), api.Page{Limit: 100})
			return err == nil && len(list.Items) == 1
		}})
	}
	task := w.Task("A task")
	g.show(exhibit{name: "a task", types: typesOf("task_"), data: fmt.Sprintf(`{"key":%q}`, task.Key), listed: func(c engine.Caller) bool {
		_, err := w.Engine.Task(t.Context(), c, task.ID.String())
		return err == nil
	}})
	g.show(exhibit{name: "a sign-in", private: true, types: typesOf("sign_in", "signed_in", "identity_", "program_"), listed: func(c engine.Caller) bool { return here(c) && c.CanAudit() }})
	g.show(exhibit{name: "the coordinator", types: typesOf("backup_made", "backup_failed", "retention_pruned"), listed: func(c engine.Caller) bool {
		_, err := w.System(t.Context(), c)
		return err == nil && here(c)
	}})
	for kind, listed := range map[api.Cause]func(engine.Caller) bool{
		api.CauseSchedule: func(c engine.Caller) bool { return here(c) }, api.CauseBackup: func(c engine.Caller) bool { return here(c) && c.CanAudit() },
	} {
		g.show(exhibit{name: "a finding: " + string(kind), types: typesOf("finding_"), agent: cloud.ID, data: fmt.Sprintf(`{"finding":%q}`, kind), listed: listed})
	}
	// What is gone without a trace, and was never written whole, is for those who read the
	// audit.
	for _, kind := range []string{"worker_online", "key_revoked", "trigger_url_closed"} {
		g.show(exhibit{name: "what is gone: " + kind, types: []string{kind}, data: `{"worker":"?","key":7}`, listed: func(c engine.Caller) bool { return here(c) && c.CanAudit() }})
	}
}

func (g *gallery) show(x exhibit) { g.shown = append(g.shown, x) }

func (g *gallery) sessions(t *testing.T, a api.Agent, c engine.Caller, name string) {
	s, _, err := g.w.CreateSession(t.Context(), c, a.ID.String(), api.SessionInput{}, engine.Idempotency{})
	if err != nil {
		t.Fatal(err)
	}
	g.show(exhibit{
		name: name, session: s.ID,
		types: typesOf("session_", "stop_", "prompt_", "message_", "thread_", "claim_", "lease_", "activity", "late_", "changes_", "landing_"),
		listed: func(c engine.Caller) bool {
			_, err := g.w.Session(t.Context(), c, s.ID)
			return err == nil
		},
	})
}

func (g *gallery) worker(t *testing.T, a api.Agent, c engine.Caller, name string) {
	in := api.WorkerInput{Name: strings.ReplaceAll(name, "'", ""), InstanceID: name, ProcessID: name, MaxConcurrent: 1}
	got := must[api.Registered](t)(g.w.RegisterWorker(t.Context(), c, a.ID.String(), in))
	g.show(exhibit{name: name, types: typesOf("worker_", "signal_"), agent: a.ID, data: fmt.Sprintf(`{"worker":%q}`, got.Worker.ID), listed: func(c engine.Caller) bool {
		list, err := g.w.Workers(t.Context(), c, "", api.Page{Limit: 100})
		return err == nil && slices.ContainsFunc(list.Items, func(one api.Worker) bool { return one.ID == got.Worker.ID })
	}})
	g.show(exhibit{name: name + "'s standing approvals", types: typesOf("standing_"), agent: a.ID, data: fmt.Sprintf(`{"worker":%q}`, got.Worker.ID), listed: func(c engine.Caller) bool {
		_, err := g.w.Approvals(t.Context(), c, got.Worker.ID)
		return err == nil
	}})
}

// happen writes an event of a type about a thing, and returns its number.
func (g *gallery) happen(t *testing.T, x exhibit, kind string) (seq int64) {
	t.Helper()
	ws := g.w.Owner.WorkspaceID
	if x.session != 0 {
		ws = 0
	}
	err := g.w.Store.Write(t.Context(), func(tx *db.Tx) error {
		var data api.EventData
		if x.data != "" {
			if err := json.Unmarshal([]byte(x.data), &data); err != nil {
				return err
			}
		}
		var err error
		seq, err = tx.LogNumbered(db.Event{Workspace: ws, Agent: x.agent, Session: x.session, Actor: "system", Type: kind, Data: data})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return seq
}

// Whoever learns of a thing by an event is shown it by the list of its kind, and the other way
// round, however the event reaches them.
func TestEvents_TellOfWhatTheListsShow(t *testing.T) {
	g := newGallery(t)
	w := g.w
	before := must[int64](t)(w.LastEvent(t.Context()))
	type happened struct {
		exhibit
		kind string
		seq  int64
	}
	var all []happened
	covered := map[string]bool{}
	for _, x := range g.shown {
		for _, kind := range x.types {
			all, covered[kind] = append(all, happened{x, kind, g.happen(t, x, kind)}), true
		}
	}
	for _, kind := range engine.EventTypes() {
		if !covered[kind] {
			t.Errorf("no thing of this test has events of type %s", kind)
		}
	}
	if err := w.ExpandWebhooks(t.Context()); err != nil {
		t.Fatal(err)
	}
	for name, c := range g.viewers {
		page, stream, audit, hook := pages(t, w, c, before), streamed(t, w, c, before), audited(t, w, c), messagesTo(t, w, c, name)
		for _, h := range all {
			want := h.listed(c)
			check := func(way string, told []int64, want bool) {
				if got := slices.Contains(told, h.seq); got != want {
					t.Errorf("%s is told of %s by %s of %s: %v, want %v", name, h.kind, way, h.name, got, want)
				}
			}
			check("the page", page, want && !h.private)
			check("the stream", stream, want && !h.private)
			if c.CanAudit() {
				check("the audit", audit, want)
			}
			if hook != nil {
				check("the webhook", hook, want && !h.private)
			}
		}
	}
}

func streamed(t *testing.T, w *enginetest.Fixture, c engine.Caller, after int64) (out []int64) {
	t.Helper()
	s := w.Follow(c, after)
	defer s.Close()
	for {
		b := must[*engine.Batch](t)(s.Take(t.Context(), c))
		if b == nil {
			return out
		}
		for _, ev := range b.Events {
			out = append(out, ev.Seq)
		}
	}
}

// audited is read in small pages: what is left out of them must cost no entry.
func audited(t *testing.T, w *enginetest.Fixture, c engine.Caller) (out []int64) {
	t.Helper()
	if !c.CanAudit() {
		return nil
	}
	for page := (api.Page{Limit: 7}); ; {
		list := must[api.List[api.AuditEntry]](t)(w.Audit(t.Context(), c, api.AuditFilter{}, page))
		for _, a := range list.Items {
			out = append(out, a.Seq)
		}
		if page.Cursor = list.NextCursor; page.Cursor == "" {
			return out
		}
	}
}

// messagesTo is what the viewer's own webhook was sent; nil for viewers without one.
func messagesTo(t *testing.T, w *enginetest.Fixture, c engine.Caller, name string) (out []int64) {
	t.Helper()
	if name != "owner" && name != "admin" {
		return nil
	}
	list := must[api.List[api.Webhook]](t)(w.Webhooks(t.Context(), c, api.Page{Limit: 10}))
	for _, hook := range list.Items {
		if !strings.Contains(hook.URL, name) {
			continue
		}
		for _, row := range w.Tell(`SELECT json_extract(body, '$.data.seq') FROM deliveries WHERE webhook_id = ?`, hook.ID) {
			var seq int64
			if _, err := fmt.Sscan(row, &seq); err != nil {
				t.Fatal(err)
			}
			out = append(out, seq)
		}
	}
	return out
}
