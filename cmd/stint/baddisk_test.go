package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"testing"
	"time"

	"stint/db"
	"stint/db/dbtest"
)

// mainOnBadDisk is main on a disk whose syncs fail from the first write that names something doubtful after a SIGUSR1
// until the next. What the coordinator writes by itself in between may not take the failure that the script asks about.
func mainOnBadDisk() {
	if err := db.UseOFDLocks(); err != nil {
		panic(err)
	}
	c := newCLI()
	disk := dbtest.NewDisk(outsideTest{})
	c.openStore = func(ctx context.Context, o db.Options) (*db.Store, error) {
		o.Unsafe.VFS, o.Unsafe.Retry = disk.VFS(), 100*time.Millisecond
		return db.Open(ctx, o)
	}
	turns := make(chan os.Signal, 1)
	signal.Notify(turns, syscall.SIGUSR1)
	go func() {
		for {
			<-turns
			disk.FailSyncsFrom("doubtful")
			<-turns
			disk.FailSyncs(false)
		}
	}()
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
