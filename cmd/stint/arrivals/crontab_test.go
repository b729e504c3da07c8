package arrivals

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"stint/scheduler"
)

var here = Here{User: "ann", Home: "/home/ann", Zone: "UTC", Now: time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)}

func one(t *testing.T, text string) Job {
	t.Helper()
	jobs := Crontab(text, false, here)
	if len(jobs) != 1 {
		t.Fatalf("%q has %d jobs", text, len(jobs))
	}
	return jobs[0]
}

// lines are of real tables: what each is here, or why it is refused.
var lines = []struct {
	line     string
	schedule string // "" = it is refused
	command  string // what the shell is given
	input    string
	slug     string
	refused  string // what the reason says
}{
	{line: "*/5 * * * * /usr/bin/php /var/www/app/artisan schedule:run >> /dev/null 2>&1", schedule: "*/5 * * * *", slug: "artisan"},
	{line: "0 3 * * * /usr/local/bin/backup.sh", schedule: "0 3 * * *", command: "/usr/local/bin/backup.sh", slug: "backup"},
	{line: "30 2 * * 1-5 cd /srv/app && ./bin/report --daily", schedule: "30 2 * * 1-5", slug: "report"},
	{line: "@daily certbot renew --quiet", schedule: "@daily", slug: "certbot"},
	{line: "@hourly /usr/bin/fetchmail", schedule: "@hourly"},
	{line: "@weekly tar czf /backup/www.tgz /var/www", schedule: "@weekly", slug: "tar"},
	{line: "@monthly /opt/bill.py", schedule: "@monthly", slug: "bill"},
	{line: "@yearly echo happy new year", schedule: "@yearly"},
	{line: "@annually echo again", schedule: "@annually"},
	{line: "@midnight sync", schedule: "@midnight"},
	{line: "@reboot /usr/local/bin/start-tunnel", refused: "when the machine starts"},
	{line: "@fortnightly x", refused: "not a known name"},
	{line: "0 0 1 * * mysqldump -u root db | gzip > /backup/db-$(date +\\%F).sql.gz", schedule: "0 0 1 * *", command: "mysqldump -u root db | gzip > /backup/db-$(date +%F).sql.gz", slug: "mysqldump"},
	{line: "0 9 * * mon mail -s hello bob%Hello Bob,%%see you.%", schedule: "0 9 * * mon", command: "mail -s hello bob", input: "Hello Bob,\n\nsee you.\n"},
	{line: "0 9 * * 1 cat%one", schedule: "0 9 * * 1", command: "cat", input: "one\n"},
	{line: `0 9 * * 1 printf '100\%\%' `, schedule: "0 9 * * 1", command: "printf '100%%'"},
	{line: "0,15,30,45 * * * * ping -c1 host", schedule: "0,15,30,45 * * * *", slug: "ping"},
	{line: "0-59/10 8-18 * * 1-5 /usr/bin/check", schedule: "0-59/10 8-18 * * 1-5"},
	{line: "15 14 1 * * $HOME/bin/monthly", schedule: "15 14 1 * *"},
	{line: "0 22 * * 1-5 mail -s 'late' ann%Ann,%%Where are your kids?%", schedule: "0 22 * * 1-5", input: "Ann,\n\nWhere are your kids?\n"},
	{line: "23 0-23/2 * * * echo run", schedule: "23 0-23/2 * * *"},
	{line: "5 4 * * sun echo sunday", schedule: "5 4 * * sun"},
	{line: "5 4 * * 7 echo sunday too", schedule: "5 4 * * 7"},
	{line: "0 0 1,15 * 5 echo either", schedule: "0 0 1,15 * 5"},
	{line: "0 0 */2 * * echo odd days", schedule: "0 0 */2 * *"},
	{line: "0 0 */2 * 1 echo odd mondays", refused: "both"},
	{line: "0 0 13 * */2 echo both", refused: "both"},
	{line: "0 0 */1 * 1 echo mondays", schedule: "0 0 * * 1"},
	{line: "0 0 5,* * 1 echo every day", refused: "read differently"},
	{line: "0 12 * jan-mar * echo winter", schedule: "0 12 * jan-mar *"},
	{line: "0 12 * JAN,Jul * echo twice", schedule: "0 12 * JAN,Jul *"},
	{line: "\t 10\t4  *\t* * \t/bin/spaced  out ", schedule: "10 4 * * *", command: "/bin/spaced  out"},
	{line: "0 0 29 2 * echo leap", schedule: "0 0 29 2 *"},
	{line: "0 0 31 2 * echo never", refused: "no slot"},
	{line: "60 * * * * echo wrong", refused: "60"},
	{line: "* * * * echo four fields", refused: "echo"},
	{line: "* * * * *", refused: "no command"},
	{line: "*/90 * * * * echo rare", refused: "90"},
	{line: "* * * * * FOO=bar /opt/run.sh", schedule: "* * * * *", command: "FOO=bar /opt/run.sh", slug: "run"},
	{line: "17 * * * * cd / && run-parts --report /etc/cron.hourly", schedule: "17 * * * *", slug: "run-parts"},
	{line: "0 5 * * 1 nice -n 19 flock /var/lock/x true", schedule: "0 5 * * 1"},
	{line: "-*/15 * * * * /usr/lib/quiet", schedule: "*/15 * * * *", slug: "quiet"},
	{line: "0 8 * * 1-5 /usr/bin/env python3 /home/ann/bin/stand_up.py", schedule: "0 8 * * 1-5", slug: "stand-up"},
	{line: "0 8 ? * 1-5 /bin/quartz", refused: "?"},
	{line: "0 0 8 * * 1 /bin/seconds", schedule: "0 0 8 * *", command: "1 /bin/seconds"}, // cron reads it so, too
}

