package store

import (
	"context"
	"encoding/json"
	"fmt"

	cloudevents "github.com/cloudevents/sdk-go/v2/event"
)

const replayOutbox = `insert into outbox (id, event) values ($1, $2) on conflict (id) do nothing`

// Replay puts an event that was published before into the outbox again, unchanged and under its own id, so that
// consumers that have handled it ignore it. It will be signed anew when it is published, so the caller must have
// checked that it is ours.
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
