package telemetry_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"

	"github.com/stretchr/testify/require"

	"github.com/littoral-project/littoral/shared/policy/registry"
)

// run takes an application through the violation of its policy.
type run struct {
	*world

	kind   *kind
	ground ground
	app    string // its id
	policy string // its id

	// The state before the violation.
	places map[string]string // node by component
	size   float64           // memory that its containers use, bytes
}

const polman = "/polman/registry/api/v1"

// seenPolicy is the fields of a policy that are read.
type seenPolicy struct {
	ID      string
	Name    string
	Subject map[string]string
	Spec    struct {
		Type         string
		TemplateName string
	}
	Action struct{ ExtraParams map[string]string }
	Status struct {
		Phase               string
		RenderedSpec        struct{ Expr, ViolatedIf string }
		MeasurementBackends map[string]struct {
			File string `json:"rule_file"`
		}
		Events []struct {
			Type    registry.EventType
			Details map[string]any
		}
	}
}

// events returns how many events of the type the policy has had, and the details of the last one.
func (p *seenPolicy) events(kind registry.EventType) (n int, last map[string]any) {
	for _, e := range p.Status.Events {
		if e.Type == kind {
			n, last = n+1, e.Details
		}
	}
	return n, last
}

func (r *run) all() {
	r.submit()
	r.watch()
	node := r.places["web"]
	r.set(node, r.kind.violate)
	r.eventually("it is violated", func() bool {
		n, _ := r.read().events(registry.EventViolated)
		return n > 0
	})
	r.kind.ends(r)
	r.violated()
	r.set(node, r.kind.heal)
	r.well(1)
	if r.kind.again != nil {
		r.set(node, r.kind.again)
		r.eventually("it is violated again", func() bool { return r.read().Status.Phase == "violated" })
		n, _ := r.read().events(registry.EventViolated)
		require.Equal(r.t, 1, n, "and nobody acts upon it")
		r.set(node, r.kind.heal)
		r.well(1)
		r.kind.ends(r)
	}
	r.remove()
}

// submit submits the application and waits until it runs.
func (r *run) submit() {
	var app struct{ ID, Detail string }
	status := r.ask("operator", http.MethodPost, "/jobmanager/groups", r.descriptor(), &app)
	require.Equal(r.t, http.StatusCreated, status, "%s\n%s", app.Detail, r.descriptor())
	r.app = app.ID
	r.available()
	r.eventually("telemetry of it has come", func() bool {
		_, found := r.query(`sum(tlum_workload_info{icos_app_instance="` + r.app + `"})`)
		return found
	})
	r.places = r.nodes()
	require.Contains(r.t, []string{r.ground[0].node, r.ground[1].node}, r.places["web"])
}

// watch waits until the policy is watched; if the kind has a policy for the API, it is created first.
func (r *run) watch() {
	if len(r.kind.before) > 0 {
		r.set(r.places["web"], r.kind.before)
		r.eventually("there is something to watch", func() bool {
			_, found := r.query(`sum(compss_pendTasks_ratio{icos_app_instance="` + r.app + `"})`)
			return found
		})
	}
	if r.kind.byAPI != nil {
		body, err := json.Marshal(r.kind.byAPI(r))
		require.NoError(r.t, err)
		r.quiet(string(body))
		var p seenPolicy
		require.Equal(r.t, http.StatusOK, r.ask("operator", http.MethodPost, polman+"/policies/", string(body), &p))
		r.policy = p.ID
	} else {
		r.eventually("its policy is there", func() bool {
			var list []seenPolicy
			require.Equal(r.t, http.StatusOK, r.ask("viewer", http.MethodGet, polman+"/policies/?app="+r.app, "", &list))
			require.LessOrEqual(r.t, len(list), 1, "one for each kind")
			if len(list) == 1 {
				r.policy = list[0].ID
			}
			return len(list) == 1
		})
	}
	file := ""
	r.eventually("it is watched", func() bool {
		p := r.read()
		file = p.Status.MeasurementBackends[registry.DefaultBackend].File
		return p.Status.Phase == "enforced" && file != ""
	})
	r.promtool(file)
	if r.kind.violate["telemetry"] != "" { // the template looks back in steps of ten seconds
		r.eventually("it would be missed", func() bool {
			_, found := r.query(`sum(last_over_time(tlum_workload_info{icos_app_instance="` + r.app + `"}[1m:10s]))`)
			return found
		})
	}
	require.Equal(r.t, r.kind.template, r.read().Spec.TemplateName)
	r.size, _ = r.query(r.memory())
}

