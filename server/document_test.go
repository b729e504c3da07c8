package server_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"stint/account"
	"stint/api"
	"stint/server"
	"stint/server/servertest"
)

// TestDocument_EveryStatusOfEveryRoute calls each operation of the document in each of the
// ways that it says it can be answered. The client checks every answer against the document;
// at the end no documented status is left that didn't occur.
func TestDocument_EveryStatusOfEveryRoute(t *testing.T) {
	d := newFixture(t, servertest.Options{})
	live := d.running()
	hook := servertest.Must[api.Webhook](d.Server, 201, "POST", "webhooks", m{"url": "https://example.org/hook"})
	sent := servertest.Must[api.Delivery](d.Server, 200, "POST", "webhooks/"+hook.ID.String()+"/test", nil)
	channel := servertest.Must[api.Channel](d.Server, 201, "POST", "channels", m{"url": "ntfy://ntfy.sh/topic"})
	opened := servertest.Must[api.TriggerURL](d.Server, 201, "POST", "agents/tidy/trigger-urls", nil)
	fill := strings.NewReplacer(
		"{channel}", channel.ID.String(), "{webhook}", hook.ID.String(), "{delivery}", sent.ID.String(), "{trigger}", opened.ID.String(), "/hooks/{address}", opened.Path,
		"{workspace}", "default", "{agent}", "tidy", "{session}", live.SessionID.String(),
		"{worker}", d.worker.ID.String(), "{thread}", live.Session.ThreadID.String(), "{prompt}", "pmt_0000000001",
		"{task}", servertest.Must[api.Task](d.Server, 201, "POST", "tasks", m{"title": "Tidy up"}).Key,
	)
	viewer := d.As(d.AddUser("default", api.Viewer))
	key := d.As(servertest.Must[api.Key](d.Server, 201, "POST", "keys", m{"name": "ci", "scopes": []string{"cancel"}}).Key)
	for _, op := range servertest.Operations() {
		path := fill.Replace(op.Path)
		nowhere := strings.Replace(path, "/workspaces/default", "/workspaces/nowhere", 1)
		nowhere = strings.Replace(nowhere, opened.Path, opened.Path+"x", 1)
		body := any(nil)
		if op.Body {
			body = `{}`
		}
		for _, status := range op.Statuses {
			if op.Form || op.Path == "/oauth/register" || op.Path == "/metrics" {
				break // see formsAnswer, registrationsAnswer and the tests of the metrics
			}
			switch status {
			case http.StatusUnauthorized:
				d.Refused(status, api.CodeUnauthenticated, op.Method, path, body, servertest.With("Authorization", ""))
			case http.StatusMisdirectedRequest:
				d.Refused(status, api.CodeMisdirected, op.Method, path, body, func(r *http.Request) { r.Host = "evil.test" })
			case http.StatusForbidden:
				if op.Method == "GET" {
					if a := key.Do("GET", path, nil); a.Status != status || a.Problem(t).Code != api.CodeForbidden && a.Problem(t).Code != api.CodeUserTokenRequired {
						t.Errorf("GET %s by an API key answered %d %s", path, a.Status, a.Body)
					}
					continue
				}
				d.Refused(status, api.CodeCrossOrigin, op.Method, path, body, servertest.With("Sec-Fetch-Site", "cross-site"))
			case http.StatusNotFound:
				d.Refused(status, api.CodeNotFound, op.Method, nowhere, body)
			case http.StatusUnsupportedMediaType:
				d.Refused(status, api.CodeUnsupportedType, op.Method, path, `{}`, servertest.With("Content-Type", "text/plain"))
			case http.StatusRequestEntityTooLarge:
				d.Refused(status, api.CodeTooLarge, op.Method, path, `{"x":"`+strings.Repeat("x", most(op))+`"}`, func(r *http.Request) {
					r.ContentLength = -1 // so that it is read, and the answer isn't lost with the connection
				})
			case http.StatusBadRequest:
				d.Refused(status, api.CodeMalformed, op.Method, path, `[]`)
			case http.StatusUnprocessableEntity:
				if op.Method == "GET" {
					d.Refused(status, api.CodeInvalid, op.Method, path+"?colour=red", nil)
				}
			}
		}
	}
	agentsAnswer(d, viewer)
	sessionsAnswer(d, viewer)
	workersAnswer(d, viewer)
	claimsAnswer(d)
	promptsAnswer(d)
	conversationsAnswer(d, viewer)
	classicAnswers(d)
	webhooksAnswer(d, viewer)
	channelsAnswer(d, viewer)
	tasksAnswer(d, viewer)
	changesAnswer(d)
	servertest.Must[api.Output](d.Server, 200, "GET", "sessions/"+live.SessionID.String()+"/output", nil)
	servertest.Must[api.Output](d.Server, 200, "GET", "agents/tidy/sessions/"+live.SessionID.String()+"/output", nil)
	servertest.Must[list](d.Server, 200, "GET", "schedules", nil)
	servertest.Must[api.SupportBundle](d.Server, 200, "GET", "system/bundle", nil)
	servertest.Must[map[string]any](d.Server, 200, "GET", "status", nil)
	servertest.Must[list](d.Server, 200, "GET", "audit?type=session_created&limit=5", nil)
	viewer.Refused(403, api.CodeForbidden, "GET", "audit", nil)
	peopleAnswer(d)
	formsAnswer(t)
	registrationsAnswer(t)
	serverAnswers(d)
	metricsAnswer(t)
	removedAnswer(t)

	for _, op := range servertest.Operations() {
		for _, status := range op.Statuses {
			if !servertest.Seen(op, status) {
				t.Errorf("%s %s is documented to answer %d, and never did", op.Method, op.Path, status)
			}
		}
	}
}

type (
	m    = map[string]any
	list = api.List[map[string]any]
)

