package server_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"stint/api"
	"stint/server/servertest"
)

func TestBody_EachFaultIsNamed(t *testing.T) {
	d := newFixture(t, servertest.Options{})
	claim := d.running()
	items := d.at(claim.SessionID, "/items")
	tests := []struct {
		name, path, body string
		field            string // named in fields; "" = none
	}{
		{"unknown field", "agents/tidy/sessions", `{"prompt":"a","colour":"red"}`, "colour"},
		{"wrong case", "agents/tidy/sessions", `{"Prompt":"x"}`, "Prompt"},
		{"repeated", "agents/tidy/sessions", `{"prompt":"a","prompt":"b"}`, "prompt"},
		{"repeated in another case", "agents/tidy/sessions", `{"prompt":"a","PROMPT":"b"}`, "PROMPT"},
		{"something after the object", "agents/tidy/sessions", `{"prompt":"a"}{}`, ""},
		{"two objects on lines", "agents/tidy/sessions", "{\"prompt\":\"a\"}\n{\"prompt\":\"b\"}", ""},
		{"a list", "agents/tidy/sessions", `[{"prompt":"a"}]`, ""},
		{"null", "agents/tidy/sessions", `null`, ""},
		{"a text", "agents/tidy/sessions", `"prompt"`, ""},
		{"byte order mark", "agents/tidy/sessions", "\xef\xbb\xbf{\"prompt\":\"a\"}", ""},
		{"cut off", "agents/tidy/sessions", `{"prompt":"a`, "prompt"},
		{"broken UTF-8", "agents/tidy/sessions", "{\"prompt\":\"\xff\"}", "prompt"},
		{"half a surrogate pair", "agents/tidy/sessions", `{"prompt":"\ud800"}`, "prompt"},
		{"ten thousand deep, unknown", "agents/tidy/sessions", `{"x":` + strings.Repeat("[", 10_000) + strings.Repeat("]", 10_000) + `}`, "x"},
		{"ten thousand deep, known", "agents/tidy/sessions", `{"prompt":` + strings.Repeat("[", 10_000) + strings.Repeat("]", 10_000) + `}`, ""},
		{"number for a text", "agents/tidy/sessions", `{"prompt":5}`, "prompt"},
		{"text for a number", "agents/tidy/sessions", `{"priority":"high"}`, "priority"},
		{"fraction", "agents/tidy/sessions", `{"priority":1.5}`, "priority"},
		{"over 64 bits", "agents/tidy/sessions", `{"priority":99999999999999999999}`, "priority"},
		{"text for yes or no", "agents/tidy/sessions", `{"afterAny":"yes"}`, "afterAny"},
		{"no time", "agents/tidy/sessions", `{"notBefore":"tomorrow"}`, "notBefore"},
		{"no id", "agents/tidy/sessions", `{"after":"the last one"}`, "after"},
		{"id of another kind", "agents/tidy/sessions", `{"after":"agt_0000000001"}`, "after"},
		{"id of zeros", "agents/tidy/sessions", `{"after":"ses_0000000000"}`, "after"},
		{"nested", "agents", `{"slug":"x1","run":{"command":["a",1]}}`, "run.command[1]"},
		{"nested unknown", "agents", `{"slug":"x1","run":{"shell":"a"}}`, "run.shell"},
		{"object for a list", "agents", `{"slug":"x1","labels":{}}`, "labels"},
		{"unknown in a list", items, `{"items":[{"kind":"text"},{"kind":"text","colour":1}]}`, "items[1].colour"},
		{"lease of 1.5 s", d.at(claim.SessionID, "/claim"), `{"instanceId":"boot-1","leaseSeconds":1.5}`, "leaseSeconds"},
		{"lease of 9e18 s", d.at(claim.SessionID, "/claim"), `{"instanceId":"boot-1","leaseSeconds":9e18}`, "leaseSeconds"},
		{"body where none belongs", "sessions/" + claim.SessionID.String() + "/stop", `{"now":true}`, "now"},
		{"empty body where one belongs", "agents", ``, ""},
	}
	before := len(servertest.Must[api.List[api.Session]](d.Server, 200, "GET", "sessions", nil).Items)
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			e := d.Refused(http.StatusBadRequest, api.CodeMalformed, "POST", test.path, test.body)
			if test.field == "" {
				return
			}
			if len(e.Fields) != 1 || e.Fields[0].Field != test.field || !strings.Contains(e.Detail, test.field) {
				t.Errorf("names %+v (%s), not %s", e.Fields, e.Detail, test.field)
			}
		})
	}
	if after := len(servertest.Must[api.List[api.Session]](d.Server, 200, "GET", "sessions", nil).Items); after != before {
		t.Errorf("%d sessions were made of bad bodies", after-before)
	}
}

