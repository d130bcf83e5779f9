package api

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"time"
)

// DeadLetter is an event that one consumer did not take.
type DeadLetter struct {
	ID         string          `json:"id"`
	Consumer   string          `json:"consumer"` // function that failed
	EventID    string          `json:"eventId"`
	Type       string          `json:"type"`
	Source     string          `json:"source"`
	Code       int             `json:"code"`   // HTTP status of its last answer, -1 when there was none
	Answer     string          `json:"answer"` // what it said, perhaps cut
	Deaths     int             `json:"deaths"` // how often it was given up
	At         time.Time       `json:"at"`
	ReplayedAt *time.Time      `json:"replayedAt,omitempty"`
	Event      json.RawMessage `json:"event"`
}

// DeadLetters lists the events that wait to be replayed, oldest first.
func (c *Client) DeadLetters(ctx context.Context) ([]DeadLetter, error) {
	return list[DeadLetter](ctx, c, get("/events/dead", nil))
}

// Replay sends the event again to whoever did not take it. The call is never repeated by itself: if the answer was
// lost, a second call is refused, since the event is on its way.
func (c *Client) Replay(ctx context.Context, event string) ([]DeadLetter, error) {
	letters := []DeadLetter{}
	_, err := c.do(ctx, request{method: http.MethodPost, path: "/events/" + url.PathEscape(event) + "/replay"}, &letters)
	return letters, err
}
