package main

import (
	"bytes"
	"context"
	"encoding/xml"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"stint/api"
)

// On macOS launchd starts Stint as the person's own service: one agent for the server, one for
// the worker. launchd hands over no socket in the way of sd_listen_fds(3), so there an upgrade
// is a moment in which nobody listens.

// The names of the agents, and of their files.
const (
	serverAgent = "stint.server"
	workerAgent = "stint.worker"
)

var agentNames = []string{serverAgent, workerAgent}

// plistMark is in each file that we write, as unitMark is in each unit.
const plistMark = "<!-- Made by stint service install; installing again writes it anew. -->"

// plists are the texts by name. path is where programs are found, logs the folder of the logs.
func (s service) plists(path, logs string) map[string]string {
	serve, work := []string{s.program, "serve", "--addr", s.addr}, []string{s.program, "worker", "run"}
	if s.dataDir != "" {
		serve, work = append(serve, "--data-dir", s.dataDir), append(work, "--data-dir", s.dataDir)
	}
	return map[string]string{
		serverAgent: plist(serverAgent, serve, map[string]string{"PATH": path}, filepath.Join(logs, "server.log"), 20),
		workerAgent: plist(workerAgent, work, map[string]string{"PATH": path, "STINT_URL": "http://" + s.addr}, filepath.Join(logs, "worker.log"), 90),
	}
}

// plist is a launchd.plist(5). patience is how many seconds the program has to end.
func plist(label string, args []string, env map[string]string, log string, patience int) string {
	var b strings.Builder
	text := func(s string) string {
		var escaped bytes.Buffer
		_ = xml.EscapeText(&escaped, []byte(s)) // a buffer takes everything
		return escaped.String()
	}
	b.WriteString(xml.Header + plistMark + "\n" +
		`<!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">` + "\n" +
		`<plist version="1.0">` + "\n<dict>\n")
	str := func(key, value string) { fmt.Fprintf(&b, "\t<key>%s</key>\n\t<string>%s</string>\n", key, text(value)) }
	str("Label", label)
	b.WriteString("\t<key>ProgramArguments</key>\n\t<array>\n")
	for _, arg := range args {
		fmt.Fprintf(&b, "\t\t<string>%s</string>\n", text(arg))
	}
	b.WriteString("\t</array>\n\t<key>EnvironmentVariables</key>\n\t<dict>\n")
	for _, name := range []string{"PATH", "STINT_URL"} {
		if value, ok := env[name]; ok {
			fmt.Fprintf(&b, "\t\t<key>%s</key>\n\t\t<string>%s</string>\n", name, text(value))
		}
	}
	b.WriteString("\t</dict>\n\t<key>RunAtLoad</key>\n\t<true/>\n\t<key>KeepAlive</key>\n\t<true/>\n")
	fmt.Fprintf(&b, "\t<key>ExitTimeOut</key>\n\t<integer>%d</integer>\n\t<key>Umask</key>\n\t<integer>63</integer>\n", patience) // 077
	str("ProcessType", "Background")
	str("StandardOutPath", log)
	str("StandardErrorPath", log)
	b.WriteString("</dict>\n</plist>\n")
	return b.String()
}

// launchd is the person's own service manager.
type launchd struct {
	c    *cli
	what string
}

// places are where the agents' files and their logs are.
func (d launchd) places() (agents, logs string, err error) {
	home, err := os.UserHomeDir()
	return filepath.Join(home, "Library", "LaunchAgents"), filepath.Join(home, "Library", "Logs", "stint"), err
}

func (d launchd) domain() string { return "gui/" + strconv.Itoa(os.Getuid()) }

func (d launchd) run(ctx context.Context, args ...string) error {
	path, err := exec.LookPath("launchctl")
	if err != nil {
		return &problem{code: exitFailed, what: d.what, why: "this machine has no launchctl", next: "have your system's own supervisor start: stint serve, and stint worker run"}
	}
	cmd := exec.CommandContext(ctx, path, args...)
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = d.c.out, &said
	if err := cmd.Run(); err != nil {
		return &problem{code: exitFailed, what: d.what, why: "launchctl " + args[0] + ": " + api.Plain(errors.Join(err, errors.New(strings.TrimSpace(said.String()))))}
	}
	return nil
}

