package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"runtime"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/spf13/cobra"

	"stint/db"
	"stint/engine"
	"stint/worker"
)

// cli is one invocation of the command line: its streams, environment and global flags. Data
// goes to out, words for people go to err (ux: stdout is data).
type cli struct {
	in  io.Reader
	out io.Writer
	err io.Writer
	env func(string) string
	now func() time.Time

	goos string // runtime.GOOS

	// Replaced by tests: they break the disk and shorten the clocks.
	openStore     func(context.Context, db.Options) (*db.Store, error) // db.Open
	engineConfig  func() engine.Config                                 // engine.DefaultConfig
	freeBytes     func(path string) (int64, error)                     // [db.FreeBytes]
	workerOptions func() worker.Options                                // none: what up's worker has besides its place

	flags struct {
		json    bool
		quiet   bool
		color   string
		dataDir string

		workspace string
	}
	file        settingsFile
	fromOutside func(string) string // env without the file; nil = env
	ran         *cobra.Command      // the command that the arguments named; nil until it has ended

	tty     bool   // out is a terminal
	talks   bool   // err is a terminal
	outLook styles // of out
	errLook styles // of err
}

// newCLI is the invocation that the operating system made.
func newCLI() *cli {
	c := &cli{in: os.Stdin, out: os.Stdout, err: os.Stderr, env: os.Getenv, now: time.Now, goos: runtime.GOOS}
	c.openStore, c.engineConfig, c.freeBytes = db.Open, engine.DefaultConfig, db.FreeBytes
	c.workerOptions = func() worker.Options { return worker.Options{} }
	c.flags.color = colorAuto
	c.look()
	return c
}

// look decides how both streams are formatted; once before the flags are read, so that errors
// in them look right too, and once after.
func (c *cli) look() {
	c.tty, c.talks = isTerminal(c.out), isTerminal(c.err)
	c.outLook = styles{wantsColor(c.flags.color, c.tty, c.env)}
	c.errLook = styles{wantsColor(c.flags.color, c.talks, c.env)}
}

// ready checks the global flags before any command runs.
func (c *cli) ready(cmd *cobra.Command, _ []string) error {
	switch c.flags.color {
	case colorAuto, colorAlways, colorNever:
	default:
		return usage("cannot use --color "+c.flags.color, "it is auto, always or never", "stint --color never …")
	}
	if c.flags.json && c.flags.quiet {
		return usage("cannot use --json and --quiet together", "one prints whole documents, the other ids alone", "leave one out")
	}
	c.look()
	if err := c.useSettings(); err != nil {
		return err
	}
	return c.setFlags(cmd)
}

// hint tells a person something that is not data.
func (c *cli) hint(format string, args ...any) {
	fmt.Fprintf(c.err, format+"\n", args...)
}

// say prints a line of data.
func (c *cli) say(format string, args ...any) error {
	_, err := fmt.Fprintf(c.out, format+"\n", args...)
	return err
}

// document prints v as the one JSON document of a command, in the shape of the
// REST interface: indented for people, on one line for programs.
func (c *cli) document(v any) error {
	opts := []json.Options{json.Deterministic(true)}
	if c.tty {
		opts = append(opts, jsontext.WithIndent("  "))
	}
	if err := json.MarshalWrite(c.out, v, opts...); err != nil {
		return err
	}
	_, err := io.WriteString(c.out, "\n")
	return err
}

// line prints v as one line of a stream of JSON documents.
func (c *cli) line(v any) error {
	if err := json.MarshalWrite(c.out, v, json.Deterministic(true)); err != nil {
		return err
	}
	_, err := io.WriteString(c.out, "\n")
	return err
}

// done is show for a change: people are told of it in a sentence, which is not data.
func (c *cli) done(doc any, id, format string, args ...any) error {
	return c.show(doc, id, func() error {
		c.hint(format, args...)
		return nil
	})
}

// show prints one thing as the flags ask: its JSON, its id, or formatted for people.
func (c *cli) show(doc any, id string, people func() error) error {
	switch {
	case c.flags.json:
		return c.document(doc)
	case c.flags.quiet:
		return c.say("%s", id)
	}
	return people()
}
