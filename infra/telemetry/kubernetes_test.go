package main

import (
	"path"
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
	s.Image, s.IssuerKeys = "registry.example/collector:1", "/etc/issuer/keys.json"
	files, err := s.Files()
	require.NoError(t, err)
	require.Len(t, files, 3)
	var config corev1.ConfigMap
	var gateway appsv1.StatefulSet
	var node appsv1.DaemonSet
	into := map[string]any{
		"Namespace littoral-agents": &corev1.Namespace{}, "ServiceAccount collector": &corev1.ServiceAccount{},
		"ClusterRole littoral-collector": &rbacv1.ClusterRole{}, "ClusterRoleBinding littoral-collector": &rbacv1.ClusterRoleBinding{},
		"ClusterRoleBinding littoral-collector-keys": &rbacv1.ClusterRoleBinding{},
		"ConfigMap collector":                        &config, "Service gateway": &corev1.Service{},
		"StatefulSet gateway": &gateway, "DaemonSet collector": &node,
	}
	for document := range strings.SplitSeq(files[2].Text, "\n---\n") {
		var kind struct {
			Kind     string
			Metadata struct{ Name string }
		}
		require.NoError(t, yaml.Unmarshal([]byte(document), &kind))
		name := kind.Kind + " " + kind.Metadata.Name
		require.Contains(t, into, name)
		require.NoError(t, yaml.UnmarshalStrict([]byte(document), into[name]), name)
		delete(into, name)
	}
	require.Empty(t, into, "every object is there, once")
	require.Equal(t, files[0].Text, config.Data["gateway.yaml"])
	require.Equal(t, files[1].Text, config.Data["node.yaml"])
	for _, one := range []struct {
		pod   corev1.PodSpec
		files []string // that its configuration reads or writes
	}{
		{gateway.Spec.Template.Spec, []string{s.Queue, path.Dir(s.TokenFile), path.Dir(s.IssuerKeys), path.Dir(clusterCA), "/etc/collector"}},
		{node.Spec.Template.Spec, []string{s.Queue, path.Dir(nodeToken), "/var/log", "/etc/collector"}},
	} {
		require.Equal(t, s.Image, one.pod.Containers[0].Image)
		var mounted []string
		volumes := map[string]bool{}
		for _, v := range one.pod.Volumes {
			volumes[v.Name] = true
		}
		for _, v := range gateway.Spec.VolumeClaimTemplates {
			volumes[v.Name] = true
		}
		for _, m := range one.pod.Containers[0].VolumeMounts {
			mounted = append(mounted, m.MountPath)
			require.True(t, volumes[m.Name], m.Name)
		}
		require.ElementsMatch(t, one.files, mounted)
	}
	require.Equal(t, nodeSubject, "system:serviceaccount:"+node.Namespace+":"+node.Spec.Template.Spec.ServiceAccountName)
	s.TokenFile, s.IssuerKeys, s.NodesIssuer, s.Ephemeral = "", "", "https://oidc.example/id/1", true
	files, err = s.Files()
	require.NoError(t, err)
	require.NotContains(t, files[2].Text, "secretName")
	require.NotContains(t, files[2].Text, "collector-issuer-keys")
	require.NotContains(t, files[2].Text, "volumeClaimTemplates")
	require.Contains(t, files[2].Text, "{name: queue, emptyDir: ")
	require.NotContains(t, files[2].Text, path.Dir(clusterCA))
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
