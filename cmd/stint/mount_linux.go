package main

import (
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// The file systems that are a network or a hypervisor away, by the magic number that statfs
// gives; see linux/magic.h and the systems' own sources.
var networkMagic = map[uint32]string{
	0x6969:     "NFS",
	0x517b:     "SMB",
	0xff534d42: "CIFS",
	0xfe534d42: "SMB2",
	0x564c:     "NCP",
	0x5346414f: "AFS",
	0x6b414653: "AFS",
	0x73757245: "Coda",
	0x01021997: "9p, a folder shared by a virtual machine's host",
	0x786f4256: "vboxsf, a folder shared by VirtualBox",
	0xbacbacbc: "vmhgfs, a folder shared by VMware",
	0x00c36400: "Ceph",
	0x0bd00bd0: "Lustre",
	0x47504653: "GPFS",
	0x01161970: "GFS2",
	0x7461636f: "OCFS2",
}

// fuseMagic is every file system served by a process; only its name says more.
const fuseMagic = 0x65735546

var networkFuse = map[string]string{
	"virtiofs":         "virtiofs, a folder shared by a virtual machine's host",
	"fuse.vmhgfs-fuse": "vmhgfs, a folder shared by VMware",
	"fuse.grpcfuse":    "grpcfuse, a folder shared by Docker Desktop",
	"fuse.osxfs":       "osxfs, a folder shared by Docker Desktop",
	"fuse.prl_fsd":     "prl_fs, a folder shared by Parallels",
	"fuse.sshfs":       "SSHFS",
	"fuse.rclone":      "rclone",
	"fuse.s3fs":        "S3",
	"fuse.gcsfuse":     "Cloud Storage",
	"fuse.glusterfs":   "GlusterFS",
	"fuse.ceph-fuse":   "Ceph",
}

// networkMount names the network file system that path is on, or is "".
func networkMount(path string) string {
	var st unix.Statfs_t
	if err := unix.Statfs(path, &st); err != nil {
		return ""
	}
	if uint32(st.Type) != fuseMagic {
		return networkMagic[uint32(st.Type)]
	}
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return ""
	}
	return networkFuse[mountType(string(mounts), path)]
}

// mountType is the type of the file system that path is on, by proc(5)'s mountinfo.
func mountType(mounts, path string) string {
	kind, longest := "", -1
	for line := range strings.Lines(mounts) {
		place, fs, ok := strings.Cut(line, " - ")
		fields, names := strings.Fields(place), strings.Fields(fs)
		if !ok || len(fields) < 5 || len(names) == 0 {
			continue
		}
		at := octal.Replace(fields[4])
		if len(at) < longest || !strings.HasPrefix(path+"/", strings.TrimSuffix(at, "/")+"/") {
			continue
		}
		kind, longest = names[0], len(at) // of two at one place the later covers the other
	}
	return kind
}

// octal undoes the escapes in mountinfo.
var octal = strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`)
