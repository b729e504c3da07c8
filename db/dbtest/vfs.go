package dbtest

import (
	"bytes"
	"fmt"
	"sync"
	"unsafe"

	"modernc.org/libc"
	sqlite3 "modernc.org/sqlite/lib"
)

// This file is the only one that touches the driver's C memory. The layout is that of the
// pinned driver version; the compiler checks the names, not the layout.

// file is an open file of a disk.
type file struct {
	disk     *Disk
	path     string
	original *sqlite3.Tsqlite3_io_methods
}

// registry finds the Go side of what SQLite knows by address. The callbacks get nothing else,
// and a C function pointer cannot be a Go closure.
type registry struct {
	mu      sync.Mutex
	disks   map[uintptr]*Disk   // by VFS
	files   map[uintptr]*file   // by sqlite3_file
	methods map[uintptr]uintptr // ours by the original: locking styles differ in them
	made    int
}

var known = registry{
	disks:   map[uintptr]*Disk{},
	files:   map[uintptr]*file{},
	methods: map[uintptr]uintptr{},
}

func (r *registry) disk(vfs uintptr) *Disk {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.disks[vfs]
}

func (r *registry) file(p uintptr) *file {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.files[p]
}

// at reads a C address as a Go pointer. The memory is not Go's and never moves.
func at[T any](p uintptr) *T { return *(**T)(unsafe.Pointer(&p)) }

// address returns the C function pointer of a declared function.
func address[F any](f F) uintptr { return *(*uintptr)(unsafe.Pointer(&struct{ f F }{f})) }

// function returns the Go function behind a C function pointer.
func function[F any](p uintptr) F { return *(*F)(unsafe.Pointer(&struct{ p uintptr }{p})) }

type (
	openFunc     = func(tls *libc.TLS, vfs, name, file uintptr, flags int32, outFlags uintptr) int32
	deleteFunc   = func(tls *libc.TLS, vfs, name uintptr, syncDir int32) int32
	closeFunc    = func(tls *libc.TLS, file uintptr) int32
	writeFunc    = func(tls *libc.TLS, file, data uintptr, n int32, offset int64) int32
	truncateFunc = func(tls *libc.TLS, file uintptr, size int64) int32
	syncFunc     = func(tls *libc.TLS, file uintptr, flags int32) int32
)

// system is the operating system's VFS, which every disk copies and calls.
func system(tls *libc.TLS) uintptr {
	for vfs := sqlite3.Xsqlite3_vfs_find(tls, 0); vfs != 0; vfs = at[sqlite3.Tsqlite3_vfs](vfs).FpNext {
		if known.disk(vfs) == nil {
			return vfs
		}
	}
	return 0
}

func register(d *Disk) error {
	tls := libc.NewTLS()
	defer tls.Close()
	if rc := sqlite3.Xsqlite3_initialize(tls); rc != sqlite3.SQLITE_OK {
		return fmt.Errorf("initialize SQLite: code %d", rc)
	}
	vfs := alloc[sqlite3.Tsqlite3_vfs](tls)
	*at[sqlite3.Tsqlite3_vfs](vfs) = *at[sqlite3.Tsqlite3_vfs](system(tls))

	known.mu.Lock()
	known.made++
	d.name = fmt.Sprintf("disk%d", known.made)
	known.disks[vfs] = d
	known.mu.Unlock()

	name, err := libc.CString(d.name)
	if err != nil {
		return err
	}
	c := at[sqlite3.Tsqlite3_vfs](vfs)
	c.FzName = name
	c.FpNext = 0
	c.FxOpen = address[openFunc](diskOpen)
	c.FxDelete = address[deleteFunc](diskDelete)
	if rc := sqlite3.Xsqlite3_vfs_register(tls, vfs, 0); rc != sqlite3.SQLITE_OK {
		return fmt.Errorf("register VFS %s: code %d", d.name, rc)
	}
	return nil
}

func unregister(d *Disk) {
	tls := libc.NewTLS()
	defer tls.Close()
	known.mu.Lock()
	defer known.mu.Unlock()
	for vfs, other := range known.disks {
		if other == d {
			sqlite3.Xsqlite3_vfs_unregister(tls, vfs)
			// The entry and the memory stay: a connection that was left open after a failed
			// commit still refers to them.
		}
	}
}

