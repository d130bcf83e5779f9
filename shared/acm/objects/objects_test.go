package objects_test

import (
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/littoral-project/littoral/shared/acm"
	"github.com/littoral-project/littoral/shared/acm/objects"
	"github.com/littoral-project/littoral/shared/function"
	"github.com/littoral-project/littoral/shared/settings"
	"github.com/littoral-project/littoral/test/kubeapi"
)

// TestAStatusTakesThePlaceOfTheOneBefore: nothing of it is left in the object, such as what was wrong then.
func TestAStatusTakesThePlaceOfTheOneBefore(t *testing.T) {
	t.Parallel()
	api := kubeapi.Start(t, []string{"plant"}, nil)
	api.Define("codeco.he-codeco.eu", "v1alpha1", "CodecoApp", "codecoapps", true)
	const path = "/apis/codeco.he-codeco.eu/v1alpha1/namespaces/plant/codecoapps/camera"
	api.Put(t, path, `{"apiVersion": "codeco.he-codeco.eu/v1alpha1", "kind": "CodecoApp", "metadata": {"name": "camera", "namespace": "plant"},
		"spec": {"appName": "camera"}}`)
	o, err := objects.Open(function.Platform{Log: slog.New(slog.DiscardHandler), Settings: settings.Map(map[string]string{
		"CODECO_OBJECTS": api.KubeconfigFile(t, "objects"),
	})}.Env("acm-status"))
	require.NoError(t, err)
	key := acm.Key{Namespace: "plant", Name: "camera"}

	require.NoError(t, o.SetStatus(t.Context(), key, acm.Status{
		Status: acm.Warning, ErrorMsg: "1 of 3 components run", NodeMetrics: []acm.NodeMetric{{NodeName: "a", AvgNodeCPU: "3"}},
		AppMetrics: acm.AppMetrics{NumPods: 1, AvgAppCPU: "0.5", ServiceMetrics: []acm.ServiceMetric{{ServiceName: "eye"}}},
	}))
	status := func() map[string]any {
		m, _, err := unstructured.NestedMap(api.Get(path).Object, "status")
		require.NoError(t, err)
		return m
	}
	require.Equal(t, "1 of 3 components run", status()["errorMsg"])
	require.Equal(t, "0.5", status()["appMetrics"].(map[string]any)["avgAppCpu"])

	require.NoError(t, o.SetStatus(t.Context(), key, acm.Status{Status: acm.OK, AppMetrics: acm.AppMetrics{NumPods: 3}}))
	require.Equal(t, map[string]any{"status": "OK", "appMetrics": map[string]any{"numPods": 3.0}}, status())
	require.NoError(t, o.SetStatus(t.Context(), acm.Key{Namespace: "plant", Name: "gone"}, acm.Status{}))
}
