package main

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"time"

	"stint/api"
	"stint/server"
)

// checkMetricsAddr refuses an address for metrics that other machines could reach: whoever
// connects there is asked for nothing.
func checkMetricsAddr(addr string) error {
	if addr == "" {
		return nil
	}
	if err := server.CheckAddr(addr, server.Public{}); err != nil {
		return usage("cannot serve metrics on "+addr, "--metrics-addr: it is a loopback address such as 127.0.0.1:9717; from other machines /metrics of the server itself is read, with STINT_METRICS_TOKEN", "stint serve --metrics-addr 127.0.0.1:9717")
	}
	return nil
}

// serveMetrics answers on the listener of their own until ctx ends.
func (k *coordinator) serveMetrics(ctx context.Context) error {
	if k.metricsLn == nil {
		<-ctx.Done()
		return nil
	}
	hs := &http.Server{
		Handler:           server.MetricsAlone(k.metrics.Handler(k.engine, k.log)),
		ReadHeaderTimeout: 5 * time.Second,
		WriteTimeout:      30 * time.Second,
		ErrorLog:          slog.NewLogLogger(k.log.Handler(), slog.LevelDebug),
	}
	stop := context.AfterFunc(ctx, func() { _ = hs.Close() })
	defer stop()
	if err := hs.Serve(k.metricsLn); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// listenForMetrics takes the address before anything runs, so that one in use is told at once.
func (k *coordinator) listenForMetrics(ctx context.Context, addr string) (err error) {
	if addr == "" {
		return nil
	}
	if k.metricsLn, err = new(net.ListenConfig).Listen(ctx, "tcp", addr); err != nil {
		return &problem{code: exitFailed, what: "cannot serve metrics on " + addr, why: api.Plain(err), next: "choose another with --metrics-addr 127.0.0.1:PORT"}
	}
	return nil
}
