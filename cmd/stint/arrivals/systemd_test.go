package arrivals

import (
	"cmp"
	"io/fs"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"stint/scheduler"
)

// events are calendar events: what each is here, or why it is refused.
var events = []struct{ at, schedule, refused string }{
	{"hourly", "0 * * * *", ""},
	{"daily", "0 0 * * *", ""},
	{"weekly", "0 0 * * 1", ""},
	{"monthly", "0 0 1 * *", ""},
	{"quarterly", "0 0 1 1,4,7,10 *", ""},
	{"semiannually", "0 0 1 1,7 *", ""},
	{"yearly", "0 0 1 1 *", ""},
	{"minutely", "* * * * *", ""},
	{"*-*-* 04:00:00", "0 4 * * *", ""},
	{"04:00", "0 4 * * *", ""},
	{"*-*-* 6,18:00", "0 6,18 * * *", ""},
	{"Mon..Fri 09:00", "0 9 * * 1,2,3,4,5", ""},
	{"Sat,Sun 10:30", "30 10 * * 6,7", ""},
	{"Fri..Sun 7:05", "5 7 * * 5,6,7", ""},
	{"Fri..Mon 7:05", "", "no time that is known"},
	{"Mon,Wed..Thu *-*-* 08:15:00", "15 8 * * 1,3,4", ""},
	{"monday", "0 0 * * 1", ""},
	{"*:0/15", "0/15 * * * *", ""},
	{"*:5/20:00", "5/20 * * * *", ""},
	{"9..17:30", "30 9-17 * * *", ""},
	{"8..20/4:00", "0 8-20/4 * * *", ""},
	{"*-*-01 03:00", "0 3 1 * *", ""},
	{"*-01,07-15 12:00", "0 12 15 1,7 *", ""},
	{"*-1..3-* 00:10", "10 0 * 1-3 *", ""},
	{"*-*-1/7 01:00", "0 1 1/7 * *", ""},
	{"12-24 18:00", "0 18 24 12 *", ""},
	{"*-*-* *:00", "0 * * * *", ""},
	{"*-*-* 03:30 Europe/Berlin", "30 3 * * *", ""},
	{"Mon *-*-* 00:00 UTC", "0 0 * * 1", ""},
	{"Mon *-*-1..7 09:00", "", "both"},
	{"*-*~1 09:00", "", "end of the month"},
	{"2026-12-24 18:00", "", "year"},
	{"*:*:0/10", "", "seconds"},
	{"*-*-* 03:00:30", "", "seconds"},
	{"soon", "", "no time that is known"},
	{"", "", "no time"},
}

// Each calendar event fires here when systemd says that it does.
func TestCalendar_FiresWhenSystemdDoes(t *testing.T) {
	analyze, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Fatal("there is no systemd-analyze here; tools/ensure-helpers installs it")
	}
	for _, c := range events {
		schedule, zone, refused := calendar(c.at)
		if schedule != c.schedule || (refused == "") != (c.refused == "") || !strings.Contains(refused, c.refused) {
			t.Errorf("%q is %q, refused by %q; want %q, %q", c.at, schedule, refused, c.schedule, c.refused)
		}
		if c.schedule == "" {
			continue
		}
		s, err := scheduler.Parse(schedule, cmp.Or(zone, "UTC"), here.Now)
		if err != nil {
			t.Errorf("%q: %v", c.at, err)
			continue
		}
		const times = "5"
		cmd := exec.CommandContext(t.Context(), analyze, "calendar", "--iterations="+times, "--base-time="+here.Now.Format("2006-01-02 15:04:05 UTC"), c.at)
		cmd.Env = []string{"TZ=UTC", "LC_ALL=C"}
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Errorf("systemd-analyze calendar %q: %v, %s", c.at, err, out)
			continue
		}
		var want, got []string
		for line := range strings.Lines(string(out)) {
			label, at, _ := strings.Cut(strings.TrimSpace(line), ": ")
			// In another zone the same instant follows once more, in UTC.
			if at = strings.TrimSpace(at); label == "(in UTC)" {
				want = want[:len(want)-1]
			} else if label != "Next elapse" && !strings.HasPrefix(label, "Iter. #") {
				continue
			}
			want = append(want, at)
		}
		for from := here.Now; len(got) < len(want); {
			from = s.Next(here.Now, from)
			got = append(got, from.UTC().Format("Mon 2006-01-02 15:04:05 UTC"))
		}
		if len(want) != 5 || !slices.Equal(got, want) {
			t.Errorf("%q fires here at\n%q, by systemd at\n%q", c.at, got, want)
		}
	}
}

