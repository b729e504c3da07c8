package server_test

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"stint/api"
	"stint/engine"
	"stint/server"
	"stint/server/servertest"
)

// waitingCrowd is a thousand workers that hold their polls.
type waitingCrowd struct {
	agents int                              // over which they are spread
	worker func(i int, in *api.WorkerInput) // what they are
	before func(d *fixture, all []api.Worker)
}

// A session for which there is no worker waits for as long as the agent has work.
func unwanted(d *fixture, _ []api.Worker) {
	edit := func(labels ...string) {
		servertest.Must[api.Agent](d.Server, 200, "PATCH", "agents/tidy", m{"labels": append([]string{}, labels...)})
	}
	edit("none")
	d.addSession()
	edit()
}

// BenchmarkBesideWaits reports the processor time of a complete, and of a creation with its
// claim, over HTTP: alone, and beside a thousand held polls of another process. What is woken
// for nothing shows there. The caller's side is part of each figure.
func BenchmarkBesideWaits(b *testing.B) {
	raiseFiles(b)
	free := func(int, *api.WorkerInput) {}
	full := func(_ int, in *api.WorkerInput) { in.MaxConcurrent = 1 }
	for _, c := range []struct {
		name string
		waitingCrowd
	}{
		{"nobody", waitingCrowd{}},
		{"free/one-agent", waitingCrowd{agents: 1, worker: free}},
		{"free/many-agents", waitingCrowd{agents: 100, worker: free}},
		{"free/unwanted", waitingCrowd{agents: 1, worker: free, before: unwanted}},
		{"full/one-agent", waitingCrowd{agents: 1, worker: full, before: (*fixture).fillUp}},
		{"full/unwanted", waitingCrowd{agents: 1, worker: full, before: func(d *fixture, all []api.Worker) {
			d.fillUp(all)
			unwanted(d, all)
		}}},
		{"full/many-agents", waitingCrowd{agents: 100, worker: full, before: (*fixture).fillUp}},
		{"paused/one-agent", waitingCrowd{agents: 1, worker: free, before: (*fixture).pause}},
		{"paused/unwanted", waitingCrowd{agents: 1, worker: free, before: func(d *fixture, all []api.Worker) {
			d.pause(all)
			unwanted(d, all)
		}}},
		{"agent-paused/many-agents", waitingCrowd{agents: 100, worker: free, before: func(d *fixture, all []api.Worker) {
			for i := range 100 {
				servertest.Must[api.Agent](d.Server, 200, "PATCH", fmt.Sprintf("agents/of-%d", i), m{"paused": true})
			}
		}}},
		{"own-labels/unwanted", waitingCrowd{agents: 1, worker: func(i int, in *api.WorkerInput) { in.Labels = api.Labels{fmt.Sprint("at-", i)} }, before: unwanted}},
		{"one-folder/unwanted", waitingCrowd{agents: 1, worker: func(i int, in *api.WorkerInput) { in.FolderKey = "/work" }, before: func(d *fixture, all []api.Worker) {
			d.occupy(all[0])
			unwanted(d, all)
		}}},
		{"folders/unwanted", waitingCrowd{agents: 1, worker: func(i int, in *api.WorkerInput) { in.FolderKey = fmt.Sprint("/work/", i) }, before: func(d *fixture, all []api.Worker) {
			d.addAgent("folders", 1)
			w := servertest.Must[api.Registered](d.Server, 201, "POST", "agents/folders/workers", api.WorkerInput{
				Name: "f", InstanceID: instance, Types: []api.AgentType{api.TypeCommand}, FolderKey: "/work", MaxConcurrent: 1,
			}).Worker
			d.occupy(w)
			unwanted(d, all)
		}}},
	} {
		b.Run(c.name, func(b *testing.B) {
			d := newFixture(b, servertest.Options{Durable: true, Quiet: true, Config: func(c *engine.Config) {
				c.StaleAfter, c.OfflineAfter, c.MaxLease, c.DefaultLease = 5*time.Hour, 6*time.Hour, 4*time.Hour, 4*time.Hour
			}, Server: func(o *server.Options) { o.Limits = noLimits() }})
			d.Client.Transport = &http.Transport{} // without checking each answer's shape
			if c.agents > 0 {
				defer d.wait(b, c.waitingCrowd)()
			}
			d.beside(b)
		})
	}
}

