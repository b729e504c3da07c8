package db

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"time"
)

// lastUse is what the file NAME.lock beside the database says about its last use. A start
// compares it with what it finds: a log that went missing, or that lies beside a database to
// which it doesn't belong, would silently lose or garble writes (contract 14). A directory
// without a note, as older versions left it, is accepted as it is.
//
// Each start signs the database's first page with a new number (PRAGMA user_version), which
// the note names. Until that has got out of the log into the file, the numbers of earlier
// starts are valid too.
type lastUse struct {
	state   string           // one of the states below, "" when there is no note
	signs   [maxSigns]uint32 // the newest first
	changed time.Time        // when the store last acknowledged a write, as the file system saw it
}

const (
	stateOpen    = "open"    // in use, or its last user was killed: there must be a log
	stateClean   = "clean"   // everything is in the database
	stateForeign = "foreign" // another program wrote over the open database: its log is useless
)

// names reports whether the note is about a database with this sign.
func (n lastUse) names(sign uint32) bool {
	return n.state == "" || slices.Contains(n.signs[:], sign)
}

// openedAs is the note when one more start signs a file whose first page says have: what is
// newer may still be in the log.
func (n lastUse) openedAs(sign, have uint32) lastUse {
	signs := []uint32{sign}
	for _, s := range n.signs {
		if s == 0 || s == have {
			break
		}
		signs = append(signs, s)
	}
	opened := lastUse{state: stateOpen}
	copy(opened.signs[:], append(signs[:min(len(signs), maxSigns-1)], have))
	return opened
}

const maxSigns = 4

const noteText = "How the use of the database beside this file ended. Remove this file to have the database taken as it is.\n"

func (n lastUse) String() string {
	return fmt.Sprintf("%-7s %08x\n", n.state, n.signs)
}

// noteOf reads the note beside a database; one that can't be read says nothing.
func lastUseOf(path string) lastUse {
	text, err := os.ReadFile(path + lockSuffix)
	if err != nil {
		return lastUse{}
	}
	var n lastUse
	s := &n.signs
	if _, err := fmt.Sscanf(string(text), "%s [%x %x %x %x]\n", &n.state, &s[0], &s[1], &s[2], &s[3]); err != nil {
		return lastUse{}
	}
	switch n.state {
	case stateOpen, stateClean, stateForeign:
	default:
		return lastUse{}
	}
	info, err := os.Stat(path + lockSuffix)
	if err != nil {
		return lastUse{}
	}
	n.changed = info.ModTime()
	return n
}

// notebook is the open file of a note. It follows the file when its directory is renamed, so
// that the note stays with what it is about.
type notebook struct {
	file *os.File
	sync bool // the store promises to survive a power cut
}

func openNotebook(path string, o Options) (*notebook, error) {
	f, err := os.OpenFile(path+lockSuffix, os.O_RDWR, 0)
	if err != nil {
		return nil, fmt.Errorf("open the note on the database: %w", err)
	}
	return &notebook{file: f, sync: o.Unsafe.Synchronous == ""}, nil
}

// write replaces the note. It is shorter than a sector, so a power cut leaves
// the old one or the new one.
func (b *notebook) write(n lastUse) error {
	_, err := b.file.WriteAt([]byte(n.String()+noteText), 0)
	if err == nil && b.sync {
		err = b.file.Sync()
	}
	if err != nil {
		return fmt.Errorf("write the note on the database: %w", err)
	}
	return nil
}

// tick notes that a write is about to be acknowledged, only by the file's time stamp. It isn't
// made durable: after a power cut a missing log is then taken for one that another program
// wrote back.
func (b *notebook) tick() {
	_, _ = b.file.WriteAt(openTick, 0) // a disk that can't take it is noticed elsewhere
}

var openTick = fmt.Appendf(nil, "%-7s", stateOpen)

// checkPair refuses a database and a log that don't belong together, before SQLite sees them:
// it would begin an empty database, or write the log into the wrong one.
func checkPair(path string) error {
	n := lastUseOf(path)
	logSize, logErr := sizeOf(path + "-wal")
	main, err := os.Stat(path)
	switch {
	case logErr != nil:
		return logErr
	case errors.Is(err, fs.ErrNotExist), err == nil && main.Mode().IsRegular() && main.Size() == 0:
		switch {
		case logSize > 0:
			return fmt.Errorf("%w: there is a log without it. Put the database back beside its log; if it is lost, move the log away (its name ends in -wal) and restore a copy", ErrUnpaired)
		case n.state != "":
			return fmt.Errorf("%w: it is gone. Put it back; to begin with an empty one, remove the file beside it whose name ends in .lock", ErrUnpaired)
		}
		return nil
	case err != nil:
		return fmt.Errorf("look at the file: %w", err)
	case main.Mode().IsRegular() && logSize <= 0:
		// SQLite itself treats an incomplete last page as one that ends in zeros.
		if h, err := headerOf(path); err == nil && main.Size() < h.bytes() && !exists(path+"-journal") {
			return fmt.Errorf("%w: its end was cut off, it has %d of %d bytes. Restore a whole copy", ErrUnpaired, main.Size(), h.bytes())
		}
	}
	switch {
	case n.state == "" || !main.Mode().IsRegular():
		return nil
	}
	const asItIs = " To go on with the database as it is, remove the files beside it whose names end in -wal, -shm and .lock; what only the log held is lost then"
	switch sign, err := signOf(path); {
	case err != nil:
		return err
	case n.state == stateForeign && logSize > 0:
		return fmt.Errorf("%w: another program wrote it over while it was in use. Restore a whole copy."+asItIs, ErrUnpaired)
	case logSize > 0 && !n.names(sign):
		return fmt.Errorf("%w: the log beside it belongs to another database, as when a copy was restored without removing the log."+asItIs, ErrUnpaired)
	case n.state == stateOpen && logSize < 0 && main.ModTime().Before(n.changed):
		return fmt.Errorf("%w: its last use had no clean end, and the log that it left is gone. Put the log back (its name ends in -wal)."+asItIs, ErrUnpaired)
	}
	return nil
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// sizeOf is a file's size, -1 if there is none.
func sizeOf(path string) (int64, error) {
	switch info, err := os.Stat(path); {
	case errors.Is(err, fs.ErrNotExist):
		return -1, nil
	case err != nil:
		return 0, fmt.Errorf("look at the log: %w", err)
	default:
		return info.Size(), nil
	}
}
