package server_test

import (
	"context"
	"io"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"stint/account"
	"stint/api"
	"stint/engine"
	"stint/server"
	"stint/server/servertest"
)

var noKey engine.Idempotency

// owner is the fixture's owner as the engine's caller.
func owner(d *fixture) engine.Caller {
	who, err := d.Accounts.Owner(context.Background())
	if err != nil {
		d.tb.Fatal(err)
	}
	in, err := d.Accounts.In(context.Background(), who, account.DefaultWorkspace)
	if err != nil {
		d.tb.Fatal(err)
	}
	return in
}

func (d *fixture) next(wait int) map[string]any {
	return m{"workerIds": []string{d.worker.ID.String()}, "instanceId": instance, "wait": wait}
}

func TestClaimNext_HeldRequestGetsTheSessionAtOnce(t *testing.T) {
	d := newFixture(t, servertest.Options{})
	for range 20 {
		got := make(chan api.Claim, 1)
		go func() { got <- servertest.Must[api.Claim](d.Server, 200, "POST", "claim-next", d.next(30)) }()
		made := d.addSession() // before, at or after the moment the request is held
		select {
		case c := <-got:
			if c.SessionID != made.ID {
				t.Fatalf("claimed %s, not %s", c.SessionID, made.ID)
			}
		case <-time.After(20 * time.Second):
			t.Fatal("the held request slept through it")
		}
	}
}

func TestRace_SixtyFourWorkersOneSession(t *testing.T) {
	d := newFixture(t, servertest.Options{})
	const n = 64
	workers := make([]api.Worker, n)
	for i := range workers {
		workers[i] = d.addWorker("tidy", "racer-"+itoa(int64(i)))
	}
	for round := range 3 {
		id := d.addSession().ID
		answers := make([]servertest.Response, n)
		start := make(chan struct{})
		var wg sync.WaitGroup
		for i, w := range workers {
			wg.Go(func() {
				<-start
				answers[i] = d.Do("POST", "agents/tidy/workers/"+w.ID.String()+"/sessions/"+id.String()+"/claim", m{"instanceId": instance})
			})
		}
		close(start)
		wg.Wait()
		var winner string
		lost := 0
		for i, a := range answers {
			if a.Status == 200 {
				if winner != "" {
					t.Fatalf("round %d: %s and %s both hold the session", round, winner, workers[i].Name)
				}
				winner = workers[i].Name
			}
		}
		for _, a := range answers {
			if a.Status != 409 {
				continue
			}
			lost++
			e := a.Problem(t)
			if e.Code != api.CodeAlreadyClaimed || e.Holder != winner || e.ExpiresAt.IsZero() || e.Status != api.Active {
				t.Fatalf("round %d: the winner is %s, a loser gets %+v", round, winner, e)
			}
		}
		if winner == "" || lost != n-1 {
			t.Fatalf("round %d: winner %q, %d losers", round, winner, lost)
		}
	}
}

// madeOnce sends a creation twenty times at once with the same key: one makes something, and all
// say where it is, which is returned.
func (d *fixture) madeOnce(path, body string, key servertest.Change) string {
	d.tb.Helper()
	const n = 20
	var wg sync.WaitGroup
	places, replays := make([]string, n), make([]bool, n)
	for i := range n {
		wg.Go(func() {
			a := d.Do("POST", path, body, key)
			if a.Status != 201 && a.Status != 200 {
				d.tb.Errorf("answered %d %s", a.Status, a.Body)
				return
			}
			replays[i] = a.Header.Get("Idempotent-Replayed") == "true"
			if replays[i] != (a.Status == 200) {
				d.tb.Errorf("%d with Idempotent-Replayed %v", a.Status, replays[i])
			}
			places[i] = a.Header.Get("Location")
		})
	}
	wg.Wait()
	first := 0
	for i := range n {
		if places[i] != places[0] || places[i] == "" {
			d.tb.Errorf("%s and %s", places[i], places[0])
		}
		if !replays[i] {
			first++
		}
	}
	if first != 1 {
		d.tb.Errorf("%d requests say that they made it", first)
	}
	return places[0][strings.LastIndexByte(places[0], '/')+1:]
}

