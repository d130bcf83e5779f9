// Package victorialogs keeps logs in VictoriaLogs, by its JSON lines and LogsQL.
package victorialogs

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/littoral-project/littoral/shared/logs"
	"github.com/littoral-project/littoral/shared/problem"
)

// Store is a VictoriaLogs.
type Store struct{ remote *logs.Remote }

// New returns the store that is called by remote.
func New(remote *logs.Remote) *Store { return &Store{remote} }

const (
	fieldTime = "_time"
	fieldLine = "_msg"
	instant   = "2006-01-02T15:04:05.000000000Z"
)

// streams are the fields that tell one source of lines from another.
var streams = strings.Join([]string{
	logs.FieldApplication, logs.FieldComponent, logs.FieldNode, logs.FieldPod, logs.FieldContainer,
}, ",")

// Write sends the entries as JSON lines.
func (s *Store) Write(ctx context.Context, entries []logs.Entry) error {
	if len(entries) == 0 {
		return nil
	}
	var body bytes.Buffer
	for _, e := range entries {
		e = logs.Clean(e)
		fields := e.Fields()
		fields[fieldTime], fields[fieldLine] = e.At.Format(instant), e.Line
		text, err := json.Marshal(fields)
		if err != nil {
			return fmt.Errorf("logs: %w", err)
		}
		body.Write(append(text, '\n'))
	}
	query := url.Values{"_stream_fields": {streams}, "_time_field": {fieldTime}, "_msg_field": {fieldLine}}
	_, err := s.remote.Call(ctx, "insert/jsonline", query, "application/stream+json", body.Bytes())
	return err
}

// Read asks in LogsQL. Values are quoted; none can end its filter.
func (s *Store) Read(ctx context.Context, q logs.Query) ([]logs.Entry, error) {
	if err := q.Check(); err != nil {
		return nil, err
	}
	answer, err := s.remote.Call(ctx, "select/logsql/query", url.Values{"query": {logsQL(q)}}, "", nil)
	if err != nil {
		return nil, err
	}
	found := []logs.Entry{}
	for line := range bytes.Lines(answer) {
		if line = bytes.TrimSpace(line); len(line) == 0 {
			continue
		}
		var fields map[string]string
		if err := json.Unmarshal(line, &fields); err != nil {
			return nil, problem.Wrap(problem.Unavailable, err, "the log store answered what is no line of JSON")
		}
		at, err := time.Parse(time.RFC3339Nano, fields[fieldTime])
		if err != nil {
			return nil, problem.Wrap(problem.Unavailable, err, "the log store answered a line without a time")
		}
		if e := logs.Of(at, fields[fieldLine], fields); q.Selects(e) {
			found = append(found, e)
		}
	}
	return q.Limited(found), nil
}

func logsQL(q logs.Query) string {
	stream := "{" + logs.FieldApplication + "=" + strconv.Quote(q.Application)
	if q.Component != "" {
		stream += "," + logs.FieldComponent + "=" + strconv.Quote(q.Component)
	}
	from, to, order := q.From.UTC().Format(instant), "", "_time"
	if !q.To.IsZero() {
		to = " _time:<" + strconv.Quote(q.To.UTC().Format(instant))
	}
	text := ""
	if q.Text != "" {
		text = " _msg:~" + strconv.Quote(regexp.QuoteMeta(q.Text))
	}
	if q.Newest {
		order = "_time desc"
	}
	return fmt.Sprintf("%s} _time:>=%s%s%s | sort by (%s) limit %d", stream, strconv.Quote(from), to, text, order, q.Limit)
}
