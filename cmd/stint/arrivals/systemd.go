package arrivals

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/coreos/go-systemd/v22/unit"
)

// Systemd reads the timers among the units in some folders, each with what it starts, as
// systemd.timer(5), systemd.service(5) and systemd.time(7) describe them; a unit of an earlier
// folder hides one of the same name in a later one. system says that they are the machine's, not
// those of a person's own manager.
//
// The error is that of a folder or file that can't be read.
func Systemd(system bool, here Here, folders ...fs.FS) ([]Job, error) {
	s := systemd{system: system, here: here, folders: folders}
	names, err := s.timers()
	if err != nil {
		return nil, err
	}
	var jobs []Job
	for _, name := range names {
		found, err := s.timer(name)
		if err != nil {
			return nil, err
		}
		jobs = append(jobs, found...)
	}
	NameThem(jobs, "")
	return jobs, nil
}

type systemd struct {
	system  bool
	here    Here
	folders []fs.FS
}

func (s systemd) timers() ([]string, error) {
	var names []string
	for _, folder := range s.folders {
		found, err := fs.Glob(folder, "*.timer")
		if err != nil {
			return nil, err
		}
		names = append(names, found...)
	}
	slices.Sort(names)
	return slices.Compact(names), nil
}

// settings are those of a unit and its drop-ins, in their order.
type settings []*unit.UnitOption

// read returns nil when there is no such unit.
func (s systemd) read(name string) (settings, error) {
	var out settings
	for _, folder := range s.folders {
		text, err := fs.ReadFile(folder, name)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		if out, err = unit.DeserializeOptions(strings.NewReader(string(text))); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		if out == nil {
			out = settings{}
		}
		break
	}
	if out == nil {
		return nil, nil
	}
	more := map[string]string{} // by name, of the first folder that has it
	for _, folder := range s.folders {
		found, err := fs.Glob(folder, name+".d/*.conf")
		if err != nil {
			return nil, err
		}
		for _, file := range found {
			text, err := fs.ReadFile(folder, file)
			if err != nil {
				return nil, err
			}
			if _, hidden := more[file]; !hidden {
				more[file] = string(text)
			}
		}
	}
	for _, file := range slices.Sorted(maps.Keys(more)) {
		extra, err := unit.DeserializeOptions(strings.NewReader(more[file]))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		out = append(out, extra...)
	}
	return out, nil
}

// all are the values of a setting that may be given more than once; an empty one takes back
// those before it.
func (u settings) all(section, name string) (out []string) {
	for _, o := range u {
		switch {
		case o.Section != section || o.Name != name:
		case o.Value == "":
			out = nil
		default:
			out = append(out, strings.ReplaceAll(o.Value, "\\\n", " ")) // a line that goes on
		}
	}
	return out
}

// last is the value of a setting that counts once.
func (u settings) last(section, name string) string {
	if all := u.all(section, name); len(all) > 0 {
		return all[len(all)-1]
	}
	return ""
}

func (u settings) yes(section, name string) bool {
	return slices.Contains([]string{"1", "yes", "y", "true", "t", "on"}, strings.ToLower(u.last(section, name)))
}

// timer makes a job of each of a timer's times.
func (s systemd) timer(name string) ([]Job, error) {
	j := Job{Source: name}
	t, err := s.read(name)
	if err != nil {
		return nil, err
	}
	base := strings.TrimSuffix(name, ".timer")
	if strings.HasSuffix(base, "@") {
		j.refuse("It is a template, which makes no timer before it is given an instance.")
		return []Job{j}, nil
	}
	starts := t.last("Timer", "Unit")
	if starts == "" {
		starts = base + ".service"
	}
	if path.Ext(starts) != ".service" {
		j.refuse("It starts %s, which is no service.", starts)
		return []Job{j}, nil
	}
	service, err := s.read(starts)
	if err != nil {
		return nil, err
	}
	if service == nil {
		j.refuse("The service that it starts, %s, isn't there.", starts)
		return []Job{j}, nil
	}
	j.Agent.Slug, j.Agent.CatchUp = base, "none"
	j.Agent.Name = limited(cmp.Or(service.last("Unit", "Description"), t.last("Unit", "Description")), 100)
	j.Agent.Description = "Imported from the timer " + name + "."
	s.service(&j, starts, service)
	if j.Refused != "" {
		return []Job{j}, nil
	}
	return s.times(j, t), nil
}

