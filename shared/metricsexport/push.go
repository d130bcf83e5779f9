package metricsexport

import (
	"context"
	"net/http"
	"time"

	"github.com/littoral-project/littoral/shared/otlp"
	"github.com/littoral-project/littoral/shared/store"
	"github.com/littoral-project/littoral/shared/telemetry"
)

// PushConfig is read from the environment by envconfig.
type PushConfig struct {
	// URL takes OTLP, such as http://prometheus:9090/api/v1/otlp/v1/metrics; "" = nothing is pushed, and a Prometheus
	// scrapes the metrics.
	URL string `envconfig:"METRICS_PUSH_URL"`
}

// Push sends all metrics to where they can be queried, with the credentials of the telemetry store.
func Push(ctx context.Context, q store.Querier, client *http.Client, c PushConfig, credentials telemetry.Config) error {
	if c.URL == "" {
		return nil
	}
	samples, err := Samples(ctx, q)
	if err != nil || len(samples) == 0 {
		return err
	}
	body, err := otlp.Encode(map[string]string{"service.name": "metricsexport", "service.namespace": "littoral"}, samples, time.Now())
	if err != nil {
		return err
	}
	header := http.Header{}
	credentials.Authorize(header)
	return otlp.Push(ctx, client, c.URL, header, body)
}
