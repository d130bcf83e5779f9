package manifest_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/littoral-project/littoral/shared/job"
	"github.com/littoral-project/littoral/shared/orchestrator"
	"github.com/littoral-project/littoral/shared/orchestrator/manifest"
)

// newJob returns the creation of the manifests at edge/n1.
func newJob(manifests ...string) *job.Job {
	j := &job.Job{
		ID: uuid.MustParse(
			"0198c2a0-0000-7000-8000-00000000abcd",
		),
		ApplicationID:   uuid.MustParse("11111111-2222-4333-8444-555555555555"),
		ApplicationName: "shop",
		Namespace:       "shop-11111111",
		Component:       "web",
		Type:            job.Create,
		Epoch:           7,
		Target:          job.Target{Orchestrator: "ocm", Cluster: "edge", Node: "n1"},
	}
	for i, m := range manifests {
		j.Instruction.Contents = append(j.Instruction.Contents, job.Content{Name: fmt.Sprintf("m%d", i), YAML: m})
	}
	return j
}

func build(t *testing.T, j *job.Job) []*unstructured.Unstructured {
	t.Helper()
	objects, err := manifest.Build(j)
	require.NoError(t, err)
	return objects
}

const podSpec = `{containers: [{name: c, image: "i:1"}]}`

// bearing has manifests of every kind with pods.
var bearing = map[string]string{
	"Deployment":            "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: x}\nspec: {template: {spec: " + podSpec + "}}",
	"StatefulSet":           "apiVersion: apps/v1\nkind: StatefulSet\nmetadata: {name: x}\nspec: {template: {metadata: null, spec: " + podSpec + "}}",
	"DaemonSet":             "apiVersion: apps/v1\nkind: DaemonSet\nmetadata: {name: x}\nspec: {template: {metadata: {labels: {a: b}}, spec: " + podSpec + "}}",
	"ReplicaSet":            "apiVersion: apps/v1\nkind: ReplicaSet\nmetadata: {name: x}\nspec: {template: {spec: " + podSpec + "}}",
	"ReplicationController": "apiVersion: v1\nkind: ReplicationController\nmetadata: {name: x}\nspec: {template: {spec: " + podSpec + "}}",
	"Job":                   "apiVersion: batch/v1\nkind: Job\nmetadata: {name: x}\nspec: {template: {spec: " + podSpec + "}}",
	"CronJob":               "apiVersion: batch/v1\nkind: CronJob\nmetadata: {name: x}\nspec: {jobTemplate: {spec: {template: {spec: " + podSpec + "}}}}",
	"Pod":                   "apiVersion: v1\nkind: Pod\nmetadata: {name: x}\nspec: " + podSpec,
}

func TestBuild_marksAndBindsEveryKindThatBearsPods(t *testing.T) {
	t.Parallel()
	for kind, text := range bearing {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			o := build(t, newJob(text))[1]
			require.Equal(t, "shop-11111111", o.GetNamespace())
			path, bears := manifest.PodTemplate(o)
			require.True(t, bears)
			for _, at := range [][]string{nil, path} { // the object and the template of its pods
				labels, _, err := unstructured.NestedStringMap(o.Object, append(append([]string{}, at...), "metadata", "labels")...)
				require.NoError(t, err)
				notes, _, err := unstructured.NestedStringMap(
					o.Object,
					append(append([]string{}, at...), "metadata", "annotations")...)
				require.NoError(t, err)
				for key, want := range map[string]string{
					"app.icos.eu/name": "shop", "app.icos.eu/component": "web", "app.icos.eu/instance": "11111111-2222-4333-8444-555555555555",
				} {
					require.Equal(t, want, labels[key], key)
					require.Equal(t, want, notes[key], key)
				}
				require.Equal(t, orchestrator.ResourceID(newJob()), notes["jobmanager.icos.eu/manifest"])
				if kind == "DaemonSet" && len(at) > 0 {
					require.Equal(t, "b", labels["a"], "what the manifest says stays")
				}
				if len(at) > 0 {
					require.NotContains(t, notes, "littoral.dev/epoch", "a takeover restarts no pods")
				}
			}
			require.Equal(t, int64(7), manifest.EpochOf(o))
			terms, _, err := unstructured.NestedSlice(
				o.Object,
				append(append([]string{}, path...), "spec", "affinity", "nodeAffinity",
					"requiredDuringSchedulingIgnoredDuringExecution", "nodeSelectorTerms")...)
			require.NoError(t, err)
			require.Equal(t, []any{map[string]any{"matchFields": []any{map[string]any{
				"key": "metadata.name", "operator": "In", "values": []any{"n1"},
			}}}}, terms)
		})
	}
}

