package engine_test

import (
	"errors"
	"strings"
	"testing"

	"stint/api"
	"stint/engine"
	"stint/engine/enginetest"
)

// A folder's key begins with the key of the folder that it lies in; sessions of different
// agents never share a plain folder, nor work above or below one another.
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

// The reason for waiting names what is in the way, to those who may see that; and says so when
// it is a session that started the waiting one and may wait for it.
func TestWaitingFor_NamesWhatIsInTheWay(t *testing.T) {
	w, _ := withOwner(t)
	in := func(in *api.WorkerInput) { in.FolderKey = "m/a" }
	outer, inner, busy := w.Agent(), w.Agent(), w.Agent()
	k := w.Worker(outer, in)
	w.Worker(inner, in)
	held := k.Claim(w.New(outer).ID)
	check := func(id api.SessionID, code string, holder api.SessionID, ancestor bool) {
		t.Helper()
		got := w.Get(id).WaitingFor
		if got == nil || got.Code != code || got.SessionID != holder || got.Ancestor != ancestor ||
			strings.Contains(got.Sentence, held.SessionID.String()) != (holder == held.SessionID) || strings.Contains(got.Sentence, "for ever") != ancestor {
			t.Errorf("it waits for %+v", got)
		}
	}
	check(w.New(inner).ID, "folder_busy", held.SessionID, false)
	check(w.New(outer).ID, "agent_full", held.SessionID, false)
	by, err := acts(t, w, held.RunToken)
	if err != nil {
		t.Fatal(err)
	}
	start := func(by engine.Caller, a api.Agent) api.Session {
		t.Helper()
		s, _, err := w.CreateSession(t.Context(), by, a.Slug, api.SessionInput{}, engine.Idempotency{})
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	check(start(by, inner).ID, "folder_busy", held.SessionID, true)
	own := start(by, outer)
	check(own.ID, "agent_full", held.SessionID, true)
	w.Edit(outer.ID, func(in *api.AgentInput) { in.MaxConcurrent = 2 })
	other := w.Worker(outer, func(in *api.WorkerInput) { in.FolderKey = "m/b" })
	second := other.Claim(w.New(outer).ID)
	check(own.ID, "agent_full", held.SessionID, false) // the other place will be free
	// Below the one that it started in turn.
	c := w.Worker(busy, func(in *api.WorkerInput) { in.FolderKey = "m/c" }).Claim(start(by, busy).ID)
	below, err := acts(t, w, c.RunToken)
	if err != nil {
		t.Fatal(err)
	}
	check(start(below, inner).ID, "folder_busy", held.SessionID, true)
	// A cloud session is visible to everybody, and a local one in its way is not.
	cloud := w.Agent(func(in *api.AgentInput) { in.Mode = api.Cloud })
	w.Worker(cloud, func(in *api.WorkerInput) { in.Mode, in.FolderKey = api.Cloud, "m/a" })
	check(w.New(cloud).ID, "folder_busy", 0, false)
	if _, err := other.Complete(second, ""); err != nil {
		t.Fatal(err)
	}
}
