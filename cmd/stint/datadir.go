package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/go-json-experiment/json"

	"stint/api"
	"stint/db"
	"stint/worker/places"
)

// dataDir is the folder in which a coordinator keeps everything it owns. Everything in it is
// private to the user who runs it: it holds a token, prompts and logs.
type dataDir string

func (d dataDir) database() string { return filepath.Join(string(d), "stint.db") }
func (d dataDir) token() string    { return filepath.Join(string(d), "owner.token") }
func (d dataDir) server() string   { return filepath.Join(string(d), "server.json") }
func (d dataDir) lock() string     { return filepath.Join(string(d), "stint.lock") }
func (d dataDir) worker() string   { return filepath.Join(string(d), "worker") }
func (d dataDir) demo() string     { return filepath.Join(string(d), "demo") }
func (d dataDir) backups() string  { return filepath.Join(string(d), "backups") }
func (d dataDir) folders() string  { return filepath.Join(string(d), "work") }

// dataDir is the folder that the flag, the environment or the default names, as
// an absolute path.
func (c *cli) dataDir() (dataDir, error) {
	name := c.flags.dataDir
	if name == "" {
		name = c.env("STINT_DATA_DIR")
	}
	if name == "" {
		name = places.Data()
	}
	abs, err := filepath.Abs(name)
	if err != nil {
		return "", usage("cannot use the data directory "+name, err.Error(), "stint up --data-dir DIR")
	}
	return dataDir(abs), nil
}

// prepare creates the folder if it is missing and refuses an unsuitable one: not a folder,
// somebody else's, not writable, or on a network file system, where neither locks nor fsync
// can be relied on (contract 13).
func (d dataDir) prepare(force bool) error {
	if err := os.MkdirAll(string(d), 0o700); err != nil {
		return d.unfit(reason(err))
	}
	if kind := networkMount(string(d)); kind != "" && !force {
		return d.unfit("it is on " + kind + ", where locks and durable writes can't be relied on; --force uses it all the same")
	}
	if err := d.private(); err != nil {
		return err
	}
	probe, err := os.CreateTemp(string(d), probePrefix+"*")
	if err != nil {
		return d.unfit("it is not writable: " + reason(err))
	}
	err = os.Remove(probe.Name())
	if errors.Is(err, fs.ErrNotExist) {
		err = nil // a coordinator that starts there removed it
	}
	return errors.Join(probe.Close(), err)
}

// probePrefix begins the name of the file that tests whether the folder can be written.
const probePrefix = ".writable-"

// tidy removes what killed starts left half-made. Only the holder of the lock may call it: no
// other process writes these files, except the probe, which nobody needs.
func (d dataDir) tidy() error {
	entries, err := os.ReadDir(string(d))
	if err != nil {
		return err
	}
	errs := []error{db.DropRestore(d.database())}
	for _, e := range entries {
		for _, prefix := range []string{probePrefix, filepath.Base(d.server()) + ".", filepath.Base(d.token()) + "."} {
			number, ok := strings.CutPrefix(e.Name(), prefix)
			if ok && number != "" && strings.Trim(number, "0123456789") == "" && e.Type().IsRegular() {
				errs = append(errs, os.Remove(filepath.Join(string(d), e.Name())))
			}
		}
	}
	return errors.Join(errs...)
}

// private removes the rights of group and others from the folder's mode. A folder with other
// things in it that others may read is not ours to close.
func (d dataDir) private() error {
	info, err := os.Stat(string(d))
	if err != nil {
		return d.unfit(reason(err))
	}
	if info.Mode().Perm()&0o077 == 0 {
		return nil
	}
	entries, err := os.ReadDir(string(d))
	if err != nil {
		return d.unfit(reason(err))
	}
	if _, err := os.Lstat(d.database()); err != nil && len(entries) > 0 {
		return d.unfit("it holds other things and other users may read it")
	}
	if err := os.Chmod(string(d), 0o700); err != nil {
		return d.unfit("it can't be made private: " + reason(err))
	}
	return nil
}

func (d dataDir) unfit(why string) error {
	return &problem{
		code: exitFailed, what: "cannot use the data directory " + string(d), why: why,
		next: "name another with --data-dir DIR or STINT_DATA_DIR",
	}
}

// readToken is the owner's bearer token, or "" where there is none.
func (d dataDir) readToken() (string, error) {
	text, err := os.ReadFile(d.token())
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("read the owner's token: %w", err)
	}
	return strings.TrimSpace(string(text)), nil
}

func (d dataDir) writeToken(token string) error {
	if err := writePrivate(d.token(), []byte(token+"\n")); err != nil {
		return fmt.Errorf("write the owner's token: %w", err)
	}
	return nil
}

// serverFile tells the command line where the folder's coordinator listens.
type serverFile struct {
	URL     string `json:"url"`
	PID     int    `json:"pid"`
	Version string `json:"version"`
}

// readServer is what the last coordinator wrote; ok is false if none did.
func (d dataDir) readServer() (f serverFile, ok bool) {
	text, err := os.ReadFile(d.server())
	if err != nil {
		return serverFile{}, false
	}
	if err := json.Unmarshal(text, &f); err != nil {
		return serverFile{}, false
	}
	return f, true
}

func (d dataDir) writeServer(f serverFile) error {
	text, err := json.Marshal(f)
	if err != nil {
		return fmt.Errorf("write %s: %w", d.server(), err)
	}
	if err := writePrivate(d.server(), append(text, '\n')); err != nil {
		return fmt.Errorf("write %s: %w", d.server(), err)
	}
	return nil
}

// writePrivate replaces a file with one that only its owner may read, whole or not at all, on
// disk when it returns.
func writePrivate(name string, content []byte) error {
	f, err := os.CreateTemp(filepath.Dir(name), filepath.Base(name)+".*") // made with mode 0600
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	err = errors.Join(err, f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), name)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	dir, err := os.Open(filepath.Dir(name))
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}

// reason is an error without the operation and path that the sentence around it already names.
func reason(err error) string {
	var path *fs.PathError
	if errors.As(err, &path) {
		return api.Plain(path.Err)
	}
	return api.Plain(err)
}
