package main

import (
	"fmt"
	"os"
	"syscall"
)

// respawn replaces this process by a new one with the same arguments, of the program at the
// path that ours was started from, which may be newer. It returns only if that fails.
func respawn() error {
	self, err := os.Executable()
	if err == nil {
		_, err = os.Stat(self)
	}
	if err != nil { // it was moved away: continue with what is running
		if self, err = ourProgram(); err != nil {
			return fmt.Errorf("find our own program to start it again: %w", err)
		}
	}
	if err := syscall.Exec(self, os.Args, os.Environ()); err != nil {
		return fmt.Errorf("start %s again: %w", self, err)
	}
	return nil
}

// ourProgram is the very file that runs, even after another replaced it.
func ourProgram() (string, error) {
	const link = "/proc/self/exe"
	if _, err := os.Stat(link); err == nil {
		return link, nil
	}
	return os.Executable()
}