func tasksAnswer(d *fixture, viewer *servertest.Server) {
	s := d.Server
	other := d.As(d.AddUser("default", api.Member))
	body := m{"title": "Limit the rate", "slug": "rate", "labels": []string{"api"}, "links": []m{{"url": "https://example.org/", "title": "Spec"}}, "blockedBy": []string{"T-1"}}
	key := servertest.With("Idempotency-Key", "t1")
	t := servertest.Must[api.Task](s, 201, "POST", "tasks", body, key)
	servertest.Must[api.Task](s, 200, "POST", "tasks", body, key)
	s.Refused(409, api.CodeSlugTaken, "POST", "tasks", body)
	s.Refused(422, api.CodeInvalid, "POST", "tasks", m{"title": ""})
	viewer.Refused(403, api.CodeForbidden, "POST", "tasks", m{"title": "mine"})
	servertest.Must[list](s, 200, "GET", "tasks?state=todo,blocked&assignee=none&label=api&priority=p2&q=rate&limit=1", nil)
	servertest.Must[api.NextTasks](s, 200, "GET", "tasks/next?limit=5", nil)
	servertest.Must[map[string]int64](s, 200, "GET", "tasks/counts", nil)
	s.Refused(422, api.CodeInvalid, "GET", "tasks/counts?x=1", nil)
	one := "tasks/" + t.ID.String()
	servertest.Must[api.Task](s, 200, "GET", "tasks/rate", nil)
	servertest.Must[api.Task](s, 200, "PATCH", one, m{"description": "10/s", "version": 1, "blockedBy": nil})
	s.Refused(409, api.CodeStaleVersion, "PATCH", one, m{"title": "x", "version": 1})
	s.Refused(422, api.CodeInvalid, "PATCH", one, m{"assignee": "nobody-here"})
	s.Refused(409, api.CodeClaimNotActive, "POST", one+"/renew", nil)
	s.Refused(409, api.CodeClaimNotActive, "POST", one+"/extend", m{"addSeconds": 60})
	servertest.Must[api.TaskHeld](s, 200, "POST", one+"/claim", m{"leaseSeconds": 600})
	servertest.Must[api.TaskHeld](s, 200, "POST", one+"/renew", nil)
	servertest.Must[api.TaskHeld](s, 200, "POST", one+"/extend", m{"addSeconds": 60})
	other.Refused(409, api.CodeAlreadyClaimed, "POST", one+"/claim", nil)
	other.Refused(403, api.CodeNotClaimHolder, "POST", one+"/release", nil)
	servertest.Must[api.TaskReleased](s, 200, "POST", one+"/release", nil)
	servertest.Must[api.Dispatched](s, 200, "POST", one+"/dispatch", m{"agent": "tidy", "print": true})
	servertest.Must[api.Dispatched](s, 201, "POST", one+"/dispatch", m{"agent": "tidy"})
	s.Refused(409, api.CodeAlreadyClaimed, "POST", one+"/dispatch", m{"agent": "tidy"})
	s.Refused(422, api.CodeInvalid, "POST", one+"/dispatch", m{"agent": "no-agent"})
	servertest.Must[api.Briefing](s, 200, "GET", one+"/briefing", nil)
	servertest.Must[api.TaskComment](s, 201, "POST", one+"/comments", m{"text": "Mind the bursts."})
	s.Refused(422, api.CodeInvalid, "POST", one+"/comments", m{"text": ""})
	for _, below := range []string{"comments", "events", "sessions"} {
		servertest.Must[list](s, 200, "GET", one+"/"+below, nil)
	}
}

func agentsAnswer(d *fixture, viewer *servertest.Server) {
	s := d.Server
	body := m{"slug": "nightly", "run": m{"command": []string{"true"}}, "schedule": "0 5 * * *", "timeZone": "Europe/Berlin"}
	a := servertest.Must[api.Agent](s, 201, "POST", "agents", body)
	s.Refused(409, api.CodeSlugTaken, "POST", "agents", body)
	s.Refused(422, api.CodeInvalid, "POST", "agents", m{"slug": "!"})
	viewer.Refused(403, api.CodeForbidden, "POST", "agents", with(body, m{"slug": "mine"}))
	servertest.Must[list](s, 200, "GET", "agents?limit=1", nil)
	servertest.Must[api.Agent](s, 200, "GET", "agents/nightly", nil)
	servertest.Must[api.Agent](s, 200, "PATCH", "agents/"+a.ID.String(), m{"description": "every night"})
	s.Refused(409, api.CodeSlugTaken, "PATCH", "agents/nightly", m{"slug": "tidy"})
	s.Refused(422, api.CodeInvalid, "PATCH", "agents/nightly", m{"maxConcurrent": -1})
	if got := servertest.Must[api.AgentChanged](s, 200, "POST", "agents/nightly/pause", m{"reason": "holiday"}); !got.Changed || !got.Agent.Paused || got.Agent.PausedReason != "holiday" {
		d.tb.Errorf("pause answered %+v", got)
	}
	s.Refused(422, api.CodeInvalid, "POST", "agents/nightly/pause", m{"reason": strings.Repeat("x", 5000)})
	if got := servertest.Must[api.AgentChanged](s, 200, "POST", "agents/nightly/pause", nil); got.Changed {
		d.tb.Error("a second pause says that it changed something")
	}
	if got := servertest.Must[api.AgentChanged](s, 200, "POST", "agents/nightly/resume", nil); !got.Changed || got.Agent.Paused {
		d.tb.Errorf("resume answered %+v", got)
	}
	if got := servertest.Must[api.AgentChanged](s, 200, "POST", "agents/nightly/skip", nil); !got.Changed || !got.Agent.SkipUntil.Equal(got.Agent.NextSlotAt.Time) {
		d.tb.Errorf("skip answered %+v", got)
	}
	s.Refused(422, api.CodeInvalid, "POST", "agents/nightly/skip", m{"until": "2001-01-01T00:00:00Z"})
	if got := servertest.Must[api.AgentChanged](s, 200, "POST", "agents/nightly/unskip", nil); !got.Changed || !got.Agent.SkipUntil.IsZero() {
		d.tb.Errorf("unskip answered %+v", got)
	}
	servertest.Must[api.Agent](s, 200, "PATCH", "agents/nightly", m{"schedule": ""})
	s.Refused(409, api.CodeConflict, "POST", "agents/nightly/skip", nil)
	servertest.Must[list](s, 200, "GET", "agents/nightly/ledger", nil)
	s.Do("GET", servertest.Base+"/calendar.ics", nil)
	p := servertest.Must[api.SchedulePreview](s, 200, "GET", "schedules/preview?schedule=0+5+*+*+*&timeZone=Europe/Berlin&from=2026-03-28T12:00:00Z&n=2", nil)
	if len(p.Slots) != 2 || p.Slots[0].Local != "2026-03-29T05:00:00+02:00" || p.Words == "" {
		d.tb.Errorf("preview answered %+v", p)
	}
	servertest.Must[any](s, 204, "DELETE", "agents/nightly", nil)
	s.Refused(404, api.CodeNotFound, "GET", "agents/nightly", nil)
}