func TestBuild_givesEachReplicaPodsOfItsOwn(t *testing.T) {
	t.Parallel()
	text := "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: x}\n" +
		"spec: {selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: " + podSpec + "}}"
	const settings = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}"
	scaler := func(name, of string) string {
		return "apiVersion: autoscaling/v2\nkind: HorizontalPodAutoscaler\nmetadata: {name: " + name + "}\n" +
			"spec: {scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: " + of + "}}"
	}
	manifests := []string{text, settings, scaler("x", "x"), scaler("other", "of-another")}
	manifests = append(manifests, "apiVersion: v1\nkind: ReplicationController\nmetadata: {name: old}\n"+
		"spec: {selector: {a: b}, template: {metadata: {labels: {a: b}}, spec: "+podSpec+"}}")
	first, second := newJob(manifests...), newJob(manifests...)
	second.ID, second.Replica, second.Epoch = uuid.New(), 1, 8
	one, other := build(t, first), build(t, second)
	require.Equal(t, "x", one[1].GetName())
	require.Equal(t, "x-1", other[1].GetName())
	selector, _, err := unstructured.NestedStringMap(other[1].Object, "spec", "selector", "matchLabels")
	require.NoError(t, err)
	require.Equal(t, map[string]string{"a": "b", "littoral.dev/job": second.ID.String()}, selector)
	labels, _, err := unstructured.NestedStringMap(other[1].Object, "spec", "template", "metadata", "labels")
	require.NoError(t, err)
	require.Equal(t, "b", labels["a"], "Services find it")
	require.Subset(t, labels, selector)
	require.Equal(t, one[2], other[2], "what bears no pods is there for both")
	for _, objects := range [][]*unstructured.Unstructured{one, other} {
		of, _, err := unstructured.NestedString(objects[3].Object, "spec", "scaleTargetRef", "name")
		require.NoError(t, err)
		require.Equal(t, objects[1].GetName(), of, "each scales its own")
		require.Equal(t, objects[1].GetName(), objects[3].GetName())
	}
	require.Equal(t, one[4], other[4], "what scales another's is there for both")
	selector, _, err = unstructured.NestedStringMap(other[5].Object, "spec", "selector")
	require.NoError(t, err)
	require.Equal(t, map[string]string{"a": "b", "littoral.dev/job": second.ID.String()}, selector)
}

func TestBuild_leavesReplicasToAutoscalers(t *testing.T) {
	t.Parallel()
	const asked = "spec: {replicas: 2, "
	deployment := strings.Replace(bearing["Deployment"], "spec: {", asked, 1)
	const scaler = "apiVersion: autoscaling/v2\nkind: HorizontalPodAutoscaler\nmetadata: {name: s}\n" +
		"spec: {scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: x}}"
	for name, number := range map[string]int{"of the first": 0, "of the others": 1} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			j := newJob(deployment, scaler, strings.Replace(bearing["StatefulSet"], "spec: {", asked, 1))
			j.Replica = number
			objects := build(t, j)
			require.NotContains(t, objects[1].Object["spec"], "replicas")
			require.Contains(t, objects[3].Object["spec"], "replicas", "which it does not scale")
		})
	}
	j := newJob(deployment, scaler)
	j.Type = job.Update
	for remediation, supported := range map[job.Remediation]bool{
		job.ScaleUp: false, job.ScaleDown: false, job.ScaleOut: true, job.ScaleIn: true,
	} {
		j.SubType = string(remediation)
		require.Equal(t, supported, orchestrator.Unsupported(j) == nil, remediation)
	}
	j.SubType = string(job.ScaleUp)
	refusal := orchestrator.Unsupported(j)
	require.Equal(t, orchestrator.ReasonNotSupported, refusal.Reason)
	require.Contains(t, refusal.Message, "apps/Deployment x")
	j.Instruction.Contents = j.Instruction.Contents[:1]
	require.Nil(t, orchestrator.Unsupported(j))
}

func TestBuild_keepsJobsThatHaveEnded(t *testing.T) {
	t.Parallel()
	const bounded = "spec: {ttlSecondsAfterFinished: 60, "
	once := build(t, newJob(strings.Replace(bearing["Job"], "spec: {", bounded, 1)))[1]
	require.NotContains(t, fmt.Sprint(once.Object["spec"]), "ttlSecondsAfterFinished", "one that is deleted is run again")
	each := build(t, newJob(strings.Replace(bearing["CronJob"], "{spec: {template", "{"+bounded+"template", 1)))[1]
	require.Contains(t, fmt.Sprint(each.Object["spec"]), "ttlSecondsAfterFinished", "nobody misses those that a CronJob makes")
}

func TestBuild_bindsEachAlternativeOfTheManifest(t *testing.T) {
	t.Parallel()
	o := build(t, newJob(`apiVersion: v1
kind: Pod
metadata: {name: x}
spec:
  nodeName: elsewhere
  affinity:
    podAntiAffinity: {}
    nodeAffinity:
      requiredDuringSchedulingIgnoredDuringExecution:
        nodeSelectorTerms:
          - matchExpressions: [{key: disk, operator: Exists}]
          - matchFields: [{key: metadata.name, operator: NotIn, values: [n9]}]
`))[1]
	text := fmt.Sprint(o.Object["spec"])
	require.Equal(t, 2, strings.Count(text, "values:[n1]"), text)
	require.Contains(t, text, "disk")
	require.Contains(t, text, "n9")
	require.Contains(t, text, "podAntiAffinity")
	require.NotContains(t, text, "elsewhere")
}

