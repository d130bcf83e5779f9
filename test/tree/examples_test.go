package tree_test

import (
	"encoding/json"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/littoral-project/littoral/shared/auth"
)

// TestTheExampleRealmTellsRoles: its clients get the scopes that it defines and no other (Keycloak makes its own ones only for
// a realm that comes without any), and their tokens say what package auth reads.
func TestTheExampleRealmTellsRoles(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(root + "/infra/examples/keycloak-realm.json")
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

	mappers := map[string]map[string]map[string]string{} // of a scope, by kind: the settings
	for _, s := range realm.ClientScopes {
		mappers[s.Name] = map[string]map[string]string{}
		for _, m := range s.ProtocolMappers {
			require.Equal(t, "true", m.Config["access.token.claim"], m.ProtocolMapper)
			mappers[s.Name][m.ProtocolMapper] = m.Config
		}
	}
	require.NotEmpty(t, realm.Clients)
	for _, c := range realm.Clients {
		require.Equal(t, []string{"littoral"}, c.DefaultClientScopes, c.ClientID)
	}
	own := mappers["littoral"]
	require.Equal(t, "roles", own["oidc-usermodel-realm-role-mapper"]["claim.name"])
	require.Equal(t, "true", own["oidc-usermodel-realm-role-mapper"]["multivalued"])
	require.Equal(t, "littoral", own["oidc-audience-mapper"]["included.custom.audience"])
	require.Contains(t, own, "oidc-sub-mapper")
	require.Equal(t, "icos_agent_id", own["oidc-usermodel-attribute-mapper"]["claim.name"])
}
