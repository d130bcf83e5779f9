package conformance

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/littoral-project/littoral/shared/job"
	"github.com/littoral-project/littoral/shared/orchestrator"
	"github.com/littoral-project/littoral/shared/orchestrator/manifest"
	"github.com/littoral-project/littoral/shared/problem"
)

// Clusters is a World of an orchestrator of this tree over clusters whose APIs the suite can read.
type Clusters struct {
	Orchestrator orchestrator.Orchestrator
	Targets      []job.Target
	Objects      map[string]dynamic.Interface // by cluster
	Parted       func(t *testing.T, cluster string, cut bool)

	// Peer lets the peers of ClusterLink look at what is in the clusters, and find it valid or not; nil where there are none.
	Peer func(valid bool)
	// Turn lets doubles do what real controllers do by themselves; nil where those are real.
	Turn func()
	// Wait is how long a job may take to come to something.
	Wait time.Duration
}

// pause is between two looks at a real cluster, whose controllers work by themselves.
const pause = 300 * time.Millisecond

// Places are the targets.
func (w *Clusters) Places() []job.Target { return w.Targets }

// Cut parts a cluster.
func (w *Clusters) Cut(t *testing.T, cluster string, cut bool) { w.Parted(t, cluster, cut) }

// Do carries the job out as package carry does, and looks at it until it has come to something or its time is up.
func (w *Clusters) Do(t *testing.T, j *job.Job) (job.State, []job.Condition) {
	t.Helper()
	if w.Turn == nil && j.Type != job.Delete {
		t.Cleanup(func() { w.tidy(t, j) })
	}
	until := time.Now().Add(w.Wait)
	for turns := 0; ; turns++ {
		s, err := w.step(t.Context(), j)
		if err == nil {
			state, conditions := s.Verdict(j)
			if state != job.Progressing || s.Silent != "" || s.Epoch > j.Epoch || turns > 0 && time.Now().After(until) {
				return state, conditions
			}
		} else {
			require.Equal(t, problem.Unavailable, problem.KindOf(err), "%v", err)
			require.True(t, turns < 3 || time.Now().Before(until), "%v", err)
		}
		if w.Turn != nil {
			w.Turn()
			continue
		}
		time.Sleep(pause)
	}
}

// tidy removes what a test that failed left in a real cluster.
func (w *Clusters) tidy(t *testing.T, j *job.Job) {
	t.Helper()
	if !t.Failed() {
		return
	}
	for until := time.Now().Add(w.Wait); time.Now().Before(until); time.Sleep(pause) {
		last := removal(j)
		s, err := w.step(context.WithoutCancel(t.Context()), last)
		if err != nil {
			continue
		}
		if state, _ := s.Verdict(last); state == job.Finished {
			return
		}
	}
	t.Logf("job %s is still in %s", j.ID, j.Cluster)
}

func (w *Clusters) step(ctx context.Context, j *job.Job) (*orchestrator.Status, error) {
	do := w.Orchestrator.Apply
	if j.Type == job.Delete {
		do = w.Orchestrator.Remove
	}
	err := do(ctx, j)
	var refusal *orchestrator.Refusal
	switch {
	case errors.As(err, &refusal):
		return &orchestrator.Status{Refused: refusal, Exists: true}, nil
	case errors.Is(err, orchestrator.ErrSilent):
		return &orchestrator.Status{Silent: j.Cluster + ": " + err.Error()}, nil
	case err != nil && !errors.Is(err, orchestrator.ErrFenced):
		return nil, err
	}
	if w.Turn != nil {
		w.Turn()
	}
	s, err := w.Orchestrator.Observe(ctx, j)
	return &s, err
}

