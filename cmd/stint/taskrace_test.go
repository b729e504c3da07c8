package main

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/go-json-experiment/json"

	"stint/api"
	"stint/server/servertest"
)

// Sixty-four people want one task at the same moment, by the REST interface, as programs of the
// command line and by tools: one has it, and all others are told who, and until when.
func TestTasks_SixtyFourByEveryDoorHaveOneWinner(t *testing.T) {
	t.Parallel()
	const people, commands = 64, 8
	h := newHome(t)
	s := servertest.New(t, servertest.Options{})
	var tokens []string
	for range people {
		tokens = append(tokens, s.AddUser("default", api.Member))
	}
	for _, wanted := range []int{people, people, commands} { // a program needs a while to begin: the last time they are among themselves
		one := servertest.Must[api.Task](s, 201, "POST", "tasks", m{"title": "One"}).Key
		refused, documents := make([]bool, wanted), make([]string, wanted)
		claim := func(i int) {
			me := s.As(tokens[i])
			switch {
			case i < commands:
				out, said, code := h.stint(s, tokens[i], "", "claim", one, "--json")
				if refused[i], documents[i] = code != exitDone, out+said; refused[i] && code != exitConflict {
					t.Errorf("a command ends with %d: %s", code, said)
				}
			case i%2 == 0:
				refused[i], documents[i] = callTool(h, me, "claim", m{"task": one})
			default:
				got := me.Do("POST", "tasks/"+one+"/claim", m{})
				if refused[i], documents[i] = got.Status != 200, string(got.Body); refused[i] && got.Status != 409 {
					t.Errorf("a request is answered %d %s", got.Status, got.Body)
				}
			}
		}
		atOnce(wanted, claim)
		now := servertest.Must[api.Task](s, 200, "GET", "tasks/"+one, nil)
		var winners []string
		for i, no := range refused {
			if !no {
				winners = append(winners, fmt.Sprint(i, " with ", documents[i]))
				continue
			}
			var said api.Error
			h.must(json.Unmarshal([]byte(documents[i]), &said))
			if said.Code != api.CodeAlreadyClaimed || said.Holder != now.Lease.Holder.Name || !said.ExpiresAt.Equal(now.Lease.ExpiresAt.Time) {
				t.Errorf("%d is told %s, and the task is held by %+v", i, documents[i], now.Lease)
			}
		}
		if len(winners) != 1 {
			t.Fatalf("%d have won:\n%s", len(winners), strings.Join(winners, "\n"))
		}
	}
}

// atOnce starts n calls at the same instant and waits for all.
func atOnce(n int, call func(i int)) {
	var ready, done sync.WaitGroup
	start := make(chan struct{})
	for i := range n {
		ready.Add(1)
		done.Go(func() {
			ready.Done()
			<-start
			call(i)
		})
	}
	ready.Wait()
	close(start)
	done.Wait()
}