func units(pairs ...string) fs.FS {
	out := fstest.MapFS{}
	for i := 0; i < len(pairs); i += 2 {
		out[pairs[i]] = &fstest.MapFile{Data: []byte(pairs[i+1])}
	}
	return out
}

func systemdJobs(t *testing.T, folders ...fs.FS) []Job {
	t.Helper()
	jobs, err := Systemd(false, here, folders...)
	if err != nil {
		t.Fatal(err)
	}
	return jobs
}

// service is what a timer with the given service would be.
func service(t *testing.T, text string) Job {
	t.Helper()
	jobs := systemdJobs(t, units("x.timer", "[Timer]\nOnCalendar=daily\n", "x.service", text))
	if len(jobs) != 1 {
		t.Fatalf("%d jobs", len(jobs))
	}
	return jobs[0]
}

func TestSystemd_AServiceIsTheCommand(t *testing.T) {
	for text, want := range map[string][]string{
		"[Service]\nType=oneshot\nExecStart=/usr/bin/backup --all \"two words\" 'a b'\n":                   {"/usr/bin/backup", "--all", "two words", "a b"},
		"[Service]\nExecStart=%h/bin/job --name=%N --percent=5%%\n":                                        {"/home/ann/bin/job", "--name=x", "--percent=5%"},
		"[Service]\nEnvironment=A=1 \"B=two words\"\nEnvironment=A=3\nExecStart=/bin/echo ${B} $A $HOME\n": {"/usr/bin/env", "B=two words", "A=3", "/bin/echo", "two words", "3", "/home/ann"},
		"[Service]\nExecStartPre=/bin/mkdir -p d\nExecStart=-/bin/false\nExecStart=/bin/echo 'a b'\n":      {"/bin/sh", "-ec", "/bin/mkdir -p d\n/bin/false || true\n/bin/echo 'a b'"},
		"[Service]\nExecStart=/bin/old\nExecStart=\nExecStart=/bin/new\n":                                  {"/bin/new"},
		"[Service]\nExecStart=/bin/long \\\n  --flag\n":                                                    {"/bin/long", "--flag"},
		"[Service]\nExecStart=/bin/echo $$HOME\n":                                                          {"/bin/echo", "$HOME"},
	} {
		if j := service(t, text); !slices.Equal(j.Agent.Command, want) {
			t.Errorf("%q runs %q (%s), want %q", text, j.Agent.Command, j.Refused, want)
		}
	}
	j := service(t, "[Unit]\nDescription=Nightly\nOnFailure=mail@%n.service\n[Service]\nWorkingDirectory=%h/src\nRuntimeMaxSec=1h 30min\nNice=10\nPrivateTmp=yes\nExecStart=/bin/true\n")
	a := j.Agent
	if a.WorkFolder != "/home/ann/src" || a.Timeout != 5400 || a.Name != "Nightly" || a.Slug != "job-x" || a.Schedule != "0 0 * * *" || a.TimeZone != "UTC" || a.CatchUp != "none" {
		t.Errorf("%+v", a)
	}
	if notes := strings.Join(j.Notes, "\n"); !strings.Contains(notes, "Nice, PrivateTmp") || !strings.Contains(notes, "OnFailure") {
		t.Errorf("notes %q", notes)
	}
}

func TestSystemd_WhatCannotComeIsRefused(t *testing.T) {
	for text, reason := range map[string]string{
		"[Service]\nType=forking\nExecStart=/bin/d\n":                  "forking",
		"[Service]\nUser=bob\nExecStart=/bin/d\n":                      "runs as bob",
		"[Service]\nEnvironmentFile=/etc/x\nExecStart=/bin/d\n":        "EnvironmentFile",
		"[Unit]\nConditionACPower=true\n[Service]\nExecStart=/bin/d\n": "ConditionACPower",
		"[Service]\nExecCondition=/bin/test -e x\nExecStart=/bin/d\n":  "ExecCondition",
		"[Service]\nExecStart=+/bin/d\n":                               "other rights",
		"[Service]\nExecStart=@/bin/d other\n":                         "another name",
		"[Service]\nExecStart=/bin/echo a\\x20b\n":                     "backslash",
		"[Service]\nExecStart=/bin/echo $SECRET\n":                     "$SECRET",
		"[Service]\nExecStart=/bin/echo %H\n":                          "%H",
		"[Service]\nExecStart=/bin/a ; /bin/b\n":                       "several commands",
		"[Service]\nExecStart=/bin/echo 'open\n":                       "can't be read",
		"[Service]\nType=oneshot\n":                                    "no command",
		"[Service]\nRuntimeMaxSec=1 fortnight\nExecStart=/bin/d\n":     "time span",
		"[Service]\nLoadCredential=key:/etc/key\nExecStart=/bin/d\n":   "LoadCredential",
		"[Service]\nDynamicUser=yes\nExecStart=/bin/d\n":               "DynamicUser",
		"[Service]\nEnvironment='A=1\nExecStart=/bin/d\n":              "Environment can't be read",
	} {
		if j := service(t, text); !strings.Contains(j.Refused, reason) || j.Agent.Command != nil {
			t.Errorf("%q is refused by %q, want one that says %q", text, j.Refused, reason)
		}
	}
}

