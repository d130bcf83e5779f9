package contracts_test

import (
	"encoding/json"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const (
	jobManagerV1    = "icos/job-manager/swagger.json"
	jobManagerNewer = "icos/job-manager-newer-lineage/model.json"
)

// TestEveryPublishedPathIsServed: the paths of both job managers, of the shell's backend which calls them, and of the
// matchmaker.
func TestEveryPublishedPathIsServed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	calls := map[string][]string{
		// Calls of the shell's backend (shared/docs/contracts.md §11): no implementation ever served PUT groups/{id}.
		"the shell": {
			"GET /jobmanager/groups",
			"POST /jobmanager/groups",
			"GET /jobmanager/groups/{group_uuid}",
			"PUT /jobmanager/groups/{group_uuid}",
			"DELETE /jobmanager/groups/{group_uuid}",
			"PUT /jobmanager/groups/undeploy/{group_uuid}",
			"PUT /jobmanager/groups/start/{group_uuid}",
			"GET /aggregator/",
		},
		"the job manager itself": {"POST /matchmake"},
		"the policy manager":     {"POST /jobmanager/policies/incompliance", "POST /jobmanager/policies/incompliance/create"},
		"the agents": {
			"GET /jobmanager/jobs/executable/orchestrator/{orchestrator}", "GET /jobmanager/jobs/executable/{orchestrator}",
			"PUT /jobmanager/jobs/{job_uuid}", "PUT /jobmanager/status/", "GET /jobmanager/status/{job_uuid}",
			"PUT /jobmanager/resources/status/{id}",
		},
		"the probes": {"GET /jobmanager", "GET /jobmanager/healthz", "GET /aggregator/healthz"},
	}
	for _, file := range []string{jobManagerV1, jobManagerNewer} {
		for path, methods := range loadSwagger(t, file).Paths {
			for method := range methods {
				calls[file] = append(calls[file], strings.ToUpper(method)+" "+path)
			}
		}
	}
	for who, list := range calls {
		for _, call := range list {
			method, path, _ := strings.Cut(call, " ")
			a := w.nobody.call(t, method, strings.ReplaceAll(route{pattern: path}.anywhere(), "{owner_id}", "a"), "")
			require.Contains(t, []int{http.StatusOK, http.StatusUnauthorized}, a.status, "%s calls %s: %s", who, call, a.body)
		}
	}
}

// answers adds to a coverage everything that the job manager answers about an application in many states.
func (w *world) answers(t *testing.T, c *coverage, prefix string) {
	t.Helper()
	g, j := w.running(t, freeShop)
	sent := body{
		"currentValue":       "1",
		"threshold":          "2",
		"policyName":         "p",
		"policyId":           "i",
		"measurementBackend": "b",
		"extraLabels":        body{"command": "x"},
		"remediation":        "secure",
		"subject":            body{"type": "app", "appName": "shop", "appInstance": g.ID, "appComponent": "web"},
	}
	a := w.operator.send(t, http.MethodPost, "/jobmanager/policies/incompliance", sent).is(t, http.StatusOK)
	if _, ok := c.Definitions[prefix+"Incompliance"]; ok {
		c.answer(t, prefix+"Incompliance", decode[any](t, a))
	}
	replaced, _ := w.running(t, hubShop)
	w.operator.call(t, http.MethodPut, "/jobmanager/groups/"+replaced.ID, strings.Replace(hubShop, "red", "blue", 1)).
		is(t, http.StatusOK)
	show := func(definition, path string) { c.answer(t, prefix+definition, decode[any](t, w.viewer.get(t, path))) }
	show("JobGroup", "/jobmanager/groups/"+g.ID)
	show("Job", "/jobmanager/jobs/"+j.ID)
	show("Resource", "/jobmanager/status/"+j.ID)
	for definition, path := range map[string]string{"Job": "/jobmanager/jobs", "JobGroup": "/jobmanager/groups"} {
		for _, entry := range decode[[]any](t, w.viewer.get(t, path)) {
			c.answer(t, prefix+definition, entry)
		}
	}
	for _, entry := range decode[[]any](t, w.hub.get(t, "/jobmanager/jobs/executable/ocm/"+hubAgent)) {
		c.answer(t, prefix+"Job", entry)
	}
}

