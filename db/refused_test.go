package db

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"stint/api"
)

// TestRefused_EveryStateOfTheStoreIsTold: which it is, whether anything was
// changed, and when to ask again.
func TestRefused_EveryStateOfTheStoreIsTold(t *testing.T) {
	for _, c := range []struct {
		err  error
		code api.Code
		says string
	}{
		{ErrFull, api.CodeUnavailable, "disk is full; nothing was changed"},
		{ErrReadOnly, api.CodeUnavailable, "read-only now; nothing was changed"},
		{ErrFailing, api.CodeUnavailable, "disk fails; nothing was changed"},
		{ErrBusy, api.CodeUnavailable, "locked; nothing was changed"},
		{ErrClosed, api.CodeUnavailable, "shutting down"},
		{ErrMoved, api.CodeDatabaseMoved, "Put stint.db back"},
		{ErrForeign, api.CodeDatabaseMoved, "restore a copy"},
		{ErrDamaged, api.CodeDatabaseDamaged, "damaged"},
		{ErrSlow, api.CodeTooSlow, "too long to read"},
		{fmt.Errorf("%w: %w", ErrOutcomeUnknown, ErrMoved), api.CodeOutcomeUnknown, "may or may not"},
	} {
		var got *api.Error
		err := refused(fmt.Errorf("list sessions: %w", c.err))
		if !errors.As(err, &got) || got.Code != c.code || !strings.Contains(got.Detail, c.says) || got.RetryIn == 0 {
			t.Errorf("%v is shown as %+v", c.err, got)
		}
		if !errors.Is(err, c.err) || !api.Retriable(err) {
			t.Errorf("%v is lost, or not tried again: %v", c.err, err)
		}
		if again := refused(err); again.Error() != err.Error() {
			t.Errorf("%v is told twice: %v", c.err, again)
		}
	}
	plain := errors.New("something else")
	if err := refused(plain); err != plain {
		t.Errorf("%v became %v", plain, err)
	}
}

// Only what can be narrowed says so: a poll has nothing to narrow.
func TestSearch_SaysHowToNarrowWhatTakesTooLong(t *testing.T) {
	s, err := Open(t.Context(), Options{Path: filepath.Join(t.TempDir(), "stint.db")})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	slow := func(*ReadTx) error { return ErrSlow }
	for want, err := range map[string]error{
		"This takes too long to find. Narrow it: by agent or time.":                   s.Search(t.Context(), "by agent or time", slow),
		"The coordinator took too long to read this; nothing was changed. Ask again.": s.Read(t.Context(), slow),
	} {
		var got *api.Error
		if !errors.As(err, &got) || got.Code != api.CodeTooSlow || got.Detail != want || got.RetryIn == 0 {
			t.Errorf("it is shown as %v, want %q", err, want)
		}
	}
	refusal := api.Refuse(api.CodeNotFound, "None.")
	if err := s.Search(t.Context(), "", func(*ReadTx) error { return refusal }); api.CodeOf(err) != api.CodeNotFound {
		t.Errorf("a refusal became %v", err)
	}
}
