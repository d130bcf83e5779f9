package ocm_test

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/transport"

	"github.com/littoral-project/littoral/shared/job"
	"github.com/littoral-project/littoral/shared/kube"
	"github.com/littoral-project/littoral/shared/orchestrator"
	"github.com/littoral-project/littoral/shared/orchestrator/conformance"
	"github.com/littoral-project/littoral/shared/orchestrator/ocm"
	"github.com/littoral-project/littoral/test/kubeapi"
)

// open returns a hub with two clusters, all doubles.
func open(t *testing.T) (*conformance.Clusters, *kubeapi.Server, map[string]*kubeapi.Agent) {
	t.Helper()
	hub := kubeapi.Start(t, nil, nil)
	client, err := kube.New(hub.URL, &transport.Config{})
	require.NoError(t, err)
	one, two := kubeapi.Start(t, nil, []string{"one-a", "one-b"}), kubeapi.Start(t, nil, []string{"two-a"})
	one.HasLinks()
	two.HasLinks()
	agents := map[string]*kubeapi.Agent{"one": kubeapi.Join(t, hub, one, "one"), "two": kubeapi.Join(t, hub, two, "two")}
	return &conformance.Clusters{
		Orchestrator: ocm.New(client),
		Targets: []job.Target{
			{Orchestrator: "ocm", Cluster: "one", Node: "one-a"},
			{Orchestrator: "ocm", Cluster: "one", Node: "one-b"},
			{Orchestrator: "ocm", Cluster: "two", Node: "two-a"},
		},
		Objects: map[string]dynamic.Interface{"one": one.Client(t), "two": two.Client(t)},
		Parted:  func(_ *testing.T, cluster string, cut bool) { agents[cluster].Cut(cut) },
		Peer: func(valid bool) {
			broken := []string{"world-svc"}
			if valid {
				broken = nil
			}
			for _, a := range agents {
				a.Cluster.Peer(broken...)
				a.Report()
			}
		},
		Turn: func() {
			agents["one"].Work()
			agents["two"].Work()
		},
	}, hub, agents
}

func TestConformance(t *testing.T) {
	t.Parallel()
	can := conformance.Can{Silence: true, Refuse: true, Slow: true, Rollout: true, Done: true, Share: true, Link: true}
	conformance.Run(t, can, func(t *testing.T) conformance.World {
		t.Helper()
		w, _, _ := open(t)
		return w
	})
}

// TestApply_keepsWhoAppliesAnObject: another field manager would conflict with the former one, which is also ours.
func TestApply_keepsWhoAppliesAnObject(t *testing.T) {
	t.Parallel()
	w, hub, _ := open(t)
	j := conformance.Job(w.Targets[0], 1)
	withRole := func(j *job.Job, name, verb string) {
		j.Instruction.Contents = append(j.Instruction.Contents, job.Content{
			Name: name, YAML: "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: " + name + "}\n" +
				"rules: [{apiGroups: [\"\"], resources: [pods], verbs: [" + verb + "]}]\n",
		})
	}
	withRole(j, "old", "get")
	require.NoError(t, w.Orchestrator.Apply(t.Context(), j))
	work := hub.Paths("/manifestworks/")[0]
	const former = `"fieldManager":"work-agent-littoral"` // of cluster-scoped objects, in earlier versions
	own := `"fieldManager":"work-agent-littoral-` + j.ApplicationID.String() + `"`
	hub.Change(work, func(o *kubeapi.Object) {
		text, err := o.MarshalJSON()
		require.NoError(t, err)
		require.NoError(t, o.UnmarshalJSON([]byte(strings.ReplaceAll(string(text), own, former))))
	})
	w.Turn()
	next := conformance.As(j, job.Replace)
	next.Epoch = 2
	conformance.With(next, conformance.Image, 1)
	withRole(next, "old", "list")
	withRole(next, "new", "list")
	state, conditions := w.Do(t, next)
	require.Equal(t, job.Finished, state, "%v", conditions)
	text, err := hub.Get(work).MarshalJSON()
	require.NoError(t, err)
	require.Equal(t, 1, strings.Count(string(text), own), "what is new")
}

