package git

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// ErrPipe says that a named pipe, a device or a socket lies where git reads a file.
var ErrPipe = errors.New("git would wait for ever where it reads a file")

// mostCopied bounds a file of a repository's that is read whole.
const mostCopied = 32 << 20

// odd says what a file is where it is no file, folder or link; "" for those.
func odd(mode fs.FileMode) string {
	switch {
	case mode&fs.ModeNamedPipe != 0:
		return "a named pipe"
	case mode&fs.ModeSocket != 0:
		return "a socket"
	case mode&fs.ModeDevice != 0:
		return "a device"
	}
	return ""
}

// plain refuses a path at which something lies that may never end, or a link to such a thing. A
// missing one is fine.
func plain(path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return nil //nolint:nilerr // git will say so where it needs it
	}
	if what := odd(info.Mode()); what != "" {
		return fmt.Errorf("%w: %s is %s", ErrPipe, filepath.Base(path), what)
	}
	return nil
}

// openFile opens a regular file, whatever lies there by the time it is opened, and waits for nobody.
func openFile(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil {
		if what := odd(info.Mode()); what != "" {
			err = fmt.Errorf("%w: %s is %s", ErrPipe, filepath.Base(path), what)
		}
	}
	if err != nil {
		_ = f.Close()
		return nil, err
	}
	return f, nil
}

// slurp reads a file whole.
func slurp(path string) ([]byte, error) {
	f, err := openFile(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	text, err := io.ReadAll(io.LimitReader(f, mostCopied+1))
	if err == nil && len(text) > mostCopied {
		err = fmt.Errorf("%s is too large", filepath.Base(path))
	}
	return text, err
}
