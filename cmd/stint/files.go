package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"stint/api"
)

// readFiles reads what comes with a prompt or a message. Larger ones than may come are not read
// whole.
func readFiles(paths []string) (out []api.FileInput, err error) {
	for _, path := range paths {
		data, err := readFile(path)
		if err != nil {
			return nil, err
		}
		out = append(out, api.FileInput{Name: filepath.Base(path), Data: data})
	}
	return out, nil
}

func readFile(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, plainPathError(path, err)
	}
	defer func() { _ = f.Close() }()
	data, err := io.ReadAll(io.LimitReader(f, api.MaxFileBytes+1))
	switch {
	case err != nil:
		return nil, plainPathError(path, err)
	case len(data) > api.MaxFileBytes:
		return nil, fmt.Errorf("%s has more than %d MiB; no file may", path, api.MaxFileBytes>>20)
	}
	return data, nil
}

// plainPathError names the path once, and what is wrong with it.
func plainPathError(path string, err error) error {
	if e := (*os.PathError)(nil); errors.As(err, &e) {
		err = e.Err
	}
	return fmt.Errorf("%s: %w", path, err)
}
