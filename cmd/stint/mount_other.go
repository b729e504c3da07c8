//go:build !linux

package main

import "golang.org/x/sys/unix"

// networkMount names the file system that path is on if its data are not on this machine, or
// is "".
func networkMount(path string) string {
	var st unix.Statfs_t
	if err := unix.Statfs(path, &st); err != nil || st.Flags&unix.MNT_LOCAL != 0 {
		return ""
	}
	return "a network file system"
}
