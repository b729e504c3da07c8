package server_test

import (
	"bytes"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	dto "github.com/prometheus/client_model/go"

	"stint/api"
	"stint/engine"
	"stint/server"
	"stint/server/metrics"
	"stint/server/servertest"
)

const metricsToken = "scrape-me"

// measured is a fixture that measures, and serves it for the token.
func measuredFixture(t *testing.T) *fixture {
	t.Helper()
	counts := metrics.New("test")
	var d *fixture
	later := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		counts.Handler(d.Engine, slog.New(slog.DiscardHandler)).ServeHTTP(w, r)
	})
	d = newFixture(t, servertest.Options{
		Config: func(c *engine.Config) { c.Observer = counts },
		Server: func(o *server.Options) { o.Metrics, o.MetricsToken = later, metricsToken },
	})
	return d
}

// scrape reads all families by name, and lints them.
func (d *fixture) scrape(t *testing.T) map[string]*dto.MetricFamily {
	t.Helper()
	a := d.Do("GET", "/metrics", nil, servertest.With("Authorization", "Bearer "+metricsToken))
	if a.Status != http.StatusOK {
		t.Fatalf("%d %s", a.Status, a.Body)
	}
	problems, err := promlint.New(strings.NewReader(string(a.Body))).Lint()
	if err != nil || len(problems) > 0 {
		t.Errorf("promtool would say %v, %v", problems, err)
	}
	p := expfmt.NewTextParser(model.UTF8Validation)
	all, err := p.TextToMetricFamilies(strings.NewReader(string(a.Body)))
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// value is that of the one metric of a family with these labels.
func value(t *testing.T, all map[string]*dto.MetricFamily, name string, labels map[string]string) float64 {
	t.Helper()
	for _, m := range all[name].GetMetric() {
		left := len(labels)
		for _, l := range m.GetLabel() {
			if labels[l.GetName()] == l.GetValue() {
				left--
			}
		}
		if left == 0 {
			return m.GetCounter().GetValue() + m.GetGauge().GetValue() + float64(m.GetHistogram().GetSampleCount())
		}
	}
	t.Errorf("there is no %s with %v", name, labels)
	return -1
}

func TestMetrics_SayWhatHappenedAndWhatIs(t *testing.T) {
	d := measuredFixture(t)
	c := d.running()
	d.addSession()
	servertest.Must[api.BeatAnswer](d.Server, 200, "POST", d.atWorker()+"/heartbeat", m{"instanceId": instance, "unsent": m{"reports": 3, "seconds": 40}})
	d.Refused(422, api.CodeInvalid, "POST", d.atWorker()+"/heartbeat", m{"instanceId": instance, "unsent": m{"reports": -1, "seconds": 0}})
	all := d.scrape(t)
	if got := value(t, all, "stint_worker_reports_stuck_seconds", nil); got < 40 || got > 100 {
		t.Errorf("they are stuck for %v s", got)
	}
	for _, w := range []struct {
		name   string
		labels map[string]string
		want   float64
	}{
		{"stint_sessions", map[string]string{"workspace": "default", "agent": "tidy", "status": "active"}, 1},
		{"stint_sessions", map[string]string{"workspace": "default", "agent": "tidy", "status": "queued"}, 1},
		{"stint_workers", map[string]string{"state": "online"}, 1},
		{"stint_workers", map[string]string{"state": "offline"}, 0},
		{"stint_worker_reports_unsent", nil, 3},
		{"stint_claim_wait_seconds", nil, 1},
		{"stint_sessions_ended_total", map[string]string{"status": "complete"}, 0},
		{"stint_schedule_slots_total", map[string]string{"verdict": "missed"}, 0},
		{"stint_writes_refused", nil, 0},
		{"stint_webhook_messages_waiting", nil, 0},
		{"stint_build_info", map[string]string{"version": "test"}, 1},
	} {
		if got := value(t, all, w.name, w.labels); got != w.want {
			t.Errorf("%s%v is %v, want %v", w.name, w.labels, got, w.want)
		}
	}
	if got := value(t, all, "stint_database_bytes", nil); got < 100_000 {
		t.Errorf("the database has %v bytes", got)
	}
	servertest.Must[api.Finished](d.Server, 200, "POST", d.at(c.SessionID, "/complete"), with(proof(c), m{"result": "done"}))
	all = d.scrape(t)
	if got := value(t, all, "stint_sessions_ended_total", map[string]string{"status": "complete"}); got != 1 {
		t.Errorf("%v sessions are complete", got)
	}
	if got := value(t, all, "stint_session_run_seconds", map[string]string{"status": "complete"}); got != 1 {
		t.Errorf("%v runs were timed", got)
	}
}

// metricsAnswer has /metrics answer in each way that only a server with a token does.
func metricsAnswer(t *testing.T) {
	t.Helper()
	d := measuredFixture(t)
	d.scrape(t)
	d.Refused(401, api.CodeUnauthenticated, "GET", "/metrics", nil)
	d.Refused(421, api.CodeMisdirected, "GET", "/metrics", nil, func(r *http.Request) { r.Host = "evil.test" })
}

func TestMetrics_AreForWhoHasTheToken(t *testing.T) {
	d := measuredFixture(t)
	for _, with := range []string{"", "Bearer ", "Bearer wrong", "Bearer " + d.Token, metricsToken} {
		a := d.Do("GET", "/metrics", nil, servertest.With("Authorization", with))
		if a.Status != http.StatusUnauthorized || strings.Contains(string(a.Body), "stint_") {
			t.Errorf("with %q: %d", with, a.Status)
		}
	}
	off := newFixture(t, servertest.Options{})
	off.Refused(404, api.CodeNotFound, "GET", "/metrics", nil)
	off.Refused(401, api.CodeUnauthenticated, "GET", "/metrics", nil, servertest.With("Authorization", "Bearer "))
}

func TestMetrics_AloneAnswerNothingElse(t *testing.T) {
	h := server.MetricsAlone(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("yes")) }))
	for path, want := range map[string]int{"/metrics": 200, "/": 404, "/api/v1/account": 404, "/metrics/x": 404} {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
		if w.Code != want {
			t.Errorf("%s: %d", path, w.Code)
		}
	}
}

