package main

import (
	_ "embed"
	"fmt"
	"html/template"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
)

// The file that signs a browser in: it posts a one-time link to the server, so that the link
// is never in a process's arguments, in a URL or in a history (contract 8.1).
//
//go:embed open.html
var openPage string

var openTemplate = template.Must(template.New("open.html").Parse(openPage))

func (d dataDir) openFile() string { return filepath.Join(string(d), "open.html") }

// writeOpenFile writes the self-posting file for a one-time link. next is the
// page that it leads to, "" for the first one.
func (d dataDir) writeOpenFile(url, link, next string) (path string, err error) {
	var b strings.Builder
	if err := openTemplate.Execute(&b, struct{ Action, Link, Next string }{url + "/signin", link, next}); err != nil {
		return "", fmt.Errorf("write the page that signs in: %w", err)
	}
	if err := writePrivate(d.openFile(), []byte(b.String())); err != nil {
		return "", fmt.Errorf("write the page that signs in: %w", err)
	}
	return d.openFile(), nil
}

// opener is the program that opens a file in the person's browser, or "" where there is no
// browser.
func (c *cli) opener() string {
	name := "xdg-open"
	switch runtime.GOOS {
	case "darwin":
		if c.env("SSH_CONNECTION") != "" {
			return ""
		}
		name = "open"
	default:
		if c.env("DISPLAY") == "" && c.env("WAYLAND_DISPLAY") == "" {
			return ""
		}
	}
	path, err := exec.LookPath(name)
	if err != nil {
		return ""
	}
	return path
}

// show opens a file in the browser and does not wait for it to be closed.
func show(opener, file string) error {
	cmd := exec.Command(opener, file) //nolint:noctx // it outlives this command
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("open the browser with %s: %w", opener, err)
	}
	go func() { _ = cmd.Wait() }() // only so that no zombie remains
	return nil
}
