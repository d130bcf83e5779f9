package tree_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"
)

// site is what an overlay makes, as far as objects name each other.
type site struct {
	functions, accounts, roles map[string]bool
	objects                    []object
}

type object struct {
	Kind     string
	Metadata struct {
		Name        string
		Annotations map[string]string
	}
	RoleRef  struct{ Name string }
	Subjects []struct{ Name string }
	Spec     struct {
		Subscriber, Sink struct{ Ref struct{ Name string } }
		Delivery         struct {
			DeadLetterSink struct{ Ref struct{ Name string } }
		}
		PodSelector struct{ MatchLabels map[string]string }
		Template    struct {
			Spec struct{ ServiceAccountName string }
		}
	}
}

// with makes a folder with an overlay and components, which are given from here.
func with(t *testing.T, overlay string, components ...string) string {
	t.Helper()
	dir := t.TempDir()
	here, err := filepath.Abs(".")
	require.NoError(t, err)
	here, err = filepath.Rel(dir, here)
	require.NoError(t, err)
	text := "resources: [" + filepath.Join(here, root, "knative", "overlays", overlay) + "]\ncomponents:\n"
	for _, component := range components {
		text += "  - " + filepath.Join(here, component) + "\n"
	}
	require.NoError(t, os.WriteFile(filepath.Join(dir, "kustomization.yaml"), []byte(text), 0o600))
	return dir
}

// render returns what an overlay with these components of knative/without makes.
func render(t *testing.T, overlay string, without ...string) site {
	t.Helper()
	dir := root + "/knative/overlays/" + overlay
	if len(without) > 0 {
		components := make([]string, len(without))
		for i, name := range without {
			components[i] = root + "/knative/without/" + name
		}
		dir = with(t, overlay, components...)
	}
	s := site{functions: map[string]bool{}, accounts: map[string]bool{}, roles: map[string]bool{}}
	for _, b := range build(t, dir) {
		var o object
		require.NoError(t, yaml.Unmarshal(b.text, &o))
		switch {
		case o.Kind == "Service" && b.group == "serving.knative.dev":
			s.functions[o.Metadata.Name] = true
		case o.Kind == "ServiceAccount":
			s.accounts[o.Metadata.Name] = true
		case o.Kind == "Role" || o.Kind == "ClusterRole":
			s.roles[o.Metadata.Name] = true
		}
		s.objects = append(s.objects, o)
	}
	return s
}

// dangling lists what names an object that is not there.
func (s site) dangling() []string {
	var all []string
	missing := func(o object, what, name string, there map[string]bool) {
		if name != "" && !there[name] {
			all = append(all, o.Kind+" "+o.Metadata.Name+": there is no "+what+" "+name)
		}
	}
	for _, o := range s.objects {
		switch o.Kind {
		case "Trigger", "PingSource", "ApiServerSource", "Broker":
			missing(o, "function", o.Spec.Subscriber.Ref.Name, s.functions)
			missing(o, "function", o.Spec.Delivery.DeadLetterSink.Ref.Name, s.functions)
			if o.Kind != "Trigger" {
				missing(o, "function", o.Spec.Sink.Ref.Name, s.functions)
			}
		case "RoleBinding", "ClusterRoleBinding":
			missing(o, "role", o.RoleRef.Name, s.roles)
			for _, subject := range o.Subjects {
				missing(o, "ServiceAccount", subject.Name, s.accounts)
			}
		case "Secret":
			missing(o, "ServiceAccount", o.Metadata.Annotations["kubernetes.io/service-account.name"], s.accounts)
		case "HTTPRoute":
			missing(o, "function", o.Metadata.Name, s.functions)
		case "NetworkPolicy":
			missing(o, "function", o.Spec.PodSelector.MatchLabels["app.kubernetes.io/name"], s.functions)
		case "Service":
			if s.functions[o.Metadata.Name] {
				missing(o, "ServiceAccount", o.Spec.Template.Spec.ServiceAccountName, s.accounts)
			}
		}
	}
	return all
}

// TestAnOverlayMayLeaveOutComponents, each by itself and all together: nothing then names what is not there.
func TestAnOverlayMayLeaveOutComponents(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob(root + "/knative/without/*/kustomization.yaml")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	whole := render(t, "edge")
	require.Empty(t, whole.dangling())
	var names []string
	for _, file := range files {
		names = append(names, filepath.Base(filepath.Dir(file)))
	}
	left := render(t, "edge", names...)
	require.Empty(t, left.dangling())
	require.NotEmpty(t, left.functions)
	optional := regexp.MustCompile(`^(acm|api|auth|clock|clusterlink|console|deploymentmanager|events|mdm|netma|pdlc|policymanager|swm|telemetry)-`)
	for function := range whole.functions {
		require.Equal(t, !optional.MatchString(function), left.functions[function], function)
	}
	for account := range whole.accounts {
		if whole.functions[account] {
			require.Equal(t, left.functions[account], left.accounts[account], account)
		}
	}
	require.Empty(t, render(t, "lab", names...).dangling(), "with watches, the gateway and an issuer of its own")
	one := render(t, "edge", "orchestrator-kubernetes")
	require.Empty(t, one.dangling())
	require.Len(t, one.functions, len(whole.functions)-2)
	require.True(t, slices.Contains(names, "orchestrator-kubernetes"))
}

// TestALighthouseIsDeployedAlone, with what wakes it and publishes its events, and nothing of a controller.
func TestALighthouseIsDeployedAlone(t *testing.T) {
	t.Parallel()
	alone := render(t, "lighthouse")
	require.Empty(t, alone.dangling())
	kept := regexp.MustCompile(`^(api|clock|lighthouse|outbox)-`)
	for function := range render(t, "edge").functions {
		require.Equal(t, kept.MatchString(function), alone.functions[function], function)
	}
	for _, name := range []string{"lighthouse-controller-add", "lighthouse-controller-list", "lighthouse-sweep"} {
		require.True(t, alone.functions[name], name)
	}
	for _, o := range alone.objects {
		switch o.Kind {
		case "HTTPRoute", "PingSource", "Trigger", "ServiceAccount", "Role":
			require.NotRegexp(t, `^(controller|jobmanager|matchmaker)`, o.Metadata.Name, o.Kind)
		}
	}
}