var (
	deployments = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}
	jobs        = schema.GroupVersionResource{Group: "batch", Version: "v1", Resource: "jobs"}
	pods        = schema.GroupVersionResource{Version: "v1", Resource: "pods"}
	replicaSets = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "replicasets"}
	controllers = schema.GroupVersionResource{Version: "v1", Resource: "replicationcontrollers"}
	configs     = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
	namespaces  = schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}
	volumes     = schema.GroupVersionResource{Version: "v1", Resource: "persistentvolumeclaims"}
	secrets     = schema.GroupVersionResource{Version: "v1", Resource: "secrets"}
	bindings    = schema.GroupVersionResource{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "rolebindings"}
	roles       = schema.GroupVersionResource{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "clusterroles"}
)

// object reads an object; nil when there is none.
func (w *Clusters) object(
	t *testing.T, cluster string, kind schema.GroupVersionResource, namespace, name string,
) *unstructured.Unstructured {
	t.Helper()
	o, err := w.Objects[cluster].Resource(kind).Namespace(namespace).Get(t.Context(), name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	require.NoError(t, err)
	return o
}

// scale sets the number of the job's replicas as an autoscaler does.
func (w *Clusters) scale(t *testing.T, j *job.Job, n int64) {
	t.Helper()
	at := w.Objects[j.Cluster].Resource(deployments).Namespace(j.Namespace)
	require.Eventually(t, func() bool { // a real cluster may change it meanwhile
		o := w.object(t, j.Cluster, deployments, j.Namespace, "web")
		require.NotNil(t, o)
		require.NoError(t, unstructured.SetNestedField(o.Object, n, "spec", "replicas"))
		_, err := at.Update(t.Context(), o, metav1.UpdateOptions{FieldManager: "kube-controller-manager"})
		return err == nil
	}, patience, 10*time.Millisecond)
	if w.Turn != nil {
		w.Turn()
	}
}

// status says how the job's copy is doing, without bringing about anything.
func (w *Clusters) status(t *testing.T, j *job.Job) job.State {
	t.Helper()
	s, err := w.Orchestrator.Observe(t.Context(), j)
	require.NoError(t, err)
	require.False(t, s.Outdated(j), "%+v", s)
	state, _ := s.Verdict(j)
	return state
}

// Running reads the job's Deployment.
func (w *Clusters) Running(t *testing.T, cluster string, j *job.Job) *Running {
	t.Helper()
	list, err := w.Objects[cluster].Resource(deployments).Namespace(j.Namespace).List(t.Context(), metav1.ListOptions{
		LabelSelector: orchestrator.LabelJob + "=" + orchestrator.Subject(j).String(),
	})
	require.NoError(t, err)
	if len(list.Items) == 0 {
		return nil
	}
	return Of(&list.Items[0])
}

// cpuMilli returns the CPU request of the first container of the object's pods.
func cpuMilli(o *unstructured.Unstructured) int64 {
	path, _ := manifest.PodTemplate(o)
	containers, _, _ := unstructured.NestedSlice(o.Object, append(path, "spec", "containers")...)
	cpu, _, _ := unstructured.NestedFieldNoCopy(
		containers[0].(map[string]any), // the API's own form
		"resources", "requests", "cpu",
	)
	request, _ := resource.ParseQuantity(fmt.Sprint(cpu)) // 0 if there is none
	return request.MilliValue()
}

// Of reads the relevant fields of an object with pods.
func Of(o *unstructured.Unstructured) *Running {
	r := &Running{Epoch: manifest.EpochOf(o), CPUMilli: cpuMilli(o)}
	r.Replicas, _, _ = unstructured.NestedInt64(o.Object, "spec", "replicas")
	path, _ := manifest.PodTemplate(o)
	terms, _, _ := unstructured.NestedSlice(o.Object, append(path, "spec", "affinity", "nodeAffinity",
		"requiredDuringSchedulingIgnoredDuringExecution", "nodeSelectorTerms")...)
	for _, term := range terms {
		fields, _, _ := unstructured.NestedSlice(
			term.(map[string]any),
			"matchFields",
		) // the API's own form
		for _, f := range fields {
			values, _, _ := unstructured.NestedStringSlice(f.(map[string]any), "values")
			r.Node = values[0]
		}
	}
	return r
}
