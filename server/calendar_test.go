package server_test

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	ics "github.com/arran4/golang-ical"

	"stint/api"
	"stint/server/servertest"
)

// A calendar's address shows the coming runs to whoever has it, and nothing else; revoking its
// key makes it useless.
func TestCalendar_AnAddressShowsComingRunsAlone(t *testing.T) {
	s := servertest.New(t, servertest.Options{})
	agent := func(in m) api.Agent {
		t.Helper()
		return servertest.Must[api.Agent](s, 201, "POST", "agents", in)
	}
	run := m{"command": []string{"true"}}
	daily := agent(m{"slug": "daily", "name": "Nightly, “really”", "schedule": "30 5 * * *", "timeZone": "Europe/Berlin", "prompt": "the secret plan", "run": run})
	agent(m{"slug": "busy", "schedule": "*/5 * * * *", "run": run})
	agent(m{"slug": "rests", "schedule": "0 5 * * *", "paused": true, "run": run})
	later := s.Engine.Now().Add(72 * time.Hour).Truncate(time.Second)
	waits := servertest.Must[api.Session](s, 201, "POST", "agents/daily/sessions", m{"prompt": "more secrets", "notBefore": api.Time{Time: later}})

	key := servertest.Must[api.Key](s, 201, "POST", "keys", m{"name": "phone", "scopes": []string{"calendar"}})
	if !strings.HasPrefix(key.CalendarURL, s.URL) || key.ExpiresAt.Sub(s.Engine.Now()) < 365*24*time.Hour {
		t.Fatalf("the key is %+v", key)
	}
	get := func(url string, headers ...string) (int, string, string) {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
		if err != nil {
			t.Fatal(err)
		}
		for i := 0; i < len(headers); i += 2 {
			req.Header.Set(headers[i], headers[i+1])
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = resp.Body.Close() }()
		body, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return resp.StatusCode, resp.Header.Get("Content-Type"), string(body)
	}
	status, kind, body := get(key.CalendarURL)
	if status != 200 || kind != "text/calendar; charset=utf-8" {
		t.Fatalf("%d %s: %s", status, kind, body)
	}
	if strings.Contains(body, "secret") || strings.Contains(body, "rests") {
		t.Errorf("it says too much:\n%s", body)
	}
	cal, err := ics.ParseCalendar(strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	of, dates := map[string]int{}, map[string]bool{}
	for _, e := range cal.Events() {
		at, err := e.GetStartAt()
		if err != nil {
			t.Fatal(err)
		}
		of[e.GetProperty(ics.ComponentPropertySummary).Value]++
		dates[e.GetProperty(ics.ComponentPropertySummary).Value+at.UTC().Format(time.RFC3339)] = true
	}
	if of["busy"] != 100 || of[daily.Name] < 30 || of[daily.Name] > 31 || !dates["daily"+later.UTC().Format(time.RFC3339)] || !strings.Contains(body, waits.ID.String()) {
		t.Errorf("it has %v", of)
	}
	for _, slot := range servertest.Must[api.SchedulePreview](s, 200, "GET", "schedules/preview?schedule=30+5+*+*+*&timeZone=Europe/Berlin&n=20", nil).Slots {
		if !dates[daily.Name+slot.At.UTC().Format(time.RFC3339)] {
			t.Errorf("the slot at %s is missing", slot.At)
		}
	}

	address := strings.Split(key.CalendarURL, "?")[0]
	wide := servertest.Must[api.Key](s, 201, "POST", "keys", m{"name": "wide", "scopes": []string{"calendar", "read"}})
	if wide.CalendarURL != "" {
		t.Errorf("a key that reads has the address %s", wide.CalendarURL)
	}
	for name, c := range map[string]struct {
		want int
		url  string
		with []string
	}{
		"no key":                             {401, address, nil},
		"a key that is good for more":        {401, address + "?key=" + wide.Key, nil},
		"that key in a header":               {200, address, []string{"Authorization", "Bearer " + wide.Key}},
		"the key in a header":                {200, address, []string{"Authorization", "Bearer " + key.Key}},
		"the key elsewhere":                  {401, s.URL + servertest.Base + "/agents?key=" + key.Key, nil},
		"the key in a header elsewhere":      {403, s.URL + servertest.Base + "/agents", []string{"Authorization", "Bearer " + key.Key}},
		"the owner's token in the address":   {401, address + "?key=" + s.Token, nil},
		"another workspace's, with this key": {404, s.URL + "/api/v1/workspaces/other/calendar.ics?key=" + key.Key, nil},
		"what isn't known, beside the key":   {422, key.CalendarURL + "&x=1", nil},
	} {
		if got, _, body := get(c.url, c.with...); got != c.want {
			t.Errorf("%s answered %d, want %d: %s", name, got, c.want, body)
		}
	}
	if a := s.Do("DELETE", servertest.Base+"/keys/"+key.ID.String(), nil); a.Status != 204 {
		t.Fatalf("revoking answered %d: %s", a.Status, a.Body)
	}
	if status, _, _ := get(key.CalendarURL); status != 401 {
		t.Errorf("after its key was revoked the address answered %d", status)
	}
}
