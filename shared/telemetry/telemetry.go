// Package telemetry asks a Prometheus HTTP API: Prometheus, Thanos, Mimir and what else answers /api/v1/query.
//
// It knows instant queries with vector answers, and ranges of them, and nothing else, so that a function carries none of Prometheus' own
// packages. The API is described at https://prometheus.io/docs/prometheus/latest/querying/api/.
package telemetry

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/littoral-project/littoral/shared/problem"
)

// Config is read from the environment by envconfig.
type Config struct {
	// Address is the base URL; a path in it is kept, as Mimir's /prometheus.
	Address  string `envconfig:"PROMETHEUS_ADDRESS" default:"http://prometheus:9090"`
	Token    string `envconfig:"PROMETHEUS_TOKEN"` // bearer token, optional
	User     string `envconfig:"PROMETHEUS_USER"`  // basic auth, optional; the token wins
	Password string `envconfig:"PROMETHEUS_PASSWORD"`
}

const (
	maxAnswer = 64 << 20 // bytes of one answer
	maxAtOnce = 8        // queries of one Ask that run at the same time: Prometheus runs 20 in all by default
)

// Sample is one element of an instant vector.
type Sample struct {
	Labels map[string]string
	Value  float64 // may be NaN or infinite
}

// Answer is what became of one named query.
type Answer struct {
	Samples []Sample
	Err     error // of kind Unavailable, or nil
}

// Client asks one Prometheus.
type Client struct {
	config     Config
	query      string
	queryRange string
	http       *http.Client
}

// New returns a client that has not dialled yet. The error tells what is wrong with the address.
func New(c Config, h *http.Client) (*Client, error) {
	u, err := url.Parse(c.Address)
	if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" {
		return nil, fmt.Errorf("PROMETHEUS_ADDRESS must be a URL as http://prometheus:9090")
	}
	return &Client{
		config: c, query: u.JoinPath("api/v1/query").String(), queryRange: u.JoinPath("api/v1/query_range").String(), http: h,
	}, nil
}

// Ask evaluates all named queries as of the instant at, side by side, and answers each under its name. Those that have
// not come back when the timeout or ctx ends have failed; the others count.
func (c *Client) Ask(
	ctx context.Context, queries map[string]string, at time.Time, timeout time.Duration,
) map[string]Answer {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	var (
		mu      sync.Mutex
		group   sync.WaitGroup
		answers = make(map[string]Answer, len(queries))
		slots   = make(chan struct{}, maxAtOnce)
	)
	for name, query := range queries {
		group.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			samples, err := c.Query(ctx, query, at)
			mu.Lock()
			defer mu.Unlock()
			answers[name] = Answer{samples, err}
		})
	}
	group.Wait()
	return answers
}

// Query evaluates one query as of the instant at. The error is of kind Unavailable: whatever the reason, the numbers
// cannot be had now.
func (c *Client) Query(ctx context.Context, query string, at time.Time) ([]Sample, error) {
	raw, err := c.ask(ctx, c.query, "vector", url.Values{
		"query": {query}, "time": {strconv.FormatFloat(float64(at.UnixMilli())/1000, 'f', 3, 64)},
	})
	if err != nil {
		return nil, err
	}
	return vector(raw)
}

// ask posts a form to one of the API's addresses and returns its result, which must be of the type.
func (c *Client) ask(ctx context.Context, address, resultType string, form url.Values) (json.RawMessage, error) {
	if deadline, ok := ctx.Deadline(); ok {
		// Tells Prometheus when nobody waits any longer; seconds, since it reads no "9.9s".
		left := max(time.Until(deadline), time.Millisecond)
		form.Set("timeout", strconv.FormatFloat(left.Seconds(), 'f', 3, 64))
	}
	// POST, since a query may be longer than what a proxy lets pass in a URL.
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, address, strings.NewReader(form.Encode()))
	if err != nil {
		return nil, problem.Wrap(problem.Unavailable, err, "the telemetry store cannot be asked")
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	req.Header.Set("Accept", "application/json")
	switch {
	case c.config.Token != "":
		req.Header.Set("Authorization", "Bearer "+c.config.Token)
	case c.config.User != "":
		req.SetBasicAuth(c.config.User, c.config.Password)
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, problem.Wrap(problem.Unavailable, err, "the telemetry store %s", unreachable(ctx, err))
	}
	defer func() { _ = resp.Body.Close() }()
	result, err := decode(resp, resultType)
	if err != nil && ctx.Err() != nil {
		return nil, problem.Wrap(problem.Unavailable, err, "the telemetry store %s", unreachable(ctx, err))
	}
	return result, err
}

func unreachable(ctx context.Context, err error) string {
	var timeout interface{ Timeout() bool }
	if ctx.Err() != nil || (errors.As(err, &timeout) && timeout.Timeout()) {
		return "did not answer in time"
	}
	return "cannot be reached"
}

// response is the envelope of the API; the form of the result depends on its type.
type response struct {
	Status string `json:"status"`
	Error  string `json:"error"`
	Data   struct {
		ResultType string          `json:"resultType"`
		Result     json.RawMessage `json:"result"`
	} `json:"data"`
}

// element is one sample of a vector; the value is [epoch seconds, "number as text"].
type element struct {
	Metric map[string]string  `json:"metric"`
	Value  [2]json.RawMessage `json:"value"`
}

func decode(resp *http.Response, resultType string) (json.RawMessage, error) {
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer+1))
	switch {
	case err != nil:
		return nil, problem.Wrap(problem.Unavailable, err, "the telemetry store broke off its answer")
	case len(body) > maxAnswer:
		return nil, problem.New(problem.Unavailable, "the telemetry store answered with more than %d bytes", maxAnswer)
	}
	var r response
	err = json.Unmarshal(body, &r)
	switch {
	// Prometheus says in the body what is wrong with a query; a proxy before it does not.
	case err == nil && r.Status == "error":
		return nil, problem.New(problem.Unavailable, "the telemetry store refused the query: %s", brief(r.Error))
	case resp.StatusCode/100 != 2:
		return nil, problem.New(problem.Unavailable, "the telemetry store answered %s", resp.Status)
	case err != nil || r.Status != "success":
		return nil, problem.Wrap(problem.Unavailable, err, "the telemetry store answered what is no query result")
	case r.Data.ResultType != resultType:
		return nil, problem.New(problem.Unavailable, "the query gives a %s, not a %s", brief(r.Data.ResultType), resultType)
	}
	return r.Data.Result, nil
}

func vector(raw json.RawMessage) ([]Sample, error) {
	var elements []element
	if err := json.Unmarshal(raw, &elements); err != nil {
		return nil, problem.Wrap(problem.Unavailable, err, "the telemetry store answered what is no vector")
	}
	samples := make([]Sample, len(elements))
	for i, e := range elements {
		v, err := number(e.Value[1])
		if err != nil {
			return nil, err
		}
		samples[i] = Sample{Labels: e.Metric, Value: v}
	}
	return samples, nil
}

// number reads a value, which is a number as text.
func number(raw json.RawMessage) (float64, error) {
	var text string
	if err := json.Unmarshal(raw, &text); err != nil {
		return 0, problem.Wrap(problem.Unavailable, err, "the telemetry store answered a sample without value")
	}
	v, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return 0, problem.Wrap(problem.Unavailable, err, "the telemetry store answered a value that is no number")
	}
	return v, nil
}

// brief keeps a long or hostile text from filling logs and answers.
func brief(s string) string {
	const most = 200
	if len(s) > most {
		s = s[:most] + "..."
	}
	return strings.ToValidUTF8(s, "?")
}
