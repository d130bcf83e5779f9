package inprocess_test

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/littoral-project/littoral/functions"
	"github.com/littoral-project/littoral/shared/events"
	"github.com/littoral-project/littoral/shared/function"
	"github.com/littoral-project/littoral/shared/store/storetest"
	"github.com/littoral-project/littoral/test/inprocess"
)

// TestWhatEachProcessAsksTheStore beside the calls of its function: whether it is there, which keys its callers' issuer has, and for
// events that others left behind. scripts/gen/grants knows from here that each function may.
func TestWhatEachProcessAsksTheStore(t *testing.T) {
	t.Parallel()
	db, issuer := storetest.New(t), inprocess.NewIssuer(t)
	for _, entry := range functions.Registry {
		if !slices.Contains(entry.Spec.Secrets(), "DATABASE_URL") {
			continue
		}
		ctx := storetest.As(t.Context(), entry.Name)
		handler, err := entry.Handler(function.Platform{DB: db, Auth: issuer.Verifier()}.Env(entry.Name))
		require.NoError(t, err)
		answer := httptest.NewRecorder()
		handler.ServeHTTP(answer, httptest.NewRequestWithContext(ctx, http.MethodGet, function.ReadyPath, nil))
		require.Equal(t, http.StatusOK, answer.Code, entry.Name)

		if len(entry.Spec.Routes)+len(entry.Spec.Consumes) > 0 { // of people, and of Knative
			require.NoError(t, db.SaveIssuerKeys(ctx, "https://issuer.example", []byte("{}")))
			_, _, err = db.IssuerKeys(ctx, "https://issuer.example")
			require.NoError(t, err)
		}

		e, err := events.New(t.Context(), "/test", events.TopologyChanged, entry.Name, events.Topology{})
		require.NoError(t, err)
		body, err := e.MarshalJSON()
		require.NoError(t, err)
		_, err = db.Exec(t.Context(), `insert into outbox (id, event, created_at) values ($1, $2, now() - interval '1 hour')`, e.ID(), body)
		require.NoError(t, err)
		require.NoError(t, db.Finish(ctx))
		waiting, _, err := db.Waiting(t.Context())
		require.NoError(t, err)
		require.Zero(t, waiting, entry.Name)
	}
}