func TestBuild_keepsEveryManifest(t *testing.T) {
	t.Parallel()
	objects := build(t, newJob(
		"apiVersion: v1\nkind: Service\nmetadata: {name: s, namespace: kube-system}\n---\n# nothing here\n---\napiVersion: example.org/v1\nkind: Sensor\nmetadata: {name: t}\nspec: {deep: [1, {a: null}]}",
		"apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: r}",
		"apiVersion: v1\nkind: List\nitems: [{apiVersion: v1, kind: ConfigMap, metadata: {name: c}}, {apiVersion: v1, kind: Secret, metadata: {name: c}}]",
		"apiVersion: example.org/v1\nkind: Planet\nmetadata: {name: p, annotations: {littoral.dev/scope: cluster}}",
		"apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: oxen.example.org}\nspec: {group: example.org, scope: Cluster, names: {kind: Ox, plural: oxen}}",
		"apiVersion: example.org/v1\nkind: Ox\nmetadata: {name: o}\nspec: {deep: [1, {a: null}]}",
	))
	var got []string
	for _, o := range objects {
		got = append(got, strings.TrimPrefix(o.GetNamespace()+"/", "/")+o.GetKind()+"/"+o.GetName())
	}
	require.Equal(t, []string{
		"Namespace/shop-11111111",
		"CustomResourceDefinition/oxen.example.org",
		"shop-11111111/Service/s",
		"shop-11111111/Sensor/t",
		"ClusterRole/r",
		"shop-11111111/ConfigMap/c",
		"shop-11111111/Secret/c",
		"Planet/p",
		"Ox/o",
	}, got)
	require.Equal(t, map[string]any{"deep": []any{int64(1), map[string]any{"a": nil}}}, objects[3].Object["spec"])
	kinds := manifest.KindsOf(objects)
	require.Equal(t, manifest.Kind{Resource: "oxen"}, kinds.Of(objects[8]), "its definition says how it is called")
	require.Equal(t, manifest.Kind{Resource: "sensors", Namespaced: true, Guessed: true}, kinds.Of(objects[3]))
}

// TestBuild_takesNullForNothing: as templates write a field whose content they leave out.
func TestBuild_takesNullForNothing(t *testing.T) {
	t.Parallel()
	for _, affinity := range []string{
		"null", "{nodeAffinity: null}", "{nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: null}}",
	} {
		objects := build(t, newJob("apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: x, labels: null}\n"+
			"spec: {replicas: null, template: {spec: {affinity: "+affinity+", containers: [{name: c, resources: null}]}}}"))
		_, err := manifest.Scale(objects[1], job.Remedy{Type: job.ScaleUp}, job.Remedy{Type: job.ScaleOut})
		require.NoError(t, err)
		text := fmt.Sprint(objects[1].Object["spec"])
		require.Contains(t, text, "values:[n1]")
		require.Contains(t, text, "replicas:2")
		require.Contains(t, text, "requests:map[cpu:1000m memory:1000Mi]")
	}
}

// TestBuild_ordersWhatPodsDemand: an API server refuses a pod whose ServiceAccount or class does not exist, and nothing
// after it would be applied. What is left keeps its order.
func TestBuild_ordersWhatPodsDemand(t *testing.T) {
	t.Parallel()
	var got []string
	for _, o := range build(t, newJob(
		bearing["Pod"],
		"apiVersion: v1\nkind: Service\nmetadata: {name: x}",
		"apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: x}",
		"apiVersion: scheduling.k8s.io/v1\nkind: PriorityClass\nmetadata: {name: x}\nvalue: 1",
		"apiVersion: node.k8s.io/v1\nkind: RuntimeClass\nmetadata: {name: x}\nhandler: x",
		"apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: x}",
	)) {
		got = append(got, o.GetKind())
	}
	require.Equal(t, []string{
		"Namespace", "CustomResourceDefinition", "ServiceAccount", "PriorityClass", "RuntimeClass", "Pod", "Service",
	}, got)
}

// TestBuild_dropsWhatAnotherClusterHasSet: as in a manifest that was read from a cluster.
func TestBuild_dropsWhatAnotherClusterHasSet(t *testing.T) {
	t.Parallel()
	const set = `resourceVersion: "1", uid: u, generation: 3, creationTimestamp: "2026-01-02T03:04:05Z", managedFields: [],
  selfLink: /x, deletionTimestamp: "2026-01-02T03:04:05Z", deletionGracePeriodSeconds: 30,
  ownerReferences: [{apiVersion: apps/v1, kind: ReplicaSet, name: x, uid: u, controller: true}]`
	const text = "apiVersion: v1\nkind: Pod\nmetadata: {name: x, finalizers: [example.org/hold]%s}\nspec: " + podSpec + "%s"
	exported := build(t, newJob(fmt.Sprintf(text, ",\n  "+set, "\nstatus: {phase: Running}")))
	require.Equal(t, build(t, newJob(fmt.Sprintf(text, "", ""))), exported)
}

