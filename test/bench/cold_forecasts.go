package main

import (
	"context"
	"encoding/json"
	"net/http"

	"github.com/google/uuid"

	"github.com/littoral-project/littoral/shared/events"
)

// forecastCases are of the metrics export.
var forecastCases = map[string]maker{
	"metricsexport-home":    get("", "/metricsexport"),
	"metricsexport-metrics": get("viewer", "/metricsexport/metrics"),
	"metricsexport-metric-create": func(context.Context, *scene) (ask, error) {
		return document("operator", http.MethodPost, "/metricsexport/create_metric", gauge)
	},
	"metricsexport-metric-list": get("viewer", "/metricsexport/definitions"),
	"metricsexport-metric-get":  known(http.MethodGet, "/metricsexport/definitions/bench", nil),
	"metricsexport-metric-delete": known(http.MethodPost, "/metricsexport/unregister_metric",
		map[string]any{"metric_name": "bench"}),
	"metricsexport-train": func(context.Context, *scene) (ask, error) {
		return document("operator", http.MethodPost, "/metricsexport/train", map[string]any{"telemetry_metric": "up"})
	},
	"metricsexport-model-list": get("viewer", "/metricsexport/models"),
	"metricsexport-model-show": func(context.Context, *scene) (ask, error) {
		return document("viewer", http.MethodPost, "/metricsexport/show_models", map[string]any{"model": "all"})
	},
	"metricsexport-compute": tick,
	"metricsexport-fit": func(ctx context.Context, _ *scene) (ask, error) { // of a training that is gone
		id := uuid.New()
		return delivery(events.New(ctx, "/functions/metricsexport-train", events.TrainingRequested, id.String(), events.Training{ID: id}))
	},

	// These need a model, so what is asked is whether they are there.
	"metricsexport-drift":               get("", "/healthz"),
	"metricsexport-model-delete":        get("", "/healthz"),
	"metricsexport-model-get":           get("", "/healthz"),
	"metricsexport-model-metric-create": get("", "/healthz"),
	"metricsexport-model-metric-stop":   get("", "/healthz"),
	"metricsexport-predict":             get("", "/healthz"),
	"metricsexport-training-get":        get("", "/healthz"),
}

var gauge = map[string]any{"type": "gauge", "metric_name": "bench", "value": 1}

// known asks about a metric that there is.
func known(method, path string, body any) maker {
	return func(ctx context.Context, s *scene) (ask, error) {
		made, err := json.Marshal(gauge)
		if err != nil {
			return ask{}, err
		}
		if err := s.system.call(ctx, "operator", http.MethodPost, "/metricsexport/create_metric", made, nil); err != nil {
			return ask{}, err
		}
		if body == nil {
			return ask{client: "operator", method: method, path: path}, nil
		}
		return document("operator", method, path, body)
	}
}
