package landing

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"stint/api"
	"stint/worker/git"
)

// differences compares a draft with a commit or a tree and adds what differs.
func differences(ctx context.Context, d git.Draft, with string, c *Changes) error {
	_, err := d.Do(ctx, git.Call{
		Args: []string{
			"diff-index", "--cached", "-z", "--raw", "--numstat", "-p", "--no-abbrev", "--find-renames", "-l400", "-O/dev/null", "--no-relative",
			"--no-ext-diff", "--no-textconv", "--no-color", "--submodule=short", "--ignore-submodules=dirty", "--end-of-options", with,
		},
		Set: quiet,
		Read: func(r io.Reader) error {
			return (&diffReader{in: bufio.NewReaderSize(r, 64<<10), to: c}).read()
		},
	})
	return err
}

// diffReader reads what git diff-index prints: a list of files, the numbers of their lines, and
// their patches, all in the same order.
type diffReader struct {
	in    *bufio.Reader
	to    *Changes
	parts []int // how many patches each file has: two when its type changed, none when it is unmerged
	total int   // bytes of patches kept
}

func (d *diffReader) read() error {
	token, err := d.token()
	for err == nil && strings.HasPrefix(token, ":") {
		if err = d.raw(token); err == nil {
			token, err = d.token()
		}
	}
	for i := 0; err == nil && token != ""; i++ {
		if err = d.numbers(i, token); err == nil {
			token, err = d.token()
		}
	}
	if err == nil {
		err = d.patches()
	}
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

func (d *diffReader) token() (string, error) {
	text, err := d.in.ReadString(0)
	return strings.TrimSuffix(text, "\x00"), err
}

// raw reads a line of the list: modes, ids, what happened, and the paths after it.
func (d *diffReader) raw(line string) error {
	f := strings.Fields(line[1:])
	if len(f) != 5 {
		return fmt.Errorf("git diff: unknown line %q", line)
	}
	path, err := d.token()
	if err != nil {
		return err
	}
	file := api.ChangedFile{Path: Quoted(path), Change: api.FileModified}
	if f[4][0] == 'R' {
		if path, err = d.token(); err != nil {
			return err
		}
		file.OldPath, file.Path = file.Path, Quoted(path)
	}
	const module = "160000"
	switch what := f[4][0]; {
	case f[0] == module || f[1] == module:
		file.Change = api.FileSubmodule
	case what == 'A':
		file.Change = api.FileAdded
	case what == 'D':
		file.Change = api.FileDeleted
	case what == 'R':
		file.Change = api.FileRenamed
	case f[2] == f[3] && f[0] != f[1]:
		file.Change = api.FileMode
	}
	d.to.FileCount++
	if d.to.FileCount > api.MaxChangedFiles {
		return nil
	}
	d.to.Files = append(d.to.Files, file)
	parts := 1
	switch f[4][0] {
	case 'T':
		parts = 2
	case 'U':
		parts = 0
	}
	d.parts = append(d.parts, parts)
	return nil
}

// numbers reads a line of numbers, with the paths after it if the file was renamed.
func (d *diffReader) numbers(i int, line string) error {
	f := strings.SplitN(line, "\t", 3)
	if len(f) != 3 {
		return fmt.Errorf("git diff: unknown line %q", line)
	}
	if f[2] == "" {
		for range 2 {
			if _, err := d.token(); err != nil {
				return err
			}
		}
	}
	added, bad := strconv.ParseInt(f[0], 10, 64)
	removed, _ := strconv.ParseInt(f[1], 10, 64) // both are "-" for a binary file
	d.to.Added += added
	d.to.Removed += removed
	if i < len(d.to.Files) {
		file := &d.to.Files[i]
		file.Added, file.Removed, file.Binary = added, removed, bad != nil
	}
	return nil
}

// patches reads the patches. A line that begins with "diff --git " begins one: lines of files
// have a sign before them.
func (d *diffReader) patches() error {
	at, seen, hunks := -1, 0, false
	var patch strings.Builder
	keep := func() {
		if at < 0 {
			return
		}
		f := &d.to.Files[at]
		if f.Patch = patch.String(); f.Binary {
			f.Patch, f.Cut = "", false
		}
		d.total += len(f.Patch)
		patch.Reset()
	}
	for {
		line, long, err := d.line()
		if line == "" && err != nil {
			keep()
			return err
		}
		if strings.HasPrefix(line, "diff --git ") {
			if seen--; seen <= 0 {
				keep()
				for at++; at < len(d.parts) && d.parts[at] == 0; at++ {
				}
				if at >= len(d.to.Files) {
					return git.Enough()
				}
				seen = d.parts[at]
			}
			hunks = false
			continue
		}
		if hunks = hunks || strings.HasPrefix(line, "@@"); !hunks || at < 0 || d.to.Files[at].Cut {
			continue
		}
		line = valid(line)
		switch {
		case d.total+patch.Len()+len(line) > api.MaxPatches:
			keep()
			d.full(at)
			return git.Enough()
		case long, patch.Len()+len(line) > api.MaxPatch:
			d.to.Files[at].Cut = true
		default:
			patch.WriteString(line)
		}
	}
}

// full marks what no patch is kept of any more.
func (d *diffReader) full(from int) {
	for i := from; i < len(d.to.Files); i++ {
		f := &d.to.Files[i]
		f.Cut = !f.Binary && f.Added+f.Removed > 0
	}
}

// line reads a line with its end, and reports whether it is longer than what is kept of a patch:
// then it is its beginning.
func (d *diffReader) line() (line string, long bool, err error) {
	var all []byte
	for {
		part, err := d.in.ReadSlice('\n')
		if len(all)+len(part) <= api.MaxPatch {
			all = append(all, part...)
		} else {
			if len(all) == 0 {
				all = append(all, part[:1]...)
			}
			long = true
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return string(all), long, err
		}
	}
}
