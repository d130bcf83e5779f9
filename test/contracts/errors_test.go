package contracts_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/littoral-project/littoral/shared/auth"
	"github.com/littoral-project/littoral/shared/bus/zenohrest"
)

// unreadable is neither JSON nor YAML.
const unreadable = "{\"a\": [\x01"

// fitting returns a body that the route accepts; about is the id of a job or an application.
func (r route) fitting(about string) string {
	if text, ok := policyFitting(r, about); ok {
		return text
	}
	switch r.String() {
	case "PATCH /jobmanager/jobs/promote/{job_uuid}":
		return `{"owner_id": "agent-hub"}`
	case "PUT /jobmanager/jobs/{job_uuid}":
		return `{"state": 2, "owner_id": "agent-hub"}`
	case "POST /jobmanager/policies/incompliance", "POST /jobmanager/policies/incompliance/create":
		return `{"policyName": "p", "remediation": "scale-up", "subject": {"appInstance": "` + about + `"}}`
	case "PUT /jobmanager/resources/status/{id}":
		return `{"owner_id": "agent-hub", "epoch": 1}`
	case "POST /metricsexport/predict", "POST /predict", "POST /api/v3/metrics/predict", "POST /metricsexport/detect_drift", "POST /detect_drift":
		return `{"model_tag": "none:1", "input_series": [1, 2]}`
	case "POST /metricsexport/unregister_metric", "POST /unregister_metric":
		return `{"metric_name": "none"}`
	case "POST /metricsexport/remove_model", "POST /remove_model":
		return `{"model_tag": "none:1"}`
	case "POST /metricsexport/create_model_metric", "POST /create_model_metric":
		return `{"metric_name": "a", "telemetry_metric": "up", "model_name": "none:1"}`
	}
	switch r.String() {
	case "POST /acm/apps":
		return codecoCamera
	case "PUT /acm/apps/{namespace}/{name}":
		return strings.Replace(codecoCamera, "{name: camera, namespace: plant}", "{name: nowhere, namespace: nowhere}", 1)
	case "POST /mdm/publish/event", "POST /publish/event":
		return mdmEvent
	case "PUT /mdm/connectors/{connector}":
		return `{"type": "test"}`
	case "POST /mdm/graph/cypher", "POST /graph/cypher":
		return `MATCH (n) RETURN count(n)`
	case "PUT /swm/objects/{kind}/{namespace}/{name}":
		return "spec: {minMember: 1}\n"
	case "POST /pdlc/agents":
		return `{"episodes": 16}`
	case "PUT /pdlc/pipelines/{name}":
		return `{"telemetry_metric": "up"}`
	case "POST /pdlc/federations/{name}/updates":
		return `{"round": 1, "change": [], "windows": 1}`
	case "PUT /pdlc/profiles/{name}":
		return `{"formula": "1 - cpu"}`
	case "PUT /swm/topologies/{name}":
		return "networkImplementation: LAN\nnodes: [{name: hub-1}]\n"
	case "PUT /location/v2/subscriptions/{kind}/{id}":
		return `{"subscriptionType": "UserLocationEventSubscription", "address": "a", "callbackReference": "https://example.org"}`
	case "POST /alto/networkmap":
		return `{"pids": ["nowhere"]}`
	case "POST /alto/costmap":
		return `{"cost-type": {"cost-mode": "numerical", "cost-metric": "routingcost"}, "pids": {"srcs": [], "dsts": []}}`
	case "POST /alto/endpointcost":
		return `{"cost-type": {"cost-mode": "numerical", "cost-metric": "routingcost"}, "endpoints": {"srcs": ["ipv4:192.0.2.1"], "dsts": ["ipv4:192.0.2.2"]}}`
	case "POST /alto/endpointprop":
		return `{"properties": ["network.pid"], "endpoints": ["ipv4:192.0.2.1"]}`
	case "POST /alto/updates":
		return `{"add": {"map": {"resource-id": "network"}}}`
	case "POST /alto/updates/{id}":
		return `{"remove": []}`
	case "POST /netma/positions":
		return `{"users": [{"address": "sip 0_0", "latitude": 47.1, "longitude": 8.5}]}`
	case "PUT /netma/reservations/{name}":
		return `{"source": "hub-1", "target": "hub-2", "bandwidthBits": 1000}`
	case "POST /controller/handovers":
		return `{"application": "` + about + `", "home": true}`
	case "PUT /controller/applications/{application}":
		return `{"specversion": "1.0", "id": "1", "source": "/controllers/shore", "type": "dev.littoral.handover.transferred.v1", "data": {"epoch": 1,
"application": {"name": "shop", "dialect": "icos", "descriptor": "name: shop", "version": 1}}}`
	case "POST /controller/leases":
		return `{"specversion": "1.0", "id": "1", "source": "/controllers/shore", "type": "dev.littoral.handover.claimed.v1", "data": {"claims": []}}`
	}
	switch r.bodyKind() {
	case document:
		return hubShop
	case jsonBody:
		return `{"id": "` + about + `", "owner_id": "agent-hub", "state": "Finished", "epoch": 1}`
	case nothing, altoBody:
	}
	return ""
}

