// Package dbtest simulates the disk below a database, only for tests: a disk that fills up,
// whose fsync fails, or whose power goes at any moment.
//
// It is a VFS of SQLite over the operating system's files. The database really runs on them;
// in addition, everything written and synced is recorded, and from the record come the files
// as a power cut could have left them (see [Recording]). It must not know what is stored: its
// user says what the files of a cut must hold.
package dbtest

import (
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

// Disk is a simulated disk. All methods may be called from any goroutine.
type Disk struct {
	name string // of the VFS

	mu        sync.Mutex
	full      bool
	failSyncs bool
	failFrom  []byte // a write that holds this sets failSyncs; nil: none does
	syncs     int
	root      string // only files whose path starts with it are recorded
	recording *Recording
}

// NewDisk makes a disk and registers its VFS until the test ends. Every
// database on it must be closed by then.
func NewDisk(t testing.TB) *Disk {
	t.Helper()
	d := &Disk{}
	if err := register(d); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unregister(d) })
	return d
}

// VFS is the name by which SQLite finds the disk.
func (d *Disk) VFS() string { return d.name }

// SetFull makes every write from now on fail for lack of space, or ends that.
func (d *Disk) SetFull(full bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.full = full
}

// FailSyncs makes every sync from now on fail, or ends that. As on Linux, what a failed sync
// was to make durable stays readable and never reaches the disk.
func (d *Disk) FailSyncs(fail bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.failSyncs, d.failFrom = fail, nil
}

// FailSyncsFrom makes every sync fail from the first write on that holds text, so that it is
// known whose commit is the first to fail.
func (d *Disk) FailSyncsFrom(text string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.failFrom = []byte(text)
}

// Syncs returns how many syncs there were.
func (d *Disk) Syncs() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.syncs
}

// Record starts a record of the database file at path, which must not hold anything yet, and
// of the files beside it that SQLite needs.
func (d *Disk) Record(path string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.root = path
	d.recording = &Recording{base: filepath.Base(path)}
}

// Tell records that n was acknowledged to somebody just now, so that n must survive every
// later power cut.
func (d *Disk) Tell(n int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.recording != nil {
		d.recording.add(op{kind: acknowledged, offset: n})
	}
}

// Stop ends the record and returns it.
func (d *Disk) Stop() *Recording {
	d.mu.Lock()
	defer d.mu.Unlock()
	r := d.recording
	d.recording, d.root = nil, ""
	return r
}

// note records an operation on a file of the recorded database.
func (d *Disk) note(path string, o op) {
	if d.recording == nil {
		return
	}
	suffix, ok := strings.CutPrefix(path, d.root)
	if !ok || !slices.Contains(suffixes, suffix) {
		return
	}
	o.suffix = suffix
	d.recording.add(o)
}

// suffixes name the files that survive a process: the database, its log and
// its rollback journal. The shared memory is made anew from the log.
var suffixes = []string{"", "-wal", "-journal"}
