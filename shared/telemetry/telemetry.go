// Package telemetry queries a Prometheus HTTP API: Prometheus, Thanos, Mimir or anything else that serves
// /api/v1/query.
//
// It supports only instant and range queries, so that a function need not contain Prometheus' own packages. The API is
// described at https://prometheus.io/docs/prometheus/latest/querying/api/.
package telemetry

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/littoral-project/littoral/shared/problem"
)

// Config is read from the environment by envconfig.
type Config struct {
	// Address is the base URL; a path in it is kept, such as Mimir's /prometheus.
	Address  string `envconfig:"PROMETHEUS_ADDRESS" default:"http://prometheus:9090"`
	Token    string `envconfig:"PROMETHEUS_TOKEN"` // bearer token, optional
	User     string `envconfig:"PROMETHEUS_USER"`  // basic auth, optional; the token has precedence
	Password string `envconfig:"PROMETHEUS_PASSWORD"`
}

// Authorize sets the credentials of a request to the store.
func (c Config) Authorize(h http.Header) {
	switch {
	case c.Token != "":
		h.Set("Authorization", "Bearer "+c.Token)
	case c.User != "":
		h.Set("Authorization", "Basic "+base64.StdEncoding.EncodeToString([]byte(c.User+":"+c.Password)))
	}
}

const (
	maxAnswer = 64 << 20 // bytes in one answer
	together  = 18       // queries that AskTogether joins into one
	maxAtOnce = 8        // concurrent queries of one Ask: Prometheus runs 20 in total by default
)

// Sample is one element of an instant vector.
type Sample struct {
	Labels map[string]string
	Value  float64 // may be NaN or infinite
}

// Answer is the result of one named query.
type Answer struct {
	Samples  []Sample
	Warnings []string // of a store that still answered; of joined queries, on the first
	Err      error    // of kind Unavailable, or nil
}

// Client queries one Prometheus.
type Client struct {
	config     Config
	query      string
	queryRange string
	http       *http.Client
}

// New returns a client without connecting. The error says what is wrong with the address.
func New(c Config, h *http.Client) (*Client, error) {
	u, err := url.Parse(c.Address)
	if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" {
		return nil, fmt.Errorf("PROMETHEUS_ADDRESS must be a URL as http://prometheus:9090")
	}
	return &Client{
		config: c, query: u.JoinPath("api/v1/query").String(), queryRange: u.JoinPath("api/v1/query_range").String(), http: h,
	}, nil
}

// Ask evaluates all named queries concurrently at the instant at, and returns the answers by name. Those without an
// answer when the timeout or ctx ends have failed; the others count.
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
			answer := c.instant(ctx, query, at)
			mu.Lock()
			defer mu.Unlock()
			answers[name] = answer
		})
	}
	group.Wait()
	return answers
}

// AskTogether is Ask with fewer requests: it joins queries into one and splits the answer. If that fails, or takes more
// than half of the timeout, each query is sent by itself, so that one that cannot be answered fails alone.
func (c *Client) AskTogether(
	ctx context.Context, queries map[string]string, at time.Time, timeout time.Duration,
) map[string]Answer {
	begin := time.Now()
	answers := c.askJoined(ctx, queries, at, timeout/2)
	alone := map[string]string{}
	for name, answer := range answers {
		if answer.Err != nil {
			alone[name] = queries[name]
		}
	}
	if len(alone) > 0 {
		maps.Copy(answers, c.Ask(ctx, alone, at, timeout-time.Since(begin)))
	}
	return answers
}

// AskAll is AskTogether for who needs all answers: it fails if one of them cannot be given, or comes with a warning, and no query is
// sent again by itself.
func (c *Client) AskAll(
	ctx context.Context, queries map[string]string, at time.Time, timeout time.Duration,
) (map[string][]Sample, error) {
	all := make(map[string][]Sample, len(queries))
	for name, answer := range c.askJoined(ctx, queries, at, timeout) {
		switch {
		case answer.Err != nil:
			return nil, answer.Err
		case len(answer.Warnings) > 0:
			return nil, problem.New(problem.Unavailable, "the telemetry store warns: %s", answer.Warnings[0])
		}
		all[name] = answer.Samples
	}
	return all, nil
}

