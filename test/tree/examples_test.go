package tree_test

import (
	"bytes"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/prometheus/common/model"
	"github.com/prometheus/common/promslog"
	"github.com/prometheus/prometheus/config"
	"github.com/prometheus/prometheus/discovery/kubernetes"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/stretchr/testify/require"
	rbac "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/littoral-project/littoral/shared/auth"
	"github.com/littoral-project/littoral/shared/clusterlink"
)

const examples = root + "/infra/examples/"

// TestTheExamplesOfPrometheusSayTheSame: Prometheus loads the plain example with its rules, and the example for the
// Operator has the same content.
func TestTheExamplesOfPrometheusSayTheSame(t *testing.T) {
	t.Parallel()
	plain, err := config.LoadFile(examples+"prometheus.yml", false, promslog.NewNopLogger())
	require.NoError(t, err)
	require.Contains(t, plain.RuleFiles, filepath.Join(examples, "topology-rules.yml"))
	_, faults := rulefmt.ParseFile(examples+"topology-rules.yml", false, model.UTF8Validation, parser.NewParser(parser.Options{}),
		promslog.NewNopLogger())
	require.Empty(t, faults)

	text, err := os.ReadFile(examples + "operator.yml")
	require.NoError(t, err)
	specs := map[string][]byte{} // by kind
	for document := range bytes.SplitSeq(text, []byte("\n---\n")) {
		var object struct {
			Kind string
			Spec json.RawMessage
		}
		require.NoError(t, yaml.Unmarshal(document, &object))
		specs[object.Kind] = object.Spec
	}

	rules, err := os.ReadFile(examples + "topology-rules.yml")
	require.NoError(t, err)
	rules, err = yaml.YAMLToJSON(rules)
	require.NoError(t, err)
	require.JSONEq(t, string(rules), string(specs["PrometheusRule"]))

	var operated struct {
		OTLP struct{ PromoteResourceAttributes []string }
		TSDB struct{ OutOfOrderTimeWindow model.Duration }
	}
	require.NoError(t, json.Unmarshal(specs["Prometheus"], &operated))
	require.Equal(t, plain.OTLPConfig.PromoteResourceAttributes, operated.OTLP.PromoteResourceAttributes)
	require.Equal(t, plain.StorageConfig.TSDBConfig.OutOfOrderTimeWindowFlag, operated.TSDB.OutOfOrderTimeWindow)

	knative, ok := plain.ScrapeConfigs[0].ServiceDiscoveryConfigs[0].(*kubernetes.SDConfig)
	require.True(t, ok)
	var monitor struct{ NamespaceSelector struct{ MatchNames []string } }
	require.NoError(t, json.Unmarshal(specs["PodMonitor"], &monitor))
	require.Equal(t, knative.NamespaceDiscovery.Names, monitor.NamespaceSelector.MatchNames)
}

// TestTheAgentOfAHubMayApplyLinks: the rights that the example gives it are those for the objects of links, of either kind.
func TestTheAgentOfAHubMayApplyLinks(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(examples + "ocm-links.yml")
	require.NoError(t, err)
	var role rbac.ClusterRole
	require.NoError(t, yaml.UnmarshalStrict(text, &role))
	var allowed []string
	for _, rule := range role.Rules {
		for _, resource := range rule.Resources {
			allowed = append(allowed, rule.APIGroups[0]+"/"+resource)
		}
	}
	link := clusterlink.Link{
		Service: "world-svc", Port: 8080, Cluster: "one", Clients: []string{"hello"},
		Servers: []clusterlink.Place{{Component: "world", Cluster: "two"}},
	}
	written := map[string]bool{}
	for _, kind := range []string{clusterlink.ClusterLink, clusterlink.MCS} {
		for _, at := range []clusterlink.Place{{Component: "hello", Cluster: "one"}, {Component: "world", Cluster: "two"}} {
			for _, o := range (clusterlink.Settings{Kind: kind}).Objects([]clusterlink.Link{link}, at, "shop") {
				var is metav1.TypeMeta
				require.NoError(t, json.Unmarshal([]byte(o.JSON), &is))
				resource, _ := meta.UnsafeGuessKindToResource(is.GroupVersionKind())
				written[resource.Group+"/"+resource.Resource] = true
			}
		}
	}
	require.ElementsMatch(t, slices.Collect(maps.Keys(written)), allowed)
}

// TestTheExampleRealmTellsRoles: its clients get exactly the scopes that it defines (Keycloak creates its own scopes
// only in a realm without any), and their tokens have the claims that package auth reads.
func TestTheExampleRealmTellsRoles(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(examples + "keycloak-realm.json")
	require.NoError(t, err)
	type named struct{ Name string }
	var realm struct {
		Roles        struct{ Realm []named }
		ClientScopes []struct {
			Name            string
			ProtocolMappers []struct {
				ProtocolMapper string
				Config         map[string]string
			}
		}
		Clients []struct {
			ClientID            string
			DefaultClientScopes []string
			PublicClient        bool
			RedirectURIs        []string
			Attributes          map[string]string
		}
		Users []struct{ RealmRoles []string }
	}
	require.NoError(t, json.Unmarshal(text, &realm))

	var roles []auth.Role
	for _, r := range realm.Roles.Realm {
		roles = append(roles, auth.Role(r.Name))
	}
	require.ElementsMatch(t, auth.Roles(), roles)
	for _, u := range realm.Users {
		for _, r := range u.RealmRoles {
			require.Contains(t, roles, auth.Role(r))
		}
	}

	mappers := map[string]map[string]map[string]string{} // settings by kind, of a scope
	for _, s := range realm.ClientScopes {
		mappers[s.Name] = map[string]map[string]string{}
		for _, m := range s.ProtocolMappers {
			require.Equal(t, "true", m.Config["access.token.claim"], m.ProtocolMapper)
			mappers[s.Name][m.ProtocolMapper] = m.Config
		}
	}
	require.NotEmpty(t, realm.Clients)
	people := map[string]bool{}
	for _, c := range realm.Clients {
		require.Equal(t, []string{"littoral"}, c.DefaultClientScopes, c.ClientID)
		if len(c.RedirectURIs) > 0 { // people sign in by it
			people[c.ClientID] = c.PublicClient
			require.Equal(t, "S256", c.Attributes["pkce.code.challenge.method"], c.ClientID)
		}
	}
	require.Equal(t, map[string]bool{"littoral-cli": true, "littoral-console": false}, people, "the command line can keep no secret")
	own := mappers["littoral"]
	require.Equal(t, "roles", own["oidc-usermodel-realm-role-mapper"]["claim.name"])
	require.Equal(t, "true", own["oidc-usermodel-realm-role-mapper"]["multivalued"])
	require.Equal(t, "littoral", own["oidc-audience-mapper"]["included.custom.audience"])
	require.Contains(t, own, "oidc-sub-mapper")
	require.Equal(t, "icos_agent_id", own["oidc-usermodel-attribute-mapper"]["claim.name"])
}
