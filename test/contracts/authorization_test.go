package contracts_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/littoral-project/littoral/functions"
	"github.com/littoral-project/littoral/shared/auth"
	"github.com/littoral-project/littoral/shared/auth/authtest"
	"github.com/littoral-project/littoral/shared/bus/zenohrest"
	"github.com/littoral-project/littoral/shared/function"
	"github.com/littoral-project/littoral/shared/settings"
	"github.com/littoral-project/littoral/test/inprocess"
)

// TestTokens: every route refuses an invalid token, and one with too low a role.
func TestTokens(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.submit(t, hubShop)
	with := func(change inprocess.Claims) func(auth.Role) string {
		return func(role auth.Role) string {
			claims := inprocess.Claims{"roles": []string{string(role)}}
			for k, v := range change {
				claims[k] = v
			}
			return w.Issuer.TokenWith(t, claims)
		}
	}
	foreign := forged(t, w.Issuer.Config().Issuer, auth.Admin)
	unproven := map[string]func(auth.Role) string{
		"no token":                      func(auth.Role) string { return "" },
		"a token that is no JWT":        func(auth.Role) string { return "abc.def" },
		"an expired token":              with(inprocess.Claims{"exp": time.Now().Add(-time.Hour).Unix()}),
		"a token that never expires":    with(inprocess.Claims{"exp": nil}),
		"a token for another service":   with(inprocess.Claims{"aud": []string{"elsewhere"}}),
		"a token for nobody":            with(inprocess.Claims{"aud": nil}),
		"another issuer's token":        with(inprocess.Claims{"iss": "https://elsewhere.example"}),
		"a token signed by another key": func(auth.Role) string { return foreign },
	}
	for _, r := range routes(t) {
		t.Run(r.String(), func(t *testing.T) {
			path, need := r.anywhere(), r.role
			if r.pattern == zenohrest.Root {
				path = r.pattern // with a key, whoever may would store something
			}
			if need == auth.Open {
				w.nobody.call(t, r.method, path, "").is(t, r.openly())
				return
			}
			w.unchanged(t, func() {
				for name, token := range unproven {
					a := client{w.URL, token(need)}.call(t, r.method, path, "{}")
					require.Equal(t, http.StatusUnauthorized, a.status, "%s: %s", name, a.body)
					a.refused(t, http.StatusUnauthorized)
				}
				basic := w.nobody.call(t, r.method, path, "{}", "Authorization", "Basic YTpi")
				basic.refused(t, http.StatusUnauthorized)
				for _, role := range append(auth.Roles(), "root", "") {
					a := client{w.URL, w.Token(role)}.call(t, r.method, path, "")
					if role.Grants(need) {
						require.NotContains(t, []int{401, 403, 405, 500, 503}, a.status, "%q: %s", role, a.body)
						continue
					}
					require.Equal(t, http.StatusForbidden, a.status, "%q: %s", role, a.body)
					require.Contains(t, a.refused(t, http.StatusForbidden).Detail, string(need))
				}
			})
		})
	}
}

// forged returns a token with valid claims that is signed with another key.
func forged(t testing.TB, issuer string, role auth.Role) string {
	t.Helper()
	return authtest.Sign(t, authtest.NewKey(t), "k1", inprocess.Claims{
		"iss": issuer, "sub": "mallory", "aud": []string{inprocess.Audience}, "roles": []string{string(role)},
		"exp": time.Now().Add(time.Hour).Unix(),
	}, nil)
}

// TestOnlyHomeHealthSignInAndTheConsolesFilesAreOpen prevents that a route becomes open unnoticed.
func TestOnlyHomeHealthSignInAndTheConsolesFilesAreOpen(t *testing.T) {
	t.Parallel()
	var open []string
	for _, r := range routes(t) {
		if r.role == auth.Open {
			open = append(open, r.String())
			continue
		}
		require.Contains(t, auth.Roles(), r.role, r)
		require.True(
			t,
			r.method == http.MethodGet || r.role != auth.Viewer || slices.Contains(questions, r.String()),
			"%s changes something and a viewer may call it",
			r,
		)
	}
	require.ElementsMatch(t, []string{
		"GET /aggregator/healthz",
		// Who signs in has no token yet; whoever changes a session shows the session.
		"GET /auth/login", "GET /auth/callback", "GET /auth/session", "GET /auth/provider",
		"POST /auth/refresh", "POST /auth/logout",
		"GET /api/v3/healthcheck",
		"GET /api/v3/controller", "GET /api/v3/controller/{$}", // a client looks there before it knows where to sign in
		"GET /api/v3/user/login", "GET /api/v3/user/logout",
		"GET /console/", // its files hold nothing of anybody
		"GET /jobmanager", "GET /jobmanager/{$}", "GET /jobmanager/healthz",
		"GET /matchmaker", "GET /matchmaker/{$}", "GET /matchmaker/healthz",
		"GET /polman", "GET /polman/{$}", "GET /polman/healthz",
		"GET /polman/registry/api/v1/stats", "GET /polman/registry/api/v1/stats/{$}",
		"GET /registry/api/v1/stats", "GET /registry/api/v1/stats/{$}",
		"GET /openapi.json", "GET /openapi.yaml", // what the API is, is no secret
		"GET /telemetry", "GET /telemetry/{$}", "GET /telemetry/healthz",
		"GET /topologyexporter/healthz",
		"GET /metricsexport", "GET /metricsexport/{$}", "GET /metricsexport/healthz",
	}, open)
}

