package main

import (
	"archive/tar"
	"bytes"
	"compress/bzip2"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/go-json-experiment/json"

	"stint/api"
	"stint/db"
	"stint/engine"
)

// left is what an older version and its worker left when both were killed, and what that
// version had said of it: see tools/make-fixture.
type left struct {
	*home
	said struct {
		Version    string                      `json:"version"`
		OwnerToken string                      `json:"ownerToken"`
		Key        *api.Key                    `json:"key"` // nil = the version had none
		Named      map[string]string           `json:"named"`
		Sessions   []map[string]any            `json:"sessions"`
		Agents     []map[string]any            `json:"agents"`
		Workers    []map[string]any            `json:"workers"`
		Items      map[string][]map[string]any `json:"items"` // by the session's name
		Events     []map[string]any            `json:"events"`
		Task       map[string]any              `json:"task"`
		Hand       struct {
			At         string            `json:"at"`
			WorkerID   string            `json:"workerId"`
			InstanceID string            `json:"instanceId"`
			Claims     map[string]string `json:"claims"` // by session
		} `json:"hand"`
	}
	oldURL string // of the older server
	url    string // of the server on it
}

func leftBy(t *testing.T, file string) *left {
	t.Helper()
	l := &left{home: newHome(t)}
	f, err := os.Open(file)
	l.must(err)
	defer f.Close()
	for files := tar.NewReader(bzip2.NewReader(f)); ; {
		h, err := files.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		l.must(err)
		if !filepath.IsLocal(h.Name) {
			t.Fatalf("%s has a file %q", file, h.Name)
		}
		path := filepath.Join(l.dir, h.Name)
		if h.Typeflag == tar.TypeDir {
			l.must(os.MkdirAll(path, 0o700))
			continue
		}
		text, err := io.ReadAll(files)
		l.must(err)
		l.must(os.WriteFile(path, text, 0o600))
	}
	text, err := os.ReadFile(filepath.Join(l.dir, "said.json"))
	l.must(err)
	l.must(json.Unmarshal(text, &l.said))
	old, ok := l.data().readServer()
	if !ok {
		t.Fatal("the older server didn't say where it was")
	}
	l.oldURL = old.URL
	return l
}

// everyLeft are the directories of all versions that are kept.
func everyLeft(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob("testdata/upgrade/*.tar.bz2")
	if err != nil || len(files) == 0 {
		t.Fatalf("there are no directories of older versions: %v", err)
	}
	return files
}

// ask calls the server by a token, as a program that knows no more than the older version's
// words.
func (l *left) ask(method, path, token string, body any) (status int, answer map[string]any) {
	l.Helper()
	var in io.Reader
	if body != nil {
		text, err := json.Marshal(body)
		l.must(err)
		in = bytes.NewReader(text)
	}
	req, err := http.NewRequestWithContext(l.Context(), method, l.url+path, in)
	l.must(err)
	req.Header.Set("Authorization", "Bearer "+token)
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	l.must(err)
	defer resp.Body.Close()
	if err := json.UnmarshalRead(resp.Body, &answer); err != nil && !errors.Is(err, io.EOF) {
		l.Fatalf("%s %s: %d: %v", method, path, resp.StatusCode, err)
	}
	return resp.StatusCode, answer
}

const defaultWorkspace = "/api/v1/workspaces/default"

func (l *left) get(path string) map[string]any {
	l.Helper()
	status, answer := l.ask(http.MethodGet, defaultWorkspace+path, l.said.OwnerToken, nil)
	if status != http.StatusOK {
		l.Fatalf("GET %s: %d %v", path, status, answer)
	}
	return answer
}

// same compares what the older version said of a thing with what is said now, in the members
// that both know.
func (l *left) same(what string, said, now map[string]any, but ...string) {
	l.Helper()
	for _, name := range slices.Sorted(maps.Keys(said)) {
		new, ok := now[name]
		if !ok || slices.Contains(but, name) {
			continue
		}
		if inner, ok := said[name].(map[string]any); ok && new != nil {
			l.same(what+"."+name, inner, new.(map[string]any), but...)
		} else if !reflect.DeepEqual(said[name], new) {
			l.Errorf("%s: %s was %v, and is %v", what, name, said[name], new)
		}
	}
}

// Every version's directory is brought up to date, and nothing that was in it is another.
func TestUpgrade_EveryVersionsDirectory(t *testing.T) {
	for _, file := range everyLeft(t) {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".tar.bz2"), func(t *testing.T) {
			t.Parallel()
			l := leftBy(t, file)
			copies := l.copiesToCome()
			p := l.serve(asIs, "serve")
			l.url = p.ready()
			l.everythingIsThere()
			l.tokensAreGood()
			l.theOldWorkerGoesOn()
			l.theResultArrives()
			p.stop()
			l.isSound(copies)
		})
	}
}