func sessionsAnswer(d *fixture, viewer *servertest.Server) {
	s := d.Server
	viewer.Refused(403, api.CodeForbidden, "POST", "agents/tidy/sessions", m{})
	key := servertest.With("Idempotency-Key", "k1")
	first := servertest.Must[api.Session](s, 201, "POST", "agents/tidy/sessions", m{"prompt": "a", "notBefore": "2099-01-01T00:00:00Z"}, key)
	servertest.Must[api.Session](s, 200, "POST", "agents/tidy/sessions", m{"prompt": "a", "notBefore": "2099-01-01T00:00:00Z"}, key)
	s.Refused(422, api.CodeIdempotencyReuse, "POST", "agents/tidy/sessions", m{"prompt": "b"}, key)
	servertest.Must[list](s, 200, "GET", "agents/tidy/sessions?status=queued,pending&phase=pending&limit=200", nil)
	servertest.Must[list](s, 200, "GET", "sessions?agent=tidy&triggeredBy=user&q=hello&since=2020-01-01T00:00:00Z&archived=true", nil)
	counts := servertest.Must[map[api.Status]int64](s, 200, "GET", "sessions/counts?agent=tidy", nil)
	if len(counts) != 8 || counts[api.Pending] != 1 || counts[api.Active] != 1 {
		d.tb.Errorf("counts are %v", counts)
	}
	for _, under := range []string{"sessions/", "agents/tidy/sessions/"} {
		one := under + d.addSession().ID.String()
		servertest.Must[api.Session](s, 200, "GET", one, nil)
		servertest.Must[api.ItemsPage](s, 200, "GET", one+"/items?after=0&limit=10", nil)
		servertest.Must[list](s, 200, "GET", one+"/activities", nil)
		if got := servertest.Must[api.List[api.Event]](s, 200, "GET", one+"/events", nil); len(got.Items) == 0 {
			d.tb.Error("a session without an event")
		}
		s.Refused(409, api.CodeConflict, "POST", one+"/archive", nil)
		if got := servertest.Must[api.Changed](s, 200, "POST", one+"/cancel", m{"reason": "wrong one"}); !got.Changed || got.Session.Status != api.Cancelled {
			d.tb.Errorf("cancel answered %+v", got)
		}
		servertest.Must[api.Changed](s, 200, "POST", one+"/archive", nil)
		if got := servertest.Must[api.Changed](s, 200, "POST", one+"/keep", nil); !got.Changed || got.Session.KeptAt.IsZero() {
			d.tb.Errorf("keep answered %+v", got)
		}
		servertest.Must[api.Changed](s, 200, "DELETE", one+"/keep", nil)
		servertest.Must[api.Changed](s, 200, "POST", one+"/stop", nil)
		again := servertest.Must[api.Session](s, 201, "POST", one+"/retry", nil)
		if again.RetryOf.String() != one[len(under):] || again.Attempt != 2 {
			d.tb.Errorf("retry answered %+v", again)
		}
		running := d.claim(again.ID)
		s.Refused(409, api.CodeSessionRunning, "POST", under+again.ID.String()+"/cancel", m{"onlyPending": true})
		s.Refused(409, api.CodeSessionRunning, "POST", under+again.ID.String()+"/retry", nil)
		s.Refused(422, api.CodeInvalid, "POST", under+again.ID.String()+"/cancel", m{"reason": strings.Repeat("x", 100_000)})
		// A worker that is deleted leaves its session stale: retrying that queues it.
		w := d.addWorker("tidy", "short-lived")
		stale := d.addSession()
		at := "agents/tidy/workers/" + w.ID.String()
		servertest.Must[api.Claim](s, 200, "POST", at+"/sessions/"+stale.ID.String()+"/claim", m{"instanceId": instance})
		servertest.Must[any](s, 204, "DELETE", at, nil)
		if got := servertest.Must[api.Session](s, 200, "POST", under+stale.ID.String()+"/retry", nil); got.ID != stale.ID || got.Status != api.Queued {
			d.tb.Errorf("retry of a stale session answered %+v", got)
		}
		servertest.Must[api.Finished](s, 200, "POST", d.at(again.ID, "/complete"), proof(running))
	}
	servertest.Must[api.Changed](s, 200, "POST", "sessions/"+first.ID.String()+"/cancel", m{})
}