// TestTheRoleGrantsWhatIsUsed: and no more, to whoever deploys and to whoever also lists.
func TestTheRoleGrantsWhatIsUsed(t *testing.T) {
	t.Parallel()
	w, hub, _ := open(t)
	j := conformance.Job(w.Targets[0], 1)
	require.NoError(t, w.Orchestrator.Apply(t.Context(), j))
	next := conformance.As(j, job.Replace)
	next.Epoch = 2
	require.NoError(t, w.Orchestrator.Apply(t.Context(), next))
	_, err := w.Orchestrator.Observe(t.Context(), next)
	require.NoError(t, err)
	require.NoError(t, w.Orchestrator.Remove(t.Context(), next))
	for _, function := range []string{"deploymentmanager-deploy-ocm", "clusterlink-link"} {
		require.Equal(t, kubeapi.Granted(t, "../../../infra/base/rbac.yaml", "littoral-"+function), hub.Used(), function)
	}
	_, _, err = w.Orchestrator.Copies(t.Context())
	require.NoError(t, err)
	for _, function := range []string{"deploymentmanager-sync-ocm", "clusterlink-sync"} {
		require.Equal(t, kubeapi.Granted(t, "../../../infra/base/rbac.yaml", "littoral-"+function), hub.Used(), function)
	}
}

// TestObserve_ofJobsThatWouldGo: works of earlier versions let the cluster delete Jobs that have ended, which the agent
// then runs again, even under the same decision.
func TestObserve_ofJobsThatWouldGo(t *testing.T) {
	t.Parallel()
	for name, then := range map[string]func(*job.Job) *job.Job{
		"as it was":  func(j *job.Job) *job.Job { return j },
		"and scaled": func(j *job.Job) *job.Job { return conformance.Ask(j, job.ScaleUp) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, hub, _ := open(t)
			j := conformance.Job(w.Targets[0], 1)
			j.Instruction.Contents = append(j.Instruction.Contents, job.Content{Name: "once", YAML: `apiVersion: batch/v1
kind: Job
metadata: {name: once}
spec: {template: {spec: {restartPolicy: Never, containers: [{name: once, image: "done:1"}]}}}
`})
			require.NoError(t, w.Orchestrator.Apply(t.Context(), j))
			j = then(j)
			require.NoError(t, w.Orchestrator.Apply(t.Context(), j))
			w.Turn()
			before := *w.Running(t, j.Cluster, j)
			at := []string{"spec", "workload", "manifests"}
			bound := func() (n int) {
				list, _, _ := unstructured.NestedSlice(hub.Get(hub.Paths("/manifestworks/")[0]).Object, at...)
				return strings.Count(fmt.Sprint(list), "ttlSecondsAfterFinished")
			}
			hub.Change(hub.Paths("/manifestworks/")[0], func(o *kubeapi.Object) {
				list, _, _ := unstructured.NestedSlice(o.Object, at...)
				once := list[len(list)-1].(map[string]any) // the API's own form
				require.NoError(t, unstructured.SetNestedField(once, int64(60), "spec", "ttlSecondsAfterFinished"))
				require.NoError(t, unstructured.SetNestedSlice(o.Object, list, at...))
			})
			require.Equal(t, 1, bound())
			s, err := w.Orchestrator.Observe(t.Context(), j)
			require.NoError(t, err)
			require.True(t, s.Outdated(j))
			state, conditions := w.Do(t, j)
			require.Equal(t, job.Finished, state, "%v", conditions)
			require.Zero(t, bound())
			require.Equal(t, before, *w.Running(t, j.Cluster, j))
			s, err = w.Orchestrator.Observe(t.Context(), j)
			require.NoError(t, err)
			require.False(t, s.Outdated(j))
		})
	}
}