func TestIdempotency_OneTaskAKey(t *testing.T) {
	d := newFixture(t, servertest.Options{})
	key := servertest.With("Idempotency-Key", "order-66")
	one := d.madeOnce("tasks", `{"title":"Once"}`, key)
	if list := servertest.Must[api.List[api.Task]](d.Server, 200, "GET", "tasks", nil); len(list.Items) != 1 || list.Items[0].Key != one {
		t.Errorf("there are %+v, made was %s", list.Items, one)
	}
	d.Refused(422, api.CodeIdempotencyReuse, "POST", "tasks", `{"title":"Twice"}`, key)
	servertest.Must[api.Task](d.Server, 200, "PATCH", "tasks/"+one, m{"title": "Changed since"})
	if again := servertest.Must[api.Task](d.Server, 200, "POST", "tasks", `{"title":"Once"}`, key); again.Key != one || again.Title != "Changed since" {
		t.Errorf("the key answers %+v", again)
	}
	// Another user, another workspace or no key means another task; a key of a session is none of a task.
	servertest.Must[api.Task](d.As(d.AddUser("default", api.Member)), 201, "POST", "tasks", `{"title":"Once"}`, key)
	servertest.Must[api.Session](d.Server, 201, "POST", "agents/tidy/sessions", `{"prompt":"once"}`, key)
	servertest.Must[api.Workspace](d.Server, 201, "POST", "/api/v1/workspaces", m{"slug": "lab", "name": "Lab"})
	servertest.Must[api.Task](d.Server, 201, "POST", "/api/v1/workspaces/lab/tasks", `{"title":"Once"}`, key)
}

func TestIdempotency_OneSessionAKey(t *testing.T) {
	d := newFixture(t, servertest.Options{})
	d.addAgent("second", 1)
	key := servertest.With("Idempotency-Key", "order-66")
	one := d.madeOnce("agents/tidy/sessions", `{"prompt":"once"}`, key)
	d.Refused(422, api.CodeIdempotencyReuse, "POST", "agents/tidy/sessions", `{"prompt":"twice"}`, key)
	// An agent's id and its slug name the same route.
	byID := servertest.Must[api.Session](d.Server, 200, "POST", "agents/"+d.agent.ID.String()+"/sessions", `{"prompt":"once"}`, key)
	if byID.ID.String() != one {
		t.Errorf("by the agent's id it is %s, not %s", byID.ID, one)
	}
	d.Refused(422, api.CodeIdempotencyReuse, "POST", "agents/"+d.agent.ID.String()+"/sessions", `{"prompt":"twice"}`, key)
	// Another route, another user or no key means another session.
	other := servertest.Must[api.Session](d.Server, 201, "POST", "agents/second/sessions", `{"prompt":"once"}`, key)
	plain := servertest.Must[api.Session](d.Server, 201, "POST", "agents/tidy/sessions", `{"prompt":"once"}`)
	admin := d.As(d.AddUser("default", api.Admin))
	theirs := servertest.Must[api.Session](admin, 201, "POST", "agents/tidy/sessions", `{"prompt":"once"}`, key)
	seen := map[string]bool{one: true, other.ID.String(): true, plain.ID.String(): true, theirs.ID.String(): true}
	if len(seen) != 4 {
		t.Errorf("only %d sessions", len(seen))
	}
	for _, bad := range []string{"", " ", "two words", "ümlaut", strings.Repeat("k", 256), "a\tb"} {
		a := d.Do("POST", "agents/tidy/sessions", `{}`, func(r *http.Request) { r.Header["Idempotency-Key"] = []string{bad} })
		if a.Status != 422 {
			t.Errorf("the key %q answered %d", bad, a.Status)
		}
	}
	two := func(r *http.Request) { r.Header["Idempotency-Key"] = []string{"a", "b"} }
	d.Refused(422, api.CodeInvalid, "POST", "agents/tidy/sessions", `{}`, two)
	// A refused request leaves no key behind.
	late := servertest.With("Idempotency-Key", "later")
	d.Refused(400, api.CodeMalformed, "POST", "agents/tidy/sessions", `{"prompt":1}`, late)
	d.Refused(404, api.CodeNotFound, "POST", "agents/third/sessions", `{}`, late)
	d.addAgent("third", 1)
	servertest.Must[api.Session](d.Server, 201, "POST", "agents/third/sessions", `{}`, late)
}