// TestBuild_makesNoNamespaceThatItLeavesEmpty: manifests often bring the namespace that they are written for. In a cluster,
// it may be that of somebody else, or of another instance of the application.
func TestBuild_makesNoNamespaceThatItLeavesEmpty(t *testing.T) {
	t.Parallel()
	const settings = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c, namespace: written}"
	for name, want := range map[string]string{
		"shop": "", "shop-11111111": "", "written": "", "other": "other",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			objects := build(t, newJob(
				"apiVersion: v1\nkind: Namespace\nmetadata: {name: "+name+
					", labels: {pod-security.kubernetes.io/enforce: baseline, app.kubernetes.io/managed-by: x}}", settings))
			var others []string
			for _, o := range objects[1:] {
				if o.GetKind() == "Namespace" {
					others = append(others, o.GetName())
				}
			}
			require.Equal(t, want, strings.Join(others, " "))
			require.Equal(t, "shop-11111111", objects[0].GetName())
			label := objects[0].GetLabels()["pod-security.kubernetes.io/enforce"]
			require.Equal(t, want == "", label == "baseline")
			require.Equal(t, "littoral", objects[0].GetLabels()["app.kubernetes.io/managed-by"])
		})
	}
}

// TestKindsOf_kubernetes: a hub cannot be asked which kinds are cluster-scoped.
func TestKindsOf_kubernetes(t *testing.T) {
	t.Parallel()
	for kind, resource := range map[string]string{
		"flowcontrol.apiserver.k8s.io/v1 FlowSchema":                     "flowschemas",
		"flowcontrol.apiserver.k8s.io/v1 PriorityLevelConfiguration":     "prioritylevelconfigurations",
		"networking.k8s.io/v1 IPAddress":                                 "ipaddresses",
		"networking.k8s.io/v1 ServiceCIDR":                               "servicecidrs",
		"resource.k8s.io/v1 DeviceClass":                                 "deviceclasses",
		"storage.k8s.io/v1 VolumeAttributesClass":                        "volumeattributesclasses",
		"admissionregistration.k8s.io/v1 ValidatingAdmissionPolicy":      "validatingadmissionpolicies",
		"admissionregistration.k8s.io/v1 MutatingAdmissionPolicyBinding": "mutatingadmissionpolicybindings",
		"certificates.k8s.io/v1beta1 ClusterTrustBundle":                 "clustertrustbundles",
		"storagemigration.k8s.io/v1beta1 StorageVersionMigration":        "storageversionmigrations",
	} {
		version, name, _ := strings.Cut(kind, " ")
		o := &unstructured.Unstructured{Object: map[string]any{"apiVersion": version, "kind": name}}
		require.Equal(t, manifest.Kind{Resource: resource}, manifest.KindsOf(nil).Of(o), kind)
	}
}

func TestBuild_bindsRolesToTheServiceAccountsOfTheApplication(t *testing.T) {
	t.Parallel()
	const (
		binding = "apiVersion: rbac.authorization.k8s.io/v1\nkind: RoleBinding\nmetadata: {name: x, namespace: written}\n"
		global  = "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRoleBinding\nmetadata: {name: x}\n"
		account = "apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: web}"
		placed  = "apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: web, namespace: written}"
		own     = "shop-11111111"
	)
	for name, row := range map[string]struct {
		manifests []string
		subject   string
		want      any // namespace of the subject
	}{
		"in no namespace":                       {[]string{binding}, "{kind: ServiceAccount, name: web}", own},
		"in none, for what is in none":          {[]string{global}, "{kind: ServiceAccount, name: web}", own},
		"beside the binding":                    {[]string{binding}, "{kind: ServiceAccount, name: web, namespace: written}", own},
		"in a namespace called as it is":        {[]string{global}, "{kind: ServiceAccount, name: web, namespace: shop}", own},
		"that the job brings":                   {[]string{global, account}, "{kind: ServiceAccount, name: web, namespace: default}", own},
		"that the job brings from there":        {[]string{global, placed}, "{kind: ServiceAccount, name: web, namespace: written}", own},
		"somebody else's":                       {[]string{binding}, "{kind: ServiceAccount, name: web, namespace: kube-system}", "kube-system"},
		"somebody else's by the same name":      {[]string{binding, placed}, "{kind: ServiceAccount, name: web, namespace: kube-system}", "kube-system"},
		"somebody else's beside one of its own": {[]string{binding, account}, "{kind: ServiceAccount, name: x, namespace: default}", "default"},
		"a group, which is in no namespace":     {[]string{binding}, "{kind: Group, name: web}", nil},
		"none, since it is no object":           {[]string{binding}, "web", nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			manifests := append([]string{}, row.manifests...)
			manifests[0] += "subjects: [" + row.subject + "]"
			objects := build(t, newJob(manifests...))
			subjects, _, err := unstructured.NestedSlice(objects[len(objects)-1].Object, "subjects")
			require.NoError(t, err)
			subject, _ := subjects[0].(map[string]any)
			require.Equal(t, row.want, subject["namespace"])
		})
	}
}

