package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

// beside is a command that runs beside a script.
type beside struct {
	cmd      *exec.Cmd
	out, err locked
}

// locked is a buffer that may be read while it is written.
type locked struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *locked) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

func (l *locked) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

func background(ts *testscript.TestScript, _ bool, args []string) {
	path, err := exec.LookPath(args[0])
	ts.Check(err)
	b := &beside{cmd: exec.Command(path, args[1:]...)}
	b.cmd.Env, b.cmd.Dir, b.cmd.Stdout, b.cmd.Stderr = environ(ts), ts.MkAbs("."), &b.out, &b.err
	ts.Check(b.cmd.Start())
	ts.Defer(func() {
		if b.cmd.ProcessState == nil {
			_ = b.cmd.Process.Kill()
			_ = b.cmd.Wait()
			ts.Logf("[%s stderr]\n%s", strings.Join(args, " "), &b.err)
		}
	})
	stateOf(ts).beside = b
}

func finish(ts *testscript.TestScript, _ bool, args []string) {
	b := stateOf(ts).beside
	if len(args) > 1 {
		ts.Check(b.cmd.Process.Signal(signals[args[1]]))
	}
	stop := time.AfterFunc(patience, func() { _ = b.cmd.Process.Kill() })
	defer stop.Stop()
	got := exitCode(ts, b.cmd.Wait())
	fmt.Fprint(ts.Stdout(), b.out.String())
	fmt.Fprint(ts.Stderr(), b.err.String())
	if strconv.Itoa(got) != args[0] {
		ts.Fatalf("it exits with %d, want %s\n%s", got, args[0], &b.err)
	}
}

func together(ts *testscript.TestScript, _ bool, args []string) {
	n, err := strconv.Atoi(args[0])
	ts.Check(err)
	path, err := exec.LookPath(args[1])
	ts.Check(err)
	faults := make(chan string, n)
	for range n {
		go func() {
			cmd := exec.Command(path, args[2:]...)
			cmd.Env, cmd.Dir = environ(ts), ts.MkAbs(".")
			if out, err := cmd.CombinedOutput(); err != nil {
				faults <- fmt.Sprintf("%v: %s", err, out)
				return
			}
			faults <- ""
		}()
	}
	var all []string
	for range n {
		if fault := <-faults; fault != "" {
			all = append(all, fault)
		}
	}
	if len(all) > 0 {
		ts.Fatalf("%d of %d fail: %s", len(all), n, all[0])
	}
}

// awaited waits until look finds something.
func awaited(ts *testscript.TestScript, what string, look func() string) string {
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		if found := look(); found != "" {
			return found
		}
	}
	ts.Fatalf("gave up waiting for %s", what)
	return ""
}

// visitor is a person at a browser.
type visitor struct {
	ts   *testscript.TestScript
	http *http.Client
}

func newVisitor(ts *testscript.TestScript) *visitor {
	jar, err := cookiejar.New(nil)
	ts.Check(err)
	// Browsers know that names below localhost are this machine; not every resolver does.
	here := func(ctx context.Context, network, addr string) (net.Conn, error) {
		_, port, err := net.SplitHostPort(addr)
		if err != nil {
			return nil, err
		}
		return new(net.Dialer).DialContext(ctx, network, net.JoinHostPort("127.0.0.1", port))
	}
	return &visitor{ts, &http.Client{Jar: jar, Transport: &http.Transport{DialContext: here}}}
}

func (p *visitor) do(method, at string, form url.Values) (string, *url.URL) {
	req, err := http.NewRequest(method, at, strings.NewReader(form.Encode()))
	p.ts.Check(err)
	req.Header.Set("Accept", "text/html")
	if method == http.MethodPost {
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		req.Header.Set("Sec-Fetch-Site", "same-origin")
	}
	resp, err := p.http.Do(req)
	p.ts.Check(err)
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	p.ts.Check(err)
	if resp.StatusCode != http.StatusOK {
		p.ts.Fatalf("%s %s answers %d %s", method, at, resp.StatusCode, text)
	}
	return string(text), resp.Request.URL
}

// opens a page after signing in.
func (p *visitor) opens(at, name, password string) (string, *url.URL) {
	text, here := p.do(http.MethodGet, at, nil)
	if here.Path != "/signin" {
		p.ts.Fatalf("%s needs no sign-in: %s", at, text)
	}
	form := fieldsOf(text)
	form.Set("login", name)
	form.Set("password", password)
	return p.do(http.MethodPost, here.ResolveReference(&url.URL{Path: "/signin"}).String(), form)
}

var fieldTag = regexp.MustCompile(`<input type="hidden" name="([^"]+)" value="([^"]*)">`)

func fieldsOf(page string) url.Values {
	form := url.Values{}
	for _, m := range fieldTag.FindAllStringSubmatch(page, -1) {
		form.Add(m[1], strings.NewReplacer("&amp;", "&", "&#43;", "+", "&#34;", `"`).Replace(m[2]))
	}
	return form
}

func consent(ts *testscript.TestScript, _ bool, args []string) {
	file := ts.MkAbs(args[0])
	at := awaited(ts, args[0], func() string {
		text, _ := os.ReadFile(file)
		return strings.TrimSpace(string(text))
	})
	p := newVisitor(ts)
	defer p.http.CloseIdleConnections()
	text, here := p.opens(at, args[1], args[2])
	form := fieldsOf(text)
	form.Set("decision", args[3])
	text, here = p.do(http.MethodPost, here.ResolveReference(&url.URL{Path: "/oauth/authorize"}).String(), form)
	if here.Path != "/callback" || here.Hostname() != "127.0.0.1" || !strings.Contains(text, "Go back to the terminal") {
		ts.Fatalf("the answer went to %s: %s", here, text)
	}
}

// join answers the page of an invitation as somebody new.
func join(ts *testscript.TestScript, _ bool, args []string) {
	at, err := url.Parse(args[0])
	ts.Check(err)
	code := at.Fragment
	at.Fragment = ""
	p := newVisitor(ts)
	defer p.http.CloseIdleConnections()
	p.do(http.MethodPost, at.String(), url.Values{"code": {code}, "name": {args[1]}, "login": {args[2]}, "password": {args[3]}})
}

var shownCode = regexp.MustCompile(`(?s)(https?://\S+/device)\n.*\n  ([A-Z]{4}-[A-Z]{4})`)

func typeCode(ts *testscript.TestScript, _ bool, args []string) {
	b := stateOf(ts).beside
	var found []string
	awaited(ts, "a code", func() string {
		if found = shownCode.FindStringSubmatch(b.err.String()); found == nil {
			return ""
		}
		return found[2]
	})
	p := newVisitor(ts)
	defer p.http.CloseIdleConnections()
	_, here := p.opens(found[1], args[0], args[1])
	text, _ := p.do(http.MethodPost, here.String(), url.Values{"user_code": {found[2]}})
	form := fieldsOf(text)
	form.Set("decision", args[2])
	p.do(http.MethodPost, here.String(), form)
}
