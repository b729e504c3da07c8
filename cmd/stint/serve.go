package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"stint/server/hooks"
)

func (c *cli) serveCommand() *cobra.Command {
	var f serverFlags
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Run the server alone; workers run elsewhere",
		Long: "Runs the server in the foreground until it is interrupted, and prints its URL on\n" +
			"one line when it is ready. It runs no agents: stint worker run does.",
		Example: "stint serve\nstint serve --addr 0.0.0.0:7717 --base-url https://stint.example.com \\\n    --trusted-proxy 10.0.0.0/8",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			log, err := c.newLog(slog.LevelInfo)
			if err != nil {
				return err
			}
			k, err := c.open(cmd.Context(), f, log)
			if err != nil {
				return explain("cannot start the server", err, "stint serve --help")
			}
			return c.serve(cmd.Context(), k, func(ctx context.Context) error { return c.offerSetUp(ctx, k) })
		},
	}
	f.add(cmd.Flags())
	return cmd
}

func (f *serverFlags) add(flags *pflag.FlagSet) {
	flags.SortFlags = false
	flags.StringVar(&f.addr, "addr", "", "listen on this `HOST:PORT`; port 0 is any\n(STINT_ADDR; else "+defaultAddr+")")
	flags.StringVar(&f.baseURL, "base-url", "", "the https `URL` of the proxy through which other machines\nreach it, its path included (STINT_BASE_URL)")
	flags.StringSliceVar(&f.hosts, "allowed-host", nil, "a further `HOST` name that is its own; repeat for more\n(STINT_ALLOWED_HOSTS)")
	flags.StringSliceVar(&f.proxies, "trusted-proxy", nil, "an `ADDRESS` or network whose X-Forwarded-For is\nbelieved; repeat for more (STINT_TRUSTED_PROXIES)")
	flags.BoolVar(&f.inside, "webhooks-inside", false, "let webhooks send to this machine and its networks, without\nhttps (STINT_WEBHOOKS_INSIDE)")
	flags.StringVar(&f.metricsAddr, "metrics-addr", "", "serve /metrics for Prometheus on this loopback `HOST:PORT`,\nto whoever asks there (STINT_METRICS_ADDR)")
	f.provider.add(flags)
	flags.BoolVar(&f.registers, "register-programs", false, "let programs register themselves, so that people can sign\nthem in (STINT_REGISTER_PROGRAMS)")
	f.backup.add(flags)
	f.retention.add(flags)
	flags.BoolVar(&f.force, "force", false, "use a data directory on a network file system")
}

// How long what runs beside the server may take to end while the server still answers it, and
// how much of that a command has between the interrupt and its end. The rest of the five
// seconds is for the server and the store.
const (
	tenantPatience = 3500 * time.Millisecond
	drainGrace     = 1500 * time.Millisecond
)

// serve runs the server, the engine's loops and a tenant that calls the server, until ctx
// ends. The tenant ends first, so that it can report; then the server, the loops and the
// store. A store that can't write says so and retries by itself (contract 14).
func (c *cli) serve(ctx context.Context, k *coordinator, tenant func(context.Context) error) error {
	running, end := context.WithCancelCause(ctx)
	defer end(nil)
	house := context.WithoutCancel(ctx) // not ended by the signal: it ends in its own order
	serving, endServing := context.WithCancel(house)
	defer endServing()
	looping, endLooping := context.WithCancel(house)
	defer endLooping()

	part := func(name string, run func() error) <-chan error {
		done := make(chan error, 1)
		go func() {
			err := run()
			if err != nil {
				err = fmt.Errorf("%s: %w", name, err)
				end(err)
			}
			done <- err
		}()
		return done
	}
	loops := part("the scheduler", func() error { return k.engine.Run(looping) })
	forgetting := part("the accounts", func() error { k.accounts.Run(looping); return nil })
	sender := hooks.New(k.engine, k.hooks, strings.TrimRight(k.browserURL(), "/"), builtFrom().Version, k.log)
	sending := part("the webhooks", func() error { sender.Run(looping); return nil })
	measuring := part("the metrics", func() error { return k.serveMetrics(looping) })
	bounding := part("the memory", func() error { boundMemory(looping); return nil })
	srv := k.newServer()
	served := part("the server", func() error { return srv.Serve(serving, k.ln) })
	watching := part("the watchdog", func() error { return k.watchdog(looping) })
	if err := c.announce(k); err != nil {
		end(err)
	}
	k.tellSupervisor(daemon.SdNotifyReady)
	guest := part("the worker", func() error { return tenant(running) })

	<-running.Done()
	k.tellSupervisor(daemon.SdNotifyStopping)
	cause := context.Cause(running)
	errs := []error{await(guest, tenantPatience)}
	endServing()
	errs = append(errs, <-served)
	endLooping()
	errs = append(errs, <-loops, <-forgetting, <-sending, <-measuring, <-watching, <-bounding)
	errs = append(errs, k.close())
	err := errors.Join(errs...)
	if ctx.Err() == nil && err == nil {
		err = cause
	}
	if err != nil {
		return explain("the server ended", err, "stint status")
	}
	return nil
}

// await waits for a part to end, but not for ever: guardians watch its processes and end them
// when this process is gone.
func await(done <-chan error, patience time.Duration) error {
	select {
	case err := <-done:
		return err
	case <-time.After(patience):
		return nil
	}
}