func TestFinish_AgainIsTheSameAnswer(t *testing.T) {
	d := newFixture(t, servertest.Options{})
	c := d.running()
	body := with(proof(c), m{"result": "fine"})
	for range 3 {
		servertest.Must[api.Finished](d.Server, 200, "POST", d.at(c.SessionID, "/complete"), body)
	}
	e := d.Refused(409, api.CodeOutcomeConflict, "POST", d.at(c.SessionID, "/fail"), with(proof(c), m{"code": "X"}))
	if e.Status != api.Complete {
		t.Errorf("the conflict says %+v", e)
	}
	c = d.running()
	for range 2 {
		servertest.Must[api.Activity](d.Server, 201, "POST", d.at(c.SessionID, "/activities"), with(proof(c), m{"type": "progress", "text": "x", "key": "k"}))
	}
	if got := servertest.Must[list](d.Server, 200, "GET", "sessions/"+c.SessionID.String()+"/activities", nil); len(got.Items) != 1 {
		t.Errorf("%d activities", len(got.Items))
	}
}

func TestShutdown_HeldRequestsEndFirstAndWritesFinish(t *testing.T) {
	d := newFixture(t, servertest.Options{})
	var streams []*reader
	for range 10 {
		streams = append(streams, openStream(t, d.Server, ""))
	}
	held := make(chan int, 2)
	hold := func(method, path string, body any) {
		status := 0
		defer func() { held <- status }() // also when Do ends this goroutine
		status = d.Do(method, path, body).Status
	}
	go hold("POST", "claim-next", d.next(60))
	go hold("GET", d.atWorker()+"/sessions?wait=60&instanceId="+instance, nil)
	// A write whose body is still on its way when the shutdown begins.
	body, feed := io.Pipe()
	slow := make(chan int, 1)
	patient := http.DefaultTransport.(*http.Transport).Clone()
	patient.ExpectContinueTimeout = time.Minute
	t.Cleanup(patient.CloseIdleConnections)
	go func() {
		req, err := http.NewRequestWithContext(context.Background(), "POST", d.URL+servertest.Base+"/agents/tidy/sessions", body)
		if err != nil {
			t.Error(err)
			return
		}
		req.Header.Set("Authorization", "Bearer "+d.Token)
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Expect", "100-continue") // the body begins when the handler reads it
		resp, err := patient.RoundTrip(req)
		if err != nil {
			t.Error(err)
			slow <- 0
			return
		}
		_ = resp.Body.Close()
		slow <- resp.StatusCode
	}()
	if _, err := io.WriteString(feed, `{"prompt":`); err != nil {
		t.Fatal(err)
	}
	// Connections without a request, as browsers open them.
	d.Do("GET", "/healthz", nil)
	servertest.Wait(t, "all to be held", func() bool { return d.HTTP.Holding() == len(streams)+2 })

	begun := time.Now()
	stopped := make(chan struct{})
	go func() { defer close(stopped); d.Stop() }()
	for _, r := range streams {
		for {
			if _, ok := r.next(); !ok {
				break
			}
		}
	}
	for range 2 {
		if status := <-held; status != 200 && status != 204 {
			t.Errorf("a held request was answered %d", status)
		}
	}
	if _, err := io.WriteString(feed, `"slow"}`); err != nil {
		t.Fatal(err)
	}
	_ = feed.Close()
	if status := <-slow; status != 201 {
		t.Errorf("the slow write was answered %d", status)
	}
	<-stopped
	if took := time.Since(begun); took > 5*time.Second {
		t.Errorf("the end took %v", took)
	}
	again := servertest.New(t, servertest.Options{Path: d.Path, Token: d.Token})
	got := servertest.Must[api.List[api.Session]](again, 200, "GET", "sessions", nil)
	if len(got.Items) != 1 || got.Items[0].Prompt != "slow" {
		t.Errorf("after the restart there are %d sessions", len(got.Items))
	}
}