func alloc[T any](tls *libc.TLS) uintptr {
	var t T
	p := libc.Xcalloc(tls, 1, libc.Tsize_t(unsafe.Sizeof(t)))
	if p == 0 {
		panic("out of memory")
	}
	return p
}

func diskOpen(tls *libc.TLS, vfs, name, pFile uintptr, flags int32, outFlags uintptr) int32 {
	d := known.disk(vfs)
	rc := function[openFunc](at[sqlite3.Tsqlite3_vfs](system(tls)).FxOpen)(tls, vfs, name, pFile, flags, outFlags)
	const recorded = sqlite3.SQLITE_OPEN_MAIN_DB | sqlite3.SQLITE_OPEN_MAIN_JOURNAL | sqlite3.SQLITE_OPEN_WAL
	if rc != sqlite3.SQLITE_OK || flags&recorded == 0 || name == 0 {
		return rc
	}
	c := at[sqlite3.Tsqlite3_file](pFile)
	known.mu.Lock()
	defer known.mu.Unlock()
	known.files[pFile] = &file{disk: d, path: libc.GoString(name), original: at[sqlite3.Tsqlite3_io_methods](c.FpMethods)}
	c.FpMethods = known.replaced(tls, c.FpMethods)
	return rc
}

// replaced returns methods like the original ones that also record.
func (r *registry) replaced(tls *libc.TLS, original uintptr) uintptr {
	if p, ok := r.methods[original]; ok {
		return p
	}
	p := alloc[sqlite3.Tsqlite3_io_methods](tls)
	m := at[sqlite3.Tsqlite3_io_methods](p)
	*m = *at[sqlite3.Tsqlite3_io_methods](original)
	m.FxClose = address[closeFunc](fileClose)
	m.FxWrite = address[writeFunc](fileWrite)
	m.FxTruncate = address[truncateFunc](fileTruncate)
	m.FxSync = address[syncFunc](fileSync)
	r.methods[original] = p
	return p
}

func diskDelete(tls *libc.TLS, vfs, name uintptr, syncDir int32) int32 {
	rc := function[deleteFunc](at[sqlite3.Tsqlite3_vfs](system(tls)).FxDelete)(tls, vfs, name, syncDir)
	if rc == sqlite3.SQLITE_OK {
		d := known.disk(vfs)
		d.mu.Lock()
		defer d.mu.Unlock()
		d.note(libc.GoString(name), op{kind: deleted})
	}
	return rc
}

func fileClose(tls *libc.TLS, pFile uintptr) int32 {
	f := known.file(pFile)
	known.mu.Lock()
	delete(known.files, pFile)
	known.mu.Unlock()
	return function[closeFunc](f.original.FxClose)(tls, pFile)
}

func fileWrite(tls *libc.TLS, pFile, data uintptr, n int32, offset int64) int32 {
	f := known.file(pFile)
	f.disk.mu.Lock()
	defer f.disk.mu.Unlock()
	if f.disk.full {
		return sqlite3.SQLITE_FULL
	}
	if from := f.disk.failFrom; from != nil && bytes.Contains(libc.GoBytes(data, int(n)), from) {
		f.disk.failSyncs = true
	}
	rc := function[writeFunc](f.original.FxWrite)(tls, pFile, data, n, offset)
	if rc == sqlite3.SQLITE_OK {
		f.disk.note(f.path, op{kind: written, offset: offset, data: bytes.Clone(libc.GoBytes(data, int(n)))})
	}
	return rc
}

func fileTruncate(tls *libc.TLS, pFile uintptr, size int64) int32 {
	f := known.file(pFile)
	f.disk.mu.Lock()
	defer f.disk.mu.Unlock()
	rc := function[truncateFunc](f.original.FxTruncate)(tls, pFile, size)
	if rc == sqlite3.SQLITE_OK {
		f.disk.note(f.path, op{kind: truncated, offset: size})
	}
	return rc
}

func fileSync(tls *libc.TLS, pFile uintptr, flags int32) int32 {
	f := known.file(pFile)
	d := f.disk
	d.mu.Lock()
	defer d.mu.Unlock()
	d.syncs++
	if d.failSyncs {
		d.note(f.path, op{kind: dropped})
		return sqlite3.SQLITE_IOERR_FSYNC
	}
	// Nothing is really synced: here the real power never fails, and there are many tests.
	d.note(f.path, op{kind: synced})
	return sqlite3.SQLITE_OK
}