func TestBody_TypeAndSize(t *testing.T) {
	d := newFixture(t, servertest.Options{})
	id := d.addSession().ID.String()
	for _, kind := range []string{
		"text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "application/jsonx",
		"application/json; charset=latin1", "application/merge-patch+json", "json", "text/json", "",
	} {
		for _, path := range []string{"agents/tidy/sessions", "sessions/" + id + "/cancel", "agents/tidy/pause", "claim-next"} {
			d.Refused(http.StatusUnsupportedMediaType, api.CodeUnsupportedType, "POST", path, `{}`, servertest.With("Content-Type", kind))
		}
	}
	for _, kind := range []string{"application/json", "application/json; charset=utf-8", "Application/JSON;charset=UTF-8"} {
		servertest.Must[api.Session](d.Server, http.StatusCreated, "POST", "agents/tidy/sessions", `{}`, servertest.With("Content-Type", kind))
	}
	servertest.Must[api.Agent](d.Server, http.StatusOK, "PATCH", "agents/tidy", `{"name":"x"}`, servertest.With("Content-Type", "application/merge-patch+json"))
	servertest.Must[api.Session](d.Server, http.StatusCreated, "POST", "agents/tidy/sessions", nil) // no body, no type

	text := func(n int) string {
		return `{"description":"` + strings.Repeat("x", n-len(`{"description":""}`)) + `"}`
	}
	d.Refused(http.StatusRequestEntityTooLarge, api.CodeTooLarge, "POST", "tasks", text(1<<20+1))
	d.Refused(http.StatusRequestEntityTooLarge, api.CodeTooLarge, "POST", "tasks", text(1<<20+1), func(r *http.Request) {
		r.ContentLength = -1 // chunked: its size is not known before
	})
	// Exactly 1 MiB is accepted; the engine decides whether a description may be that long.
	if a := d.Do("POST", "tasks", text(1<<20)); a.Status == http.StatusRequestEntityTooLarge {
		t.Errorf("1 MiB was refused: %s", a.Body)
	}
}

func TestFields_InvalidOnesAreAllNamed(t *testing.T) {
	d := newFixture(t, servertest.Options{})
	agent := func(more map[string]any) map[string]any {
		return with(map[string]any{"slug": "fresh", "run": map[string]any{"command": []string{"true"}}}, more)
	}
	tests := []struct {
		body   map[string]any
		fields []string
	}{
		{agent(map[string]any{"slug": "UPPER_case!"}), []string{"slug"}},
		{agent(map[string]any{"slug": ""}), []string{"slug"}},
		{agent(map[string]any{"slug": strings.Repeat("a", 33)}), []string{"slug"}},
		{agent(map[string]any{"schedule": "* * * *"}), []string{"schedule"}},
		{agent(map[string]any{"schedule": "61 * * * *"}), []string{"schedule"}},
		{agent(map[string]any{"schedule": "*/0 * * * *"}), []string{"schedule"}},
		{agent(map[string]any{"schedule": "0 0 30 2 *"}), []string{"schedule"}},
		{agent(map[string]any{"schedule": "@every 0m"}), []string{"schedule"}},
		{agent(map[string]any{"schedule": "TZ=UTC 0 5 * * *"}), []string{"schedule"}},
		{agent(map[string]any{"schedule": "TZ=0"}), []string{"schedule"}},
		{agent(map[string]any{"schedule": "@daily", "timeZone": "Mars/Base"}), []string{"timeZone"}},
		{agent(map[string]any{"schedule": "@daily", "timeZone": "Local"}), []string{"timeZone"}},
		{agent(map[string]any{"schedule": "@daily", "timeZone": ""}), []string{"timeZone"}},
		{agent(map[string]any{"mode": "hybrid"}), []string{"mode"}},
		{agent(map[string]any{"slug": "-", "overlap": "sometimes", "maxConcurrent": -1}), []string{"slug", "overlap", "maxConcurrent"}},
	}
	for _, test := range tests {
		t.Run(fmt.Sprint(test.body), func(t *testing.T) {
			e := d.Refused(http.StatusUnprocessableEntity, api.CodeInvalid, "POST", "agents", test.body)
			named := map[string]bool{}
			for _, f := range e.Fields {
				named[f.Field] = true
				if f.Detail == "" {
					t.Errorf("%s is named without a reason", f.Field)
				}
			}
			for _, field := range test.fields {
				if !named[field] {
					t.Errorf("%s is not named: %+v", field, e.Fields)
				}
			}
		})
	}
	e := d.Refused(http.StatusConflict, api.CodeSlugTaken, "POST", "agents", agent(map[string]any{"slug": "tidy"}))
	if len(e.Fields) != 1 || e.Fields[0].Field != "slug" {
		t.Errorf("a taken slug is not named: %+v", e)
	}
	if got := servertest.Must[api.List[api.Agent]](d.Server, 200, "GET", "agents", nil); len(got.Items) != 1 {
		t.Errorf("%d agents, not 1", len(got.Items))
	}
}

