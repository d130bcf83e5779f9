// Package sse writes and reads server-sent events (WHATWG HTML, §9.2): text lines over one HTTP answer that stays open.
package sse

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/littoral-project/littoral/shared/problem"
)

// Type is the media type of a stream.
const Type = "text/event-stream"

// What our streams have in common.
const (
	Retry = 2 * time.Second  // until a reader comes again
	Quiet = 15 * time.Second // then a comment shows that the stream is alive
)

// Event is one message of a stream.
type Event struct {
	ID   string // what a reader sends back as Last-Event-ID; "" leaves the last one as it is
	Name string // "" = "message"
	Data string
}

// Writer writes a stream. It is not safe for use by several goroutines.
type Writer struct {
	w     io.Writer
	flush func() error
}

// Start begins the answer. retry tells the reader how long to wait before it comes again after the end of the stream.
func Start(w http.ResponseWriter, retry time.Duration) (*Writer, error) {
	h := w.Header()
	h.Set("Content-Type", Type)
	h.Set("Cache-Control", "no-store")
	h.Set("X-Accel-Buffering", "no") // asks proxies to pass on what they get
	w.WriteHeader(http.StatusOK)
	s := &Writer{w, http.NewResponseController(w).Flush}
	return s, s.send("retry: " + strconv.FormatInt(retry.Milliseconds(), 10) + "\n\n")
}

// Send writes one event.
func (s *Writer) Send(e Event) error {
	var text strings.Builder
	if e.ID != "" {
		fmt.Fprintf(&text, "id: %s\n", line(e.ID))
	}
	if e.Name != "" {
		fmt.Fprintf(&text, "event: %s\n", line(e.Name))
	}
	for part := range strings.SplitSeq(strings.ReplaceAll(e.Data, "\r", "\n"), "\n") {
		fmt.Fprintf(&text, "data: %s\n", part)
	}
	text.WriteByte('\n')
	return s.send(text.String())
}

// Alive writes a comment, which readers ignore: proxies do not close a connection on which something comes.
func (s *Writer) Alive() error { return s.send(":\n\n") }

func (s *Writer) send(text string) error {
	if _, err := io.WriteString(s.w, text); err != nil {
		return err
	}
	return s.flush()
}

// line makes text fit into one line: an id or a name with a line break would be another field.
func line(text string) string {
	return strings.Map(func(r rune) rune {
		if r == '\n' || r == '\r' || r == 0 {
			return -1
		}
		return r
	}, text)
}

// Ended is the error of a stream that has ended: nil when its time is over, or the caller has gone.
func Ended(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// LastID returns the id after which a reader wants to go on: the header Last-Event-ID, else the query parameter; nil when
// neither is given. The error is Malformed.
func LastID(r *http.Request, parameter string) (*int64, error) {
	given, where := r.Header.Get("Last-Event-ID"), "Last-Event-ID"
	if given == "" {
		given, where = r.URL.Query().Get(parameter), parameter
	}
	if given == "" {
		return nil, nil
	}
	id, err := strconv.ParseInt(given, 10, 64)
	if err != nil || id < 0 {
		return nil, problem.New(problem.Malformed, "%s must be a whole number, 0 or more", where)
	}
	return &id, nil
}

// MaxLine bounds a line that Read accepts.
const MaxLine = 4 << 20

// Read calls each for every event of a stream until it ends or each returns an error. The end of the stream is no error.
func Read(r io.Reader, each func(Event) error) error {
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, MaxLine)
	var e Event
	var data []string
	id := ""
	for lines.Scan() {
		text := lines.Text()
		if text == "" {
			if data != nil {
				e.ID, e.Data = id, strings.Join(data, "\n")
				if err := each(e); err != nil {
					return err
				}
			}
			e, data = Event{}, nil
			continue
		}
		field, value, _ := strings.Cut(text, ":")
		value = strings.TrimPrefix(value, " ")
		switch field {
		case "id":
			id = value
		case "event":
			e.Name = value
		case "data":
			data = append(data, value)
		}
	}
	if err := lines.Err(); err != nil && !errors.Is(err, io.ErrUnexpectedEOF) {
		return err
	}
	return nil
}
