package main

import (
	"context"
	"fmt"
	"net"
	"time"

	"github.com/coreos/go-systemd/v22/activation"
	"github.com/coreos/go-systemd/v22/daemon"

	"stint/server"
)

// What a supervisor such as systemd and this program tell each other: sd_listen_fds(3) and
// sd_notify(3). Without one all of it does nothing.

// listen takes the listener that a supervisor holds open for us, else it listens itself. The
// supervisor's stays open while one process is replaced by the next, so that whoever connects
// meanwhile waits and isn't refused.
func listen(ctx context.Context, addr string, public server.Public) (net.Listener, error) {
	given, err := activation.Listeners()
	if err != nil {
		return nil, &problem{code: exitFailed, what: "cannot take over the supervisor's socket", why: err.Error(), next: "stint service install makes units that fit"}
	}
	switch len(given) {
	case 0:
		ln, err := new(net.ListenConfig).Listen(ctx, "tcp", addr)
		if err != nil {
			return nil, cannotListen(addr, err)
		}
		return ln, nil
	case 1:
		if err := server.CheckAddr(given[0].Addr().String(), public); err != nil {
			return nil, usage("cannot take over the supervisor's socket", err.Error(), "change ListenStream of stint.socket")
		}
		return given[0], nil
	}
	return nil, usage("cannot take over the supervisor's sockets", fmt.Sprintf("there are %d, and one is needed", len(given)), "stint service install makes units that fit")
}

// tellSupervisor tells it something; that there is none is fine.
func (k *coordinator) tellSupervisor(state string) {
	if _, err := daemon.SdNotify(false, state); err != nil {
		k.log.Warn("the supervisor can't be told how things stand", "error", err)
	}
}

// watchdog tells the supervisor at its intervals that the store still answers, until ctx ends.
// A process that hangs stays silent, and is started again.
func (k *coordinator) watchdog(ctx context.Context) error {
	within, err := daemon.SdWatchdogEnabled(false)
	if err != nil {
		k.log.Warn("the supervisor's watchdog can't be served", "error", err)
	}
	if err != nil || within <= 0 {
		<-ctx.Done()
		return nil
	}
	tick := time.NewTicker(within / 3)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
			asked, cancel := context.WithTimeout(ctx, within/3)
			_, err := k.store.Size(asked)
			cancel()
			if err == nil {
				k.tellSupervisor(daemon.SdNotifyWatchdog)
			} else if ctx.Err() == nil {
				k.log.Error("the store doesn't answer, so the supervisor's watchdog isn't told that it does", "error", err)
			}
		}
	}
}