func TestBuild_writesTheTextOfSecretsIntoTheirData(t *testing.T) {
	t.Parallel()
	const of = "apiVersion: v1\nkind: Secret\nmetadata: {name: x}\n"
	for name, row := range map[string]struct {
		fields string
		want   map[string]any
	}{
		"text":                  {"stringData: {a: b, empty: ''}", map[string]any{"a": "Yg==", "empty": ""}},
		"text and data":         {"stringData: {a.b: c}\ndata: {b: Yg==}", map[string]any{"a.b": "Yw==", "b": "Yg=="}},
		"text in place of data": {"stringData: {a: b}\ndata: {a: YQ==}", map[string]any{"a": "Yg=="}},
		"text, and data null":   {"stringData: {a: b}\ndata: null", map[string]any{"a": "Yg=="}},
		"data":                  {"data: {b: Yg==}", map[string]any{"b": "Yg=="}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := build(t, newJob(of+row.fields))[1]
			require.Equal(t, row.want, o.Object["data"])
			require.NotContains(t, o.Object, "stringData")
		})
	}
	for _, fields := range []string{"stringData: {a: 1}", "stringData: {a: b}\ndata: [c]"} {
		require.Contains(t, build(t, newJob(of+fields))[1].Object, "stringData", "the API server says what is wrong")
	}
	one, other := build(t, newJob(of+"stringData: {a: b}"))[1], build(t, newJob(of+"stringData: {a: c}"))[1]
	require.NotEqual(t, manifest.RevisionOf(one), manifest.RevisionOf(other))
	sensor := build(t, newJob("apiVersion: example.org/v1\nkind: Secret\nmetadata: {name: x}\nstringData: {a: b}"))[1]
	require.Contains(t, sensor.Object, "stringData", "another kind by that name")
}

func TestBuild_saysWhatIsWrong(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct{ manifest, want string }{
		"no manifest":     {"# nothing", "has no manifest"},
		"no YAML":         {"a: [", "m0"},
		"no object":       {"a: b", "m0"},
		"no name":         {"apiVersion: v1\nkind: Pod\nmetadata: {generateName: x}", "no metadata.name"},
		"no such name":    {"apiVersion: v1\nkind: Pod\nmetadata: {name: a/b}", "a/b"},
		"no pods":         {"apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: x}", "Deployment shop-11111111/x has no spec.template.spec"},
		"an object twice": {"apiVersion: v1\nkind: Secret\nmetadata: {name: x}\n---\napiVersion: v1\nkind: Secret\nmetadata: {name: x}", "twice"},
		"bad affinity": {
			"apiVersion: v1\nkind: Pod\nmetadata: {name: x}\nspec: {affinity: [1]}", "Pod shop-11111111/x",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := manifest.Build(newJob(row.manifest))
			var refusal *orchestrator.Refusal
			require.ErrorAs(t, err, &refusal)
			require.Equal(t, orchestrator.ReasonBadManifest, refusal.Reason)
			require.Contains(t, refusal.Message, row.want)
		})
	}
}

func TestBuild_isTheSameEachTime(t *testing.T) {
	t.Parallel()
	for _, text := range bearing {
		a, b := build(t, newJob(text)), build(t, newJob(text))
		require.Equal(t, a, b)
		other := newJob(text)
		other.Epoch++
		c := build(t, other)
		require.NotEqual(t, manifest.RevisionOf(a[1]), manifest.RevisionOf(c[1]))
		require.Equal(t, a[0], c[0], "the namespace is of all components and of every decision")
	}
}

func TestBuild_stampsAlikeWhatComponentsListAlike(t *testing.T) {
	t.Parallel()
	const shared = "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: r}"
	one, other := newJob(shared, bearing["Pod"]), newJob(shared, bearing["Pod"])
	other.ID, other.Component, other.Epoch = uuid.New(), "worker", 8
	a, b := build(t, one), build(t, other)
	require.Equal(t, "worker", b[1].GetLabels()["app.icos.eu/component"])
	require.Equal(t, manifest.RevisionOf(a[1]), manifest.RevisionOf(b[1]))
	require.NotEqual(t, manifest.RevisionOf(a[2]), manifest.RevisionOf(b[2]))
}

