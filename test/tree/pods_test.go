package tree_test

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
)

// TestPodsHearOfNoServices: unless it is disabled, Kubernetes sets environment variables in a container for every
// Service of the namespace, and each revision of a function has two Services. After a dozen upgrades these are more
// than a program can be started with. Knative disables it in its own pods.
func TestPodsHearOfNoServices(t *testing.T) {
	t.Parallel()
	overlays, err := filepath.Glob(root + "/knative/overlays/*/kustomization.yaml")
	require.NoError(t, err)
	n := 0
	for _, file := range overlays {
		if filepath.Base(filepath.Dir(file)) == "laptop" {
			continue // it does not run in a cluster
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

// TestKubeconfigsAddToAFunctionsOwn: with the component knative/kubeconfigs, a function keeps the credentials for its
// own cluster.
func TestKubeconfigsAddToAFunctionsOwn(t *testing.T) {
	t.Parallel()
	variables := func(dir string) map[string][]string {
		all := map[string][]string{}
		eachBuilt(t, dir, func(name string, object struct {
			APIVersion string
			Spec       struct{ Template corev1.PodTemplateSpec }
		},
		) {
			for _, c := range object.Spec.Template.Spec.Containers {
				for _, v := range c.Env {
					all[name] = append(all[name], v.Name)
				}
			}
		}, "Service")
		return all
	}
	const overlay = root + "/knative/overlays/edge"
	dir, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	from := func(folder string) string {
		t.Helper()
		there, err := filepath.Abs(folder)
		require.NoError(t, err)
		path, err := filepath.Rel(dir, there)
		require.NoError(t, err)
		return path
	}
	kustomization := "resources: [" + from(overlay) + "]\ncomponents: [" + from(root+"/knative/kubeconfigs") + "]\n"
	require.NoError(t, os.WriteFile(filepath.Join(dir, "kustomization.yaml"), []byte(kustomization), 0o600))

	want := variables(overlay)
	for _, name := range []string{
		"Service clusterlink-link", "Service clusterlink-sync",
		"Service deploymentmanager-deploy-kubernetes", "Service deploymentmanager-sync-kubernetes", "Service deploymentmanager-pod-logs",
	} {
		require.Contains(t, want[name], "KUBERNETES_TOKEN")
		want[name] = append(want[name], "KUBECONFIG_DIR")
	}
	require.Equal(t, want, variables(dir))
}

// TestGarbageOfServersIsCollectedBelowTheLimit as that of functions is (scripts/gen/services): the gateway would otherwise be
// killed, and all calls with it, when some hundreds come at once.
func TestGarbageOfServersIsCollectedBelowTheLimit(t *testing.T) {
	t.Parallel()
	n := 0
	eachBuilt(t, root+"/knative/overlays/lab", func(name string, object struct {
		Spec struct{ Template corev1.PodTemplateSpec }
	},
	) {
		for _, c := range object.Spec.Template.Spec.Containers {
			if !strings.HasPrefix(c.Image, "ko://") {
				continue
			}
			limit := c.Resources.Limits.Memory().Value()
			require.Contains(t, c.Env, corev1.EnvVar{Name: "GOMEMLIMIT", Value: strconv.FormatInt(limit/10*9, 10)}, name)
			n++
		}
	}, "Deployment")
	require.Equal(t, 2, n)
}
