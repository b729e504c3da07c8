package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	shellquote "github.com/kballard/go-shellquote"

	"stint/api"
	"stint/db"
	"stint/engine"
)

const (
	snapshotOld = 30 * 24 * time.Hour
	clockMargin = 2 * time.Minute
)

// examineFiles looks at what only the machine of the data directory can know.
func (c *cli) examineFiles(d dataDir) []api.Check {
	found := c.examineModes(d)
	if kind := networkMount(string(d)); kind != "" {
		found = append(found, api.Check{
			Name: api.CheckMount, Code: api.FoundNetworkMount, Detail: "The data directory is on " + kind + ", where locks and durable writes can't be relied on.",
			Mend: "stop Stint, move " + inShell(string(d)) + " to a disk of this machine, and name it with --data-dir",
		})
	} else {
		found = append(found, api.Fine(api.CheckMount, ""))
	}
	return slices.Concat(found, c.examineDisk(d), c.examineTimes(d), c.examineSnapshots(d))
}

// examineModes checks that the owner alone reads what is private.
func (c *cli) examineModes(d dataDir) (found []api.Check) {
	open := func(path string, code, what, mode string) {
		info, err := os.Stat(path)
		if err == nil && info.Mode().Perm()&0o077 != 0 {
			found = append(found, api.Check{
				Name: api.CheckFiles, Code: code, Detail: fmt.Sprintf("Other users of this machine may get at %s (mode %04o).", what, info.Mode().Perm()),
				Mend: "chmod " + mode + " " + inShell(path),
			})
		}
	}
	open(string(d), api.FoundDirectoryOpen, "the data directory", "700")
	for _, suffix := range []string{"", "-wal", "-shm"} {
		open(d.database()+suffix, api.FoundDatabaseOpen, "the database", "600")
	}
	open(d.token(), api.FoundTokenOpen, "the owner's token", "600")
	_, noDatabase := os.Stat(d.database())
	if _, err := os.Stat(d.token()); errors.Is(err, fs.ErrNotExist) && noDatabase == nil {
		found = append(found, api.Check{
			Name: api.CheckFiles, Code: api.FoundTokenMissing, Detail: "The owner's token is missing, by which this command line signs in.",
			Mend: "end the server if one runs, and start it again, which makes one: stint up",
		})
	}
	if len(found) == 0 {
		found = append(found, api.Fine(api.CheckFiles, ""))
	}
	return found
}

func (c *cli) examineDisk(d dataDir) []api.Check {
	free, err := c.freeBytes(string(d))
	if err != nil {
		return []api.Check{api.Fine(api.CheckDisk, "how much is free isn't known: "+reason(err))}
	}
	if check := engine.DiskFound(free, inShell(string(d))); check != nil {
		return []api.Check{*check}
	}
	return []api.Check{api.Fine(api.CheckDisk, sizeText(free)+" are free")}
}

// examineTimes compares the clock with the times of the files.
func (c *cli) examineTimes(d dataDir) []api.Check {
	for _, path := range []string{d.database(), d.database() + "-wal", d.token(), d.lock()} {
		info, err := os.Stat(path)
		if err != nil {
			continue
		}
		if ahead := info.ModTime().Sub(c.now()); ahead > clockMargin {
			return []api.Check{{
				Name: api.CheckClock, Code: api.FoundClockBehind, Detail: fmt.Sprintf("%s is from %s in the future: the clock is wrong now, or was then.", filepath.Base(path), ahead.Round(time.Second)),
				Mend: "set the clock and keep it right: timedatectl set-ntp true",
			}}
		}
	}
	return nil
}

func (c *cli) examineSnapshots(d dataDir) []api.Check {
	kept, err := db.Snapshots(d.database())
	if err != nil {
		return []api.Check{api.Fine(api.CheckSnapshots, "they can't be looked at: "+reason(err))}
	}
	var found []api.Check
	var all int64
	for _, k := range kept {
		if all += k.Bytes; c.now().Sub(k.At) > snapshotOld {
			found = append(found, api.Check{
				Name: api.CheckSnapshots, Code: api.FoundSnapshotOld, Detail: fmt.Sprintf("%s, from before an upgrade on %s, takes %s.", k.Name, k.At.UTC().Format(time.DateOnly), sizeText(k.Bytes)),
				Mend: "once you are content with the newer stint: rm " + inShell(filepath.Join(string(d), k.Name)),
			})
		}
	}
	if len(found) == 0 {
		found = append(found, api.Fine(api.CheckSnapshots, fmt.Sprintf("%d are kept, of %s", len(kept), sizeText(all))))
	}
	return found
}

// inShell is a path as a shell takes it.
func inShell(path string) string { return shellquote.Join(path) }

// sizeText is a number of bytes for people.
func sizeText(n int64) string {
	if n < 1<<30 {
		return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20))
	}
	return fmt.Sprintf("%.1f GiB", float64(n)/(1<<30))
}