// quiet waits until a policy that is about to be created is not violated: an expression over minutes takes a host that
// has just appeared for a busy one.
func (r *run) quiet(policy string) {
	r.eventually("it would be kept", func() bool {
		var shown struct{ Series, Violating *int }
		require.Equal(r.t, http.StatusOK, r.ask("operator", http.MethodPost, polman+"/render", policy, &shown))
		return shown.Violating != nil && *shown.Series > 0 && *shown.Violating == 0
	})
}

// violated compares what is reported about the violation with what happened. The effect must have happened exactly once
// for each violated component.
func (r *run) violated() {
	p := r.read()
	n, details := p.events(registry.EventViolated)
	once := 1
	if r.places["twin"] == r.places["web"] {
		once = 2
	}
	require.Equal(r.t, once, n)
	require.NotEmpty(r.t, details["currentValue"])
	if r.kind.threshold == "" {
		require.Nil(r.t, details["threshold"], "it has no named thresholds")
	} else {
		require.Equal(r.t, r.kind.threshold, details["threshold"])
	}
	switch told := r.happened("policy.remediated"); {
	case r.kind.calls:
		require.Zero(r.t, told, "the job manager has no part in it")
	case r.kind.violate["telemetry"] == "none": // the node itself counts as lost after the same time
		require.LessOrEqual(r.t, told, once)
		require.Equal(r.t, once, r.happened("job.displaced"), "whoever comes first moves it, and nobody after that")
	default:
		require.Equal(r.t, once, told, "one remediation for each violation")
	}
	remediation := p.Action.ExtraParams[registry.RemediationParam]
	comparison, _ := registry.Comparison(p.Status.RenderedSpec.ViolatedIf)
	r.saw(p.Spec.TemplateName, remediation, comparison)
}

// well waits until the policy is no longer violated and the application runs.
func (r *run) well(resolved int) {
	r.eventually("it is kept again", func() bool {
		p := r.read()
		n, _ := p.events(registry.EventResolved)
		return p.Status.Phase == "enforced" && n >= resolved
	})
	r.available()
}

// remove deletes the application; its rule must go as well.
func (r *run) remove() {
	file := r.ruleFile(r.read().Status.MeasurementBackends[registry.DefaultBackend].File)
	require.FileExists(r.t, file)
	if r.kind.byAPI != nil {
		require.Equal(r.t, http.StatusNoContent,
			r.ask("operator", http.MethodDelete, polman+"/policies/"+r.policy, "", nil))
	}
	require.Equal(r.t, http.StatusAccepted,
		r.ask("operator", http.MethodDelete, "/jobmanager/groups/"+r.app+"?stop=true", "", nil))
	r.eventually("it is gone", func() bool {
		return r.ask("viewer", http.MethodGet, "/jobmanager/groups/"+r.app, "", nil) == http.StatusNotFound
	})
	r.eventually("nobody watches it", func() bool {
		_, err := os.Stat(file)
		return os.IsNotExist(err)
	})
}

// read returns the present state of the policy.
func (r *run) read() *seenPolicy {
	var p seenPolicy
	require.Equal(r.t, http.StatusOK, r.ask("viewer", http.MethodGet, polman+"/policies/"+r.policy, "", &p))
	return &p
}

// happened counts the history entries of the application with that event.
func (r *run) happened(event string) int {
	var entries []struct{ Event string }
	path := "/jobmanager/history?limit=500&after=0&app=" + r.app
	require.Equal(r.t, http.StatusOK, r.ask("viewer", http.MethodGet, path, "", &entries))
	n := 0
	for _, e := range entries {
		if e.Event == event {
			n++
		}
	}
	return n
}

func (r *run) available() {
	r.eventually("it is available", func() bool {
		var g struct{ Status string }
		return r.ask("viewer", http.MethodGet, "/jobmanager/groups/"+r.app, "", &g) == http.StatusOK &&
			g.Status == "Available"
	})
}

// seenJob is the fields of a job that are read.
type seenJob struct {
	Type        string
	State       string
	Instruction struct{ ComponentName string }
	Targets     struct {
		NodeName string `json:"node_name"`
	}
	Resource struct {
		Conditions   []struct{ Type, Reason string }
		Remediations []struct {
			RemediationType, RemediationStatus string
			RemediationTarget                  struct{ Container, Pod, Node, Namespace, Command string }
		}
	}
}

