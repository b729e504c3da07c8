package setup

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/pelletier/go-toml/v2"

	"stint/api"
	"stint/worker/places"
)

// Files is the folder that the owner's files are in: agents/SLUG.toml with the
// settings, accepted/SLUG.toml with what was accepted.
type Files string

// ErrExposed says that somebody other than the owner could have written a file.
var ErrExposed = errors.New("others can write it")

// Find is the folder for a worker with a state directory: its own if there is one inside, else
// the user's, which all workers of the user share.
func Find(stateDir string) Files {
	own := filepath.Join(stateDir, "setup")
	if info, err := os.Stat(own); stateDir != "" && err == nil && info.IsDir() {
		return Files(own)
	}
	return Files(places.Config())
}

func (f Files) path(kind, slug string) (string, error) {
	if !api.SlugForm.MatchString(slug) {
		return "", fmt.Errorf("%q is not the slug of an agent", slug)
	}
	return filepath.Join(string(f), kind, slug+".toml"), nil
}

// Path is where an agent's settings are, whether or not there are any.
func (f Files) Path(slug string) string { return filepath.Join(string(f), "agents", slug+".toml") }

// Slugs lists the agents that have settings, sorted.
func (f Files) Slugs() ([]string, error) { return f.slugs("agents") }

// slugs lists the agents that have a file of a kind.
func (f Files) slugs(kind string) ([]string, error) {
	entries, err := os.ReadDir(filepath.Join(string(f), kind))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("list the files in %s: %w", kind, err)
	}
	found := map[string]bool{}
	for _, e := range entries {
		if slug, ok := strings.CutSuffix(e.Name(), ".toml"); ok && api.SlugForm.MatchString(slug) {
			found[slug] = true
		}
	}
	return slices.Sorted(maps.Keys(found)), nil
}

// Agent reads an agent's settings; without a file they are the zero value and found is false.
// Everything in the file must be known and valid, and only the owner or root may be able to
// write it; the error names the field or the path.
func (f Files) Agent(slug string) (a Agent, found bool, err error) {
	path, err := f.path("agents", slug)
	if err != nil {
		return Agent{}, false, err
	}
	if found, err = decode(path, &a); err != nil || !found {
		return Agent{}, found, err
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return Agent{}, true, err
	}
	if a, err = a.complete(home); err != nil {
		return Agent{}, true, fmt.Errorf("%s: %w", path, err)
	}
	return a, true, nil
}

// Save writes an agent's settings, checked, whole or not at all. It replaces the existing
// ones, including any comments in them.
func (f Files) Save(slug string, a Agent) error {
	path, err := f.path("agents", slug)
	if err != nil {
		return err
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return err
	}
	if a, err = a.complete(home); err != nil {
		return err
	}
	return encode(path, "Settings of the agent "+slug+" for the workers of this user: see docs/workers.md.", a)
}

// decode reads a TOML file into v and refuses what v doesn't know.
func decode(path string, v any) (found bool, err error) {
	content, err := read(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return true, err
	}
	d := toml.NewDecoder(bytes.NewReader(content)).DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
		return true, fmt.Errorf("%s: %w", path, named(err))
	}
	return true, nil
}

// named puts the field and the line before what the decoder says.
func named(err error) error {
	var unknown *toml.StrictMissingError
	if errors.As(err, &unknown) {
		var all []error
		for i := range unknown.Errors {
			row, _ := unknown.Errors[i].Position()
			all = append(all, fmt.Errorf("%s: no setting of this name is known (line %d)", strings.Join(unknown.Errors[i].Key(), "."), row))
		}
		return errors.Join(all...)
	}
	var wrong *toml.DecodeError
	if errors.As(err, &wrong) {
		row, _ := wrong.Position()
		text := strings.TrimPrefix(wrong.Error(), "toml: ")
		if key := strings.Join(wrong.Key(), "."); key != "" {
			text = key + ": " + text
		}
		return fmt.Errorf("%s (line %d)", text, row)
	}
	return err
}

const longestFile = 1 << 20

// read reads a file that only the owner or root can write, which includes its folder.
func read(path string) ([]byte, error) {
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return nil, err
	}
	for _, at := range []string{filepath.Dir(path), filepath.Dir(real), real} {
		info, err := os.Stat(at)
		if err != nil {
			return nil, err
		}
		if err := private(at, info); err != nil {
			return nil, err
		}
		if at == real && (!info.Mode().IsRegular() || info.Size() > longestFile) {
			return nil, fmt.Errorf("%s is not a file of at most %d KiB", path, longestFile>>10)
		}
	}
	return os.ReadFile(real)
}

func private(path string, info fs.FileInfo) error {
	owner := os.Getuid()
	if s, ok := info.Sys().(*syscall.Stat_t); ok {
		owner = int(s.Uid)
	}
	if owner != os.Getuid() && owner != 0 {
		return fmt.Errorf("%s: %w: it belongs to another user", path, ErrExposed)
	}
	if info.Mode().Perm()&0o022 != 0 {
		return fmt.Errorf("%s: %w: its mode is %#o; run chmod go-w on it", path, ErrExposed, info.Mode().Perm())
	}
	return nil
}

// encode replaces a file by v, mode 0600, on disk when it returns.
func encode(path, comment string, v any) error {
	var b bytes.Buffer
	fmt.Fprintf(&b, "# %s\n\n", comment)
	if err := toml.NewEncoder(&b).SetIndentTables(false).Encode(v); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	if err := replace(path, b.Bytes()); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return nil
}

func replace(path string, content []byte) error {
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	t, err := os.CreateTemp(dir, ".new-*") // made with mode 0600
	if err != nil {
		return err
	}
	_, err = t.Write(content)
	if err = errors.Join(err, t.Sync(), t.Close()); err == nil {
		err = os.Rename(t.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(t.Name()))
	}
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// lock keeps other processes of this user from changing files of a kind, until free is called.
func (f Files) lock(kind string) (free func(), err error) {
	dir := filepath.Join(string(f), kind)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	d, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	for {
		err = syscall.Flock(int(d.Fd()), syscall.LOCK_EX) // held for as long as a file takes to be replaced
		if err == nil {
			return func() { _ = d.Close() }, nil
		}
		if !errors.Is(err, syscall.EINTR) {
			return nil, errors.Join(fmt.Errorf("lock %s: %w", dir, err), d.Close())
		}
	}
}
