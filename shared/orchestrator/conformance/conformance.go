// Package conformance is the test suite that every orchestrator must pass: OCM, plain Kubernetes, Nuvla and the
// fleet's agents. It runs in one process against doubles, and against real clusters where there are any.
//
//	conformance.Run(t, func(t *testing.T) conformance.World { ... })
package conformance

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/littoral-project/littoral/shared/appmodel"
	"github.com/littoral-project/littoral/shared/descriptor"
	"github.com/littoral-project/littoral/shared/job"
	"github.com/littoral-project/littoral/shared/orchestrator"
)

// Running is a copy as the cluster shows it.
type Running struct {
	Epoch    int64
	Node     string // its pods are bound to it
	Replicas int64
	CPUMilli int64 // requested by the first container
}

// World is two clusters under one orchestrator.
type World interface {
	// Places are two clusters with the nodes in each; the first has at least two.
	Places() []job.Target

	// Do carries the job out as far as it gets without help, and returns what is reported about it.
	Do(t *testing.T, j *job.Job) (job.State, []job.Condition)

	// Running returns what of the job runs in a cluster; nil when nothing does.
	Running(t *testing.T, cluster string, j *job.Job) *Running

	// Cut separates the cluster from the orchestrator; false reconnects it.
	Cut(t *testing.T, cluster string, cut bool)
}

// Can says what a world is able to do that not every world is.
type Can struct {
	Silence bool // it reports that a cluster does not answer
	Refuse  bool // it reports that a target does not exist
	Slow    bool // a pod whose image begins with "slow" never becomes ready
	Rollout bool // it tells such pods from those that they replace
	Done    bool // a Job may be made that ends at once: its image begins with "done"; of Clusters only
	Share   bool // jobs of an application may list the same objects, which can be read; of Clusters only
	Link    bool // the clusters have the kinds of ClusterLink, and peers that look at its objects; of Clusters only
}

// Job returns a creation of one Deployment for the target.
func Job(to job.Target, epoch int64) *job.Job {
	id, application := uuid.Must(uuid.NewV7()), uuid.New()
	j := &job.Job{
		ID: id, ApplicationID: application, ApplicationName: "conform", Namespace: "conform-" + application.String()[:8],
		Component: "web", Type: job.Create, State: job.Progressing, Target: to, Epoch: epoch, ResourceName: "web",
	}
	With(j, Image, 2)
	return j
}

// Image is what pods of the suite run where pods really do.
var Image = "hello:1"

// With has the job run n replicas of the image.
func With(j *job.Job, image string, n int) {
	j.Instruction = job.Instruction{ComponentName: "web", Type: "kubernetes", Contents: []job.Content{
		{Name: "web", YAML: `apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: ` + strconv.Itoa(n) + `
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      terminationGracePeriodSeconds: 1
      containers: [{name: web, image: "` + image + `", resources: {requests: {cpu: 10m, memory: 16Mi}}}]
`},
		{Name: "settings", YAML: "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings}\ndata: {a: b}\n"},
	}}
}

// Ask makes the job one for the remediation.
func Ask(j *job.Job, r job.Remediation) *job.Job { return askBy(j, r, 0) }

// askBy makes the job one for a scaling by so many replicas.
func askBy(j *job.Job, r job.Remediation, step int) *job.Job {
	next := *j
	next.Type, next.SubType = job.Update, string(r)
	next.Remediations = append(
		next.Remediations, job.Remedy{ID: uuid.Must(uuid.NewV7()), Type: r, Status: "Pending", Step: step},
	)
	return &next
}

// As makes the job one of another type.
func As(j *job.Job, typ job.Type) *job.Job {
	next := *j
	next.Type, next.SubType = typ, ""
	return &next
}

// Cleanup returns the job that removes what j left behind.
func Cleanup(j *job.Job) *job.Job {
	next := As(j, job.Delete)
	next.ID, next.Cleans = uuid.Must(uuid.NewV7()), &j.ID
	return next
}

// patience is how long a real cluster may take for one step.
const patience = 90 * time.Second

func available(t *testing.T, list []job.Condition) job.Condition {
	t.Helper()
	j := job.Job{Conditions: list}
	c := j.Condition(job.ConditionAvailable)
	require.NotNil(t, c, "%v", list)
	return *c
}