func TestCrontab_LinesOfRealTables(t *testing.T) {
	if len(lines) < 40 {
		t.Fatalf("there are %d lines", len(lines))
	}
	for _, c := range lines {
		j := one(t, c.line)
		switch {
		case c.schedule == "":
			if j.Refused == "" || !strings.Contains(j.Refused, c.refused) || j.Agent.Command != nil {
				t.Errorf("%q is refused by %q, want one that says %q", c.line, j.Refused, c.refused)
			}
			continue
		case j.Refused != "":
			t.Errorf("%q is refused: %s", c.line, j.Refused)
			continue
		}
		a := j.Agent
		if a.Schedule != c.schedule || a.Prompt != c.input || a.CatchUp != "none" || a.WorkFolder != "/home/ann" {
			t.Errorf("%q: %+v", c.line, a)
		}
		if c.command != "" && !slices.Equal(a.Command, []string{"/bin/sh", "-c", c.command}) {
			t.Errorf("%q runs %q", c.line, a.Command)
		}
		if c.slug != "" && a.Slug != c.slug {
			t.Errorf("%q is called %q", c.line, a.Slug)
		}
		sameTimes(t, c.line, a.Schedule)
	}
}

// sameTimes compares the next five times here with those of cron.
func sameTimes(t *testing.T, line, schedule string) {
	t.Helper()
	s, err := scheduler.Parse(schedule, here.Zone, here.Now)
	if err != nil {
		t.Errorf("%q: %v", line, err)
		return
	}
	at := here.Now
	cron := debianCron(line)
	theirs := here.Now.Truncate(time.Minute)
	for range 5 {
		at = s.Next(here.Now, at)
		for theirs = theirs.Add(time.Minute); !cron(theirs); theirs = theirs.Add(time.Minute) {
			if theirs.After(here.Now.AddDate(25, 0, 0)) {
				t.Errorf("%q: cron never runs it", line)
				return
			}
		}
		if !at.Equal(theirs) {
			t.Errorf("%q: here %v, by cron %v", line, at, theirs)
			return
		}
	}
}

// debianCron is when Debian's cron runs a line: its own words and bits, written anew from
// entry.c and cron.c so that it shares nothing with what it checks.
func debianCron(line string) func(time.Time) bool {
	fields := strings.Fields(strings.TrimPrefix(strings.TrimSpace(line), "-"))
	if named, ok := map[string]string{
		"@yearly": "0 0 1 1 *", "@annually": "0 0 1 1 *", "@monthly": "0 0 1 * *", "@weekly": "0 0 * * 0", "@daily": "0 0 * * *", "@midnight": "0 0 * * *", "@hourly": "0 * * * *",
	}[fields[0]]; ok {
		fields = strings.Fields(named)
	}
	minute, hour, dom := bits(fields[0], 0, 59, nil), bits(fields[1], 0, 23, nil), bits(fields[2], 1, 31, nil)
	month := bits(fields[3], 1, 12, []string{"", "jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"})
	dow := bits(fields[4], 0, 7, []string{"sun", "mon", "tue", "wed", "thu", "fri", "sat"})
	if dow[0] || dow[7] {
		dow[0], dow[7] = true, true
	}
	starred := fields[2][0] == '*' || fields[4][0] == '*'
	return func(at time.Time) bool {
		if !minute[at.Minute()] || !hour[at.Hour()] || !month[int(at.Month())] {
			return false
		}
		d, w := dom[at.Day()], dow[int(at.Weekday())]
		if starred {
			return d && w
		}
		return d || w
	}
}

func bits(field string, low, high int, names []string) map[int]bool {
	out := map[int]bool{}
	value := func(text string) int {
		if i := slices.Index(names, strings.ToLower(text)); i >= 0 {
			return i
		}
		n, err := strconv.Atoi(text)
		if err != nil {
			panic(fmt.Sprintf("%q in %q", text, field))
		}
		return n
	}
	for part := range strings.SplitSeq(field, ",") {
		span, step, stepped := strings.Cut(part, "/")
		from, to := low, high
		if span != "*" {
			a, b, ranged := strings.Cut(span, "-")
			from = value(a)
			if to = from; ranged {
				to = value(b)
			}
		}
		by := 1
		if stepped {
			by = value(step)
		}
		for i := from; i <= to; i += by {
			out[i] = true
		}
	}
	return out
}

