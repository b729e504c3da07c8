package main

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"

	"stint/api"
)

// itemsOf serves items as a coordinator does, with the pieces as their texts, in pages of at
// most two.
func itemsOf(t *testing.T, pieces []string) *api.Client {
	t.Helper()
	all := make([]api.Item, len(pieces))
	for i, text := range pieces {
		all[i] = api.Item{Seq: int64(i + 1), Kind: api.ItemText, Stream: "stdout", Text: text}
	}
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		before, err := strconv.Atoi(r.URL.Query().Get("before"))
		if err != nil {
			t.Errorf("asked for %s", r.URL)
		}
		if before == 0 {
			before = len(all) + 1
		}
		page := api.ItemsPage{Items: all[max(0, before-3) : before-1], LastSeq: int64(len(all))}
		if err := json.MarshalWrite(w, page); err != nil {
			t.Error(err)
		}
	}))
	t.Cleanup(srv.Close)
	client, err := api.NewClient(api.ClientConfig{URL: srv.URL})
	if err != nil {
		t.Fatal(err)
	}
	return client
}

func TestLastLines_CountsLinesNotItems(t *testing.T) {
	for _, pieces := range [][]string{
		{"one\n", "two\n", "three\n", "four\n"},
		{"one\ntwo\nthree\nfour\n"},
		{"o", "ne\ntw", "o\n", "thr", "ee\nfo", "ur\n"},
		{"one\ntwo\nthree\nfour", "\n"},
		{"one\ntwo\n", "three\nfo", "ur"},
		{"one\n\n\ntwo"},
		{""},
	} {
		lines := slices.Collect(strings.Lines(strings.Join(pieces, "")))
		client := itemsOf(t, pieces)
		for n := range len(lines) + 2 {
			items, err := lastLines(context.Background(), client, 1, n, &printer{c: &cli{}})
			if err != nil {
				t.Fatal(err)
			}
			var got strings.Builder
			for _, item := range items {
				got.WriteString(item.Text)
			}
			want := strings.Join(lines[max(0, len(lines)-n):], "")
			if got.String() != want {
				t.Errorf("the last %d lines of %q are %q, want %q", n, pieces, got.String(), want)
			}
		}
	}
}

func TestPrinter_StampsEachLineOnce(t *testing.T) {
	var b strings.Builder
	p := printer{c: &cli{}, out: output{w: &b}, timestamps: true}
	for _, text := range []string{"o", "ne\ntwo\n", "three"} {
		if err := p.print([]api.Item{{Kind: api.ItemText, Stream: "stdout", Text: text}}); err != nil {
			t.Fatal(err)
		}
	}
	if got, want := b.String(), fmt.Sprintf("%[1]sone\n%[1]stwo\n%[1]sthree", api.Time{}.String()+" "); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