// Run runs the suite. Each test has jobs of its own; open may return the same world each time.
func Run(t *testing.T, can Can, open func(t *testing.T) World) {
	t.Helper()
	suite := map[string]func(*testing.T, World){
		"a creation runs where it was placed and is available when its pods are": created,
		"a repeat makes no second copy":                                          repeated,
		"an older decision leaves a newer copy alone":                            fenced,
		"scaling up and down changes replicas only":                              scaledUp,
		"scaling out changes what is asked for only":                             scaledOut,
		"a scaling that is repeated counts once":                                 scaledOnce,
		"a replacement changes what runs":                                        replaced,
		"a patch changes what it names and takes nothing away":                   patched,
		"a removal leaves nothing, and may be repeated":                          removed,
		"a clean-up leaves the copy of a newer decision":                         cleanedUp,
		"a copy moves within its cluster":                                        moved,
		"replicas of a component run beside each other in one cluster":           replicated,
		"of a component with variants only the one for the engine runs":          varied,
	}
	if can.Silence {
		suite["a cluster that does not answer holds nothing up for ever"] = silent
	}
	if can.Refuse {
		suite["a cluster that nobody knows is named, and not tried for ever"] = unknown
		suite["a manifest that cannot be read is named"] = unreadable
	}
	if can.Slow {
		suite["a copy whose pods are not ready is not available"] = slow
	}
	if can.Slow && can.Rollout {
		suite["a replacement whose pods are not ready is not available by those that it replaces"] = stuck
	}
	if can.Done {
		suite["a Job that has ended is not run again"] = ended
	}
	if can.Share {
		suite["what jobs of an application list alike is theirs until the last goes"] = shared
		for kind := range unchanging {
			suite["a "+kind+" moves within its cluster"] = func(t *testing.T, w World) { movedAnew(t, w, kind) }
			suite["a replacement changes what a "+kind+" runs"] = func(t *testing.T, w World) { replacedAnew(t, w, kind) }
		}
		for _, kind := range []string{"Job", "ReplicaSet"} {
			suite["a "+kind+" that is scaled out asks for more"] = func(t *testing.T, w World) { scaledOutAnew(t, w, kind) }
		}
		suite["what stands beside a Job stays when the Job is made anew"] = replacedBeside
		suite["a Job that is to complete more often is made anew"] = completedMore
		suite["a copy that was taken away is put back as scaled"] = putBack
		suite["a scaling that comes late counts once"] = scaledLate
		suite["what an autoscaler has set is left to it"] = autoscaled
		suite["a key that is taken out of a Secret goes"] = withheld
		suite["a role goes to the ServiceAccount that comes with it"] = bound
		suite["what an application has in a cluster is not taken over by another"] = nameConflict
	}
	if can.Link {
		suite["a link is available when its peers find it valid"] = linkValid
		suite["a link that moves leaves nothing of its former form"] = linkMoved
		suite["the kinds of a link come with their definitions"] = linkDefined
		suite["a link goes with its last user, and the namespace with it"] = linkRemoved
	}
	for name, test := range suite {
		t.Run(name, func(t *testing.T) { test(t, open(t)) })
	}
}

func created(t *testing.T, w World) {
	j := Job(w.Places()[0], 1)
	finish(t, w, j)
	defer gone(t, w, j)
	have := w.Running(t, j.Cluster, j)
	require.NotNil(t, have)
	require.Equal(t, int64(2), have.Replicas)
	require.Equal(t, j.Node, have.Node)
	require.Equal(t, int64(1), have.Epoch)
}

// finish carries the job out and demands that it runs, or is gone; it returns the condition that says so.
func finish(t *testing.T, w World, j *job.Job) job.Condition {
	t.Helper()
	state, conditions := w.Do(t, j)
	require.Equal(t, job.Finished, state, "%v", conditions)
	c := available(t, conditions)
	if j.Type != job.Delete {
		require.Equal(t, "True", c.Status, c.Message)
		require.Contains(t, c.Message, j.Node)
		require.NotEmpty(t, c.Reason)
		require.False(t, c.LastTransitionTime.IsZero())
	}
	return c
}

