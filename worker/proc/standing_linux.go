package proc

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// Standing finds a process, other than this one, that uses a folder: as its working directory,
// as the place of its executable, or with something open in it. dir has its links resolved.
// Processes that this user may not look into are skipped. If there is no way to tell, it
// assumes that there is one.
func Standing(dir string) (who string, found bool) {
	table, err := wholeTable()
	if err != nil {
		return "a process that can't be seen", true
	}
	for _, e := range table {
		if e.dead || e.Pid == os.Getpid() {
			continue
		}
		at := filepath.Join("/proc", strconv.Itoa(e.Pid))
		links := []string{"cwd", "root", "exe"}
		if fds, err := os.ReadDir(filepath.Join(at, "fd")); err == nil {
			for _, fd := range fds {
				links = append(links, "fd/"+fd.Name())
			}
		}
		for _, link := range links {
			to, err := os.Readlink(filepath.Join(at, link))
			if err == nil && (to == dir || strings.HasPrefix(to, dir+"/")) {
				return fmt.Sprintf("%s (pid %d)", e.name, e.Pid), true
			}
		}
	}
	return "", false
}
