package server_test

import (
	"compress/gzip"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"stint/api"
	"stint/engine"
	"stint/engine/enginetest"
	"stint/server/servertest"
	"stint/server/traces"
)

// collector takes spans as a collector of OpenTelemetry does, by HTTP.
type collector struct {
	*httptest.Server
	mu   sync.Mutex
	sent []*tracepb.ResourceSpans
	key  string // of the last request
}

func newCollector(t *testing.T) *collector {
	t.Helper()
	c := &collector{}
	c.Server = httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if r.Method != "POST" || r.URL.Path != "/base/v1/traces" || r.Header.Get("Content-Type") != "application/x-protobuf" {
			t.Errorf("the collector is asked %s %s of %s", r.Method, r.URL.Path, r.Header.Get("Content-Type"))
		}
		var in io.Reader = r.Body
		if r.Header.Get("Content-Encoding") == "gzip" {
			in = must(gzip.NewReader(r.Body))
		}
		var got tracepb.TracesData
		if err := proto.Unmarshal(must(io.ReadAll(in)), &got); err != nil {
			t.Errorf("the collector can't read it: %v", err)
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		c.sent, c.key = append(c.sent, got.GetResourceSpans()...), r.Header.Get("X-Key")
	}))
	t.Cleanup(c.Close)
	return c
}

// spans are what was sent.
func (c *collector) spans() (out []*tracepb.Span) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, r := range c.sent {
		for _, s := range r.GetScopeSpans() {
			out = append(out, s.GetSpans()...)
		}
	}
	return out
}

// newTracer is what tells the address, with more variables than that.
func newTracer(t *testing.T, address string, log *slog.Logger, more map[string]string) *traces.Traces {
	t.Helper()
	s, err := traces.FromEnv(func(name string) string {
		if name == "OTEL_EXPORTER_OTLP_ENDPOINT" {
			return address
		}
		return more[name]
	})
	if err != nil || s == nil {
		t.Fatalf("it is off: %v", err)
	}
	return must(traces.New(t.Context(), *s, "test", log))
}

func attributes(s *tracepb.Span) map[string]string {
	out := map[string]string{}
	for _, a := range s.GetAttributes() {
		out[a.GetKey()] = a.GetValue().GetStringValue()
	}
	return out
}

// wordsOf is all of a span but its random identifiers, in which any short word can turn up.
func wordsOf(s *tracepb.Span) string {
	c := proto.CloneOf(s)
	c.TraceId, c.SpanId, c.ParentSpanId = nil, nil, nil
	for _, l := range c.GetLinks() {
		l.TraceId, l.SpanId = nil, nil
	}
	return c.String()
}