// TestBadRequests: every route reports all faults of a request in the same format, and stores nothing.
func TestBadRequests(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.running(t, hubShop)
	all := routes(t)
	for _, r := range all {
		t.Run(r.String(), func(t *testing.T) {
			c := w.allowed(r)
			w.unchanged(t, func() {
				w.wrongMethods(t, c, r, all)
				if r.hasID() {
					malformedIDs(t, c, r)
				}
				if r.ofPeers() {
					c.call(t, r.method, r.byStranger(), r.fitting(uuid.NewString())).refused(t, http.StatusForbidden)
				} else if r.hasID() || strings.HasPrefix(r.pattern, "/jobmanager/policies/") {
					c.call(t, r.method, r.anywhere(), r.fitting(uuid.NewString())).refused(t, http.StatusNotFound)
				}
				switch r.bodyKind() {
				case nothing:
				case altoBody:
					badALTO(t, c, r)
				default:
					badBodies(t, c, r)
				}
			})
		})
	}
}

func (w *world) wrongMethods(t *testing.T, c client, r route, all []route) {
	t.Helper()
	path := r.anywhere()
	var taken []string
	for _, other := range all {
		if other.covers(path) {
			taken = append(taken, other.method)
		}
	}
	require.Contains(t, taken, r.method)
	for _, method := range []string{
		http.MethodGet, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete,
		http.MethodOptions, http.MethodTrace,
		"BREW",
	} {
		if slices.Contains(taken, method) {
			continue
		}
		a := c.call(t, method, path, "")
		a.refused(t, http.StatusMethodNotAllowed)
		for _, want := range taken {
			require.Contains(t, strings.Split(a.header.Get("Allow"), ", "), want, "%s %s", method, path)
		}
	}
}

// covers reports whether the route's pattern matches the path.
func (r route) covers(path string) bool {
	if r.pattern == zenohrest.Root && strings.HasPrefix(path, r.pattern) {
		return true
	}
	pattern := strings.Split(strings.TrimSuffix(r.pattern, "{$}"), "/")
	parts := strings.Split(path, "/")
	if len(pattern) != len(parts) {
		return false
	}
	for i := range pattern {
		if parameter := strings.HasPrefix(pattern[i], "{") && parts[i] != ""; !parameter && pattern[i] != parts[i] {
			return false
		}
	}
	return true
}

func malformedIDs(t *testing.T, c client, r route) {
	t.Helper()
	for _, id := range []string{
		"1", "not-a-uuid", "00000000-0000-0000-0000-00000000000", "00000000-0000-0000-0000-00000000000g",
		"%7B" + uuid.NewString() + "%7D", "urn:uuid:" + uuid.NewString(), strings.ReplaceAll(uuid.NewString(), "-", ""),
		"%00", "%ff", "'%20or%201=1--", "%F0%9F%8C%8A",
	} {
		d := c.call(t, r.method, r.path(id), r.fitting(uuid.Nil.String())).refused(t, http.StatusBadRequest)
		require.Contains(t, d.Detail, "is not a UUID")
	}
}

