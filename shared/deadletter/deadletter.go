// Package deadletter keeps the events that a consumer did not take until somebody has them sent again.
//
// The Broker hands an event here once it has given it up for one consumer. A replay publishes the event under the id
// that it has always had, to everyone: whoever worked it off has that id in the inbox and does nothing, while the
// inbox row of the consumer that failed went with its transaction. So only that one acts, and a replay of what had
// succeeded after all is harmless.
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
