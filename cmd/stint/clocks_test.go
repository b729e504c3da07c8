package main

import (
	"strings"
	"testing"
	"time"
)

func TestClocks(t *testing.T) {
	for _, tt := range []struct {
		name string
		env  map[string]string
		want string // part of the refusal; empty for none
	}{
		{"the defaults", nil, ""},
		{"all down to seconds", map[string]string{
			"STINT_TICK": "1s", "STINT_MIN_LEASE": "1", "STINT_DEFAULT_LEASE": "2s", "STINT_MAX_LEASE": "8s", "STINT_BEAT": "1s", "STINT_STALE_AFTER": "2s",
			"STINT_OFFLINE_AFTER": "5s", "STINT_STAGE_INTERRUPT": "1s", "STINT_STAGE_TERM": "1s",
		}, ""},
		{"less than a second", map[string]string{"STINT_TICK": "500ms"}, "STINT_TICK"},
		{"no length", map[string]string{"STINT_OUTAGE_GRACE": "soon"}, "STINT_OUTAGE_GRACE"},
		{"leases that fall", map[string]string{"STINT_MAX_LEASE": "30s"}, "STINT_MAX_LEASE"},
		{"leases on tasks that fall", map[string]string{"STINT_TASK_LEASE": "25h"}, "STINT_MAX_TASK_LEASE"},
		{"offline before stale", map[string]string{"STINT_OFFLINE_AFTER": "90s"}, "offline after 1m30s and as stale only after 2m0s"},
		{"offline before the next beat", map[string]string{"STINT_BEAT": "100s", "STINT_STALE_AFTER": "110s", "STINT_OFFLINE_AFTER": "111s"}, "at least 2m2s"},
		{"stale between two beats", map[string]string{"STINT_BEAT": "3m"}, "STINT_STALE_AFTER"},
		{"no lease as long as the stages", map[string]string{"STINT_STAGE_TERM": "2h"}, "STINT_STAGE_TERM: a lease of 4h0m0s is too short"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := newCLI()
			c.env = func(name string) string { return tt.env[name] }
			got, err := c.clocks()
			if tt.want != "" {
				if err == nil || !strings.Contains(err.Error(), tt.want) {
					t.Fatalf("answered %v, which doesn't name %s", err, tt.want)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if tt.env["STINT_TICK"] != "" && (got.engine.TickEvery != time.Second || got.engine.OutageAfter > time.Second) {
				t.Errorf("the clocks are %+v", got.engine)
			}
		})
	}
}
