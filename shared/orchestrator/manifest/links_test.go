package manifest_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/littoral-project/littoral/shared/orchestrator/manifest"
)

// linked are objects as two peers of ClusterLink 0.4.1 left them, by what is to be said of them; "" = they are ready. A peer
// writes its port into the Import, and no observedGeneration.
var linked = []struct{ want, object string }{
	{
		"its peer has not looked at it yet",
		`{"kind": "Export", "metadata": {"name": "world-svc", "generation": 1}, "spec": {"port": 8080}}`,
	},
	{
		"export service 'shop-93726b39/world-svc' does not exist",
		`{"kind": "Export", "metadata": {"name": "world-svc", "generation": 1}, "spec": {"port": 8080}, "status": {"conditions": [
{"lastTransitionTime": "2026-11-26T19:12:42Z", "message": "export service 'shop-93726b39/world-svc' does not exist",
	"reason": "Error", "status": "False", "type": "ExportValid"}]}}`,
	},
	{
		"",
		`{"kind": "Export", "metadata": {"name": "world-svc", "generation": 1}, "spec": {"port": 8080}, "status": {"conditions": [
{"lastTransitionTime": "2026-11-26T19:12:56Z", "message": "", "reason": "Verified", "status": "True", "type": "ExportValid"}]}}`,
	},
	{
		"its peer has not looked at it yet",
		`{"kind": "Import", "metadata": {"name": "world-svc", "generation": 2}, "spec": {"lbScheme": "round-robin", "port": 8080,
"sources": [{"exportName": "world-svc", "exportNamespace": "shop-93726b39", "peer": "two"}], "targetPort": 21347}}`,
	},
	{
		"",
		`{"kind": "Import", "metadata": {"name": "world-svc", "generation": 2}, "spec": {"lbScheme": "round-robin", "port": 8080,
"sources": [{"exportName": "world-svc", "exportNamespace": "shop-93726b39", "peer": "two"}], "targetPort": 21347},
"status": {"conditions": [
{"lastTransitionTime": "2026-11-26T19:12:48Z", "message": "", "reason": "Leased", "status": "True", "type": "ImportTargetPortValid"},
{"lastTransitionTime": "2026-11-26T19:12:48Z", "message": "", "reason": "Valid", "status": "True", "type": "ImportServiceValid"}]}}`,
	},
}

func TestLinksAsTheirPeersJudgeThem(t *testing.T) {
	t.Parallel()
	for _, c := range linked {
		o := &unstructured.Unstructured{}
		require.NoError(t, o.UnmarshalJSON([]byte(`{"apiVersion": "clusterlink.net/v1alpha1", `+c.object[1:])))
		h := manifest.HealthOf(o, manifest.Ask(o, manifest.FactsOf(o)))
		require.Equal(t, c.want == "", h.Ready, h.Message)
		if c.want != "" {
			require.Equal(t, o.GetKind()+" world-svc is not valid: "+c.want, h.Message)
		}
	}
}
