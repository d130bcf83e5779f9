package metricsexport_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/littoral-project/littoral/shared/metricsexport"
	"github.com/littoral-project/littoral/shared/policy/registry"
	"github.com/littoral-project/littoral/shared/policy/render"
	"github.com/littoral-project/littoral/shared/telemetry"
)

// TestAPolicyReadsWhatAModelForesees: one that looks ahead fires by a trained model's series, whose expression nobody wrote, where neither
// the present value nor its course of late would have it fire. Its rule asks by what it watches and not by a model, so it is older here than
// any model and any name.
func TestAPolicyReadsWhatAModelForesees(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	app := func(instance string) map[string]string {
		return map[string]string{"icos_app_name": "shop", "icos_app_instance": instance, "icos_app_component": "web"}
	}
	const period = 41
	low := wave(70*period + 32) // ends in a trough, so that it is at its height half a period later
	w.emit(t, "load", app("i"), low)
	w.emit(t, "load", app("other"), walk(len(low)))
	p := &registry.Policy{
		Subject:    registry.Subject{Type: registry.AppSubject, AppName: "shop", AppInstance: "i", AppComponent: "web"},
		Spec:       registry.Spec{Type: registry.TelemetrySpec, Expr: `load{ {{subject_label_selector}} }`, ViolatedIf: "> 60"},
		Properties: registry.Properties{Forecast: "30m"},
	}
	spec, err := render.Policy(p, time.Minute)
	require.NoError(t, err)
	fires := func() []telemetry.Sample {
		samples, err := w.telemetry.Query(t.Context(), spec.Expr, time.Now().Add(time.Second))
		require.NoError(t, err)
		return samples
	}
	require.Empty(t, fires(), "nothing is published")

	publish := func(name, model string, steps int) {
		trained := w.train(t, metricsexport.Order{
			ModelName: model, Query: `load{icos_app_instance="i"}`, ModelType: "ridge", Window: 2800 * 60, StepsBack: period, Horizon: 20,
		})
		require.Equal(t, metricsexport.Finished, trained.State, trained.Why)
		order := metricsexport.ForecastOrder{Name: name, Query: "load", Model: model, Ahead: steps, Labels: map[string]string{"site": "here"}}
		require.NoError(t, w.computer().Create(t.Context(), order, "anna"))
		require.NoError(t, metricsexport.Push(t.Context(), w.db, http.DefaultClient, metricsexport.PushConfig{URL: w.push}, telemetry.Config{}))
	}
	publish("soon", "load", 3)
	require.Empty(t, fires(), "three minutes ahead are not what was asked for")
	publish("later", "another", 20)
	found := fires()
	require.Len(t, found, 1, "another model, under another name")
	require.Equal(t, app("i"), found[0].Labels, "the alert is about the same series")
	require.Greater(t, found[0].Value, 60.0)

	other, err := w.telemetry.Query(t.Context(), `littoral_foretold{icos_app_instance="other"}`, time.Now().Add(time.Second))
	require.NoError(t, err)
	require.Empty(t, other, "a walk has no better forecast than its last value")
}
