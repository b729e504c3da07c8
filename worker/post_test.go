package worker

import (
	"slices"
	"strings"
	"sync"
	"testing"

	"stint/api"
	"stint/worker/workertest"
)

// A conversation whose transcript the coordinator refuses for good is ended: nobody could read
// what it does.
func TestPost_ARefusedTranscriptEndsAConversation(t *testing.T) {
	t.Parallel()
	for code, fault := range map[string]workertest.Fault{
		CodePostFailed:   {Status: 422, Body: `{"code":"invalid","detail":"no such kind"}`},
		CodeItemTooLarge: {Status: 413, Body: `{"code":"too_large","detail":"too large"}`},
	} {
		w := newFixture(t)
		a, o, _ := w.talks("talker", nil)
		w.proxy.Rule(faultOn(func(call string) bool { return call == "POST items" }, fault))
		w.start(o)
		s := w.until(w.trigger(a, "!say one\n!hang"), "failed", func(s api.Session) bool { return s.Status == api.Failed })
		if s.Error.Code != code || !strings.Contains(s.Error.Message, "transcript") {
			t.Errorf("refused with %d it ended as %+v", fault.Status, s.Error)
		}
		w.untilDrained(a)
	}
}

// A refused entry is sent by itself: the others of its batch are kept.
func TestPost_OneOfManyIsRefusedAlone(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	a, o, _ := w.talks("talker", nil)
	w.proxy.Rule(func(call string, n int) workertest.Fault {
		if call != "POST items" || n > 0 {
			return workertest.Fault{}
		}
		return workertest.Fault{Status: 422, Body: `{"code":"invalid","detail":"one of them"}`}
	})
	ended := make(chan struct{})
	over := sync.OnceFunc(func() { close(ended) })
	o.at = func(point string) { // nothing is sent before the turn has ended, and then much at once
		if strings.HasPrefix(point, "send ") {
			<-ended
		}
		if point == "turn ended" {
			over()
		}
	}
	w.start(o)
	s := w.untilStatus(w.trigger(a, "!say one\n!say two"), api.Complete)
	if got := kinds(w.items(s.ID), api.ItemText); !slices.Equal(got, []string{"text one", "text two"}) || w.proxy.Count("POST items") < 7 {
		t.Errorf("it has %q after %d calls", got, w.proxy.Count("POST items"))
	}
}
