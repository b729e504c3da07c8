// Command stint is the coordinator, the worker and the command line in one binary.
//
// It has wiring, flags, output and exit codes, and knows no rule of the product: `up` and
// `serve` put store, engine, server and worker together, and every other command is a caller
// of the REST interface like any other.
package main

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"slices"
	"syscall"
	_ "time/tzdata" // the reader's zone on machines without zone files

	"stint/api"
	"stint/db"
	"stint/worker/agent"
	"stint/worker/proc"
)

func main() {
	proc.GuardianMain() // does not return in the guardian of an agent's processes
	agent.HookMain()    // nor where an agent asks before it uses a tool
	c := newCLI()
	if err := db.UseOFDLocks(); err != nil {
		os.Exit(int(c.report(&problem{code: exitFailed, what: "cannot start", why: api.Plain(err)})))
	}
	os.Exit(int(run(c, os.Args[1:])))
}

// run executes one command line and returns the process's exit code.
func run(c *cli, args []string) exit {
	ctx, stop := signal.NotifyContext(context.Background(), endings()...)
	defer stop()
	// A second signal ends the process at once, whatever the first one began. Not so a second
	// hang-up: when a terminal closes, both it and its shell send one.
	unhook := context.AfterFunc(ctx, func() {
		again := make(chan os.Signal, 1)
		signal.Notify(again, os.Interrupt, syscall.SIGTERM)
		<-again
		os.Exit(int(exitInterrupted))
	})
	defer unhook()
	root := newRoot(c)
	root.SetArgs(args)
	cmd, err := root.ExecuteContextC(ctx)
	c.ran = cmd
	var p *problem
	if errors.As(err, &p) && p.code == exitUsage && p.next == "" {
		p.next = cmd.CommandPath() + " --help"
	}
	if p != nil {
		p.sayFlags(cmd)
	}
	if err != nil && slices.Contains(args, "--json") {
		c.flags.json = true // also where an argument before it could not be read
	}
	return c.report(err)
}

// endings are the signals that end a command in good order. A closing terminal is one of them,
// except for a process that was started to outlast it, as by nohup.
func endings() []os.Signal {
	all := []os.Signal{os.Interrupt, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) {
		all = append(all, syscall.SIGHUP)
	}
	return all
}
