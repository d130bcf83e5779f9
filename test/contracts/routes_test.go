package contracts_test

import (
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/littoral-project/littoral/functions"
	"github.com/littoral-project/littoral/shared/auth"
	"github.com/littoral-project/littoral/shared/bus/zenohrest"
	"github.com/littoral-project/littoral/shared/function"
)

// route is one route of one function.
type route struct {
	entry   function.Entry
	role    auth.Role
	method  string
	pattern string // /jobmanager/jobs/{job_uuid}
}

// routes lists all routes in a fixed order.
func routes(t testing.TB) []route {
	t.Helper()
	var all []route
	for _, main := range slices.Sorted(maps.Keys(functions.Registry)) {
		entry := functions.Registry[main]
		if entry.Spec.GRPC {
			continue // it has tests of its own: its calls have other forms
		}
		for _, declared := range entry.Spec.Routes {
			for _, spelling := range declared.Patterns() {
				method, pattern, ok := strings.Cut(spelling, " ")
				require.True(t, ok, "%s declares %q", entry.Name, spelling)
				all = append(all, route{entry, declared.Role, method, pattern})
			}
		}
	}
	require.NotEmpty(t, all)
	return all
}

func (r route) String() string { return r.method + " " + r.pattern }

// path returns the route's path with the given value for every id and a valid value for every other parameter.
func (r route) path(id string) string {
	if r.pattern == zenohrest.Root { // below it are keys, any of which there may be
		return zenohrest.Root + "nothing"
	}
	parts := strings.Split(strings.ReplaceAll(r.pattern, "{$}", ""), "/")
	for i, part := range parts {
		switch {
		case !strings.HasPrefix(part, "{"):
		case part == "{orchestrator}":
			parts[i] = "ocm"
		case part == "{resource}": // which has a name too
			parts[i] = "hub"
		case part == "{agent_id}":
			parts[i] = hubAgent
		case part == "{cluster}", part == "{node}", part == "{namespace}", part == "{name}": // names, and of nothing
			parts[i] = "nowhere"
		case part == "{organization}", part == "{entity_type}", part == "{version}": // the same
			parts[i] = "nowhere"
		case part == "{connector}": // any, which is registered by that
			parts[i] = "7c9e6679-7425-40de-944b-e07fc1f90ae7"
		case part == "{a}", part == "{b}", part == "{zoneId}", part == "{accessPointId}": // of networks
			parts[i] = "nowhere"
		case part == "{kind}" && strings.HasPrefix(r.pattern, "/swm/"): // of objects
			parts[i] = "applicationgroups"
		case part == "{group}": // the name of one
			parts[i] = "nowhere"
		case part == "{kind}": // of subscriptions
			parts[i] = "users"
		case part == "{records}": // of an application
			parts[i] = "history"
		case part == "{mode}":
			parts[i] = "numerical"
		case part == "{metric}":
			parts[i] = "routingcost"
		case part == "{revision}":
			parts[i] = "latest"
		case part == "{metric_name}", part == "{model_tag}": // any text
			parts[i] = "nothing"
		case part == "{app_instance}": // of others: any text
			parts[i] = "nothing-0000000000"
		case part == "{generated}": // a file of a world
			parts[i] = "topology.json"
		case part == "{file}": // an id of a rule group is not a UUID
			parts[i] = "nothing-0000000000"
		default:
			parts[i] = id
		}
	}
	return strings.Join(parts, "/")
}

// anywhere is the path with an id that does not exist.
func (r route) anywhere() string { return r.path(uuid.NewString()) }

// hasID reports whether the path contains an id.
func (r route) hasID() bool { return r.path("a") != r.path("b") }

// bodyKind returns the kind of body that a route reads.
type bodyKind int

const (
	nothing bodyKind = iota
	jsonBody
	document // a descriptor
	altoBody // refused in ALTO's own form
)

