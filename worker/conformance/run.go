package conformance

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"
)

// Target is the coordinator to judge.
type Target struct {
	URL       string
	Token     string // of a user who may create agents in the workspace
	Workspace string // id or slug; empty = default
	Client    *http.Client

	// Rules narrows to the rules that begin with one of these words; none = all.
	Rules []string
	// Judged is called with each verdict as it is reached, from one goroutine at a time.
	Judged func(Verdict)
}

// Verdict says whether the coordinator keeps one rule.
type Verdict struct {
	Rule     string  `json:"rule"`
	Says     string  `json:"says"`     // what the rule asks, in a sentence
	Contract string  `json:"contract"` // the paragraphs that require it
	Passed   bool    `json:"passed"`
	Why      string  `json:"why,omitzero"` // what it did instead
	Seconds  float64 `json:"seconds"`
}

// Report is the verdict on every rule.
type Report struct {
	URL      string    `json:"url"`
	Passed   int       `json:"passed"`
	Failed   int       `json:"failed"`
	Verdicts []Verdict `json:"verdicts"` // in the order of the rules
	LeftOver []string  `json:"leftOver"` // agents that could not be deleted
}

// atOnce is how many rules are tried at the same time: most of them wait.
const atOnce = 8

// kit is one run over a coordinator.
type kit struct {
	wire
	run   string // a word in the name of everything that is created
	lease int    // seconds: the shortest lease that the coordinator grants

	mu     sync.Mutex // guards what follows
	agents []string
	judged func(Verdict)
}

// Run tries the rules and reports a verdict on each. The error says why nothing could be
// judged: nobody answers, or the token may not create agents.
func Run(ctx context.Context, target Target) (Report, error) {
	if target.Workspace == "" {
		target.Workspace = "default"
	}
	w, err := newWire(target)
	if err != nil {
		return Report{}, err
	}
	k := &kit{wire: w, run: "conform-" + strings.ToLower(rand.Text()[:8]), judged: target.Judged}
	chosen := choose(target.Rules)
	if len(chosen) == 0 {
		return Report{}, fmt.Errorf("no rule begins with %s", strings.Join(target.Rules, " or "))
	}
	defer k.clean(context.WithoutCancel(ctx), nil)
	if err := k.prepare(ctx); err != nil {
		return Report{}, err
	}
	report := Report{URL: target.URL, Verdicts: make([]Verdict, len(chosen)), LeftOver: []string{}}
	places := make(chan struct{}, atOnce)
	var trials sync.WaitGroup
	for i, r := range chosen {
		places <- struct{}{}
		trials.Go(func() {
			defer func() { <-places }()
			report.Verdicts[i] = k.judge(ctx, r)
		})
	}
	trials.Wait()
	if err := ctx.Err(); err != nil {
		return Report{}, err
	}
	for _, v := range report.Verdicts {
		if v.Passed {
			report.Passed++
		} else {
			report.Failed++
		}
	}
	k.clean(ctx, &report)
	return report, nil
}

func choose(words []string) (out []rule) {
	for _, r := range rules {
		if len(words) == 0 {
			out = append(out, r)
			continue
		}
		for _, word := range words {
			if strings.HasPrefix(r.name, word) {
				out = append(out, r)
				break
			}
		}
	}
	return out
}

// Rules lists what is judged, with nothing tried yet.
func Rules() []Verdict {
	out := make([]Verdict, 0, len(rules))
	for _, r := range rules {
		out = append(out, Verdict{Rule: r.name, Says: r.says, Contract: r.contract})
	}
	return out
}

// prepare finds out whether anything can be judged, and the shortest lease.
func (k *kit) prepare(ctx context.Context) (err error) {
	defer func() {
		if why := recover(); why != nil {
			b, ok := why.(broken)
			if !ok {
				panic(why)
			}
			err = errors.New("nothing can be judged: " + string(b))
		}
	}()
	t := k.trial(ctx)
	w := t.worker()
	for _, seconds := range []int{2, 60} {
		a := t.call(http.MethodPost, w.at(t.session(), "claim"), doc{"instanceId": w.instance, "leaseSeconds": seconds})
		if a.status == http.StatusOK {
			k.lease = seconds
			return nil
		}
	}
	t.failf("no lease of 60 seconds is granted, which is the contract's least")
	return nil
}

// judge tries one rule.
func (k *kit) judge(ctx context.Context, r rule) (v Verdict) {
	begun := time.Now()
	v = Verdict{Rule: r.name, Says: r.says, Contract: r.contract, Passed: true}
	defer func() {
		if why := recover(); why != nil {
			b, ok := why.(broken)
			if !ok {
				panic(why)
			}
			v.Passed, v.Why = false, string(b)
		}
		v.Seconds = time.Since(begun).Round(time.Millisecond).Seconds()
		k.mu.Lock()
		defer k.mu.Unlock()
		if k.judged != nil {
			k.judged(v)
		}
	}()
	r.try(k.trial(ctx))
	return v
}

// clean deletes what the run has created. An agent that can't be deleted is paused and named
// in the report.
func (k *kit) clean(ctx context.Context, report *Report) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	k.mu.Lock()
	agents := k.agents
	k.agents = nil
	k.mu.Unlock()
	for _, id := range agents {
		a, err := k.send(ctx, http.MethodDelete, "agents/"+id, nil)
		if err == nil && a.status/100 == 2 {
			continue
		}
		if _, err := k.send(ctx, http.MethodPost, "agents/"+id+"/pause", doc{"reason": "left over from a conformance run"}); err == nil && report != nil {
			report.LeftOver = append(report.LeftOver, id)
		}
	}
}
