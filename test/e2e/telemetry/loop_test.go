package telemetry_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/littoral-project/littoral/shared/job"
	catalogue "github.com/littoral-project/littoral/shared/policy/template"
)

// TestTheLoop first tests the path from a scrape to the webhook alone. Then it takes each kind of policy that a
// descriptor may contain through a real violation, its remediation and its end. All kinds run concurrently, since each
// mostly waits for scrapes, evaluations and deployments; each has its own two nodes.
func TestTheLoop(t *testing.T) {
	w := newWorld(t)
	t.Run("side by side", func(t *testing.T) {
		t.Run("a rule fires, the webhook is told, and so when it is over", func(t *testing.T) {
			t.Parallel()
			w.in(t).probes(w.grounds[len(kinds)][0].node)
		})
		t.Run("functions push their metrics, and the aggregator is told of nodes", func(t *testing.T) {
			t.Parallel()
			w := w.in(t)
			w.eventually("metrics have come by OTLP", func() bool {
				_, found := w.query(`http_server_request_duration_seconds_count{service_name!=""}`)
				return found
			})
			w.eventually("a message about nodes was taken", func() bool { return w.messageOf("LittoralNodeHeard", "firing") != nil })
		})
		for i := range kinds {
			t.Run(kinds[i].name, func(t *testing.T) {
				t.Parallel()
				(&run{world: w.in(t), kind: &kinds[i], ground: w.grounds[i]}).all()
			})
		}
	})
	if t.Failed() {
		return
	}
	var dead []json.RawMessage
	require.Equal(t, http.StatusOK, w.ask("viewer", http.MethodGet, "/events/dead", "", &dead))
	require.Empty(t, dead, "nothing was given up")
	require.Empty(t, w.refused(), "and none of Alertmanager's messages refused")
	templates, remediations, comparisons := w.sawViolated()
	require.Subset(t, templates, catalogue.Names(), "each template by each of its names")
	require.Subset(t, remediations, []string{
		string(job.NoRemediation), string(job.Reallocate), string(job.ScaleUp), string(job.ScaleDown), string(job.ScaleOut),
		string(job.ScaleIn), string(job.Patch), string(job.ReplaceIt), string(job.Secure),
	}, "each remediation")
	require.Subset(t, comparisons, []string{">", "<", ">=", "<=", "==", "!="}, "each comparison")
}

// probe is a rule without a policy. It is named like the rule of a policy, since otherwise its alerts would not be
// sent.
const probe = `{"data": {"groups": [{"name": "probe", "rules": [{
	"alert": "probe:rule-0", "expr": "SCA_score{agent_hostname=\"%s\"} < 40", "for": "0", "labels": {},
	"annotations": {"value": "{{ $value }}"}}]}]}}`

func (w *world) probes(node string) {
	var put struct{ File string }
	require.Equal(w.t, http.StatusOK, w.ask("operator", http.MethodPost, "/rules/", fmt.Sprintf(probe, node), &put))
	w.promtool(put.File)
	w.set(node, fleetCommand{"sca": "20"})
	w.eventually("it fires", func() bool { return w.messageOf("probe:rule-0", "firing") != nil })
	d := w.messageOf("probe:rule-0", "firing")
	require.Equal(w.t, http.StatusOK, d.status, "Alertmanager's token is taken, and an alert of no policy is no fault")
	require.Equal(w.t, "4", d.Version)
	require.Equal(w.t, "20", d.Alerts[0].Annotations["value"])
	w.set(node, fleetCommand{"sca": ""})
	w.eventually("it is over", func() bool { return w.messageOf("probe:rule-0", "resolved") != nil })
	require.Equal(w.t, http.StatusNoContent, w.ask("operator", http.MethodDelete, "/rules/"+put.File, "", nil))
}

// sighted is what was observed to be violated.
type sighted struct{ templates, remediations, comparisons map[string]bool }

func (j *journal) saw(template, remediation, comparison string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.seen.templates[template] = true
	j.seen.remediations[remediation] = true
	j.seen.comparisons[comparison] = true
}

func (j *journal) sawViolated() (templates, remediations, comparisons []string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return slices.Sorted(maps.Keys(j.seen.templates)), slices.Sorted(maps.Keys(j.seen.remediations)),
		slices.Sorted(maps.Keys(j.seen.comparisons))
}