func TestNamesComeFromIDs(t *testing.T) {
	t.Parallel()
	j := newJob()
	require.Equal(t, "web-00000000abcd", orchestrator.NameOf(j))
	cleanup := *j
	cleanup.ID, cleanup.Cleans = uuid.New(), &j.ID
	require.Equal(t, orchestrator.NameOf(j), orchestrator.NameOf(&cleanup), "it is about the copy of the other")
	require.Equal(t, orchestrator.ResourceID(j), orchestrator.ResourceID(&cleanup))
	long := orchestrator.ResourceName(strings.Repeat("a", 80), j.ID.String())
	require.LessOrEqual(t, len(long), 63)

	o := &unstructured.Unstructured{Object: map[string]any{}}
	want := orchestrator.RecordOf(j)
	manifest.Mark(o, want)
	got, ours := manifest.ReadRecord(o)
	require.True(t, ours)
	require.Equal(t, want, got)
	_, ours = manifest.ReadRecord(&unstructured.Unstructured{Object: map[string]any{}})
	require.False(t, ours)
}

// observed returns the wanted object as a cluster has it, in its second generation and with a status in YAML.
func observed(t *testing.T, want *unstructured.Unstructured, status string) *unstructured.Unstructured {
	t.Helper()
	parsed, err := manifest.Read([]job.Content{{YAML: "apiVersion: v1\nkind: x\nmetadata: {name: x}\nheld: " + status}})
	require.NoError(t, err)
	live := want.DeepCopy()
	live.SetGeneration(2)
	live.Object["status"] = parsed[0].Object["held"]
	return live
}

func TestHealthOf(t *testing.T) {
	t.Parallel()
	const conditions = `conditions: [{type: Other, status: "x"}, {type: %s, status: "%s", reason: %s, message: because}]`
	for name, row := range map[string]struct {
		kind, status  string
		ready, failed bool
		reason        string
	}{
		"a deployment that runs":               {"Deployment", "{observedGeneration: 2, replicas: 1, availableReplicas: 1, updatedReplicas: 1}", true, false, "AsExpected"},
		"one whose pods are not ready":         {"Deployment", "{observedGeneration: 2, replicas: 1, updatedReplicas: 1}", false, false, "PodsNotReady"},
		"one of whose pods run the old form":   {"Deployment", "{observedGeneration: 2, replicas: 1, availableReplicas: 1}", false, false, "RollingOut"},
		"one whose new pod does not start":     {"Deployment", "{observedGeneration: 2, replicas: 2, availableReplicas: 1, updatedReplicas: 1}", false, false, "RollingOut"},
		"one whose last old pod is yet to go":  {"Deployment", "{observedGeneration: 2, replicas: 2, availableReplicas: 2, updatedReplicas: 1}", true, false, "AsExpected"},
		"one that gave up and kept its old":    {"Deployment", "{observedGeneration: 2, replicas: 2, availableReplicas: 1, updatedReplicas: 1, " + fmt.Sprintf(conditions, "Progressing", "False", "ProgressDeadlineExceeded") + "}", false, true, "ProgressDeadlineExceeded"},
		"one whose controller looks elsewhere": {"Deployment", "{observedGeneration: 1, replicas: 1, availableReplicas: 1, updatedReplicas: 1}", false, false, "AwaitingController"},
		"one beyond its quota":                 {"Deployment", "{observedGeneration: 2, " + fmt.Sprintf(conditions, "ReplicaFailure", "True", "FailedCreate") + "}", false, true, "ReplicaFailure"},
		"one that gave up":                     {"Deployment", "{observedGeneration: 2, " + fmt.Sprintf(conditions, "Progressing", "False", "ProgressDeadlineExceeded") + "}", false, true, "ProgressDeadlineExceeded"},
		"a stateful set that runs":             {"StatefulSet", "{observedGeneration: 2, readyReplicas: 1, updatedReplicas: 1}", true, false, "AsExpected"},
		"a daemon set that runs":               {"DaemonSet", "{observedGeneration: 2, desiredNumberScheduled: 1, numberAvailable: 1, updatedNumberScheduled: 1}", true, false, "AsExpected"},
		"one that finds no node":               {"DaemonSet", "{observedGeneration: 2, desiredNumberScheduled: 0}", false, false, "NoNode"},
		"a replica set that runs":              {"ReplicaSet", "{observedGeneration: 2, availableReplicas: 1}", true, false, "AsExpected"},
		"a job that runs":                      {"Job", "{active: 1, ready: 1}", true, false, "AsExpected"},
		"a job that is done":                   {"Job", "{succeeded: 1, " + fmt.Sprintf(conditions, "Complete", "True", "x") + "}", true, false, "AsExpected"},
		"a job that failed":                    {"Job", "{" + fmt.Sprintf(conditions, "Failed", "True", "x") + "}", false, true, "JobFailed"},
		"a job that has not begun":             {"Job", "{active: 1}", false, false, "PodsNotReady"},
		"a cron job":                           {"CronJob", "{}", true, false, "AsExpected"},
		"a pod that is ready":                  {"Pod", "{phase: Running, " + fmt.Sprintf(conditions, "Ready", "True", "x") + "}", true, false, "AsExpected"},
		"a pod that runs but is not ready":     {"Pod", "{phase: Running, " + fmt.Sprintf(conditions, "Ready", "False", "x") + "}", false, false, "PodsNotReady"},
		"a pod for which there is no node":     {"Pod", "{phase: Pending, " + fmt.Sprintf(conditions, "PodScheduled", "False", "Unschedulable") + "}", false, false, "Unschedulable"},
		"a pod that failed":                    {"Pod", "{phase: Failed, message: evicted}", false, true, "PodFailed"},
		"a pod whose container failed":         {"Pod", "{phase: Failed}", false, true, "PodFailed"},
		"a pod that is done":                   {"Pod", "{phase: Succeeded}", true, false, "AsExpected"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			want := build(t, newJob(bearing[row.kind]))[1]
			live := observed(t, want, row.status)
			h := manifest.HealthOf(want, manifest.Ask(live, manifest.FactsOf(want)))
			require.Equal(t, row.ready, h.Ready, "%+v", h)
			require.Equal(t, row.failed, h.Failed, "%+v", h)
			require.Equal(t, row.reason, h.Reason)
			if !h.Ready {
				require.Contains(t, h.Message, want.GetKind())
				require.False(t, strings.HasSuffix(h.Message, ": "), "it says what is wrong: %q", h.Message)
			}

			stale := live.DeepCopy()
			stale.SetAnnotations(map[string]string{"littoral.dev/revision": "6-x"})
			h = manifest.HealthOf(want, manifest.Ask(stale, manifest.FactsOf(want)))
			require.False(t, h.Ready, "an answer about an earlier form of it does not count")
		})
	}
}