func TestSystemd_Timers(t *testing.T) {
	const run = "[Service]\nExecStart=/bin/true\n"
	mine := units(
		"two.timer", "[Timer]\nOnCalendar=daily\nOnCalendar=Mon 09:00\nPersistent=true\nRandomizedDelaySec=10min\n", "two.service", run,
		"every.timer", "[Timer]\nOnBootSec=5min\nOnUnitActiveSec=1h 30min\n", "every.service", run,
		"boot.timer", "[Timer]\nOnBootSec=5min\n", "boot.service", run,
		"quick.timer", "[Timer]\nOnUnitActiveSec=20s\n", "quick.service", run,
		"other.timer", "[Timer]\nOnCalendar=hourly\nUnit=two.service\n",
		"lone.timer", "[Timer]\nOnCalendar=hourly\n",
		"t@.timer", "[Timer]\nOnCalendar=hourly\n",
		"mount.timer", "[Timer]\nOnCalendar=hourly\nUnit=x.mount\n",
		"changed.timer", "[Timer]\nOnCalendar=daily\n", "changed.service", run,
		"changed.timer.d/10.conf", "[Timer]\nOnCalendar=\nOnCalendar=weekly\n",
		"changed.service.d/a.conf", "[Service]\nExecStart=\nExecStart=/bin/false\n",
	)
	theirs := units("two.timer", "[Timer]\nOnCalendar=yearly\n", "lib.timer", "[Timer]\nOnCalendar=yearly\n", "lib.service", run)
	got := map[string]Job{}
	for _, j := range systemdJobs(t, mine, theirs, units()) {
		if j.Refused != "" {
			got[j.Source] = j
			continue
		}
		got[j.Agent.Slug] = j
	}
	if len(got) != 11 {
		t.Errorf("%d jobs", len(got))
	}
	for slug, schedule := range map[string]string{
		"two": "0 0 * * *", "two-2": "0 9 * * 1", "every": "@every 90m", "other": "0 * * * *", "changed": "0 0 * * 1", "lib": "0 0 1 1 *",
	} {
		if got[slug].Agent.Schedule != schedule {
			t.Errorf("%s: %+v", slug, got[slug])
		}
	}
	if a := got["two"].Agent; a.CatchUp != "latest" || a.Jitter != 600 {
		t.Errorf("%+v", a)
	}
	if c := got["changed"].Agent.Command; !slices.Equal(c, []string{"/bin/false"}) {
		t.Errorf("a drop-in's command is not taken: %q", c)
	}
	for source, reason := range map[string]string{
		"boot.timer": "only when the machine", "quick.timer": "whole minutes", "lone.timer": "isn't there", "t@.timer": "template", "mount.timer": "no service",
	} {
		if !strings.Contains(got[source].Refused, reason) {
			t.Errorf("%s is refused by %q", source, got[source].Refused)
		}
	}
	jobs, err := Systemd(true, here, mine)
	if err != nil || !strings.Contains(jobs[0].Refused, "runs as root") {
		t.Errorf("the machine's timers: %v, %v", jobs, err)
	}
}

func TestSpan(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"90": 90 * time.Second, "5min": 5 * time.Minute, "1h 30min": 90 * time.Minute, "2 days": 48 * time.Hour, "1w3h": 171 * time.Hour,
	} {
		if got, ok := span(text); !ok || time.Duration(got)*time.Second != want {
			t.Errorf("%q is %d s, %v", text, got, ok)
		}
	}
	for _, text := range []string{"", "soon", "5 fortnights", "1h soon"} {
		if got, ok := span(text); ok {
			t.Errorf("%q is %d s", text, got)
		}
	}
}
