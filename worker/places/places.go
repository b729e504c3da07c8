// Package places knows where everything lies that Stint keeps for one user of this machine:
// the data directories of coordinators, the state directories of workers, the settings and the
// sign-ins. It alone decides what of that is hidden from agents, however a worker was started.
//
// It must not know what is in the files, and reads none. contract 10.11
package places

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"

	"github.com/adrg/xdg"
)

// Data is where a coordinator keeps its data by default.
func Data() string { return filepath.Join(xdg.DataHome, "stint") }

// State is where the user's sign-ins and, by default, the worker's state are.
func State() string { return filepath.Join(xdg.StateHome, "stint") }

// Config is where the owner's settings are.
func Config() string { return filepath.Join(xdg.ConfigHome, "stint") }

// Book is a folder that notes where Stint's files lie in unusual places, one symbolic link for
// each: the directories of processes that this user has started, at any time, with explicit
// paths, and files with their secrets.
type Book string

// Books are those in which a process makes notes. It reads all of them. The first is its own,
// which must work.
type Books []Book

// Own are the user's books, which all processes of Stint's share: beside the sign-ins, and
// where those lie by default. Two processes whose environments name different folders find
// each other's by the second.
func Own() Books {
	own, usual := Book(filepath.Join(State(), "places")), Book(filepath.Join(byDefault()[1], "places"))
	if own == usual {
		return Books{own}
	}
	return Books{own, usual}
}

// byDefault are the places that Data, State and Config name when no variables override them.
func byDefault() []string {
	names := []string{".local/share", ".local/state", ".config"}
	if runtime.GOOS == "darwin" {
		names = []string{"Library/Application Support", "Library/Application Support", "Library/Application Support"}
	}
	for i, name := range names {
		names[i] = filepath.Join(xdg.Home, name, "stint")
	}
	return names
}

// Note notes a directory or a file. It must exist. A file that is a link is noted as such:
// where it leads may change.
func (b Books) Note(path string) error {
	for i, book := range b {
		if err := book.note(path); err != nil && i == 0 {
			return fmt.Errorf("note where Stint's files are: %w", err)
		} // where this process can't write, another of the same user can't either
	}
	return nil
}

// NoteUsual notes the usual places of this process, which other processes may not share.
func (b Books) NoteUsual() error {
	for _, dir := range []string{Data(), State(), Config()} {
		if err := b.Note(dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

func (b Book) note(path string) error {
	path, err := filepath.Abs(path)
	if err != nil {
		return err
	}
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	if real := ""; info.IsDir() {
		path, err = filepath.EvalSymlinks(path)
	} else if real, err = filepath.EvalSymlinks(filepath.Dir(path)); err == nil {
		path = filepath.Join(real, filepath.Base(path))
	}
	if err == nil {
		err = os.MkdirAll(string(b), 0o700)
	}
	if err == nil {
		sum := sha256.Sum256([]byte(path))
		err = os.Symlink(path, filepath.Join(string(b), hex.EncodeToString(sum[:8])))
	}
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	return err
}

// All are the paths that no agent may read: what the books have, the usual places, and what
// links in them lead to. Not all of them exist. The error is about a book that can't be read.
func (b Books) All() ([]string, error) {
	out := slices.Concat([]string{Data(), State(), Config()}, byDefault())
	for i, book := range b {
		noted, err := book.noted()
		if unread := errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.ENOTDIR); err != nil && (i == 0 || !unread) {
			return nil, fmt.Errorf("read where Stint's files are: %w", err)
		}
		out = append(out, noted...)
	}
	slices.Sort(out)
	return WithTargets(slices.Compact(out)), nil
}

func (b Book) noted() (out []string, err error) {
	entries, err := os.ReadDir(string(b))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	for _, e := range entries {
		link := filepath.Join(string(b), e.Name())
		path, err := os.Readlink(link)
		if err != nil {
			continue // not a link: not ours
		}
		if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
			_ = os.Remove(link) // gone for good, or noted again when it is back
			continue
		}
		out = append(out, path)
	}
	return out, nil
}

// Make creates the usual places, so that what is put there later is hidden from agents that
// are already running.
func Make() error {
	for _, dir := range []string{Data(), State(), Config()} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return fmt.Errorf("make a folder for Stint's files: %w", err)
		}
	}
	return nil
}

// linkDepth is how deep below a directory of Stint's links are followed: as deep as Stint puts
// things itself. Below that agents work.
const linkDepth = 2

// WithTargets are directories of Stint's and what links in them lead to: a database, a token
// or settings that somebody has moved elsewhere. What a database writes beside itself is
// included.
func WithTargets(dirs []string) []string {
	out := slices.Clone(dirs)
	var follow func(dir string, depth int)
	follow = func(dir string, depth int) {
		entries, err := os.ReadDir(dir)
		if err != nil || depth > linkDepth {
			return
		}
		for _, e := range entries {
			path := filepath.Join(dir, e.Name())
			if e.IsDir() && e.Name() != "places" {
				follow(path, depth+1)
			}
			if e.Type()&fs.ModeSymlink == 0 {
				continue
			}
			target, err := filepath.EvalSymlinks(path)
			if err != nil {
				continue
			}
			out = append(out, target)
			if strings.HasSuffix(e.Name(), ".db") {
				out = append(out, target+"-wal", target+"-shm", target+"-journal")
			}
		}
	}
	for _, dir := range dirs {
		follow(dir, 1)
	}
	return out
}
