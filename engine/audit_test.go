package engine_test

import (
	"database/sql"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"stint/api"
	"stint/engine"
	"stint/engine/enginetest"
)

func TestAudit_TellsWhoWhatAndFromWhere(t *testing.T) {
	w := enginetest.New(t)
	agent := w.Agent()
	c := w.Owner
	c.From, c.Via = "192.0.2.7", "key_nightly"
	s, _, err := w.CreateSession(t.Context(), c, agent.Slug, api.SessionInput{Prompt: new("a")}, engine.Idempotency{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.CancelSession(t.Context(), w.Owner, s.ID, api.CancelInput{}); err != nil {
		t.Fatal(err)
	}
	list, err := w.Audit(t.Context(), w.Owner, api.AuditFilter{Session: s.ID}, api.Page{})
	if err != nil {
		t.Fatal(err)
	}
	if len(list.Items) != 2 || list.Items[0].Type != "session_cancelled" || list.Items[1].Type != "session_created" {
		t.Fatalf("the audit is %+v", list.Items)
	}
	here, there := list.Items[0], list.Items[1]
	if there.From != "192.0.2.7" || there.Via != "key_nightly" || here.From != "" || here.Via != "" {
		t.Errorf("from where: %+v, %+v", there, here)
	}
	if there.ActorName != w.Owner.Name || there.AgentID != agent.ID {
		t.Errorf("who and about what: %+v", there)
	}
}

func TestAudit_FiltersAndPages(t *testing.T) {
	w := enginetest.New(t)
	for _, slug := range []string{"tidy", "backup"} {
		w.Agent(func(in *api.AgentInput) { in.Slug = slug })
		for range 5 {
			if _, _, err := w.CreateSession(t.Context(), w.Owner, slug, api.SessionInput{}, engine.Idempotency{}); err != nil {
				t.Fatal(err)
			}
		}
	}
	all := func(f api.AuditFilter) (out []api.AuditEntry) {
		for page := (api.Page{Limit: 3}); ; {
			list, err := w.Audit(t.Context(), w.Owner, f, page)
			if err != nil {
				t.Fatal(err)
			}
			out = append(out, list.Items...)
			if page.Cursor = list.NextCursor; page.Cursor == "" {
				return out
			}
		}
	}
	everything := all(api.AuditFilter{})
	if !slices.IsSortedFunc(everything, func(a, b api.AuditEntry) int { return int(b.Seq - a.Seq) }) || len(everything) < 12 {
		t.Errorf("%d entries, or not the newest first", len(everything))
	}
	for name, want := range map[string]struct {
		f api.AuditFilter
		n int
	}{
		"type":          {api.AuditFilter{Type: "session_created"}, 10},
		"agent":         {api.AuditFilter{Type: "session_created", Agent: "backup"}, 5},
		"actor":         {api.AuditFilter{Type: "session_created", Actor: w.Owner.UserID.String()}, 10},
		"another actor": {api.AuditFilter{Actor: "scheduler"}, 0},
		"the future":    {api.AuditFilter{Since: api.Time{Time: w.Clock.Now().Add(time.Hour)}}, 0},
		"the past":      {api.AuditFilter{Until: everything[len(everything)-1].At}, 0},
	} {
		if got := all(want.f); len(got) != want.n {
			t.Errorf("%s: %d entries, not %d", name, len(got), want.n)
		}
	}
}

func TestAudit_IsForAdmins(t *testing.T) {
	w := enginetest.New(t)
	for _, role := range []api.Role{api.Viewer, api.Member} {
		c := w.Owner
		c.Role = role
		_, err := w.Audit(t.Context(), c, api.AuditFilter{}, api.Page{})
		if refused := new(api.Error); !errors.As(err, &refused) || refused.Code != api.CodeForbidden {
			t.Errorf("%s: %v", role, err)
		}
	}
}

// Another user's local sessions leave no trace in what an admin sees.
func TestAudit_HidesOthersLocalSessions(t *testing.T) {
	w := enginetest.New(t)
	a := w.Agent()
	s, _, err := w.CreateSession(t.Context(), w.Owner, a.Slug, api.SessionInput{Prompt: new("private")}, engine.Idempotency{})
	if err != nil {
		t.Fatal(err)
	}
	other := w.Owner
	other.UserID++
	list, err := w.Audit(t.Context(), other, api.AuditFilter{}, api.Page{Limit: 200})
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range list.Items {
		if e.SessionID == s.ID {
			t.Errorf("it shows %+v", e)
		}
	}
}

// The table itself refuses to be changed.
func TestAudit_IsAppendOnly(t *testing.T) {
	w := enginetest.New(t)
	w.Agent()
	raw, err := sql.Open("sqlite", "file:"+w.Path)
	if err != nil {
		t.Fatal(err)
	}
	defer raw.Close()
	for _, statement := range []string{"UPDATE events SET actor = 'nobody'", "DELETE FROM events"} {
		_, err := raw.ExecContext(t.Context(), statement)
		if err == nil || !strings.Contains(err.Error(), "append-only") {
			t.Errorf("%s: %v", statement, err)
		}
	}
}

// Every type of event can be filtered by.
func TestAudit_KnowsAllTypes(t *testing.T) {
	w := enginetest.New(t)
	view, err := w.AuditChoices(t.Context(), w.Owner)
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	look := func(node ast.Node) bool {
		spec, ok := node.(*ast.ValueSpec)
		if !ok || len(spec.Values) != 1 || !strings.HasPrefix(spec.Names[0].Name, "Event") {
			return true
		}
		if lit, ok := spec.Values[0].(*ast.BasicLit); ok && lit.Kind == token.STRING {
			kind, err := strconv.Unquote(lit.Value)
			if err != nil {
				t.Fatal(err)
			}
			if n++; !slices.Contains(view.Types, kind) {
				t.Errorf("%s (%s) is missing", spec.Names[0].Name, kind)
			}
		}
		return true
	}
	file, err := parser.ParseFile(token.NewFileSet(), "../api/event.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	ast.Inspect(file, look)
	if n < 20 || n != len(view.Types) {
		t.Errorf("%d types in the code, %d to choose from", n, len(view.Types))
	}
}

// TestAudit_APageLooksAtALimitedNumber: among more entries than a page looks at, rare ones are
// found by going on, and those of a time or of a type that is about no session at once.
func TestAudit_APageLooksAtALimitedNumber(t *testing.T) {
	w := enginetest.Open(t)
	begun := w.Clock.Now()
	agent := w.Agent(func(in *api.AgentInput) { in.Mode = api.Cloud })
	w.New(agent)
	w.Clock.Step(time.Hour)
	old := api.Time{Time: w.Clock.Now()}
	rare := w.Colleague("Rare", api.Admin)
	lost := w.New(agent)
	if _, err := w.CancelSession(t.Context(), rare, lost.ID, api.CancelInput{}); err != nil {
		t.Fatal(err)
	}
	w.Clock.Step(24 * time.Hour)
	hay := w.New(agent)
	const n = 120_000
	raw, err := sql.Open("sqlite", w.Path)
	if err != nil {
		t.Fatal(err)
	}
	defer raw.Close()
	for _, query := range []string{
		`WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n WHERE i < ?1) INSERT INTO events (seq, workspace_id, agent_id, session_id, task_id, at, actor, type, data)
		 SELECT seq+i, workspace_id, agent_id, session_id, task_id, at, actor, 'session_queued', data FROM events, n WHERE seq = (SELECT MAX(seq) FROM events)`,
		`UPDATE counters SET value = value + ?1 WHERE name = 'event'`,
	} {
		if _, err := raw.ExecContext(t.Context(), query, n); err != nil {
			t.Fatal(err)
		}
	}
	w.Clock.Step(24 * time.Hour)
	w.New(agent)
	for _, c := range []struct {
		name    string
		f       api.AuditFilter
		entries int
		pages   int
	}{
		{"actor", api.AuditFilter{Actor: rare.UserID.String(), Agent: agent.Slug}, 1, 3},
		{"type of sessions", api.AuditFilter{Type: api.EventSessionCancelled}, 1, 3},
		{"other type", api.AuditFilter{Type: api.EventAgentCreated}, 1, 1},
		{"other type of an agent", api.AuditFilter{Type: api.EventAgentCreated, Agent: agent.Slug}, 1, 1},
		{"session", api.AuditFilter{Session: lost.ID}, 2, 1},
		{"session and actor", api.AuditFilter{Session: lost.ID, Actor: rare.UserID.String()}, 1, 1},
		{"since", api.AuditFilter{Type: api.EventSessionCreated, Since: api.Time{Time: w.Clock.Now()}}, 1, 1},
		{"until", api.AuditFilter{Type: api.EventSessionCreated, Until: old}, 1, 1},
		{"before everything", api.AuditFilter{Until: api.Time{Time: begun.Add(-time.Hour)}}, 0, 1},
		{"after everything", api.AuditFilter{Since: api.Time{Time: w.Clock.Now().Add(time.Hour)}}, 0, 1},
		{"nobody", api.AuditFilter{Actor: "nobody"}, 0, 3},
	} {
		entries, pages := 0, 0
		for p := (api.Page{}); ; {
			list, err := w.Audit(t.Context(), w.Owner, c.f, p)
			if err != nil {
				t.Fatalf("%s: %v", c.name, err)
			}
			entries += len(list.Items)
			pages++
			if p.Cursor = list.NextCursor; p.Cursor == "" {
				break
			}
		}
		if entries != c.entries || pages != c.pages {
			t.Errorf("%s: %d entries on %d pages, want %d on %d", c.name, entries, pages, c.entries, c.pages)
		}
	}

	// Once the clock was set back, numbers say nothing of times: everything is looked at.
	w.Turn()
	w.Clock.Set(old.Add(time.Minute))
	w.Turn()
	if got, err := w.Audit(t.Context(), w.Owner, api.AuditFilter{Type: api.EventClockBack}, api.Page{}); err != nil || len(got.Items) > 1 {
		t.Fatalf("%d (%v)", len(got.Items), err)
	}
	late := w.New(agent)
	f := api.AuditFilter{Until: api.Time{Time: hay.CreatedAt.Add(-time.Hour)}, Type: api.EventSessionCreated, Since: old}
	list, err := w.Audit(t.Context(), w.Owner, f, api.Page{})
	if err != nil || len(list.Items) == 0 || list.Items[0].SessionID != late.ID {
		t.Errorf("after the clock was set back: %+v (%v)", list.Items, err)
	}
}