// gone removes what a test made.
func gone(t *testing.T, w World, j *job.Job) {
	t.Helper()
	finish(t, w, removal(j))
	require.Nil(t, w.Running(t, j.Cluster, j))
}

// removal is a decision to remove the job's copy that is newer than any other.
func removal(j *job.Job) *job.Job {
	last := As(j, job.Delete)
	last.Epoch = 1 << 40
	return last
}

func repeated(t *testing.T, w World) {
	j := Job(w.Places()[0], 1)
	defer gone(t, w, j)
	finish(t, w, j)
	before := *w.Running(t, j.Cluster, j)
	finish(t, w, j)
	require.Equal(t, before, *w.Running(t, j.Cluster, j))
}

func varied(t *testing.T, w World) {
	j := Job(w.Places()[0], 1)
	app, err := descriptor.ParseStored([]byte(`components:
  - name: web
    type: multiple
    manifests: [{name: web}, {name: compose}]
manifests:
  - name: compose
    manifest: {services: {web: {image: "` + Image + `"}, cache: {image: "` + Image + `"}}}
---
` + j.Instruction.Contents[0].YAML))
	require.NoError(t, err)
	j.Instruction.Type = appmodel.TypeMultiple
	j.Choose(appmodel.TypeKubernetes, job.Contents(app.Components[0].Variant(appmodel.TypeKubernetes)))
	defer gone(t, w, j)
	require.Contains(t, finish(t, w, j).Message, "2 of 2 pods", "and no service of the compose file")
	require.Equal(t, int64(2), w.Running(t, j.Cluster, j).Replicas)
}

func fenced(t *testing.T, w World) {
	j := Job(w.Places()[0], 5)
	defer gone(t, w, j)
	finish(t, w, j)
	older := As(j, job.Replace)
	older.Epoch = 4
	With(older, Image, 3)
	state, _ := w.Do(t, older)
	require.NotEqual(t, job.Finished, state, "what runs is not what it asks for")
	have := w.Running(t, j.Cluster, j)
	require.Equal(t, int64(5), have.Epoch)
	require.Equal(t, int64(2), have.Replicas)
	old := As(j, job.Delete)
	old.Epoch = 4
	w.Do(t, old)
	require.NotNil(t, w.Running(t, j.Cluster, j))
}

func scaledUp(t *testing.T, w World) {
	j := Job(w.Places()[0], 1)
	defer gone(t, w, j)
	finish(t, w, j)
	before := *w.Running(t, j.Cluster, j)
	up := Ask(j, job.ScaleUp)
	finish(t, w, up)
	before.Replicas = 3
	require.Equal(t, before, *w.Running(t, j.Cluster, j))
	up = askBy(up, job.ScaleUp, 2)
	finish(t, w, up)
	before.Replicas = 5
	require.Equal(t, before, *w.Running(t, j.Cluster, j), "by the step of the descriptor")
	for range 5 { // the last stays
		up = Ask(up, job.ScaleDown)
		finish(t, w, up)
	}
	before.Replicas = 1
	require.Equal(t, before, *w.Running(t, j.Cluster, j))
}

func scaledOut(t *testing.T, w World) {
	j := Job(w.Places()[0], 1)
	defer gone(t, w, j)
	finish(t, w, j)
	before := *w.Running(t, j.Cluster, j)
	finish(t, w, Ask(j, job.ScaleOut))
	before.CPUMilli += orchestrator.StepCPUMilli
	require.Equal(t, before, *w.Running(t, j.Cluster, j))
}

func scaledOnce(t *testing.T, w World) {
	j := Job(w.Places()[0], 1)
	defer gone(t, w, j)
	finish(t, w, j)
	up := Ask(j, job.ScaleUp)
	finish(t, w, up)
	finish(t, w, up)
	require.Equal(t, int64(3), w.Running(t, j.Cluster, j).Replicas)
}

