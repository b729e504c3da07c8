package engine_test

import (
	"strings"
	"testing"

	"stint/api"
	"stint/engine/enginetest"
)

const mostTexts = 4 << 20 // bytes of a page's texts

// bigOnes makes n sessions whose texts are about 580 KiB each.
func bigOnes(w *enginetest.Fixture, a api.Agent, n int) (ids []api.SessionID) {
	for range n {
		ids = append(ids, w.New(a, func(in *api.SessionInput) {
			in.Prompt, in.UntrustedContext = new(strings.Repeat("p", 60<<10)), strings.Repeat("c", 510<<10)
		}).ID)
	}
	return ids
}

func textsOf(items []api.Session) (n int) {
	for _, s := range items {
		n += len(s.Prompt) + len(s.UntrustedContext)
	}
	return n
}

// A page of sessions is bounded whatever they hold: it ends before its limit, and its cursor
// leads to the rest, complete and without a gap.
func TestSessions_APageIsBoundedWhateverTheyHold(t *testing.T) {
	w := enginetest.New(t)
	a := w.Agent()
	want := bigOnes(w, a, 12)
	for range 6 {
		want = append(want, w.New(a).ID)
	}
	pages := 0
	var got []api.SessionID
	for page := (api.Page{Limit: 200}); ; pages++ {
		list, err := w.Sessions(t.Context(), w.Owner, api.SessionFilter{}, page)
		if err != nil {
			t.Fatal(err)
		}
		if n := textsOf(list.Items); n > mostTexts || len(list.Items) == 0 {
			t.Errorf("page %d holds %d sessions with %d bytes", pages, len(list.Items), n)
		}
		for _, s := range list.Items {
			if s.UntrustedContext != "" && len(s.Prompt)+len(s.UntrustedContext) != 570<<10 {
				t.Errorf("session %s is cut to %d bytes", s.ID, len(s.Prompt)+len(s.UntrustedContext))
			}
			got = append([]api.SessionID{s.ID}, got...)
		}
		if page.Cursor = list.NextCursor; page.Cursor == "" {
			break
		}
	}
	if pages == 0 || len(got) != len(want) {
		t.Fatalf("%d sessions came on %d pages, not %d on several", len(got), pages+1, len(want))
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("session %d is %s, not %s", i, got[i], want[i])
		}
	}
}

// A worker learns what it may claim, however much that it may not stands before it.
func TestPoll_FindsWhatStandsBehindAPageOfOthers(t *testing.T) {
	for name, labels := range map[string]api.Labels{"labels": {"gpu"}, "held back": nil} {
		t.Run(name, func(t *testing.T) {
			w := enginetest.New(t)
			a := w.Agent()
			k, high := w.Worker(a), int64(9)
			want := w.New(a).ID
			w.Edit(a.ID, func(in *api.AgentInput) { in.Labels = labels })
			for range 201 {
				w.New(a, func(in *api.SessionInput) {
					if in.Priority = &high; labels == nil {
						in.After = want
					}
				})
			}
			out, err := w.Poll(t.Context(), w.Owner, k.ID, k.Instance, 0, 0)
			if err != nil || len(out.Items) == 0 || len(out.Items) > 200 || !out.Items[0].Claimable || out.Items[0].Session.ID != want {
				t.Errorf("it lists %d: %v", len(out.Items), err)
			}
		})
	}
}

// A worker's poll is bounded as well, and what is held back displaces nothing that may be
// claimed.
func TestPoll_IsBoundedWhateverWaits(t *testing.T) {
	w := enginetest.New(t)
	a := w.Agent()
	k := w.Worker(a)
	first, high := w.New(a).ID, int64(9)
	for range 9 {
		w.New(a, func(in *api.SessionInput) {
			in.Priority, in.After, in.UntrustedContext = &high, first, strings.Repeat("c", 510<<10)
		})
	}
	poll := func() api.PollAnswer {
		t.Helper()
		out, err := w.Poll(t.Context(), w.Owner, k.ID, k.Instance, 0, 0)
		if err != nil {
			t.Fatal(err)
		}
		sizes := map[bool]int{}
		for _, c := range out.Items {
			sizes[c.Claimable] += len(c.Session.UntrustedContext)
		}
		if sizes[true] > mostTexts || sizes[false] > mostTexts {
			t.Errorf("it holds %v bytes", sizes)
		}
		return out
	}
	out := poll()
	if !out.Items[0].Claimable || out.Items[0].Session.ID != first || len(out.Items) < 3 || len(out.Items) > 9 {
		t.Fatalf("it lists %d, the first %s", len(out.Items), out.Items[0].Session.ID)
	}
	big := bigOnes(w, a, 9)
	if out = poll(); !out.Items[1].Claimable || out.Items[1].Session.ID != big[0] || !out.Items[7].Claimable {
		t.Errorf("it lists %d", len(out.Items))
	}
}
