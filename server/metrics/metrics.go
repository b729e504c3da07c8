// Package metrics tells what the coordinator does in the text format of Prometheus.
//
// What happened is counted from the start of the process on; what is at present is read when
// somebody asks. No label is an id, a person or anything that grows with use: an agent is named
// by its slug and its workspace's.
package metrics

import (
	"context"
	"log/slog"
	"net/http"
	"runtime"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"stint/api"
	"stint/engine"
)

// Metrics counts what happens. It is the engine's observer.
type Metrics struct {
	registry *prometheus.Registry
	claimed  prometheus.Histogram
	ended    *prometheus.CounterVec
	ran      *prometheus.HistogramVec
	lost     *prometheus.CounterVec
	slots    *prometheus.CounterVec
	commits  prometheus.Histogram
	shared   prometheus.Histogram
}

var _ engine.Observer = (*Metrics)(nil)

// New makes the counters of a process. Version is the program's.
func New(version string) *Metrics {
	m := &Metrics{
		registry: prometheus.NewRegistry(),
		claimed: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "stint_claim_wait_seconds", Help: "How long sessions had been in the queue when they were claimed.",
			Buckets: []float64{.01, .05, .25, 1, 5, 30, 120, 600, 3600, 6 * 3600},
		}),
		ended: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "stint_sessions_ended_total", Help: "Sessions that ended, by how.",
		}, []string{"status"}),
		ran: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "stint_session_run_seconds", Help: "Time from a session's first claim to its end.",
			Buckets: []float64{1, 5, 30, 120, 600, 1800, 3600, 4 * 3600, 24 * 3600},
		}, []string{"status"}),
		lost: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "stint_claims_lost_total", Help: "Claims that ended without their holder, by why.",
		}, []string{"reason"}),
		slots: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "stint_schedule_slots_total", Help: "Slots of schedules, by what became of them.",
		}, []string{"verdict"}),
		commits: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "stint_commit_seconds", Help: "How long the database took to make a transaction durable.",
			Buckets: []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .5, 2},
		}),
		shared: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "stint_commit_writes", Help: "Writes that shared a transaction.",
			Buckets: []float64{1, 2, 4, 8, 16, 32, 64, 128, 256, 512},
		}),
	}
	build := prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "stint_build_info", Help: "1, with the version as a label.",
		ConstLabels: prometheus.Labels{"version": version, "goversion": runtime.Version()},
	})
	build.Set(1)
	m.registry.MustRegister(m.claimed, m.ended, m.ran, m.lost, m.slots, m.commits, m.shared, build,
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	for _, status := range []api.Status{api.Complete, api.Failed, api.Cancelled} {
		m.ended.WithLabelValues(string(status)) // 0 and not missing, so that a rate begins with the first
	}
	for _, verdict := range []api.Verdict{api.SlotFired, api.SlotFolded, api.SlotSkipped, api.SlotMissed, api.SlotPaused} {
		m.slots.WithLabelValues(string(verdict))
	}
	return m
}

// Claimed is part of [engine.Observer].
func (m *Metrics) Claimed(waited time.Duration) { m.claimed.Observe(waited.Seconds()) }

// Ended is part of [engine.Observer].
func (m *Metrics) Ended(status api.Status, ran time.Duration) {
	m.ended.WithLabelValues(string(status)).Inc()
	if ran > 0 {
		m.ran.WithLabelValues(string(status)).Observe(ran.Seconds())
	}
}

// Lost is part of [engine.Observer].
func (m *Metrics) Lost(reason string) { m.lost.WithLabelValues(reason).Inc() }

// Decided is part of [engine.Observer].
func (m *Metrics) Decided(verdict api.Verdict, slots int64) {
	m.slots.WithLabelValues(string(verdict)).Add(float64(slots))
}

// Committed is told how long a commit took and how many writes shared it.
func (m *Metrics) Committed(took time.Duration, shared int) {
	m.commits.Observe(took.Seconds())
	m.shared.Observe(float64(shared))
}