// times gives a copy of the job each time of its timer.
func (s systemd) times(j Job, t settings) []Job {
	if t.yes("Timer", "Persistent") {
		j.Agent.CatchUp = "latest"
	}
	if delay := t.last("Timer", "RandomizedDelaySec"); delay != "" {
		seconds, ok := span(delay)
		if !ok {
			j.refuse("RandomizedDelaySec=%s is no time span that is known here.", delay)
			return []Job{j}
		}
		j.Agent.Jitter = seconds
	}
	for _, name := range []string{"WakeSystem", "OnClockChange", "OnTimezoneChange"} {
		if t.yes("Timer", name) {
			j.note("%s has no effect here.", name)
		}
	}
	starts := slices.Concat(t.all("Timer", "OnBootSec"), t.all("Timer", "OnStartupSec"), t.all("Timer", "OnActiveSec"))
	every := slices.Concat(t.all("Timer", "OnUnitActiveSec"), t.all("Timer", "OnUnitInactiveSec"))
	var out []Job
	add := func(schedule, zone, refused string) {
		one := j
		one.Notes = slices.Clone(j.Notes)
		one.Agent.Schedule, one.Agent.TimeZone = schedule, zone
		if refused == "" {
			refused = unfit(schedule, zone, s.here)
		}
		if refused != "" {
			one.refuse("%s", refused)
		}
		out = append(out, one)
	}
	for _, at := range t.all("Timer", "OnCalendar") {
		schedule, zone, refused := calendar(at)
		add(schedule, cmp.Or(zone, s.here.Zone), refused)
	}
	for _, text := range every {
		seconds, ok := span(text)
		switch {
		case !ok:
			add("", "", fmt.Sprintf("%q is no time span that is known here.", text))
		case seconds < 60 || seconds%60 != 0:
			add("", "", fmt.Sprintf("It runs every %s; schedules here count whole minutes.", text))
		default:
			if len(starts) > 0 {
				j.note("It doesn't also run when the machine or its timer starts.")
			}
			add(fmt.Sprintf("@every %dm", seconds/60), s.here.Zone, "")
			out[len(out)-1].note("Counted from when the agent is resumed, however long a run takes.")
		}
	}
	if len(out) == 0 {
		j.refuse("It runs only when the machine or its timer starts, which is no time that a schedule names.")
		out = append(out, j)
	}
	return out
}

var spanPart = regexp.MustCompile(`^\s*(\d+)\s*([a-zA-Z]*)`)

// spanUnits are the seconds of systemd.time(7)'s units.
var spanUnits = map[string]int64{
	"": 1, "s": 1, "sec": 1, "second": 1, "seconds": 1, "m": 60, "min": 60, "minute": 60, "minutes": 60,
	"h": 3600, "hr": 3600, "hour": 3600, "hours": 3600, "d": 86400, "day": 86400, "days": 86400, "w": 604800, "week": 604800, "weeks": 604800,
}

// span reads a time span in seconds.
func span(text string) (seconds int64, ok bool) {
	rest := text
	for strings.TrimSpace(rest) != "" {
		m := spanPart.FindStringSubmatch(rest)
		if m == nil {
			return 0, false
		}
		n, err := strconv.ParseInt(m[1], 10, 32)
		of, known := spanUnits[m[2]]
		if err != nil || !known {
			return 0, false
		}
		seconds, rest, ok = seconds+n*of, rest[len(m[0]):], true
	}
	return seconds, ok
}
