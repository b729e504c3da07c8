package db

import (
	"errors"
	"os"
	"runtime"
	"testing"
)

func TestClose_AnswersWhatWaitsAndRefusesTheRest(t *testing.T) {
	s := open(t)
	closed := make(chan error, 1)
	errs := togetherWith(t, s, func() {
		go func() { closed <- s.Close() }()
		for s.writer.Load().queue.refused() == nil {
			runtime.Gosched()
		}
		if err := s.Write(t.Context(), note(9)); !errors.Is(err, ErrClosed) {
			t.Errorf("write to a closing store: %v", err)
		}
	}, call{t.Context(), note(1)}, call{t.Context(), note(2)})
	if err := errors.Join(append(errs, <-closed)...); err != nil {
		t.Fatal(err)
	}
	if err := s.Read(t.Context(), func(*ReadTx) error { return nil }); !errors.Is(err, ErrClosed) {
		t.Errorf("read from a closed store: %v", err)
	}
	if err := s.Snapshot(t.Context(), s.path+".copy"); !errors.Is(err, ErrClosed) {
		t.Errorf("snapshot of a closed store: %v", err)
	}
	again := open(t, func(o *Options) { o.Path = s.path })
	wantNotes(t, again, 1, 2)
}

// TestClose_EmptiesTheLog also while another process has the file open, when
// SQLite does not do it by itself.
func TestClose_EmptiesTheLog(t *testing.T) {
	s := open(t)
	open(t, func(o *Options) { o.Path = s.path })
	if err := errors.Join(s.Write(t.Context(), note(1)), s.Close()); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(s.path + "-wal")
	if err != nil || info.Size() != 0 {
		t.Errorf("the log has %d bytes (%v)", info.Size(), err)
	}
}

func TestClose_WaitsForReads(t *testing.T) {
	s := open(t)
	reading, closed := make(chan struct{}), make(chan error, 1)
	err := s.Read(t.Context(), func(tx *ReadTx) error {
		go func() {
			close(reading)
			closed <- s.Close()
		}()
		<-reading
		<-s.writer.Load().done // Close has begun
		_, err := tx.Counter(t.Context(), "event")
		return err
	})
	if err := errors.Join(err, <-closed); err != nil {
		t.Error(err)
	}
}
