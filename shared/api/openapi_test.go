package api_test

import (
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"

	"github.com/littoral-project/littoral/functions"
	"github.com/littoral-project/littoral/shared/api"
	"github.com/littoral-project/littoral/shared/auth"
)

type object = map[string]any

// page is openapi.yaml as plain data.
func page(t *testing.T) object {
	t.Helper()
	var doc object
	require.NoError(t, yaml.UnmarshalStrict(api.OpenAPI, &doc))
	return doc
}

// operations lists every operation of the page by "METHOD /path/{}": names of parameters are not part of a route.
func operations(t *testing.T) map[string]object {
	t.Helper()
	found := map[string]object{}
	for path, item := range page(t)["paths"].(object) {
		for method, operation := range item.(object) {
			if method == "parameters" {
				continue
			}
			found[strings.ToUpper(method)+" "+unnamed(path)] = operation.(object)
		}
	}
	return found
}

// unnamed removes the names of parameters and the mark of an exact path from a route.
func unnamed(route string) string {
	parts := strings.Split(route, "/")
	for i, part := range parts {
		switch {
		case part == "{$}":
			parts[i] = ""
		case strings.HasPrefix(part, "{"):
			parts[i] = "{}"
		}
	}
	return strings.Join(parts, "/")
}

// laptop lists the routes that only a laptop host serves, with their roles; no function of the registry has them.
var laptop = map[string]auth.Role{
	"GET /fleet": auth.Viewer, "GET /fleet/metrics": auth.Viewer, "POST /fleet/{}": auth.Operator,
}

func TestEveryRouteStandsInThePageAndNothingElse(t *testing.T) {
	t.Parallel()
	served := map[string]auth.Role{}
	for route, role := range laptop {
		served[route] = role
	}
	for _, entry := range functions.Registry {
		if entry.Spec.GRPC {
			continue // OpenAPI has no words for it: see its .proto
		}
		for _, route := range entry.Spec.Routes {
			for _, pattern := range route.Patterns() {
				served[unnamed(pattern)] = route.Role
			}
		}
	}
	listed := operations(t)
	for route, role := range served {
		operation, ok := listed[route]
		if !ok {
			t.Errorf("%s is served, and openapi.yaml does not know it", route)
			continue
		}
		require.Equal(t, role, roleOf(t, route, operation), "role of %s", route)
	}
	for route := range listed {
		if _, ok := served[route]; !ok {
			t.Errorf("%s stands in openapi.yaml, and nothing serves it", route)
		}
	}
}

func roleOf(t *testing.T, route string, operation object) auth.Role {
	t.Helper()
	security, said := operation["security"].([]any)
	require.True(t, said, "%s does not say who may call it", route)
	if len(security) == 0 {
		return auth.Open
	}
	scopes := security[0].(object)["oidc"].([]any)
	require.Len(t, scopes, 1, "%s", route)
	return auth.Role(scopes[0].(string))
}

func TestThePageHoldsTogether(t *testing.T) {
	t.Parallel()
	doc := page(t)
	each(doc, func(key string, value any) {
		if ref, ok := value.(string); ok && key == "$ref" {
			require.NotNil(t, resolve(doc, ref), "%s leads nowhere", ref)
		}
	})
	ids := map[string]string{}
	var tags []string
	for _, tag := range doc["tags"].([]any) {
		tags = append(tags, tag.(object)["name"].(string))
	}
	for route, operation := range operations(t) {
		id, _ := operation["operationId"].(string)
		require.NotEmpty(t, id, route)
		require.NotContains(t, ids, id, "%s and %s", route, ids[id])
		ids[id] = route
		require.NotEmpty(t, operation["summary"], route)
		require.Contains(t, tags, operation["tags"].([]any)[0], route)
		if len(operation["security"].([]any)) > 0 {
			require.Contains(t, operation["responses"].(object), "default", route)
		}
		if slices.Contains([]string{"POST /events/{}/replay", "POST /auth/refresh", "POST /auth/logout", "POST /api/v3/deployment/{}/start", "POST /api/v3/deployment/{}/stop", "POST /pdlc/recommendations/{}", "POST /pdlc/pipelines/{}/rollback"}, route) {
			continue // the path is sufficient, or the cookie
		}
		if method, _, _ := strings.Cut(route, " "); slices.Contains([]string{http.MethodPost, http.MethodPatch}, method) {
			require.Contains(t, operation, "requestBody", route)
		}
	}
}

// TestSpellingsAnswerAlike: all paths of a function have the same operation.
func TestSpellingsAnswerAlike(t *testing.T) {
	t.Parallel()
	doc, listed := page(t), operations(t)
	for _, entry := range functions.Registry {
		if entry.Spec.GRPC {
			continue
		}
		first := map[string]string{} // route by method
		for _, route := range entry.Spec.Patterns() {
			method, _, _ := strings.Cut(route, " ")
			if first[method] == "" {
				first[method] = route
			}
			require.Equal(t, answers(doc, listed[unnamed(first[method])]), answers(doc, listed[unnamed(route)]), "%s and %s", first[method], route)
		}
	}
}

// TestOnlyOtherSpellingsAreDeprecated: a client that is generated from the page then offers one name for each operation.
func TestOnlyOtherSpellingsAreDeprecated(t *testing.T) {
	t.Parallel()
	alias := map[string]bool{}
	for _, entry := range functions.Registry {
		for _, route := range entry.Spec.Routes {
			for _, other := range route.Aliases {
				alias[unnamed(other)] = true
			}
		}
	}
	for route, operation := range operations(t) {
		deprecated, _ := operation["deprecated"].(bool)
		require.Equal(t, alias[route], deprecated, "deprecated of %s", route)
	}
}

// answers lists the statuses of an operation with their headers.
func answers(doc, operation object) map[string][]string {
	found := map[string][]string{}
	for status, answer := range operation["responses"].(object) {
		response := answer.(object)
		if ref, ok := response["$ref"].(string); ok {
			response = resolve(doc, ref)
		}
		headers, _ := response["headers"].(object)
		found[status] = slices.Sorted(maps.Keys(headers))
	}
	return found
}

// each calls visit for every key at any depth.
func each(v any, visit func(key string, value any)) {
	switch v := v.(type) {
	case object:
		for key, value := range v {
			visit(key, value)
			each(value, visit)
		}
	case []any:
		for _, value := range v {
			each(value, visit)
		}
	}
}

// resolve follows "#/components/schemas/Job"; nil if it does not exist.
func resolve(doc object, ref string) object {
	at := doc
	for _, name := range strings.Split(strings.TrimPrefix(ref, "#/"), "/") {
		next, ok := at[name].(object)
		if !ok {
			return nil
		}
		at = next
	}
	return at
}