// askJoined asks queries that are joined. All of those joined into one that has failed have failed.
func (c *Client) askJoined(ctx context.Context, queries map[string]string, at time.Time, timeout time.Duration) map[string]Answer {
	names := slices.Sorted(maps.Keys(queries))
	joined := map[string]string{}
	for some := range slices.Chunk(names, together) {
		joined[some[0]] = join(some, queries)
	}
	answers := make(map[string]Answer, len(queries))
	given := c.Ask(ctx, joined, at, timeout)
	for some := range slices.Chunk(names, together) {
		answer := given[some[0]]
		for i, name := range some {
			switch {
			case answer.Err != nil:
				answers[name] = Answer{Err: answer.Err}
			case i == 0:
				answers[name] = Answer{Warnings: answer.Warnings}
			default:
				answers[name] = Answer{}
			}
		}
		for _, s := range answer.Samples {
			i, err := strconv.Atoi(s.Labels[ordinal])
			if err != nil || i >= len(some) {
				continue // samples without the label do not belong to any query
			}
			delete(s.Labels, ordinal)
			own := answers[some[i]]
			own.Samples = append(own.Samples, s)
			answers[some[i]] = own
		}
	}
	return answers
}

// ordinal is the label with the number of the joined query that a sample belongs to.
const ordinal = "littoral_query"

// join makes one query from the named ones. Pairs are joined first, then pairs of those and so on, since "or" scans all
// samples of both sides.
func join(names []string, queries map[string]string) string {
	var half func(from, to int) string
	half = func(from, to int) string {
		if to-from == 1 {
			return fmt.Sprintf(`label_replace(%s, "%s", "%d", "", "")`, queries[names[from]], ordinal, from)
		}
		middle := (from + to) / 2
		return "(" + half(from, middle) + " or " + half(middle, to) + ")"
	}
	return half(0, len(names))
}

// Query evaluates one query at the instant. The error is of kind Unavailable: the values are not available now, for
// whatever reason.
func (c *Client) Query(ctx context.Context, query string, at time.Time) ([]Sample, error) {
	answer := c.instant(ctx, query, at)
	return answer.Samples, answer.Err
}

func (c *Client) instant(ctx context.Context, query string, at time.Time) Answer {
	r, err := c.ask(ctx, c.query, "vector", url.Values{
		"query": {query}, "time": {strconv.FormatFloat(float64(at.UnixMilli())/1000, 'f', 3, 64)},
	}, nil)
	if err != nil {
		return Answer{Err: err}
	}
	samples, err := vector(r.result)
	return Answer{Samples: samples, Warnings: r.warnings, Err: err}
}

// ask posts a form to one of the API's addresses and returns the response, whose result must have the given type. If yield is not nil,
// that is a vector, whose elements are yielded while it is read, and the response has no result.
func (c *Client) ask(
	ctx context.Context, address, resultType string, form url.Values, yield func(*Row),
) (response, error) {
	// Otherwise Thanos would answer without the stores that it cannot reach, and their hosts would seem silent. Other
	// servers ignore the parameter.
	form.Set("partial_response", "false")
	if deadline, ok := ctx.Deadline(); ok {
		// Prometheus stops when nobody waits any longer. A plain number of seconds, since it cannot parse "9.9s".
		left := max(time.Until(deadline), time.Millisecond)
		form.Set("timeout", strconv.FormatFloat(left.Seconds(), 'f', 3, 64))
	}
	// POST, since a query may be longer than proxies allow in a URL.
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, address, strings.NewReader(form.Encode()))
	if err != nil {
		return response{}, problem.Wrap(problem.Unavailable, err, "the telemetry store cannot be asked")
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	req.Header.Set("Accept", "application/json")
	req.Header.Set("Accept-Encoding", "identity") // to compress megabytes and expand them takes both sides longer than to send them
	c.config.Authorize(req.Header)
	resp, err := c.http.Do(req)
	if err != nil {
		return response{}, problem.Wrap(problem.Unavailable, err, "the telemetry store %s", unreachable(ctx, err))
	}
	defer func() { _ = resp.Body.Close() }()
	r, err := decode(resp, resultType, yield)
	if err != nil && ctx.Err() != nil {
		return response{}, problem.Wrap(problem.Unavailable, err, "the telemetry store %s", unreachable(ctx, err))
	}
	return r, err
}

