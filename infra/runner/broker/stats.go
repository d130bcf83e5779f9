package broker

import (
	"context"
	"encoding/json"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/littoral-project/littoral/shared/store"
)

// counters of one Trigger since the start.
type counters struct {
	filtered, delivered, retried, deadLettered, replies, pending atomic.Int64
}

// Stats counts what happened to the events of one Trigger since the start, and how many are still pending.
type Stats struct {
	Filtered     int64 `json:"filtered"`  // did not match
	Delivered    int64 `json:"delivered"` // accepted by the subscriber
	Retried      int64 `json:"retried"`   // failed attempts that were retried
	DeadLettered int64 `json:"deadLettered"`
	Replies      int64 `json:"replies"` // events the subscriber answered with
	Pending      int64 `json:"pending"` // stored and not yet completed
}

// Stats returns the counters of each Trigger by its namespace/name.
func (b *Broker) Stats() map[string]Stats {
	out := make(map[string]Stats, len(b.triggers))
	for name, t := range b.triggers {
		out[name] = Stats{
			Filtered: t.stats.filtered.Load(), Delivered: t.stats.delivered.Load(), Retried: t.stats.retried.Load(),
			DeadLettered: t.stats.deadLettered.Load(), Replies: t.stats.replies.Load(), Pending: t.stats.pending.Load(),
		}
	}
	return out
}

// Pending is the number of deliveries that are stored and not yet completed.
func (b *Broker) Pending() (n int64) {
	for _, t := range b.triggers {
		n += t.stats.pending.Load()
	}
	return n
}

// DeadLetter is an event that was given up.
type DeadLetter struct {
	ID          int64           `json:"id" db:"id"`
	At          time.Time       `json:"at" db:"at"`
	Trigger     string          `json:"trigger" db:"trigger"`
	Event       json.RawMessage `json:"event" db:"event"`
	Attempts    int             `json:"attempts" db:"attempts"`
	Destination string          `json:"destination" db:"destination"`
	Code        int             `json:"code" db:"code"` // of the last answer, -1 if there was none
	Answer      string          `json:"answer" db:"answer"`
	Sink        string          `json:"sink,omitempty" db:"sink"`
	SinkState   string          `json:"sinkState" db:"sink_state"` // none, pending, delivered, failed
}

// DeadLetters returns the newest events that were given up, at most limit.
func (b *Broker) DeadLetters(ctx context.Context, limit int) ([]DeadLetter, error) {
	return store.Collect(ctx, b.durable, "read dead letters", pgx.RowToStructByName[DeadLetter], selectDeadLetters, limit)
}

// maxListed limits the dead letters in one answer.
const maxListed = 100

// State serves GET /stats and GET /dead-letters for people.
func (b *Broker) State() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /stats", func(w http.ResponseWriter, _ *http.Request) { writeJSON(w, b.Stats()) })
	mux.HandleFunc("GET /dead-letters", func(w http.ResponseWriter, r *http.Request) {
		letters, err := b.DeadLetters(r.Context(), maxListed)
		if err != nil {
			refuse(w, r, err)
			return
		}
		writeJSON(w, letters)
	})
	return mux
}

func writeJSON(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(v) // fails only if the caller has gone
}
