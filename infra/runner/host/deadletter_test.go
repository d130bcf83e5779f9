package host

import (
	"context"
	"maps"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	cloudevents "github.com/cloudevents/sdk-go/v2/event"
	"github.com/stretchr/testify/require"

	"github.com/littoral-project/littoral/functions"
	"github.com/littoral-project/littoral/shared/deadletter"
	"github.com/littoral-project/littoral/shared/function"
	"github.com/littoral-project/littoral/shared/problem"
	"github.com/littoral-project/littoral/shared/store"
	"github.com/littoral-project/littoral/shared/store/storetest"
)

// faulty refuses everything permanently until it is repaired.
type faulty struct {
	function.Reaction

	mended *atomic.Bool
}

func (f faulty) React(ctx context.Context, tx *store.Tx, e cloudevents.Event) error {
	if !f.mended.Load() {
		return problem.New(problem.Invalid, "this matchmaker is broken")
	}
	return f.Reaction.React(ctx, tx, e)
}

// TestAnEventThatAConsumerRefusesIsStoredAndReplayed: the real Broker, sink, inbox and outbox, with a matchmaker that fails.
func TestAnEventThatAConsumerRefusesIsStoredAndReplayed(t *testing.T) {
	t.Parallel()
	const place = "github.com/littoral-project/littoral/functions/cmd/matchmaker-place"
	o := options(newHome(t))
	o.Database = storetest.URL(t)
	o.Registry = maps.Clone(functions.Registry)
	var mended atomic.Bool
	real := o.Registry[place]
	o.Registry[place] = function.NewEntry(real.Name, real.Spec, func(env *function.Env) (faulty, error) {
		made, err := real.New(env)
		if err != nil {
			return faulty{}, err
		}
		return faulty{made.(function.Reaction), &mended}, nil
	})
	h := start(t, o)
	var g group
	require.Equal(t, http.StatusCreated, ask(t, h.URL(), o.Home, "operator", "POST", "/jobmanager/groups", example(t), &g))

	var letters []deadletter.Letter
	submitted := func() bool {
		require.Equal(t, 200, ask(t, h.URL(), o.Home, "viewer", "GET", "/events/dead", "", &letters))
		for _, l := range letters {
			if l.Type == "dev.littoral.application.submitted.v1" {
				letters = []deadletter.Letter{l}
				return true
			}
		}
		return false
	}
	require.Eventually(t, submitted, patience, 50*time.Millisecond)
	require.Equal(t, "matchmaker-place", letters[0].Consumer)
	require.Equal(t, http.StatusUnprocessableEntity, letters[0].Code)
	require.Contains(t, letters[0].Answer, "this matchmaker is broken")

	mended.Store(true)
	path := "/events/" + letters[0].EventID + "/replay"
	require.Equal(t, http.StatusForbidden, ask(t, h.URL(), o.Home, "viewer", "POST", path, "", nil))
	require.Equal(t, http.StatusOK, ask(t, h.URL(), o.Home, "operator", "POST", path, "", nil))
	available(t, h.URL(), o.Home, g.ID)
	require.Equal(t, http.StatusConflict, ask(t, h.URL(), o.Home, "operator", "POST", path, "", nil))
}
