package tree_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/prometheus/common/model"
	"github.com/prometheus/common/promslog"
	"github.com/prometheus/prometheus/config"
	"github.com/prometheus/prometheus/discovery/kubernetes"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"

	"github.com/littoral-project/littoral/shared/auth"
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
