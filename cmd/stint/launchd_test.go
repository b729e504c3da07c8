package main

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// plistOf reads a property list as launchd does: keys and values in turn.
func plistOf(t *testing.T, text string) map[string]any {
	t.Helper()
	d := xml.NewDecoder(strings.NewReader(text))
	var value func(start xml.StartElement) any
	value = func(start xml.StartElement) any {
		dict, list, key, chars := map[string]any{}, []any{}, "", ""
		for {
			token, err := d.Token()
			if err != nil {
				t.Fatalf("it is not well-formed: %v\n%s", err, text)
			}
			switch token := token.(type) {
			case xml.CharData:
				chars += string(token)
			case xml.StartElement:
				v := value(token)
				if token.Name.Local == "key" {
					key = v.(string)
				} else {
					dict[key], list = v, append(list, v)
				}
			case xml.EndElement:
				switch start.Name.Local {
				case "dict":
					return dict
				case "array", "plist":
					return list
				case "true":
					return true
				case "string", "key", "integer":
					return chars
				}
				t.Fatalf("property lists have no <%s>", start.Name.Local)
			}
		}
	}
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			t.Fatal("there is no property list")
		}
		if err != nil {
			t.Fatal(err)
		}
		if start, ok := token.(xml.StartElement); ok && start.Name.Local == "plist" {
			return value(start).([]any)[0].(map[string]any)
		}
	}
}

// What launchd is given is a property list, also where names have what XML takes for its own.
func TestLaunchd_WritesPropertyLists(t *testing.T) {
	s := service{program: "/Users/a & b/<bin>/stint", addr: defaultAddr, dataDir: `/Volumes/"x"`}
	all := s.plists("/opt/bin:/usr/bin", "/Users/a/Library/Logs/stint")
	server, worker := plistOf(t, all[serverAgent]), plistOf(t, all[workerAgent])
	if args := server["ProgramArguments"].([]any); args[0] != s.program || args[1] != "serve" || args[len(args)-1] != s.dataDir {
		t.Errorf("the server is started by %q", args)
	}
	if args := worker["ProgramArguments"].([]any); args[1] != "worker" || args[2] != "run" {
		t.Errorf("the worker is started by %q", args)
	}
	env := worker["EnvironmentVariables"].(map[string]any)
	if env["STINT_URL"] != "http://"+defaultAddr || env["PATH"] != "/opt/bin:/usr/bin" || server["KeepAlive"] != true || server["Umask"] != "63" || worker["ExitTimeOut"] != "90" {
		t.Errorf("the agents are %v and %v", server, worker)
	}
}

// The commands as they run on macOS, with a stand-in for its launchctl that notes what it is
// told.
func TestLaunchd_InstallsAndUninstalls(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("HOME", dir)
	t.Setenv("XDG_CONFIG_HOME", "")
	t.Setenv("TMPDIR", dir) // in which no go run has built this program
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	told := filepath.Join(dir, "told")
	if err := os.WriteFile(filepath.Join(dir, "launchctl"), []byte("#!/bin/sh\necho \"$@\" >>"+told+"\n"), 0o700); err != nil { //nolint:gosec // it is executed
		t.Fatal(err)
	}
	do := func(want exit, args ...string) string {
		t.Helper()
		c := newCLI()
		var out bytes.Buffer
		c.goos, c.out, c.err = "darwin", &out, &out
		if got := run(c, args); got != want {
			t.Fatalf("%q exits with %d, want %d:\n%s", args, got, want, &out)
		}
		return out.String()
	}
	do(exitUsage, "service", "install", "--system", "--run-as", "daemon")
	if shown := do(exitDone, "service", "install", "--user", "--print"); strings.Count(shown, "<plist ") != 2 {
		t.Errorf("it shows\n%s", shown)
	}
	do(exitDone, "service", "install", "--user")
	do(exitDone, "service", "install", "--user")
	do(exitDone, "service", "status", "--user")
	path := filepath.Join(dir, "Library", "LaunchAgents", serverAgent+".plist")
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	plistOf(t, string(text))
	do(exitDone, "service", "uninstall", "--user")
	do(exitNotFound, "service", "uninstall", "--user")
	if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the agent's file is still there (%v)", err)
	}
	if err := os.WriteFile(path, []byte("<plist/>"), 0o600); err != nil {
		t.Fatal(err)
	}
	do(exitConflict, "service", "install", "--user")
	said, err := os.ReadFile(told)
	if err != nil || !strings.Contains(string(said), "bootstrap gui/") || !strings.Contains(string(said), "bootout gui/") {
		t.Errorf("launchctl was told %q, %v", said, err)
	}
}
