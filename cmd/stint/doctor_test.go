package main

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"

	"stint/account"
	"stint/api"
	"stint/db"
	"stint/db/dbtest"
	"stint/engine"
	"stint/server"
)

// examinee is a data directory that a doctor looks at.
type examinee struct {
	t   *testing.T
	c   *cli
	dir dataDir
	out bytes.Buffer
}

// newExaminee is a directory as a coordinator leaves it that was stopped; killed as one that was
// killed leaves it.
func newExaminee(t *testing.T, killed bool) *examinee {
	t.Helper()
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	t.Setenv("XDG_CONFIG_HOME", t.TempDir())
	p := &examinee{t: t, dir: dataDir(t.TempDir())}
	must(t, os.Chmod(string(p.dir), 0o700))
	p.c = p.newCLI()
	k := p.start()
	if _, err := k.demonstrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	if killed {
		left := map[string][]byte{}
		for _, name := range []string{p.dir.database(), p.dir.database() + "-wal", p.dir.database() + ".lock"} {
			left[name] = read(t, name)
		}
		must(t, k.close())
		for _, name := range []string{p.dir.database(), p.dir.database() + "-wal", p.dir.database() + ".lock"} {
			must(t, os.WriteFile(name, left[name], 0o600))
		}
	} else {
		must(t, k.close())
	}
	return p
}

func (p *examinee) newCLI() *cli {
	c := newCLI()
	c.out, c.err, c.env = &p.out, &bytes.Buffer{}, func(string) string { return "" }
	c.flags.dataDir, c.flags.json = string(p.dir), true
	return c
}

func (p *examinee) start() *coordinator {
	p.t.Helper()
	k, err := p.c.open(p.t.Context(), serverFlags{addr: "127.0.0.1:0"}, slog.New(slog.DiscardHandler))
	if err != nil {
		p.t.Fatal(err)
	}
	return k
}

// diagnosis runs the command.
func (p *examinee) diagnosis() api.Examination {
	p.t.Helper()
	p.out.Reset()
	err := p.c.doctor(p.t.Context())
	var out api.Examination
	if err := json.Unmarshal(p.out.Bytes(), &out); err != nil {
		p.t.Fatalf("it printed %s: %v", p.out.String(), err)
	}
	if code := p.c.report(err); (code == exitProblems) == out.Healthy || code != exitProblems && code != exitDone {
		p.t.Errorf("it exits with %d: %+v", code, out)
	}
	return out
}

