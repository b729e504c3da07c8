// Package regular reads files that lie where others can write: an agent, or whoever made a
// repository. Something else may lie there by the time they are opened, of which reading never ends,
// such as a named pipe, and a goroutine that waits for one can't be ended.
package regular

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// ErrEndless says that a named pipe or a device lies where a file should.
var ErrEndless = errors.New("reading it may never end")

// most bounds a file that is read whole.
const most = 32 << 20

// Odd says what a file is where reading it may never end; "" for others. Opening a socket fails at
// once, and the null device is empty.
func Odd(info fs.FileInfo) string {
	switch mode := info.Mode(); {
	case mode&fs.ModeNamedPipe != 0:
		return "a named pipe"
	case mode&fs.ModeDevice != 0:
		if null, err := os.Stat(os.DevNull); err == nil && os.SameFile(info, null) {
			return ""
		}
		return "a device"
	}
	return ""
}

// Refuse is an ErrEndless for a file that is odd, by the name that people know it by.
func Refuse(name string, info fs.FileInfo) error {
	if what := Odd(info); what != "" {
		return fmt.Errorf("%w: %s is %s", ErrEndless, name, what)
	}
	return nil
}

// Open opens a file, or where a link leads, and waits for nobody. The error may be ErrEndless.
func Open(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil {
		err = Refuse(filepath.Base(path), info)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// Read reads a file of at most 32 MiB. The error may be ErrEndless.
func Read(path string) ([]byte, error) {
	f, err := Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	text, err := io.ReadAll(io.LimitReader(f, most+1))
	if err == nil && len(text) > most {
		return nil, fmt.Errorf("%s is larger than %d MiB", filepath.Base(path), most>>20)
	}
	return text, err
}
