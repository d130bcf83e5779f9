package connect

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/littoral-project/littoral/shared/mdm"
	"github.com/littoral-project/littoral/shared/store"
)

// What the connector of Prometheus publishes.
const (
	Telemetry = "telemetry"
	Observes  = "OBSERVES" // telemetry to compute
)

var prometheus = mdm.EntityID("connector", "littoral/prometheus")

// Heard is what telemetry was heard from, and when last.
type Heard struct {
	Labels map[string]string
	At     time.Time
}

// Freshness publishes how fresh telemetry is: each series is an entity with its labels, and with the labels cluster and node it leads to
// that node. One that is not given any more is gone.
func Freshness(ctx context.Context, db *store.DB, all []Heard, now time.Time) error {
	b := batch{source: mdm.Source{Connector: prometheus, Type: ours, At: now}}
	present := []uuid.UUID{}
	for _, s := range all {
		var parts []string
		attributes := map[string]any{"freshness": heard(now.Sub(s.At))}
		for _, name := range slices.Sorted(maps.Keys(s.Labels)) {
			parts = append(parts, s.Labels[name])
			attributes[name] = s.Labels[name]
		}
		name := strings.Join(parts, "/")
		id := mdm.EntityID(Telemetry, name)
		present = append(present, id)
		b.entity(Telemetry, name, attributes)
		if cluster, node := s.Labels["cluster"], s.Labels["node"]; cluster != "" && node != "" {
			b.relation(Observes, id, NodeID(cluster, node))
		}
	}
	if err := b.publishAll(ctx, db, []string{Telemetry}, present); err != nil {
		return err
	}
	return mdm.Introduce(ctx, db, mdm.Connector{ID: prometheus, Type: ours, Name: "Freshness of telemetry", Interval: 300}, true)
}

// heard is the age of the newest sample in words, so that what stays so is published once.
func heard(of time.Duration) string {
	switch {
	case of <= 2*time.Minute:
		return "Fresh"
	case of <= 15*time.Minute:
		return "Late"
	}
	return "Silent"
}
