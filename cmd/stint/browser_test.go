package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"stint/api"
)

var updateImages = flag.Bool("update-images", false, "take the README's pictures again, into docs/images")

// browserFixture is the program with a browser signed in to it.
type browserFixture struct {
	*home
	program *program
	client  *api.Client
	page    *tab
}

func newBrowserFixture(t *testing.T) *browserFixture {
	t.Helper()
	h := newHome(t)
	p := h.serve(asIs, "up")
	d := &browserFixture{home: h, program: p, client: p.client(nil)}
	d.page = d.browse()
	return d
}

// address is HOST:PORT of the program.
func (d *browserFixture) address() string {
	u, err := url.Parse(d.program.ready())
	d.must(err)
	return u.Host
}

// browse opens a page that is signed in the way `stint open` does it.
func (d *browserFixture) browse() *tab {
	d.Helper()
	_, port, _ := strings.Cut(d.address(), ":")
	page := openTab(d.TB, "http://stint.localhost:"+port)
	page.signIn(d.openPage())
	return page
}

func (d *browserFixture) openPage() string {
	d.Helper()
	self, err := os.Executable()
	d.must(err)
	cmd := exec.Command(self, "open", "--page")
	cmd.Args[0], cmd.Env = "stint", d.env
	out, err := cmd.Output()
	d.must(err)
	return strings.TrimSpace(string(out))
}

// agent creates an agent whose command is a shell script.
func (d *browserFixture) agent(slug, script string, change ...func(*api.AgentInput)) api.Agent {
	d.Helper()
	in := api.AgentInput{
		Slug: slug, Mode: api.Local, Type: api.TypeCommand, TimeZone: "Europe/Berlin", CatchUp: api.CatchUpLatest,
		Overlap: api.OverlapSkip, MaxConcurrent: 1, LeaseSeconds: 900, MaxLapses: 3,
		Run: api.Run{Command: []string{"sh", "-c", script}, WorkFolder: d.folder(slug)},
	}
	for _, f := range change {
		f(&in)
	}
	a, err := d.client.CreateAgent(context.Background(), in)
	d.must(err)
	return a
}

func (d *browserFixture) folder(name string) string {
	dir := filepath.Join(d.dir, "work", name)
	d.must(os.MkdirAll(dir, 0o755))
	return dir
}

// run queues a session and waits until it has the status.
func (d *browserFixture) run(agent string, in api.SessionInput, until api.Status) api.Session {
	d.Helper()
	s, _, err := d.client.CreateSession(context.Background(), agent, in, "")
	d.must(err)
	return d.until(s.ID, until)
}

// until polls until a session has a status.
func (d *browserFixture) until(id api.SessionID, status api.Status) api.Session {
	d.Helper()
	again := time.NewTicker(30 * time.Millisecond)
	defer again.Stop()
	deadline := time.After(patience)
	for {
		s, err := d.client.Session(context.Background(), id)
		d.must(err)
		if s.Status == status {
			return s
		}
		select {
		case <-again.C:
		case <-deadline:
			d.Fatalf("session %s is %s, not %s", id, s.Status, status)
		}
	}
}

const counting = `i=0; while [ $i -lt 600 ]; do i=$((i+1)); echo "line $i"; sleep 0.2; done`

