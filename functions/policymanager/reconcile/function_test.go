package reconcile_test

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/littoral-project/littoral/functions/policymanager/reconcile"
	"github.com/littoral-project/littoral/shared/events"
	"github.com/littoral-project/littoral/shared/function"
	"github.com/littoral-project/littoral/shared/settings"
	"github.com/littoral-project/littoral/shared/store"
	"github.com/littoral-project/littoral/shared/store/storetest"
)

func TestMain(m *testing.M) { storetest.Main(m) }

// TestRun_doesWhatItCan while the rule store is away: held actions are released, and what is old is deleted.
func TestRun_doesWhatItCan(t *testing.T) {
	away := httptest.NewServer(http.NotFoundHandler())
	away.Close()
	db := storetest.New(t)
	f, err := reconcile.New(function.Platform{
		DB: db, Log: slog.New(slog.DiscardHandler),
		Settings: settings.Map(map[string]string{"RULES_API_URL": away.URL}),
	}.Env("policymanager-reconcile"))
	require.NoError(t, err)
	for _, row := range []string{
		`insert into policy_alerts (policy_id, fingerprint, starts_at, status, known, labels, received_at)
select '', name, now(), 'firing', false, '{}', now() - age
from (values ('old', interval '31 days'), ('young', interval '29 days')) alerts (name, age)`,
		`insert into policy_actions (id, policy_id, instance, component, remediation, status, violation, started_at, received_at,
held_until)
select gen_random_uuid(), gen_random_uuid(), '', name, 'reallocate', 'held', '{}', now(), now(), now() + until
from (values ('due', interval '-1 s'), ('later', interval '1 h')) actions (name, until)`,
	} {
		_, err := db.Exec(t.Context(), row)
		require.NoError(t, err)
	}
	require.ErrorContains(t, f.Run(t.Context()), away.URL)
	heard, err := store.Collect(t.Context(), db, "read alerts", pgx.RowTo[string], `select fingerprint from policy_alerts`)
	require.NoError(t, err)
	require.Equal(t, []string{"young"}, heard)
	due, err := store.Collect(t.Context(), db, "read actions", pgx.RowTo[uuid.UUID],
		`select id from policy_actions where component = 'due'`)
	require.NoError(t, err)
	released := storetest.Published(db, events.RemediationRequested)
	require.Len(t, released, 1)
	var data events.Policy
	require.NoError(t, released[0].DataAs(&data))
	require.Equal(t, due[0], *data.Violation)
}
