// Package fresh asks Prometheus how fresh its series are, for the metadata graph.
package fresh

import (
	"context"
	"maps"
	"math"
	"time"

	"github.com/littoral-project/littoral/shared/mdm/connect"
	"github.com/littoral-project/littoral/shared/problem"
	"github.com/littoral-project/littoral/shared/store"
	"github.com/littoral-project/littoral/shared/telemetry"
)

// Query is that of all that is scraped, over the last day.
const Query = `max by (cluster, node, job, instance) (timestamp(up) or max_over_time(timestamp(up)[1d:1m]))`

const most = 10_000

// Publish publishes how fresh the series of a query are, whose values are the times of their newest samples, in seconds.
func Publish(ctx context.Context, db *store.DB, client *telemetry.Client, query string, now time.Time) error {
	found, err := client.Query(ctx, query, now)
	if err != nil {
		return err
	}
	if len(found) > most {
		return problem.New(problem.Invalid, "telemetry has %d series for %s, at most %d are possible", len(found), problem.Brief(query, 200), most)
	}
	var all []connect.Heard
	for _, s := range found {
		if math.IsNaN(s.Value) || math.IsInf(s.Value, 0) {
			continue
		}
		labels := maps.Clone(s.Labels)
		delete(labels, "__name__")
		all = append(all, connect.Heard{Labels: labels, At: time.UnixMilli(int64(s.Value * 1000))})
	}
	return connect.Freshness(ctx, db, all, now)
}