func putBack(t *testing.T, w World) {
	j := Job(w.Places()[0], 1)
	defer gone(t, w, j)
	finish(t, w, j)
	plain := *w.Running(t, j.Cluster, j)
	next := j
	for _, r := range []job.Remediation{job.ScaleUp, job.ScaleOut} {
		next = Ask(next, r)
		finish(t, w, next)
	}
	scaled := plain
	scaled.Replicas, scaled.CPUMilli = 3, plain.CPUMilli+orchestrator.StepCPUMilli
	require.Equal(t, scaled, *w.Running(t, j.Cluster, j))
	finish(t, w, As(j, job.Delete))
	require.Nil(t, w.Running(t, j.Cluster, j))
	finish(t, w, next)
	require.Equal(t, scaled, *w.Running(t, j.Cluster, j))

	next = Ask(next, job.ReplaceIt)
	finish(t, w, next)
	require.Equal(t, plain, *w.Running(t, j.Cluster, j), "it was written anew")
	next = Ask(next, job.ScaleUp)
	finish(t, w, next)
	plain.Replicas = 3
	require.Equal(t, plain, *w.Running(t, j.Cluster, j))
}

func scaledLate(t *testing.T, w World) {
	j := Job(w.Places()[0], 1)
	defer gone(t, w, j)
	finish(t, w, j)
	first := Ask(j, job.ScaleUp)
	finish(t, w, first)
	second := Ask(first, job.ScaleUp)
	finish(t, w, second)
	require.Equal(t, int64(4), w.Running(t, j.Cluster, j).Replicas)
	finish(t, w, first) // somebody who has read it long ago
	finish(t, w, second)
	require.Equal(t, int64(4), w.Running(t, j.Cluster, j).Replicas)
}

func replaced(t *testing.T, w World) {
	j := Job(w.Places()[0], 1)
	defer gone(t, w, j)
	finish(t, w, j)
	other := As(j, job.Replace)
	With(other, Image, 1)
	finish(t, w, other)
	require.Equal(t, int64(1), w.Running(t, j.Cluster, j).Replicas)
}

func patched(t *testing.T, w World) {
	j := Job(w.Places()[0], 1)
	web := j.Instruction.Contents[0]
	worker := job.Content{Name: "worker", YAML: strings.ReplaceAll(web.YAML, ": web", ": worker")}
	j.Instruction.Contents = append(j.Instruction.Contents, worker)
	defer gone(t, w, j)
	finish(t, w, j)
	before := *w.Running(t, j.Cluster, j)
	next := j
	patch := func(c job.Content, pods string) {
		t.Helper()
		c.YAML = strings.Replace(c.YAML, "replicas: 2", "replicas: 3", 1)
		next = Ask(next, job.Patch)
		next.Instruction.Contents = []job.Content{c}
		require.Contains(t, finish(t, w, next).Message, pods+" pods", "what is not named runs as well")
	}
	patch(worker, "5 of 5")
	require.Equal(t, before, *w.Running(t, j.Cluster, j), "it was not named")
	patch(web, "6 of 6")
	before.Replicas = 3
	require.Equal(t, before, *w.Running(t, j.Cluster, j))
	if clusters, shows := w.(*Clusters); shows {
		require.NotNil(t, clusters.object(t, j.Cluster, configs, j.Namespace, "settings"))
	}
}

func removed(t *testing.T, w World) {
	j := Job(w.Places()[0], 1)
	finish(t, w, j)
	finish(t, w, As(j, job.Delete))
	require.Nil(t, w.Running(t, j.Cluster, j))
	finish(t, w, As(j, job.Delete))
	again := As(j, job.Create)
	again.Epoch = 2
	finish(t, w, again)
	gone(t, w, again)
}

func cleanedUp(t *testing.T, w World) {
	j := Job(w.Places()[0], 1)
	finish(t, w, j)
	old := Cleanup(j)
	newer := As(j, job.Create)
	newer.Epoch = 2
	defer gone(t, w, newer)
	finish(t, w, newer)
	finish(t, w, old)
	have := w.Running(t, newer.Cluster, newer)
	require.NotNil(t, have, "the newer copy was removed")
	require.Equal(t, int64(2), have.Epoch)
}

func moved(t *testing.T, w World) {
	j := Job(w.Places()[0], 1)
	finish(t, w, j)
	next := As(j, job.Create)
	next.Epoch, next.Target = 2, w.Places()[1]
	require.Equal(t, j.Cluster, next.Cluster, "the first two places are of one cluster")
	defer gone(t, w, next)
	finish(t, w, next)
	have := w.Running(t, next.Cluster, next)
	require.Equal(t, next.Node, have.Node)
	require.Equal(t, int64(2), have.Epoch)
}