// Handler answers with everything, the present state of an engine included. Where that can't be
// read it answers with what was counted, and without the rest.
func (m *Metrics) Handler(e *engine.Engine, log *slog.Logger) http.Handler {
	all := prometheus.Gatherers{m.registry, gathererOf(&present{engine: e, log: log})}
	return promhttp.HandlerFor(all, promhttp.HandlerOpts{
		ErrorHandling: promhttp.ContinueOnError, MaxRequestsInFlight: 4, Timeout: readWithin,
	})
}

func gathererOf(c prometheus.Collector) prometheus.Gatherer {
	r := prometheus.NewRegistry()
	r.MustRegister(c)
	return r
}

const readWithin = 8 * time.Second

// present reads the gauges when it is asked.
type present struct {
	engine *engine.Engine
	log    *slog.Logger
}

func describe(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc(name, help, labels, nil)
}

var (
	sessions       = describe("stint_sessions", "Sessions that wait or run, by agent and status.", "workspace", "agent", "status")
	oldestWait     = describe("stint_session_oldest_seconds", "Age of an agent's oldest session of a status.", "workspace", "agent", "status")
	workers        = describe("stint_workers", "Workers, by whether they are heard of.", "state")
	unsent         = describe("stint_worker_reports_unsent", "Reports that workers hold because they aren't taken yet.")
	unsentFor      = describe("stint_worker_reports_stuck_seconds", "The longest that a worker which holds reports got none of them taken; 0 for none.")
	deliveries     = describe("stint_webhook_messages_waiting", "Messages of webhooks that aren't delivered yet.")
	deliveryAge    = describe("stint_webhook_message_oldest_seconds", "Age of the oldest message that isn't delivered; 0 for none.")
	scheduleErrors = describe("stint_schedule_errors", "Agents whose schedule can't be understood, which fire no slot.")
	databaseBytes  = describe("stint_database_bytes", "Size of the database file.")
	databaseFree   = describe("stint_database_free_bytes", "Of the database file, what is free for new rows.")
	walBytes       = describe("stint_database_wal_bytes", "Size of the database's write-ahead log.")
	refusing       = describe("stint_writes_refused", "1 while nothing can be written, as on a full disk, else 0.")
)

// Describe is part of [prometheus.Collector].
func (p *present) Describe(to chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{sessions, oldestWait, workers, unsent, unsentFor, deliveries, deliveryAge, scheduleErrors, databaseBytes, databaseFree, walBytes, refusing} {
		to <- d
	}
}

// Collect is part of [prometheus.Collector].
func (p *present) Collect(to chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), readWithin)
	defer cancel()
	gauge := func(d *prometheus.Desc, v float64, labels ...string) {
		to <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	g, err := p.engine.Gauges(ctx)
	if g.Refusing {
		gauge(refusing, 1)
	} else {
		gauge(refusing, 0)
	}
	if err != nil {
		p.log.Warn("the present state can't be read for /metrics", "error", err)
		return
	}
	for _, o := range g.Open {
		gauge(sessions, float64(o.N), o.Workspace, o.Agent, string(o.Status))
		gauge(oldestWait, o.Oldest.Seconds(), o.Workspace, o.Agent, string(o.Status))
	}
	for state, n := range g.Workers {
		gauge(workers, float64(n), string(state))
	}
	gauge(unsent, float64(g.Unsent))
	gauge(unsentFor, g.UnsentFor.Seconds())
	gauge(deliveries, float64(g.DeliveriesWait))
	gauge(deliveryAge, g.DeliveriesOldest.Seconds())
	gauge(scheduleErrors, float64(g.ScheduleErrors))
	gauge(databaseBytes, float64(g.Files.Database))
	gauge(databaseFree, float64(g.Files.Free))
	gauge(walBytes, float64(g.Files.Log))
}
