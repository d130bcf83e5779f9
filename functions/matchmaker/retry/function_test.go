package retry_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"testing"

	cloudevents "github.com/cloudevents/sdk-go/v2/event"
	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/littoral-project/littoral/functions/matchmaker/retry"
	"github.com/littoral-project/littoral/shared/application/applicationtest"
	"github.com/littoral-project/littoral/shared/events"
	"github.com/littoral-project/littoral/shared/function"
	"github.com/littoral-project/littoral/shared/match"
	"github.com/littoral-project/littoral/shared/store"
	"github.com/littoral-project/littoral/shared/store/storetest"
)

func TestMain(m *testing.M) { storetest.Main(m) }

const descriptor = `name: app-%d
components:
- name: x
  type: manifest
  manifests: [{name: m}]
---
apiVersion: v1
kind: ConfigMap
metadata: {name: m}
`

// TestReact_triesSomeAtATime: of the waiting applications, and keeps the results when later ones fail.
func TestReact_triesSomeAtATime(t *testing.T) {
	t.Parallel()
	db := storetest.New(t)
	f, err := retry.New(function.Platform{DB: db, Log: slog.New(slog.DiscardHandler)}.Env("matchmaker-retry"))
	require.NoError(t, err)
	var last uuid.UUID
	for i := range match.MostTogether + 1 {
		if id := applicationtest.Submit(t, db, fmt.Sprintf(descriptor, i)).ID; bytes.Compare(id[:], last[:]) > 0 {
			last = id
		}
	}
	react := func(e cloudevents.Event) {
		t.Helper()
		ctx := store.WithSource(t.Context(), "/functions/matchmaker-retry")
		require.NoError(t, db.Tx(ctx, func(ctx context.Context, tx *store.Tx) error { return f.React(ctx, tx, e) }))
	}
	told := func(typ string) []cloudevents.Event { return storetest.Published(db, typ) }
	first, err := events.New(t.Context(), "/functions/aggregator-tick", events.TopologyChanged, "s",
		events.Topology{Changes: []events.TopologyChange{{Cluster: "edge", Node: "n", Change: "added"}}})
	require.NoError(t, err)
	react(first)
	require.Len(t, told(events.ApplicationUnplaced), match.MostTogether)
	rest := told(events.ApplicationWaiting)
	require.Len(t, rest, 1)
	about, err := events.Data[events.Application](rest[0])
	require.NoError(t, err)
	require.Equal(t, events.Application{ID: last, Reason: "the infrastructure changed: edge/n added"}, about)

	react(rest[0])
	unplaced := told(events.ApplicationUnplaced)
	require.Len(t, unplaced, match.MostTogether+1)
	require.Equal(t, last.String(), unplaced[match.MostTogether].Subject())
	require.Len(t, told(events.ApplicationWaiting), 1, "nobody is left")
}

// TestReact_leavesAloneWhatWaitsWhenNodesHaveOnlyGone: after a storm there is less room, not more.
func TestReact_leavesAloneWhatWaitsWhenNodesHaveOnlyGone(t *testing.T) {
	t.Parallel()
	db := storetest.New(t)
	f, err := retry.New(function.Platform{DB: db, Log: slog.New(slog.DiscardHandler)}.Env("matchmaker-retry"))
	require.NoError(t, err)
	applicationtest.Submit(t, db, fmt.Sprintf(descriptor, 1))
	react := func(changes ...string) int {
		t.Helper()
		var news events.Topology
		for _, change := range changes {
			news.Changes = append(news.Changes, events.TopologyChange{Cluster: "edge", Node: "n", Change: change})
		}
		e, err := events.New(t.Context(), "/functions/aggregator-tick", events.TopologyChanged, "s", news)
		require.NoError(t, err)
		ctx := store.WithSource(t.Context(), "/functions/matchmaker-retry")
		require.NoError(t, db.Tx(ctx, func(ctx context.Context, tx *store.Tx) error { return f.React(ctx, tx, e) }))
		return len(storetest.Published(db, events.ApplicationUnplaced))
	}
	require.Zero(t, react("lost", "drained", "removed"))
	require.Equal(t, 1, react("lost", "refreshed"), "until now nobody could decide")
}