// byStranger is where a controller that is no peer calls a route of peers; where there is no body, the query says who calls.
func (r route) byStranger() string {
	if r.entry.Name == "controller-history-show" || r.entry.Name == "controller-logs-show" {
		return r.anywhere() + "?controller=shore"
	}
	return r.anywhere()
}

// ofPeers reports whether only controllers that are set as peers may call the route; here there are none.
func (r route) ofPeers() bool {
	return slices.Contains([]string{
		"controller-accept", "controller-lease", "controller-history-show", "controller-logs-show",
	}, r.entry.Name)
}

func badBodies(t *testing.T, c client, r route) {
	t.Helper()
	path := r.anywhere()
	require.Contains(t, c.call(t, r.method, path, "").refused(t, http.StatusBadRequest).Detail, "empty")
	c.call(t, r.method, path, unreadable).refused(t, http.StatusBadRequest)
	limit := r.entry.Spec.MaxBody
	c.call(t, r.method, path, strings.Repeat(" ", int(limit)+1)).refused(t, http.StatusRequestEntityTooLarge)
	switch r.bodyKind() {
	case jsonBody:
		for _, text := range []string{"nul", `{"id":`, "{} {}", "\xff\xfe", "- a\n- b"} {
			c.call(t, r.method, path, text).refused(t, http.StatusBadRequest)
		}
		for _, text := range []string{`[]`, `"text"`, `1`, `true`} {
			c.call(t, r.method, path, text).refused(t, http.StatusUnprocessableEntity)
		}
	case document:
		c.call(t, r.method, path, hubShop, "Content-Type", "application/pdf").refused(t, http.StatusUnsupportedMediaType)
		c.call(t, r.method, path, hubShop, "Content-Type", "a/b/c;=").refused(t, http.StatusBadRequest)
		require.NotEmpty(t, c.call(t, r.method, path, "name: x\n").fields(t))
	case nothing, altoBody:
	}
}

func TestUnknownPaths(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, path := range []string{
		"/", "/x", "/jobmanager/x", "/jobmanager/jobs/", "/jobmanager/jobs/a/b/c/d", "/jobmanager/groups/start",
		"/matchmake/x",
		"/aggregator/x", "/outbox", "/polman/x", "/polman/registry/api/v1/", "/jobmanager/swagger/index.html",
	} {
		for _, c := range []client{w.nobody, w.operator} {
			a := c.call(t, http.MethodGet, path, "")
			if path == "/jobmanager/groups/start" { // GET takes "start" for an id
				require.Contains(t, []int{400, 401}, a.status)
				continue
			}
			require.Contains(t, a.refused(t, http.StatusNotFound).Detail, path)
		}
	}
}

// TestQueries: unknown, repeated or invalid parameters are refused; the answer names all of them.
func TestQueries(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	g, _ := w.running(t, hubShop)
	list := []string{
		"limit=0", "limit=1001", "limit=-1", "limit=x", "limit=1.5", "cursor=x", "cursor=bnVsbA%3D", "state=made", "state=1",
		"state=%00", "orchestrator=slurm", "owner=%00", "app=%00", "owner=%ff", "app=shop%ff", "limt=5", "limit=1&limit=2", "state=Created&state=Created",
	}
	queries := map[string][]string{
		"GET /jobmanager/jobs":   list,
		"GET /jobmanager/groups": list,
		"GET /jobmanager/history": {
			"app=shop", "after=-1", "after=x", "after=9223372036854775808", "limit=0", "state=Created", "after=1&after=2",
			"before=-1", "before=x", "before=1&before=2", "after=1&before=9",
		},
		"GET /jobmanager/jobs/executable/ocm": {
			"agent=a",
			"icos_agent_id=%00",
			"icos_agent_id=%ff",
			"icos_agent_id=a&icos_agent_id=b",
		},
		"GET /jobmanager/jobs/executable/ocm/a":            {"agent=a"},
		"GET /jobmanager/jobs/executable/orchestrator/ocm": {"icos=a"},
		"PUT /jobmanager/groups":                           {"id=x", "app=x", "id=" + g.ID + "&id=" + g.ID},
		"PUT /jobmanager/jobs":                             {"id=x", "job=x", "orchestrator=ocm&orchestrator=ocm"},
		"DELETE /jobmanager/groups/" + g.ID:                {"stop=maybe", "force=true", "stop=true&stop=true"},
		"POST /matchmaker/plan":                            {"app=shop", "id=x", "app=" + g.ID + "&app=" + g.ID},
		"POST /matchmaker/explain":                         {"app=shop", "id=x"},
		"GET /aggregator/":                                 {"shape=v2", "shape=v1&shape=v1", "x=1"},
	}
	admin := w.as(auth.Admin)
	for target, bad := range queries {
		t.Run(target, func(t *testing.T) {
			method, path, _ := strings.Cut(target, " ")
			text := ""
			switch {
			case target == "PUT /jobmanager/jobs":
				text = `{"id": "` + g.Jobs[0].ID + `", "state": "Finished"}`
			case method != http.MethodGet && method != http.MethodDelete:
				text = hubShop
			}
			w.unchanged(t, func() {
				for _, q := range append(bad, "%zz=1", "a=%zz", "a;b=1") {
					d := admin.call(t, method, path+"?"+q, text).refused(t, http.StatusBadRequest)
					require.NotEmpty(t, d.Errors, q)
				}
			})
		})
	}
	both := w.viewer.call(t, http.MethodGet, "/jobmanager/jobs?limit=0&state=lost&colour=red&cursor=.", "")
	require.Len(t, both.refused(t, http.StatusBadRequest).Errors, 4, "all of it at once")
}