// A version that is older than the directory changes nothing in it and says which versions these
// are and what leads back.
func TestUpgrade_ADowngradeIsRefused(t *testing.T) {
	l := leftBy(t, everyLeft(t)[0])
	newer := fstest.MapFS{"9001_later.sql": {Data: []byte("-- +goose Up\nCREATE TABLE later (id INTEGER PRIMARY KEY) STRICT;\n")}}
	l.must(fs.WalkDir(os.DirFS("../../db/migrations"), ".", func(path string, e fs.DirEntry, err error) error {
		if err == nil && !e.IsDir() {
			var text []byte
			text, err = os.ReadFile(filepath.Join("../../db/migrations", path))
			newer[path] = &fstest.MapFile{Data: text}
		}
		return err
	}))
	store, err := db.Open(t.Context(), db.Options{Path: l.data().database(), Migrations: newer})
	l.must(err)
	l.must(store.Close())
	l.must(l.data().writeServer(serverFile{URL: l.oldURL, PID: 1, Version: "v9.8.7"}))
	before, err := os.ReadFile(l.data().database())
	l.must(err)
	p := l.start(asIs, "serve", "--addr", "127.0.0.1:0")
	p.wait()
	said := p.stderr.String()
	for _, want := range []string{"schema 9001", "this program knows ", "this is stint " + builtFrom().Version, "stint v9.8.7 used it last", "install stint v9.8.7 again", "stint restore BACKUP --replace", "stint.db.before-v9001"} {
		if !strings.Contains(said, want) {
			t.Errorf("it doesn't say %q:\n%s", want, said)
		}
	}
	if after, err := os.ReadFile(l.data().database()); err != nil || !bytes.Equal(after, before) {
		t.Errorf("the newer database was changed (%v)", err)
	}
	// The way back that it names: what was there before the upgrade takes the database's place.
	old, err := os.ReadFile(l.data().database() + ".before-v9001")
	l.must(err)
	l.must(os.WriteFile(l.data().database(), old, 0o600))
	back := l.serve(asIs, "serve")
	l.url = back.ready()
	l.everythingIsThere()
	back.stop()
	l.isSound(2)
}

// copiesToCome is 1 where the start brings the database up to date, and so copies it first.
func (l *left) copiesToCome() int {
	l.Helper()
	store, err := db.Look(l.Context(), db.Options{Path: l.data().database()})
	if errors.Is(err, db.ErrOlder) {
		return 1
	}
	l.must(err)
	l.must(store.CloseLook())
	return 0
}

func (l *left) everythingIsThere() {
	l.Helper()
	for _, said := range l.said.Sessions {
		id := said["id"].(string)
		now := l.get("/sessions/" + id)
		l.same("session "+id, said, now, "waitingFor", "updatedAt", "leaseExpiresAt", "lastActivityAt")
	}
	for name, said := range l.said.Items {
		now := l.get("/sessions/" + l.said.Named[name] + "/items")["items"].([]any)
		if len(now) != len(said) {
			l.Errorf("session %s has %d items, it had %d", name, len(now), len(said))
			continue
		}
		for i := range said {
			l.same(fmt.Sprintf("session %s, item %d", name, i), said[i], now[i].(map[string]any))
		}
	}
	for _, said := range l.said.Agents {
		now := l.get("/agents/" + said["slug"].(string))
		l.same("agent "+said["slug"].(string), said, now, "nextRunAt", "nextRun", "lastSession")
	}
	after, events := 0.0, map[float64]map[string]any{}
	for {
		page := l.get(fmt.Sprintf("/events?limit=200&after=%.0f", after))["items"].([]any)
		if len(page) == 0 {
			break
		}
		for _, e := range page {
			after = e.(map[string]any)["seq"].(float64)
			events[after] = e.(map[string]any)
		}
	}
	for _, said := range l.said.Events {
		seq := said["seq"].(float64)
		if events[seq] == nil {
			l.Errorf("event %.0f is not there: %v", seq, said)
			continue
		}
		l.same(fmt.Sprintf("event %.0f", seq), said, events[seq])
	}
	if l.said.Task != nil {
		l.same("the task", l.said.Task, l.get("/tasks/"+l.said.Task["key"].(string)), "updatedAt", "version", "comments")
	}
}

func (l *left) tokensAreGood() {
	l.Helper()
	token, err := l.data().readToken()
	l.must(err)
	if token != l.said.OwnerToken {
		l.Error("the owner has another token")
	}
	k := l.said.Key
	if k == nil {
		return
	}
	want := http.StatusOK
	if k.ExpiresAt.Before(time.Now()) {
		want = http.StatusUnauthorized
	}
	if got, answer := l.ask(http.MethodGet, defaultWorkspace+"/sessions", k.Key, nil); got != want {
		l.Errorf("an API key may read: %d %v, want %d", got, answer, want)
	}
	if got, answer := l.ask(http.MethodPost, defaultWorkspace+"/agents/build/sessions", k.Key, map[string]any{}); got < 400 {
		l.Errorf("an API key that may read starts an agent: %d %v", got, answer)
	}
}