// TestVerdict_onWhatSomebodyTookFromTheCluster: an agent applies the object again some minutes later; its last status
// stands until then.
func TestVerdict_onWhatSomebodyTookFromTheCluster(t *testing.T) {
	t.Parallel()
	for name, kind := range map[string]schema.GroupVersionResource{
		"web":      {Group: "apps", Version: "v1", Resource: "deployments"},
		"settings": {Version: "v1", Resource: "configmaps"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, _, agents := open(t)
			j := conformance.Job(w.Targets[0], 1)
			state, conditions := w.Do(t, j)
			require.Equal(t, job.Finished, state, "%v", conditions)
			of := w.Objects["one"].Resource(kind).Namespace(j.Namespace)
			require.NoError(t, of.Delete(t.Context(), name, metav1.DeleteOptions{}))
			agents["one"].Cluster.Work()
			agents["one"].Report()
			s, err := w.Orchestrator.Observe(t.Context(), j)
			require.NoError(t, err)
			require.False(t, s.Outdated(j), "the agent puts it back")
			state, conditions = s.Verdict(j)
			require.Equal(t, job.Progressing, state, "%v", conditions)
			j.Conditions = conditions
			require.Equal(t, "False", j.Condition(job.ConditionAvailable).Status)
			require.Contains(t, j.Condition(job.ConditionAvailable).Message, name)
			w.Turn()
			state, conditions = w.Do(t, j)
			require.Equal(t, job.Finished, state, "%v", conditions)
		})
	}
}

// TestVerdict_onAKindThatHasNotBeenReportedOn: an agent applies first and reports later.
func TestVerdict_onAKindThatHasNotBeenReportedOn(t *testing.T) {
	t.Parallel()
	w, hub, agents := open(t)
	agents["one"].Cluster.Define("example.org", "v1", "Sensor", "sensors", true)
	j := conformance.Job(w.Targets[0], 1)
	j.Instruction.Contents = append(j.Instruction.Contents, job.Content{
		Name: "sensor", YAML: "apiVersion: example.org/v1\nkind: Sensor\nmetadata: {name: s}",
	})
	state, conditions := w.Do(t, j)
	require.Equal(t, job.Finished, state, "%v", conditions)
	tell := func(change func(report map[string]any)) (job.State, []job.Condition) {
		hub.Change(hub.Paths("/manifestworks/")[0], func(o *kubeapi.Object) {
			at := []string{"status", "resourceStatus", "manifests"}
			reports, _, _ := unstructured.NestedSlice(o.Object, at...)
			change(reports[len(reports)-1].(map[string]any)) // the API's own form
			require.NoError(t, unstructured.SetNestedSlice(o.Object, reports, at...))
		})
		s, err := w.Orchestrator.Observe(t.Context(), j)
		require.NoError(t, err)
		return s.Verdict(j)
	}
	state, conditions = tell(func(report map[string]any) { delete(report, "statusFeedback") })
	require.Equal(t, job.Progressing, state, "%v", conditions)
	state, conditions = tell(func(report map[string]any) {
		require.NoError(t, unstructured.SetNestedField(report, "sensory", "resourceMeta", "resource"))
	})
	require.Equal(t, job.Finished, state, "the cluster calls the kind otherwise, and so knows no rule for it: %v", conditions)
}