func TestBrowser_CreateRunWatchCancel(t *testing.T) {
	d := newBrowserFixture(t)
	p := d.page

	p.expect("422") // the answer to a form with errors
	p.goTo("/agents/new")
	p.fill("slug", "Not A Slug")
	p.fill("command", "sh -c '"+counting+"'")
	p.fill("schedule", "0 0 30 2 *")
	p.submit(`main form.form`)
	p.until(`document.querySelector("#slug-error") && document.querySelector("#schedule-error")`)
	if got := eval[string](p, `document.querySelector("#command").value`); !strings.Contains(got, "line $i") {
		t.Errorf("after an error the command field holds %q", got)
	}

	p.fill("slug", "counter")
	p.fill("workFolder", d.folder("counter"))
	p.fill("schedule", "0 9 * * 1-5")
	p.submit(`main form.form`)
	p.until(`location.pathname === "/agents/counter"`)
	p.says("Monday through Friday")

	p.goTo("/agents/counter/run")
	p.fill("prompt", "Count, please.")
	p.submit(`main form.form`)
	p.until(`location.pathname.startsWith("/sessions/ses_")`)
	p.until(`document.querySelector("#log-lines").innerText.includes("line 2")`)
	loaded := eval[float64](p, `performance.timeOrigin`)
	p.until(`document.querySelector("#log-lines").innerText.includes("line 9")`)
	if again := eval[float64](p, `performance.timeOrigin`); again != loaded {
		t.Error("the lines came by loading the page again")
	}

	session := eval[string](p, `location.pathname.split("/").pop()`)
	p.goTo("/sessions/" + session + "/cancel")
	p.submit(`main form.ask`)
	p.until(`document.querySelector("#session-head .s-cancelled")`)
	id, err := api.ParseSessionID(session)
	d.must(err)
	if s := d.until(id, api.Cancelled); s.Error == nil {
		t.Error("the cancelled session doesn't say why it ended")
	}

	p.goTo("/sessions?status=cancelled")
	p.says("Count, please.")
	p.goTo("/sessions?status=complete")
	if eval[bool](p, `document.querySelector("main").innerText.includes("Count, please.")`) {
		t.Error("the filter in the address doesn't narrow the list")
	}

	p.goTo("/agents/counter")
	p.submit(`main form[action$="/pause"]`)
	p.says("Paused")
	p.submit(`main form[action$="/resume"]`)
	p.until(`document.querySelector('main form[action$="/pause"]')`)
}

func TestBrowser_AnOpenPageSurvivesARestart(t *testing.T) {
	d := newBrowserFixture(t)
	d.agent("counter", counting)
	p := d.page
	p.goTo("/")
	p.until(`document.querySelector("#live").dataset.state === "live"`)
	p.expect("ERR_", "503", "Failed to load resource", "htmx:sse:error")
	address := d.address()
	d.program.kill()
	d.program.wait()
	p.until(`document.querySelector("#live").dataset.state !== "live"`)
	d.program = d.start(asIs, "up", "--no-open", "--addr", address)
	d.program.ready()
	d.client = d.program.client(nil)
	p.until(`document.querySelector("#live").dataset.state === "live"`)
	d.run("counter", api.SessionInput{Title: "After the restart"}, api.Active)
	p.says("After the restart")
}

func TestBrowser_TypingIsLeftAlone(t *testing.T) {
	d := newBrowserFixture(t)
	d.agent("counter", counting)
	p := d.page
	p.goTo("/")
	p.until(`document.querySelector("#live").dataset.state === "live"`)
	p.fill("prompt", "half a thou")
	eval[bool](p, `(e => { e.focus(); e.setSelectionRange(4, 6); return true })(document.querySelector("main [name=prompt]"))`)
	d.run("counter", api.SessionInput{Title: "Comes in meanwhile"}, api.Active)
	p.says("Comes in meanwhile")
	got := eval[[]any](p, `(e => [document.activeElement === e, e.value, e.selectionStart, e.selectionEnd])(document.querySelector("main [name=prompt]"))`)
	if fmt.Sprint(got) != "[true half a thou 4 6]" {
		t.Errorf("focus, text, caret are %v after live updates", got)
	}
}

func TestBrowser_WithoutScripts(t *testing.T) {
	d := newBrowserFixture(t)
	p := d.page
	p.scripts(false)
	p.goTo("/agents/new")
	p.fill("slug", "plain")
	p.fill("command", "sh -c 'echo hello; exec sleep 60'")
	p.fill("workFolder", d.folder("plain"))
	p.submit(`main form.form`)
	p.until(`location.pathname === "/agents/plain"`)
	p.goTo("/agents/plain/run")
	p.fill("prompt", "Say hello.")
	p.submit(`main form.form`)
	p.until(`location.pathname.startsWith("/sessions/ses_")`)
	id, err := api.ParseSessionID(eval[string](p, `location.pathname.split("/").pop()`))
	d.must(err)
	d.until(id, api.Active)
	p.goTo("/sessions/" + id.String())
	p.goTo(eval[string](p, `document.querySelector('main a[href$="/cancel"], main a[href$="/stop"]').getAttribute("href").replace("/stop", "/cancel")`))
	p.submit(`main form.ask`)
	p.until(`document.querySelector("#session-head .s-cancelled")`)
	d.until(id, api.Cancelled)
}

