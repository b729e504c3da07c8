package scheduler

import (
	"archive/zip"
	"bytes"
	_ "embed"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"
)

// The rule for zone names (contract 3.1): a zone is a name in the database compiled in here,
// letter for letter, including old names such as US/Eastern, EST and Etc/GMT+5. Nothing else
// is a zone: not "Local", not the empty string, not a path, not "Factory", the database's word
// for an unset clock.
//
// The standard library's own lookup can't guarantee that: it asks ZONEINFO and the machine's
// files first, so a zone could exist, or change its clocks, on one machine and not on the
// next. The database is the toolchain's own, unchanged.
//go:generate sh -c "cp \"$(go env GOROOT)/lib/time/zoneinfo.zip\" zoneinfo.zip"

//go:embed zoneinfo.zip
var zoneDatabase []byte

// zones is the table of zone names; each zone is read once, when first used.
var zones = sync.OnceValue(func() map[string]func() (*time.Location, error) {
	archive, err := openZones()
	if err != nil {
		panic(fmt.Sprintf("scheduler: the compiled-in zone database is damaged: %v", err))
	}
	table := make(map[string]func() (*time.Location, error), len(archive.File))
	for _, file := range archive.File {
		name := file.Name
		if file.FileInfo().IsDir() || name == "Factory" {
			continue
		}
		table[name] = sync.OnceValues(func() (*time.Location, error) {
			data, err := fs.ReadFile(archive, name)
			if err != nil {
				return nil, fmt.Errorf("read zone %s: %w", name, err)
			}
			return time.LoadLocationFromTZData(name, data)
		})
	}
	table["UTC"] = func() (*time.Location, error) { return time.UTC, nil }
	return table
})

func openZones() (*zip.Reader, error) {
	return zip.NewReader(bytes.NewReader(zoneDatabase), int64(len(zoneDatabase)))
}

// maxZone bounds a zone name; the longest in the database has 32 letters.
const maxZone = 64

// Zones lists every zone name that Parse accepts, sorted.
func Zones() []string {
	return slices.Sorted(maps.Keys(zones()))
}

// loadZone finds a zone by its exact name.
func loadZone(name string) (*time.Location, error) {
	load, ok := zones()[name]
	if !ok {
		return nil, &Error{Field: "timeZone", Reason: whyNoZone(name)}
	}
	return load()
}

// whyNoZone says what is wrong with a zone name, and what to write instead.
func whyNoZone(name string) string {
	switch {
	case name == "":
		return "A time zone is missing: write a zone name such as UTC or Europe/Berlin."
	case len(name) > maxZone:
		return fmt.Sprintf("A time zone name has at most %d characters and this one has %d: write a zone name such as UTC or Europe/Berlin.", maxZone, len(name))
	case strings.EqualFold(name, "local"):
		return fmt.Sprintf("%q would mean the clock of whichever machine reads it: write the zone's name, such as UTC or Europe/Berlin.", name)
	}
	for known := range zones() {
		if strings.EqualFold(known, strings.TrimSpace(name)) {
			return fmt.Sprintf("%q is not a zone name to the letter: write %s.", name, known)
		}
	}
	return fmt.Sprintf("%q is not a time zone: write a name from the zone database such as UTC, Europe/Berlin or America/New_York.", name)
}
