package store

import (
	"context"
	"encoding/json"
	"fmt"

	cloudevents "github.com/cloudevents/sdk-go/v2/event"
)

const replayOutbox = `insert into outbox (id, event) values ($1, $2) on conflict (id) do nothing`

// Replay stores an event that was published before in the outbox once more, as it was and under its own id: consumers
// that have worked it off know it by that and do nothing. It is signed anew when it is published, so what is replayed
// must have been proven ours.
func (tx *Tx) Replay(ctx context.Context, e cloudevents.Event) error {
	body, err := json.Marshal(e)
	if err != nil {
		return fmt.Errorf("encode event %s: %w", e.ID(), err)
	}
	if _, err := tx.Exec(ctx, replayOutbox, e.ID(), body); err != nil {
		return fmt.Errorf("store %s in the outbox: %w", e.Type(), err)
	}
	tx.emitted = append(tx.emitted, e)
	return nil
}
