package knative_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/littoral-project/littoral/shared/policy/registry"
)

// policy returns the application's policy of that name.
func (w *world) policy(app, name string) registry.Policy {
	w.t.Helper()
	list := w.policies(app)
	for _, p := range list {
		if strings.HasSuffix(p.Name, name) {
			return p
		}
	}
	require.Failf(w.t, "no such policy", "%s is not among %v", name, list)
	return registry.Policy{}
}

// TestThePrometheusOperatorClosesTheLoop sends no alert by hand. The Prometheus of infra/examples/operator.yml finds in
// telemetry that a node is no longer trusted, Alertmanager reports it, and the component is moved. The end of the
// violation arrives in the same way.
func TestThePrometheusOperatorClosesTheLoop(t *testing.T) {
	w := newWorld(t)
	if address := w.setting("PROMETHEUS_ADDRESS"); !strings.Contains(address, "//prometheus-operated.") {
		t.Skipf("PROMETHEUS_ADDRESS is %s, which is none of the Prometheus Operator's: see infra/examples/operator.yml", address)
	}
	fleet := w.startFleet(t, fleetFile)
	id := w.submit(t, application("e2e-trust",
		"    policies: [{name: trust, fromTemplate: app-sca-score, variables: {threshold: 50}, remediation: reallocate}]\n"))
	w.available(id)
	w.eventually("the policy is watched", func() bool { return w.policy(id, "trust").Status.Phase == registry.Enforced })

	left := w.jobs(id)[0].Targets.Node
	require.NoError(t, fleet.Set("e2e-pier/"+left, map[string]string{"sca": "20"}))
	w.eventually("the component has left "+left, func() bool { return w.jobs(id)[0].Targets.Node != left })
	w.available(id)
	w.eventually("the violation has ended", func() bool { return w.policy(id, "trust").Status.Phase == registry.Enforced })
}
