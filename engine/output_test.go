package engine_test

import (
	"fmt"
	"strings"
	"testing"

	"stint/api"
	"stint/engine"
	"stint/engine/enginetest"
)

func allItems(t *testing.T, w *enginetest.Fixture, id api.SessionID) (items []api.Item) {
	t.Helper()
	for after := int64(0); ; {
		some, _, err := w.Items(t.Context(), w.Owner, id, after, 1000)
		if err != nil {
			t.Fatal(err)
		}
		if len(some) == 0 {
			return items
		}
		items, after = append(items, some...), some[len(some)-1].Seq
	}
}

// However much a session prints, its beginning and its end are kept, as much as the limit
// allows, with one line between them that says how much is missing; and what people and the
// turns said stays.
func TestOutput_OfASessionIsBounded(t *testing.T) {
	const most, size, n = 256 << 10, 3000, 2000
	w := enginetest.New(t, enginetest.With(func(c *engine.Config) { c.MaxOutput = most }))
	a := w.Agent()
	k := w.Worker(a)
	c := k.Claim(w.New(a).ID)
	print := func(first, count int, kind api.ItemKind) {
		in := api.ItemsRequest{UnderClaim: k.Under(c.ClaimID)}
		for i := range count {
			text := fmt.Sprintf("line %d ", first+i)
			in.Items = append(in.Items, api.ItemInput{Kind: kind, ClientID: fmt.Sprint(kind, first+i), Text: text + strings.Repeat("x", size-len(text))})
		}
		for range 2 { // sent again it is appended once
			if _, err := w.AddItems(t.Context(), k.Caller, k.ID, c.SessionID, in); err != nil {
				t.Fatal(err)
			}
		}
	}
	for i := 0; i < n; i += 10 {
		print(i, 10, api.ItemText)
		if i%200 == 0 {
			print(i, 1, api.ItemTurnEnd)
		}
	}
	items := allItems(t, w, c.SessionID)
	sum, gaps, turns, gap := 0, 0, 0, 0
	for i, it := range items {
		switch {
		case it.Kind == api.ItemTurnEnd:
			turns++
			continue
		case strings.Contains(it.Text, "of output left out here"):
			gaps, gap = gaps+1, i
			continue
		}
		sum += len(it.Text)
	}
	left := strings.Contains(items[gap].Text, fmt.Sprintf("%.1f MiB of output", float64(n*size-sum)/(1<<20)))
	if gaps != 1 || !left || turns != n/200 || sum > most || sum < most*3/4 {
		t.Errorf("%d bytes of %d, %d gaps (%q), %d ends of turns", sum, most, gaps, items[gap].Text, turns)
	}
	if first, last := items[0].Text, items[len(items)-1].Text; !strings.HasPrefix(first, "line 0 ") || !strings.HasPrefix(last, fmt.Sprintf("line %d ", n-1)) {
		t.Errorf("from %.10q to %.10q", first, last)
	}
	half := 0
	for _, it := range items[:gap] {
		half += len(it.Text)
	}
	if half > most/2 || half < most/2-2*size-itemCost*60 {
		t.Errorf("the beginning has %d bytes", half)
	}
	// Reading from before the gap reaches what lies behind it, each item once and in order.
	for i := 1; i < len(items); i++ {
		if items[i].Seq <= items[i-1].Seq {
			t.Errorf("item %d after %d", items[i].Seq, items[i-1].Seq)
		}
	}
	if _, err := k.Complete(c, "done"); err != nil {
		t.Fatal(err)
	}
	w.Check()
}

const itemCost = 64 // what an item counts beside its text

// A session that printed before its output was counted is counted from what is there.
func TestOutput_OfBeforeIsCounted(t *testing.T) {
	w := enginetest.New(t, enginetest.With(func(c *engine.Config) { c.MaxOutput = 8 << 10 }))
	a := w.Agent()
	k := w.Worker(a)
	c := k.Claim(w.New(a).ID)
	add := func(text string) {
		t.Helper()
		in := api.ItemsRequest{UnderClaim: k.Under(c.ClaimID), Items: []api.ItemInput{{Kind: api.ItemText, Text: text}}}
		if _, err := w.AddItems(t.Context(), k.Caller, k.ID, c.SessionID, in); err != nil {
			t.Fatal(err)
		}
	}
	add(strings.Repeat("a", 6<<10))
	damage(t, w, "DELETE FROM outputs")
	for range 6 {
		add(strings.Repeat("b", 1<<10))
	}
	items := allItems(t, w, c.SessionID)
	if n := len(items); n < 4 || n > 5 || items[0].Text[0] != 'a' || !strings.Contains(items[1].Text, "left out here") {
		t.Errorf("%d items, the second is %.80q", n, items[1].Text)
	}
}
