// Package deadletter stores dead letters, the events that a consumer did not take, until somebody sends them again.
//
// The Broker delivers an event here once it has given up on one consumer. A replay publishes the event to everyone
// under its old id. Consumers that have handled it find that id in their inbox and do nothing; the inbox row of the one
// that failed was rolled back with its transaction. So only that one acts, and replaying an event that had succeeded
// after all is harmless.
package deadletter

import (
	"encoding/json"
	"time"

	"github.com/google/uuid"
)

// Letter is an event that one consumer did not take.
type Letter struct {
	ID         uuid.UUID       `json:"id" db:"id"`
	Consumer   string          `json:"consumer" db:"consumer"` // function that failed
	EventID    string          `json:"eventId" db:"event_id"`
	Type       string          `json:"type" db:"type"`
	Source     string          `json:"source" db:"source"`
	Code       int             `json:"code" db:"code"`     // HTTP status of its last answer, -1 when there was none
	Answer     string          `json:"answer" db:"answer"` // what it said, perhaps cut
	Deaths     int             `json:"deaths" db:"deaths"` // how often it was given up
	At         time.Time       `json:"at" db:"at"`         // last time that was
	ReplayedAt *time.Time      `json:"replayedAt,omitempty" db:"replayed_at"`
	Event      json.RawMessage `json:"event" db:"event"`
}
