package db

import "testing"

func TestPlain_OnlyWhatMeansTheSame(t *testing.T) {
	for _, c := range []struct{ query, want string }{
		{"SELECT 1", "SELECT 1"},
		{"SELECT ?1, ?2", "SELECT ?, ?"},
		{"SELECT ?2, ?1", "SELECT ?2, ?1"},
		{"SELECT ?1, ?1", "SELECT ?1, ?1"},
		{"SELECT ?1, ?2, ?1", "SELECT ?1, ?2, ?1"},
		{"SELECT ?1, '?2', ?2", "SELECT ?, '?2', ?"},
		{"-- what's ?1\nSELECT 'it''s ?', ?1", "-- what's ?1\nSELECT 'it''s ?', ?"},
		{"SELECT ?1 WHERE x IN (/*SLICE:ids*/?)", "SELECT ?1 WHERE x IN (/*SLICE:ids*/?)"},
		{"SELECT ?, ?", "SELECT ?, ?"},
		{"SELECT ?1, ?10", "SELECT ?1, ?10"},
	} {
		if got := plain(c.query); got != c.want {
			t.Errorf("%q becomes %q, not %q", c.query, got, c.want)
		}
	}
}