// hostile are texts that break out of a careless page.
var hostile = []string{
	`"><svg onload=alert(1)>`, `</script><script>alert(2)</script>`, `<img src=//evil.example/x onerror=alert(3)>`,
	`'--><a href="javascript:alert(4)" autofocus onfocus=alert(5)>x</a>`, `{{7*7}}${alert(6)}`,
}

func TestBrowser_HostileTextsDoNothing(t *testing.T) {
	d := newBrowserFixture(t)
	nasty := strings.Join(hostile, " ")
	script := `cat; printf '\033]8;;javascript:alert(7)\033\\click\033]8;;\033\\ \033]1337;File=inline=1:aGk=\007 \033]1338;url=//evil.example/y;alt=z\007 \377\376'; exit 3`
	d.agent("nasty", script, func(in *api.AgentInput) { in.Name, in.Description = nasty[:90], nasty })
	s := d.run("nasty", api.SessionInput{Title: nasty[:180], Prompt: new(nasty), UntrustedContext: nasty}, api.Failed)
	for _, path := range []string{
		"/", "/sessions", "/agents", "/agents/nasty", "/agents/nasty/edit", "/agents/nasty/run", "/workers",
		"/sessions/" + s.ID.String(), "/sessions/" + s.ID.String() + "?view=timeline", "/sessions/" + s.ID.String() + "?view=input", "/sessions/" + s.ID.String() + "?view=json",
	} {
		d.page.goTo(path)
		if got := eval[[]string](d.page, `[...document.querySelectorAll("main a[href], main img, main [onload], main [onerror], main [onfocus], main svg[onload]")].filter(e => e.tagName === "IMG" || /^\s*javascript:/i.test(e.getAttribute("href") || "") || e.hasAttribute("onload") || e.hasAttribute("onerror") || e.hasAttribute("onfocus")).map(e => e.outerHTML)`); len(got) > 0 {
			t.Errorf("%s holds what came from a text: %v", path, got)
		}
	}
	d.page.goTo("/sessions/" + s.ID.String())
	d.page.says(`"><svg onload=alert(1)>`)
}

// TestBrowser_ALongOutputStaysSmallOnThePage checks what the page holds, which doesn't depend
// on the machine, rather than how long it takes.
func TestBrowser_ALongOutputStaysSmallOnThePage(t *testing.T) {
	d := newBrowserFixture(t)
	d.agent("loud", `i=0; while [ $i -lt 300 ]; do i=$((i+1)); head -c 65536 /dev/zero | tr '\0' 'x' | fold -w 100; done; echo THE-END`)
	s := d.run("loud", api.SessionInput{}, api.Complete)
	d.page.goTo("/sessions/" + s.ID.String())
	d.page.says("THE-END")
	if rows := eval[int](d.page, `document.querySelectorAll("#log-lines p").length`); rows < 100 || rows > 2000 {
		t.Errorf("the page of a session with 20 MB of output has %d lines", rows)
	}
	if size := eval[int](d.page, `document.documentElement.outerHTML.length`); size > 1<<20 {
		t.Errorf("the page of a session with 20 MB of output has %d characters", size)
	}
}

// violation is one finding of axe.
type violation struct {
	ID, Impact, Help string
	Nodes            []struct{ HTML, FailureSummary string }
}

// Package web checks the pages of the dashboard; this one is the server's.
func TestBrowser_TheSignInPageIsAccessible(t *testing.T) {
	d := newBrowserFixture(t)
	axe, err := os.ReadFile(filepath.Join("..", "..", "web", "testdata", "axe.min.js"))
	d.must(err)
	_, port, _ := strings.Cut(d.address(), ":")
	d.page = openTab(t, "http://stint.localhost:"+port) // nobody is signed in there
	d.page.expect("favicon.ico")                        // browsers ask for it by themselves, and it needs a sign-in
	d.page.goTo("/signin")
	eval[bool](d.page, string(axe)+";true")
	for _, theme := range []string{"light", "dark"} {
		d.page.theme(theme)
		for _, width := range []int64{360, 1280} {
			d.page.size(width, 900)
			if wide := eval[int64](d.page, "document.documentElement.scrollWidth"); wide > width {
				t.Errorf("%s, %d px: it is %d px wide", theme, width, wide)
			}
			for _, v := range d.axe() {
				t.Errorf("%s, %d px: %s (%s): %s: %s", theme, width, v.ID, v.Impact, v.Help, v.Nodes[0].HTML)
			}
		}
	}
}

