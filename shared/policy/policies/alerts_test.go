package policies_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/littoral-project/littoral/shared/events"
	"github.com/littoral-project/littoral/shared/policy/policies"
	"github.com/littoral-project/littoral/shared/policy/registry"
	"github.com/littoral-project/littoral/shared/problem"
	"github.com/littoral-project/littoral/shared/store"
)

// judge handles every alert that was announced and not yet judged.
func (w *world) judge() {
	w.Helper()
	for _, e := range w.news(events.AlertReceived) {
		var a events.Alert
		require.NoError(w, e.DataAs(&a))
		require.NoError(w, w.Tx(func(ctx context.Context, tx *store.Tx) error {
			return policies.Judge(ctx, tx, a)
		}))
	}
}

// TestReceive_whileThePolicyIsChanged: the notice belongs to the former activation, so the next notice of the same
// alert is the first of the present one.
func TestReceive_whileThePolicyIsChanged(t *testing.T) {
	t.Parallel()
	for how, change := range map[string]func(context.Context, *store.Tx, *policies.Policy) error{
		"given another variable": func(ctx context.Context, tx *store.Tx, p *policies.Policy) error {
			return p.SetVariables(ctx, tx, p.Variables, p.Spec, nil)
		},
		"activated anew": func(ctx context.Context, tx *store.Tx, p *policies.Policy) error {
			if err := p.Deactivate(ctx, tx, true); err != nil {
				return err
			}
			return p.Activate(ctx, tx)
		},
	} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			p := w.create("cpu", "up > 1")
			alert := policies.Alert{
				Status: policies.Firing, StartsAt: time.Now(), Fingerprint: "f",
				Labels:      map[string]string{"icos_app_component": "web"},
				Annotations: map[string]string{registry.AnnotationID: p.ID, "plm_expr_value": "2"},
			}
			receive := func(ctx context.Context, tx *store.Tx) policies.Received {
				received, err := policies.Receive(ctx, tx, []policies.Alert{alert})
				require.NoError(t, err)
				return received
			}
			require.NoError(t, w.Tx(func(ctx context.Context, tx *store.Tx) error {
				require.Equal(t, policies.Received{New: 1}, receive(ctx, tx))
				w.change(p, change) // without waiting for the webhook
				return nil
			}))
			w.judge()
			require.Equal(t, registry.Enforced, w.seen(p).State.Phase, "it was said of the former activation")

			for _, want := range []policies.Received{{New: 1}, {Repeated: 1}} {
				require.NoError(t, w.Tx(func(ctx context.Context, tx *store.Tx) error {
					require.Equal(t, want, receive(ctx, tx))
					return nil
				}))
				w.judge()
				require.Equal(t, registry.Violated, w.seen(p).State.Phase)
			}
		})
	}
}

// TestCheck_passesNothingThatIsTooLargeForAnEvent: such an alert would be accepted, and lost on its way to the function
// that judges it.
func TestCheck_passesNothingThatIsTooLargeForAnEvent(t *testing.T) {
	t.Parallel()
	for texts, passes := range map[int]bool{16: true, 17: false} {
		alert := policies.Alert{
			Status: policies.Firing, StartsAt: time.Now(), Labels: map[string]string{},
			Annotations: map[string]string{registry.AnnotationID: uuid.NewString()}, // no other alert becomes an event
		}
		for i := range texts {
			into := alert.Labels
			if i%2 == 0 {
				into = alert.Annotations
			}
			into[string(rune('a'+i))] = strings.Repeat("\x01", 8<<10-4) // of six characters in JSON
		}
		var faults problem.Faults
		alert.Check(0, &faults)
		err := faults.Err("no alert")
		if !passes {
			require.ErrorContains(t, err, "labels and annotations")
			continue
		}
		require.NoError(t, err)
		e, err := events.New(t.Context(), "/test", events.AlertReceived, "p", events.Alert{
			Labels: alert.Labels, Annotations: alert.Annotations,
		})
		require.NoError(t, err)
		body, err := json.Marshal(e)
		require.NoError(t, err)
		require.Less(t, len(body), events.MaxBytes)
	}
}