// TestHealthOf_whatWaitsForSomebody: if no controller continues by itself, the state says whom it waits for.
func TestHealthOf_whatWaitsForSomebody(t *testing.T) {
	t.Parallel()
	const template = "template: {spec: " + podSpec + "}"
	for name, row := range map[string]struct {
		manifest, status string
		failed           bool
		reason           string
	}{
		"a deployment that is paused": {
			"apps/v1 Deployment {paused: true, " + template + "}",
			"{observedGeneration: 2, replicas: 1, availableReplicas: 1, conditions: [{type: Progressing, status: Unknown, reason: DeploymentPaused}]}",
			true, "Paused",
		},
		"one whose newest pods are there": {
			"apps/v1 Deployment {paused: true, " + template + "}",
			"{observedGeneration: 2, replicas: 1, updatedReplicas: 1, conditions: [{type: Progressing, status: Unknown, reason: DeploymentPaused}]}",
			false, "PodsNotReady",
		},
		"a stateful set that is updated by hand": {
			"apps/v1 StatefulSet {updateStrategy: {type: OnDelete}, " + template + "}",
			"{observedGeneration: 2, readyReplicas: 1}", true, "KeepsPods",
		},
		"one whose pods are not ready": {
			"apps/v1 StatefulSet {updateStrategy: {type: OnDelete}, " + template + "}",
			"{observedGeneration: 2}", false, "PodsNotReady",
		},
		"one that is updated in part": {
			"apps/v1 StatefulSet {replicas: 3, updateStrategy: {rollingUpdate: {partition: 2}}, " + template + "}",
			"{observedGeneration: 2, readyReplicas: 3, updatedReplicas: 1}", true, "KeepsPods",
		},
		"one on its way to that": {
			"apps/v1 StatefulSet {replicas: 3, updateStrategy: {rollingUpdate: {partition: 1}}, " + template + "}",
			"{observedGeneration: 2, readyReplicas: 3, updatedReplicas: 1}", false, "RollingOut",
		},
		"a daemon set that is updated by hand": {
			"apps/v1 DaemonSet {updateStrategy: {type: OnDelete}, " + template + "}",
			"{observedGeneration: 2, desiredNumberScheduled: 1, numberAvailable: 1}", true, "KeepsPods",
		},
		"a job that is suspended": {"batch/v1 Job {suspend: true, " + template + "}", "{}", true, "Suspended"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			part := strings.SplitN(row.manifest, " ", 3)
			want := build(t, newJob("apiVersion: "+part[0]+"\nkind: "+part[1]+"\nmetadata: {name: x}\nspec: "+part[2]))[1]
			live := observed(t, want, row.status)
			h := manifest.HealthOf(want, manifest.Ask(live, manifest.FactsOf(want)))
			require.False(t, h.Ready, "%+v", h)
			require.Equal(t, row.failed, h.Failed, "%+v", h)
			require.Equal(t, row.reason, h.Reason, "%+v", h)
		})
	}
}

