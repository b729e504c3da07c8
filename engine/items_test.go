package engine_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"stint/api"
	"stint/engine/enginetest"
)

// TestItems_APageIsBoundedWhateverWasPrinted reads long and short items back
// from both ends: each page is small, and together they are all there is.
func TestItems_APageIsBoundedWhateverWasPrinted(t *testing.T) {
	w := enginetest.New(t)
	ctx := context.Background()
	a := w.Agent()
	k := w.Worker(a)
	c := k.Claim(w.New(a).ID)
	var want []string
	add := func(n, size int) {
		t.Helper()
		in := api.ItemsRequest{UnderClaim: api.UnderClaim{ClaimID: c.ClaimID, InstanceID: k.Instance}}
		for range n {
			text := fmt.Sprintf("%06d%s", len(want), strings.Repeat("x", size-6))
			in.Items = append(in.Items, api.ItemInput{Kind: api.ItemText, Text: text})
			want = append(want, text)
		}
		if _, err := w.AddItems(ctx, w.Owner, k.ID, c.SessionID, in); err != nil {
			t.Fatal(err)
		}
	}
	add(40, 64<<10)
	add(1000, 10)
	add(3, 64<<10)
	add(500, 5000)
	check := func(page []api.Item, limit int) {
		t.Helper()
		size := 0
		for _, it := range page {
			if size += len(it.Text); it.Text != want[it.Seq-1] {
				t.Fatalf("item %d is %.20q", it.Seq, it.Text)
			}
		}
		if len(page) > limit || size > 1<<20 {
			t.Errorf("a page of %d items has %d with %d bytes", limit, len(page), size)
		}
	}
	for _, limit := range []int{1, 7, 200, 1000} {
		next, pages := int64(0), 0
		for ; next < int64(len(want)); pages++ {
			page, last, err := w.Items(ctx, w.Owner, c.SessionID, next, limit)
			if err != nil || len(page) == 0 || last != int64(len(want)) || page[0].Seq != next+1 {
				t.Fatalf("after %d: %d items, last %d, %v", next, len(page), last, err)
			}
			check(page, limit)
			next = page[len(page)-1].Seq
		}
		if most := len(want)/limit + 8; pages > most {
			t.Errorf("%d pages of %d, and not at most %d", pages, limit, most)
		}
		for before := int64(len(want)) + 1; before > 1; {
			page, err := w.ItemsBefore(ctx, w.Owner, c.SessionID, before, limit)
			if err != nil || len(page) == 0 || page[len(page)-1].Seq != before-1 {
				t.Fatalf("before %d: %d items, %v", before, len(page), err)
			}
			check(page, limit)
			before = page[0].Seq
		}
	}
}

func TestRun_EndsWellWhenItsContextHasEndedBefore(t *testing.T) {
	w := enginetest.New(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := w.Engine.Run(ctx); err != nil {
		t.Errorf("Run: %v", err)
	}
}
