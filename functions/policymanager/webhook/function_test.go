package webhook_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/littoral-project/littoral/functions/policymanager/webhook"
	"github.com/littoral-project/littoral/shared/events"
	"github.com/littoral-project/littoral/shared/function"
	"github.com/littoral-project/littoral/shared/policy/policies"
	"github.com/littoral-project/littoral/shared/policy/registry"
	"github.com/littoral-project/littoral/shared/problem"
	"github.com/littoral-project/littoral/shared/settings"
	"github.com/littoral-project/littoral/shared/store"
	"github.com/littoral-project/littoral/shared/store/storetest"
)

func TestMain(m *testing.M) { storetest.Main(m) }

// TestACallIsMadeByOneAtATime: an event may be delivered again while it is being worked off, or after whoever worked it
// off has died.
func TestACallIsMadeByOneAtATime(t *testing.T) {
	db := storetest.New(t)
	calls, answer := make(chan string), make(chan int)
	target := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		calls <- r.Header.Get("Idempotency-Key")
		w.WriteHeader(<-answer)
	}))
	t.Cleanup(target.Close)
	given := settings.Map(map[string]string{"WEBHOOK_ALLOW": "127.0.0.1"})
	f, err := webhook.New(function.Platform{DB: db, Transport: target.Client().Transport, Settings: given}.Env("policymanager-webhook"))
	require.NoError(t, err)

	p := policies.New(registry.Policy{
		Name: "cpu", Subject: registry.Subject{Type: registry.HostSubject, HostID: "h", AgentID: "a"},
		Spec:   registry.Spec{Type: registry.TelemetrySpec, Expr: "up > 1"},
		Action: registry.Action{URL: target.URL, HTTPMethod: http.MethodPost},
	}, policies.FromAPI)
	require.NoError(t, p.Render(func(p *registry.Policy) (registry.Spec, error) { return p.Spec, nil }))
	require.NoError(t, db.Tx(t.Context(), func(ctx context.Context, tx *store.Tx) error {
		if _, _, err := policies.Create(ctx, tx, p, true); err != nil {
			return err
		}
		now := time.Now().UTC()
		return policies.Judge(ctx, tx, events.Alert{
			Policy: p.UUID(), Fingerprint: "f", Firing: true, StartsAt: now, ReceivedAt: now, Since: p.State.Since,
			Labels: map[string]string{}, Annotations: map[string]string{},
		})
	}))
	requested := storetest.Published(db, events.WebhookRequested)
	require.Len(t, requested, 1)
	require.Empty(t, storetest.Published(db, events.RemediationRequested))
	done := make(chan error)
	work := func() { done <- f.Work(t.Context(), requested[0]) }

	go work()
	id := <-calls
	require.ErrorIs(t, f.Work(t.Context(), requested[0]), store.ErrClaimed)
	answer <- http.StatusBadGateway
	require.Equal(t, problem.Unavailable, problem.KindOf(<-done), "it is delivered again")

	go work()
	require.Equal(t, id, <-calls, "whoever is called recognizes it")
	_, err = db.Exec(t.Context(), `update claims set ends_at = now() - interval '1 s'`) // as if that one had died
	require.NoError(t, err)
	go work()
	require.Equal(t, id, <-calls)
	answer <- http.StatusOK
	answer <- http.StatusOK
	require.NoError(t, <-done)
	require.NoError(t, <-done)
	require.NoError(t, f.Work(t.Context(), requested[0]), "a repeat calls nobody")
	var status string
	require.NoError(t, db.QueryRow(t.Context(), `select status from policy_actions`).Scan(&status))
	require.Equal(t, "done", status)
}