// withoutSignIn is how routes that ask nobody answer, where no client of an issuer is set (test/e2e/login sets one).
var withoutSignIn = map[string]int{
	"GET /api/v3/controller": http.StatusNoContent, "GET /api/v3/controller/{$}": http.StatusNoContent,
	"GET /api/v3/user/login": http.StatusNotImplemented, "POST /api/v3/metrics/train": http.StatusNotImplemented,
	"POST /api/v3/metrics/predict": http.StatusNotImplemented,
	"GET /auth/login":              http.StatusNotFound, "GET /auth/callback": http.StatusNotFound, "POST /auth/refresh": http.StatusUnauthorized,
}

// openly is how an open route answers nobody.
func (r route) openly() int {
	if status, ok := withoutSignIn[r.String()]; ok {
		return status
	}
	return http.StatusOK
}

// questions are routes that use POST, since their body is a descriptor, but store nothing.
var questions = []string{
	"POST /alto/networkmap", "POST /alto/costmap", "POST /alto/endpointprop", "POST /alto/endpointcost",
	"POST /alto/updates", "POST /alto/updates/{id}", // which change only what the caller is told
	"POST /matchmake", "POST /matchmaker/matchmake", "POST /matchmaker/plan", "POST /plan", "POST /matchmaker/explain",
	"POST /explain", "POST /bus/", "POST /matchmaker/whatif",
	"POST /metricsexport/predict", "POST /predict", "POST /metricsexport/detect_drift", "POST /detect_drift",
	"POST /metricsexport/show_models", "POST /show_models",
	"POST /mdm/graph/entity/type/{entity_type}", "POST /graph/entity/type/{entity_type}", "POST /mdm/graph/cypher", "POST /graph/cypher",
}

// TestAnAgentActsOnlyAsItself: a token bound to one agent id is refused if the request names another one.
func TestAnAgentActsOnlyAsItself(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	j := w.submit(t, hubShop).Jobs[0]
	w.claim(t, w.hub, hubAgent, j)
	for name, row := range map[string]struct{ method, path, body string }{
		"promotes": {"PATCH", "/jobmanager/jobs/promote/" + j.ID, `{"owner_id":"agent-hub"}`},
		"reports": {
			"PUT", "/jobmanager/jobs", `{"id":"` + j.ID + `","owner_id":"agent-hub","state":"Finished"}`,
		},
		"observes": {
			"PUT", "/jobmanager/status", `{"job_id":"` + j.ID + `","owner_id":"agent-hub","status":"Available"}`,
		},
		"observes by the older path":   {"PUT", "/jobmanager/resources/status/" + j.ID, `{"owner_id":"agent-hub"}`},
		"locks":                        {"PUT", "/jobmanager/jobs/" + j.ID, `{"state":2,"owner_id":"agent-hub"}`},
		"polls":                        {"GET", "/jobmanager/jobs/executable/ocm/agent-hub", ""},
		"polls with itself in a query": {"GET", "/jobmanager/jobs/executable/ocm?icos_agent_id=agent-hub", ""},
		"polls in the oldest form":     {"GET", "/jobmanager/jobs/executable/orchestrator/ocm?icos_agent_id=agent-hub", ""},
	} {
		t.Run(name, func(t *testing.T) {
			w.unchanged(t, func() {
				d := w.edge.call(t, row.method, row.path, row.body).refused(t, http.StatusForbidden)
				require.Contains(t, d.Detail, edgeAgent)
			})
			require.NotEqual(t, http.StatusForbidden, w.anyAgent.call(t, row.method, row.path, row.body).status)
		})
	}
}

// TestATokenOfNoAgentIsNoUnknownAgent: it could take the jobs of any cluster. A site with older agents may allow it.
func TestATokenOfNoAgentIsNoUnknownAgent(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	j := w.submit(t, hubShop).Jobs[0]
	for _, row := range [][3]string{
		{"GET", "/jobmanager/jobs/executable/ocm/stranger", ""},
		{"GET", "/jobmanager/jobs/executable/ocm?icos_agent_id=stranger", ""},
		{"PATCH", "/jobmanager/jobs/promote/" + j.ID, `{"owner_id":"stranger"}`},
		{"PUT", "/jobmanager/jobs/" + j.ID, `{"state":2,"owner_id":"stranger"}`},
		{"PUT", "/jobmanager/jobs/" + j.ID, `{"state":2}`},
	} {
		w.unchanged(t, func() {
			d := w.anyAgent.call(t, row[0], row[1], row[2]).refused(t, http.StatusForbidden)
			require.Contains(t, d.Detail, "icos_agent_id")
			require.Contains(t, d.Detail, "UNKNOWN_AGENTS")
		})
	}
	promote := "/jobmanager/jobs/promote/" + j.ID
	w.anyAgent.call(t, http.MethodPatch, promote, `{"owner_id":"agent-hub"}`).is(t, http.StatusNoContent)

	next := w.submit(t, hubShop).Jobs[0]
	w.lenient(t, "jobmanager-job-promote").
		call(t, http.MethodPatch, "/jobmanager/jobs/promote/"+next.ID, `{"owner_id":"stranger"}`).is(t, http.StatusNoContent)
}

