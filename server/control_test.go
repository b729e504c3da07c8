package server_test

import (
	"context"
	"net/http"
	"slices"
	"testing"
	"time"

	"stint/api"
	"stint/server/servertest"
)

// atWorker is the path of the fixture's worker.
func (d *fixture) atWorker() string { return "agents/tidy/workers/" + d.worker.ID.String() }

func (d *fixture) signal(kind api.SignalKind) api.Signal {
	d.tb.Helper()
	got := servertest.Must[api.SignalAnswer](d.Server, 200, "POST", d.atWorker()+"/control-signal", m{"signal": kind})
	if got.Worker.PendingSignal == nil {
		d.tb.Fatalf("after %s nothing is pending", kind)
	}
	return *got.Worker.PendingSignal
}

func TestSignal_IsToldUntilItIsAcknowledged(t *testing.T) {
	d := newFixture(t, servertest.Options{})
	sent := d.signal(api.SignalPause)
	for range 2 {
		beat := servertest.Must[api.BeatAnswer](d.Server, 200, "POST", d.atWorker()+"/heartbeat", m{"instanceId": instance})
		poll := servertest.Must[api.PollAnswer](d.Server, 200, "GET", d.atWorker()+"/sessions?instanceId="+instance, nil)
		look := servertest.Must[api.Worker](d.Server, 200, "GET", d.atWorker(), nil)
		for where, got := range map[string]*api.Signal{"beat": beat.Worker.PendingSignal, "poll": poll.PendingSignal, "record": look.PendingSignal} {
			if got == nil || *got != sent {
				t.Errorf("the %s tells %+v, not %+v", where, got, sent)
			}
		}
	}
	ack := m{"instanceId": instance, "signalId": sent.ID.String()}
	for range 2 { // the answer may have been lost
		got := servertest.Must[api.Worker](d.Server, 200, "POST", d.atWorker()+"/ack-control-signal", ack)
		if got.PendingSignal != nil || got.DesiredState != api.DesiredPaused {
			t.Errorf("after the acknowledgement: %+v", got)
		}
	}
	beat := servertest.Must[api.BeatAnswer](d.Server, 200, "POST", d.atWorker()+"/heartbeat", m{"instanceId": instance})
	if beat.Worker.PendingSignal != nil {
		t.Error("an acknowledged signal is returned again")
	}
	d.Refused(409, api.CodeInstanceSuperseded, "POST", d.atWorker()+"/ack-control-signal", with(ack, m{"instanceId": "boot-0"}))
}

func TestSignal_HeldPollIsAnsweredAtOnce(t *testing.T) {
	d := newFixture(t, servertest.Options{})
	known := ""
	for i := range 6 {
		type answer struct {
			path string
			sig  *api.Signal
		}
		got := make(chan answer, 2)
		go func() {
			w := servertest.Must[api.Worker](d.Server, 200, "GET", d.atWorker()+"?wait=60&instanceId="+instance+"&signal="+known, nil)
			got <- answer{"record", w.PendingSignal}
		}()
		go func() {
			p := servertest.Must[api.PollAnswer](d.Server, 200, "GET", d.atWorker()+"/sessions?wait=60&instanceId="+instance+"&signal="+known, nil)
			got <- answer{"poll", p.PendingSignal}
		}()
		sent := d.signal([]api.SignalKind{api.SignalPause, api.SignalResume}[i%2]) // before or after it is held, or just then
		for range 2 {
			select {
			case a := <-got:
				if a.sig == nil || a.sig.ID != sent.ID {
					t.Fatalf("the held %s was answered with %+v", a.path, a.sig)
				}
			case <-time.After(20 * time.Second):
				t.Fatal("a held request slept through the signal")
			}
		}
		known = sent.ID.String()
	}
	begun := time.Now()
	w := servertest.Must[api.Worker](d.Server, 200, "GET", d.atWorker()+"?wait=1&signal="+known, nil)
	if took := time.Since(begun); took < time.Second || w.PendingSignal == nil {
		t.Errorf("with nothing new it was answered after %v: %+v", took, w.PendingSignal)
	}
}

func TestSignal_ShutdownEndsTheHeldLook(t *testing.T) {
	d := newFixture(t, servertest.Options{})
	answered := make(chan int, 1)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	go func() {
		answered <- d.Do("GET", d.atWorker()+"?wait=60", nil, func(r *http.Request) { *r = *r.WithContext(ctx) }).Status
	}()
	time.Sleep(50 * time.Millisecond) // it may be held or on its way: both must end
	d.Stop()
	if status := <-answered; status != 200 {
		t.Errorf("answered %d", status)
	}
}