// file is an agent's file; one that is there and isn't ours is refused.
func (d launchd) file(name string) (path string, there bool, err error) {
	agents, _, err := d.places()
	if err != nil {
		return "", false, err
	}
	path = filepath.Join(agents, name+".plist")
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return path, false, nil
	}
	if err == nil && !strings.Contains(string(text), plistMark) {
		err = &problem{code: exitConflict, what: d.what, why: path + " is there already, and not made by this command", next: "move it away first"}
	}
	return path, true, err
}

// installOrPrint installs, or shows what would be written.
func (d launchd) installOrPrint(ctx context.Context, s service, print bool) error {
	if !print {
		return d.install(ctx, s)
	}
	_, logs, err := d.places()
	if err != nil {
		return &problem{code: exitFailed, what: d.what, why: api.Plain(err)}
	}
	for _, name := range agentNames {
		if err := d.c.say("%s", s.plists(d.c.env("PATH"), logs)[name]); err != nil {
			return err
		}
	}
	return nil
}

func (d launchd) install(ctx context.Context, s service) error {
	agents, logs, err := d.places()
	if err == nil {
		err = errors.Join(os.MkdirAll(agents, 0o755), os.MkdirAll(logs, 0o700)) //nolint:gosec // as the system's own
	}
	if err != nil {
		return &problem{code: exitFailed, what: d.what, why: api.Plain(err)}
	}
	for _, name := range agentNames {
		if _, _, err := d.file(name); err != nil {
			return err
		}
	}
	for _, name := range agentNames {
		path, there, err := d.file(name)
		if err != nil {
			return err
		}
		if there {
			_ = d.run(ctx, "bootout", d.domain()+"/"+name) // it may not be running
		}
		if err := os.WriteFile(path, []byte(s.plists(d.c.env("PATH"), logs)[name]), 0o644); err != nil { //nolint:gosec // as the system's own
			return &problem{code: exitFailed, what: d.what, why: api.Plain(err)}
		}
		if err := d.run(ctx, "bootstrap", d.domain(), path); err != nil {
			return err
		}
	}
	return d.c.done(map[string]any{"agents": agentNames, "url": "http://" + s.addr}, serverAgent, "Stint runs at http://%s and starts when you sign in. Its log: stint service logs", s.addr)
}

func (d launchd) uninstall(ctx context.Context) error {
	var removed []string
	for _, name := range []string{workerAgent, serverAgent} {
		path, there, err := d.file(name)
		if err != nil {
			return err
		}
		if !there {
			continue
		}
		_ = d.run(ctx, "bootout", d.domain()+"/"+name) // it may not be running
		if err := os.Remove(path); err != nil {
			return &problem{code: exitFailed, what: d.what, why: api.Plain(err)}
		}
		removed = append(removed, name)
	}
	if len(removed) == 0 {
		return &problem{code: exitNotFound, what: d.what, why: "no service is installed", next: "stint service install"}
	}
	return d.c.done(map[string]any{"removed": removed}, serverAgent, "Removed the service. The data stay where they are.")
}

func (d launchd) status(ctx context.Context) error {
	for _, name := range agentNames {
		if err := d.run(ctx, "print", d.domain()+"/"+name); err != nil {
			return err
		}
	}
	return nil
}

func (d launchd) logs(ctx context.Context, lines int, follow bool) error {
	_, logs, err := d.places()
	if err != nil {
		return &problem{code: exitFailed, what: d.what, why: api.Plain(err)}
	}
	args := []string{"-n", strconv.Itoa(lines)}
	if follow {
		args = append(args, "-F")
	}
	cmd := exec.CommandContext(ctx, "tail", append(args, filepath.Join(logs, "server.log"), filepath.Join(logs, "worker.log"))...)
	cmd.Stdout, cmd.Stderr = d.c.out, d.c.err
	if err := cmd.Run(); err != nil && ctx.Err() == nil {
		return &problem{code: exitFailed, what: d.what, why: api.Plain(err)}
	}
	return nil
}