// unchanging are the kinds whose pods cannot be changed in place. A ReplicaSet may be, and its pods stay as they are.
var unchanging = map[string]schema.GroupVersionResource{
	"Job": jobs, "Pod": pods, "ReplicaSet": replicaSets, "ReplicationController": controllers,
}

// withOne has the job run one object of an unchanging kind.
func withOne(j *job.Job, kind, greeting string) {
	pod := `
  terminationGracePeriodSeconds: 1
  containers:
    - name: once
      image: "` + Image + `"
      env: [{name: GREETING, value: ` + greeting + `}]
      resources: {requests: {cpu: 10m}}
`
	template := "\n  template:\n    metadata: {labels: {app: once}}\n    spec:" + strings.ReplaceAll(pod, "\n  ", "\n      ")
	const never = "  restartPolicy: Never\n"
	text := map[string]string{
		"Pod":                   "v1\nkind: Pod\nmetadata: {name: once}\nspec:" + pod + never,
		"Job":                   "batch/v1\nkind: Job\nmetadata: {name: once}\nspec:" + template + "    " + never,
		"ReplicaSet":            "apps/v1\nkind: ReplicaSet\nmetadata: {name: once}\nspec:\n  selector: {matchLabels: {app: once}}" + template,
		"ReplicationController": "v1\nkind: ReplicationController\nmetadata: {name: once}\nspec:" + template,
	}[kind]
	j.Instruction = job.Instruction{
		ComponentName: "web", Type: "kubernetes", Contents: []job.Content{{Name: "once", YAML: "apiVersion: " + text}},
	}
}

// one reads the object that withOne has the job run.
func one(t *testing.T, w World, j *job.Job, kind string) *unstructured.Unstructured {
	t.Helper()
	clusters, shows := w.(*Clusters)
	require.True(t, shows)
	o := clusters.object(t, j.Cluster, unchanging[kind], j.Namespace, "once")
	require.NotNil(t, o)
	return o
}

func movedAnew(t *testing.T, w World, kind string) {
	t.Helper()
	j := Job(w.Places()[0], 1)
	withOne(j, kind, "hello")
	finish(t, w, j)
	before := one(t, w, j, kind).GetUID()
	next := As(j, job.Create)
	next.Epoch, next.Target = 2, w.Places()[1]
	defer gone(t, w, next)
	finish(t, w, next)
	require.NotEqual(t, before, one(t, w, next, kind).GetUID(), "its pods are where they were")
	have := Of(one(t, w, next, kind))
	require.Equal(t, next.Node, have.Node)
	require.Equal(t, int64(2), have.Epoch)
}

func replacedAnew(t *testing.T, w World, kind string) {
	t.Helper()
	j := Job(w.Places()[0], 1)
	withOne(j, kind, "hello")
	defer gone(t, w, j)
	finish(t, w, j)
	before := one(t, w, j, kind).GetUID()
	other := As(j, job.Replace)
	withOne(other, kind, "goodbye")
	finish(t, w, other)
	have := one(t, w, other, kind)
	require.NotEqual(t, before, have.GetUID(), "its pods are what they were")
	require.Contains(t, fmt.Sprint(have.Object["spec"]), "goodbye")
	finish(t, w, other)
	require.Equal(t, have.GetUID(), one(t, w, other, kind).GetUID(), "once is enough")
}

// completedMore: other fields of a Job than its pods are immutable too.
func completedMore(t *testing.T, w World) {
	j := Job(w.Places()[0], 1)
	withOne(j, "Job", "hello")
	defer gone(t, w, j)
	finish(t, w, j)
	before := one(t, w, j, "Job").GetUID()
	other := As(j, job.Replace)
	withOne(other, "Job", "hello")
	other.Instruction.Contents[0].YAML = strings.Replace(other.Instruction.Contents[0].YAML, "\nspec:", "\nspec:\n  completions: 2", 1)
	finish(t, w, other)
	require.NotEqual(t, before, one(t, w, other, "Job").GetUID())
}

