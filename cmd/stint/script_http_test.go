package main

import (
	"context"
	"errors"
	"fmt"
	"html"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/rogpeppe/go-internal/testscript"
)

func get(ts *testscript.TestScript, _ bool, args []string) {
	resp, err := http.Get(ts.Getenv("URL") + args[1])
	ts.Check(err)
	ts.Check(resp.Body.Close())
	if got := strconv.Itoa(resp.StatusCode); got != args[0] {
		ts.Fatalf("GET %s answers %s, want %s", args[1], got, args[0])
	}
}

func callAPI(ts *testscript.TestScript, _ bool, args []string) {
	var answer any
	ts.Check(json.Unmarshal(ownersCall(ts, args[0], args[1], args[2]), &answer))
	stateOf(ts).answer = answer
}

// rest compares the last stdout with what the REST interface answers, byte for byte.
func rest(ts *testscript.TestScript, _ bool, args []string) {
	want := string(ownersCall(ts, http.MethodGet, args[0], ""))
	if got := ts.ReadFile("stdout"); strings.TrimSpace(got) != strings.TrimSpace(want) {
		ts.Fatalf("GET %s answers\n%s\nand the command prints\n%s", args[0], want, got)
	}
}

// ownersCall makes a call of the workspace's routes with the owner's token; it must be 2xx.
func ownersCall(ts *testscript.TestScript, method, path, body string) []byte {
	token, err := os.ReadFile(filepath.Join(ts.MkAbs(ts.Getenv("STINT_DATA_DIR")), "owner.token"))
	ts.Check(err)
	req, err := http.NewRequest(method, ts.Getenv("URL")+"/api/v1/workspaces/default/"+path, strings.NewReader(body))
	ts.Check(err)
	req.Header.Set("Authorization", "Bearer "+strings.TrimSpace(string(token)))
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	ts.Check(err)
	text, err := io.ReadAll(resp.Body)
	ts.Check(errors.Join(err, resp.Body.Close()))
	if resp.StatusCode/100 != 2 {
		ts.Fatalf("%s %s answers %d: %s", method, path, resp.StatusCode, text)
	}
	return text
}

func letJSON(ts *testscript.TestScript, _ bool, args []string) {
	v := stateOf(ts).answer
	for name := range strings.SplitSeq(args[1], ".") {
		object, ok := v.(map[string]any)
		if !ok || object[name] == nil {
			ts.Fatalf("the answer has no %s", args[1])
		}
		v = object[name]
	}
	ts.Setenv(args[0], fmt.Sprint(v))
}

func prefix(ts *testscript.TestScript, _ bool, args []string) {
	id := args[0][:len(args[0])-1]
	if len(args) > 1 {
		id = strings.TrimPrefix(id, "ses_")
	}
	ts.Setenv("PREFIX", id)
}

func signIn(ts *testscript.TestScript, _ bool, args []string) {
	page := ts.ReadFile(args[0])
	field := func(pattern string) string {
		m := regexp.MustCompile(pattern).FindStringSubmatch(page)
		if m == nil {
			ts.Fatalf("%s has no %s", args[0], pattern)
		}
		return html.UnescapeString(m[1])
	}
	action, link := field(`action="([^"]*)"`), field(`name="link" value="([^"]*)"`)
	client := &http.Client{
		Transport: &http.Transport{DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, network, ts.Getenv("ADDR"))
		}},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	post := func() *http.Response {
		req, err := http.NewRequest(http.MethodPost, action, strings.NewReader(url.Values{"link": {link}}.Encode()))
		ts.Check(err)
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		req.Header.Set("Origin", "null") // as a browser sends it for a file
		req.Header.Set("Sec-Fetch-Site", "cross-site")
		resp, err := client.Do(req)
		ts.Check(err)
		ts.Check(resp.Body.Close())
		return resp
	}
	first := post()
	if first.StatusCode != http.StatusSeeOther || len(first.Cookies()) != 1 {
		ts.Fatalf("signing in answers %s with %d cookies", first.Status, len(first.Cookies()))
	}
	if second := post(); second.StatusCode != http.StatusUnauthorized {
		ts.Fatalf("the same link again answers %s", second.Status)
	}
	req, err := http.NewRequest(http.MethodGet, strings.TrimSuffix(action, "/signin")+"/", nil)
	ts.Check(err)
	req.AddCookie(first.Cookies()[0])
	resp, err := client.Do(req)
	ts.Check(err)
	ts.Check(resp.Body.Close())
	if resp.StatusCode != http.StatusOK {
		ts.Fatalf("the dashboard answers %s", resp.Status)
	}
}
