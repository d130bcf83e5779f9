package policies_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/littoral-project/littoral/shared/application/applicationtest"
	"github.com/littoral-project/littoral/shared/policy/policies"
	"github.com/littoral-project/littoral/shared/policy/registry"
	"github.com/littoral-project/littoral/shared/problem"
	"github.com/littoral-project/littoral/shared/store"
)

// slow is a rule store that takes its time.
type slow struct {
	*ruler
	asked, answer chan struct{}
}

func (s slow) Put(ctx context.Context, g registry.RuleGroup) (string, error) {
	close(s.asked)
	<-s.answer
	return s.ruler.Put(ctx, g)
}

// TestFollow_doesNotWaitForTheRuleStore, however slow that is: nobody else does so either, and what has changed meanwhile
// is carried over next.
func TestFollow_doesNotWaitForTheRuleStore(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	app := applicationtest.Submit(t, w.DB, `
name: a
components:
  - {name: web, type: kubernetes, manifests: [{name: web, manifest: {apiVersion: v1, kind: Pod, metadata: {name: web}}}]}`)
	p := policies.New(registry.Policy{
		Name: "cpu", Subject: registry.Subject{Type: registry.AppSubject, AppName: "a", AppInstance: app.ID.String(), AppComponent: "*"},
		Spec: registry.Spec{Type: registry.TelemetrySpec, Expr: "up > 1"},
	}, policies.FromAPI)
	require.NoError(t, p.Render(plain))
	require.NoError(t, w.Tx(func(ctx context.Context, tx *store.Tx) error {
		_, _, err := policies.Create(ctx, tx, p, true)
		return err
	}))
	rules := slow{w.rules, make(chan struct{}), make(chan struct{})}
	done := make(chan error, 1)
	go func() { done <- policies.Sync(t.Context(), w.DB, rules, p.UUID()) }()
	<-rules.asked
	require.NoError(t, w.Tx(func(ctx context.Context, tx *store.Tx) error {
		if _, err := tx.Exec(ctx, `select from policies for update nowait`); err != nil {
			return err
		}
		return policies.Follow(ctx, tx, app.ID, plain)
	}))
	require.NoError(t, w.Tx(func(ctx context.Context, tx *store.Tx) error {
		locked, err := policies.Lock(ctx, tx, p.UUID())
		if err != nil {
			return err
		}
		return locked.Deactivate(ctx, tx, true)
	}))
	require.ErrorIs(t, policies.Sync(t.Context(), w.DB, rules, p.UUID()), store.ErrClaimed, "one at a time")
	close(rules.answer)
	require.NoError(t, <-done)
	require.Empty(t, w.files(), "who carried over the former change carried over the next one, too")
	require.NoError(t, policies.Sync(t.Context(), w.DB, rules, p.UUID()), "nothing is left to do")
}

// TestFollow_ofARuleThatTheStoreRefuses: the next version of the descriptor applies to that policy once, too. A
// person's later change, with which the rule is accepted, is kept.
func TestFollow_ofARuleThatTheStoreRefuses(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	document := func(image string) []byte {
		return []byte(`
name: a
components:
  - {name: web, type: kubernetes, manifests: [{name: web, manifest: {apiVersion: v1, kind: Pod, metadata: {name: ` + image + `}}}]}
policies:
  - {name: load, type: custom, remediation: none, spec: {expr: up, violatedIf: "> {{limit}}"}, variables: {limit: 1}}`)
	}
	app := applicationtest.Submit(t, w.DB, string(document("web")))
	follow := func() {
		require.NoError(t, w.Tx(func(ctx context.Context, tx *store.Tx) error { return policies.Follow(ctx, tx, app.ID, plain) }))
		w.sync()
	}
	w.rules.refuses = problem.New(problem.Invalid, "the limit of 70 groups is reached")
	follow()
	p := w.ofInstance(app.ID.String())
	require.Equal(t, registry.Unknown, p.State.Phase)
	require.NoError(t, w.Tx(func(ctx context.Context, tx *store.Tx) error {
		_, err := applicationtest.Update(ctx, tx, app.ID, document("web2"), time.Minute)
		return err
	}))
	follow()
	w.change(p, func(ctx context.Context, tx *store.Tx, p *policies.Policy) error {
		return p.SetVariables(ctx, tx, registry.Variables{"limit": int64(2)}, p.Spec, nil)
	})
	follow()
	require.Equal(t, registry.Variables{"limit": int64(2)}, w.seen(p).Variables)
}

// ofInstance is the only policy about the instance.
func (w *world) ofInstance(instance string) *policies.Policy {
	w.Helper()
	list, err := policies.OfInstance(w.Context(), w.DB, instance)
	require.NoError(w, err)
	require.Len(w, list, 1)
	return list[0]
}