// codes are what is wrong, each once and with a mend.
func (p *examinee) codes() []string {
	p.t.Helper()
	var out []string
	for _, c := range p.diagnosis().Checks {
		if c.OK {
			continue
		}
		if c.Mend == "" || c.Detail == "" {
			p.t.Errorf("a finding is %+v", c)
		}
		out = append(out, c.Code)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// sql changes the stopped database.
func (p *examinee) sql(query string) {
	p.t.Helper()
	raw, err := sql.Open("sqlite", p.dir.database())
	must(p.t, err)
	_, err = raw.ExecContext(p.t.Context(), query)
	must(p.t, errors.Join(err, raw.Close()))
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func read(t *testing.T, name string) []byte {
	t.Helper()
	text, err := os.ReadFile(name)
	must(t, err)
	return text
}

// listing is what lies in the directory, with sizes and times.
func (p *examinee) listing() (out string) {
	entries, err := os.ReadDir(string(p.dir))
	must(p.t, err)
	for _, e := range entries {
		info, err := e.Info()
		must(p.t, err)
		out += strings.Join([]string{e.Name(), info.Mode().String(), info.ModTime().String()}, " ") + "\n"
	}
	return out
}

// TestDoctor_OfAStoppedDirectory plants one fault after the other in a directory on which no
// server runs.
func TestDoctor_OfAStoppedDirectory(t *testing.T) {
	for _, row := range []struct {
		name   string
		code   string
		mend   string // part of it; DIR is the directory
		killed bool
		fault  func(p *examinee)
	}{
		{name: "healthy"},
		{name: "healthy after a kill", killed: true},
		{"directory", api.FoundDirectoryOpen, "chmod 700 DIR", false, func(p *examinee) { must(t, os.Chmod(string(p.dir), 0o755)) }},
		{"database", api.FoundDatabaseOpen, "chmod 600 DIR/stint.db", false, func(p *examinee) { must(t, os.Chmod(p.dir.database(), 0o644)) }},
		{"token", api.FoundTokenOpen, "chmod 600 DIR/owner.token", false, func(p *examinee) { must(t, os.Chmod(p.dir.token(), 0o640)) }},
		{"no token", api.FoundTokenMissing, "stint up", false, func(p *examinee) { must(t, os.Remove(p.dir.token())) }},
		{"nothing there", api.FoundNoDatabase, "stint up", false, func(p *examinee) { must(t, os.RemoveAll(string(p.dir))) }},
		{"no database", api.FoundUnpaired, "as it says", false, func(p *examinee) { must(t, os.Remove(p.dir.database())) }},
		{"no log", api.FoundUnpaired, "as it says", true, func(p *examinee) {
			must(t, os.Remove(p.dir.database()+"-wal"))
			later := time.Now().Add(time.Second)
			must(t, os.Chtimes(p.dir.database()+".lock", later, later))
		}},
		{"newer schema", api.FoundSchemaNewer, "cp DIR/stint.db.before-v9999 DIR/stint.db", false, func(p *examinee) {
			must(t, os.WriteFile(p.dir.database()+".before-v9999", []byte("an older database"), 0o600))
			p.sql("INSERT INTO goose_db_version (version_id, is_applied) VALUES (9999, 1)")
		}},
		{"damaged page", api.FoundPagesDamaged, "backup", false, func(p *examinee) {
			f, err := os.OpenFile(p.dir.database(), os.O_RDWR, 0)
			must(t, err)
			_, err = f.WriteAt(bytes.Repeat([]byte{0xff}, 4096), 8*4096)
			must(t, errors.Join(err, f.Close()))
		}},
		{"no database of SQLite's", api.FoundPagesDamaged, "backup", false, func(p *examinee) {
			must(t, os.WriteFile(p.dir.database(), bytes.Repeat([]byte("no database "), 1000), 0o600))
			must(t, os.Remove(p.dir.database()+".lock"))
		}},
		{"huge log", api.FoundLogLarge, "start it again", false, func(p *examinee) {
			must(t, os.WriteFile(p.dir.database()+"-wal", nil, 0o600))
			must(t, os.Truncate(p.dir.database()+"-wal", 300<<20))
		}},
		{"schedule", api.FoundScheduleBroken, "stint agent edit demo --schedule", false, func(p *examinee) {
			p.sql("UPDATE agents SET schedule_error = 'no such day', next_slot_at = 0")
		}},
		{"zone", api.FoundZoneUnknown, "stint agent edit demo --tz", false, func(p *examinee) { p.sql("UPDATE agents SET time_zone = 'Nowhere/City'") }},
		{"promise", api.FoundPromiseBroken, "report it", false, func(p *examinee) { p.sql("UPDATE counters SET value = 7 WHERE name = 'id'") }},
		{"clock", api.FoundClockBehind, "timedatectl", false, func(p *examinee) { p.c.now = func() time.Time { return time.Now().Add(-time.Hour) } }},
		{"file of tomorrow", api.FoundClockBehind, "timedatectl", false, func(p *examinee) {
			later := time.Now().Add(24 * time.Hour)
			must(t, os.Chtimes(p.dir.database(), later, later))
		}},
		{"old snapshot", api.FoundSnapshotOld, "rm DIR/stint.db.before-v50", false, func(p *examinee) {
			name, before := p.dir.database()+".before-v50", time.Now().Add(-60*24*time.Hour)
			must(t, os.WriteFile(name, make([]byte, 1<<20), 0o600))
			must(t, os.Chtimes(name, before, before))
		}},
		{"full disk", api.FoundDiskLow, "df -h DIR", false, func(p *examinee) { p.c.freeBytes = func(string) (int64, error) { return 100 << 20, nil } }},
	} {
		t.Run(row.name, func(t *testing.T) {
			p := newExaminee(t, row.killed)
			if row.fault != nil {
				row.fault(p)
			}
			var want []string
			if row.code != "" {
				want = []string{row.code}
			}
			if got := p.codes(); !slices.Equal(got, want) {
				t.Fatalf("it found %v: %s", got, p.out.String())
			}
			mend := strings.ReplaceAll(row.mend, "DIR", string(p.dir))
			if !slices.ContainsFunc(p.diagnosis().Checks, func(c api.Check) bool { return row.code == "" || c.Code == row.code && strings.Contains(c.Mend, mend) }) {
				t.Errorf("nothing says %q: %s", mend, p.out.String())
			}
		})
	}
}

// A doctor leaves a stopped directory as it was, and the next start finds it good.
func TestDoctor_ChangesNothing(t *testing.T) {
	p := newExaminee(t, false)
	before, image := p.listing(), read(t, p.dir.database())
	if got := p.codes(); len(got) > 0 {
		t.Errorf("it found %v", got)
	}
	if after := p.listing(); after != before || !bytes.Equal(image, read(t, p.dir.database())) {
		t.Errorf("%s\nbecame\n%s", before, after)
	}
	killed := newExaminee(t, true)
	log := read(t, killed.dir.database()+"-wal")
	killed.codes()
	if !bytes.Equal(log, read(t, killed.dir.database()+"-wal")) {
		t.Error("the log of a killed server was changed")
	}
	must(t, killed.start().close())
}

// TestDoctor_OfARunningServer looks through the server, and at the files as well.
func TestDoctor_OfARunningServer(t *testing.T) {
	p := newExaminee(t, false)
	k := p.start()
	ctx, stop := context.WithCancel(context.Background())
	serve := func(version string) {
		done := make(chan error, 1)
		srv := server.New(server.Options{Engine: k.engine, Accounts: k.accounts, Addr: k.addr(), Version: version, Log: k.log})
		go func() { done <- srv.Serve(ctx, k.ln) }()
		t.Cleanup(func() {
			stop()
			must(t, errors.Join(<-done, k.close()))
		})
	}
	serve("9.9.9")
	if got := p.codes(); !slices.Equal(got, []string{api.FoundServerDiffers}) {
		t.Errorf("of another version it found %v", got)
	}
	must(t, os.Chmod(p.dir.token(), 0o644))
	if got := p.codes(); !slices.Equal(got, []string{api.FoundServerDiffers, api.FoundTokenOpen}) {
		t.Errorf("with an open token it found %v", got)
	}
	p.c.flags.json, p.c.flags.quiet = false, true
	p.out.Reset()
	if code := p.c.report(p.c.doctor(t.Context())); code != exitProblems || p.out.String() != api.FoundServerDiffers+"\n"+api.FoundTokenOpen+"\n" {
		t.Errorf("quietly it says %s and exits with %d", p.out.String(), code)
	}
	p.c.flags.quiet = false
	p.out.Reset()
	if code := p.c.report(p.c.doctor(t.Context())); code != exitProblems || !strings.Contains(p.out.String(), "2 things are wrong") || !strings.Contains(p.out.String(), "mend\tchmod 600 ") {
		t.Errorf("in words it says %s", p.out.String())
	}
}

// A store whose disk is full says so.
func TestDoctor_OfAFullDisk(t *testing.T) {
	p := newExaminee(t, false)
	disk := dbtest.NewDisk(t)
	p.c.openStore = func(ctx context.Context, o db.Options) (*db.Store, error) {
		o.Unsafe.VFS = disk.VFS()
		return db.Open(ctx, o)
	}
	k := p.start()
	t.Cleanup(func() { must(t, k.close()) })
	disk.SetFull(true)
	owner, err := k.accounts.Owner(t.Context())
	must(t, err)
	caller, err := k.accounts.In(t.Context(), owner, account.DefaultWorkspace)
	must(t, err)
	if _, err := k.engine.CreateAgent(t.Context(), caller, api.AgentInput{Slug: "full"}); err == nil {
		t.Fatal("a write to a full disk succeeded")
	}
	in := k.engine.DefaultAgent()
	in.Slug, in.Run.Command = "full", []string{"true"}
	if _, err := k.engine.CreateAgent(t.Context(), caller, in); api.CodeOf(err) != api.CodeUnavailable {
		t.Fatalf("a write to a full disk: %v", err)
	}
	got, err := k.engine.Examine(t.Context(), caller, engine.Looking{Rules: time.Minute, Pages: time.Minute})
	must(t, err)
	bad := slices.DeleteFunc(got.Checks, func(c api.Check) bool { return c.OK })
	if len(bad) != 1 || bad[0].Code != api.FoundWritesRefused || !strings.Contains(bad[0].Mend, "free space") {
		t.Errorf("it found %+v", bad)
	}
	disk.SetFull(false)
}

// The page has every code and no other.
func TestDoctor_ThePageHasEveryCode(t *testing.T) {
	text := string(read(t, filepath.Join("..", "..", "docs", "doctor.md")))
	for _, code := range api.FoundCodes {
		if !strings.Contains(text, "| `"+code+"` |") {
			t.Errorf("docs/doctor.md doesn't say what %s means", code)
		}
	}
	if n := strings.Count(text, "\n| `"); n != len(api.FoundCodes) {
		t.Errorf("docs/doctor.md has %d codes, there are %d", n, len(api.FoundCodes))
	}
}