// TestVerdict_onAKindInNoNamespace: the hub learns the scope of a kind that only the cluster defines from nothing but
// the manifest.
func TestVerdict_onAKindInNoNamespace(t *testing.T) {
	t.Parallel()
	w, _, agents := open(t)
	agents["one"].Cluster.Define("example.org", "v1", "Planet", "planets", false)
	const planet, star = "apiVersion: example.org/v1\nkind: Planet\nmetadata: ", "apiVersion: example.org/v1\nkind: Star\nmetadata: "
	with := func(j *job.Job, manifest string) *job.Job {
		conformance.With(j, conformance.Image, 1)
		j.Instruction.Contents = append(j.Instruction.Contents, job.Content{Name: "planet", YAML: manifest})
		return j
	}
	refused := func(j *job.Job) string {
		state, conditions := w.Do(t, j)
		require.Equal(t, job.Degraded, state, "%v", conditions)
		j.Conditions = conditions
		return j.Condition(job.ConditionDegraded).Message
	}
	j := with(conformance.Job(w.Targets[0], 1), planet+"{name: p}")
	require.Contains(t, refused(j), `Planet p: Failed to apply manifest: the server could not find the requested resource`)
	require.Contains(t, refused(j), "annotation littoral.dev/scope: cluster")

	j = with(conformance.As(j, job.Replace), planet+"{name: p, annotations: {littoral.dev/scope: cluster}}")
	state, conditions := w.Do(t, j)
	require.Equal(t, job.Finished, state, "%v", conditions)
	require.NotEmpty(t, agents["one"].Cluster.Paths("/apis/example.org/v1/planets/p"))

	j = with(conformance.As(j, job.Replace), star+"{name: p, annotations: {littoral.dev/scope: cluster}}")
	require.NotContains(t, refused(j), "littoral.dev/scope", "it says so")

	agents["one"].Cluster.Define("example.org", "v1", "Star", "stars", true)
	agents["one"].Cluster.Refuse(func(_, path string) error {
		if strings.HasSuffix(path, "/stars/p") {
			return errors.New("no room")
		}
		return nil
	})
	j = with(conformance.As(j, job.Replace), star+"{name: p}")
	require.NotContains(t, refused(j), "littoral.dev/scope", "it is not about that")
}

// TestVerdict_onAKindThatTheJobDefines: the agent applies the definition, and the cluster needs a moment until it serves
// the kind.
func TestVerdict_onAKindThatTheJobDefines(t *testing.T) {
	t.Parallel()
	w, hub, agents := open(t)
	j := conformance.Job(w.Targets[0], 1)
	j.Instruction.Contents = append(j.Instruction.Contents, job.Content{Name: "fox", YAML: `apiVersion: example.org/v1
kind: Fox
metadata: {name: fox}
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: foxs.example.org}
spec: {group: example.org, scope: Namespaced, names: {kind: Fox, plural: foxs}, versions: [{name: v1}]}
`})
	require.NoError(t, w.Orchestrator.Apply(t.Context(), j))
	w.Turn()
	applied := func() string {
		conditions, _, _ := unstructured.NestedSlice(hub.Get(hub.Paths("/manifestworks/")[0]).Object, "status", "conditions")
		return fmt.Sprint(conditions)
	}
	require.Contains(t, applied(), "status:False")
	s, err := w.Orchestrator.Observe(t.Context(), j)
	require.NoError(t, err)
	state, conditions := s.Verdict(j)
	require.Equal(t, job.Progressing, state, "%v", conditions)
	agents["one"].Cluster.Define("example.org", "v1", "Fox", "foxs", true)
	state, conditions = w.Do(t, j)
	require.Equal(t, job.Finished, state, "%v", conditions)
}