// TestAnswersShowTheModelOfV1: every property in the published description, except those of its database that never had
// a meaning for clients.
func TestAnswersShowTheModelOfV1(t *testing.T) {
	t.Parallel()
	c := newCoverage(loadSwagger(t, jobManagerV1),
		"models.Job.state", "models.Job.type", // numbers there; names are emitted (shared/docs/contracts.md §1.4)
		"models.Job.sub_type",             // newer remediations
		"models.Incompliance.remediation", // "reallocation" there; the newer names are emitted
	)
	newWorld(t).answers(t, c, "models.")
	require.Equal(t, []string{
		// In the reference's database, each nested row had its own key and times.
		"models.Condition.created_at", "models.Condition.id", "models.Condition.updated_at",
		"models.Incompliance.created_at", "models.Incompliance.updated_at",
		"models.PlainManifest.created_at", "models.PlainManifest.id", "models.PlainManifest.updated_at",
		"models.Resource.created_at", "models.Resource.id", "models.Resource.updated_at",
		"models.Subject.created_at", "models.Subject.id", "models.Subject.updated_at",
		"models.Target.created_at", "models.Target.id", "models.Target.updated_at",
	}, c.missing())
}

// TestAnswersShowTheModelOfTheNewerLineage: the model of the D3.2 annex.
func TestAnswersShowTheModelOfTheNewerLineage(t *testing.T) {
	t.Parallel()
	c := newCoverage(loadSwagger(t, jobManagerNewer))
	newWorld(t).answers(t, c, "")
	require.Equal(t, []string{
		"Instruction.policies", // the policy manager gets it by events; agents do not need it
		"RemediationTarget.id",
		"RemediationTarget.remediation_id", // keys of the reference's database
	}, c.missing())
}

// TestAggregatorShowsTheModelOfV1: ?shape=v1, for the infrastructure of the published taxonomy.
func TestAggregatorShowsTheModelOfV1(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	_, err := w.DB.Exec(t.Context(), "update topology set at = at - interval '1 minute'") // so that telemetry is asked
	require.NoError(t, err)
	c := newCoverage(loadSwagger(t, "icos/aggregator/swagger.json"))
	c.answer(t, "models_icos.Infrastructure", decode[any](t, w.viewer.get(t, "/aggregator/?shape=v1")))
	require.Contains(t, c.shown, "models_icos.Node")
	require.Equal(t, []string{
		// These were never filled (shared/docs/contracts.md §4.3); the published taxonomy has empty objects in their place.
		"models_icos.API.authentication",
		"models_icos.API.authorization",
		"models_icos.API.commProtocol",
		"models_icos.API.dataFormat",
		"models_icos.API.protocolVersion",
		"models_icos.AvailableStorage.free",
		"models_icos.Cluster.any",
		"models_icos.DynamicMetrics.gpuEnergyConsumption",
		"models_icos.DynamicMetrics.gpuFrequency",
		"models_icos.DynamicMetrics.gpuTemperature",
		"models_icos.DynamicMetrics.upTime",
		"models_icos.Interface.engressUssage",
		"models_icos.Interface.ingressUssage",
		"models_icos.ServiceLevelAgreement.name",
		"models_icos.StaticMetrics.gpuCores",
		"models_icos.StaticMetrics.gpuMaxFrequency",
		"models_icos.StaticMetrics.gpuRAMMemory",
		"models_icos.StaticMetrics.storage",
	}, c.missing())
}