func TestTraces_TellOfASessionsLife(t *testing.T) {
	c := newCollector(t)
	tracer := newTracer(t, c.URL+"/base", slog.New(slog.DiscardHandler), map[string]string{
		"OTEL_EXPORTER_OTLP_HEADERS": "x-key=a%20b", "OTEL_EXPORTER_OTLP_COMPRESSION": "gzip",
	})
	begun := time.Date(2030, 5, 1, 8, 0, 0, 0, time.UTC)
	clock := enginetest.NewClock(begun)
	d := newFixture(t, servertest.Options{Clock: clock.Now, Config: func(c *engine.Config) {
		c.SessionEnded = tracer.Ended
		c.OutageAfter = time.Hour // the steps of the clock are none
	}})
	tracer.Start(d.Engine)
	made := d.addSession()
	clock.Step(10 * time.Second)
	claim := func() api.Claim {
		return servertest.Must[api.Claim](d.Server, 200, "POST", d.at(made.ID, "/claim"), m{"instanceId": instance, "leaseSeconds": 300})
	}
	first := claim()
	clock.Step(5 * time.Second)
	asked := servertest.Must[api.Session](d.Server, 200, "PATCH", d.at(made.ID, ""), with(proof(first), m{
		"status": "awaiting_input", "prompt": m{"kind": "text", "text": "canary?"},
	})).Prompted
	clock.Step(15 * time.Second)
	servertest.Must[api.Session](d.Server, 200, "POST", "sessions/"+made.ID.String()+"/answer", m{"promptId": asked.ID.String(), "text": "canary!"})
	clock.Step(6 * time.Minute)
	lapsed := clock.Now()
	if _, err := d.Engine.Lapse(t.Context(), lapsed); err != nil {
		t.Fatal(err)
	}
	clock.Step(20 * time.Second)
	again := clock.Now()
	second := claim()
	clock.Step(7 * time.Second)
	servertest.Must[api.Finished](d.Server, 200, "POST", d.at(made.ID, "/fail"), with(proof(second), m{"code": "NO_LUCK", "message": "canary"}))
	tracer.Close(time.Minute)

	type span struct {
		name, parent string
		from, to     time.Time
		failed, how  string
	}
	names, ids := map[string]string{}, map[string]bool{}
	for _, s := range c.spans() {
		names[string(s.GetSpanId())], ids[string(s.GetTraceId())] = s.GetName(), true
	}
	if c.key != "a b" {
		t.Errorf("the header is %q", c.key)
	}
	if len(ids) != 1 {
		t.Errorf("there are %d traces", len(ids))
	}
	var got []span
	for _, s := range c.spans() {
		a := attributes(s)
		if said := wordsOf(s); strings.Contains(said, "canary") || strings.Contains(said, "w1") {
			t.Errorf("it tells too much: %v", s)
		}
		got = append(got, span{
			s.GetName(), names[string(s.GetParentSpanId())], time.Unix(0, int64(s.GetStartTimeUnixNano())).UTC(), time.Unix(0, int64(s.GetEndTimeUnixNano())).UTC(),
			s.GetStatus().GetMessage(), a["stint.claim.closed_by"] + a["stint.wait.until"] + a["stint.prompt.resolution"] + a["stint.session.status"],
		})
		if failed := s.GetStatus().GetCode() == tracepb.Status_STATUS_CODE_ERROR; failed != (a["error.type"] != "") || a["error.type"] != s.GetStatus().GetMessage() {
			t.Errorf("%s has status %v and type %q", s.GetName(), s.GetStatus(), a["error.type"])
		}
		switch s.GetName() {
		case "claim":
			if a["stint.worker.mode"] != "local" {
				t.Errorf("the worker's mode is %q", a["stint.worker.mode"])
			}
		case "session tidy":
			if a["stint.session.id"] != made.ID.String() || a["stint.agent"] != "tidy" || a["stint.workspace"] != "default" {
				t.Errorf("the session is %v", a)
			}
		}
	}
	slices.SortStableFunc(got, func(a, b span) int { return a.from.Compare(b.from) })
	ended := again.Add(7 * time.Second)
	at := func(d time.Duration) time.Time { return begun.Add(d) }
	want := []span{
		{"wait", "session tidy", begun, at(10 * time.Second), "", "claimed"},
		{"session tidy", "", begun, ended, "NO_LUCK", "error"},
		{"claim", "session tidy", at(10 * time.Second), lapsed, "lapse", "lapse"},
		{"prompt", "claim", at(15 * time.Second), at(30 * time.Second), "", "answered"},
		{"wait", "session tidy", lapsed, again, "", "claimed"},
		{"claim", "session tidy", again, ended, "NO_LUCK", "fail"},
	}
	if !slices.Equal(got, want) {
		t.Errorf("the spans are\n%v, want\n%v", got, want)
	}
}

// A collector that takes the connection and never answers delays no write, and the end only by
// what is promised.
func TestTraces_WaitForNoCollector(t *testing.T) {
	asked, leave := make(chan struct{}, 100), make(chan struct{})
	hung := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		asked <- struct{}{}
		select {
		case <-leave:
		case <-r.Context().Done():
		}
	}))
	defer hung.Close()
	defer close(leave)
	t.Setenv("OTEL_BSP_SCHEDULE_DELAY", "1") // milliseconds
	tracer := newTracer(t, hung.URL, slog.New(slog.DiscardHandler), nil)
	d := newFixture(t, servertest.Options{Config: func(c *engine.Config) { c.SessionEnded = tracer.Ended }})
	tracer.Start(d.Engine)
	end := func() {
		c := d.running()
		servertest.Must[api.Finished](d.Server, 200, "POST", d.at(c.SessionID, "/complete"), with(proof(c), m{"result": "done"}))
	}
	end()
	<-asked // it hangs now
	for range 20 {
		end()
	}
	closed := make(chan struct{})
	go func() { tracer.Close(10 * time.Millisecond); close(closed) }()
	select {
	case <-closed:
	case <-time.After(30 * time.Second): // the request alone would take its time-out of 10 s, again and again
		t.Fatal("the end waits for the collector")
	}
}

// What the log says of a collector that refuses has no address and no word of its own.
func TestTraces_AreRefused(t *testing.T) {
	refuses := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "canary", http.StatusForbidden) }))
	defer refuses.Close()
	for address, want := range map[string]string{
		refuses.URL + "/secret-path": "the collector answers with status 403",
		"http://127.0.0.1:1":         "could not be sent before the end", // it is tried again
	} {
		said := &servertest.Log{}
		tracer := newTracer(t, address, slog.New(slog.NewTextHandler(said, nil)), nil)
		d := newFixture(t, servertest.Options{Config: func(c *engine.Config) { c.SessionEnded = tracer.Ended }})
		tracer.Start(d.Engine)
		servertest.Must[api.Changed](d.Server, 200, "POST", "sessions/"+d.addSession().ID.String()+"/cancel", nil)
		tracer.Close(500 * time.Millisecond)
		text := said.String()
		if strings.Count(text, "\n") != 1 || !strings.Contains(text, want) || strings.Contains(text, "canary") || strings.Contains(text, "127.0.0.1") || strings.Contains(text, "secret-path") {
			t.Errorf("%s: the log says %s", want, text)
		}
	}
}