// endless is a text that is too long for any index of Postgres, compressed or not.
var endless = func() string {
	var text strings.Builder
	for text.Len() < 20_000 {
		text.WriteString(uuid.NewString())
	}
	return text.String()
}()

// TestInvalidContent: the answer names everything that is wrong with a well-formed body.
func TestInvalidContent(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	g, j := w.running(t, hubShop)
	other := w.submit(t, strings.Replace(hubShop, "name: shop", "name: other", 1))
	admin := w.as(auth.Admin)
	for name, row := range map[string]struct {
		method, path, body string
		fields             []string
	}{
		"a descriptor with four faults": {
			"POST", "/jobmanager/groups", `
name: Bad_Name
components:
  - name: web
    type: kubernetes
    requirements: {cpu: -1, memory: lots}
    manifests: []
`, []string{"name", "components[0].requirements.cpu", "components[0].requirements.memory", "components[0].manifests"},
		},
		"an update with them": {
			"PUT", "/jobmanager/groups/" + g.ID, "name: shop\ncomponents:\n  - type: x\n    requirements: {cpu: a}\n",
			[]string{"components[0].name", "components[0].type", "components[0].requirements.cpu", "components[0].manifests"},
		},
		"an update that renames": {
			"PUT", "/jobmanager/groups/" + g.ID, strings.Replace(hubShop, "shop", "store", 1), []string{"name"},
		},
		"a JobGroup that renames": {
			"PUT", "/jobmanager/groups", `{"id": "` + g.ID + `", "appName": "store", "jobs": []}`, []string{"appName"},
		},
		"a JobGroup of wrong types": {
			"PUT", "/jobmanager/groups", `{"id": 5, "appName": [], "jobs": [{"id": "x", "manifests": [{"yamlString": 1}]}]}`,
			[]string{"id", "appName", "jobs[0].id", "jobs[0].manifests[0].yamlString"},
		},
		"a promotion by nobody": {
			"PATCH", "/jobmanager/jobs/promote/" + other.Jobs[0].ID, `{}`, []string{"owner_id"},
		},
		"a promotion by a number": {
			"PATCH", "/jobmanager/jobs/promote/" + other.Jobs[0].ID, `{"owner_id": 7}`, []string{"owner_id"},
		},
		"a promotion by a name without end": {
			"PATCH", "/jobmanager/jobs/promote/" + other.Jobs[0].ID, `{"owner_id": "` + endless + `"}`, []string{"owner_id"},
		},
		"a lock by a name without end": {
			"PUT", "/jobmanager/jobs/" + other.Jobs[0].ID, `{"state": 2, "owner_id": "` + endless + `"}`, []string{"owner_id"},
		},
		"a report on a resource with a name without end": {
			"PUT", "/jobmanager/jobs", `{"id": "` + j.ID + `", "owner_id": "agent-hub", "state": "Finished",
				"resource": {"resource_uuid": "` + endless + `"}}`, []string{"resource.resource_uuid"},
		},
		"a status of a resource with a name without end": {
			"PUT", "/jobmanager/status", `{"job_id": "` + j.ID + `", "owner_id": "agent-hub", "status": "Available",
				"resource_uuid": "` + endless + `"}`, []string{"resource_uuid"},
		},
		"an incompliance with an id without end": {
			"POST", "/jobmanager/policies/incompliance", `{"id": "` + endless + `", "policyName": "p", "remediation": "none",
				"subject": {"appInstance": "` + g.ID + `"}}`, []string{"id"},
		},
		"a lock of an unknown kind": {
			"PUT", "/jobmanager/jobs/" + other.Jobs[0].ID, `{"state": 4}`, []string{"state"},
		},
		"a lock of a wrong type": {
			"PUT", "/jobmanager/jobs/" + other.Jobs[0].ID, `{"state": "2", "owner_id": 1}`, []string{"state", "owner_id"},
		},
		"a report without a state": {
			"PUT", "/jobmanager/jobs", `{"id": "` + j.ID + `", "owner_id": "agent-hub"}`, []string{"state"},
		},
		"a report of a state Created": {
			"PUT", "/jobmanager/jobs", `{"id": "` + j.ID + `", "owner_id": "agent-hub", "state": 1}`, []string{"state"},
		},
		"a report about an id that is none": {"PUT", "/jobmanager/jobs", `{"id": "x", "state": "Finished"}`, []string{"id"}},
		"a report with five faults": {
			"PUT", "/jobmanager/jobs",
			`{"id": "` + j.ID + `", "owner_id": 1, "state": "Done", "type": 9, "epoch": "two", "resource": {
				"conditions": [{"type": "", "status": "Maybe"}]}}`,
			[]string{"owner_id", "state", "type", "epoch"},
		},
		"a report with two bad conditions": {
			"PUT", "/jobmanager/jobs",
			`{"id": "` + j.ID + `", "owner_id": "agent-hub", "state": "Finished", "resource": {"conditions": [
				{"type": "Available", "status": "True"}, {"type": "", "status": "True"}, {"type": "Applied", "status": "true"}]}}`,
			[]string{"resource.conditions[1].type", "resource.conditions[2].status"},
		},
		"a report with a bad state and a bad condition": {
			"PUT", "/jobmanager/jobs",
			`{"id": "` + j.ID + `", "state": 1, "resource": {"conditions": [{"type": "Applied", "status": ""}]}}`,
			[]string{"resource.conditions[0].status", "state"},
		},
		"a status with bad conditions": {
			"PUT", "/jobmanager/status", `{"job_id": "` + j.ID + `", "epoch": 1, "conditions": [{"type": "", "status": ""}]}`,
			[]string{"conditions[0].type", "conditions[0].status"},
		},
		"a status that names no job": {
			"PUT", "/jobmanager/resources/status", `{"id": "", "job_id": "", "job_group_id": "", "resource_uuid": "", "status": "Available"}`,
			[]string{"job_id"},
		},
		"a status of wrong types": {
			"PUT", "/jobmanager/resources/status",
			`{"job_id": 1, "epoch": "1", "conditions": [{"type": 1, "lastTransitionTime": "noon"}]}`,
			[]string{"job_id", "epoch", "conditions[0].type", "conditions[0].lastTransitionTime"},
		},
		"an incompliance that says nothing": {
			"POST", "/jobmanager/policies/incompliance", `{}`, []string{"policyName", "remediation", "subject"},
		},
		"an incompliance of wrong types": {
			"POST", "/jobmanager/policies/incompliance",
			`{"policyName": 1, "remediation": "pray", "subject": {"appInstance": {}}, "extraLabels": [1]}`,
			[]string{"policyName", "remediation", "subject.appInstance", "extraLabels"},
		},
		"a question about what is not there": {
			"POST", "/matchmake", `{"descriptor": "name: a\ncomponents: [{name: web, type: kubernetes}]",
				"current_setup": [{"component": "x"}],
				"violations": [{"component": "y"}]}`, []string{"current_setup", "violations"},
		},
		"a question of wrong types": {
			"POST", "/matchmake", `{"descriptor": 5, "current_setup": {}, "violations": [{"component": 1}]}`,
			[]string{"descriptor", "current_setup", "violations[0].component"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			w.unchanged(t, func() {
				got := admin.call(t, row.method, row.path, row.body).fields(t)
				require.ElementsMatch(t, row.fields, got)
			})
		})
	}
}