// TestPublishedIncompliance: "reallocation" of a component that is identified by its resource.
func TestPublishedIncompliance(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	g, j := w.running(t, freeShop)
	sent := read[body](t, "icos/job-manager/incompliance_1.json")
	w.unchanged(t, func() {
		w.operator.send(t, http.MethodPost, "/jobmanager/policies/incompliance", sent).refused(t, http.StatusNotFound)
	})
	subject := sent["subject"].(body)
	subject["resourceId"], subject["appInstance"] = j.Resource.UUID, g.ID
	got := decode[body](
		t,
		w.operator.send(t, http.MethodPost, "/jobmanager/policies/incompliance", sent).is(t, http.StatusOK),
	)
	require.Equal(t, "reallocate", got["remediation"])
	now := w.job(t, j.ID)
	require.Equal(t, standing{create, "", "Created", ""}, now.stands())
	require.NotEqual(t, j.Targets, now.Targets)
}

// TestPublishedViolation: the message of the policy manager has no resource, but an instance and a component.
func TestPublishedViolation(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	g, j := w.running(t, hubShop)
	sent := read[body](t, "icos/dynamic-policy-manager/violation_payload.json")
	const path = "/jobmanager/policies/incompliance/create"
	w.unchanged(t, func() { w.operator.send(t, http.MethodPost, path, sent).refused(t, http.StatusNotFound) })
	subject := sent["subject"].(body)
	subject["appInstance"], subject["appComponent"] = g.ID, "web"
	w.operator.send(t, http.MethodPost, path, sent).is(t, http.StatusOK)
	require.Equal(t, standing{update, "scale-up", "Created", hubAgent}, w.job(t, j.ID).stands())
	w.unchanged(t, func() { w.operator.send(t, http.MethodPost, path, sent).is(t, http.StatusOK) })
}

// TestPublishedOldJobs: a Nuvla agent sends a job back in the form that it got; its names and lists are understood.
func TestPublishedOldJobs(t *testing.T) {
	t.Parallel()
	for _, old := range read[[]body](t, "icos/nuvla-deployment-manager/jm_two_jobs_old_contract.json") {
		t.Run(old["ID"].(string), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.unchanged(t, func() {
				w.hub.send(t, http.MethodPut, "/jobmanager/jobs", old).fields(t) // Created, which no agent may set
				old["state"] = 3
				w.hub.send(t, http.MethodPut, "/jobmanager/jobs", old).refused(t, http.StatusNotFound)
			})
			j := w.submit(t, hubShop).Jobs[0]
			old["ID"], old["state"] = j.ID, 2
			w.hub.send(t, http.MethodPut, "/jobmanager/jobs/"+j.ID, old).is(t, http.StatusOK)
			require.Equal(t, standing{create, "", "Progressing", hubAgent}, w.job(t, j.ID).stands())
			old["state"] = 3
			w.hub.send(t, http.MethodPut, "/jobmanager/jobs", old).is(t, http.StatusOK)
			require.Equal(t, standing{create, "", "Finished", hubAgent}, w.job(t, j.ID).stands())
		})
	}
}