// replacedBeside: a volume that went with the Job would take its data along.
func replacedBeside(t *testing.T, w World) {
	clusters, shows := w.(*Clusters)
	require.True(t, shows)
	beside := func(j *job.Job, greeting string) *job.Job {
		withOne(j, "Job", greeting)
		once := j.Instruction.Contents
		With(j, Image, 1)
		j.Instruction.Contents = append(j.Instruction.Contents, once...)
		j.Instruction.Contents = append(j.Instruction.Contents, job.Content{Name: "volume", YAML: `apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: volume}
spec: {storageClassName: none, accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Mi}}}
`})
		return j
	}
	j := beside(Job(w.Places()[0], 1), "hello")
	finish(t, w, j)
	kinds := map[string]schema.GroupVersionResource{
		"once": jobs, "web": deployments, "settings": configs, "volume": volumes, j.Namespace: namespaces,
	}
	ids := func() map[string]types.UID {
		all := map[string]types.UID{}
		for name, kind := range kinds {
			in := j.Namespace
			if kind == namespaces {
				in = ""
			}
			o := clusters.object(t, j.Cluster, kind, in, name)
			require.NotNil(t, o, name)
			all[name] = o.GetUID()
		}
		return all
	}
	before := ids()
	other := beside(As(j, job.Create), "goodbye")
	other.Epoch, other.Target = 2, w.Places()[1]
	defer gone(t, w, other)
	finish(t, w, other)
	require.Contains(t, fmt.Sprint(one(t, w, other, "Job").Object["spec"]), "goodbye")
	after := ids()
	require.NotEqual(t, before["once"], after["once"])
	after["once"] = before["once"]
	require.Equal(t, before, after)
}

func scaledOutAnew(t *testing.T, w World, kind string) {
	t.Helper()
	j := Job(w.Places()[0], 1)
	withOne(j, kind, "hello")
	defer gone(t, w, j)
	finish(t, w, j)
	was := one(t, w, j, kind)
	before := Of(was)
	out := Ask(j, job.ScaleOut)
	finish(t, w, out)
	finish(t, w, out)
	before.CPUMilli += orchestrator.StepCPUMilli
	require.Equal(t, before, Of(one(t, w, j, kind)))
	require.NotEqual(t, was.GetUID(), one(t, w, j, kind).GetUID(), "its pods are what they were")
}

func silent(t *testing.T, w World) {
	j := Job(w.Places()[0], 1)
	finish(t, w, j)
	w.Cut(t, j.Cluster, true)
	healed := false
	defer func() {
		if !healed {
			w.Cut(t, j.Cluster, false)
		}
	}()
	last := As(j, job.Delete)
	state, conditions := w.Do(t, last)
	require.Equal(t, job.Progressing, state)
	c := available(t, conditions)
	require.Equal(t, "Unknown", c.Status)
	require.Equal(t, job.ReasonOutOfReach, c.Reason)
	require.Contains(t, c.Message, j.Cluster)
	w.Cut(t, j.Cluster, false)
	healed = true
	require.Eventually(t, func() bool {
		state, _ := w.Do(t, last)
		return state == job.Finished
	}, patience, time.Second)
	require.Nil(t, w.Running(t, j.Cluster, j))
}

func unknown(t *testing.T, w World) {
	to := w.Places()[0]
	to.Cluster = "nowhere"
	j := Job(to, 1)
	state, conditions := w.Do(t, j)
	require.Equal(t, job.Degraded, state)
	c := available(t, conditions)
	require.Equal(t, "False", c.Status)
	require.Equal(t, orchestrator.ReasonClusterNotFound, c.Reason)
	require.Contains(t, c.Message, "nowhere")
	finish(t, w, As(j, job.Delete))
}

func unreadable(t *testing.T, w World) {
	j := Job(w.Places()[0], 1)
	j.Instruction.Contents[0].YAML = "kind: [unclosed"
	state, conditions := w.Do(t, j)
	require.Equal(t, job.Degraded, state)
	c := available(t, conditions)
	require.Equal(t, orchestrator.ReasonBadManifest, c.Reason)
	require.Contains(t, c.Message, "web")
}