func workersAnswer(d *fixture, viewer *servertest.Server) {
	s := d.Server
	servertest.Must[list](s, 200, "GET", "workers", nil)
	servertest.Must[list](s, 200, "GET", "agents/tidy/workers", nil)
	in := m{"name": "w1", "instanceId": "boot-2", "previousInstanceId": instance, "types": []string{"command"}, "maxConcurrent": 1000}
	s.Refused(409, api.CodeWorkerRunning, "POST", "agents/tidy/workers", with(in, m{"previousInstanceId": ""}))
	s.Refused(422, api.CodeInvalid, "POST", "agents/tidy/workers", m{"name": ""})
	s.Refused(422, api.CodeInvalid, "POST", "agents/tidy/workers", m{"name": "a\x1b[2Jb"})
	viewer.Refused(403, api.CodeForbidden, "POST", "agents/tidy/workers", with(in, m{"name": "w2"}))
	if got := servertest.Must[api.Registered](s, 200, "POST", "agents/tidy/workers", in); got.Worker.ID != d.worker.ID || len(got.Claims) == 0 {
		d.tb.Errorf("registering again answered %+v", got)
	}
	servertest.Must[api.Registered](s, 200, "POST", "agents/tidy/workers", with(in, m{"instanceId": instance, "previousInstanceId": "boot-2"}))
	at := "agents/tidy/workers/" + d.worker.ID.String()
	servertest.Must[api.Worker](s, 200, "GET", at, nil)
	live := d.running()
	got := servertest.Must[api.BeatAnswer](s, 200, "POST", at+"/heartbeat", m{"instanceId": instance, "platform": "linux/amd64", "claimIds": []string{live.ClaimID.String(), "clm_gone"}})
	if len(got.Claims) != 2 || got.Claims[0].State != api.BeatRenewed || got.Claims[1].State != api.BeatLost {
		d.tb.Errorf("a beat answered %+v", got.Claims)
	}
	s.Refused(409, api.CodeInstanceSuperseded, "POST", at+"/heartbeat", m{"instanceId": "boot-0"})
	s.Refused(422, api.CodeInvalid, "POST", at+"/heartbeat", m{"instanceId": instance, "platform": strings.Repeat("x", 10_000)})
	d.addSession()
	if got := servertest.Must[api.List[api.Claimable]](s, 200, "GET", at+"/sessions?wait=1&instanceId="+instance, nil); len(got.Items) == 0 || !got.Items[0].Claimable {
		d.tb.Errorf("poll answered %+v", got)
	}
	s.Refused(409, api.CodeInstanceSuperseded, "GET", at+"/sessions?instanceId=boot-0", nil)
	s.Refused(409, api.CodeInstanceSuperseded, "GET", at+"?instanceId=boot-0&wait=1", nil)
	s.Refused(422, api.CodeInvalid, "GET", at+"?wait=61", nil)
	if got := servertest.Must[api.Worker](s, 200, "PATCH", at, m{"name": "desk", "instructions": "Be brief."}); got.Name != "desk" || got.MaxConcurrent != 1000 {
		d.tb.Errorf("the change answered %+v", got)
	}
	other := d.addWorker("tidy", "w1")
	s.Refused(409, api.CodeConflict, "PATCH", at, m{"name": "w1"})
	s.Refused(422, api.CodeInvalid, "PATCH", at, m{"name": nil})
	servertest.Must[any](s, 204, "DELETE", "agents/tidy/workers/"+other.ID.String(), nil)
	servertest.Must[api.Worker](s, 200, "PATCH", at, m{"name": "w1", "instructions": nil})
	approvalsAnswer(d, at)
	sent := servertest.Must[api.SignalAnswer](s, 200, "POST", at+"/control-signal", m{"signal": "pause"})
	if p := sent.Worker.PendingSignal; !sent.Changed || p == nil || p.Signal != api.SignalPause || sent.Worker.DesiredState != api.DesiredPaused {
		d.tb.Errorf("pausing answered %+v", sent)
	}
	s.Refused(422, api.CodeInvalid, "POST", at+"/control-signal", m{"signal": "dance"})
	ack := m{"instanceId": instance, "signalId": sent.Worker.PendingSignal.ID.String()}
	servertest.Must[api.Worker](s, 200, "POST", at+"/ack-control-signal", ack)
	s.Refused(409, api.CodeStaleSignal, "POST", at+"/ack-control-signal", with(ack, m{"signalId": ""}))
	back := servertest.Must[api.SignalAnswer](s, 200, "POST", at+"/control-signal", m{"signal": "resume"})
	servertest.Must[api.Worker](s, 200, "POST", at+"/ack-control-signal", with(ack, m{"signalId": back.Worker.PendingSignal.ID.String()}))
}

// approvalsAnswer has a worker report what its owner allowed from now on, and be asked to remove
// some of it.
func approvalsAnswer(d *fixture, at string) {
	s := d.Server
	one := m{"id": "ok-aaaaaa", "area": "shell", "tool": "Bash", "what": "git push origin *", "any": true, "approvedAt": "2026-03-07T10:00:00.000Z", "uses": 2, "lastUsedAt": "2026-03-08T10:00:00.000Z"}
	report := m{"instanceId": instance, "state": "one", "approvals": []m{one}}
	servertest.Must[any](s, 204, "POST", at+"/approvals", report)
	s.Refused(409, api.CodeInstanceSuperseded, "POST", at+"/approvals", with(report, m{"instanceId": "boot-0"}))
	s.Refused(422, api.CodeInvalid, "POST", at+"/approvals", with(report, m{"state": ""}))
	s.Refused(422, api.CodeInvalid, "GET", at+"/approvals?x=1", nil)
	got := servertest.Must[api.List[api.StandingApproval]](s, 200, "GET", at+"/approvals", nil)
	if len(got.Items) != 1 || got.Items[0].What != "git push origin *" || got.Items[0].Uses != 2 || got.Items[0].AgentSlug == "" {
		d.tb.Errorf("the list is %+v", got)
	}
	if asked := servertest.Must[api.StandingApproval](s, 200, "DELETE", at+"/approvals/ok-aaaaaa", nil); asked.RemovalRequestedAt.IsZero() {
		d.tb.Errorf("the removal answered %+v", asked)
	}
	s.Refused(404, api.CodeNotFound, "DELETE", at+"/approvals/ok-zzzzzz", nil)
	if beat := servertest.Must[api.BeatAnswer](s, 200, "POST", at+"/heartbeat", m{"instanceId": instance}); beat.Approvals.State != "one" || len(beat.Approvals.Remove) != 1 {
		d.tb.Errorf("the beat answered %+v", beat.Approvals)
	}
	servertest.Must[any](s, 204, "POST", at+"/approvals", m{"instanceId": instance, "state": "", "approvals": []m{}})
}

