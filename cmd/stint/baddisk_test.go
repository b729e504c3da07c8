package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"testing"

	"stint/db"
	"stint/db/dbtest"
)

// mainOnBadDisk is main on a disk whose syncs fail from SIGUSR1 on, until the
// process has restarted itself.
func mainOnBadDisk() {
	if err := db.UseOFDLocks(); err != nil {
		panic(err)
	}
	c := newCLI()
	if c.env(restartedEnv) == "" {
		disk := dbtest.NewDisk(outsideTest{})
		c.openStore = func(ctx context.Context, o db.Options) (*db.Store, error) {
			o.Unsafe.VFS = disk.VFS()
			return db.Open(ctx, o)
		}
		breaks := make(chan os.Signal, 1)
		signal.Notify(breaks, syscall.SIGUSR1)
		go func() { <-breaks; disk.FailSyncs(true) }()
	}
	os.Exit(int(run(c, os.Args[1:])))
}

// outsideTest lets a process that a test started use what tests use.
type outsideTest struct{ testing.TB }

func (outsideTest) Helper()        {}
func (outsideTest) Cleanup(func()) {}
func (outsideTest) Fatalf(format string, args ...any) {
	panic(fmt.Sprintf(format, args...))
}
func (outsideTest) Fatal(args ...any) { panic(fmt.Sprint(args...)) }
