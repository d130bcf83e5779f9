package kubeapi

import (
	"maps"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/yaml"
)

// verbs are what an authorizer calls the methods for a single object.
var verbs = map[string]string{
	http.MethodGet: "get", http.MethodPost: "create", http.MethodPut: "update", http.MethodPatch: "patch", http.MethodDelete: "delete",
}

// use records the right that a call needs. Applying an object that does not exist needs two.
func (s *Server) use(method string, r request) {
	take := func(verb string) { s.used[verb+" "+r.resource.GroupResource().String()] = true }
	switch {
	case method == http.MethodGet && r.name == "":
		take("list")
	case method == http.MethodPatch && s.objects[r.path] == nil:
		take("create")
		fallthrough
	default:
		take(verbs[method])
	}
}

// Used lists the rights that the calls so far would need on a server with authorization, as "verb resource.group",
// sorted.
func (s *Server) Used() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Sorted(maps.Keys(s.used))
}

// Granted lists the rights that the Role or ClusterRole of the name grants by the file, in the form of Used.
func Granted(t testing.TB, file, name string) []string {
	t.Helper()
	text, err := os.ReadFile(file) // a manifest of ours
	require.NoError(t, err)
	rights := map[string]bool{}
	for _, document := range strings.Split(string(text), "\n---\n") {
		var role rbacv1.ClusterRole // a Role only differs in its kind
		require.NoError(t, yaml.Unmarshal([]byte(document), &role))
		if role.Name != name {
			continue
		}
		for _, rule := range role.Rules {
			for _, verb := range rule.Verbs {
				for _, group := range rule.APIGroups {
					for _, resource := range rule.Resources {
						rights[strings.TrimSuffix(verb+" "+resource+"."+group, ".")] = true
					}
				}
			}
		}
	}
	require.NotEmpty(t, rights, "%s has no role %s", file, name)
	return slices.Sorted(maps.Keys(rights))
}