// wait has a crowd hold its polls until end is called.
func (d *fixture) wait(b *testing.B, c waitingCrowd) (end func()) {
	const polls, workers = 1000, 750 // an agent runs at most a thousand sessions
	b.Helper()
	for i := range c.agents {
		if c.agents > 1 {
			d.addAgent(fmt.Sprintf("of-%d", i), 1000)
		}
	}
	var all []api.Worker
	crowd := load{URL: d.URL, Token: d.Token, Kind: "crowd", Polls: polls}
	servertest.Must[api.Agent](d.Server, 200, "PATCH", "agents/tidy", m{"maxConcurrent": 1000})
	for i := range workers {
		agent := "tidy"
		if c.agents > 1 {
			agent = fmt.Sprintf("of-%d", i%c.agents)
		}
		in := api.WorkerInput{Name: fmt.Sprint("waits-", i), InstanceID: instance, Types: []api.AgentType{api.TypeCommand}, MaxConcurrent: 1000}
		c.worker(i, &in)
		w := servertest.Must[api.Registered](d.Server, 201, "POST", "agents/"+agent+"/workers", in).Worker
		all, crowd.Waits = append(all, w), append(crowd.Waits, workerPath(w))
	}
	if c.before != nil {
		c.before(d, all)
	}
	gathered, _ := crowd.gather(b)
	servertest.Wait(b, "all polls to be held", func() bool { return d.HTTP.Holding() == polls })
	return func() { gathered() }
}

func workerPath(w api.Worker) string {
	return "/agents/" + w.AgentID.String() + "/workers/" + w.ID.String()
}

// occupy gives a worker a session that never ends.
func (d *fixture) occupy(w api.Worker) {
	d.tb.Helper()
	s := servertest.Must[api.Session](d.Server, 201, "POST", "agents/"+w.AgentID.String()+"/sessions", m{})
	servertest.Must[api.Claim](d.Server, 200, "POST", workerPath(w)[1:]+"/sessions/"+s.ID.String()+"/claim", m{"instanceId": instance})
}

// fillUp gives each worker all the sessions that it can take.
func (d *fixture) fillUp(all []api.Worker) {
	servertest.Must[api.Agent](d.Server, 200, "PATCH", "agents/tidy", m{"maxConcurrent": 1000})
	for _, w := range all {
		d.occupy(w)
	}
}

// pause pauses workers, which say that they know it.
func (d *fixture) pause(all []api.Worker) {
	for _, w := range all {
		got := servertest.Must[api.SignalAnswer](d.Server, 200, "POST", workerPath(w)[1:]+"/control-signal", m{"signal": "pause"})
		servertest.Must[api.Worker](d.Server, 200, "POST", workerPath(w)[1:]+"/ack-control-signal", m{"signalId": got.Worker.PendingSignal.ID, "instanceId": instance})
	}
}

// beside measures sessions of one agent and one worker, beside whatever is held.
func (d *fixture) beside(b *testing.B) {
	const n = 200
	for b.Loop() {
		var claims []api.Claim
		each := func(name string, do func(i int)) {
			from := cpuSeconds()
			for i := range n {
				do(i)
			}
			time.Sleep(100 * time.Millisecond) // what they woke is part of it
			b.ReportMetric((cpuSeconds()-from)*1e6/n, "cpu-µs/"+name)
		}
		each("create+claim", func(int) { claims = append(claims, d.running()) })
		each("complete", func(i int) {
			servertest.Must[api.Finished](d.Server, 200, "POST", d.at(claims[i].SessionID, "/complete"), proof(claims[i]))
		})
	}
	b.ReportMetric(0, "ns/op")
}
