package agent

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// Prepare writes the files and makes the links that the command wants in the adapter's folder,
// which it also creates. What is there and right stays untouched, so that it can be called
// while another conversation uses the folder.
func (c Command) Prepare(stateDir string) error {
	if len(c.Files) == 0 && len(c.Links) == 0 {
		return nil
	}
	if err := os.MkdirAll(stateDir, 0o700); err != nil {
		return fmt.Errorf("make the adapter's folder: %w", err)
	}
	root, err := os.OpenRoot(stateDir)
	if err != nil {
		return fmt.Errorf("open the adapter's folder: %w", err)
	}
	defer root.Close()
	for name, content := range c.Files {
		if old, err := root.ReadFile(name); err == nil && string(old) == content {
			continue
		}
		err := place(root, name, func(temporary string) error { return root.WriteFile(temporary, []byte(content), 0o600) })
		if err != nil {
			return err
		}
	}
	for name, target := range c.Links {
		if old, err := root.Readlink(name); err == nil && old == target {
			continue
		}
		if err := place(root, name, func(temporary string) error { return root.Symlink(target, temporary) }); err != nil {
			return err
		}
	}
	return nil
}

// place first makes something under another name, so that its own name never stands for half
// of it.
func place(root *os.Root, name string, create func(string) error) error {
	if dir := filepath.Dir(name); dir != "." {
		if err := root.MkdirAll(dir, 0o700); err != nil {
			return fmt.Errorf("make the folder of %s: %w", name, err)
		}
	}
	temporary := name + "." + NewID()[:8]
	if err := create(temporary); err != nil {
		return fmt.Errorf("write %s for the agent: %w", name, err)
	}
	if err := root.Rename(temporary, name); err != nil {
		gone := root.Remove(temporary)
		if errors.Is(gone, fs.ErrNotExist) {
			gone = nil
		}
		return errors.Join(fmt.Errorf("write %s for the agent: %w", name, err), gone)
	}
	return nil
}
