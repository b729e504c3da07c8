package server_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"stint/api"
	"stint/engine"
	"stint/server/servertest"
)

type members map[string]jsontext.Value

func asMembers(t *testing.T, v any) members {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	out := members{}
	if err := json.Unmarshal(text, &out); err != nil {
		t.Fatal(err)
	}
	return out
}

// Null sets every member of everything that people edit to what it is in a new object that
// doesn't name it. A required member is refused by its name.
func TestPatch_NullClearsEveryMember(t *testing.T) {
	d := newFixture(t, servertest.Options{})
	me := servertest.Must[api.Whoami](d.Server, http.StatusOK, "GET", "/api/v1/whoami", nil)
	hook := servertest.Must[api.Webhook](d.Server, http.StatusCreated, "POST", "webhooks", m{"url": "https://receiver.test/", "description": "old", "types": []string{"agent.session_complete"}})
	for name, c := range map[string]struct {
		path     string
		unset    any
		values   m // what is set before
		required []string
		along    map[string]m      // what has to change with it
		become   map[string]string // where the new value follows from the rest
	}{
		"agent": {
			path: "agents/tidy", unset: engine.DefaultConfig().DefaultAgent(),
			values: m{
				"description": "old", "prompt": "old", "instructions": "old", "schedule": "@daily", "timeZone": "Europe/Berlin", "catchUp": "none",
				"catchUpWindowSeconds": 600, "overlap": "allow", "jitterSeconds": 5, "paused": true, "maxConcurrent": 7, "priority": 3, "labels": []string{"gpu"},
				"leaseSeconds": 1200, "reclaimDelaySeconds": 5, "turnTimeoutSeconds": 60, "stallTimeoutSeconds": 60, "queueTimeoutSeconds": 60, "maxLapses": 5, "taskUpdates": []string{"claimed"},
				"sessionSpendLimitMicros": 5, "dailySpendLimitMicros": 5, "name": "Old", "mode": "local", "type": "command", "slug": "tidy",
				"run": m{"command": []string{"true"}}, "runsAsUserId": me.UserID,
			},
			required: []string{"slug", "run"},
			along:    map[string]m{"runsAsUserId": {"schedule": nil}},
			become:   map[string]string{"name": `"tidy"`},
		},
		"worker": {
			path: d.atWorker(), unset: api.WorkerEdit{MaxConcurrent: 1, Labels: api.Labels{}},
			values:   m{"name": "w1", "instructions": "old", "labels": []string{"gpu"}, "maxConcurrent": 7},
			required: []string{"name"},
		},
		"webhook": {
			path: "webhooks/" + hook.ID.String(), unset: api.WebhookInput{Enabled: true, Types: api.Labels{}},
			values:   m{"url": "https://receiver.test/", "description": "old", "types": []string{"agent.session_complete"}, "enabled": false},
			required: []string{"url"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			for field, want := range asMembers(t, c.unset) {
				if _, ok := c.values[field]; !ok {
					t.Errorf("%s isn't tried", field)
					continue
				}
				servertest.Must[members](d.Server, http.StatusOK, "PATCH", c.path, c.values)
				if slices.Contains(c.required, field) {
					e := d.Refused(http.StatusUnprocessableEntity, api.CodeInvalid, "PATCH", c.path, m{field: nil})
					if len(e.Fields) != 1 || !strings.HasPrefix(e.Fields[0].Field, field) {
						t.Errorf("%s: null is refused as %+v", field, e)
					}
					continue
				}
				got := servertest.Must[members](d.Server, http.StatusOK, "PATCH", c.path, with(m{field: nil}, c.along[field]))
				if string(got[field]) != string(want) && string(got[field]) != c.become[field] {
					t.Errorf("%s: null leaves %s, a new one has %s", field, got[field], want)
				}
			}
		})
	}
}

// Null in a worker's report clears what is optional in a session, and what the report doesn't
// name stays.
func TestPatch_NullClearsWhatAWorkerReported(t *testing.T) {
	d := newFixture(t, servertest.Options{})
	c := d.running()
	reported := m{"plan": "a plan", "externalUrl": "https://a.test/1", "agentSessionId": "abc"}
	patch := func(body m) members {
		return servertest.Must[members](d.Server, http.StatusOK, "PATCH", d.at(c.SessionID, ""), with(proof(c), body))
	}
	for field, value := range reported {
		patch(reported)
		if got := patch(m{"usage": nil, "prompt": nil}); string(got[field]) != `"`+value.(string)+`"` {
			t.Errorf("%s: a report that doesn't name it leaves %s", field, got[field])
		}
		got := patch(m{field: nil})
		if text := string(got[field]); text != "" && text != `""` {
			t.Errorf("%s: null leaves %s", field, text)
		}
		for other, value := range reported {
			if other != field && string(got[other]) != `"`+value.(string)+`"` {
				t.Errorf("%s: null in it changed %s to %s", field, other, got[other])
			}
		}
	}
	for _, field := range []string{"tries", "turnEnded", "lastConsumed", "taken", "status"} {
		e := d.Refused(http.StatusUnprocessableEntity, api.CodeInvalid, "PATCH", d.at(c.SessionID, ""), with(proof(c), m{field: nil}))
		if len(e.Fields) != 1 || e.Fields[0].Field != field {
			t.Errorf("%s: null is refused as %+v", field, e)
		}
	}
}
