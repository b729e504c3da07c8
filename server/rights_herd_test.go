package server_test

import (
	"context"
	"net/http"
	"sync"
	"testing"

	"stint/db"
	"stint/server/servertest"
)

// However many requests with one token come when nothing is remembered about it, there is one
// look-up: ten thousand held requests check their rights every few seconds.
func TestRights_ManyRequestsOfOneTokenAskOnce(t *testing.T) {
	const many = 50
	d := newFixture(t, servertest.Options{})
	taken, free := make(chan struct{}), make(chan struct{})
	var all sync.WaitGroup
	all.Go(func() {
		// The one connection through which rights are read.
		err := d.Store.ReadRights(context.Background(), func(*db.ReadTx) error {
			close(taken)
			<-free
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	})
	<-taken
	d.HTTP.ForgetRights()
	asked, waited := d.HTTP.RightsAsked()
	for range many {
		all.Go(func() {
			if a := d.Do("GET", "agents", nil); a.Status != http.StatusOK {
				t.Errorf("answered %d", a.Status)
			}
		})
	}
	servertest.Wait(t, "all of them to ask or to wait", func() bool {
		a, w := d.HTTP.RightsAsked()
		return a-asked+w-waited == many
	})
	if a, _ := d.HTTP.RightsAsked(); a-asked != 1 {
		t.Errorf("%d requests asked %d times", many, a-asked)
	}
	close(free)
	all.Wait()
}