// named finds metrics of ours in rules, dashboards and text.
var named = regexp.MustCompile(`\bstint_[a-z_]+\b`)

// The rules, the dashboard and the page speak of metrics that there are.
func TestMetrics_AreWhatTheDocumentsSay(t *testing.T) {
	d := measuredFixture(t)
	c := d.running()
	d.addSession()
	servertest.Must[api.Finished](d.Server, 200, "POST", d.at(c.SessionID, "/complete"), with(proof(c), m{"result": "done"}))
	all := d.scrape(t)
	all["stint_claims_lost_total"] = nil // none was
	page := ""
	for _, name := range []string{"monitoring.md", "monitoring/alerts.yml", "monitoring/grafana.json"} {
		text, err := os.ReadFile(filepath.Join("..", "docs", filepath.FromSlash(name)))
		if err != nil {
			t.Fatal(err)
		}
		if page == "" {
			page = string(text)
		}
		for _, metric := range named.FindAllString(string(text), -1) {
			family := strings.TrimSuffix(metric, "_bucket")
			if _, ok := all[family]; !ok {
				t.Errorf("%s speaks of %s, which isn't told", name, metric)
			}
		}
	}
	for metric := range all {
		if strings.HasPrefix(metric, "stint_") && !strings.Contains(page, metric) {
			t.Errorf("monitoring.md says nothing of %s", metric)
		}
	}
}

// Prometheus itself takes the rules, the configuration and what is told.
func TestMetrics_PrometheusIsContent(t *testing.T) {
	promtool, err := exec.LookPath("promtool")
	if err != nil {
		t.Fatal("there is no promtool here; tools/ensure-helpers installs Debian's")
	}
	d := measuredFixture(t)
	d.running()
	told := d.Do("GET", "/metrics", nil, servertest.With("Authorization", "Bearer "+metricsToken)).Body
	for _, args := range [][]string{
		{"check", "rules", "alerts.yml"},
		{"check", "config", "prometheus.yml"},
		{"check", "metrics"},
	} {
		cmd := exec.CommandContext(t.Context(), promtool, args...)
		cmd.Dir, cmd.Stdin = filepath.Join("..", "docs", "monitoring"), bytes.NewReader(told)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("promtool %s: %v\n%s", strings.Join(args, " "), err, out)
		}
	}
}
