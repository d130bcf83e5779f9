package cli_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/littoral-project/littoral/shared/api"
)

const suggesting = `name: park
components:
  - name: web
    type: kubernetes
    requirements: {cpu: 500m}
    manifests: [{name: web, manifest: {apiVersion: v1, kind: ConfigMap, metadata: {name: web}}}]
policies:
  - name: load
    apply-to: web
    fromTemplate: app-host-cpu-usage-perc
    variables: {threshold: 0.8}
    remediation: redeploy
    confirm: true
`

// fire sends an alert about the policy to the webhook.
func (h *host) fire(p *api.Policy, status string, at time.Time) {
	h.t.Helper()
	body := fmt.Sprintf(`{"version": "4", "alerts": [{"status": %q, "startsAt": %q, "fingerprint": "f-1",
"labels": {"alertname": %q, "icos_app_instance": %q, "icos_app_component": "web"}, "annotations": {"plm_id": %q, "plm_expr_value": "0.93"}}]}`,
		status, at.Format(time.RFC3339Nano), p.Name, p.Subject.App, p.ID)
	r, err := http.NewRequestWithContext(h.t.Context(), http.MethodPost, h.url+"/polman/watcher/api/v1/webhooks/alertmanager", strings.NewReader(body))
	require.NoError(h.t, err)
	r.Header.Set("Authorization", "Bearer "+h.sys.Token("alertmanager"))
	resp, err := http.DefaultClient.Do(r)
	require.NoError(h.t, err)
	require.NoError(h.t, resp.Body.Close())
	require.Equal(h.t, http.StatusOK, resp.StatusCode)
	require.NoError(h.t, h.sys.Broker.Drain(h.t.Context()))
}

func TestSuggestions(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	file := filepath.Join(t.TempDir(), "park.yaml")
	require.NoError(t, os.WriteFile(file, []byte(suggesting), 0o600))
	h.at(2, func() { h.work() })
	h.ok("apply", "-f", file, "--wait")
	require.Equal(t, "Nothing waits for a person.\n", h.ok("suggestions"))

	var policies []api.Policy
	require.NoError(t, json.Unmarshal([]byte(h.ok("get", "policies", "-o", "json")), &policies))
	require.Len(t, policies, 1)
	h.fire(&policies[0], "firing", time.Now().Add(-time.Minute))
	list := h.ok("suggestions", "--app", "park")
	require.Regexp(t, `(?m)^[0-9a-f]{8} +park +web +reallocate +0\.93 +\S+ +load$`, list)
	for line := range strings.SplitSeq(list, "\n") {
		require.LessOrEqual(t, len([]rune(line)), 80, line)
	}
	id := strings.Fields(strings.Split(list, "\n")[1])[0]
	whole := h.ok("suggestions", "-o", "name")
	require.Regexp(t, `^suggestion/`+id, whole)
	require.Contains(t, h.ok("suggestions", "-o", "wide"), strings.TrimSpace(strings.TrimPrefix(whole, "suggestion/")))
	require.Contains(t, h.ok("suggestion", "dismiss", id), "reallocate of park/web dismissed")
	require.Equal(t, "Nothing waits for a person.\n", h.ok("suggestions"))

	h.fire(&policies[0], "firing", time.Now())
	id = strings.Fields(strings.Split(h.ok("suggestions"), "\n")[1])[0]
	require.Contains(t, h.ok("suggestion", "confirm", "suggestion/"+id, "-o", "json"), `"confirmed": true`)
	require.NoError(t, h.sys.Broker.Drain(t.Context()))
	require.Contains(t, h.ok("events", "park"), "reallocate is confirmed by")
	require.Contains(t, h.ok("events", "park"), "policy.remediated")
	require.Equal(t, "Nothing waits for a person.\n", h.ok("suggestions"))
}
