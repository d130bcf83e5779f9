// Package alertmanager receives the alerts of policies from an Alertmanager.
package alertmanager

import (
	"context"
	"net/http"

	"github.com/prometheus/alertmanager/template"

	"github.com/littoral-project/littoral/shared/auth"
	"github.com/littoral-project/littoral/shared/events"
	"github.com/littoral-project/littoral/shared/function"
	"github.com/littoral-project/littoral/shared/policy/policies"
	"github.com/littoral-project/littoral/shared/problem"
	"github.com/littoral-project/littoral/shared/store"
)

// Spec declares the function. One webhook may bring hundreds of alerts with long labels.
var Spec = function.Spec{
	Routes: []function.Route{{
		Pattern: "POST /polman/watcher/api/v1/webhooks/alertmanager", Role: auth.Alertmanager,
		Aliases: []string{"POST /watcher/api/v1/webhooks/alertmanager"},
	}},
	Emits:   []string{events.AlertReceived},
	MaxBody: 4 << 20,
	Class:   function.Large,
	Needs:   []function.Need{function.AlertSender},
}

// Function is the operation with its settings and store.
type Function struct {
	auth.Shared

	db *store.DB
}

// New reads the settings.
func New(env *function.Env) (*Function, error) {
	f := &Function{db: env.DB}
	return f, env.Config(&f.Shared)
}

// message is Alertmanager's webhook body, version 4. Its outer fields are repeated here, since the package of the
// webhook notifier would bring thirty modules along.
type message struct {
	template.Data
	Version         string `json:"version"`
	GroupKey        string `json:"groupKey"`
	TruncatedAlerts uint64 `json:"truncatedAlerts"`
}

// alerts converts the alerts of the message.
func (m *message) alerts() []policies.Alert {
	list := make([]policies.Alert, len(m.Alerts))
	for i, a := range m.Alerts {
		list[i] = policies.Alert{
			Status: a.Status, Labels: entries(a.Labels), Annotations: entries(a.Annotations),
			StartsAt: a.StartsAt, EndsAt: a.EndsAt, Fingerprint: a.Fingerprint,
		}
	}
	return list
}

// entries returns labels or annotations as a map, which may be empty.
func entries(said template.KV) map[string]string {
	if said == nil {
		return map[string]string{}
	}
	return said
}

// Handle records the alerts and answers 200 with what was new in them. Alerts about no policy of ours are no fault: an
// Alertmanager may send everything here.
func (f *Function) Handle(w http.ResponseWriter, r *http.Request) error {
	var m message
	if err := function.DecodeJSON(r, &m); err != nil {
		return err
	}
	alerts := m.alerts()
	if err := m.check(alerts); err != nil {
		return err
	}
	var received policies.Received
	err := f.db.Tx(r.Context(), func(ctx context.Context, tx *store.Tx) (err error) {
		received, err = policies.Receive(ctx, tx, alerts)
		return err
	})
	if err != nil {
		return err
	}
	return function.WriteJSON(w, http.StatusOK, received)
}

// check finds everything that is wrong with the message.
func (m *message) check(alerts []policies.Alert) error {
	var faults problem.Faults
	if m.Version != "" && m.Version != "4" {
		faults.Add("version", 0, "is %.20q, want 4", m.Version)
	}
	if m.Alerts == nil {
		faults.Add("alerts", 0, "is required")
	}
	for i := range alerts {
		alerts[i].Check(i, &faults)
	}
	return faults.Err("the message is not one of Alertmanager's")
}
