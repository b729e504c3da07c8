package main

import (
	"testing"

	"stint/api"
)

func TestAWorkerThatServesSeveralAgentsCountsOnce(t *testing.T) {
	t.Parallel()
	all, online := workersCounted([]api.Worker{
		{OwnerUserID: 1, Name: "workshop", State: api.Offline},
		{OwnerUserID: 1, Name: "workshop", State: api.Online},
		{OwnerUserID: 2, Name: "workshop", State: api.WorkerStale},
		{Name: "cloud", State: api.Online},
	})
	if all != 3 || online != 2 {
		t.Errorf("counted %d workers, %d online", all, online)
	}
}
