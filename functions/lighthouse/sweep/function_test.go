package sweep_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/littoral-project/littoral/functions/lighthouse/sweep"
	"github.com/littoral-project/littoral/shared/function"
	"github.com/littoral-project/littoral/shared/lighthouse"
	"github.com/littoral-project/littoral/shared/store"
	"github.com/littoral-project/littoral/shared/store/storetest"
)

func TestMain(m *testing.M) { storetest.Main(m) }

// TestSilentControllersAreForgottenAndTheOthersChecked: one is well, one answers with a failure, one not at all, and one has
// not said for longer than the silence that it is there.
func TestSilentControllersAreForgottenAndTheOthersChecked(t *testing.T) {
	t.Parallel()
	db := storetest.New(t)
	well := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/api/v3/healthcheck" {
			w.WriteHeader(http.StatusTeapot)
		}
	}))
	t.Cleanup(well.Close)
	ill := httptest.NewServer(http.RedirectHandler(well.URL, http.StatusFound))
	t.Cleanup(ill.Close)
	away := httptest.NewServer(http.NotFoundHandler())
	away.Close()
	addresses := map[string]string{"well": well.URL, "ill": ill.URL, "away": away.URL, "silent": "https://silent.example"}
	for name, address := range addresses {
		require.NoError(t, db.Tx(t.Context(), func(ctx context.Context, tx *store.Tx) error {
			fresh, err := lighthouse.Register(ctx, tx, lighthouse.Controller{Name: name, Address: address}, name, time.Minute)
			require.True(t, fresh)
			return err
		}))
	}
	_, err := db.Exec(t.Context(), `update controllers set seen_at = now() - interval '61 s' where name = 'silent'`)
	require.NoError(t, err)

	f, err := sweep.New(function.Platform{DB: db}.Env("lighthouse-sweep"))
	require.NoError(t, err)
	require.NoError(t, f.Run(t.Context()))
	require.NoError(t, f.Run(t.Context()), "it may run twice")

	var rows int
	require.NoError(t, db.QueryRow(t.Context(), `select count(*) from controllers`).Scan(&rows))
	require.Equal(t, 3, rows)
	found, err := lighthouse.Alive(t.Context(), db, time.Minute)
	require.NoError(t, err)
	troubles := map[string]string{}
	for _, c := range found {
		require.NotNil(t, c.CheckedAt)
		require.Equal(t, c.Trouble == "", *c.Healthy)
		troubles[c.Name] = c.Trouble
	}
	require.Equal(t, map[string]string{"well": "", "ill": "it answers 302", "away": "it does not answer"}, troubles)
}