func TestControl_IsForTheOwnerAndForAdmins(t *testing.T) {
	d := newFixture(t, servertest.Options{})
	people := map[string]struct {
		who    *servertest.Server
		status int
		code   api.Code
	}{
		"viewer":   {d.As(d.AddUser("default", api.Viewer)), 404, api.CodeNotFound}, // they don't see a local worker
		"member":   {d.As(d.AddUser("default", api.Member)), 404, api.CodeNotFound},
		"stranger": {d.As(d.AddUser("elsewhere", api.Owner)), 404, api.CodeNotFound},
		"admin":    {d.As(d.AddUser("default", api.Admin)), 200, ""},
		"owner":    {d.Server, 200, ""},
	}
	for name, p := range people {
		for _, call := range []struct {
			method, path string
			body         any
		}{
			{"POST", d.atWorker() + "/control-signal", m{"signal": "pause"}},
			{"PATCH", d.atWorker(), m{"maxConcurrent": 7}},
			{"GET", d.atWorker(), nil},
		} {
			status, code := p.status, p.code
			if name == "admin" && call.method == "PATCH" {
				status, code = 403, api.CodeForbidden // only its owner may change a local worker
			}
			a := p.who.Do(call.method, call.path, call.body)
			if a.Status != status || (code != "" && a.Problem(t).Code != code) {
				t.Errorf("%s as %s answered %d %s", call.method, name, a.Status, a.Body)
			}
		}
	}
	// Only the worker itself may acknowledge: an admin can't do it for another user's worker.
	sent := d.signal(api.SignalStop)
	people["admin"].who.Refused(404, api.CodeNotFound, "POST", d.atWorker()+"/ack-control-signal", m{"instanceId": instance, "signalId": sent.ID.String()})
	if sent.SentByName == "" || sent.SentBy == 0 {
		t.Errorf("no sender is named for %+v", sent)
	}

	// A cloud worker is visible to everybody, and the admins manage it.
	cloud := servertest.Must[api.Agent](d.Server, 201, "POST", "agents", m{"slug": "cloudy", "mode": "cloud", "runsAsUserId": "", "run": m{"command": []string{"true"}}})
	w := servertest.Must[api.Registered](d.Server, 201, "POST", "agents/"+cloud.Slug+"/workers", m{"name": "c1", "instanceId": instance}).Worker
	path := "agents/cloudy/workers/" + w.ID.String()
	for _, name := range []string{"viewer", "member"} {
		who := people[name].who
		servertest.Must[api.Worker](who, 200, "GET", path, nil)
		who.Refused(403, api.CodeForbidden, "POST", path+"/control-signal", m{"signal": "stop"})
		who.Refused(403, api.CodeForbidden, "PATCH", path, m{"maxConcurrent": 2})
		who.Refused(403, api.CodeForbidden, "DELETE", path, nil)
	}
	servertest.Must[api.SignalAnswer](people["admin"].who, 200, "POST", path+"/control-signal", m{"signal": "stop"})
	servertest.Must[any](people["admin"].who, 204, "DELETE", path, nil)
}

func TestFacts_OnlyCoarseOnesAreTaken(t *testing.T) {
	d := newFixture(t, servertest.Options{})
	for _, good := range []m{
		{"platform": "linux/amd64", "version": "1.2.3"}, {"platform": "darwin/arm64"}, {"platform": "windows"}, {"version": "v0.4.0-rc.1+dirty"}, {},
	} {
		servertest.Must[api.BeatAnswer](d.Server, 200, "POST", d.atWorker()+"/heartbeat", with(m{"instanceId": instance}, good))
	}
	for _, bad := range []m{
		{"hostname": "annas-laptop"},
		{"user": "anna"},
		{"ip": "10.0.0.7"},
		{"workFolder": "/home/anna"},
		{"platform": "annas-laptop"},
		{"platform": "linux/amd64/annas-laptop"},
		{"platform": "linux annas-laptop"},
		{"platform": "/home/anna"},
		{"version": "anna@laptop"},
		{"version": "/home/anna/bin"},
		{"version": "1.0\n2"},
	} {
		e := d.Refused(422, api.CodeInvalid, "POST", d.atWorker()+"/heartbeat", with(m{"instanceId": instance}, bad))
		for field := range bad {
			if !slices.ContainsFunc(e.Fields, func(f api.FieldError) bool { return f.Field == field }) {
				t.Errorf("%v is refused for %+v", bad, e.Fields)
			}
		}
		d.Refused(422, api.CodeInvalid, "POST", "agents/tidy/workers", with(m{"name": "w3", "instanceId": "boot-3"}, bad))
	}
	// What isn't a fact at all is malformed, as everywhere.
	d.Refused(400, api.CodeMalformed, "POST", d.atWorker()+"/heartbeat", `{"instanceId":1}`)
}