// axe returns what axe finds on the page.
func (d *browserFixture) axe() []violation {
	d.Helper()
	text := eval[string](d.page, `axe.run(document, {resultTypes: ["violations"]}).then(r => JSON.stringify(r.violations))`)
	var found []violation
	d.must(json.Unmarshal([]byte(text), &found))
	return found
}

// TestBrowser_SignInIsGoodForOnce opens the page that signs in a second time.
func TestBrowser_SignInIsGoodForOnce(t *testing.T) {
	d := newBrowserFixture(t)
	file := d.openPage()
	stored, err := os.ReadFile(file)
	d.must(err)
	d.page.signIn(file)
	again := filepath.Join(d.dir, "again.html")
	d.must(os.WriteFile(again, stored, 0o600))
	_, port, _ := strings.Cut(d.address(), ":")
	other := openTab(t, "http://stint.localhost:"+port)
	other.expect("401")
	other.goToFile(again)
	other.until(`location.href.startsWith("http") && document.body.innerText.includes("stint open")`)
	other.goTo("/")
	if eval[bool](other, `document.querySelector("#live") !== null`) {
		t.Error("a used link signed a second browser in")
	}
}

func TestBrowser_Pictures(t *testing.T) {
	d := newBrowserFixture(t)
	work := `printf '\033[1mReading 48 modules\033[0m\n'; for m in auth billing search mail; do printf '\033[32m  up to date\033[0m  %s\n' $m; done; printf '\033[33m  behind\033[0m      storage 1.4.0 -> 1.6.2\n'; printf '\033[36mRunning the tests\033[0m\n'; i=0; while [ $i -lt 600 ]; do i=$((i+1)); printf '  ok  package %d of 600\n' $i; sleep 0.1; done`
	d.agent("dependencies", work, func(in *api.AgentInput) { in.Name, in.Schedule = "Nightly dependency check", "30 2 * * *" })
	d.agent("triage", `echo "3 new issues, 1 needs you"`, func(in *api.AgentInput) { in.Name, in.Schedule = "Issue triage", "0 */2 * * *" })
	d.agent("backup", `echo "2.1 GB copied"; exit 0`, func(in *api.AgentInput) { in.Name, in.Schedule = "Backup", "0 3 * * *" })
	for range 6 {
		d.run("triage", api.SessionInput{Prompt: new("Sort the new issues by what they need.")}, api.Complete)
		d.run("backup", api.SessionInput{Prompt: new("Copy everything to the other disk.")}, api.Complete)
	}
	s := d.run("dependencies", api.SessionInput{Prompt: new("Update what is behind and open a pull request.")}, api.Active)
	d.run("dependencies", api.SessionInput{Prompt: new("And once more for the docs.")}, api.Queued)
	p := d.page
	p.size(1280, 800)
	dir := t.TempDir()
	if *updateImages {
		dir = filepath.Join("..", "..", "docs", "images")
		d.must(os.MkdirAll(dir, 0o755))
	}
	for _, picture := range []struct{ file, path, theme, ready string }{
		{"home-light.png", "/", "light", `document.querySelector("#live").dataset.state === "live"`},
		{"session-dark.png", "/sessions/" + s.ID.String(), "dark", `document.querySelector("#log-lines").innerText.includes("package 20")`},
		{"agent-light.png", "/agents/triage", "light", `document.querySelector("#live").dataset.state === "live"`},
	} {
		p.theme(picture.theme)
		if strings.HasPrefix(picture.file, "agent") {
			p.size(1280, 620)
		}
		p.goTo(picture.path)
		p.until(picture.ready)
		p.shoot(filepath.Join(dir, picture.file))
		info, err := os.Stat(filepath.Join(dir, picture.file))
		d.must(err)
		if info.Size() < 10_000 || info.Size() > 250_000 {
			t.Errorf("%s has %d bytes", picture.file, info.Size())
		}
	}
}