func slow(t *testing.T, w World) {
	j := Job(w.Places()[0], 1)
	With(j, "slow:1", 1)
	defer gone(t, w, j)
	state, conditions := w.Do(t, j)
	require.Equal(t, job.Progressing, state)
	c := available(t, conditions)
	require.Equal(t, "False", c.Status)
	require.Contains(t, c.Message, "0 of 1 ")
}

func stuck(t *testing.T, w World) {
	j := Job(w.Places()[0], 1)
	With(j, Image, 1)
	defer gone(t, w, j)
	finish(t, w, j)
	next := As(j, job.Replace)
	With(next, "slow:1", 1)
	state, conditions := w.Do(t, next)
	require.Equal(t, job.Progressing, state, "%v", conditions)
	c := available(t, conditions)
	require.Equal(t, "False", c.Status)
	require.Regexp(t, "0 of 1 (pods are ready in the newest form|containers run)", c.Message)
}

func ended(t *testing.T, w World) {
	clusters, shows := w.(*Clusters)
	require.True(t, shows)
	j := Job(w.Places()[0], 1)
	j.Instruction.Contents[0].YAML = `apiVersion: batch/v1
kind: Job
metadata: {name: once}
spec:
  ttlSecondsAfterFinished: 0
  template: {spec: {restartPolicy: Never, containers: [{name: once, image: "done:1"}]}}
`
	defer gone(t, w, j)
	finish(t, w, j)
	before := clusters.object(t, j.Cluster, jobs, j.Namespace, "once")
	require.NotNil(t, before)
	finish(t, w, j) // the owner of the copy looks again
	after := clusters.object(t, j.Cluster, jobs, j.Namespace, "once")
	require.NotNil(t, after)
	require.Equal(t, before.GetUID(), after.GetUID())
}

func replicated(t *testing.T, w World) {
	first := Job(w.Places()[0], 5)
	second := beside(first, w.Places()[1])
	second.Replica = 1
	defer gone(t, w, second)
	finish(t, w, first)
	finish(t, w, second)
	for _, j := range []*job.Job{first, second} {
		have := w.Running(t, j.Cluster, j)
		require.NotNil(t, have)
		require.Equal(t, j.Node, have.Node)
		require.Equal(t, j.Epoch, have.Epoch, "decisions on different jobs have nothing to do with each other")
	}
	before := *w.Running(t, second.Cluster, second)
	finish(t, w, Ask(first, job.ScaleUp))
	require.Equal(t, before, *w.Running(t, second.Cluster, second))
	gone(t, w, first)
	finish(t, w, second)
	require.Equal(t, before, *w.Running(t, second.Cluster, second))
}

// withScaler has the job bring an autoscaler.
func withScaler(j *job.Job) {
	j.Instruction.Contents = append(j.Instruction.Contents, job.Content{Name: "scaler", YAML: `apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: web}
spec: {scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}, minReplicas: 1, maxReplicas: 9}
`})
}

func autoscaled(t *testing.T, w World) {
	clusters, shows := w.(*Clusters)
	require.True(t, shows)
	j := Job(w.Places()[0], 1)
	withScaler(j)
	defer gone(t, w, j)
	finish(t, w, j)
	clusters.scale(t, j, 3)
	next := As(j, job.Replace)
	With(next, Image, 1)
	withScaler(next)
	finish(t, w, next)
	require.Equal(t, int64(3), w.Running(t, j.Cluster, j).Replicas)
	finish(t, w, Ask(next, job.ScaleUp))
	require.Equal(t, int64(3), w.Running(t, j.Cluster, j).Replicas)
}

func bound(t *testing.T, w World) {
	clusters, shows := w.(*Clusters)
	require.True(t, shows)
	j := Job(w.Places()[0], 1)
	j.Instruction.Contents = append(j.Instruction.Contents, job.Content{Name: "rights", YAML: `apiVersion: v1
kind: ServiceAccount
metadata: {name: web}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: web}
rules: []
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: web}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: web}
subjects: [{kind: ServiceAccount, name: web}]
`})
	defer gone(t, w, j)
	finish(t, w, j)
	binding := clusters.object(t, j.Cluster, bindings, j.Namespace, "web")
	require.NotNil(t, binding)
	require.Equal(t, []any{
		map[string]any{"kind": "ServiceAccount", "name": "web", "namespace": j.Namespace},
	}, binding.Object["subjects"])
}

