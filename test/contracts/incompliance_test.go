package contracts_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
)

// TestRemediations: each remediation under each of its names, by both paths (shared/docs/contracts.md §1.4, §1.5).
func TestRemediations(t *testing.T) {
	t.Parallel()
	const older, newer = "/jobmanager/policies/incompliance", "/jobmanager/policies/incompliance/create"
	moves := standing{create, "", "Created", ""}
	asks := func(what string) standing { return standing{update, what, "Created", hubAgent} }
	for name, row := range map[string]struct {
		emitted string
		want    standing
	}{
		"redeploy":     {"reallocate", moves},
		"migrate":      {"reallocate", moves},
		"reallocation": {"reallocate", moves},
		"reallocate":   {"reallocate", moves},
		"Reallocate":   {"reallocate", moves},
		"scale-up":     {"scale-up", asks("scale-up")},
		"scale-down":   {"scale-down", asks("scale-down")},
		"scale-out":    {"scale-out", asks("scale-out")},
		"scale-in":     {"scale-in", asks("scale-in")},
		"patch":        {"patch", asks("patch")},
		"secure":       {"secure", asks("secure")},
		"replace":      {"replace", standing{update, "replace", "Created", hubAgent}},
		"none":         {"none", standing{create, "", "Finished", hubAgent}},
	} {
		for _, path := range []string{older, newer} {
			t.Run(name+" by "+path, func(t *testing.T) {
				t.Parallel()
				w := newWorld(t)
				g, j := w.running(t, strings.NewReplacer("    requirements:", "    scaling: {maxReplicas: 3}\n    requirements:",
					"data: {color: red}", "spec: {replicas: 2}").Replace(freeShop))
				sent := body{
					"id": uuid.NewString(), "currentValue": "235.365", "threshold": "warning", "policyName": "slow", "policyId": "p1",
					"measurementBackend": "prom-1", "extraLabels": body{"k8s_pod_name": "web-1"}, "remediation": name,
					"subject": body{"type": "app", "appName": "shop", "appInstance": g.ID, "appComponent": "web"},
				}
				got := decode[body](t, w.operator.send(t, http.MethodPost, path, sent).is(t, http.StatusOK))
				require.Equal(t, row.emitted, got["remediation"])
				require.Equal(t, "slow", got["policyName"])
				now := w.job(t, j.ID)
				require.Equal(t, row.want, now.stands())
				if row.want == moves {
					require.NotEqual(t, j.Targets, now.Targets)
				}
				if row.want.Type == update {
					require.Equal(t, row.emitted, now.Resource.Remediations[0].Type)
					require.Equal(t, "Pending", now.Resource.Remediations[0].Status)
				}
				w.unchanged(t, func() { w.operator.send(t, http.MethodPost, path, sent).is(t, http.StatusOK) })
				if row.want.Type == update {
					w.finish(t, w.hub, hubAgent, now)
					require.Equal(t, "Remediated", w.job(t, j.ID).Resource.Remediations[0].Status)
				}
				w.legal(t)
			})
		}
	}
}

// TestSubjects: the subjects of a violation, in the order in which they are resolved.
func TestSubjects(t *testing.T) {
	t.Parallel()
	none := uuid.NewString()
	for name, subject := range map[string]func(g group, j job) body{
		"the uid of the resource":                 func(_ group, j job) body { return body{"resourceId": j.Resource.UUID} },
		"the id of the job as resource":           func(_ group, j job) body { return body{"resourceId": j.ID} },
		"the manifest, as the newer lineage says": func(_ group, j job) body { return body{"manifest": j.Resource.UUID} },
		"instance and component":                  func(g group, _ job) body { return body{"appInstance": g.ID, "appComponent": "web"} },
		"the instance alone":                      func(g group, _ job) body { return body{"appInstance": g.ID} },
		"a resource before another instance":      func(_ group, j job) body { return body{"resourceId": j.Resource.UUID, "appInstance": none} },
		"an unknown resource, then the manifest":  func(_ group, j job) body { return body{"resourceId": none, "manifest": j.Resource.UUID} },
		"an unknown resource, then the components": func(g group, _ job) body {
			return body{"resourceId": none, "manifest": "x", "appInstance": g.ID, "appComponent": "web"}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			g, j := w.running(t, hubShop)
			_, other := w.running(t, hubShop)
			w.operator.send(t, http.MethodPost, "/jobmanager/policies/incompliance", body{
				"policyName": "p", "remediation": "patch", "subject": subject(g, j),
			}).is(t, http.StatusOK)
			require.Equal(t, standing{update, "patch", "Created", hubAgent}, w.job(t, j.ID).stands())
			require.Equal(
				t,
				other.stands(),
				w.job(t, other.ID).stands(),
				"another instance of the same application is left alone",
			)
		})
	}
}

