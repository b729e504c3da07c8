package web

import (
	"net/http"
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
