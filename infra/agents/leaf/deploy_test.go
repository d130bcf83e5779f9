package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/compose-spec/compose-go/v2/loader"
	"github.com/compose-spec/compose-go/v2/types"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/yaml"
)

// known requires that a flag or a variable LEAF_NAME is one of the leaf's.
func known(t *testing.T, names ...string) {
	t.Helper()
	var o options
	flags := o.flags(func(string) string { return "" })
	for _, name := range names {
		name = strings.ToLower(strings.ReplaceAll(strings.TrimPrefix(strings.TrimPrefix(name, "LEAF_"), "--"), "_", "-"))
		name, _, _ = strings.Cut(name, "=")
		require.NotNil(t, flags.Lookup(name), name)
	}
}

// TestTheUnit: systemd takes it, and it starts what there is.
func TestTheUnit(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("leaf.service")
	require.NoError(t, err)
	start := regexp.MustCompile(`(?m)^ExecStart=(\S+) serve$`)
	require.Regexp(t, start, string(text))
	known(t, regexp.MustCompile(`LEAF_[A-Z_]+`).FindAllString(string(text), -1)...)
	verify, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Skip("no systemd-analyze to verify the unit")
	}
	file := filepath.Join(t.TempDir(), "leaf.service")
	there := start.ReplaceAllString(string(text), "ExecStart=/bin/true serve") // it wants a program that is there
	require.NoError(t, os.WriteFile(file, []byte(there), 0o600))
	out, err := exec.CommandContext(t.Context(), verify, "verify", "--man=no", file).CombinedOutput()
	require.NoError(t, err, "%s", out)
	for line := range strings.Lines(string(out)) { // about units of the machine it may say what it wants
		require.NotContains(t, line, "leaf.service")
	}
}

// TestTheComposeFile: the library of the specification takes it.
func TestTheComposeFile(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("compose.yaml")
	require.NoError(t, err)
	project, err := loader.LoadWithContext(t.Context(), types.ConfigDetails{
		ConfigFiles: []types.ConfigFile{{Filename: "compose.yaml", Content: text}},
		Environment: types.Mapping{"LEAF_IMAGE": "example/leaf:1", "LEAF_AGENT_ID": "agent-1"},
	}, func(o *loader.Options) { o.SetProjectName("leaf", true) })
	require.NoError(t, err)
	s := project.Services["leaf"]
	require.Equal(t, "example/leaf:1", s.Image)
	for name := range s.Environment {
		known(t, name)
	}
	known(t, s.Command[1:]...)
	require.True(t, s.ReadOnly)
	require.Equal(t, "host", s.NetworkMode)
}

// TestTheDaemonSet: its objects have only fields that Kubernetes knows, may do what the leaf asks for, and no more.
func TestTheDaemonSet(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("leaf.yaml")
	require.NoError(t, err)
	var set appsv1.DaemonSet
	var role rbacv1.ClusterRole
	into := map[string]any{
		"Namespace": &corev1.Namespace{}, "ServiceAccount": &corev1.ServiceAccount{}, "ClusterRole": &role,
		"ClusterRoleBinding": &rbacv1.ClusterRoleBinding{}, "DaemonSet": &set,
	}
	for document := range bytes.SplitSeq(text, []byte("\n---\n")) {
		var kind struct{ Kind string }
		require.NoError(t, yaml.Unmarshal(document, &kind))
		require.Contains(t, into, kind.Kind)
		require.NoError(t, yaml.UnmarshalStrict(document, into[kind.Kind]), kind.Kind)
		delete(into, kind.Kind)
	}
	require.Empty(t, into, "every object is there, once")
	for _, rule := range role.Rules {
		for _, verb := range rule.Verbs {
			require.Contains(t, []string{"get", "list"}, verb)
		}
	}
	pod := set.Spec.Template
	for label, value := range set.Spec.Selector.MatchLabels {
		require.Equal(t, value, pod.Labels[label])
	}
	c := pod.Spec.Containers[0]
	known(t, c.Args[1:]...)
	for _, v := range c.Env {
		if strings.HasPrefix(v.Name, "LEAF_") {
			known(t, v.Name)
		}
	}
	for _, mount := range c.VolumeMounts {
		require.True(t, mount.ReadOnly)
	}
}
