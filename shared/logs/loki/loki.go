// Package loki keeps logs in Loki, by its HTTP API and LogQL.
package loki

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"strconv"
	"time"

	"github.com/littoral-project/littoral/shared/logs"
	"github.com/littoral-project/littoral/shared/problem"
)

// Store is a Loki.
type Store struct{ remote *logs.Remote }

// New returns the store that is called by remote.
func New(remote *logs.Remote) *Store { return &Store{remote} }

type stream struct {
	Labels map[string]string `json:"stream"`
	Values [][2]string       `json:"values"` // nanoseconds and line
}

// Write pushes the entries, by their labels.
func (s *Store) Write(ctx context.Context, entries []logs.Entry) error {
	if len(entries) == 0 {
		return nil
	}
	byLabels := map[string]*stream{}
	var streams []*stream
	for _, e := range entries {
		e = logs.Clean(e)
		labels := e.Fields()
		key, err := json.Marshal(labels) // its keys are in order
		if err != nil {
			return fmt.Errorf("logs: %w", err)
		}
		at := byLabels[string(key)]
		if at == nil {
			at = &stream{Labels: labels}
			byLabels[string(key)], streams = at, append(streams, at)
		}
		at.Values = append(at.Values, [2]string{strconv.FormatInt(e.At.UnixNano(), 10), e.Line})
	}
	body, err := json.Marshal(map[string]any{"streams": streams})
	if err != nil {
		return fmt.Errorf("logs: %w", err)
	}
	_, err = s.remote.Call(ctx, "loki/api/v1/push", nil, "application/json", body)
	return err
}

// longest is how far Loki lets one query reach by default, less an hour.
const longest = 29 * 24 * time.Hour

// Read asks in LogQL. Values are quoted; none can end its matcher.
func (s *Store) Read(ctx context.Context, q logs.Query) ([]logs.Entry, error) {
	if err := q.Check(); err != nil {
		return nil, err
	}
	expr := "{" + logs.FieldApplication + "=" + strconv.Quote(q.Application)
	if q.Component != "" {
		expr += "," + logs.FieldComponent + "=" + strconv.Quote(q.Component)
	}
	expr += "}"
	if q.Text != "" {
		expr += " |= " + strconv.Quote(q.Text)
	}
	to := q.To
	if to.IsZero() {
		to = time.Now().Add(time.Hour) // of a site whose clock is ahead
	}
	from := q.From
	if earliest := to.Add(-longest); from.Before(earliest) {
		from = earliest
	}
	direction := "forward"
	if q.Newest {
		direction = "backward"
	}
	answer, err := s.remote.Call(ctx, "loki/api/v1/query_range", url.Values{
		"query": {expr}, "direction": {direction}, "limit": {strconv.Itoa(q.Limit)},
		"start": {strconv.FormatInt(from.UnixNano(), 10)}, "end": {strconv.FormatInt(to.UnixNano(), 10)},
	}, "", nil)
	if err != nil {
		return nil, err
	}
	return parse(answer, q)
}

func parse(answer []byte, q logs.Query) ([]logs.Entry, error) {
	var given struct {
		Data struct {
			ResultType string   `json:"resultType"`
			Result     []stream `json:"result"`
		} `json:"data"`
	}
	if err := json.Unmarshal(answer, &given); err != nil || given.Data.ResultType != "streams" {
		return nil, problem.Wrap(problem.Unavailable, err, "the log store answered what are no streams")
	}
	found := []logs.Entry{}
	for _, at := range given.Data.Result {
		fields := maps.Clone(at.Labels)
		for _, value := range at.Values {
			ns, err := strconv.ParseInt(value[0], 10, 64)
			if err != nil {
				return nil, problem.Wrap(problem.Unavailable, err, "the log store answered a line without a time")
			}
			if e := logs.Of(time.Unix(0, ns), value[1], fields); q.Selects(e) {
				found = append(found, e)
			}
		}
	}
	return q.Limited(found), nil
}
