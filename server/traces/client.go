package traces

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strconv"
	"time"

	"go.opentelemetry.io/otel/exporters/otlp/otlptrace"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
)

// client posts spans to a collector as OTLP over HTTP asks it. OpenTelemetry's own brings the
// whole of gRPC with it, even for HTTP alone: another 1.6 MB of the program, for one POST.
type client struct {
	Settings
	http  *http.Client
	agent string
	log   *slog.Logger

	stopped context.Context // ended: nothing is sent any more
	stop    context.CancelFunc
	failing bool // the last batch was lost; only the SDK's one sender reads and writes it
}

var _ otlptrace.Client = (*client)(nil)

func newClient(s Settings, version string, log *slog.Logger) *client {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.TLSClientConfig = s.tls
	c := &client{Settings: s, agent: "stint/" + version, log: log, http: &http.Client{
		Transport: transport, Timeout: s.timeout,
		// What is in the headers is for the one address.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
	c.stopped, c.stop = context.WithCancel(context.Background())
	return c
}

// Start is part of [otlptrace.Client].
func (c *client) Start(context.Context) error { return nil }

// Stop is part of [otlptrace.Client]: it ends what is being sent.
func (c *client) Stop(context.Context) error {
	c.stop()
	c.http.CloseIdleConnections()
	return nil
}

// UploadTraces is part of [otlptrace.Client]. Spans that can't be sent are lost; the log says so
// once, and once more when it works again, without the address, which may tell too much.
func (c *client) UploadTraces(ctx context.Context, spans []*tracepb.ResourceSpans) error {
	err := c.upload(ctx, spans)
	switch {
	case c.stopped.Err() != nil:
	case err != nil && !c.failing:
		c.log.Warn("traces can't be sent and are lost; see OTEL_EXPORTER_OTLP_ENDPOINT", "error", words(err))
	case err == nil && c.failing:
		c.log.Info("traces are sent again")
	}
	c.failing = err != nil
	return nil
}

// The waits between tries, as the protocol asks for them: growing, and the server's own word
// where it has one. The SDK ends ctx after OTEL_BSP_EXPORT_TIMEOUT, 30 s by default.
const (
	firstWait = time.Second
	mostWait  = 10 * time.Second
)

func (c *client) upload(ctx context.Context, spans []*tracepb.ResourceSpans) error {
	// The request's message has the same fields as this one, by their own documentation.
	body, err := proto.Marshal(&tracepb.TracesData{ResourceSpans: spans})
	if err != nil {
		return err
	}
	if c.gzip {
		var small bytes.Buffer
		w := gzip.NewWriter(&small)
		if _, err := w.Write(body); err != nil {
			return err
		}
		if err := w.Close(); err != nil {
			return err
		}
		body = small.Bytes()
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(c.stopped, cancel)()
	for wait := firstWait; ; wait = min(2*wait, mostWait) {
		err := c.post(ctx, body)
		var status answered
		if err == nil || (errors.As(err, &status) && !status.again) {
			return err
		}
		t := time.NewTimer(max(wait, status.after))
		select {
		case <-t.C:
		case <-ctx.Done():
			t.Stop()
			return err
		}
	}
}

// answered is the error that the collector answered otherwise than it should.
type answered struct {
	status int
	again  bool          // it may be sent again
	after  time.Duration // no sooner than this
}

func (a answered) Error() string {
	return fmt.Sprintf("the collector answers with status %d", a.status)
}

// post sends one batch once.
func (c *client) post(ctx context.Context, body []byte) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url, bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header = c.headers.Clone()
	req.Header.Set("User-Agent", c.agent)
	req.Header.Set("Content-Type", "application/x-protobuf")
	if c.gzip {
		req.Header.Set("Content-Encoding", "gzip")
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	_, _ = io.CopyN(io.Discard, resp.Body, 64<<10) // so that the connection is used again
	if resp.StatusCode/100 == 2 {
		return nil
	}
	a := answered{status: resp.StatusCode}
	switch resp.StatusCode {
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		a.again = true
		if s, err := strconv.ParseInt(resp.Header.Get("Retry-After"), 10, 16); err == nil {
			a.after = time.Duration(s) * time.Second
		}
	}
	return a
}

// words is an error without addresses.
func words(err error) string {
	var status answered
	var slow interface{ Timeout() bool }
	switch {
	case errors.As(err, &status):
		return status.Error()
	case errors.As(err, &slow) && slow.Timeout():
		return "the collector doesn't answer in time"
	}
	return "the collector can't be reached"
}
