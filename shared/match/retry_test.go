package match_test

import (
	"context"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/littoral-project/littoral/shared/match"
	"github.com/littoral-project/littoral/shared/store"
)

// TestRetryPending_triesWhatCouldGoWhereRoomWasMade: and leaves alone what could not, though it might fit elsewhere.
func TestRetryPending_triesWhatCouldGoWhereRoomWasMade(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		room            *match.Room
		changed, placed bool
	}{
		"on another node":                        {room: &match.Room{On: [][2]string{{"edge", "small"}}}},
		"on a node that telemetry no longer has": {room: &match.Room{On: [][2]string{{"edge", "gone"}}}},
		"on the node that it fits":               {room: &match.Room{On: [][2]string{{"edge", "small"}, {"edge", "large"}}}, placed: true},
		"for an application that has changed":    {room: &match.Room{On: [][2]string{{"edge", "small"}}}, changed: true, placed: true},
		"anywhere":                               {placed: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, node{name: "small", cores: 1}, node{name: "large", cores: 1})
			id := w.submit(app("shop", "web:cpu: 4"))
			require.NoError(t, w.Tx(func(ctx context.Context, tx *store.Tx) error {
				return match.Place(ctx, tx, id, settings, false, "the test wants it")
			}))
			require.False(t, w.Get(id).Jobs[0].Placed())
			w.see(node{name: "small", cores: 1}, node{name: "large", cores: 8})
			if row.changed {
				row.room.Of = id
			}
			require.NoError(t, w.Tx(func(ctx context.Context, tx *store.Tx) error {
				return match.RetryPending(ctx, tx, uuid.Nil, settings, "the test wants it", row.room)
			}))
			require.Equal(t, row.placed, w.Get(id).Jobs[0].Placed())
		})
	}
}

// TestRetryPending_triesAllWhenTheInfrastructureIsFirstSeen: until then nobody could tell why anything waits.
func TestRetryPending_triesAllWhenTheInfrastructureIsFirstSeen(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	id := w.submit(app("shop", "web:cpu: 4"))
	place := func(do func(ctx context.Context, tx *store.Tx) error) string {
		t.Helper()
		require.NoError(t, w.Tx(do))
		return w.Get(id).Jobs[0].Conditions[0].Message
	}
	require.Contains(t, place(func(ctx context.Context, tx *store.Tx) error {
		return match.Place(ctx, tx, id, settings, false, "the test wants it")
	}), "no telemetry")
	w.see(node{name: "small", cores: 1})
	require.Contains(t, place(func(ctx context.Context, tx *store.Tx) error {
		return match.RetryPending(ctx, tx, uuid.Nil, settings, "it was seen", &match.Room{On: [][2]string{{"edge", "small"}}})
	}), "none of 1 node meets its requirements")
}
