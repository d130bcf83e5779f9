package observe

import (
	"strconv"
	"time"
)

// The wire format: the JSON of opentelemetry/proto/collector/{trace,metrics}/v1, in which ids are hex, 64-bit numbers
// are strings and field names are in lower camel case. Only fields that are sent are listed.
type (
	tracesRequest struct {
		ResourceSpans []resourceSpans `json:"resourceSpans"`
	}
	resourceSpans struct {
		Resource   resource     `json:"resource"`
		ScopeSpans []scopeSpans `json:"scopeSpans"`
	}
	scopeSpans struct {
		Scope scope  `json:"scope"`
		Spans []span `json:"spans"`
	}
	span struct {
		TraceID    string      `json:"traceId"`
		SpanID     string      `json:"spanId"`
		TraceState string      `json:"traceState,omitempty"`
		ParentID   string      `json:"parentSpanId,omitempty"`
		Flags      uint32      `json:"flags"`
		Name       string      `json:"name"`
		Kind       kind        `json:"kind"`
		Start      nanoseconds `json:"startTimeUnixNano"`
		End        nanoseconds `json:"endTimeUnixNano"`
		Attributes []attribute `json:"attributes,omitempty"`
		Status     *status     `json:"status,omitempty"`
	}
	status struct {
		Code    int    `json:"code"`
		Message string `json:"message,omitempty"`
	}

	metricsRequest struct {
		ResourceMetrics []resourceMetrics `json:"resourceMetrics"`
	}
	resourceMetrics struct {
		Resource     resource       `json:"resource"`
		ScopeMetrics []scopeMetrics `json:"scopeMetrics"`
	}
	scopeMetrics struct {
		Scope   scope    `json:"scope"`
		Metrics []metric `json:"metrics"`
	}
	metric struct {
		Name        string     `json:"name"`
		Description string     `json:"description,omitempty"`
		Unit        string     `json:"unit"`
		Histogram   *histogram `json:"histogram,omitempty"`
		Gauge       *gauge     `json:"gauge,omitempty"`
	}
	histogram struct {
		Temporality int              `json:"aggregationTemporality"`
		Points      []histogramPoint `json:"dataPoints"`
	}
	histogramPoint struct {
		Attributes []attribute `json:"attributes,omitempty"`
		Start      nanoseconds `json:"startTimeUnixNano"`
		Time       nanoseconds `json:"timeUnixNano"`
		Count      count       `json:"count"`
		Sum        float64     `json:"sum"`
		Buckets    []count     `json:"bucketCounts"`
		Bounds     []float64   `json:"explicitBounds"`
	}
	gauge struct {
		Points []gaugePoint `json:"dataPoints"`
	}
	gaugePoint struct {
		Attributes []attribute `json:"attributes,omitempty"`
		Time       nanoseconds `json:"timeUnixNano"`
		Value      float64     `json:"asDouble"`
	}

	resource struct {
		Attributes []attribute `json:"attributes"`
	}
	scope struct {
		Name string `json:"name"`
	}
	attribute struct {
		Key   string `json:"key"`
		Value any    `json:"value"`
	}

	// partial is the answer of a collector that accepted only a part.
	partial struct {
		PartialSuccess struct {
			RejectedSpans  count  `json:"rejectedSpans"`
			RejectedPoints count  `json:"rejectedDataPoints"`
			ErrorMessage   string `json:"errorMessage"`
		} `json:"partialSuccess"`
	}
)

// kind of a span.
type kind int

const (
	serverKind   kind = 2
	clientKind   kind = 3
	consumerKind kind = 5
)

const (
	cumulative  = 2 // temporality
	statusError = 2
	sampledFlag = 1
	scopeName   = "github.com/littoral-project/littoral"
)

// nanoseconds and count are 64-bit numbers, which JSON holds as strings.
type (
	nanoseconds int64
	count       uint64
)

func (n nanoseconds) MarshalJSON() ([]byte, error) {
	return quoted(strconv.FormatInt(int64(n), 10)), nil
}

func (c count) MarshalJSON() ([]byte, error) { return quoted(strconv.FormatUint(uint64(c), 10)), nil }

// UnmarshalJSON also accepts a plain number, which some collectors send.
func (c *count) UnmarshalJSON(b []byte) error {
	if len(b) > 1 && b[0] == '"' {
		b = b[1 : len(b)-1]
	}
	n, err := strconv.ParseUint(string(b), 10, 64)
	*c = count(n)
	return err
}

func quoted(s string) []byte { return []byte(`"` + s + `"`) }

func at(t time.Time) nanoseconds { return nanoseconds(t.UnixNano()) }

// text, number and flag make attributes.
func text(key, value string) attribute {
	return attribute{key, struct {
		V string `json:"stringValue"`
	}{value}}
}

func number(key string, value int) attribute {
	return attribute{key, struct {
		V string `json:"intValue"`
	}{strconv.Itoa(value)}}
}

func flag(key string, value bool) attribute {
	return attribute{key, struct {
		V bool `json:"boolValue"`
	}{value}}
}
