package dbtest

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
)

// kind is what happened to a file.
type kind uint8

const (
	written      kind = iota // data at offset
	truncated                // to the size in offset
	synced                   // everything before is durable
	dropped                  // a sync failed: what was not durable never will be
	deleted                  // the file is gone, at once and for good
	acknowledged             // the number in offset was acknowledged to somebody
)

type op struct {
	kind   kind
	suffix string // which of the database's files
	offset int64
	data   []byte
}

// Recording is everything that happened to a database's files, in order.
type Recording struct {
	base string // name of the database file
	ops  []op
}

func (r *Recording) add(o op) { r.ops = append(r.ops, o) }

// Len is how many operations there are; a cut can come before any of them or
// after the last.
func (r *Recording) Len() int { return len(r.ops) }

// Cut is what a power cut left.
type Cut struct {
	At           int     // operations that happened before
	Acknowledged []int64 // what had been acknowledged by then

	base  string
	files map[string][]byte
}

// WriteTo puts the files into dir and returns the database's path. Files of an
// earlier cut are replaced.
func (c Cut) WriteTo(dir string) (string, error) {
	path := filepath.Join(dir, c.base)
	for _, suffix := range append([]string{"-shm", ".lock"}, suffixes...) {
		data, ok := c.files[suffix]
		if !ok {
			if err := os.Remove(path + suffix); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return "", fmt.Errorf("write cut: %w", err)
			}
			continue
		}
		if err := os.WriteFile(path+suffix, data, 0o600); err != nil {
			return "", fmt.Errorf("write cut: %w", err)
		}
	}
	return path, nil
}

// Cuts calls visit with the cuts at the given positions, in ascending order. rng decides
// whether what was not durable then is there.
func (r *Recording) Cuts(rng *rand.Rand, positions []int, visit func(Cut) error) error {
	state := map[string]*image{}
	var heard []int64
	next := 0
	for _, at := range slices.Sorted(slices.Values(positions)) {
		for ; next < at; next++ {
			o := r.ops[next]
			if o.kind == acknowledged {
				heard = append(heard, o.offset)
				continue
			}
			apply(state, o)
		}
		files := map[string][]byte{}
		for _, suffix := range slices.Sorted(maps.Keys(state)) {
			files[suffix] = state[suffix].afterCut(rng)
		}
		if err := visit(Cut{At: at, Acknowledged: slices.Clip(heard), base: r.base, files: files}); err != nil {
			return fmt.Errorf("power cut after operation %d: %w", at, err)
		}
	}
	return nil
}

// image is one file: what is durable, and what was done since.
type image struct {
	durable []byte
	pending []op
}

func apply(state map[string]*image, o op) {
	if o.kind == deleted {
		delete(state, o.suffix)
		return
	}
	f := state[o.suffix]
	if f == nil {
		f = &image{}
		state[o.suffix] = f
	}
	switch o.kind {
	case synced:
		for _, p := range f.pending {
			f.durable = p.onto(f.durable)
		}
		f.pending = nil
	case dropped:
		f.pending = nil
	default:
		f.pending = append(f.pending, o)
	}
}

func (o op) onto(content []byte) []byte {
	if o.kind == truncated {
		return resize(content, int(o.offset))
	}
	end := int(o.offset) + len(o.data)
	if end > len(content) {
		content = resize(content, end)
	}
	copy(content[o.offset:], o.data)
	return content
}

func resize(content []byte, size int) []byte {
	if size <= len(content) {
		return content[:size:size]
	}
	return append(content, make([]byte, size-len(content))...)
}

// sector is what a disk writes whole or not at all.
const sector = 512

// afterCut returns the file as the cut leaves it: nothing of what is pending, all of it, or
// each operation whole, not at all or torn, which also means that a later one can be there
// without an earlier one.
func (f *image) afterCut(rng *rand.Rand) []byte {
	content := slices.Clone(f.durable)
	luck := rng.IntN(4)
	for _, o := range f.pending {
		switch {
		case luck == 0: // nothing
		case luck == 1: // all
			content = o.onto(content)
		default:
			content = o.perhapsOnto(rng, content)
		}
	}
	return content
}

func (o op) perhapsOnto(rng *rand.Rand, content []byte) []byte {
	switch fate := rng.IntN(3); {
	case fate == 0:
		return content
	case fate == 1 || o.kind == truncated:
		return o.onto(content)
	}
	for start := 0; start < len(o.data); {
		// Sectors are counted from the start of the file, not of the write.
		size := min(sector-(int(o.offset)+start)%sector, len(o.data)-start)
		if rng.IntN(2) == 0 {
			part := op{kind: written, offset: o.offset + int64(start), data: o.data[start : start+size]}
			content = part.onto(content)
		}
		start += size
	}
	return content
}