// TestSubjects_ofSeveralApplications: an agent of two applications gave both copies the same uid.
func TestSubjects_ofSeveralApplications(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	_, j, uid := w.runningAs(t, hubShop)
	other := w.submit(t, hubShop)
	b := report(hubAgent, w.claim(t, w.hub, hubAgent, other.Jobs[0]), "Finished", "Available")
	b["resource"].(body)["resource_uuid"] = uid
	w.hub.send(t, http.MethodPut, "/jobmanager/jobs", b).is(t, http.StatusOK)
	violate := func(subject body) *answer {
		return w.operator.send(t, http.MethodPost, "/jobmanager/policies/incompliance", body{
			"policyName": "p", "remediation": "patch", "subject": subject,
		})
	}
	w.unchanged(t, func() { violate(body{"resourceId": uid}).refused(t, http.StatusConflict) })
	w.unchanged(t, func() {
		violate(body{"resourceId": uid, "appInstance": uuid.NewString()}).refused(t, http.StatusConflict)
	})
	violate(body{"resourceId": uid, "appInstance": other.ID}).is(t, http.StatusOK)
	require.Equal(t, standing{update, "patch", "Created", hubAgent}, w.job(t, other.Jobs[0].ID).stands())
	require.Equal(t, "Finished", w.job(t, j.ID).State)
}

// TestSubjects_withoutWhatWasTakenOut: a component that no agent had taken before an update removed it is not part of
// the application.
func TestSubjects_withoutWhatWasTakenOut(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	const part = `  - name: %[1]s
    type: kubernetes
    targets: {cluster_name: hub, node_name: hub-1, orchestrator: ocm}
    manifests: [{name: %[1]s, manifest: {apiVersion: v1, kind: ConfigMap, metadata: {name: %[1]s}}}]
`
	web := "name: shop\ncomponents:\n" + fmt.Sprintf(part, "web")
	g := w.submit(t, web+fmt.Sprintf(part, "db"))
	violate := func(component string) *answer {
		return w.operator.send(t, http.MethodPost, "/jobmanager/policies/incompliance", body{
			"policyName": "p", "remediation": "scale-out", "subject": body{"appInstance": g.ID, "appComponent": component},
		})
	}
	w.operator.call(t, http.MethodPut, "/jobmanager/groups/"+g.ID, web).is(t, http.StatusOK)
	ids := map[string]string{}
	for _, j := range g.Jobs {
		ids[j.Resource.Name] = j.ID
	}
	w.finish(t, w.hub, hubAgent, w.job(t, ids["web"]))
	w.unchanged(t, func() { violate("db").refused(t, http.StatusNotFound) })
	violate("").is(t, http.StatusOK)
	require.Equal(t, standing{update, "scale-out", "Created", hubAgent}, w.job(t, ids["web"]).stands())
	w.legal(t)
}

// TestSecure: the labels name the container (shared/docs/contracts.md §1.5).
func TestSecure(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	_, j := w.running(t, hubShop)
	w.operator.send(t, http.MethodPost, "/jobmanager/policies/incompliance", body{
		"policyName": "p", "remediation": "secure", "subject": body{"resourceId": j.Resource.UUID}, "extraLabels": body{
			"k8s_container_name": "c", "k8s_pod_uid": "u", "k8s_pod_name": "p", "k8s_node_name": "n", "k8s_namespace_name": "s",
			"command": "isolate",
		},
	}).is(t, http.StatusOK)
	raw := decode[body](t, w.viewer.get(t, "/jobmanager/jobs/"+j.ID))
	remedy := raw["resource"].(body)["remediations"].([]any)[0].(body)
	require.Equal(t, j.Resource.UUID, remedy["resource_id"])
	require.Equal(
		t,
		body{"container": "c", "pod": "p", "pod_uid": "u", "node": "n", "namespace": "s", "command": "isolate"},
		remedy["remediationTarget"],
	)
}