func TestTraces_AreOffOrRefusedByTheVariables(t *testing.T) {
	const endpoint = "OTEL_EXPORTER_OTLP_ENDPOINT"
	good := "http://127.0.0.1:4318"
	for _, row := range []struct {
		vars map[string]string
		on   bool
		err  string
	}{
		{nil, false, ""},
		{map[string]string{endpoint: good}, true, ""},
		{map[string]string{"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": good}, true, ""},
		{map[string]string{endpoint: good, "OTEL_SDK_DISABLED": "True"}, false, ""},
		{map[string]string{endpoint: good, "OTEL_TRACES_EXPORTER": "none"}, false, ""},
		{map[string]string{endpoint: good, "OTEL_TRACES_EXPORTER": "console"}, false, "OTEL_TRACES_EXPORTER"},
		{map[string]string{endpoint: "canary"}, false, endpoint},
		{map[string]string{endpoint: "canary", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": good}, true, ""},
		{map[string]string{endpoint: good, "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}, false, "OTEL_EXPORTER_OTLP_PROTOCOL is http/protobuf"},
		{map[string]string{endpoint: good, "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc", "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL": "http/protobuf"}, true, ""},
		{map[string]string{endpoint: good, "OTEL_EXPORTER_OTLP_HEADERS": "canary"}, false, "OTEL_EXPORTER_OTLP_HEADERS"},
		{map[string]string{endpoint: good, "OTEL_EXPORTER_OTLP_HEADERS": "a=canary%0aary"}, false, "OTEL_EXPORTER_OTLP_HEADERS"},
		{map[string]string{endpoint: good, "OTEL_EXPORTER_OTLP_TRACES_TIMEOUT": "10s"}, false, "OTEL_EXPORTER_OTLP_TRACES_TIMEOUT"},
		{map[string]string{endpoint: good, "OTEL_EXPORTER_OTLP_COMPRESSION": "zstd"}, false, "OTEL_EXPORTER_OTLP_COMPRESSION"},
		{map[string]string{endpoint: good, "OTEL_EXPORTER_OTLP_CERTIFICATE": "/nowhere/canary"}, false, "OTEL_EXPORTER_OTLP_CERTIFICATE"},
		{map[string]string{endpoint: good, "OTEL_TRACES_SAMPLER": "canary"}, false, "OTEL_TRACES_SAMPLER is"},
		{map[string]string{endpoint: good, "OTEL_TRACES_SAMPLER": "parentbased_always_ON "}, true, ""},
		{map[string]string{endpoint: good, "OTEL_TRACES_SAMPLER": "traceidratio"}, true, ""},
		{map[string]string{endpoint: good, "OTEL_TRACES_SAMPLER": "traceidratio", "OTEL_TRACES_SAMPLER_ARG": "0.5"}, true, ""},
		{map[string]string{endpoint: good, "OTEL_TRACES_SAMPLER": "traceidratio", "OTEL_TRACES_SAMPLER_ARG": "1.5"}, false, "OTEL_TRACES_SAMPLER_ARG"},
		{map[string]string{endpoint: good, "OTEL_TRACES_SAMPLER": "parentbased_traceidratio", "OTEL_TRACES_SAMPLER_ARG": "NaN"}, false, "OTEL_TRACES_SAMPLER_ARG"},
		{map[string]string{endpoint: good, "OTEL_BSP_MAX_QUEUE_SIZE": "-1"}, false, "OTEL_BSP_MAX_QUEUE_SIZE"}, // the SDK panics
		{map[string]string{endpoint: good, "OTEL_BSP_MAX_EXPORT_BATCH_SIZE": "1000000000000"}, false, "OTEL_BSP_MAX_EXPORT_BATCH_SIZE"},
		{map[string]string{endpoint: good, "OTEL_BSP_SCHEDULE_DELAY": "5s"}, false, "OTEL_BSP_SCHEDULE_DELAY"},
		{map[string]string{endpoint: good, "OTEL_BSP_EXPORT_TIMEOUT": "1000"}, true, ""},
		{map[string]string{"OTEL_TRACES_SAMPLER": "canary"}, false, ""}, // no traces are wanted
	} {
		s, err := traces.FromEnv(func(name string) string { return row.vars[name] })
		if (err == nil && (s != nil) != row.on) || (err != nil) != (row.err != "") {
			t.Errorf("%v: %v, %v", row.vars, s != nil, err)
		}
		if err != nil && (!strings.HasPrefix(err.Error(), row.err) || strings.Contains(err.Error(), "canary")) {
			t.Errorf("%v: %v", row.vars, err)
		}
	}
}