// bodies are the routes that read a body; no other route may.
var bodies = map[string]bodyKind{
	"POST /acm/apps":                                          document,
	"PUT /acm/apps/{namespace}/{name}":                        document,
	"PUT /swm/topologies/{name}":                              document,
	"PUT /swm/objects/{kind}/{namespace}/{name}":              document,
	"POST /jobmanager/groups":                                 document,
	"PUT /jobmanager/groups":                                  document,
	"PUT /jobmanager/groups/{group_uuid}":                     document,
	"PUT /jobmanager/jobs":                                    jsonBody,
	"PUT /jobmanager/jobs/{job_uuid}":                         jsonBody,
	"PATCH /jobmanager/jobs/promote/{job_uuid}":               jsonBody,
	"PUT /jobmanager/status":                                  jsonBody,
	"PUT /jobmanager/status/{$}":                              jsonBody,
	"PUT /jobmanager/resources/status":                        jsonBody,
	"PUT /jobmanager/resources/status/{id}":                   jsonBody,
	"POST /mdm/publish/event":                                 jsonBody,
	"POST /publish/event":                                     jsonBody,
	"POST /mdm/graph/entity/type/{entity_type}":               jsonBody,
	"POST /graph/entity/type/{entity_type}":                   jsonBody,
	"POST /mdm/graph/cypher":                                  nothing, // a text
	"POST /graph/cypher":                                      nothing,
	"PUT /mdm/connectors/{connector}":                         jsonBody,
	"PUT /mdm/schemas/{organization}/{entity_type}/{version}": jsonBody,
	"POST /controller/handovers":                              jsonBody,
	"POST /controller/offers":                                 document,
	"POST /controller/leases":                                 jsonBody,
	"PUT /controller/applications/{application}":              jsonBody,
	"POST /auth/logout":                                       nothing,
	"POST /auth/refresh":                                      nothing,
	"POST /api/v3/controller":                                 jsonBody,
	"POST /api/v3/controller/{$}":                             jsonBody,
	"POST /api/v3/deployment":                                 document,
	"POST /api/v3/deployment/{$}":                             document,
	"PUT /api/v3/deployment/{deployment_id}":                  document,
	"PUT /api/v3/deployment/{deployment_id}/start":            nothing,
	"POST /api/v3/deployment/{deployment_id}/start":           nothing,
	"PUT /api/v3/deployment/{deployment_id}/stop":             nothing,
	"POST /api/v3/deployment/{deployment_id}/stop":            nothing,
	"POST /api/v3/metrics/predict":                            jsonBody,
	"POST /api/v3/metrics/train":                              jsonBody,
	"POST /metricsexport/create_metric":                       jsonBody,
	"POST /metricsexport/unregister_metric":                   jsonBody,
	"POST /metricsexport/create_model_metric":                 jsonBody,
	"POST /metricsexport/stop_model_metrics":                  jsonBody,
	"POST /metricsexport/train":                               jsonBody,
	"POST /metricsexport/predict":                             jsonBody,
	"POST /metricsexport/detect_drift":                        jsonBody,
	"POST /metricsexport/show_models":                         jsonBody,
	"POST /metricsexport/remove_model":                        jsonBody,
	"POST /create_metric":                                     jsonBody,
	"POST /unregister_metric":                                 jsonBody,
	"POST /create_model_metric":                               jsonBody,
	"POST /stop_model_metrics":                                jsonBody,
	"POST /train":                                             jsonBody,
	"POST /predict":                                           jsonBody,
	"POST /detect_drift":                                      jsonBody,
	"POST /show_models":                                       jsonBody,
	"POST /remove_model":                                      jsonBody,
	"POST /events/{id}/replay":                                nothing,
	"POST /bus/":                                              nothing, // a payload says nothing to storages
	"PUT /applications/{app_instance}":                        document,
	"PUT /deployment":                                         document,
	"PUT /bus/":                                               nothing, // any body is a value
	"PATCH /bus/":                                             nothing,
	"POST /rules":                                             jsonBody,
	"POST /rules/{$}":                                         jsonBody,
	"POST /api/v1/rules":                                      jsonBody,
	"POST /api/v1/rules/{$}":                                  jsonBody,
	"POST /jobmanager/policies/incompliance":                  jsonBody,
	"POST /jobmanager/policies/incompliance/create":           jsonBody,
	"POST /aggregator/webhooks/alertmanager":                  jsonBody,
	"POST /matchmake":                                         document,
	"POST /matchmaker/matchmake":                              document,
	"POST /matchmaker/plan":                                   document,
	"POST /plan":                                              document,
	"POST /matchmaker/explain":                                document,
	"POST /explain":                                           document,
	"PUT /jobmanager/groups/start/{group_uuid}":               nothing,
	"PUT /jobmanager/groups/stop/{group_uuid}":                nothing,
	"PUT /jobmanager/groups/undeploy/{group_uuid}":            nothing,
	"POST /matchmaker/whatif":                                 jsonBody,
	"PUT /matchmaker/nodes/{cluster}/{node}/cordon":           nothing,
	"PUT /matchmaker/nodes/{cluster}/{node}/uncordon":         nothing,
	"PUT /matchmaker/nodes/{cluster}/{node}/drain":            nothing,
	"PUT /jobmanager/groups/scale/{group_uuid}":               nothing,
	"PUT /jobmanager/groups/pin/{group_uuid}":                 nothing,
	"PUT /jobmanager/groups/rollback/{group_uuid}":            nothing,
	"POST /netma/positions":                                   jsonBody,
	"PUT /netma/zones/{zoneId}":                               jsonBody,
	"POST /location/v2/subscriptions/{kind}":                  jsonBody,
	"PUT /location/v2/subscriptions/{kind}/{id}":              jsonBody,
	"POST /pdlc/agents":                                       jsonBody,
	"PUT /pdlc/pipelines/{name}":                              jsonBody,
	"POST /pdlc/pipelines/{name}/rollback":                    nothing,
	"PUT /pdlc/federations/{name}":                            jsonBody,
	"POST /pdlc/federations/{name}/updates":                   jsonBody,
	"POST /pdlc/recommendations/{application}":                nothing,
	"PUT /pdlc/profiles/{name}":                               jsonBody,
	"PUT /netma/reservations/{name}":                          jsonBody,
	"POST /alto/networkmap":                                   altoBody,
	"POST /alto/costmap":                                      altoBody,
	"POST /alto/endpointprop":                                 altoBody,
	"POST /alto/endpointcost":                                 altoBody,
	"POST /alto/updates":                                      altoBody,
	"POST /alto/updates/{id}":                                 altoBody,
}

func (r route) bodyKind() bodyKind { return bodies[r.String()] }

func TestEveryRouteThatMayHaveABodySaysWhetherItReadsOne(t *testing.T) {
	t.Parallel()
	known := map[string]bool{}
	for _, r := range routes(t) {
		known[r.String()] = true
		if r.method == http.MethodGet || r.method == http.MethodDelete {
			continue
		}
		_, said := bodies[r.String()]
		require.True(t, said, "%s: say in bodies what it reads", r)
	}
	for said := range bodies {
		require.True(t, known[said], "%s is gone", said)
	}
}

// client returns a client with a token of the role that the route needs.
func (w *world) allowed(r route) client {
	if r.role == auth.Open {
		return w.nobody
	}
	return w.as(r.role)
}
