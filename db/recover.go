package db

import (
	"context"
	"errors"
	"fmt"
	"time"
)

const (
	retryFirst = time.Second
	retryMost  = 30 * time.Second // a disk that stays broken must not keep us busy
	retryMoved = time.Second      // checking whether a file is back costs next to nothing
	reopenTime = 20 * time.Second // bounds one try; nobody waits for it
)

// tend waits until the writer stops, and then tries to reopen the database until it can be
// written to again. Contract 14: after a commit whose outcome is unknown nothing is written
// before the file was reopened, and while the disk fails the coordinator stays up and
// readable.
func (s *Store) tend() {
	defer close(s.tended)
	for {
		select {
		case <-s.ending:
			return
		case cause := <-s.broken:
			if !s.recover(cause) {
				return
			}
		}
	}
}

// recover returns when there is a writer again; false when the store ends first.
func (s *Store) recover(cause error) bool {
	old := s.writer.Load()
	<-old.done
	s.save(old, cause)
	pause := s.options.Unsafe.Retry
	if pause == 0 {
		pause = retryFirst
	}
	for said := cause.Error(); ; pause = min(2*pause, retryMost) {
		if errors.Is(cause, ErrMoved) || errors.Is(cause, ErrForeign) {
			pause = min(pause, retryMoved)
		}
		select {
		case <-s.ending:
			return false
		case <-time.After(pause):
		}
		err := s.reopen(old)
		if err == nil {
			s.options.Log.Warn("the database can be written to again", "after", cause)
			return true
		}
		if text := err.Error(); text != said {
			said = text
			s.options.Log.Error("the database can't be opened again yet", "error", err)
		}
	}
}

// reopen replaces a writer that has stopped with a new one, which has proved that the disk
// takes writes. Reading still works meanwhile, unless the log has to be created anew.
func (s *Store) reopen(old *writer) error {
	ctx, cancel := context.WithTimeout(context.Background(), reopenTime)
	defer cancel()
	switch err := s.openFiles.whole(); {
	case errors.Is(err, errLogGone):
		s.readsGate.Lock()
		defer s.readsGate.Unlock()
		s.reads.Wait()
		if err := s.emptyLostLog(old); err != nil {
			return err
		}
	case err != nil:
		return err
	}
	w, err := openWriter(ctx, s.path, s.options)
	if err != nil {
		return err
	}
	w.lastID = old.lastID
	if err := errors.Join(s.openFiles.settle(), s.sign(w)); err != nil {
		return errors.Join(err, w.close())
	}
	s.begin(w)
	s.writer.Store(w)
	// It isn't the last connection, so SQLite touches no file for it.
	if err := old.close(); err != nil {
		s.options.Log.Warn("close a connection that failed", "error", err)
	}
	return nil
}

// emptyLostLog writes what a removed log holds into the database, as long as it is open, and
// ends every connection, so that the next one creates a new log. Nothing reads meanwhile.
func (s *Store) emptyLostLog(old *writer) error {
	if old.closed {
		return nil
	}
	err := s.readers.close()
	readers, failed := openReaders(s.path, s.options)
	if failed != nil {
		return errors.Join(err, failed)
	}
	s.readers = readers
	switch emptied, failed := old.checkpoint(); {
	case failed != nil:
		return errors.Join(err, failed)
	case !emptied:
		return errors.Join(err, fmt.Errorf("%w: another process reads the log that was removed", ErrBusy))
	}
	return errors.Join(err, old.close())
}

// save brings what was acknowledged to where people can put it back from: out of the log into
// the database, which may have been moved without it, and into a new file if the database was
// deleted. If the disk is what failed, it isn't used.
func (s *Store) save(w *writer, cause error) {
	if !errors.Is(cause, ErrMoved) {
		return
	}
	if _, err := w.checkpoint(); err != nil {
		s.options.Log.Error("write the log into the database that was moved", "error", err)
	}
	if !s.openFiles.deleted() {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), reopenTime)
	defer cancel()
	w.guard.inTx = true // it isn't a closure's statement
	defer func() { w.guard.inTx = false }()
	saved := s.path + ".saved"
	if err := copyTo(ctx, w.conn, saved); err != nil {
		s.options.Log.Error("save the database that was deleted", "error", err)
		return
	}
	s.options.Log.Error("the database was deleted; what it held was saved", "file", saved)
}

// disown notes that the log must not be written into the file at the path.
func (s *Store) disown() {
	use := lastUseOf(s.path)
	use.state = stateForeign
	if err := s.book.write(use); err != nil {
		s.options.Log.Error("note that the database was written over", "error", err)
	}
}
