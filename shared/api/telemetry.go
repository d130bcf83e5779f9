package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/littoral-project/littoral/shared/sse"
)

// LogLine is one line that a container wrote.
type LogLine struct {
	At          time.Time `json:"at"`
	Application string    `json:"application"`
	Component   string    `json:"component,omitempty"`
	Cluster     string    `json:"cluster,omitempty"`
	Node        string    `json:"node,omitempty"`
	Pod         string    `json:"pod,omitempty"`
	Container   string    `json:"container,omitempty"`
	Stream      string    `json:"stream,omitempty"`
	Line        string    `json:"line"`
}

// LogMove is a decision where a component runs.
type LogMove struct {
	At        time.Time `json:"at"`
	Component string    `json:"component"`
	Message   string    `json:"message"`
}

// Logs is the lines of a time, oldest first, and the moves in it.
type Logs struct {
	Lines []LogLine `json:"lines"`
	Moves []LogMove `json:"moves"`
	Cut   bool      `json:"cut,omitempty"`

	Missing []string `json:"missing,omitempty"` // whose lines could not be read, and why
}

// LogsQuery selects lines of an application.
type LogsQuery struct {
	App       string // full id
	Component string
	Since     string // a duration or a time
	Tail      int    // 0 = the server's default
	Text      string
}

func (q LogsQuery) query() url.Values {
	values := url.Values{}
	for name, value := range map[string]string{"app": q.App, "component": q.Component, "since": q.Since, "text": q.Text} {
		if value != "" {
			values.Set(name, value)
		}
	}
	if q.Tail > 0 {
		values.Set("tail", strconv.Itoa(q.Tail))
	}
	return values
}

const logsPath = "/telemetry/logs"

// Logs returns lines of an application.
func (c *Client) Logs(ctx context.Context, q LogsQuery) (*Logs, error) {
	return one[Logs](ctx, c, get(logsPath, q.query()))
}

// PodLogs returns lines that the clusters of an application still keep, for a server without a log store.
func (c *Client) PodLogs(ctx context.Context, q LogsQuery) (*Logs, error) {
	return one[Logs](ctx, c, get("/deploymentmanager/logs", q.query()))
}

// LogEvent is a line or a move.
type LogEvent struct {
	Line *LogLine `json:"line,omitempty"`
	Move *LogMove `json:"move,omitempty"`
}

// FollowLogs calls each with the lines of an application and with those that come, until the server ends the stream, or each
// fails. last is where a former stream ended, "" for none; what is returned goes on from there.
func (c *Client) FollowLogs(ctx context.Context, q LogsQuery, last string, each func(LogEvent) error) (string, error) {
	values := q.query()
	values.Set("follow", "true")
	r := get(logsPath, values)
	r.last = last
	resp, err := c.send(ctx, r)
	if err != nil {
		return last, err
	}
	if resp.StatusCode != http.StatusOK {
		return last, readError(resp)
	}
	defer func() { _ = resp.Body.Close() }()
	err = sse.Read(resp.Body, func(e sse.Event) error {
		last = e.ID
		var event LogEvent
		var into any
		switch e.Name {
		case "line":
			event.Line = &LogLine{}
			into = event.Line
		case "move":
			event.Move = &LogMove{}
			into = event.Move
		default:
			return nil
		}
		if err := json.Unmarshal([]byte(e.Data), into); err != nil {
			return fmt.Errorf("the stream is not what Littoral gives: %w", err)
		}
		return each(event)
	})
	var syntax *json.SyntaxError
	if err != nil && !errors.As(err, &syntax) && ctx.Err() != nil {
		return last, ctx.Err()
	}
	return last, err
}

// Course is the values of a series over time.
type Course struct {
	Labels map[string]string `json:"labels"`
	Points [][2]*float64     `json:"points"` // seconds and value
}

// Courses is what was found for a question about series.
type Courses struct {
	Query  string   `json:"query"`
	Step   float64  `json:"step"`
	Series []Course `json:"series"`
}

// Usage returns the course of what the components use, "cpu" in cores or "memory" in bytes; app "" = of all that the caller
// may see.
func (c *Client) Usage(ctx context.Context, use, app, since string, step time.Duration) (*Courses, error) {
	values := url.Values{"use": {use}, "since": {since}, "step": {step.String()}}
	if app != "" {
		values.Set("app", app)
	}
	return one[Courses](ctx, c, get("/telemetry/series", values))
}

// Series returns the course of what a question in PromQL gives, as far as the caller may see it.
func (c *Client) Series(ctx context.Context, query, since string, step time.Duration) (*Courses, error) {
	return one[Courses](ctx, c, get("/telemetry/series", url.Values{"query": {query}, "since": {since}, "step": {step.String()}}))
}