// TestConflicts: a request that the state does not permit is refused, and nothing is stored.
func TestConflicts(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	g, j := w.running(t, hubShop)
	waiting := w.submit(t, strings.NewReplacer("name: shop", "name: waiting", "hub-1", "hub-9").Replace(hubShop))
	held := w.submit(t, strings.Replace(hubShop, "name: shop", "name: held", 1))
	w.claim(t, w.hub, hubAgent, held.Jobs[0])
	going := w.submit(t, strings.Replace(hubShop, "name: shop", "name: going", 1))
	w.finish(t, w.hub, hubAgent, going.Jobs[0])
	w.operator.call(t, http.MethodDelete, "/jobmanager/groups/"+going.ID+"?stop=true", "").is(t, http.StatusAccepted)
	twin := strings.Replace(hubShop, "name: shop", "name: twin", 1)
	w.submit(t, twin)
	w.submit(t, twin)
	w.operator.call(t, http.MethodPost, "/jobmanager/groups", twin, "Idempotency-Key", "k").is(t, http.StatusCreated)
	admin := w.as(auth.Admin)
	left, moved := w.running(t, strings.Replace(freeShop, "name: shop", "name: left", 1))
	w.operator.send(t, http.MethodPost, "/jobmanager/policies/incompliance", body{
		"policyName": "p", "remediation": "reallocate", "subject": body{"appInstance": left.ID},
	}).is(t, http.StatusOK)
	for name, row := range map[string]struct{ method, path, body string }{
		"to forget a job of which a copy is left": {"DELETE", "/jobmanager/jobs/" + moved.ID, ``},
		"to promote what another owns": {
			"PATCH", "/jobmanager/jobs/promote/" + held.Jobs[0].ID, `{"owner_id": "agent-edge"}`,
		},
		"to promote what is finished": {"PATCH", "/jobmanager/jobs/promote/" + j.ID, `{"owner_id": "agent-hub"}`},
		"to promote what has no place": {
			"PATCH", "/jobmanager/jobs/promote/" + waiting.Jobs[0].ID, `{"owner_id": "agent-hub"}`,
		},
		"to lock what another owns": {
			"PUT", "/jobmanager/jobs/" + held.Jobs[0].ID, `{"state": 2, "owner_id": "agent-edge"}`,
		},
		"to unlock what another owns": {
			"PUT", "/jobmanager/jobs/" + held.Jobs[0].ID, `{"state": 1, "owner_id": "agent-edge"}`,
		},
		"to complete what another owns": {
			"PUT", "/jobmanager/jobs/" + held.Jobs[0].ID, `{"state": 3, "owner_id": "agent-edge"}`,
		},
		"to unlock what is finished": {"PUT", "/jobmanager/jobs/" + j.ID, `{"state": 1, "owner_id": "agent-hub"}`},
		"to report what nobody has taken": {
			"PUT", "/jobmanager/jobs", `{"id": "` + waiting.Jobs[0].ID + `", "owner_id": "agent-hub", "state": 3}`,
		},
		"to report what another owns": {
			"PUT", "/jobmanager/jobs", `{"id": "` + j.ID + `", "owner_id": "agent-edge", "state": 3}`,
		},
		"to report by an older decision": {
			"PUT", "/jobmanager/jobs", `{"id": "` + j.ID + `", "owner_id": "agent-hub", "state": 3, "epoch": 99}`,
		},
		"to report other work": {
			"PUT", "/jobmanager/jobs", `{"id": "` + j.ID + `", "owner_id": "agent-hub", "state": 3, "type": 6}`,
		},
		"to report one job and name two": {
			"PUT", "/jobmanager/jobs?id=" + held.Jobs[0].ID, `{"id": "` + j.ID + `", "owner_id": "agent-hub", "state": 3}`,
		},
		"to show a copy that was left": {
			"PUT", "/jobmanager/status", `{"job_id": "` + j.ID + `", "epoch": 99, "status": "Available"}`,
		},
		"to show a copy of another's": {
			"PUT", "/jobmanager/status", `{"job_id": "` + j.ID + `", "owner_id": "agent-edge", "status": "Available"}`,
		},
		"to show a copy without naming it": {
			"PUT", "/jobmanager/status", `{"job_id": "` + j.ID + `", "status": "Available"}`,
		},
		"to show what does not run yet": {
			"PUT", "/jobmanager/status", `{"job_id": "` + waiting.Jobs[0].ID + `", "epoch": 1, "status": "Available"}`,
		},
		"to delete an application that runs": {"DELETE", "/jobmanager/groups/" + g.ID, ``},
		"to forget a job that runs":          {"DELETE", "/jobmanager/jobs/" + j.ID, ``},
		"to start what is being deleted":     {"PUT", "/jobmanager/groups/start/" + going.ID, ``},
		"to update what is being deleted": {
			"PUT", "/jobmanager/groups/" + going.ID, strings.Replace(hubShop, "name: shop", "name: going", 1),
		},
		"to update one of several of a name": {"PUT", "/jobmanager/groups", twin},
		"to update one and name another":     {"PUT", "/jobmanager/groups/" + held.ID, `{"id": "` + g.ID + `", "jobs": []}`},
		"to scale what is in progress": {
			"POST", "/jobmanager/policies/incompliance",
			`{"policyName": "p", "remediation": "scale-up", "subject": {"appInstance": "` + held.ID + `"}}`,
		},
		"to scale what nobody has": {
			"POST", "/jobmanager/policies/incompliance",
			`{"policyName": "p", "remediation": "scale-up", "subject": {"appInstance": "` + waiting.ID + `"}}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			w.unchanged(t, func() { admin.call(t, row.method, row.path, row.body).refused(t, http.StatusConflict) })
		})
	}
	w.unchanged(t, func() {
		w.operator.call(t, http.MethodPost, "/jobmanager/groups", hubShop, "Idempotency-Key", "k").
			refused(t, http.StatusConflict)
	})
}

func TestUnknownThings(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	none := uuid.NewString()
	admin := w.as(auth.Admin)
	w.unchanged(t, func() {
		for what, row := range map[string]struct{ method, path, body string }{
			"a report on no job":             {"PUT", "/jobmanager/jobs", `{"id": "` + none + `", "owner_id": "a", "state": 3}`},
			"a report that names none":       {"PUT", "/jobmanager/jobs", `{"owner_id": "a", "state": 3}`},
			"a status of no job":             {"PUT", "/jobmanager/status/", `{"job_id": "` + none + `", "epoch": 1}`},
			"a status of no resource":        {"PUT", "/jobmanager/resources/status", `{"id": "", "job_id": "", "resource_uuid": "` + none + `"}`},
			"an update of no application":    {"PUT", "/jobmanager/groups?id=" + none, hubShop},
			"an update of an unknown name":   {"PUT", "/jobmanager/groups", hubShop},
			"an explanation of nothing":      {"POST", "/matchmaker/explain?app=" + none, ""},
			"a plan of an update of nothing": {"POST", "/matchmaker/plan?app=" + none, hubShop},
			"a violation by no job": {
				"POST", "/jobmanager/policies/incompliance",
				`{"policyName": "p", "remediation": "none", "subject": {"resourceId": "` + none + `"}}`,
			},
			"a violation by an odd instance": {
				"POST", "/jobmanager/policies/incompliance",
				`{"policyName": "p", "remediation": "none", "subject": {"appInstance": "compss-example-app-002"}}`,
			},
		} {
			a := admin.call(t, row.method, row.path, row.body)
			require.Equal(t, http.StatusNotFound, a.status, "%s: %s", what, a.body)
			a.refused(t, http.StatusNotFound)
		}
	})
}
