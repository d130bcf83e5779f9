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

// TestAStoreOfACluster: the Prometheus that a cluster may have beside its gateway, with the configuration and limits of the options.
func TestAStoreOfACluster(t *testing.T) {
	t.Parallel()
	s := site(Cluster)
	s.Image, s.Store, s.Retention, s.StoreMiB = "registry.example/collector:1", "0.0.0.0:9090", "6h", 100
	_, err := s.Files()
	require.ErrorContains(t, err, "-store-image")
	s.StoreImage = "registry.example/prometheus:3"
	files, err := s.Files()
	require.NoError(t, err)
	require.Equal(t, "prometheus.yaml", files[2].Name)
	var store appsv1.StatefulSet
	var config corev1.ConfigMap
	for document := range strings.SplitSeq(files[3].Text, "\n---\n") {
		var kind struct {
			Kind     string
			Metadata struct{ Name string }
		}
		require.NoError(t, yaml.Unmarshal([]byte(document), &kind))
		switch {
		case kind.Kind == "ConfigMap":
			require.NoError(t, yaml.UnmarshalStrict([]byte(document), &config))
		case kind.Kind == "StatefulSet" && kind.Metadata.Name == "site-metrics":
			require.NoError(t, yaml.UnmarshalStrict([]byte(document), &store))
		case kind.Metadata.Name == "site-metrics":
			require.NoError(t, yaml.UnmarshalStrict([]byte(document), &corev1.Service{}))
		}
	}
	require.Equal(t, files[2].Text, config.Data["prometheus.yaml"])
	require.Equal(t, s.StoreImage, store.Spec.Template.Spec.Containers[0].Image)
	require.Subset(t, store.Spec.Template.Spec.Containers[0].Args, s.StoreArguments())
	require.Contains(t, files[0].Text, "http://site-metrics:9090/api/v1/otlp/v1/metrics")
}
