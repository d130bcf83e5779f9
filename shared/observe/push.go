package observe

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"sync"
	"time"
)

// signal pushes one kind of telemetry, one request at a time.
type signal struct {
	what   string
	target target
	delay  time.Duration
	config Config
	client *http.Client
	log    *slog.Logger
	take   func() (body any, undo func()) // returns the next request, nil if there is nothing to push

	mu     sync.Mutex
	armed  bool // a push is scheduled
	timer  *time.Timer
	failed int // consecutive failed pushes

	sending chan struct{} // holds an element while a request is in progress
}

// longest wait after failed pushes.
const longest = time.Minute

// arm schedules a push after the delay, or at once; a push that is in progress or already scheduled includes the new
// data.
func (s *signal) arm(now bool) {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.armed {
		if now && s.failed == 0 {
			s.timer.Reset(0)
		}
		return
	}
	s.armed = true
	wait := s.delay << min(s.failed, 6)
	if s.failed > 0 {
		wait = min(wait, max(longest, s.delay))
	} else if now {
		wait = 0
	}
	s.timer = time.AfterFunc(wait, func() {
		s.mu.Lock()
		s.armed = false
		s.mu.Unlock()
		ctx, cancel := context.WithTimeout(context.Background(), s.config.Timeout)
		defer cancel()
		s.flush(ctx)
	})
}

// flush pushes everything. What a collector may accept later is kept and tried again. If ctx ends during another push,
// the rest is not pushed: a collector that never answers must not block the caller of the last push.
func (s *signal) flush(ctx context.Context) {
	select {
	case s.sending <- struct{}{}:
		defer func() { <-s.sending }()
	case <-ctx.Done():
		return
	}
	for {
		body, undo := s.take()
		if body == nil {
			return
		}
		again, err := s.push(ctx, body)
		s.mu.Lock()
		first := s.failed == 0
		if s.failed++; err == nil {
			s.failed = 0
		}
		s.mu.Unlock()
		if err != nil && first {
			s.log.Warn("telemetry is not taken", "signal", s.what, "error", err.Error()) // once per outage
		}
		if again {
			undo()
			s.arm(false)
			return
		}
	}
}

// push sends one request. again reports whether the same request may succeed later.
func (s *signal) push(ctx context.Context, body any) (again bool, err error) {
	encoded, err := json.Marshal(body)
	if err != nil {
		return false, err
	}
	var b bytes.Buffer
	if s.config.Compress {
		z := gzip.NewWriter(&b)
		_, _ = z.Write(encoded) // writing to a buffer cannot fail
		_ = z.Close()
	} else {
		b.Write(encoded)
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, s.target.URL, &b)
	if err != nil {
		return false, err
	}
	for name, values := range s.target.Headers {
		r.Header[name] = values
	}
	r.Header.Set("Content-Type", "application/json")
	if s.config.Compress {
		r.Header.Set("Content-Encoding", "gzip")
	}
	resp, err := s.client.Do(r)
	if err != nil {
		return true, err
	}
	defer func() { _ = resp.Body.Close() }()
	answer, _ := io.ReadAll(io.LimitReader(resp.Body, 4096)) // reading it lets the connection be reused
	switch resp.StatusCode {
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return true, fmt.Errorf("the collector answered %s", resp.Status)
	}
	if resp.StatusCode/100 != 2 {
		return false, fmt.Errorf("the collector answered %s: %.200s", resp.Status, answer)
	}
	var p partial
	if json.Unmarshal(answer, &p) == nil && p.PartialSuccess.RejectedSpans+p.PartialSuccess.RejectedPoints > 0 {
		return false, fmt.Errorf("the collector refused a part: %.200s", p.PartialSuccess.ErrorMessage)
	}
	return false, nil
}
