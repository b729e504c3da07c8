package db

import (
	"encoding/json"
	"math"
	"testing"
	"time"

	"stint/api"
)

// What is stored stays what earlier releases stored.
func TestAppendJSON_IsWhatEncodingJSONWrites(t *testing.T) {
	var missing *api.Time
	at := api.Time{Time: time.Date(2026, 11, 29, 1, 2, 3, 456_789_000, time.UTC)}
	values := []any{
		nil, "", "plain", "a <b> & \"c\" \\ \n\t\u2028é\x00\x7f", "broken \xff", 0, -7, int64(math.MinInt64), int32(5), uint8(6), 1.5, true, false,
		api.Queued, api.ItemKind("é"), api.SessionID(1 << 40), api.SessionID(0),
		api.ClaimID{Key: 7, Secret: [16]byte{1, 2}},
		api.ClaimID{},
		at, &at, missing,
		api.Time{},
		api.Labels{"a", "b"},
		api.Labels(nil),
		[]string{"<"},
		[]byte("x"),
		map[string]any{"b": 1, "a": nil},
		api.EventData(nil),
		api.EventData{},
	}
	all := api.EventData{"é<": 1}
	for i, v := range values {
		all[string(rune('a'+i%26))+string(rune('z'-i%25))] = v
	}
	for _, v := range append(values, all) {
		want, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		got, err := AppendJSON([]byte("before "), v)
		if err != nil || string(got) != "before "+string(want) {
			t.Errorf("%#v is written as %s (%v), by encoding/json as %s", v, got, err, want)
		}
	}
	for _, v := range []any{func() {}, math.NaN(), api.EventData{"a": api.EventData{"b": make(chan int)}}} {
		if got, err := AppendJSON(nil, v); err == nil {
			t.Errorf("%T is written as %s", v, got)
		}
	}
}
