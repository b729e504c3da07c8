package scheduler

import (
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestZone_NamesAreExact(t *testing.T) {
	now := at("2026-01-01T00:00:00Z")
	for _, zone := range []string{
		"UTC", "Europe/Berlin", "America/New_York", "America/Argentina/Buenos_Aires", "Australia/Lord_Howe",
		"Asia/Calcutta", "US/Eastern", "EST", "EST5EDT", "Etc/GMT+5", "Etc/UTC", "GB",
	} {
		s, err := Parse("0 9 * * *", zone, now)
		if err != nil {
			t.Errorf("%q: %v", zone, err)
			continue
		}
		if got := s.Zone().String(); got != zone {
			t.Errorf("%q reads as zone %q", zone, got)
		}
	}
	for zone, reason := range map[string]string{
		"":                       "missing",
		"Local":                  "whichever machine",
		"local":                  "whichever machine",
		"utc":                    "write UTC.",
		"Europe/london":          "write Europe/London.",
		"EUROPE/BERLIN":          "write Europe/Berlin.",
		"Europe/Berlin ":         "write Europe/Berlin.",
		"Factory":                "not a time zone",
		"../../etc/passwd":       "not a time zone",
		"/usr/share/zoneinfo/GB": "not a time zone",
		"Europe":                 "not a time zone",
		"Europe/":                "not a time zone",
		"Mars/Base":              "not a time zone",
		"+05:30":                 "not a time zone",
		"UTC+1":                  "not a time zone",
		"CEST":                   "not a time zone",
		"\x00":                   "not a time zone",
		"\xff\xfe":               "not a time zone",
		strings.Repeat("A", 1e6): "at most 64 characters",
	} {
		s, err := Parse("0 9 * * *", zone, now)
		if err == nil {
			t.Errorf("%.40q was taken as %q", zone, s.Zone())
			continue
		}
		checkError(t, err, "timeZone", reason)
	}
}

// The child process gets a machine whose zone files and settings are all wrong.
func TestZone_DoesNotDependOnTheMachine(t *testing.T) {
	const marker = "STINT_TEST_LYING_ZONES"
	if os.Getenv(marker) != "" {
		summer := at("2026-07-01T00:00:00Z")
		lying, err := time.LoadLocation("Europe/Berlin")
		if err != nil {
			t.Fatal(err)
		}
		s := must(t, "0 9 * * *", "Europe/Berlin")
		_, invented := Parse("0 9 * * *", "Mars/Base", summer)
		fmt.Printf("library %s, ours %s, invented zone refused: %t\n",
			summer.In(lying).Format("-07:00"), s.Next(summer, summer).Format("-07:00"), invented != nil)
		return
	}
	tokyo := zoneFile(t, "Asia/Tokyo")
	dir := t.TempDir()
	for _, name := range []string{"Europe/Berlin", "Mars/Base"} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, tokyo, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	child := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$")
	child.Env = append(os.Environ(), marker+"=1", "ZONEINFO="+dir, "TZ=Asia/Tokyo")
	out, err := child.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if want := "library +09:00, ours +02:00, invented zone refused: true\n"; !strings.HasPrefix(string(out), want) {
		t.Errorf("got %q, want %q", out, want)
	}
}

// zoneFile is one zone's data from the compiled-in database.
func zoneFile(t *testing.T, name string) []byte {
	t.Helper()
	archive, err := openZones()
	if err != nil {
		t.Fatal(err)
	}
	data, err := fs.ReadFile(archive, name)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func TestZones_ListsEveryZoneAndAllOfThemLoad(t *testing.T) {
	names := Zones()
	if len(names) < 590 || !slices.IsSorted(names) {
		t.Fatalf("got %d names, sorted %t", len(names), slices.IsSorted(names))
	}
	for _, name := range names {
		if len(name) > maxZone {
			t.Errorf("%s is longer than %d", name, maxZone)
		}
		if _, err := loadZone(name); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// The rules of clock.go assume spans that touch and have one offset each, which the library
// doesn't quite provide.
func TestSpanAt_SpansTouchAndHaveOneOffset(t *testing.T) {
	begin, end := at("1850-01-01T00:00:00Z").Unix(), at("2120-01-01T00:00:00Z").Unix()
	for _, name := range Zones() {
		loc, err := loadZone(name)
		if err != nil {
			t.Fatal(err)
		}
		for u := begin; u < end; {
			here := spanAt(loc, u)
			if here.from > u || here.end <= u {
				t.Fatalf("%s: the span at %d is %+v", name, u, here)
			}
			if u > begin && here.from > u {
				t.Fatalf("%s: a hole before %+v", name, here)
			}
			last := min(here.end, end) - 1
			for _, probe := range []int64{u, u + (last-u)/4, u + (last-u)/2, u + (last-u)/4*3, last} {
				if _, offset := time.Unix(probe, 0).In(loc).Zone(); int64(offset) != here.offset {
					t.Fatalf("%s: at %d the offset is %d, in span %+v", name, probe, offset, here)
				}
			}
			u = last + 1
		}
	}
}
