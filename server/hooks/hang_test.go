package hooks_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	"stint/api"
	"stint/engine"
	"stint/engine/enginetest"
	"stint/server/hooks"
)

// A receiver that takes calls and never answers only delays itself: another webhook gets
// everything that happened before and since while not one try of the first has ended, and only
// a few of the first one's tries run at a time.
func TestSender_AReceiverThatHangsHoldsUpItselfAlone(t *testing.T) {
	w := enginetest.New(t)
	a := w.Agent()
	release, gaveUp := make(chan struct{}), make(chan struct{}, 1000)
	var running, most atomic.Int64
	began := make(chan struct{}, 1000)
	hangs := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		n := running.Add(1)
		defer running.Add(-1)
		for {
			was := most.Load()
			if n <= was || most.CompareAndSwap(was, n) {
				break
			}
		}
		began <- struct{}{}
		select {
		case <-release:
		case <-r.Context().Done():
			gaveUp <- struct{}{}
		}
	}))
	defer hangs.Close()
	heard := make(chan string, 1000)
	answers := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { heard <- r.Header.Get("Webhook-Id") }))
	defer answers.Close()
	addWebhook(t, w, hangs.URL)
	good := addWebhook(t, w, answers.URL, "agent.session_created")
	const before, since = 40, 3
	for range before {
		w.New(a)
	}
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); newSender(w, hooks.Guard{AllowPrivate: true}).Run(ctx) }()
	defer func() { close(release); stop(); <-done }()
	<-began // the first one is being waited for
	wait := func(n int) {
		t.Helper()
		for range n {
			select {
			case <-heard:
			case <-gaveUp:
				t.Fatal("a try of the receiver that hangs ended before the other received everything")
			}
		}
	}
	wait(before)
	for range since {
		w.New(a)
	}
	wait(since)
	if n := most.Load(); n > 2 {
		t.Errorf("%d tries of one webhook ran at a time", n)
	}
	if n := len(deliveries(t, w, good.ID)); n != before+since {
		t.Errorf("%d deliveries were made, not %d", n, before+since)
	}
}

// What is due is begun in the order it came, per webhook, and what finds no place is skipped
// and not forgotten.
func TestTakeDeliveries_OldestFirstAndAsManyAsHavePlaces(t *testing.T) {
	w := enginetest.New(t)
	full := addWebhook(t, w, "https://full.example/", "agent.created")
	open := addWebhook(t, w, "https://open.example/", "agent.created")
	for range 5 {
		w.Agent()
	}
	if err := w.ExpandWebhooks(t.Context()); err != nil {
		t.Fatal(err)
	}
	took := func(places int) (ids []string) {
		t.Helper()
		tries, err := w.TakeDeliveries(t.Context(), w.Now(), 100, func(id api.WebhookID) int {
			if id == full.ID {
				return places
			}
			return 3
		})
		if err != nil {
			t.Fatal(err)
		}
		last := map[api.WebhookID]api.DeliveryID{}
		for _, try := range tries {
			if try.ID < last[try.WebhookID] {
				t.Errorf("delivery %s is begun after %s", try.ID, last[try.WebhookID])
			}
			last[try.WebhookID] = try.ID
			ids = append(ids, try.ID.String())
			if try.WebhookID == open.ID {
				if err := w.EndTry(t.Context(), try, engine.Sent{StatusCode: 200}); err != nil {
					t.Fatal(err)
				}
			}
		}
		return ids
	}
	for i, want := range []struct{ places, n int }{{0, 3}, {1, 3}, {9, 4}, {9, 0}} {
		if got := took(want.places); len(got) != want.n {
			t.Errorf("take %d began %d tries, not %d", i, len(got), want.n)
		}
	}
}
