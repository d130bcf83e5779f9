package observe

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// Config is where and how to push. It is read from the variables that OpenTelemetry defines for every language
// (https://opentelemetry.io/docs/languages/sdk-configuration/).
type Config struct {
	Traces, Metrics   target        // off if their URL is empty
	Compress          bool          // gzip the bodies
	Timeout           time.Duration // of one push
	TraceDelay        time.Duration // from a span's end to its push
	MetricDelay       time.Duration // from a change to its push
	Service           string        // service.name; "" = the function's name
	Resource          map[string]string
	Sampler           sampler
	QueueSize, Batch  int // spans
	ServiceInstanceID string
}

type target struct {
	URL     string
	Headers http.Header
}

// Defaults. The two delays are shorter than OpenTelemetry's, so that a call is reported well before its instance may
// sleep.
const (
	defaultTimeout     = 10 * time.Second
	defaultTraceDelay  = 1 * time.Second
	defaultMetricDelay = 10 * time.Second
	defaultQueue       = 2048
	defaultBatch       = 512
)

// FromEnv reads the settings. Without an endpoint, or with OTEL_SDK_DISABLED, nothing is pushed. The error names every
// variable with an invalid value; the Config is usable anyway.
func FromEnv(getenv func(string) string) (Config, error) {
	e := environment{getenv: getenv}
	c := Config{
		Traces: e.target("TRACES", "/v1/traces"), Metrics: e.target("METRICS", "/v1/metrics"),
		Compress:    e.oneOf("OTEL_EXPORTER_OTLP_COMPRESSION", "none", "none", "gzip") == "gzip",
		Timeout:     e.milliseconds("OTEL_EXPORTER_OTLP_TIMEOUT", defaultTimeout),
		TraceDelay:  e.milliseconds("OTEL_BSP_SCHEDULE_DELAY", defaultTraceDelay),
		MetricDelay: e.milliseconds("OTEL_METRIC_EXPORT_INTERVAL", defaultMetricDelay),
		Service:     getenv("OTEL_SERVICE_NAME"),
		Resource:    e.pairs("OTEL_RESOURCE_ATTRIBUTES"),
		Sampler:     e.sampler(),
		QueueSize:   e.number("OTEL_BSP_MAX_QUEUE_SIZE", defaultQueue),
		Batch:       e.number("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", defaultBatch),
	}
	if c.Service == "" {
		c.Service = c.Resource["service.name"]
	}
	delete(c.Resource, "service.name")
	if e.oneOf("OTEL_SDK_DISABLED", "false", "false", "true") == "true" {
		c.Traces.URL, c.Metrics.URL = "", ""
	}
	if getenv("OTEL_EXPORTER_OTLP_PROTOCOL") == "grpc" {
		e.fault("OTEL_EXPORTER_OTLP_PROTOCOL", "only http/json is spoken here")
		c.Traces.URL, c.Metrics.URL = "", ""
	}
	return c, errors.Join(e.faults...)
}

type environment struct {
	getenv func(string) string
	faults []error
}

func (e *environment) fault(name, format string, args ...any) {
	e.faults = append(e.faults, fmt.Errorf("%s: %s", name, fmt.Sprintf(format, args...)))
}

// target reads the URL of one signal: its own endpoint unchanged, or the common one with the path added.
func (e *environment) target(signal, path string) target {
	own, name := "OTEL_EXPORTER_OTLP_"+signal+"_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT"
	address := e.getenv(own)
	if address != "" {
		name = own
	} else if address = e.getenv(name); address != "" {
		address = strings.TrimSuffix(address, "/") + path
	}
	if exporter := e.oneOf("OTEL_"+signal+"_EXPORTER", "otlp", "otlp", "none"); address == "" || exporter == "none" {
		return target{}
	}
	if u, err := url.Parse(address); err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https") {
		e.fault(name, "is no http or https address")
		return target{}
	}
	headers := "OTEL_EXPORTER_OTLP_" + signal + "_HEADERS"
	if e.getenv(headers) == "" {
		headers = "OTEL_EXPORTER_OTLP_HEADERS"
	}
	t := target{URL: address, Headers: http.Header{}}
	for key, value := range e.pairs(headers) {
		t.Headers.Set(key, value)
	}
	return t
}

// pairs reads key=value,key=value with percent-encoded values, as W3C Baggage writes them.
func (e *environment) pairs(name string) map[string]string {
	pairs := map[string]string{}
	for part := range strings.SplitSeq(e.getenv(name), ",") {
		if strings.TrimSpace(part) == "" {
			continue
		}
		key, value, ok := strings.Cut(part, "=")
		value, err := url.PathUnescape(strings.TrimSpace(value))
		if key = strings.TrimSpace(key); !ok || key == "" || err != nil {
			e.fault(name, "is not a list of key=value") // without the value, which may be a secret
			continue
		}
		pairs[key] = value
	}
	return pairs
}

func (e *environment) milliseconds(name string, fallback time.Duration) time.Duration {
	return time.Duration(e.number(name, int(fallback/time.Millisecond))) * time.Millisecond
}

func (e *environment) number(name string, fallback int) int {
	text := e.getenv(name)
	if text == "" {
		return fallback
	}
	n, err := strconv.Atoi(text)
	if err != nil || n <= 0 {
		e.fault(name, "%q is not a number above 0", text)
		return fallback
	}
	return n
}

func (e *environment) oneOf(name, fallback string, allowed ...string) string {
	text := strings.ToLower(cmp.Or(e.getenv(name), fallback))
	for _, a := range allowed {
		if text == a {
			return a
		}
	}
	e.fault(name, "%q is not one of %s", text, strings.Join(allowed, ", "))
	return fallback
}