// TestHealthOf_aDeploymentAfterItsRollout: its controller watches a deadline only during a rollout, and only if there is one.
func TestHealthOf_aDeploymentAfterItsRollout(t *testing.T) {
	t.Parallel()
	for progress, timed := range map[string]bool{
		"[{type: Progressing, status: \"True\", reason: NewReplicaSetCreated}]":   true,
		"[{type: Progressing, status: \"True\", reason: ReplicaSetUpdated}]":      true,
		"[{type: Progressing, status: \"True\", reason: NewReplicaSetAvailable}]": false,
		"[{type: Progressing, status: Unknown, reason: DeploymentPaused}]":        false,
		"[]": false,
	} {
		want := build(t, newJob(bearing["Deployment"]))[1]
		live := observed(t, want, "{observedGeneration: 2, replicas: 2, availableReplicas: 1, updatedReplicas: 2, conditions: "+progress+"}")
		require.NoError(t, unstructured.SetNestedField(live.Object, int64(2), "spec", "replicas"))
		h := manifest.HealthOf(want, manifest.Ask(live, manifest.FactsOf(want)))
		require.False(t, h.Ready, progress)
		require.False(t, h.Failed, progress)
		require.Equal(t, timed, h.Timed, progress)
	}
}

func TestHealthOf_otherKinds(t *testing.T) {
	t.Parallel()
	sensor := build(t, newJob("apiVersion: example.org/v1\nkind: Sensor\nmetadata: {name: x}"))[1]
	require.True(
		t,
		manifest.HealthOf(sensor, manifest.Ask(sensor, manifest.FactsOf(sensor))).Ready,
		"it says nothing against it",
	)
	live := sensor.DeepCopy()
	live.Object["status"] = map[string]any{
		"conditions": []any{map[string]any{"type": "Ready", "status": "False", "message": "cold"}},
	}
	h := manifest.HealthOf(sensor, manifest.Ask(live, manifest.FactsOf(sensor)))
	require.False(t, h.Ready)
	require.Contains(t, h.Message, "cold")
	live.Object["status"] = map[string]any{
		"observedGeneration": int64(1), "conditions": []any{map[string]any{"type": "Ready", "status": "True"}},
	}
	live.SetGeneration(2)
	h = manifest.HealthOf(sensor, manifest.Ask(live, manifest.FactsOf(sensor)))
	require.False(t, h.Ready, "it was so before it was changed")
	live.Object["status"] = map[string]any{
		"conditions": []any{map[string]any{"type": "Ready", "status": "True", "observedGeneration": int64(1)}},
	}
	h = manifest.HealthOf(sensor, manifest.Ask(live, manifest.FactsOf(sensor)))
	require.False(t, h.Ready, "the same, of a kind that says so of each condition")
	service := build(t, newJob("apiVersion: v1\nkind: Service\nmetadata: {name: x}"))[1]
	require.True(t, manifest.HealthOf(service, nil).Ready, "to be there is all it can")
}

func TestScale(t *testing.T) {
	t.Parallel()
	const asks = `apiVersion: apps/v1
kind: Deployment
metadata: {name: x}
spec: {replicas: 2, template: {spec: {containers: [{name: a, resources: {requests: {cpu: "1.5", memory: 1Gi}, limits: {cpu: 2}}}, {name: b}]}}}`
	for name, row := range map[string]struct {
		remediation job.Remediation
		want        string // of the spec
	}{
		"up":   {job.ScaleUp, `replicas:3`},
		"down": {job.ScaleDown, `replicas:1`},
		"out":  {job.ScaleOut, `requests:map[cpu:2500m memory:2024Mi]`},
		"in":   {job.ScaleIn, `requests:map[cpu:500m memory:24Mi]`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := build(t, newJob(asks))[1]
			before := fmt.Sprint(o.Object["spec"])
			changed, err := manifest.Scale(o, job.Remedy{Type: row.remediation})
			require.NoError(t, err)
			require.True(t, changed)
			after := fmt.Sprint(o.Object["spec"])
			require.Contains(t, after, row.want)
			require.NotEqual(t, before, after)
			if name == "out" {
				require.Contains(t, after, "limits:map[cpu:2500m]", "a limit below the request would be refused")
			}
		})
	}
	limited := strings.Replace(asks, `requests: {cpu: "1.5", memory: 1Gi}, limits: {cpu: 2}`, "limits: {cpu: 2}", 1)
	o := build(t, newJob(limited))[1]
	_, err := manifest.Scale(o, job.Remedy{Type: job.ScaleOut})
	require.NoError(t, err)
	require.Contains(t, fmt.Sprint(o.Object["spec"]), "limits:map[cpu:3000m] requests:map[cpu:3000m memory:1000Mi]", "it had asked for its limit")
	for _, r := range []job.Remediation{job.ScaleUp, job.ScaleOut} {
		for _, kind := range []string{"DaemonSet", "Pod"} {
			if r == job.ScaleOut && kind == "DaemonSet" {
				continue
			}
			changed, err := manifest.Scale(build(t, newJob(bearing[kind]))[1], job.Remedy{Type: r})
			require.NoError(t, err)
			require.False(t, changed, "%s of a %s", r, kind)
		}
	}
}
