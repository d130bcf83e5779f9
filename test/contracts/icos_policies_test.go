package contracts_test

import (
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// published reads an example of ICOS's policy manager.
func published(t testing.TB, name string) string {
	t.Helper()
	text, err := os.ReadFile("icos/dynamic-policy-manager/" + name + ".json")
	require.NoError(t, err)
	return string(text)
}

// TestIcosLifecycle: the events of the job manager of ICOS, in their order, twice each.
func TestIcosLifecycle(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, row := range []struct{ event, phase string }{
		{"created", "inactive"}, {"started", "enforced"}, {"stopped", "inactive"}, {"started", "enforced"}, {"deleted", ""},
	} {
		for range 2 {
			a := w.operator.call(t, http.MethodPost, polman+"/icos/app", published(t, "lifecycle_event_"+row.event)).is(t, http.StatusOK)
			list := decode[[]policy](t, a)
			if row.phase == "" {
				require.Empty(t, list)
				continue
			}
			require.Len(t, list, 1)
			require.Equal(t, row.phase, list[0].Status.Phase)
			require.Equal(t, "mjpeg-ffmpeg-app-demo-app-999-0", list[0].Name)
			require.Equal(t, "*", list[0].Subject["appComponent"])
		}
	}
}

// TestIcosPolicy: a policy from ICOS's documentation, and the webhooks of its Alertmanager about it.
func TestIcosPolicy(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.operator.call(t, http.MethodPost, polman+"/policies/", published(t, "policy_host_cpu_create")).is(t, http.StatusOK)
	p := decode[policy](t, a)
	require.Contains(t, p.Status.Rendered["expr"], `icos_app_component="backend"`)
	require.Contains(t, p.Status.Rendered["expr"], "> 0.5")
	for _, row := range []struct{ file, phase string }{{"firing", "violated"}, {"resolved", "enforced"}} {
		text := published(t, "alertmanager_webhook_"+row.file)
		w.alertmanager().call(t, http.MethodPost, webhook, text).is(t, http.StatusOK) // its policy is not ours
		text = strings.ReplaceAll(text, "65f5a3ced6ea3f831414a387", p.ID)
		w.alertmanager().call(t, http.MethodPost, webhook, text).is(t, http.StatusOK)
		require.Equal(t, row.phase, w.seePolicy(t, p.ID).Status.Phase)
	}
}
