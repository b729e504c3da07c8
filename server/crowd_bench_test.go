package server_test

import (
	"bufio"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/go-json-experiment/json"

	"stint/api"
	"stint/db"
	"stint/server"
	"stint/server/servertest"
)

// BenchmarkCrowd makes 20 writes a second, first alone and then beside ten thousand live
// streams and five thousand held polls of one viewer, which run in a separate process. It
// reports the writes' 99th percentiles, how late the latest slot of a schedule was, how long an
// event took until all streams had it, and what processor time, memory and file descriptors
// the coordinator takes meanwhile.
func BenchmarkCrowd(b *testing.B) {
	raiseFiles(b)
	const streams, polls = 10_000, 5_000
	d := newFixture(b, servertest.Options{Durable: true, Server: func(o *server.Options) { o.Limits = noLimits() }})
	d.Client.Transport = &http.Transport{} // without checking each answer's shape
	servertest.Must[api.Agent](d.Server, 201, "POST", "agents", m{
		"slug": "busy", "run": m{"command": []string{"true"}}, "maxConcurrent": 1000,
	})
	crowd := load{URL: d.URL, Token: d.Token, Kind: "crowd", Connections: streams, Polls: polls}
	for i := range 50 {
		crowd.Waits = append(crowd.Waits, workerPath(d.addWorker("tidy", fmt.Sprintf("crowd-%d", i))))
	}
	for i := range 8 {
		servertest.Must[api.Agent](d.Server, 201, "POST", "agents", m{
			"slug": fmt.Sprintf("clock-%d", i), "run": m{"command": []string{"true"}}, "schedule": "* * * * *", "overlap": "allow",
		})
	}
	for b.Loop() {
		alone := d.writes(10 * time.Second)
		end, files := crowd.gather(b)
		from, used := time.Now(), cpuSeconds()
		beside := d.writes(65 * time.Second) // a minute begins in it
		share := (cpuSeconds() - used) / time.Since(from).Seconds()
		late := d.latestSlot(from)
		runtime.GC()
		var mem runtime.MemStats
		runtime.ReadMemStats(&mem)
		held, opened := d.HTTP.Holding(), files()
		got := end()
		b.ReportMetric(p99(alone), "alone-p99-ms")
		b.ReportMetric(p99(beside), "beside-p99-ms")
		b.ReportMetric(late.Seconds()*1000, "slot-late-ms")
		b.ReportMetric(float64(mem.HeapInuse+mem.StackInuse)/1e6, "heap+stacks-MB")
		b.ReportMetric(resident()/1e6, "RSS-MB")
		b.ReportMetric(share*100, "%core")
		b.ReportMetric(float64(opened), "files")
		b.ReportMetric(float64(held), "held")
		b.ReportMetric(float64(got.Requests)/got.Seconds, "events-told/s")
		if n := len(got.Reached); n > 0 {
			b.ReportMetric(float64(got.Reached[n/2]), "reach-all-p50-ms")
			b.ReportMetric(float64(got.Reached[n-1]), "reach-all-most-ms")
		}
	}
	b.ReportMetric(0, "ns/op") // an operation is a round, its time means nothing
	said := 0
	for line := range strings.SplitSeq(d.Log.String(), "\n") {
		if said < 5 && (strings.Contains(line, "level=ERROR") || strings.Contains(line, "level=WARN")) {
			said++
			b.Errorf("the coordinator said: %s", line)
		}
	}
}

// raiseFiles lets this process, and those it starts, open as many files as they may.
func raiseFiles(b *testing.B) {
	var l syscall.Rlimit
	err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &l)
	if l.Cur = l.Max; err == nil {
		err = syscall.Setrlimit(syscall.RLIMIT_NOFILE, &l)
	}
	if err != nil || l.Cur < 16_000 {
		b.Fatalf("this process may open %d files: %v", l.Cur, err)
	}
}

// gather starts the crowd and waits until all of it is connected.
func (l load) gather(b testing.TB) (end func() measured, files func() int) {
	b.Helper()
	spec, err := json.Marshal(l)
	if err != nil {
		b.Fatal(err)
	}
	// Viewers have machines of their own. Here they share ours, and take what is left of its processors.
	cmd := exec.CommandContext(b.Context(), "nice", "-n", "10", os.Args[0])
	cmd.Env = append(os.Environ(), loadVariable+"="+string(spec))
	cmd.Stderr = os.Stderr
	in := must(cmd.StdinPipe())
	out := bufio.NewReader(must(cmd.StdoutPipe()))
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	if line, err := out.ReadString('\n'); err != nil {
		b.Fatalf("the crowd said %q: %v", line, err)
	}
	open := func() int {
		entries, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			return 0
		}
		return len(entries)
	}
	return func() (got measured) {
		_ = in.Close()
		if err := json.UnmarshalRead(out, &got); err != nil {
			b.Errorf("the crowd failed: %v", err)
		}
		if err := cmd.Wait(); err != nil {
			b.Errorf("the crowd failed: %v", err)
		}
		return got
	}, open
}

// writes creates a session, or cancels the one before, twenty times a second, and returns how
// long each took, counted from when it was due.
func (d *fixture) writes(span time.Duration) (took []time.Duration) {
	d.tb.Helper()
	due := time.NewTicker(time.Second / 20)
	defer due.Stop()
	var last api.Session
	for begun := time.Now(); time.Since(begun) < span; {
		at := <-due.C
		if last.ID == 0 {
			last = servertest.Must[api.Session](d.Server, 201, "POST", "agents/busy/sessions", m{})
		} else {
			servertest.Must[api.Session](d.Server, 200, "POST", "sessions/"+last.ID.String()+"/cancel", m{})
			last = api.Session{}
		}
		took = append(took, time.Since(at))
	}
	return took
}

func p99(took []time.Duration) float64 {
	slices.Sort(took)
	return took[len(took)*99/100].Seconds() * 1000
}

// latestSlot is how late the latest slot was of those that were due since.
func (d *fixture) latestSlot(since time.Time) (late time.Duration) {
	d.tb.Helper()
	err := d.Store.Read(d.tb.Context(), func(tx *db.ReadTx) error {
		rows, err := tx.Query(d.tb.Context(), "SELECT MAX(decided_at - last_slot), COUNT(*) FROM ledger WHERE last_slot >= ?", since.UnixMicro())
		if err != nil {
			return err
		}
		defer func() { _ = rows.Close() }()
		var worst, n int64
		for rows.Next() {
			if err := rows.Scan(&worst, &n); err != nil {
				return err
			}
		}
		if late = time.Duration(worst) * time.Microsecond; n == 0 {
			return fmt.Errorf("no slot was due")
		}
		return rows.Err()
	})
	if err != nil {
		d.tb.Error(err)
	}
	return late
}