func TestPatch_AbsentStaysNullClears(t *testing.T) {
	d := newFixture(t, servertest.Options{})
	edit := func(body string) api.Agent {
		return servertest.Must[api.Agent](d.Server, http.StatusOK, "PATCH", "agents/tidy", body)
	}
	edit(`{"description":"old","labels":["gpu"],"run":{"env":["HOME"],"workFolder":"/srv"}}`)
	got := edit(`{"name":"New name","run":{"workFolder":"/tmp"}}`)
	if got.Description != "old" || got.Name != "New name" || len(got.Labels) != 1 || len(got.Run.Command) != 1 || len(got.Run.Env) != 1 || got.Run.WorkFolder != "/tmp" {
		t.Errorf("absent fields did not stay: %+v", got.AgentInput)
	}
	got = edit(`{"description":null,"labels":null,"run":{"env":null}}`)
	if got.Description != "" || len(got.Labels) != 0 || len(got.Run.Env) != 0 || got.Name != "New name" || len(got.Run.Command) != 1 {
		t.Errorf("null did not clear: %+v", got.AgentInput)
	}
	d.Refused(http.StatusBadRequest, api.CodeMalformed, "PATCH", "agents/tidy", `{"slug":"a","slug":"b"}`)
	d.Refused(http.StatusBadRequest, api.CodeMalformed, "PATCH", "agents/tidy", `{"id":"agt_0000000001"}`)
	d.Refused(http.StatusUnprocessableEntity, api.CodeInvalid, "PATCH", "agents/tidy", `{"schedule":"never"}`)
}

func TestQuery_NonsenseIsNamed(t *testing.T) {
	d := newFixture(t, servertest.Options{})
	id := d.addSession().ID.String()
	tests := []struct{ path, field string }{
		{"agents?cursor=nonsense!", "cursor"},
		{"sessions?cursor=%F0%9F%92%A9", "cursor"},
		{"agents/tidy/sessions?cursor=-5", "cursor"},
		{"sessions?cursor=9999999999999999999999", "cursor"},
		{"workers?cursor=!", "cursor"},
		{"agents/tidy/workers?cursor=!", "cursor"},
		{"agents/tidy/ledger?cursor=!", "cursor"},
		{"sessions/" + id + "/activities?cursor=!", "cursor"},
		{"sessions/" + id + "/events?cursor=!", "cursor"},
		{"agents?limit=0", "limit"},
		{"agents?limit=201", "limit"},
		{"agents?limit=ten", "limit"},
		{"agents?limit=5&limit=6", "limit"},
		{"sessions/" + id + "/items?limit=1001", "limit"},
		{"sessions/" + id + "/items?after=-1", "after"},
		{"sessions/" + id + "/items?after=1&before=2", "before"},
		{"sessions?status=sleeping", "status"},
		{"sessions?status=queued,", "status"},
		{"sessions?phase=night", "phase"},
		{"sessions?triggeredBy=ghost", "triggeredBy"},
		{"sessions?since=yesterday", "since"},
		{"sessions?archived=maybe", "archived"},
		{"sessions?thread=x", "thread"},
		{"sessions?retryOf=agt_0000000001", "retryOf"},
		{"sessions?state=queued", "state"},
		{"sessions?%zz", "query"},
		{"sessions/counts?limit=5", "limit"},
		{"events?after=x", "after"},
		{"schedules/preview?schedule=nope", "schedule"},
		{"schedules/preview?schedule=@daily&n=0", "n"},
		{"schedules/preview?schedule=@daily&n=101", "n"},
		{"schedules/preview?schedule=@daily&from=now", "from"},
		{"schedules/preview?schedule=@daily&timeZone=Mars", "timeZone"},
		{"agents/tidy/workers/" + d.worker.ID.String() + "/sessions?wait=61", "wait"},
	}
	for _, test := range tests {
		t.Run(test.path, func(t *testing.T) {
			e := d.Refused(http.StatusUnprocessableEntity, api.CodeInvalid, "GET", test.path, nil)
			for _, f := range e.Fields {
				if f.Field == test.field {
					return
				}
			}
			t.Errorf("%s is not named: %+v", test.field, e.Fields)
		})
	}
}