// jobs returns the jobs of the components, without clean-up jobs.
func (r *run) jobs() map[string]seenJob {
	var list []seenJob
	require.Equal(r.t, http.StatusOK, r.ask("viewer", http.MethodGet, "/jobmanager/jobs?app="+r.app, "", &list))
	list = slices.DeleteFunc(list, func(j seenJob) bool { return j.Type == "DeleteDeployment" })
	jobs := map[string]seenJob{}
	for _, j := range list {
		jobs[j.Instruction.ComponentName] = j
	}
	return jobs
}

// nodes returns the node of each component, "" if it has none.
func (r *run) nodes() map[string]string {
	nodes := map[string]string{}
	for component, j := range r.jobs() {
		nodes[component] = j.Targets.NodeName
	}
	return nodes
}

// pods counts the pods of the application that the fleet runs.
func (r *run) pods() int {
	var fleet struct {
		Clusters []struct {
			Nodes []struct {
				Copies []struct {
					Application string
					Pods        int
				}
			}
		}
	}
	require.Equal(r.t, http.StatusOK, r.ask("viewer", http.MethodGet, "/fleet", "", &fleet))
	n := 0
	for _, c := range fleet.Clusters {
		for _, node := range c.Nodes {
			for _, copied := range node.Copies {
				if copied.Application == r.name() {
					n += copied.Pods
				}
			}
		}
	}
	return n
}

// memory is the memory that the containers of the application on Kubernetes use.
func (r *run) memory() string {
	return `sum(container_memory_working_set_bytes * on (k8s_pod_uid) group_left () label_replace(
		tlum_workload_info{icos_app_instance="` + r.app + `"}, "k8s_pod_uid", "$1", "id", "(.+)"))`
}

// name is the application's name: the kind's, in the allowed characters.
func (r *run) name() string {
	letters := strings.Map(func(c rune) rune {
		if c >= 'a' && c <= 'z' {
			return c
		}
		return '-'
	}, strings.ToLower(strings.TrimPrefix(r.kind.name, "a ")))
	return strings.Trim(letters[:min(40, len(letters))], "-")
}

// descriptor writes the application.
func (r *run) descriptor() string {
	var b strings.Builder
	fmt.Fprintf(&b, "name: %s\ncomponents:\n%s", r.name(), r.component("web"))
	if r.kind.policy != "" {
		fmt.Fprintf(&b, "    policies:\n      - %s\n", r.kind.policy)
	}
	if r.kind.twin {
		b.WriteString(r.component("twin"))
	}
	if r.kind.overall != "" {
		fmt.Fprintf(&b, "policies:\n  - %s\n", r.kind.overall)
	}
	return b.String()
}

func (r *run) component(name string) string {
	requests := r.kind.requests
	if requests == "" {
		requests = "{cpu: 100m, memory: 64Mi}"
	}
	engine, manifest := "kubernetes", fmt.Sprintf(`{apiVersion: apps/v1, kind: Deployment, metadata: {name: %[1]s}, spec: {
          replicas: %[2]d, selector: {matchLabels: {app: %[1]s}}, template: {metadata: {labels: {app: %[1]s}}, spec: {
          containers: [{name: %[1]s, image: "example/%[1]s:1.0", resources: {requests: %[3]s}}]}}}}`,
		name, max(1, r.kind.replicas), requests)
	if r.kind.docker {
		engine, manifest = "docker", fmt.Sprintf(`{services: {%[1]s: {image: "example/%[1]s:1.0"}}}`, name)
	}
	needs := strings.TrimSuffix(requests, "}")
	if r.kind.requires != "" {
		needs += ", " + r.kind.requires
	}
	var targets []string
	for _, p := range r.ground {
		targets = append(targets, fmt.Sprintf("{cluster_name: %s, node_name: %s}", p.cluster, p.node))
	}
	if r.kind.confined {
		targets = targets[:1]
	}
	return fmt.Sprintf(`  - name: %s
    type: %s
    requirements: %s}
    targets: [%s]
    manifests:
      - name: %s
        manifest: %s
`, name, engine, needs, strings.Join(targets, ", "), name, manifest)
}
