package engine_test

import (
	"errors"
	"testing"

	"stint/api"
	"stint/engine/enginetest"
)

// A folder's key begins with the key of the folder that it lies in; sessions of
// different agents never share a plain folder, nor work above or below one another.
func TestClaim_OneSessionInAFolderAndWhatLiesInIt(t *testing.T) {
	for _, tt := range []struct {
		name, first, second string
		shared              bool
		busy                bool
	}{
		{"the same folder", "m/a/b", "m/a/b", false, true},
		{"a folder within it", "m/a", "m/a/b/c", false, true},
		{"a folder above it", "m/a/b", "m", false, true},
		{"a neighbour whose key begins alike", "m/a", "m/ab", false, false},
		{"another machine", "m/a", "n/a", false, false},
		{"no folder", "", "m/a", false, false},
		{"a shared one", "m/a", "m/a", true, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := enginetest.New(t)
			one, two := w.Agent(), w.Agent()
			in := func(key string) func(*api.WorkerInput) {
				return func(in *api.WorkerInput) { in.FolderKey, in.FolderShared = key, tt.shared }
			}
			first, second := w.Worker(one, in(tt.first)), w.Worker(two, in(tt.second))
			held := first.Claim(w.New(one).ID)
			waiting := w.New(two)
			_, err := second.Try(waiting.ID)
			if !tt.busy {
				if err != nil {
					t.Fatal(err)
				}
				return
			}
			var refusal *api.Error
			if !errors.As(err, &refusal) || refusal.Code != api.CodeNotReady || refusal.Gate != "folder_busy" {
				t.Fatalf("the claim was answered %v, not not_ready for folder_busy", err)
			}
			if got := w.Get(waiting.ID).WaitingFor; got == nil || got.Code != "folder_busy" {
				t.Fatalf("it waits for %v", got)
			}
			if next := second.Next(); next != nil {
				t.Fatalf("claim-next gave session %s", next.SessionID)
			}
			if _, err := first.Complete(held, "done"); err != nil {
				t.Fatal(err)
			}
			if next := second.Next(); next == nil || next.SessionID != waiting.ID {
				t.Fatalf("with the folder free claim-next gave %v", next)
			}
		})
	}
}