func TestIDs_UnknownAndForeignAreNotFound(t *testing.T) {
	d := newFixture(t, servertest.Options{})
	mine := d.running()
	agent, session, worker := d.stranger()
	second := d.addAgent("other", 1)
	const unknown = "0000000zzz"
	get := func(paths ...string) {
		t.Helper()
		for _, path := range paths {
			d.Refused(http.StatusNotFound, api.CodeNotFound, "GET", path, nil)
		}
	}
	post := func(paths ...string) {
		t.Helper()
		for _, path := range paths {
			e := d.Refused(http.StatusNotFound, api.CodeNotFound, "POST", path, with(proof(mine), map[string]any{}))
			if strings.Contains(e.Detail, "secret-agent") {
				t.Errorf("%s: the refusal mentions another workspace: %s", path, e.Detail)
			}
		}
	}
	for _, id := range []string{session.ID.String(), "ses_" + unknown, "ses_", "nonsense", "agt_" + unknown, "%2e%2e", "ses_" + strings.Repeat("z", 10)} {
		get("sessions/"+id, "sessions/"+id+"/items", "sessions/"+id+"/activities", "sessions/"+id+"/events", "agents/tidy/sessions/"+id)
		for _, verb := range []string{"/cancel", "/stop", "/retry", "/archive"} {
			d.Refused(http.StatusNotFound, api.CodeNotFound, "POST", "sessions/"+id+verb, nil)
			d.Refused(http.StatusNotFound, api.CodeNotFound, "POST", "agents/tidy/sessions/"+id+verb, nil)
		}
	}
	for _, ref := range []string{agent.ID.String(), agent.Slug, "agt_" + unknown, "no-such-agent", "ses_" + unknown, "..%2f"} {
		get("agents/"+ref, "agents/"+ref+"/sessions", "agents/"+ref+"/ledger", "agents/"+ref+"/workers")
		d.Refused(http.StatusNotFound, api.CodeNotFound, "POST", "agents/"+ref+"/sessions", `{}`)
		d.Refused(http.StatusNotFound, api.CodeNotFound, "DELETE", "agents/"+ref, nil)
	}
	for _, id := range []string{worker.ID.String(), "wrk_" + unknown, "nonsense"} {
		at := "agents/tidy/workers/" + id
		get(at, at+"/sessions?instanceId="+instance)
		d.Refused(http.StatusNotFound, api.CodeNotFound, "DELETE", at, nil)
		post(at+"/sessions/"+mine.SessionID.String()+"/renew", at+"/sessions/"+mine.SessionID.String()+"/complete")
		d.Refused(http.StatusNotFound, api.CodeNotFound, "POST", at+"/heartbeat", map[string]any{"instanceId": instance})
		d.Refused(http.StatusNotFound, api.CodeNotFound, "POST", at+"/sessions/"+mine.SessionID.String()+"/claim", map[string]any{"instanceId": instance})
	}
	// What exists but below another agent is not found there.
	at := "agents/" + second.Slug + "/"
	get(at+"sessions/"+mine.SessionID.String(), at+"workers/"+d.worker.ID.String())
	d.Refused(http.StatusNotFound, api.CodeNotFound, "POST", at+"sessions/"+mine.SessionID.String()+"/cancel", nil)
	post(at + "workers/" + d.worker.ID.String() + "/sessions/" + mine.SessionID.String() + "/complete")
	// Nor is another tenant's workspace, by name or by id.
	for _, path := range []string{"", "/agents", "/sessions", "/workers", "/events", "/sessions/counts", "/agents/" + agent.Slug, "/sessions/" + session.ID.String()} {
		get("/api/v1/workspaces/elsewhere"+path, "/api/v1/workspaces/"+session.WorkspaceID.String()+path, "/api/v1/workspaces/nowhere"+path)
	}
	// None of our lists has anything of theirs.
	for _, path := range []string{"agents", "sessions?archived=true", "workers", "events?limit=200", "/api/v1/workspaces"} {
		a := d.Do("GET", path, nil)
		for _, canary := range []string{"secret-agent", "elsewhere", agent.ID.String(), session.ID.String(), worker.ID.String()} {
			if strings.Contains(string(a.Body), canary) {
				t.Errorf("%s shows %s", path, canary)
			}
		}
	}
	if got := servertest.Must[api.Session](d.Server, 200, "GET", "sessions/"+mine.SessionID.String(), nil); got.Status != api.Active {
		t.Errorf("one of these changed the session: %s", got.Status)
	}
}

