// Package traces tells a collector of OpenTelemetry, by OTLP, of the life of each session: one
// trace for each, made from what is committed once the session has ended.
//
// No span has a prompt, an output, a path, or the name of a person, machine or worker.
package traces

import (
	"context"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace"
	"go.opentelemetry.io/otel/sdk/resource"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"stint/api"
	"stint/engine"
)

// Traces tells of sessions that ended. Neither a write nor the end of the process waits for the
// collector: what it doesn't take in time is lost.
type Traces struct {
	client   *client
	provider *sdk.TracerProvider
	tracer   trace.Tracer
	log      *slog.Logger

	ended  chan api.SessionID
	missed atomic.Int64 // sessions that found ended full

	closing chan struct{}
	reading context.Context
	giveUp  context.CancelFunc
	done    chan struct{} // nil until Start
}

const waiting = 4096 // sessions whose spans aren't made yet

// New makes what sends as s says. Version is the program's. It connects to nothing yet.
func New(ctx context.Context, s Settings, version string, log *slog.Logger) (*Traces, error) {
	// The SDK would write to standard error itself, with what stands in the variables.
	otel.SetLogger(logr.FromSlogHandler(slog.DiscardHandler))
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) {
		log.Debug("OpenTelemetry has an error", "kind", fmt.Sprintf("%T", err))
	}))
	about, err := resource.New(ctx,
		resource.WithAttributes(attribute.String("service.name", "stint"), attribute.String("service.version", version)),
		resource.WithTelemetrySDK(), resource.WithFromEnv())
	if err != nil {
		return nil, fmt.Errorf("OTEL_RESOURCE_ATTRIBUTES is a list such as deployment.environment.name=test,team=blue")
	}
	c := newClient(s, version, log)
	exporter, err := otlptrace.New(ctx, c)
	if err != nil {
		return nil, err
	}
	provider := sdk.NewTracerProvider(sdk.WithBatcher(exporter), sdk.WithResource(about))
	t := &Traces{
		client: c, provider: provider, tracer: provider.Tracer("stint", trace.WithInstrumentationVersion(version)), log: log,
		ended: make(chan api.SessionID, waiting), closing: make(chan struct{}),
	}
	t.reading, t.giveUp = context.WithCancel(context.Background())
	return t, nil
}

// Ended is told of each session that ended. It never waits.
func (t *Traces) Ended(id api.SessionID) {
	select {
	case t.ended <- id:
	default:
		if t.missed.Add(1) == 1 {
			t.log.Warn("more sessions end than traces can be made of; some have none")
		}
	}
}

// Start begins to tell of the sessions of an engine.
func (t *Traces) Start(e *engine.Engine) {
	t.done = make(chan struct{})
	go func() {
		defer close(t.done)
		for {
			select {
			case id := <-t.ended:
				t.tell(e, id)
			case <-t.closing:
				for {
					select {
					case id := <-t.ended:
						t.tell(e, id)
					default:
						return
					}
				}
			}
		}
	}()
}

// Close sends what there is, for at most so long. The engine's store must still be open.
func (t *Traces) Close(within time.Duration) {
	ctx, cancel := context.WithTimeout(context.Background(), within)
	defer cancel()
	close(t.closing)
	if t.done != nil {
		stop := context.AfterFunc(ctx, t.giveUp)
		<-t.done
		stop()
	}
	t.giveUp()
	if err := t.provider.Shutdown(ctx); err != nil {
		t.log.Warn("the last traces could not be sent before the end")
	}
	_ = t.client.Stop(ctx) // what hangs ends
}

func (t *Traces) tell(e *engine.Engine, id api.SessionID) {
	life, err := e.Life(t.reading, id)
	switch {
	case api.CodeOf(err) == api.CodeNotFound: // retention was faster
	case err != nil:
		if t.reading.Err() == nil {
			t.log.Warn("a session can't be read for its trace", "session", id, "error", api.Plain(err))
		}
	default:
		t.record(&life)
	}
}