func claimsAnswer(d *fixture) {
	s := d.Server
	next := m{"workerIds": []string{d.worker.ID.String()}, "instanceId": instance, "requestId": "r1"}
	first := servertest.Must[api.Claim](s, 200, "POST", "claim-next", next)
	if again := servertest.Must[api.Claim](s, 200, "POST", "claim-next", next); again.ClaimID != first.ClaimID {
		d.tb.Error("the same request got another claim")
	}
	s.Refused(422, api.CodeInvalid, "POST", "claim-next", m{"instanceId": instance})
	s.Refused(409, api.CodeInstanceSuperseded, "POST", "claim-next", with(next, m{"instanceId": "boot-0"}))
	for d.Do("POST", "claim-next", m{"workerIds": next["workerIds"], "instanceId": instance}).Status == 200 {
		// until nothing is left
	}
	servertest.Must[any](s, 204, "POST", "claim-next", m{"workerIds": next["workerIds"], "instanceId": instance, "wait": 1})

	c := d.running()
	other := d.addWorker("tidy", "w9")
	e := s.Refused(409, api.CodeAlreadyClaimed, "POST", "agents/tidy/workers/"+other.ID.String()+"/sessions/"+c.SessionID.String()+"/claim", m{"instanceId": instance})
	if e.Holder != d.worker.Name || e.ExpiresAt.IsZero() {
		d.tb.Errorf("the holder isn't named: %+v", e)
	}
	gone := with(proof(c), m{"claimId": "clm_gone"})
	servertest.Must[api.Lease](s, 200, "POST", d.at(c.SessionID, "/renew"), proof(c))
	s.Refused(409, api.CodeClaimNotActive, "POST", d.at(c.SessionID, "/renew"), gone)
	servertest.Must[api.Lease](s, 200, "POST", d.at(c.SessionID, "/extend"), with(proof(c), m{"addSeconds": 60}))
	s.Refused(409, api.CodeClaimNotActive, "POST", d.at(c.SessionID, "/extend"), with(gone, m{"addSeconds": 60}))
	servertest.Must[api.Activity](s, 201, "POST", d.at(c.SessionID, "/activities"), with(proof(c), m{"type": "progress", "text": "half", "key": "a1"}))
	s.Refused(409, api.CodeClaimNotActive, "POST", d.at(c.SessionID, "/activities"), with(gone, m{"type": "progress"}))
	s.Refused(422, api.CodeInvalid, "POST", d.at(c.SessionID, "/activities"), with(proof(c), m{"type": "gossip"}))
	one := m{"kind": "text", "stream": "stdout", "text": "\x1b[32mok\x1b[0m\n", "clientId": "i1"}
	if got := servertest.Must[api.ItemsAnswer](s, 200, "POST", d.at(c.SessionID, "/items"), with(proof(c), m{"items": []any{one, one}})); got.LastSeq != 1 || got.Appended != 1 {
		d.tb.Errorf("items answered %+v", got)
	}
	s.Refused(409, api.CodeClaimNotActive, "POST", d.at(c.SessionID, "/items"), with(gone, m{"items": []any{one}}))
	s.Refused(422, api.CodeInvalid, "POST", d.at(c.SessionID, "/items"), with(proof(c), m{"items": []any{}}))
	got := servertest.Must[api.Session](s, 200, "PATCH", d.at(c.SessionID, ""), with(proof(c), m{"plan": "1. look", "usage": m{"turns": 2}}))
	if got.Plan != "1. look" || got.Usage.Turns != 2 {
		d.tb.Errorf("the patch answered %+v", got)
	}
	s.Refused(409, api.CodeClaimNotActive, "PATCH", d.at(c.SessionID, ""), with(gone, m{"plan": "x"}))
	s.Refused(422, api.CodeInvalid, "PATCH", d.at(c.SessionID, ""), with(proof(c), m{"externalUrl": "javascript:alert(1)"}))

	s.Refused(422, api.CodeInvalid, "POST", d.at(c.SessionID, "/complete"), with(proof(c), m{"result": strings.Repeat("x", 300<<10)}))
	s.Refused(422, api.CodeInvalid, "POST", d.at(c.SessionID, "/fail"), proof(c))
	s.Refused(422, api.CodeInvalid, "POST", d.at(c.SessionID, "/release"), with(proof(c), m{"reason": strings.Repeat("x", 300<<10)}))
	s.Refused(409, api.CodeConflict, "POST", "threads/"+c.Session.ThreadID.String()+"/late-results", with(proof(c), m{"result": "too early"}))
	if got := servertest.Must[api.Finished](s, 200, "POST", d.at(c.SessionID, "/release"), with(proof(c), m{"reason": "busy"})); got.Session.Status != api.Queued {
		d.tb.Errorf("release answered %+v", got)
	}
	s.Refused(409, api.CodeOutcomeConflict, "POST", d.at(c.SessionID, "/complete"), proof(c))
	s.Refused(409, api.CodeOutcomeConflict, "POST", d.at(c.SessionID, "/fail"), with(proof(c), m{"code": "X"}))
	s.Refused(409, api.CodeOutcomeConflict, "POST", d.at(c.SessionID, "/release"), with(proof(c), m{"reason": "bored"}))
	c = d.claim(c.SessionID)
	if got := servertest.Must[api.Finished](s, 200, "POST", d.at(c.SessionID, "/fail"), with(proof(c), m{"code": "AGENT_EXIT_NONZERO", "message": "exit 3"})); got.Session.Error.Code != "AGENT_EXIT_NONZERO" {
		d.tb.Errorf("fail answered %+v", got)
	}
	c = d.running()
	d.addSession()
	fin := servertest.Must[api.Finished](s, 200, "POST", d.at(c.SessionID, "/complete"), with(proof(c), m{
		"result": "fine", "outcome": "done", "usage": m{"inputTokens": 5}, "claimNext": m{"workerIds": next["workerIds"], "requestId": "r2"},
	}))
	if fin.Session.Status != api.Complete || fin.Claim == nil {
		d.tb.Errorf("complete answered %+v", fin)
	}
	late := d.running()
	servertest.Must[api.Changed](s, 200, "POST", "sessions/"+late.SessionID.String()+"/cancel", nil)
	path := "threads/" + late.Session.ThreadID.String() + "/late-results"
	servertest.Must[any](s, 204, "POST", path, with(proof(late), m{"result": "just missed it"}))
	s.Refused(422, api.CodeInvalid, "POST", path, with(proof(late), m{"result": strings.Repeat("x", 300<<10)}))
}

