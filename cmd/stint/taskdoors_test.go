package main

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"stint/api"
	"stint/server/servertest"
)

type m = map[string]any

// doors are three coordinators that begin as copies of one and whose clocks stand: what is asked
// of the first by the REST interface is asked of the second by the command line, and of the third
// as a tool.
type doors struct {
	*home
	rest, cli, mcp *servertest.Server
	tokens         map[string]string // by who has it
	elsewhere      string            // a task of another workspace
}

// still is a clock that stands.
func still() time.Time { return time.Date(2026, 3, 28, 12, 0, 0, 0, time.UTC) }

func newDoors(t *testing.T) *doors {
	t.Helper()
	d := &doors{home: newHome(t)}
	path := filepath.Join(t.TempDir(), "stint.db")
	first := servertest.New(t, servertest.Options{Path: path, Clock: still})
	d.tokens = map[string]string{
		"owner": first.Token, "colleague": first.AddUser("default", api.Member), "viewer": first.AddUser("default", api.Viewer), "stranger": first.AddUser("elsewhere", api.Owner),
	}
	agent := m{"slug": "review", "run": m{"command": []string{"true"}}}
	servertest.Must[api.Agent](first, 201, "POST", "agents", agent)
	for _, task := range []m{
		{"title": "First"},
		{"title": "Second", "blockedBy": []string{"T-1"}},
		{"title": "Third", "blockedBy": []string{"T-2"}, "slug": "third"},
		{"title": "Held", "slug": "held"},
		{"title": "Over", "state": "done"},
	} {
		servertest.Must[api.Task](first, 201, "POST", "tasks", task)
	}
	servertest.Must[api.TaskHeld](first.As(d.tokens["colleague"]), 200, "POST", "tasks/T-4/claim", m{})
	d.elsewhere = servertest.Must[api.Task](first.As(d.tokens["stranger"]), 201, "POST", "/api/v1/workspaces/elsewhere/tasks", m{"title": "Elsewhere"}).ID.String()
	first.Stop()
	image, err := os.ReadFile(path)
	d.must(err)
	for _, door := range []**servertest.Server{&d.rest, &d.cli, &d.mcp} {
		path := filepath.Join(t.TempDir(), "stint.db")
		d.must(os.WriteFile(path, image, 0o600))
		*door = servertest.New(t, servertest.Options{Path: path, Token: d.tokens["owner"], Clock: still})
	}
	return d
}

// question is one thing asked by each door.
type question struct {
	name   string
	who    string // the owner, unless it says otherwise
	method string
	path   string
	body   any
	args   []string // of the command line; none = it can't be said there
	stdin  string   // of the command
	tool   string
	takes  m
}

// words are a command's: a line without quotation marks, and what has spaces in it.
func words(line string, more ...string) []string { return append(strings.Split(line, " "), more...) }

// answered is what a door answered: the document, or the refusal.
type answered struct {
	status int // 0 = the door has none
	code   exit
	text   string
}

func (d *doors) byREST(a question) answered {
	d.Helper()
	got := d.rest.As(d.tokens[a.who]).Do(a.method, a.path, a.body)
	return answered{status: got.Status, text: strings.TrimSpace(string(got.Body))}
}

// stint runs a command for somebody at a coordinator.
func (h *home) stint(s *servertest.Server, token, stdin string, args ...string) (stdout, stderr string, code exit) {
	h.Helper()
	self, err := os.Executable()
	h.must(err)
	cmd := exec.CommandContext(h.Context(), self, args...)
	var out, said bytes.Buffer
	cmd.Args[0], cmd.Dir, cmd.Stdin, cmd.Stdout, cmd.Stderr = "stint", h.dir, strings.NewReader(stdin), &out, &said
	cmd.Env = append(h.env, "STINT_URL="+s.URL, "STINT_TOKEN="+token)
	err = cmd.Run()
	var ended *exec.ExitError
	if errors.As(err, &ended) {
		return out.String(), said.String(), exit(ended.ExitCode())
	}
	h.must(err)
	return out.String(), said.String(), exitDone
}

func (d *doors) byCommand(a question) answered {
	d.Helper()
	out, said, code := d.stint(d.cli, d.tokens[a.who], a.stdin, append([]string{"--json"}, a.args...)...)
	if code == exitDone {
		return answered{code: code, text: strings.TrimSuffix(out, "\n")}
	}
	if out != "" {
		d.Errorf("%s: a refused command prints %s", a.name, out)
	}
	return answered{code: code, text: strings.TrimSuffix(said, "\n")}
}

// toolAnswer is what a tool answers.
type toolAnswer struct {
	Result struct {
		IsError    bool           `json:"isError"`
		Structured jsontext.Value `json:"structuredContent"`
		Content    []struct {
			Text string `json:"text"`
		} `json:"content"`
	} `json:"result"`
}

// callTool calls a tool at a coordinator's address and returns its structured content: of a done
// call it is also the text, byte for byte. The protocol's library writes <, > and & in another of
// JSON's ways than we do.
func callTool(h *home, s *servertest.Server, tool string, takes m) (refused bool, document string) {
	h.Helper()
	got := s.Do("POST", "/mcp", m{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": m{"name": tool, "arguments": takes}},
		servertest.With("Accept", "application/json, text/event-stream"), servertest.With("Mcp-Protocol-Version", "2025-06-18"))
	if got.Status != 200 {
		return true, strings.TrimSpace(string(got.Body)) // the request itself was refused
	}
	var said toolAnswer
	h.must(json.Unmarshal(got.Body, &said, json.RejectUnknownMembers(false)))
	text, err := jsontext.AppendFormat(nil, said.Result.Structured)
	h.must(err)
	document = string(text)
	if r := said.Result; !r.IsError && document != r.Content[0].Text {
		h.Errorf("%s says %s and has the structured content %s", tool, r.Content[0].Text, document)
	}
	return said.Result.IsError, document
}

func (d *doors) byTool(a question) answered {
	d.Helper()
	_, text := callTool(d.home, d.mcp.As(d.tokens[a.who]), a.tool, a.takes)
	return answered{text: text}
}

// requestID is the one part of an answer that says which request it answers.
var requestID = regexp.MustCompile(`"requestId":"[^"]*"`)

func (d *doors) same(a question, by string, want, got answered) {
	d.Helper()
	if w, g := requestID.ReplaceAllString(want.text, "#"), requestID.ReplaceAllString(got.text, "#"); w != g {
		d.Errorf("%s by %s is answered\n%s\nand by the REST interface\n%s", a.name, by, g, w)
	}
}

// everywhere asks by all the doors that there are for it and returns what the REST interface
// answers and how the command ended.
func (d *doors) everywhere(a question) (status int, body string, code exit) {
	d.Helper()
	if a.who == "" {
		a.who = "owner"
	}
	want := d.byREST(a)
	if a.args != nil {
		got := d.byCommand(a)
		d.same(a, "the command line", want, got)
		code = got.code
	}
	if a.tool != "" {
		d.same(a, "a tool", want, d.byTool(a))
	}
	return want.status, want.text, code
}