func TestCrontab_SettingsHoldForTheLinesBelow(t *testing.T) {
	jobs := Crontab(strings.Join([]string{
		"# Edit this file to introduce tasks to be run by cron.", "",
		"0 1 * * * first",
		`PATH = "/opt/bin:/usr/bin:/bin"`, "SHELL=/bin/bash", "MAILTO=ann@example.com", "CRON_TZ=Europe/Berlin", "RANDOM_DELAY=5", " 'MY VAR'='a=b c'",
		"# Mirror the archive",
		"0 2 * * * second",
		"MAILTO=\"\"",
		"HOME=/srv",
		"0 3 * * * third # not a comment",
	}, "\r\n"), false, here)
	if len(jobs) != 3 {
		t.Fatalf("%+v", jobs)
	}
	first, second, third := jobs[0], jobs[1], jobs[2]
	if first.Line != 3 || first.Agent.Name != "" || first.Agent.TimeZone != "UTC" || len(first.Notes) != 0 {
		t.Errorf("%+v", first)
	}
	want := []string{"/usr/bin/env", "MY VAR=a=b c", "PATH=/opt/bin:/usr/bin:/bin", "/bin/bash", "-c", "second"}
	if a := second.Agent; a.Name != "Mirror the archive" || a.TimeZone != "Europe/Berlin" || a.Jitter != 300 || !slices.Equal(a.Command, want) {
		t.Errorf("%+v", a)
	}
	if notes := strings.Join(second.Notes, "\n"); !strings.Contains(notes, "ann@example.com") || !strings.Contains(notes, "MY VAR, PATH") {
		t.Errorf("it says %q", second.Notes)
	}
	if a := third.Agent; a.WorkFolder != "/srv" || a.Name != "" || a.Command[len(a.Command)-1] != "third # not a comment" || !slices.Contains(a.Command, "HOME=/srv") {
		t.Errorf("%+v", a)
	}
	if notes := strings.Join(third.Notes, "\n"); strings.Contains(notes, "mailed") {
		t.Errorf("nobody is mailed, and it says %q", third.Notes)
	}
}

func TestCrontab_OfTheSystemNamesUsers(t *testing.T) {
	jobs := Crontab("17 *\t* * *\troot\tcd / && run-parts /etc/cron.hourly\n@daily ann tidy-up\n0 0 * * * ann\n", true, here)
	if len(jobs) != 3 || !strings.Contains(jobs[0].Refused, "as root") || !strings.Contains(jobs[2].Refused, "no command") {
		t.Fatalf("%+v", jobs)
	}
	if a := jobs[1].Agent; jobs[1].Refused != "" || a.Schedule != "@daily" || a.Command[2] != "tidy-up" || a.Slug != "tidy-up" {
		t.Errorf("%+v", jobs[1])
	}
}

func TestCrontab_SlugsAreValidAndDiffer(t *testing.T) {
	long := strings.Repeat("very-long-name-", 4)
	text := "* * * * * x\n* * * * * x\n* * * * * /opt/" + long + "\n* * * * * /opt/" + long + "\n* * * * * /opt/Ünïcode.sh\n* * * * * new\n* * * * * 7zip\n* * * * * $CMD\n"
	seen := map[string]bool{}
	for _, j := range Crontab(text, false, here) {
		s := j.Agent.Slug
		if len(s) < 2 || len(s) > longestSlug || s[0] < 'a' || s[0] > 'z' || s == "new" || seen[s] || strings.Trim(s, "abcdefghijklmnopqrstuvwxyz0123456789-") != "" {
			t.Errorf("%q gets %q", j.Source, s)
		}
		seen[s] = true
	}
}

// Whatever a file holds, it is read to its end, and what is not refused can be scheduled.
func FuzzCrontab(f *testing.F) {
	for _, c := range lines {
		f.Add(c.line)
	}
	f.Add("A=b\n* * * * * c%d\n\x00")
	f.Fuzz(func(t *testing.T, text string) {
		for _, j := range Crontab(text, false, here) {
			if j.Refused != "" {
				continue
			}
			if _, err := scheduler.Parse(j.Agent.Schedule, j.Agent.TimeZone, here.Now); err != nil {
				t.Errorf("%q: %v", j.Source, err)
			}
		}
	})
}

func TestNameThem_APrefixLeavesSlugsValid(t *testing.T) {
	long := strings.Repeat("long-name-", 5)
	jobs := []Job{{Agent: Agent{Slug: long}}, {Agent: Agent{Slug: long}}, {Agent: Agent{Slug: "7zip"}}, {Refused: "no"}}
	NameThem(jobs, "NAS_")
	for i, want := range []string{"nas-long-name-long-name-long-nam", "nas-long-name-long-name-long-n-2", "nas-job-7zip", ""} {
		if got := jobs[i].Agent.Slug; got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