func TestHeld_EndsWhenTheRightsEnd(t *testing.T) {
	d := newFixture(t, servertest.Options{})
	cookie := d.cookie()
	answer := make(chan servertest.Response, 1)
	go func() {
		var a servertest.Response
		defer func() { answer <- a }()
		a = d.Do("POST", "claim-next", d.next(60), servertest.With("Authorization", ""), servertest.With("Cookie", cookie),
			servertest.With("Sec-Fetch-Site", "same-origin"))
	}()
	servertest.Wait(t, "the request to be held", func() bool { return d.HTTP.Holding() == 1 })
	begun := time.Now()
	if err := d.Accounts.SignOut(t.Context(), strings.TrimPrefix(cookie, "stint_session=")); err != nil {
		t.Fatal(err)
	}
	a := <-answer
	if a.Status != 401 {
		t.Errorf("answered %d %s", a.Status, a.Body)
	}
	if took := time.Since(begun); took > 15*time.Second {
		t.Errorf("it was held for %v", took)
	}
}

// Two thousand idle waiters and slow clients don't slow writes, and leave nothing behind.
func TestHeld_ManyIdleOnesCostWritesNothing(t *testing.T) {
	d := newFixture(t, servertest.Options{Server: func(o *server.Options) { o.Limits = sameLimits(400) }})
	before := runtime.NumGoroutine()
	ctx, cancel := context.WithCancel(context.Background())
	transport := &http.Transport{}
	var wg sync.WaitGroup
	over := make(chan int, 500)
	for range 500 {
		wg.Go(func() {
			req := must(http.NewRequestWithContext(ctx, "POST", d.URL+servertest.Base+"/claim-next",
				strings.NewReader(`{"workerIds":["`+d.worker.ID.String()+`"],"instanceId":"`+instance+`","wait":60}`)))
			req.Header.Set("Authorization", "Bearer "+d.Token)
			req.Header.Set("Content-Type", "application/json")
			if resp, err := transport.RoundTrip(req); err == nil {
				_ = resp.Body.Close()
				over <- resp.StatusCode
			}
		})
	}
	refused := 0
	for refused < 100 {
		select {
		case status := <-over:
			if status != 429 {
				t.Fatalf("a held request was answered %d", status)
			}
			refused++
		case <-time.After(20 * time.Second):
			t.Fatalf("only %d of 100 were refused", refused)
		}
	}
	servertest.Must[api.Agent](d.Server, 200, "PATCH", "agents/tidy", m{"name": "still here"})
	cancel()
	wg.Wait()
	transport.CloseIdleConnections()
	servertest.Wait(t, "the waiters' goroutines to end", func() bool { return runtime.NumGoroutine() < before+5 })
	servertest.Must[api.Session](d.Server, 201, "POST", "agents/tidy/sessions", m{})
	servertest.Must[api.Claim](d.Server, 200, "POST", "claim-next", d.next(1))
}

func TestLog_HasNoSecrets(t *testing.T) {
	d := newFixture(t, servertest.Options{})
	c := d.running()
	link := d.link()
	d.Do("GET", "/signin?link="+link, nil)
	d.Do("GET", "sessions?q=canary-in-the-query", nil)
	d.Do("GET", "agents?cursor=canary-in-the-query", nil)
	d.Do("POST", d.at(c.SessionID, "/activities"), with(proof(c), m{"type": "progress", "text": "canary-in-the-body"}))
	d.Do("POST", d.at(c.SessionID, "/complete"), with(proof(c), m{"result": "canary-in-the-body"}))
	d.Do("GET", "/nowhere", nil, servertest.With("Authorization", "Bearer canary-token"), servertest.With("Cookie", "stint_session=canary-cookie"))
	log := d.Log.String()
	for _, secret := range []string{d.Token, c.ClaimID.String(), c.ClaimID.String()[14:], link, "canary"} {
		if strings.Contains(log, secret) {
			t.Errorf("the log has %q in it", secret)
		}
	}
	if !strings.Contains(log, "path=/nowhere") || !strings.Contains(log, "status=401") {
		t.Error("the log has no line for the refused request")
	}
}

// sameLimits lets n requests of each kind be held, whoever holds them.
func sameLimits(n int64) server.Limits {
	limit := server.Limit{Person: n, Address: n, All: n}
	return server.Limits{Streams: limit, Waits: limit}
}
