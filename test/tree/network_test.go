package tree_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestWhoIsAskedForTelemetryMayTellOfAlerts: the namespaces that functions may call for telemetry include that of the
// Alertmanager in infra/examples, which calls the gateway and the issuer.
func TestWhoIsAskedForTelemetryMayTellOfAlerts(t *testing.T) {
	t.Parallel()
	allowed := map[string][]string{} // by server: the allowed sources
	eachBuilt(t, root+"/infra/base", func(_ string, object struct {
		Spec networkingv1.NetworkPolicySpec
	},
	) {
		for _, rule := range object.Spec.Ingress {
			for _, from := range rule.From {
				if from.NamespaceSelector == nil {
					continue
				}
				for _, serves := range selected(&object.Spec.PodSelector, "littoral.dev/serves") {
					names := selected(from.NamespaceSelector, "kubernetes.io/metadata.name")
					allowed[serves] = append(allowed[serves], names...)
				}
			}
		}
	}, "NetworkPolicy")
	for _, serves := range []string{"gateway", "oidc"} {
		require.Subset(t, allowed[serves], []string{"monitoring", "observability"}, serves)
	}
	require.Empty(t, allowed["postgres"])
}

// TestOnlyWhoCallsWebhooksMayCallAnywhere: all other functions are restricted to addresses or ports.
func TestOnlyWhoCallsWebhooksMayCallAnywhere(t *testing.T) {
	t.Parallel()
	var callers []string
	for name, folder := range folders(t) {
		if slices.Contains(packages(t)[module+"/"+folder].Imports, module+"/shared/webhook") {
			callers = append(callers, name)
		}
	}
	require.NotEmpty(t, callers)
	var free []string
	eachBuilt(t, root+"/infra/base", func(name string, object struct {
		Spec networkingv1.NetworkPolicySpec
	},
	) {
		for _, rule := range object.Spec.Egress {
			if len(rule.To) == 0 && len(rule.Ports) == 0 {
				names := selected(&object.Spec.PodSelector, "serving.knative.dev/service")
				require.NotEmpty(t, names, "%s lets more than functions by name call anywhere", name)
				free = append(free, names...)
			}
		}
	}, "NetworkPolicy")
	require.ElementsMatch(t, callers, free)
}

// TestRoutesMayLeadToKnativesGatewayAlone: whoever may write routes in our namespace reaches nothing else in that of Knative's
// gateway, where more may run.
func TestRoutesMayLeadToKnativesGatewayAlone(t *testing.T) {
	t.Parallel()
	for _, overlay := range []string{"edge", "cloud"} {
		type target struct{ Name, Namespace string }
		type spec struct {
			To    []target
			Rules []struct{ BackendRefs []target }
		}
		var granted, used []target
		eachBuilt(t, root+"/knative/overlays/"+overlay, func(_ string, object struct {
			Metadata struct{ Namespace string }
			Spec     spec
		},
		) {
			for _, to := range object.Spec.To {
				granted = append(granted, target{to.Name, object.Metadata.Namespace})
			}
			for _, rule := range object.Spec.Rules {
				for _, backend := range rule.BackendRefs {
					if !slices.Contains(used, backend) {
						used = append(used, backend)
					}
				}
			}
		}, "ReferenceGrant", "HTTPRoute")
		require.Equal(t, used, granted, overlay)
		require.Len(t, used, 1)
	}
}

// selected returns the values of the label that the selector asks for.
func selected(s *metav1.LabelSelector, label string) []string {
	if value, ok := s.MatchLabels[label]; ok {
		return []string{value}
	}
	i := slices.IndexFunc(s.MatchExpressions, func(r metav1.LabelSelectorRequirement) bool { return r.Key == label })
	if i < 0 {
		return nil
	}
	return s.MatchExpressions[i].Values
}

// TestAFunctionMayConnectToWhatItUses, and to nothing else: what the policies allow is compared with the secrets that a
// function is given, and with whether its code calls anybody.
func TestAFunctionMayConnectToWhatItUses(t *testing.T) {
	t.Parallel()
	ports, spaces, pods := map[string][]int{}, map[string][]string{}, map[string][]string{}
	eachBuilt(t, root+"/infra/base", func(policy string, object struct {
		Spec networkingv1.NetworkPolicySpec
	},
	) {
		names := selected(&object.Spec.PodSelector, "serving.knative.dev/service")
		if !strings.HasPrefix(policy, "NetworkPolicy egress-") {
			return
		}
		require.NotEmpty(t, names, policy)
		for _, name := range names {
			for _, rule := range object.Spec.Egress {
				require.True(t, len(rule.To) > 0 || len(rule.Ports) > 0, "%s lets %s call anywhere", policy, name)
				for _, port := range rule.Ports {
					ports[name] = append(ports[name], port.Port.IntValue())
				}
				for _, to := range rule.To {
					if to.NamespaceSelector != nil {
						spaces[name] = append(spaces[name], selected(to.NamespaceSelector, "kubernetes.io/metadata.name")...)
					}
					if to.PodSelector != nil {
						pods[name] = append(pods[name], selected(to.PodSelector, "littoral.dev/serves")...)
					}
				}
			}
		}
	}, "NetworkPolicy")
	calls := regexp.MustCompile(`\benv\.HTTP\b`)
	alone := 0
	for name, entry := range entries(t) {
		secrets := entry.Spec.Secrets()
		stores, publishes := slices.Contains(secrets, "DATABASE_URL"), slices.Contains(secrets, "EVENT_KEY")
		require.Equal(t, stores, slices.Contains(ports[name], 5432), "%s and Postgres", name)
		require.Equal(t, stores, slices.Contains(pods[name], "postgres"), "%s and Postgres", name)
		require.Equal(t, publishes, slices.Contains(spaces[name], "knative-eventing"), "%s and the Broker", name)
		require.Equal(t, entry.Spec.Kubernetes, slices.Contains(ports[name], 6443), "%s and API servers", name)
		called := slices.Contains(secrets, "SESSION_KEY") // who asks who calls reads the keys of the issuer
		sources, err := filepath.Glob(filepath.Join(root, folders(t)[name], "*.go"))
		require.NoError(t, err)
		for _, source := range sources {
			text, err := os.ReadFile(source)
			require.NoError(t, err)
			called = called || !strings.HasSuffix(source, "_test.go") && calls.Match(text)
		}
		if called {
			require.Contains(t, ports[name], 443, "%s calls somebody: declare whom in Needs", name)
		}
		if !called && len(entry.Spec.Needs) == 0 && !entry.Spec.Kubernetes {
			require.NotContains(t, ports[name], 443, name)
			alone++
		}
	}
	require.Positive(t, alone)
}