func unreachable(ctx context.Context, err error) string {
	var timeout interface{ Timeout() bool }
	if ctx.Err() != nil || (errors.As(err, &timeout) && timeout.Timeout()) {
		return "did not answer in time"
	}
	return "cannot be reached"
}

// response is the envelope of the API; the format of the result depends on its type.
type response struct {
	status, failure, resultType string
	result                      []byte
	warnings                    []string
}

// maxWarnings is how many warnings of one answer are kept.
const maxWarnings = 10

// open parses {"status": ..., "error": ..., "warnings": [...], "data": {"resultType": ..., "result": ...}}. An answer
// may have megabytes, so it is parsed once: the result is kept raw, or yielded.
func open(body []byte, yield func(*Row)) (r response, err error) {
	s := scanner{rest: body}
	s.object(func(key []byte) {
		switch string(key) {
		case "status":
			r.status = s.word()
		case "error":
			r.failure = s.word()
		case "warnings":
			if s.next() != '[' {
				s.skip()
				return
			}
			s.list(func() {
				if text := s.word(); len(r.warnings) < maxWarnings {
					r.warnings = append(r.warnings, brief(text))
				}
			})
		case "data":
			if s.next() != '{' {
				s.skip()
				return
			}
			s.object(func(key []byte) {
				switch {
				case string(key) == "resultType":
					r.resultType = s.word()
				case string(key) == "result" && yield != nil && r.resultType == "vector":
					s.rows(yield)
				case string(key) == "result":
					r.result = s.raw()
				default:
					s.skip()
				}
			})
		default:
			s.skip()
		}
	})
	if yield != nil && s.err == nil && r.resultType == "vector" && r.result != nil { // it came before its type
		s.err, r.result = scan(r.result, yield), nil
	}
	return r, s.err
}

// bodies are what answers are read into of which nothing is kept.
var bodies = sync.Pool{New: func() any { return new(bytes.Buffer) }}

func decode(resp *http.Response, resultType string, yield func(*Row)) (r response, err error) {
	body := new(bytes.Buffer)
	if yield != nil {
		body = bodies.Get().(*bytes.Buffer)
		defer bodies.Put(body)
		body.Reset()
	}
	_, err = body.ReadFrom(io.LimitReader(resp.Body, maxAnswer+1))
	switch {
	case err != nil:
		return response{}, problem.Wrap(problem.Unavailable, err, "the telemetry store broke off its answer")
	case body.Len() > maxAnswer:
		return response{}, problem.New(problem.Unavailable, "the telemetry store answered with more than %d bytes", maxAnswer)
	}
	r, err = open(body.Bytes(), yield)
	switch {
	// Prometheus describes the error of a query in the body; a proxy in front of it does not.
	case err == nil && r.status == "error":
		return response{}, problem.New(problem.Unavailable, "the telemetry store refused the query: %s", brief(r.failure))
	case resp.StatusCode/100 != 2:
		return response{}, problem.New(problem.Unavailable, "the telemetry store answered %s", resp.Status)
	case err != nil || r.status != "success":
		return response{}, problem.Wrap(problem.Unavailable, err, "the telemetry store answered what is no query result")
	case r.resultType != resultType:
		return response{}, problem.New(problem.Unavailable, "the query gives a %s, not a %s", brief(r.resultType), resultType)
	}
	return r, nil
}

// number parses a value, which is a number as text; "" if there is none.
func number(text string) (float64, error) {
	if text == "" {
		return 0, problem.New(problem.Unavailable, "the telemetry store answered a sample without value")
	}
	v, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return 0, problem.Wrap(problem.Unavailable, err, "the telemetry store answered a value that is no number")
	}
	return v, nil
}

// brief truncates a long or hostile text for logs and answers.
func brief(s string) string { return problem.Brief(s, 200) }