func withheld(t *testing.T, w World) {
	clusters, shows := w.(*Clusters)
	require.True(t, shows)
	const of = "apiVersion: v1\nkind: Secret\nmetadata: {name: keys}\nstringData: "
	keep := func(j *job.Job, text string) {
		With(j, Image, 1)
		j.Instruction.Contents = append(j.Instruction.Contents, job.Content{Name: "keys", YAML: of + text})
	}
	data := func(j *job.Job) any {
		o := clusters.object(t, j.Cluster, secrets, j.Namespace, "keys")
		require.NotNil(t, o)
		return o.Object["data"]
	}
	j := Job(w.Places()[0], 1)
	keep(j, "{a: a, b: b}")
	defer gone(t, w, j)
	finish(t, w, j)
	require.Equal(t, map[string]any{"a": "YQ==", "b": "Yg=="}, data(j))
	next := As(j, job.Replace)
	keep(next, "{b: c}")
	finish(t, w, next)
	require.Equal(t, map[string]any{"b": "Yw=="}, data(next))
}

// beside returns a job of the same application and content.
func beside(j *job.Job, to job.Target) *job.Job {
	next := *j
	next.ID, next.Target, next.Epoch = uuid.Must(uuid.NewV7()), to, 1
	return &next
}

// withRole has the job bring a ClusterRole, which lives in no namespace and says by nothing but its being there that it
// is ready.
func withRole(j *job.Job, name string) {
	const of = "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nrules: []\n"
	role := job.Content{Name: "role", YAML: of + "metadata: {name: " + name + "}\n"}
	j.Instruction.Contents = append(j.Instruction.Contents, role)
}

func shared(t *testing.T, w World) {
	clusters, shows := w.(*Clusters)
	require.True(t, shows)
	first := Job(w.Places()[0], 5)
	withRole(first, first.Namespace)
	second := beside(first, w.Places()[1])
	second.Component, second.Instruction.Contents = "worker", append([]job.Content{}, first.Instruction.Contents...)
	second.Instruction.Contents[0].YAML = strings.ReplaceAll(second.Instruction.Contents[0].YAML, "name: web", "name: worker")
	finish(t, w, first)
	finish(t, w, second)
	require.Equal(t, job.Finished, clusters.status(t, first), "neither takes it from the other")
	require.Equal(t, job.Finished, clusters.status(t, second))

	there := func() (settings, role bool) {
		return clusters.object(t, first.Cluster, configs, first.Namespace, "settings") != nil,
			clusters.object(t, first.Cluster, roles, "", first.Namespace) != nil
	}
	for _, pair := range [][2]*job.Job{{second, first}, {first, second}} { // whichever was applied last
		gone(t, w, pair[0])
		settings, role := there()
		require.True(t, settings)
		require.True(t, role)
		require.Equal(t, job.Finished, clusters.status(t, pair[1]))
		finish(t, w, pair[0])
	}
	gone(t, w, first)
	gone(t, w, second)
	settings, role := there()
	require.False(t, settings)
	require.False(t, role)
}

func nameConflict(t *testing.T, w World) {
	clusters, shows := w.(*Clusters)
	require.True(t, shows)
	holder, late := Job(w.Places()[0], 1), Job(w.Places()[0], 5)
	withRole(holder, holder.Namespace)
	withRole(late, holder.Namespace)
	finish(t, w, holder)
	state, conditions := w.Do(t, late)
	require.Equal(t, job.Degraded, state)
	c := available(t, conditions)
	require.Contains(t, []string{orchestrator.ReasonNameTaken, orchestrator.ReasonApplyConflict}, c.Reason)
	require.Contains(t, c.Message, "ClusterRole "+holder.Namespace)
	require.Equal(t, job.Finished, clusters.status(t, holder))
	gone(t, w, late)
	require.NotNil(t, clusters.object(t, holder.Cluster, roles, "", holder.Namespace))
	require.Equal(t, job.Finished, clusters.status(t, holder))
	gone(t, w, holder)
	require.Nil(t, clusters.object(t, holder.Cluster, roles, "", holder.Namespace))
}