func promptsAnswer(d *fixture) {
	for _, under := range []string{"sessions/", "agents/tidy/sessions/"} {
		c := d.running()
		ask := with(proof(c), m{"status": "awaiting_input", "prompt": m{"kind": "text", "text": "Which one?"}})
		got := servertest.Must[api.Session](d.Server, 200, "PATCH", d.at(c.SessionID, ""), ask)
		if got.Status != api.AwaitingInput || got.Prompted == nil {
			d.tb.Fatalf("asking answered %+v", got)
		}
		path := under + c.SessionID.String() + "/answer"
		answer := m{"promptId": got.Prompted.ID.String(), "text": "The first."}
		d.Refused(422, api.CodeInvalid, "POST", path, m{"promptId": "", "text": ""})
		servertest.Must[api.Session](d.Server, 200, "POST", path, answer)
		d.Refused(409, api.CodePromptClosed, "POST", path, answer)
	}
}

func peopleAnswer(d *fixture) {
	s := d.Server
	servertest.Must[api.Workspace](s, 201, "POST", "/api/v1/workspaces", m{"slug": "lab", "name": "Laboratory"})
	s.Refused(409, api.CodeSlugTaken, "POST", "/api/v1/workspaces", m{"slug": "lab"})
	s.Refused(422, api.CodeInvalid, "POST", "/api/v1/workspaces", m{"slug": "!"})
	if got := servertest.Must[api.Workspace](s, 200, "PATCH", servertest.Base, m{"name": "Home"}); got.Name != "Home" || got.Slug != "default" {
		d.tb.Errorf("renaming answered %+v", got)
	}
	s.Refused(422, api.CodeInvalid, "PATCH", servertest.Base, m{"name": " "})
	s.Refused(422, api.CodeInvalid, "PATCH", servertest.Base, m{"slug": "other"})

	members := servertest.Must[api.List[api.WorkspaceMember]](s, 200, "GET", "members", nil)
	owner := servertest.Must[api.Whoami](s, 200, "GET", "/api/v1/whoami", nil).UserID.String()
	s.Refused(409, api.CodeLastOwner, "PATCH", "members/"+owner, m{"role": "admin"})
	s.Refused(409, api.CodeLastOwner, "DELETE", "members/"+owner, nil)
	other := members.Items[0].UserID.String()
	if got := servertest.Must[api.WorkspaceMember](s, 200, "PATCH", "members/"+other, m{"role": "member"}); got.Role != api.Member {
		d.tb.Errorf("a new role answered %+v", got)
	}
	s.Refused(422, api.CodeInvalid, "PATCH", "members/"+other, m{"role": "king"})
	servertest.Must[api.MemberRemoved](s, 200, "DELETE", "members/"+other, nil)

	i := servertest.Must[api.Invitation](s, 201, "POST", "invitations", m{"role": "viewer", "note": "Ann"})
	if i.Code == "" || i.Link != server.ForBrowsers(d.URL)+"/invitation#"+i.Code {
		d.tb.Errorf("an invitation answered %+v", i)
	}
	s.Refused(422, api.CodeInvalid, "POST", "invitations", m{"role": "king"})
	if got := servertest.Must[list](s, 200, "GET", "invitations", nil); len(got.Items) != 1 || got.Items[0]["code"] != nil {
		d.tb.Errorf("invitations are %v", got)
	}
	s.Refused(409, api.CodeConflict, "POST", "/api/v1/account/invitation", m{"code": i.Code})
	servertest.Must[any](s, 204, "DELETE", "invitations/"+i.ID.String(), nil)
	foreigner := d.As(d.AddUser("elsewhere", api.Owner))
	i = servertest.Must[api.Invitation](s, 201, "POST", "invitations", m{"role": "viewer"})
	servertest.Must[api.Workspace](foreigner, 200, "POST", "/api/v1/account/invitation", m{"code": i.Code})

	k := servertest.Must[api.Key](s, 201, "POST", "keys", m{"name": "ci", "scopes": []string{"read"}})
	s.Refused(422, api.CodeInvalid, "POST", "keys", m{"name": "", "scopes": []string{"write"}, "expiresAt": "2020-01-01T00:00:00Z"})
	servertest.Must[list](s, 200, "GET", "keys", nil)
	servertest.Must[any](s, 204, "DELETE", "keys/"+k.ID.String(), nil)

	identity := "/api/v1/account/identities/" + d.linked().String()
	servertest.Must[api.Account](s, 200, "GET", "/api/v1/account", nil)
	s.Refused(409, api.CodeConflict, "DELETE", identity, nil)
	s.Refused(422, api.CodeInvalid, "POST", "/api/v1/account/login", m{"login": "x", "password": "short"})
	servertest.Must[api.Account](s, 200, "POST", "/api/v1/account/login", m{"login": "Ann", "password": "correct horse"})
	s.Refused(404, api.CodeNotFound, "DELETE", "/api/v1/account/identities/idn_0000000001", nil)
	servertest.Must[any](s, 204, "DELETE", identity, nil)
	d.cookie()
	signIns := servertest.Must[api.List[api.SignIn]](s, 200, "GET", "/api/v1/account/sign-ins", nil)
	servertest.Must[any](s, 204, "DELETE", "/api/v1/account/sign-ins/"+signIns.Items[0].ID.String(), nil)
	d.cookie()
	if got := servertest.Must[api.SignedOut](s, 200, "POST", "/api/v1/account/sign-out-everywhere", nil); got.Ended != 1 {
		d.tb.Errorf("signing out everywhere ended %d", got.Ended)
	}
}

