package tree_test

import (
	"path"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/littoral-project/littoral/shared/events/identity"
	"github.com/littoral-project/littoral/shared/settings"
)

// TestEverySenderAndReceiverHasAToken: with knative/authentication, each function has the volume that package identity
// reads, with a token for the Broker that it publishes to. All senders of events to functions are configured to use
// tokens that the functions accept.
func TestEverySenderAndReceiverHasAToken(t *testing.T) {
	t.Parallel()
	const dir = root + "/knative/overlays/lab-authentication"
	var c identity.Config
	require.NoError(t, settings.Read(nil, "", &c))
	var broker string
	eachBuilt(t, dir, func(name string, object struct{ Data map[string]string }) {
		if name == "ConfigMap littoral" {
			c.Dir = object.Data["KNATIVE_TOKENS"]
			broker = "eventing.knative.dev/broker/" + path.Join(strings.Split(object.Data["K_SINK"], "/")[3:]...)
		}
	}, "ConfigMap")
	require.NotEmpty(t, c.Dir)

	n := 0
	eachBuilt(t, dir, func(name string, object struct {
		APIVersion string
		Spec       struct{ Template corev1.PodTemplateSpec }
	},
	) {
		if !strings.HasPrefix(object.APIVersion, "serving.knative.dev/") {
			return
		}
		n++
		pod := object.Spec.Template.Spec
		require.Len(t, pod.Volumes, 1, name)
		require.Equal(t, c.Dir, pod.Containers[0].VolumeMounts[0].MountPath, name)
		files := map[string]string{} // and the audience, if they are tokens
		for _, source := range pod.Volumes[0].Projected.Sources {
			if source.ConfigMap != nil {
				files[source.ConfigMap.Items[0].Path] = ""
			} else {
				files[source.ServiceAccountToken.Path] = source.ServiceAccountToken.Audience
			}
		}
		require.Equal(t, map[string]string{"broker": broker, "api": "", "ca.crt": ""}, files, name)
	}, "Service")
	require.Len(t, render(t, "lab").functions, n)
	require.Positive(t, n)

	n = 0
	type destination struct{ Audience string }
	eachBuilt(t, dir, func(name string, object struct {
		Spec struct{ Subscriber, Sink destination }
	},
	) {
		n++
		require.Equal(t, c.Audience, object.Spec.Subscriber.Audience+object.Spec.Sink.Audience, name)
	}, "Trigger", "PingSource", "ApiServerSource")
	require.Positive(t, n)
}