// theOldWorkerGoesOn plays a worker of the older version that was running over the upgrade: it
// sends what it knows, under the claims that it holds, and nothing else.
func (l *left) theOldWorkerGoesOn() {
	l.Helper()
	hand := l.said.Hand
	by := func(method, path string, body map[string]any) map[string]any {
		l.Helper()
		body["instanceId"] = hand.InstanceID
		status, answer := l.ask(method, hand.At+path, l.said.OwnerToken, body)
		if status >= 300 {
			l.Fatalf("%s %s by a worker of the version before: %d %v", method, path, status, answer)
		}
		return answer
	}
	active, awaiting := l.said.Named["active"], l.said.Named["awaiting"]
	held := []string{hand.Claims[active], hand.Claims[awaiting]}
	for _, c := range by(http.MethodPost, "/heartbeat", map[string]any{"claimIds": held})["claims"].([]any) {
		if state := c.(map[string]any)["state"]; state != "renewed" {
			l.Errorf("after the upgrade a claim is %v", state)
		}
	}
	by(http.MethodPost, "/sessions/"+active+"/items", map[string]any{"claimId": held[0], "items": []any{map[string]any{"kind": "text", "text": "going on", "clientId": "new"}}})
	by(http.MethodPost, "/sessions/"+active+"/renew", map[string]any{"claimId": held[0]})
	by(http.MethodPost, "/sessions/"+active+"/complete", map[string]any{"claimId": held[0], "result": "done after the upgrade"})
	if now := l.get("/sessions/" + active); now["status"] != "complete" || now["result"] != "done after the upgrade" {
		l.Errorf("what ran over the upgrade is %v, its result %v", now["status"], now["result"])
	}
	prompt := l.get("/sessions/" + awaiting)["openPrompt"].(map[string]any)
	status, answer := l.ask(http.MethodPost, defaultWorkspace+"/sessions/"+awaiting+"/answer", l.said.OwnerToken, map[string]any{"promptId": prompt["id"], "text": "yes"})
	if status != http.StatusOK || answer["status"] != "active" {
		l.Errorf("a question of before is answered with %d %v", status, answer)
	}
	by(http.MethodPost, "/sessions/"+awaiting+"/complete", map[string]any{"claimId": held[1]})
}

// theResultArrives starts the worker on the state that the older one left: it holds a result
// that the older server never got.
func (l *left) theResultArrives() {
	l.Helper()
	l.moveWorker()
	before := len(l.get("/workers?limit=200")["items"].([]any))
	l.env = append(l.env, "STINT_URL="+l.url)
	w := l.start(asIs, "worker", "run", "--name", "desk", "--state-dir", filepath.Join(l.dir, "state"))
	id := l.said.Named["late"]
	for end := time.Now().Add(patience); l.get("/sessions/" + id)["status"] != "complete"; time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			w.kill()
			w.wait()
			l.Fatalf("the result of before never arrives: %v\n%s", l.get("/sessions/"+id), &w.stderr)
		}
	}
	var text strings.Builder
	for _, item := range l.get("/sessions/" + id + "/items")["items"].([]any) {
		text.WriteString(item.(map[string]any)["text"].(string))
	}
	if !strings.Contains(text.String(), "the late result") || l.get("/sessions/" + id)["attempt"] != 1.0 {
		l.Errorf("what ran over the upgrade ended with %q, in attempt %v", text.String(), l.get("/sessions/" + id)["attempt"])
	}
	if after := len(l.get("/workers?limit=200")["items"].([]any)); after != before {
		l.Errorf("the worker of before has a new record: there were %d, and are %d", before, after)
	}
	w.stop()
}

// moveWorker tells the worker's state that its server has another port, as each test has.
func (l *left) moveWorker() {
	l.Helper()
	state, err := sql.Open("sqlite", filepath.Join(l.dir, "state", "worker.db"))
	l.must(err)
	defer func() { l.must(state.Close()) }()
	done, err := state.ExecContext(l.Context(), "UPDATE facts SET value = replace(value, ?1, ?2) WHERE value LIKE ?1 || '%'", l.oldURL, l.url)
	l.must(err)
	if n, err := done.RowsAffected(); err != nil || n != 1 {
		l.Fatalf("%d facts of the worker's state name its server, %v; want 1", n, err)
	}
}

// isSound looks at the directory while nothing runs on it. copies is how many upgrades left
// one.
func (l *left) isSound(copies int) {
	l.Helper()
	ctx := context.WithoutCancel(l.Context())
	store, err := db.Look(ctx, db.Options{Path: l.data().database()})
	l.must(err)
	defer func() { l.must(store.CloseLook()) }()
	pages, err := store.CheckWhole(ctx)
	l.must(err)
	for _, damage := range pages.Damage {
		l.Errorf("integrity_check: %s", damage)
	}
	found, err := engine.New(store, engine.DefaultConfig()).Check(ctx)
	l.must(err)
	for _, v := range found {
		l.Errorf("a promise is broken: %s", v)
	}
	left, err := db.Snapshots(l.data().database())
	if err != nil || len(left) != copies {
		l.Errorf("there are %d copies from before an upgrade, %v; want %d", len(left), err, copies)
	}
}
