// Package alerted updates the topology as soon as an Alertmanager reports that a node fell silent or a new one came, so
// that the PingSource of aggregator/tick may be slow.
package alerted

import (
	"net/http"

	"github.com/littoral-project/littoral/shared/auth"
	"github.com/littoral-project/littoral/shared/events"
	"github.com/littoral-project/littoral/shared/function"
	"github.com/littoral-project/littoral/shared/store"
	"github.com/littoral-project/littoral/shared/topology/collect"
)

// Spec declares the function.
var Spec = function.Spec{
	Routes:      []function.Route{{Pattern: "POST /aggregator/webhooks/alertmanager", Role: auth.Alertmanager}},
	Emits:       []string{events.TopologyChanged, events.PodsChanged},
	Concurrency: 1, // a second one at the same time would only wait for the first
	MaxBody:     4 << 20,
	Class:       function.Medium,
	Needs:       []function.Need{function.AlertSender, function.Telemetry},
}

// Function looks and saves.
type Function struct {
	auth.Shared

	db        *store.DB
	telemetry *collect.Collector
}

// New reads the settings.
func New(env *function.Env) (*Function, error) {
	f := &Function{db: env.DB}
	if err := env.Config(&f.Shared); err != nil {
		return nil, err
	}
	var err error
	f.telemetry, err = collect.Open(env.Config, env.HTTP)
	return f, err
}

// Handle answers 200 with whether anything has changed. It does not read the message, which only says when to look: the
// data is in telemetry.
func (f *Function) Handle(w http.ResponseWriter, r *http.Request) error {
	var message map[string]any
	if err := function.DecodeJSON(r, &message); err != nil {
		return err
	}
	changed, err := f.telemetry.Refresh(r.Context(), f.db)
	if err != nil {
		return err
	}
	return function.WriteJSON(w, http.StatusOK, map[string]bool{"changed": changed})
}
