package db

import (
	"errors"
	"slices"
	"testing"
)

// One that fails before it has written costs the others nothing; the first that fails after it
// has written makes all begin again, and no further one does.
func TestWrite_FailuresMakeNobodyRunTwiceMore(t *testing.T) {
	s := open(t)
	wrong := errors.New("wrong")
	runs := make([]int, 6)
	counted := func(i int, fn func(*Tx) error) func(*Tx) error {
		return func(tx *Tx) error { runs[i]++; return fn(tx) }
	}
	refuse := func(*Tx) error { return wrong }
	dirty := func(id int64) func(*Tx) error {
		return func(tx *Tx) error { return errors.Join(note(id)(tx), wrong) }
	}
	errs := together(t, s, counted(0, note(1)), counted(1, refuse), counted(2, note(2)))
	if errs[0] != nil || !errors.Is(errs[1], wrong) || errs[2] != nil || !slices.Equal(runs[:3], []int{1, 1, 1}) {
		t.Errorf("with a refusal: %v, runs %v", errs, runs)
	}
	clear(runs)
	errs = together(t, s, counted(0, note(3)), counted(1, refuse), counted(2, dirty(9)), counted(3, note(4)), counted(4, dirty(9)), counted(5, note(5)))
	if errs[0] != nil || !errors.Is(errs[1], wrong) || !errors.Is(errs[2], wrong) || errs[3] != nil || !errors.Is(errs[4], wrong) || errs[5] != nil {
		t.Error(errs)
	}
	if !slices.Equal(runs, []int{2, 2, 2, 1, 1, 1}) {
		t.Errorf("runs %v", runs)
	}
	wantNotes(t, s, 1, 2, 3, 4, 5)
}