func TestClaimID_MissingOldAndForeign(t *testing.T) {
	d := newFixture(t, servertest.Options{})
	done := d.running()
	servertest.Must[api.Finished](d.Server, 200, "POST", d.at(done.SessionID, "/complete"), proof(done))
	live, other := d.running(), d.running()
	bodies := map[string]map[string]any{
		"/renew":      {},
		"/extend":     {"addSeconds": 60},
		"/complete":   {"result": "stolen"},
		"/fail":       {"code": "X"},
		"/release":    {},
		"/activities": {"type": "progress", "text": "stolen"},
		"/items":      {"items": []any{map[string]any{"kind": "text", "text": "stolen"}}},
		"":            {"plan": "stolen"},
	}
	claimIDs := map[string]string{
		"garbled": "clm_nonsense", "unknown": "clm_" + strings.Repeat("1", 36), "zeros": "clm_" + strings.Repeat("0", 36),
		"of another session":    other.ClaimID.String(),
		"of a finished session": done.ClaimID.String(),
	}
	method := func(verb string) string {
		if verb == "" {
			return "PATCH"
		}
		return "POST"
	}
	for verb, body := range bodies {
		d.Refused(http.StatusBadRequest, api.CodeClaimRequired, method(verb), d.at(live.SessionID, verb), with(body, map[string]any{"instanceId": instance}))
		for what, id := range claimIDs {
			e := d.Refused(http.StatusConflict, api.CodeClaimNotActive, method(verb), d.at(live.SessionID, verb),
				with(body, map[string]any{"instanceId": instance, "claimId": id}))
			if e.Status != api.Active || e.Holder != d.worker.Name || e.ExpiresAt.IsZero() {
				t.Errorf("%s with a claim id %s: status %q holder %q until %q", verb, what, e.Status, e.Holder, e.ExpiresAt)
			}
		}
		d.Refused(http.StatusConflict, api.CodeInstanceSuperseded, method(verb), d.at(live.SessionID, verb),
			with(body, map[string]any{"instanceId": "an older boot", "claimId": live.ClaimID.String()}))
	}
	if got := servertest.Must[api.ItemsPage](d.Server, 200, "GET", "sessions/"+live.SessionID.String()+"/items", nil); len(got.Items) > 0 {
		t.Errorf("items came in: %+v", got)
	}
	if got := servertest.Must[api.List[api.Activity]](d.Server, 200, "GET", "sessions/"+live.SessionID.String()+"/activities", nil); len(got.Items) > 0 {
		t.Errorf("activities came in: %+v", got)
	}
}

func TestLease_TooShortIsRefusedTooLongIsCapped(t *testing.T) {
	d := newFixture(t, servertest.Options{})
	id := d.addSession().ID
	claim := func(lease any) map[string]any { return map[string]any{"instanceId": instance, "leaseSeconds": lease} }
	for _, lease := range []any{5, 0, -1, 59} {
		e := d.Refused(http.StatusBadRequest, api.CodeInvalidLease, "POST", d.at(id, "/claim"), claim(lease))
		if len(e.Fields) != 1 || e.Fields[0].Field != "leaseSeconds" {
			t.Errorf("lease %v: %+v", lease, e)
		}
		d.Refused(http.StatusBadRequest, api.CodeInvalidLease, "POST", "claim-next",
			map[string]any{"instanceId": instance, "workerIds": []string{d.worker.ID.String()}, "leaseSeconds": lease})
	}
	got := servertest.Must[api.Claim](d.Server, 200, "POST", d.at(id, "/claim"), claim(int64(9e18)))
	if !got.CappedToMax || got.LeaseSeconds != 14400 || got.MaxLeaseSeconds != 14400 {
		t.Errorf("9e18 s became %+v", got)
	}
	extended := servertest.Must[api.Lease](d.Server, 200, "POST", d.at(id, "/extend"), with(proof(got), map[string]any{"addSeconds": int64(9e18)}))
	if !extended.CappedToMax || extended.LeaseExpiresAt.Sub(extended.ServerTime.Time) > 14401*time.Second {
		t.Errorf("an extension by 9e18 s became %+v", extended)
	}
}
