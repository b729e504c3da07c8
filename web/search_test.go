package web

import (
	"net/http"
	"strings"
	"sync"
	"testing"

	"stint/db"
)

// Long searches stop no page: the home page, lists and the audit come while as many searches as
// there can be are held.
func TestPages_ComeWhileSearchesAreHeld(t *testing.T) {
	s := newFixture(t, fixtureEnd)
	const searches = 2
	held, release := make(chan struct{}, searches), make(chan struct{})
	var all sync.WaitGroup
	for range searches {
		all.Go(func() {
			if err := s.Store.Search(s.Context(), "", func(*db.ReadTx) error { held <- struct{}{}; <-release; return nil }); err != nil {
				t.Error(err)
			}
		})
	}
	for range searches {
		<-held
	}
	for _, path := range []string{"/", "/inbox", "/sessions", "/sessions?agent=backup", "/agents", "/agents/backup", "/tasks", "/tasks?view=board", "/activity", "/workers"} {
		if res := s.get(path); res.Code != http.StatusOK {
			t.Errorf("%s: status %d", path, res.Code)
		}
	}
	searched := make(chan int, 1)
	all.Go(func() { searched <- s.get("/sessions?q=round").Code })
	select {
	case code := <-searched:
		t.Errorf("a search was answered with %d beside those that are held", code)
	default:
	}
	close(release)
	all.Wait()
	if code := <-searched; code != http.StatusOK {
		t.Errorf("the search that waited: status %d", code)
	}
}

// What of a query can't be read is told beside the box, and the rest is searched for; REST's name
// of the parameter is understood too.
func TestSearch_WhatCannotBeReadIsToldAndLeftOut(t *testing.T) {
	s := newFixture(t, fixtureEnd)
	for _, path := range []string{"/sessions?q=nope:1+agent:backup", "/sessions?query=nope:1+agent:backup"} {
		page := s.get(path).Body.String()
		for _, want := range []string{"Part of the search was left out", "there is no field nope", `aria-describedby="q-bad"`, `<option value="backup" selected`} {
			if !strings.Contains(page, want) {
				t.Errorf("%s doesn't have %s", path, want)
			}
		}
	}
	if page := s.get("/sessions?q=status:error+since:7d").Body.String(); strings.Contains(page, "left out") || !strings.Contains(page, `value="since:7d"`) {
		t.Error("a query that is read is not shown as its controls and the rest as it was written")
	}
}