// TestMatchmakeHasThePublishedShape: the submitted components, each with its targets (shared/docs/contracts.md §2.2).
func TestMatchmakeHasThePublishedShape(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	published := read[struct{ Components []body }](t, "icos/match-making/response_two_components.json")
	question := body{"name": "video", "components": []body{}}
	for _, c := range published.Components {
		asked := body{}
		for k, v := range c {
			if k != "targets" {
				asked[k] = v
			}
		}
		question["components"] = append(question["components"].([]body), asked)
	}
	text, err := json.Marshal(question)
	require.NoError(t, err)
	for _, path := range []string{"/matchmake", "/matchmaker/matchmake"} {
		w.unchanged(t, func() {
			got := decode[struct{ Components []body }](
				t,
				w.viewer.call(t, http.MethodPost, path, string(text)).is(t, http.StatusOK),
			)
			require.Len(t, got.Components, len(published.Components))
			for i, want := range published.Components {
				have := got.Components[i]
				require.NotEmpty(t, have["targets"].(body)["node_name"])
				for key := range want["targets"].(body) {
					require.Contains(t, have["targets"], key)
				}
				have["targets"] = want["targets"] // on another infrastructure, the place is another one
				require.Equal(t, want, have)
			}
		})
	}
	nowhere := w.viewer.call(t, http.MethodPost, "/matchmake", strings.Replace(freeShop, "500m", "500", 1)).
		is(t, http.StatusOK)
	require.Equal(
		t,
		[]any{},
		decode[struct{ Components []body }](t, nowhere).Components[0]["targets"],
		"no candidate is an empty list",
	)

	numbers := strings.Replace(freeShop, "color: red", "9000: ns/service, limit: .inf", 1)
	odd := decode[struct{ Components []body }](t, w.viewer.call(t, http.MethodPost, "/matchmake", numbers).is(t, http.StatusOK))
	manifest := odd.Components[0]["manifests"].([]any)[0].(body)["manifest"].(body)
	require.Equal(t, body{"9000": "ns/service", "limit": ".inf"}, manifest["data"], "what JSON has no form for is text")

	again := w.viewer.send(t, http.MethodPost, "/matchmake", body{
		"descriptor":    freeShop,
		"current_setup": []body{{"component": "web", "cluster_name": "hub", "node_name": "hub-1", "orchestrator": "ocm"}},
		"violations": []body{
			{"component": "web", "cluster_name": "hub", "node_name": "hub-1", "policy": "p", "remediation": "redeploy"},
		},
	}).is(t, http.StatusOK)
	place := decode[struct{ Components []struct{ Targets target } }](t, again).Components[0].Targets
	require.Equal(t, target{"hub", "hub-2", "ocm"}, place, "the violated node is left")
}

// TestPublishedDescriptors: the answers to submitting each descriptor and to asking the matchmaker about it.
func TestPublishedDescriptors(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for file, row := range map[string]struct {
		submitted int      // status of POST groups
		asked     int      // of POST matchmake
		jobs      []string // components of the jobs
	}{
		"dynamic-policy-manager/app_descriptor_1.yaml":        {201, 200, []string{"ffmpeg", "mjpeg"}},
		"dynamic-policy-manager/app_descriptor_2.yaml":        {201, 200, []string{"ffmpeg", "mjpeg"}},
		"dynamic-policy-manager/app_descriptor_all.yaml":      {201, 200, []string{"ffmpeg", "mjpeg"}},
		"dynamic-policy-manager/app_descriptor_compss_1.yaml": {201, 200, []string{"compss-app"}},
		"dynamic-policy-manager/app_descriptor_compss_2.yaml": {422, 200, nil}, // it lacks its object
		"job-manager/descriptor_with_fixed_targets.yaml":      {422, 200, nil}, // a header without objects
		// "-name:" without its blank, among the objects
		"match-making/application.yaml": {
			422, 200, nil,
		},
		"shell/app_descriptor_example.yaml":            {400, 400, nil}, // a draft that is not valid YAML
		"topology-exporter/descriptor_registered.yaml": {422, 200, nil}, // names only
	} {
		t.Run(file, func(t *testing.T) {
			text, err := os.ReadFile("descriptors/" + file)
			require.NoError(t, err)
			w.unchanged(t, func() {
				a := w.viewer.call(t, http.MethodPost, "/matchmake", string(text)).is(t, row.asked)
				if row.asked != http.StatusOK {
					a.refused(t, row.asked)
				}
			})
			if row.submitted != http.StatusCreated {
				w.unchanged(t, func() {
					a := w.operator.call(t, http.MethodPost, "/jobmanager/groups", string(text))
					require.NotEmpty(t, a.refused(t, row.submitted).Errors)
				})
				return
			}
			g := w.submit(t, string(text))
			var components []string
			for _, j := range decode[body](t, w.viewer.get(t, "/jobmanager/groups/"+g.ID))["jobs"].([]any) {
				components = append(components, j.(body)["instruction"].(body)["componentName"].(string))
			}
			require.Equal(t, row.jobs, components)
		})
	}
}

// read decodes a JSON file.
func read[T any](t testing.TB, path string) T {
	t.Helper()
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	var v T
	require.NoError(t, json.Unmarshal(text, &v))
	return v
}