// registrationsAnswer registers a program in each of the ways.
func registrationsAnswer(t *testing.T) {
	l := newRegistry(t)
	const path = "/oauth/register"
	nobody := l.As("")
	l.registered("x", "https://a.test/cb")
	if a := l.register(m{"redirect_uris": []string{}}); a.Status != 400 {
		t.Errorf("it answered %d", a.Status)
	}
	nobody.Refused(403, api.CodeCrossOrigin, "POST", path, m{}, servertest.With("Sec-Fetch-Site", "cross-site"))
	nobody.Refused(413, api.CodeTooLarge, "POST", path, `{"x":"`+strings.Repeat("x", 9<<10)+`"}`)
	nobody.Refused(415, api.CodeUnsupportedType, "POST", path, `{}`, servertest.With("Content-Type", "text/plain"))
	nobody.Refused(421, api.CodeMisdirected, "POST", path, m{}, func(r *http.Request) { r.Host = "evil.test" })
	newLobby(t).As("").Refused(404, api.CodeNotFound, "POST", path, m{})
	all := servertest.Must[api.List[api.RegisteredProgram]](l.Server, 200, "GET", "/api/v1/programs", nil)
	l.As(l.AddUser("default", api.Admin)).Refused(403, api.CodeForbidden, "GET", "/api/v1/programs", nil)
	l.Refused(404, api.CodeNotFound, "DELETE", "/api/v1/programs/app_0000000001", nil)
	servertest.Must[any](l.Server, 204, "DELETE", "/api/v1/programs/"+all.Items[0].ID.String(), nil)
}

// formsAnswer calls the operations that take forms in each of their ways.
func formsAnswer(t *testing.T) {
	l := newLobby(t)
	token := l.signIn()
	good := map[string]url.Values{
		"/oauth/token":  {"grant_type": {"refresh_token"}, "refresh_token": {token.RefreshToken}},
		"/oauth/device": {},
		"/oauth/revoke": {"token": {l.signIn().RefreshToken}},
	}
	for _, op := range servertest.Operations() {
		if !op.Form {
			continue
		}
		post := func(form string, changes ...servertest.Change) servertest.Response {
			return l.Do(op.Method, op.Path, form, append([]servertest.Change{servertest.With("Authorization", ""), servertest.With("Content-Type", formType)}, changes...)...)
		}
		form := good[op.Path]
		form.Set("client_id", account.CLI)
		ways := map[int]func() servertest.Response{
			200: func() servertest.Response { return post(form.Encode()) },
			400: func() servertest.Response { return post("client_id=nobody") },
			401: func() servertest.Response { return post(form.Encode(), servertest.With("Authorization", "Basic eDp5")) },
			403: func() servertest.Response {
				return post(form.Encode(), servertest.With("Sec-Fetch-Site", "cross-site"))
			},
			413: func() servertest.Response { return post(strings.Repeat("x", 9<<10)) },
			415: func() servertest.Response { return post("{}", servertest.With("Content-Type", "application/json")) },
			421: func() servertest.Response {
				return post(form.Encode(), func(r *http.Request) { r.Host = "evil.test" })
			},
			429: func() servertest.Response {
				many := url.Values{"client_id": {account.CLI}, "grant_type": {"authorization_code"}, "code": {"nobody's"}}
				for range 61 {
					if a := post(many.Encode()); a.Status == 429 {
						return a
					}
				}
				return post(many.Encode())
			},
		}
		for _, status := range op.Statuses {
			if a := ways[status](); a.Status != status {
				t.Errorf("%s %s answered %d, not %d: %s", op.Method, op.Path, a.Status, status, a.Body)
			}
		}
	}
}

