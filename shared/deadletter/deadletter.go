// Package deadletter stores dead letters, the events that a consumer did not accept, until a person sends them again.
//
// The Broker delivers an event here after it has given up on one consumer. A replay publishes the event to all
// consumers with its old id. Those that have handled it find that id in their inbox and do nothing; the failed one has
// no inbox row, since it was rolled back with its transaction. So only the failed one acts, and it is harmless to
// replay an event that was handled after all.
package deadletter

import (
	"encoding/json"
	"time"

	"github.com/google/uuid"
)

// Letter is an event that one consumer did not accept.
type Letter struct {
	ID         uuid.UUID       `json:"id" db:"id"`
	Consumer   string          `json:"consumer" db:"consumer"` // function that failed
	EventID    string          `json:"eventId" db:"event_id"`
	Type       string          `json:"type" db:"type"`
	Source     string          `json:"source" db:"source"`
	Code       int             `json:"code" db:"code"`     // HTTP status of its last answer, -1 if there was none
	Answer     string          `json:"answer" db:"answer"` // the answer, perhaps truncated
	Deaths     int             `json:"deaths" db:"deaths"` // how often the Broker gave up on it
	At         time.Time       `json:"at" db:"at"`         // when it last did
	ReplayedAt *time.Time      `json:"replayedAt,omitempty" db:"replayed_at"`
	Event      json.RawMessage `json:"event" db:"event"`
}
