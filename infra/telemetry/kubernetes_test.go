package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/yaml"
)

// TestWhatAClusterRuns: objects with no field that Kubernetes does not know, and with the configuration as the collector gets it.
func TestWhatAClusterRuns(t *testing.T) {
	t.Parallel()
	s := site(Cluster)
	s.Image = "registry.example/collector:1"
	files, err := s.Files()
	require.NoError(t, err)
	require.Len(t, files, 3)
	var config corev1.ConfigMap
	var gateway appsv1.StatefulSet
	var node appsv1.DaemonSet
	into := map[string]any{
		"ServiceAccount": &corev1.ServiceAccount{}, "ClusterRole": &rbacv1.ClusterRole{}, "ClusterRoleBinding": &rbacv1.ClusterRoleBinding{},
		"ConfigMap": &config, "Service": &corev1.Service{}, "StatefulSet": &gateway, "DaemonSet": &node,
	}
	for document := range strings.SplitSeq(files[2].Text, "\n---\n") {
		var kind struct{ Kind string }
		require.NoError(t, yaml.Unmarshal([]byte(document), &kind))
		require.Contains(t, into, kind.Kind)
		require.NoError(t, yaml.UnmarshalStrict([]byte(document), into[kind.Kind]), kind.Kind)
		delete(into, kind.Kind)
	}
	require.Empty(t, into, "every object is there, once")
	require.Equal(t, files[0].Text, config.Data["gateway.yaml"])
	require.Equal(t, files[1].Text, config.Data["node.yaml"])
	for _, pod := range []corev1.PodSpec{gateway.Spec.Template.Spec, node.Spec.Template.Spec} {
		require.Equal(t, s.Image, pod.Containers[0].Image)
		mounted := map[string]bool{}
		for _, m := range pod.Containers[0].VolumeMounts {
			mounted[m.MountPath] = true
		}
		require.True(t, mounted[s.Queue] && mounted["/etc/littoral"] && mounted["/etc/collector"], "%v", mounted)
	}
	s.TokenFile = ""
	files, err = s.Files()
	require.NoError(t, err)
	require.NotContains(t, files[2].Text, "secretName")
}
