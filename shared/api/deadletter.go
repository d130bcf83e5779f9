package api

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"time"
)

// DeadLetter is an event that one consumer did not accept.
type DeadLetter struct {
	ID         string          `json:"id"`
	Consumer   string          `json:"consumer"` // function that failed
	EventID    string          `json:"eventId"`
	Type       string          `json:"type"`
	Source     string          `json:"source"`
	Code       int             `json:"code"`   // HTTP status of its last answer, -1 if there was none
	Answer     string          `json:"answer"` // the answer, perhaps truncated
	Deaths     int             `json:"deaths"` // how often the Broker gave up on it
	At         time.Time       `json:"at"`
	ReplayedAt *time.Time      `json:"replayedAt,omitempty"`
	Event      json.RawMessage `json:"event"`
}

// DeadLetters lists the events that were not replayed yet, oldest first.
func (c *Client) DeadLetters(ctx context.Context) ([]DeadLetter, error) {
	return list[DeadLetter](ctx, c, get("/events/dead", nil))
}

// Replay sends the event again to the consumers that did not accept it. The call is never retried: if the answer was
// lost, a second call is refused, since the event is already on its way.
func (c *Client) Replay(ctx context.Context, event string) ([]DeadLetter, error) {
	letters := []DeadLetter{}
	_, err := c.do(ctx, request{method: http.MethodPost, path: "/events/" + url.PathEscape(event) + "/replay"}, &letters)
	return letters, err
}
