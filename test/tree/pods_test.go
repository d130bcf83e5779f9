package tree_test

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
)

// TestPodsHearOfNoServices: Kubernetes gives a container variables for every Service of the namespace unless it is told
// not to, and each revision of a function has two. After a dozen upgrades they are more than a program can be started
// with. Knative leaves them out of its own pods.
func TestPodsHearOfNoServices(t *testing.T) {
	t.Parallel()
	overlays, err := filepath.Glob(root + "/knative/overlays/*/kustomization.yaml")
	require.NoError(t, err)
	n := 0
	for _, file := range overlays {
		if filepath.Base(filepath.Dir(file)) == "laptop" {
			continue // nothing of it runs in a cluster
		}
		eachBuilt(t, filepath.Dir(file), func(name string, object struct {
			Spec struct{ Template corev1.PodTemplateSpec }
		},
		) {
			links := object.Spec.Template.Spec.EnableServiceLinks
			require.True(t, links != nil && !*links, "%s: %s", file, name)
			n++
		}, "Deployment", "StatefulSet", "Job")
	}
	require.Positive(t, n)
}