func serverAnswers(d *fixture) {
	s := d.Server
	if got := servertest.Must[list](s, 200, "GET", "events?after=0&limit=3", nil); len(got.Items) != 3 {
		d.tb.Errorf("%d events, not 3", len(got.Items))
	}
	servertest.Must[api.Workspace](s, 200, "GET", servertest.Base, nil)
	servertest.Must[list](s, 200, "GET", "/api/v1/workspaces", nil)
	if got := servertest.Must[api.Whoami](s, 200, "GET", "/api/v1/whoami", nil); got.UserID == 0 || got.Name == "" {
		d.tb.Errorf("whoami answered %+v", got)
	}
	if got := servertest.Must[api.SignInLink](s, 201, "POST", "/api/v1/signin-links", nil); got.Link == "" {
		d.tb.Error("an empty link")
	}
	servertest.Must[m](s, 200, "GET", "inbox", nil)
	servertest.Must[api.ProtectedResource](s, 200, "GET", "/.well-known/oauth-protected-resource", nil)
	servertest.Must[m](s, 200, "GET", "/healthz", nil, servertest.With("Authorization", ""))
	servertest.Must[m](s, 200, "GET", "/readyz", nil, servertest.With("Authorization", ""))
	servertest.Must[m](s, 200, "GET", "/openapi.json", nil)
	if a := s.Do("GET", "/openapi.yaml", nil); a.Status != 200 || !strings.HasPrefix(string(a.Body), "openapi: 3.1") {
		d.tb.Errorf("/openapi.yaml answered %d %.40s", a.Status, a.Body)
	}
}

func TestLists_EmptyOnesAnswerAnEmptyList(t *testing.T) {
	d := newFixture(t, servertest.Options{})
	d.addAgent("idle", 1)
	id := d.addSession().ID.String()
	for _, path := range []string{
		"agents/idle/sessions", "agents/idle/workers", "agents/idle/ledger", "sessions?agent=idle", "sessions?status=error",
		"sessions?status=queued&phase=complete", "sessions/" + id + "/activities", "sessions/" + id + "/items",
		"sessions/" + id + "/items?before=0", "events?after=999999", "sessions?q=nothing-has-this",
	} {
		a := d.Do("GET", path, nil)
		if a.Status != 200 || !strings.Contains(string(a.Body), `"items":[]`) {
			t.Errorf("%s answered %d %s", path, a.Status, a.Body)
		}
	}
	fresh := servertest.New(t, servertest.Options{})
	for _, path := range []string{"agents", "sessions", "workers", "events?after=999"} {
		if a := fresh.Do("GET", path, nil); a.Status != 200 || !strings.Contains(string(a.Body), `"items":[]`) {
			t.Errorf("on a new file %s answered %d %s", path, a.Status, a.Body)
		}
	}
}

func TestLists_PagesShowEachOnceInBothDirections(t *testing.T) {
	d := newFixture(t, servertest.Options{})
	c := d.running()
	const n = 100
	for range n {
		servertest.Must[api.Activity](d.Server, 201, "POST", d.at(c.SessionID, "/activities"), with(proof(c), m{"type": "progress"}))
	}
	seen := map[api.ActivityID]bool{}
	path := "sessions/" + c.SessionID.String() + "/activities?limit=7"
	last := api.ActivityID(1<<63 - 1)
	for cursor := ""; ; {
		page := servertest.Must[api.List[api.Activity]](d.Server, 200, "GET", path+"&cursor="+cursor, nil)
		for _, a := range page.Items {
			if seen[a.ID] || a.ID >= last {
				t.Fatalf("%s comes twice or out of order", a.ID)
			}
			seen[a.ID], last = true, a.ID
		}
		if cursor = page.NextCursor; cursor == "" {
			break
		}
	}
	if len(seen) != n {
		t.Errorf("%d activities were shown, not %d", len(seen), n)
	}
	items := make([]any, n)
	for i := range items {
		items[i] = m{"kind": "text", "text": "line"}
	}
	servertest.Must[api.ItemsAnswer](d.Server, 200, "POST", d.at(c.SessionID, "/items"), with(proof(c), m{"items": items}))
	forward, backward := 0, 0
	for after := int64(0); ; {
		page := servertest.Must[api.ItemsPage](d.Server, 200, "GET", path[:len(path)-len("activities?limit=7")]+"items?limit=7&after="+itoa(after), nil)
		if len(page.Items) == 0 {
			break
		}
		for _, i := range page.Items {
			if forward++; i.Seq != after+1 || page.LastSeq != n {
				t.Fatalf("item %d after %d of %d", i.Seq, after, page.LastSeq)
			}
			after = i.Seq
		}
	}
	for before := int64(0); before != 1; {
		page := servertest.Must[api.ItemsPage](d.Server, 200, "GET", path[:len(path)-len("activities?limit=7")]+"items?limit=7&before="+itoa(before), nil)
		if page.LastSeq != n {
			t.Fatalf("the last is said to be %d", page.LastSeq)
		}
		backward += len(page.Items)
		before = page.Items[0].Seq
	}
	if forward != n || backward != n {
		t.Errorf("%d items forward and %d backward, not %d", forward, backward, n)
	}
}

func TestServerTime_IsTheCommits(t *testing.T) {
	d := newFixture(t, servertest.Options{})
	c := d.addSession()
	a := d.Do("POST", d.at(c.ID, "/claim"), m{"instanceId": instance})
	if a.Header.Get("Stint-Server-Time") == "" || !strings.Contains(string(a.Body), `"serverTime":"`+a.Header.Get("Stint-Server-Time")) {
		t.Errorf("the header says %q, the body %s", a.Header.Get("Stint-Server-Time"), a.Body)
	}
	for _, path := range []string{"/healthz", "agents", "sessions/nonsense", "/nowhere", "/signin"} {
		var at api.Time
		if err := at.UnmarshalText([]byte(d.Do("GET", path, nil).Header.Get("Stint-Server-Time"))); err != nil || at.IsZero() {
			t.Errorf("%s carries no time: %v", path, err)
		}
	}
}

// most is how many bytes a body may have: more where files may come with it.
func most(op servertest.Operation) int {
	if op.Method == "POST" && (strings.HasSuffix(op.Path, "/messages") || strings.HasSuffix(op.Path, "/{agent}/sessions")) {
		return 16 << 20
	}
	return 1 << 20
}
