package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"stint/api"
)

// A real browser, its content policy in force, carries the yes from the page to the program
// that waits on a port of this machine, and types a device's code.
func TestBrowser_SignsProgramsIn(t *testing.T) {
	d := newBrowserFixture(t)
	p := d.page
	p.expect("foreign request: http://127.0.0.1:", "favicon")

	bin, opened := filepath.Join(d.dir, "bin"), filepath.Join(d.dir, "opened")
	d.must(os.MkdirAll(bin, 0o700))
	opener := "#!/bin/sh\nprintf '%s' \"$1\" > " + opened + ".new && mv " + opened + ".new " + opened + "\n"
	d.must(os.WriteFile(filepath.Join(bin, "xdg-open"), []byte(opener), 0o700))
	login, said := d.beside(append(d.env, "DISPLAY=:1", "PATH="+bin+":"+os.Getenv("PATH")), "login", "--url", d.program.ready())
	var at string
	d.wait("the page", func() bool {
		text, err := os.ReadFile(opened)
		at = string(text)
		return err == nil
	})
	if !strings.HasPrefix(at, p.base+"/oauth/authorize?") {
		t.Fatalf("login opens %s", at)
	}
	p.goTo(strings.TrimPrefix(at, p.base))
	p.says("Stint on the command line")
	p.shows("button[value=allow]", "Sign it in")
	if eval[bool](p, `document.documentElement.scrollWidth > innerWidth`) {
		t.Error("the page is wider than the window")
	}
	eval[bool](p, `(b => { b.click(); return true })(document.querySelector("button[value=allow]"))`)
	p.until(`location.hostname === "127.0.0.1" && location.pathname === "/callback" && document.body.innerText.includes("You are signed in")`)
	if err := login(); err != nil {
		t.Fatalf("login ends with %v: %s", err, said())
	}

	login, said = d.beside(d.env, "login", "--url", d.program.ready(), "--device")
	var code []string
	d.wait("a code", func() bool {
		code = shownCode.FindStringSubmatch(said())
		return code != nil
	})
	p.goTo("/device#" + code[2]) // which fills nothing in
	if got := eval[string](p, `document.querySelector("#user_code").value`); got != "" {
		t.Errorf("the page fills in %q", got)
	}
	p.fill("user_code", strings.ToLower(code[2]))
	p.submit("main form")
	p.says("stint-cli/")
	eval[bool](p, `(b => { b.click(); return true })(document.querySelector("button[value=allow]"))`)
	p.says("The program goes on")
	if err := login(); err != nil {
		t.Fatalf("login --device ends with %v: %s", err, said())
	}

	// The first sign-in ended when another replaced it; the account ends the second.
	list, err := d.client.SignIns(t.Context(), api.Page{})
	d.must(err)
	programs := 0
	for _, s := range list.Items {
		if s.Kind == "program" {
			programs++
		}
	}
	if programs != 1 {
		t.Errorf("%d programs are signed in, not 1: %+v", programs, list.Items)
	}
	p.goTo("/settings/account")
	p.says("Stint on the command line")
	eval[bool](p, `(b => { b.click(); return true })(document.querySelector("button[aria-label='Sign out Stint on the command line']"))`)
	p.until(`!document.querySelector("main").innerText.includes("Stint on the command line")`)
	whoami := exec.Command(d.self(), "whoami")
	whoami.Args[0], whoami.Env = "stint", d.env
	if out, err := whoami.CombinedOutput(); err == nil || !strings.Contains(string(out), "stint login") {
		t.Errorf("afterwards whoami says %s, %v", out, err)
	}
}

func (d *browserFixture) self() string {
	d.Helper()
	self, err := os.Executable()
	d.must(err)
	return self
}

// beside starts a command and returns how to wait for it and what it printed.
func (d *browserFixture) beside(env []string, args ...string) (end func() error, said func() string) {
	d.Helper()
	cmd := exec.Command(d.self(), args...)
	var text locked
	cmd.Args[0], cmd.Env, cmd.Stdout, cmd.Stderr = "stint", env, new(bytes.Buffer), &text
	d.must(cmd.Start())
	stop := time.AfterFunc(patience, func() { _ = cmd.Process.Kill() })
	d.Cleanup(func() {
		if cmd.ProcessState == nil {
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
		}
		stop.Stop()
	})
	return cmd.Wait, text.String
}

// wait polls until look is true.
func (d *browserFixture) wait(what string, look func() bool) {
	d.Helper()
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		if look() {
			return
		}
	}
	d.Fatalf("gave up waiting for %s", what)
}

// shows checks the text of an element.
func (p *tab) shows(selector, text string) {
	p.Helper()
	if got := eval[string](p, `document.querySelector("`+selector+`").innerText`); got != text {
		p.Errorf("%s says %q, not %q", selector, got, text)
	}
}
