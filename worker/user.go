package worker

import (
	"os"
	"os/user"
	"strconv"
)

// systemUser names the user of this machine as whom commands run.
func systemUser() string {
	if u, err := user.Current(); err == nil && u.Username != "" {
		return u.Username
	}
	return strconv.Itoa(os.Getuid()) // no entry in the user table, as in some containers
}
