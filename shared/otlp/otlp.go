// Package otlp pushes present values of metrics to an OTLP receiver, in the protocol's JSON over HTTP: Prometheus with
// --web.enable-otlp-receiver, or an OpenTelemetry Collector. It holds only what gauges and counters need; traces and
// histograms of functions are package observe's.
package otlp

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"time"
)

// Sample is the present value of a series.
type Sample struct {
	Name    string
	Help    string
	Labels  map[string]string
	Value   float64
	Counter bool // it only grows, since the start of what counts
}

type (
	request struct {
		ResourceMetrics []resourceMetrics `json:"resourceMetrics"`
	}
	resourceMetrics struct {
		Resource     resource       `json:"resource"`
		ScopeMetrics []scopeMetrics `json:"scopeMetrics"`
	}
	resource struct {
		Attributes []attribute `json:"attributes"`
	}
	scopeMetrics struct {
		Metrics []*metric `json:"metrics"`
	}
	metric struct {
		Name        string `json:"name"`
		Description string `json:"description,omitempty"`
		Gauge       *data  `json:"gauge,omitempty"`
		Sum         *data  `json:"sum,omitempty"`
	}
	data struct {
		Temporality int     `json:"aggregationTemporality,omitempty"`
		Monotonic   bool    `json:"isMonotonic,omitempty"`
		Points      []point `json:"dataPoints"`
	}
	point struct {
		Attributes []attribute `json:"attributes,omitempty"`
		Time       string      `json:"timeUnixNano"` // 64-bit numbers are texts in JSON
		Value      float64     `json:"asDouble"`
	}
	attribute struct {
		Key   string `json:"key"`
		Value value  `json:"value"`
	}
	value struct {
		String string `json:"stringValue"`
	}
)

const cumulative = 2

// Encode makes one request of the samples at an instant. The resource's attributes name who sends them, such as
// service.name. Names come in order, so that the same samples give the same bytes.
func Encode(resourceAttributes map[string]string, samples []Sample, at time.Time) ([]byte, error) {
	byName := map[string]*metric{}
	nanos := strconv.FormatInt(at.UnixNano(), 10)
	for _, s := range samples {
		m := byName[s.Name]
		if m == nil {
			m = &metric{Name: s.Name, Description: s.Help}
			if s.Counter {
				m.Sum = &data{Temporality: cumulative, Monotonic: true}
			} else {
				m.Gauge = &data{}
			}
			byName[s.Name] = m
		}
		into := m.Gauge
		if into == nil {
			into = m.Sum
		}
		into.Points = append(into.Points, point{attributes(s.Labels), nanos, s.Value})
	}
	var all []*metric
	for _, name := range slices.Sorted(maps.Keys(byName)) {
		all = append(all, byName[name])
	}
	return json.Marshal(request{[]resourceMetrics{{resource{attributes(resourceAttributes)}, []scopeMetrics{{all}}}}})
}

func attributes(of map[string]string) []attribute {
	list := make([]attribute, 0, len(of))
	for _, k := range slices.Sorted(maps.Keys(of)) {
		list = append(list, attribute{k, value{of[k]}})
	}
	return list
}

// Push sends a request. A receiver that took only a part is an error that says so.
func Push(ctx context.Context, client *http.Client, url string, header http.Header, body []byte) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("push metrics: %w", err)
	}
	for k, v := range header {
		req.Header[k] = v
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := client.Do(req)
	if err != nil {
		return fmt.Errorf("push metrics: %w", err)
	}
	defer func() { _ = resp.Body.Close() }()
	answer, _ := io.ReadAll(io.LimitReader(resp.Body, 4<<10))
	if resp.StatusCode/100 != 2 {
		return fmt.Errorf("push metrics: the receiver answered %s: %.200s", resp.Status, answer)
	}
	var partial struct {
		PartialSuccess struct {
			Rejected json.RawMessage `json:"rejectedDataPoints"`
			Message  string          `json:"errorMessage"`
		} `json:"partialSuccess"`
	}
	if json.Unmarshal(answer, &partial) == nil {
		if n := string(bytes.Trim(partial.PartialSuccess.Rejected, `"`)); n != "" && n != "0" {
			return fmt.Errorf("push metrics: the receiver refused %s values: %s", n, partial.PartialSuccess.Message)
		}
	}
	return nil
}
