package traces

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/net/http/httpguts"
)

// Settings say where traces go, and how.
type Settings struct {
	url     string
	headers http.Header
	timeout time.Duration // of one request
	gzip    bool
	tls     *tls.Config // nil = the machine's
}

const (
	defaultTimeout = 10 * time.Second // OpenTelemetry's
	general        = "OTEL_EXPORTER_OTLP_"
	special        = "OTEL_EXPORTER_OTLP_TRACES_" // wins over the general one
)

// FromEnv reads the variables that OpenTelemetry has for exporters (opentelemetry.io, OTLP
// Exporter Configuration); nil and no error is "no traces are wanted". An error names the
// variable and what it takes, and no value: it may be a secret. What is sampled, gathered and
// said of the process (OTEL_TRACES_SAMPLER, OTEL_BSP_…, OTEL_SERVICE_NAME,
// OTEL_RESOURCE_ATTRIBUTES) the SDK reads itself, without a word on what it can't use, or with a
// panic; the first two are checked here.
func FromEnv(env func(string) string) (*Settings, error) {
	if strings.EqualFold(env("OTEL_SDK_DISABLED"), "true") {
		return nil, nil
	}
	if env(general+"ENDPOINT") == "" && env(special+"ENDPOINT") == "" {
		return nil, nil
	}
	switch env("OTEL_TRACES_EXPORTER") {
	case "", "otlp":
	case "none":
		return nil, nil
	default:
		return nil, fmt.Errorf("OTEL_TRACES_EXPORTER is otlp or none here")
	}
	r := reader{env: env}
	s := &Settings{url: r.endpoint(), headers: r.headers(), timeout: r.timeout(), tls: r.trust()}
	if value, name := r.get("PROTOCOL"); value != "" && value != "http/protobuf" {
		r.fail(name, "is http/protobuf here, the only one that is spoken")
	}
	switch value, name := r.get("COMPRESSION"); value {
	case "", "none":
	case "gzip":
		s.gzip = true
	default:
		r.fail(name, "is gzip or none")
	}
	r.sampling()
	r.batches()
	return s, r.err
}

// reader keeps the first error.
type reader struct {
	env func(string) string
	err error
}

// get is the value of a setting, and the variable that has it.
func (r *reader) get(what string) (value, name string) {
	if value := r.env(special + what); value != "" {
		return value, special + what
	}
	return r.env(general + what), general + what
}

func (r *reader) fail(name, mend string) {
	if r.err == nil {
		r.err = fmt.Errorf("%s %s", name, mend)
	}
}

// endpoint is the address that is posted to: that for traces as it stands, the general one with
// the path of traces behind its own.
func (r *reader) endpoint() string {
	value, name := r.get("ENDPOINT")
	u, err := url.Parse(value)
	if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" {
		r.fail(name, "is an address such as http://127.0.0.1:4318")
		return ""
	}
	if name == general+"ENDPOINT" {
		u = u.JoinPath("v1", "traces")
	}
	return u.String()
}

func (r *reader) headers() http.Header {
	value, name := r.get("HEADERS")
	out := http.Header{}
	for pair := range strings.SplitSeq(value, ",") {
		if strings.TrimSpace(pair) == "" {
			continue
		}
		key, text, found := strings.Cut(pair, "=")
		text, err := url.PathUnescape(text)
		key, text = strings.TrimSpace(key), strings.TrimSpace(text)
		if !found || err != nil || !httpguts.ValidHeaderFieldName(key) || !httpguts.ValidHeaderFieldValue(text) {
			r.fail(name, "is a list of headers such as name=value,other=value, its values percent-encoded")
			return out
		}
		out.Set(key, text)
	}
	return out
}

func (r *reader) timeout() time.Duration {
	value, name := r.get("TIMEOUT")
	if value == "" {
		return defaultTimeout
	}
	ms, err := strconv.ParseInt(value, 10, 32)
	if err != nil || ms <= 0 {
		r.fail(name, "is a number of milliseconds such as 10000")
	}
	return time.Duration(ms) * time.Millisecond
}

// trust reads whose certificate is believed, and the one that is shown.
func (r *reader) trust() *tls.Config {
	authority, authorityName := r.get("CERTIFICATE")
	shown, shownName := r.get("CLIENT_CERTIFICATE")
	key, _ := r.get("CLIENT_KEY")
	if authority == "" && shown == "" {
		return nil
	}
	out := &tls.Config{MinVersion: tls.VersionTLS12}
	if authority != "" {
		pem, err := os.ReadFile(authority)
		out.RootCAs = x509.NewCertPool()
		if err != nil || !out.RootCAs.AppendCertsFromPEM(pem) {
			r.fail(authorityName, "is a file with certificates in PEM")
		}
	}
	if shown != "" {
		pair, err := tls.LoadX509KeyPair(shown, key)
		if err != nil {
			r.fail(shownName, "and …_CLIENT_KEY are files with a certificate and its key in PEM")
		}
		out.Certificates = []tls.Certificate{pair}
	}
	return out
}

// sampling checks what the SDK passes over where it can't use it.
func (r *reader) sampling() {
	const sampler, arg = "OTEL_TRACES_SAMPLER", "OTEL_TRACES_SAMPLER_ARG"
	switch strings.ToLower(strings.TrimSpace(r.env(sampler))) {
	case "", "always_on", "always_off", "parentbased_always_on", "parentbased_always_off":
	case "traceidratio", "parentbased_traceidratio":
		text := strings.TrimSpace(r.env(arg))
		if share, err := strconv.ParseFloat(text, 64); text != "" && (err != nil || !(share >= 0 && share <= 1)) {
			r.fail(arg, "is a share from 0 to 1")
		}
	default:
		r.fail(sampler, "is always_on, always_off or traceidratio, each also with parentbased_ before it")
	}
}

const mostBatched = 1 << 20 // spans, and milliseconds; the SDK makes room for all of them at once

// batches checks the numbers of which the SDK makes what gathers the spans.
func (r *reader) batches() {
	for _, what := range []string{"MAX_QUEUE_SIZE", "MAX_EXPORT_BATCH_SIZE", "SCHEDULE_DELAY", "EXPORT_TIMEOUT"} {
		name := "OTEL_BSP_" + what
		text := r.env(name)
		if n, err := strconv.Atoi(text); text != "" && (err != nil || n <= 0 || n > mostBatched) {
			r.fail(name, fmt.Sprintf("is a number from 1 to %d", mostBatched))
		}
	}
}
