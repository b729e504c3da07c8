package main

import "testing"

func TestMountType_IsThatOfTheDeepestMount(t *testing.T) {
	const mounts = `27 1 254:0 / / rw,relatime - ext4 /dev/vda rw
28 27 0:25 / /mnt/share rw shared:1 - virtiofs share rw
29 28 0:26 / /mnt/share/in\040side rw - fuse.sshfs host: rw
30 27 0:27 / /mnt/cover rw - tmpfs tmpfs rw
31 27 0:28 / /mnt/cover rw - ext4 /dev/vdb rw
`
	for path, want := range map[string]string{
		"/":                          "ext4",
		"/home/ada/.local/share":     "ext4",
		"/mnt/share":                 "virtiofs",
		"/mnt/shared":                "ext4",
		"/mnt/share/data":            "virtiofs",
		"/mnt/share/in side/stint":   "fuse.sshfs",
		"/mnt/cover/upper/directory": "ext4",
	} {
		if got := mountType(mounts, path); got != want {
			t.Errorf("mountType(%q) = %q, want %q", path, got, want)
		}
	}
}