// TestApply_leavesOutUntilTheAgentHasSeenIt: an agent that sees only the second step would keep the Job and fail to change
// it. A Pod may still be there when the agent comes to apply the new one.
func TestApply_leavesOutUntilTheAgentHasSeenIt(t *testing.T) {
	t.Parallel()
	w, hub, agents := open(t)
	with := func(j *job.Job, image string) *job.Job {
		conformance.With(j, conformance.Image, 1)
		j.Instruction.Contents = append(j.Instruction.Contents, job.Content{
			Name: "once", YAML: "apiVersion: v1\nkind: Pod\nmetadata: {name: once}\nspec: {containers: [{name: c, image: \"" + image + "\"}]}",
		})
		return j
	}
	j := with(conformance.Job(w.Targets[0], 1), "once:1")
	state, conditions := w.Do(t, j)
	require.Equal(t, job.Finished, state, "%v", conditions)
	next := with(conformance.As(j, job.Replace), "once:2")
	pods := func() int {
		work := hub.Get(hub.Paths("/manifestworks/")[0])
		configs, _, _ := unstructured.NestedSlice(work.Object, "spec", "manifestConfigs")
		list, _, _ := unstructured.NestedSlice(work.Object, "spec", "workload", "manifests")
		require.Len(t, configs, len(list))
		return strings.Count(fmt.Sprint(list), "kind:Pod ")
	}
	for range 2 {
		require.ErrorIs(t, w.Orchestrator.Apply(t.Context(), next), orchestrator.ErrLeaving)
		require.Zero(t, pods())
		s, err := w.Orchestrator.Observe(t.Context(), next)
		require.NoError(t, err)
		require.True(t, s.Leaving)
		state, conditions = s.Verdict(next)
		require.Equal(t, job.Progressing, state, "%v", conditions)
	}
	w.Turn()
	s, err := w.Orchestrator.Observe(t.Context(), next)
	require.NoError(t, err)
	require.False(t, s.Leaving)
	require.True(t, s.Outdated(next), "it is to be gone on with")

	agents["one"].Cluster.Refuse(func(_, path string) error {
		if strings.HasSuffix(path, "/pods/once") {
			return errors.New("Pod \"once\" is invalid: spec: Forbidden: pod updates may not change fields other than ...")
		}
		return nil
	})
	require.NoError(t, w.Orchestrator.Apply(t.Context(), next))
	require.Equal(t, 1, pods())
	w.Turn()
	s, err = w.Orchestrator.Observe(t.Context(), next)
	require.NoError(t, err)
	state, conditions = s.Verdict(next)
	require.Equal(t, job.Progressing, state, "%v", conditions)
	agents["one"].Cluster.Refuse(nil)
	state, conditions = w.Do(t, next)
	require.Equal(t, job.Finished, state, "%v", conditions)
}

// TestObserve_ofAHubThatIsNone: a server without the API of clusters does not show that nothing runs in them.
func TestObserve_ofAHubThatIsNone(t *testing.T) {
	t.Parallel()
	client, err := kube.New(kubeapi.Start(t, nil, nil).URL, &transport.Config{})
	require.NoError(t, err)
	hub, j := ocm.New(client), conformance.Job(job.Target{Orchestrator: "ocm", Cluster: "one", Node: "one-a"}, 1)
	known, err := hub.Knows(t.Context(), j.Cluster)
	require.NoError(t, err)
	require.True(t, known, "nobody knows, so that the job has to say what is wrong")
	removal := conformance.As(j, job.Delete)
	s, err := hub.Observe(t.Context(), removal)
	require.NoError(t, err)
	state, conditions := s.Verdict(removal)
	require.Equal(t, job.Progressing, state, "%v", conditions)
	require.Contains(t, fmt.Sprint(conditions), "could not find the requested resource")
	require.Error(t, hub.Remove(t.Context(), removal))
}

// TestConformance_real runs the suite against a hub and its agents, if there are any.
func TestConformance_real(t *testing.T) {
	w, _ := conformance.Real(t, "ocm")
	if os.Getenv(conformance.EnvHub) == "" {
		t.Skipf("%s names no hub", conformance.EnvHub)
	}
	hub, err := kube.Open(os.Getenv(conformance.EnvHub), nil)
	require.NoError(t, err)
	w.Orchestrator = ocm.New(hub)
	cut := w.Parted
	w.Parted = func(t *testing.T, cluster string, away bool) {
		t.Helper()
		cut(t, cluster, away)
		require.Eventually(t, func() bool { // until the hub has noticed
			s, err := w.Orchestrator.Observe(t.Context(), conformance.Job(job.Target{Cluster: cluster}, 1))
			return err == nil && (s.Silent != "") == away
		}, 3*time.Minute, time.Second)
	}
	conformance.Run(
		t,
		conformance.Can{Silence: os.Getenv(conformance.EnvCut) != "", Refuse: true, Share: true},
		func(t *testing.T) conformance.World {
			t.Helper()
			return w
		},
	)
}