// TestATokenOfNoAgentIsNoAgentWithATokenOfItsOwn: once an agent has polled with a token that is bound to it, nobody else says
// what it would.
func TestATokenOfNoAgentIsNoAgentWithATokenOfItsOwn(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	j := w.submit(t, hubShop).Jobs[0]
	w.anyAgent.get(t, "/jobmanager/jobs/executable/ocm/agent-hub") // an older agent, as far as anyone knows
	w.hub.get(t, "/jobmanager/jobs/executable/ocm/agent-hub")
	w.hub.get(t, "/jobmanager/jobs/executable/ocm/agent-hub")
	for _, row := range [][3]string{
		{"GET", "/jobmanager/jobs/executable/ocm/agent-hub", ""},
		{"PATCH", "/jobmanager/jobs/promote/" + j.ID, `{"owner_id":"agent-hub"}`},
		{"PUT", "/jobmanager/jobs/" + j.ID, `{"state":2,"owner_id":"agent-hub"}`},
	} {
		w.unchanged(t, func() {
			d := w.anyAgent.call(t, row[0], row[1], row[2]).refused(t, http.StatusForbidden)
			require.Contains(t, d.Detail, "UNKNOWN_AGENTS")
		})
	}
	j = w.claim(t, w.hub, hubAgent, j)
	for _, row := range [][3]string{
		{"PUT", "/jobmanager/jobs", `{"id":"` + j.ID + `","owner_id":"agent-hub","state":"Finished"}`},
		{"PUT", "/jobmanager/jobs/" + j.ID, `{"state":1,"owner_id":"agent-hub"}`},
		{"PUT", "/jobmanager/jobs/" + j.ID, `{"state":3,"owner_id":"agent-hub"}`},
		{"PUT", "/jobmanager/status", `{"job_id":"` + j.ID + `","owner_id":"agent-hub","status":"Available"}`},
		{"PUT", "/jobmanager/status", fmt.Sprintf(`{"job_id":"%s","epoch":%d,"status":"Available"}`, j.ID, j.Epoch)},
		{"PUT", "/jobmanager/status", `{"job_group_id":"` + j.GroupID + `","owner_id":"agent-hub","status":"Available"}`},
	} {
		w.unchanged(t, func() { w.anyAgent.call(t, row[0], row[1], row[2]).refused(t, http.StatusForbidden) })
	}
	w.anyAgent.get(t, "/jobmanager/jobs/executable/ocm/agent-edge") // which has not polled yet
	w.lenient(t, "jobmanager-job-promote").call(t, http.MethodPatch, "/jobmanager/jobs/promote/"+j.ID, `{"owner_id":"agent-hub"}`).
		is(t, http.StatusNoContent)
}

// lenient serves a function with the setting for older agents, to a caller whose token is bound to no agent.
func (w *world) lenient(t *testing.T, name string) client {
	t.Helper()
	entry := functions.Registry["github.com/littoral-project/littoral/functions/cmd/"+name]
	h, err := entry.Handler(function.Platform{
		DB: w.DB, Auth: w.Issuer.Verifier(), Settings: settings.Map(map[string]string{"UNKNOWN_AGENTS": "true"}),
	}.Env(entry.Name))
	require.NoError(t, err)
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	return client{base: server.URL, token: w.anyAgent.token}
}

// TestAJobIsNotNobodys: an issuer may omit the subject, for instance in an access token without the scope openid or
// basic. With such a token, an agent that took a job could neither report on it nor give it back.
func TestAJobIsNotNobodys(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	j := w.submit(t, hubShop).Jobs[0]
	nameless := client{w.URL, w.Issuer.TokenWith(t, inprocess.Claims{"sub": nil, "roles": []string{string(auth.Agent)}})}
	w.unchanged(t, func() {
		a := nameless.call(t, http.MethodPut, "/jobmanager/jobs/"+j.ID, `{"state": 2}`)
		require.Equal(t, []string{"owner_id"}, a.fields(t))
		a = w.hub.call(t, http.MethodPatch, "/jobmanager/jobs/promote/"+j.ID, `{}`)
		require.Equal(t, []string{"owner_id"}, a.fields(t))
	})
	w.claim(t, w.hub, hubAgent, j)
}
