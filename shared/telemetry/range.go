package telemetry

import (
	"context"
	"encoding/json"
	"net/url"
	"strconv"
	"time"

	"github.com/littoral-project/littoral/shared/problem"
)

// MaxPoints is the maximum number of steps of one range query: Prometheus' own limit.
const MaxPoints = 11_000

// Series is one element of a range: its values at those steps at which it has one.
type Series struct {
	Labels map[string]string
	Points []Point
}

// Point is a value at an instant.
type Point struct {
	At    time.Time
	Value float64 // may be NaN or infinite
}

// QueryRange evaluates a query at each step from one instant to another. It returns the same errors as Query.
func (c *Client) QueryRange(ctx context.Context, query string, from, to time.Time, step time.Duration) ([]Series, error) {
	seconds := func(ms int64) string { return strconv.FormatFloat(float64(ms)/1000, 'f', 3, 64) }
	r, err := c.ask(ctx, c.queryRange, "matrix", url.Values{
		"query": {query}, "start": {seconds(from.UnixMilli())}, "end": {seconds(to.UnixMilli())},
		"step": {seconds(step.Milliseconds())},
	}, nil)
	if err != nil {
		return nil, err
	}
	return matrix(r.result)
}

func matrix(raw []byte) ([]Series, error) {
	var elements []struct {
		Metric map[string]string    `json:"metric"`
		Values [][2]json.RawMessage `json:"values"`
	}
	if err := json.Unmarshal(raw, &elements); err != nil {
		return nil, problem.Wrap(problem.Unavailable, err, "the telemetry store answered what is no matrix")
	}
	list := make([]Series, len(elements))
	for i, e := range elements {
		list[i] = Series{Labels: e.Metric, Points: make([]Point, len(e.Values))}
		for j, v := range e.Values {
			var at float64
			if err := json.Unmarshal(v[0], &at); err != nil {
				return nil, problem.Wrap(problem.Unavailable, err, "the telemetry store answered a sample without instant")
			}
			var text string
			_ = json.Unmarshal(v[1], &text) // anything but text is no value
			value, err := number(text)
			if err != nil {
				return nil, err
			}
			list[i].Points[j] = Point{At: time.UnixMilli(int64(at*1000 + 0.5)).UTC(), Value: value}
		}
	}
	return list, nil
}
