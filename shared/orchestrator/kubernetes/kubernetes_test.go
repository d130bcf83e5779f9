package kubernetes_test

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/transport"

	"github.com/littoral-project/littoral/shared/job"
	"github.com/littoral-project/littoral/shared/kube"
	"github.com/littoral-project/littoral/shared/orchestrator"
	"github.com/littoral-project/littoral/shared/orchestrator/conformance"
	"github.com/littoral-project/littoral/shared/orchestrator/kubernetes"
	"github.com/littoral-project/littoral/shared/problem"
	"github.com/littoral-project/littoral/test/kubeapi"
)

// doubles are clusters by name.
type doubles map[string]*kubeapi.Server

func (d doubles) Names() []string { return []string{"one", "two"} }

func (d doubles) Open(name string) (*kube.Client, error) {
	s := d[name]
	if s == nil {
		return nil, orchestrator.Refuse(orchestrator.ReasonClusterNotFound, "no cluster %s", name)
	}
	return kube.New(s.URL, &transport.Config{})
}

func open(t *testing.T) (*conformance.Clusters, doubles) {
	t.Helper()
	d := doubles{"one": kubeapi.Start(t, nil, []string{"one-a", "one-b"}), "two": kubeapi.Start(t, nil, []string{"two-a"})}
	for _, s := range d {
		s.HasLinks()
	}
	return &conformance.Clusters{
		Orchestrator: kubernetes.New(d),
		Targets: []job.Target{
			{Orchestrator: "kubernetes", Cluster: "one", Node: "one-a"},
			{Orchestrator: "kubernetes", Cluster: "one", Node: "one-b"},
			{Orchestrator: "kubernetes", Cluster: "two", Node: "two-a"},
		},
		Objects: map[string]dynamic.Interface{"one": d["one"].Client(t), "two": d["two"].Client(t)},
		Parted:  func(_ *testing.T, cluster string, cut bool) { d[cluster].Cut(cut) },
		Peer: func(valid bool) {
			for _, s := range d {
				s.Peer(broken(valid)...)
			}
		},
		Turn: func() {
			d["one"].Work()
			d["two"].Work()
		},
	}, d
}

// broken names the Service that peers do not find valid.
func broken(valid bool) []string {
	if valid {
		return nil
	}
	return []string{"world-svc"}
}

func TestConformance(t *testing.T) {
	t.Parallel()
	can := conformance.Can{Silence: true, Refuse: true, Slow: true, Rollout: true, Done: true, Share: true, Link: true}
	conformance.Run(t, can, func(t *testing.T) conformance.World {
		t.Helper()
		w, _ := open(t)
		return w
	})
}

func TestCopiesOfPlacesThatAnswer(t *testing.T) {
	t.Parallel()
	for name, fail := range map[string]func(*kubeapi.Server){
		"silent":  func(s *kubeapi.Server) { s.Cut(true) },
		"refuses": func(s *kubeapi.Server) { s.Deny(apierrors.NewUnauthorized("expired")) },
		"broken":  func(s *kubeapi.Server) { s.Deny(apierrors.NewInternalError(errors.New("no disk"))) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, d := open(t)
			j := conformance.Job(w.Targets[2], 1)
			require.NoError(t, w.Orchestrator.Apply(t.Context(), j))
			fail(d["one"])
			copies, _, err := w.Orchestrator.Copies(t.Context())
			require.NoError(t, err)
			require.Len(t, copies, 1)
			require.Equal(t, j.Cluster, copies[0].Cluster)
		})
	}
}

// TestCopies_asksNoSilentClusterAgain: each further call would wait for the timeout.
func TestCopies_asksNoSilentClusterAgain(t *testing.T) {
	t.Parallel()
	w, d := open(t)
	silence := func(o orchestrator.Orchestrator, at int) string {
		s, err := o.Observe(t.Context(), conformance.Job(w.Targets[at], 1))
		require.NoError(t, err)
		return s.Silent
	}
	d["one"].Cut(true)
	_, seen, err := w.Orchestrator.Copies(t.Context())
	require.NoError(t, err)
	require.Empty(t, silence(seen, 2))
	d["two"].Cut(true)
	require.Contains(t, silence(seen, 2), "cluster two does not answer", "it has ceased to")
	d["one"].Cut(false)
	d["two"].Cut(false)
	require.Contains(t, silence(seen, 0), "cluster one does not answer")
	require.Contains(t, silence(seen, 2), "cluster two does not answer")
	require.Empty(t, silence(w.Orchestrator, 0), "the next look asks anew")

	over, cancel := context.WithCancel(t.Context())
	cancel()
	_, seen, err = w.Orchestrator.Copies(over)
	require.NoError(t, err)
	require.Empty(t, silence(seen, 0), "that our own time was up says nothing about the cluster")
}

// TestObserve_ofAClusterWhoseServerIsDead: a proxy in front of it answers in its place.
func TestObserve_ofAClusterWhoseServerIsDead(t *testing.T) {
	t.Parallel()
	secrets := schema.GroupResource{Resource: "secrets"}
	for name, answer := range map[string]error{
		"500": apierrors.NewInternalError(errors.New("no leader")),
		"502": apierrors.NewGenericServerResponse(http.StatusBadGateway, "get", secrets, "", "no upstream", 0, true),
		"503": apierrors.NewServiceUnavailable("no healthy upstream"),
		"504": apierrors.NewTimeoutError("the upstream is late", 0),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, d := open(t)
			j := conformance.Job(w.Targets[0], 1)
			require.NoError(t, w.Orchestrator.Apply(t.Context(), j))
			d["one"].Deny(answer)
			_, seen, err := w.Orchestrator.Copies(t.Context())
			require.NoError(t, err)
			for _, o := range []orchestrator.Orchestrator{w.Orchestrator, seen} {
				s, err := o.Observe(t.Context(), j)
				require.NoError(t, err)
				require.Contains(t, s.Silent, "cluster one does not answer")
			}
			for _, err := range []error{w.Orchestrator.Apply(t.Context(), j), w.Orchestrator.Remove(t.Context(), j)} {
				require.Equal(t, problem.Unavailable, problem.KindOf(err), "it may be short")
				require.NotErrorIs(t, err, orchestrator.ErrSilent)
			}
		})
	}
}

// TestObserve_ofAClusterInWhosePlaceAnotherAnswers: a 404 of another server does not mean that nothing runs.
func TestObserve_ofAClusterInWhosePlaceAnotherAnswers(t *testing.T) {
	t.Parallel()
	w, d := open(t)
	j := conformance.Job(w.Targets[0], 1)
	state, conditions := w.Do(t, j)
	require.Equal(t, job.Finished, state, "%v", conditions)
	d["one"].Deny(apierrors.NewGenericServerResponse(
		http.StatusNotFound, "get", schema.GroupResource{Resource: "secrets"}, "", "default backend - 404", 0, true,
	))
	for _, typ := range []job.Type{job.Create, job.Delete} {
		s, err := w.Orchestrator.Observe(t.Context(), conformance.As(j, typ))
		require.NoError(t, err)
		state, conditions := s.Verdict(conformance.As(j, typ))
		require.NotEqual(t, job.Finished, state, "%v", conditions)
		require.NotContains(t, fmt.Sprint(conditions), orchestrator.ReasonMissing)
	}
	var refusal *orchestrator.Refusal
	require.ErrorAs(t, w.Orchestrator.Remove(t.Context(), j), &refusal)
	require.ErrorAs(t, w.Orchestrator.Apply(t.Context(), j), &refusal)
	require.NotEqual(t, orchestrator.ReasonNodeNotFound, refusal.Reason)
}

// TestOpen_withoutTheDirectory: an unreadable directory does not mean that there are no clusters.
func TestOpen_withoutTheDirectory(t *testing.T) {
	t.Parallel()
	for reason, path := range map[string]string{
		"BadKubeconfig": filepath.Join(t.TempDir(), "none"), orchestrator.ReasonClusterNotFound: t.TempDir(),
	} {
		_, err := (&kubernetes.Directory{Path: path}).Open("one")
		var refusal *orchestrator.Refusal
		require.ErrorAs(t, err, &refusal)
		require.Equal(t, reason, refusal.Reason)
	}
}

// TestObserve_ofWhatDoesNotGo: the condition says what a removal waits for.
func TestObserve_ofWhatDoesNotGo(t *testing.T) {
	t.Parallel()
	for of, what := range map[string]string{
		"/deployments/web": "Deployment web", "/configmaps/settings": "ConfigMap settings",
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			w, d := open(t)
			j := conformance.Job(w.Targets[0], 1)
			state, conditions := w.Do(t, j)
			require.Equal(t, job.Finished, state, "%v", conditions)
			path := d["one"].Paths(of)[0]
			held := func(by ...string) { d["one"].Change(path, func(o *kubeapi.Object) { o.SetFinalizers(by) }) }
			held("example.org/hold")
			removal := conformance.As(j, job.Delete)
			for range 2 {
				require.NoError(t, w.Orchestrator.Remove(t.Context(), removal))
				w.Turn()
			}
			s, err := w.Orchestrator.Observe(t.Context(), removal)
			require.NoError(t, err)
			state, conditions = s.Verdict(removal)
			require.Equal(t, job.Progressing, state)
			require.Contains(t, fmt.Sprint(conditions), what+" is still there, held by example.org/hold")
			held()
			state, conditions = w.Do(t, removal)
			require.Equal(t, job.Finished, state, "%v", conditions)
		})
	}
}

// TestConformance_real runs the suite against real clusters, if there are any.
func TestConformance_real(t *testing.T) {
	w, kubeconfigs := conformance.Real(t, "kubernetes")
	dir := t.TempDir()
	for name, path := range kubeconfigs {
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), text, 0o600))
	}
	w.Orchestrator = kubernetes.New(&kubernetes.Directory{Path: dir})
	conformance.Run(t, conformance.Can{Refuse: true, Share: true}, func(t *testing.T) conformance.World {
		t.Helper()
		return w
	})
}

// TestRemove_afterItWasCutOffBeforeTheNamespace: the inventory, with which copies are found, is kept until the deletion
// of the namespace has been requested.
func TestRemove_afterItWasCutOffBeforeTheNamespace(t *testing.T) {
	t.Parallel()
	w, d := open(t)
	j := conformance.Job(w.Targets[0], 1)
	require.NoError(t, w.Orchestrator.Apply(t.Context(), j))
	d["one"].Refuse(func(verb, path string) error {
		if verb == http.MethodDelete && strings.HasSuffix(path, "/namespaces/"+j.Namespace) {
			return apierrors.NewInternalError(errors.New("away"))
		}
		return nil
	})
	remove := func() (err error) {
		for range 3 {
			if err = w.Orchestrator.Remove(t.Context(), j); err != nil {
				return err
			}
			d["one"].Work()
		}
		return nil
	}
	require.Error(t, remove())
	require.NotEmpty(t, d["one"].Paths("/secrets/"))
	require.NotEmpty(t, d["one"].Paths("/namespaces/"+j.Namespace))
	d["one"].Refuse(nil)
	copies, _, err := w.Orchestrator.Copies(t.Context())
	require.NoError(t, err)
	require.Len(t, copies, 1)
	require.NoError(t, remove())
	require.Empty(t, d["one"].Paths("/namespaces/"+j.Namespace))
}

// TestApply_goesOnWithWhatItDropped: after an attempt that applied the new objects of a replacement but could not
// delete the old ones.
func TestApply_goesOnWithWhatItDropped(t *testing.T) {
	t.Parallel()
	for name, then := range map[string]func(*job.Job) *job.Job{
		"as it is":     func(j *job.Job) *job.Job { return j },
		"and scaled":   func(j *job.Job) *job.Job { return conformance.Ask(j, job.ScaleUp) },
		"and patched":  func(j *job.Job) *job.Job { return conformance.Ask(j, job.Patch) },
		"and replaced": func(j *job.Job) *job.Job { return conformance.Ask(j, job.ReplaceIt) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, d := open(t)
			j := conformance.Job(w.Targets[0], 1)
			worker := strings.ReplaceAll(j.Instruction.Contents[0].YAML, "name: web", "name: worker")
			j.Instruction.Contents = append(j.Instruction.Contents, job.Content{Name: "worker", YAML: worker})
			require.NoError(t, w.Orchestrator.Apply(t.Context(), j))
			d["one"].Work()
			next := conformance.As(j, job.Replace)
			conformance.With(next, conformance.Image, 2)
			d["one"].Refuse(func(verb, _ string) error {
				if verb == http.MethodDelete {
					return errors.New("away")
				}
				return nil
			})
			require.Error(t, w.Orchestrator.Apply(t.Context(), next))
			d["one"].Refuse(nil)
			d["one"].Work()
			s, err := w.Orchestrator.Observe(t.Context(), next)
			require.NoError(t, err)
			require.True(t, s.Outdated(next), "it is to be gone on with")
			require.NotEmpty(t, s.Objects)
			for _, h := range s.Objects {
				require.NotContains(t, h.Object, "worker", "what nobody wants does not count")
			}
			next = then(next)
			require.NoError(t, w.Orchestrator.Apply(t.Context(), next))
			d["one"].Work()
			require.Empty(t, d["one"].Paths("/deployments/worker"))
			require.NotEmpty(t, d["one"].Paths("/deployments/web"))
			s, err = w.Orchestrator.Observe(t.Context(), next)
			require.NoError(t, err)
			require.False(t, s.Outdated(next))
		})
	}
}

// TestApply_dropsWhatIsLarge: the inventory, a Secret, has no room for the content of both.
func TestApply_dropsWhatIsLarge(t *testing.T) {
	t.Parallel()
	w, d := open(t)
	with := func(j *job.Job, name string) *job.Job {
		conformance.With(j, conformance.Image, 1)
		j.Instruction.Contents = append(j.Instruction.Contents, job.Content{
			Name: name, YAML: "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: " + name + "}\ndata: {a: " + strings.Repeat("x", 600<<10) + "}",
		})
		return j
	}
	j := with(conformance.Job(w.Targets[0], 1), "one")
	state, conditions := w.Do(t, j)
	require.Equal(t, job.Finished, state, "%v", conditions)
	next := with(conformance.As(j, job.Replace), "two")
	state, conditions = w.Do(t, next)
	require.Equal(t, job.Finished, state, "%v", conditions)
	require.Empty(t, d["one"].Paths("/configmaps/one"))
	require.NotEmpty(t, d["one"].Paths("/configmaps/two"))
}

// TestApply_keepsWhatItCannotReplace: pods that cannot be changed are deleted only for others that the API server takes.
func TestApply_keepsWhatItCannotReplace(t *testing.T) {
	t.Parallel()
	for kind, text := range map[string]string{
		"pods":        "apiVersion: v1\nkind: Pod\nmetadata: {name: once}\nspec: %s",
		"jobs":        "apiVersion: batch/v1\nkind: Job\nmetadata: {name: once}\nspec: {template: {spec: %s}}",
		"replicasets": "apiVersion: apps/v1\nkind: ReplicaSet\nmetadata: {name: once}\nspec: {template: {spec: %s}}",
	} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			w, d := open(t)
			with := func(j *job.Job, pod string) *job.Job {
				j.Instruction.Contents = []job.Content{{Name: "once", YAML: fmt.Sprintf(text, pod)}}
				return j
			}
			j := with(conformance.Job(w.Targets[0], 1), `{containers: [{name: c, image: "i:1"}]}`)
			state, conditions := w.Do(t, j)
			require.Equal(t, job.Finished, state, "%v", conditions)
			path := d["one"].Paths("/" + kind + "/once")[0]
			before := d["one"].Get(path).GetUID()
			next := with(conformance.As(j, job.Replace), `{containers: [{name: c, image: ""}]}`)
			answer := func(err error) {
				d["one"].Refuse(func(verb, path string) error {
					if verb == http.MethodPost && strings.HasSuffix(path, "/"+kind) {
						return err
					}
					return nil
				})
			}
			forbidden := func(why string) error {
				return apierrors.NewForbidden(schema.GroupResource{Resource: kind}, "once", errors.New(why))
			}
			for reason, err := range map[string]error{
				"Invalid":   apierrors.NewInvalid(schema.GroupKind{}, "once", nil),
				"Forbidden": forbidden(`violates PodSecurity "restricted:latest"`),
			} {
				answer(err)
				state, conditions = w.Do(t, next)
				require.Equal(t, job.Degraded, state, "%v", conditions)
				require.Contains(t, fmt.Sprint(conditions), reason)
				require.Equal(t, before, d["one"].Get(path).GetUID())
			}

			for _, err := range []error{
				apierrors.NewBadRequest(`admission webhook "example.org" does not support dry run`),
				forbidden("exceeded quota: small, requested: pods=1"), // which the one that is there uses
			} {
				before = d["one"].Get(path).GetUID()
				answer(err)
				state, conditions = w.Do(t, next)
				require.Equal(t, job.Finished, state, "%v", conditions)
				require.NotEqual(t, before, d["one"].Get(path).GetUID())
				require.Len(t, d["one"].Paths("/"+kind+"/"), 1)
				next = with(conformance.As(next, job.Replace), `{containers: [{name: c, image: "i:1"}]}`)
			}
		})
	}
}

// TestApply_leavesWhatBelongsToOthers: objects outside the application's namespace that existed before, and objects of
// another component.
func TestApply_leavesWhatBelongsToOthers(t *testing.T) {
	t.Parallel()
	w, d := open(t)
	const role = "/apis/rbac.authorization.k8s.io/v1/clusterroles/admin"
	d["one"].Put(t, role, `{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRole","metadata":{"name":"admin"}}`)
	before := d["one"].Get(role)
	refused := func(j *job.Job) string {
		var refusal *orchestrator.Refusal
		require.ErrorAs(t, w.Orchestrator.Apply(t.Context(), j), &refusal)
		require.Equal(t, orchestrator.ReasonNameTaken, refusal.Reason)
		return refusal.Message
	}
	j := conformance.Job(w.Targets[0], 1)
	j.Instruction.Contents = []job.Content{{
		Name: "admin", YAML: "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: admin}\nrules: []",
	}}
	require.Contains(t, refused(j), "nobody here")
	require.NoError(t, w.Orchestrator.Remove(t.Context(), j))
	require.Equal(t, before, d["one"].Get(role))

	first := conformance.Job(w.Targets[0], 7)
	require.NoError(t, w.Orchestrator.Apply(t.Context(), first))
	second := *first
	second.ID, second.Component, second.Epoch = uuid.New(), "other", 1
	require.Contains(t, refused(&second), "web of application "+first.ApplicationID.String())
	require.NoError(t, w.Orchestrator.Remove(t.Context(), first))
	d["one"].Work()
	require.NoError(t, w.Orchestrator.Remove(t.Context(), first))
	require.NoError(t, w.Orchestrator.Apply(t.Context(), &second), "it is free now")
}

// TestApply_ofAFieldThatNobodyKnows: API servers answer it with 500, like an internal failure
// (kubernetes/kubernetes#139253).
func TestApply_ofAFieldThatNobodyKnows(t *testing.T) {
	t.Parallel()
	w, d := open(t)
	d["one"].Refuse(func(_, path string) error {
		if !strings.HasSuffix(path, "/deployments/web") {
			return nil
		}
		return &apierrors.StatusError{ErrStatus: metav1.Status{
			Status: metav1.StatusFailure, Code: http.StatusInternalServerError,
			Message: "failed to create typed patch object (x/web; apps/v1, Kind=Deployment): .spec.replica: field not declared in schema",
		}}
	})
	var refusal *orchestrator.Refusal
	require.ErrorAs(t, w.Orchestrator.Apply(t.Context(), conformance.Job(w.Targets[0], 1)), &refusal)
	require.Equal(t, orchestrator.ReasonBadManifest, refusal.Reason)
	require.Contains(t, refusal.Message, ".spec.replica: field not declared in schema")
}

// TestObserve_ofWhatComponentsHaveDifferently: the last one applied counts, and the object is not taken back from its
// owner.
func TestObserve_ofWhatComponentsHaveDifferently(t *testing.T) {
	t.Parallel()
	w, d := open(t)
	first := conformance.Job(w.Targets[0], 1)
	second := *first
	second.ID, second.Component = uuid.New(), "other"
	second.Instruction.Contents = []job.Content{{
		Name: "settings", YAML: "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings}\ndata: {a: c}",
	}}
	require.NoError(t, w.Orchestrator.Apply(t.Context(), first))
	require.NoError(t, w.Orchestrator.Apply(t.Context(), &second))
	for _, j := range []*job.Job{first, &second} {
		s, err := w.Orchestrator.Observe(t.Context(), j)
		require.NoError(t, err)
		require.False(t, s.Outdated(j))
	}
	d["one"].Change("/api/v1/namespaces/"+first.Namespace+"/configmaps/settings", func(o *kubeapi.Object) {
		notes := o.GetAnnotations()
		notes["littoral.dev/revision"] = "an older one"
		o.SetAnnotations(notes)
	})
	s, err := w.Orchestrator.Observe(t.Context(), first)
	require.NoError(t, err)
	require.True(t, s.Outdated(first), "what nobody wants is put right")
}

// TestApply_ofAKindThatTheJobDefines: the API server has accepted the definition, but needs a moment until it serves
// the kind.
func TestApply_ofAKindThatTheJobDefines(t *testing.T) {
	t.Parallel()
	const definition = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: oxen.example.org}
spec: {group: example.org, scope: Namespaced, names: {kind: Ox, plural: oxen}, versions: [{name: v1}]}
`
	const ox = "apiVersion: example.org/v1\nkind: Ox\nmetadata: {name: ox}\n"
	for name, manifests := range map[string]string{
		"before": definition + "---\n" + ox,
		"after":  ox + "---\n" + definition,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, d := open(t)
			j := conformance.Job(w.Targets[0], 1)
			j.Instruction.Contents = append(j.Instruction.Contents, job.Content{Name: "oxen", YAML: manifests})
			err := w.Orchestrator.Apply(t.Context(), j)
			var refusal *orchestrator.Refusal
			require.NotErrorAs(t, err, &refusal)
			require.Equal(t, problem.Unavailable, problem.KindOf(err))
			require.Contains(t, err.Error(), "Ox ox")
			require.NotEmpty(t, d["one"].Paths("/customresourcedefinitions/oxen.example.org"))
			d["one"].Define("example.org", "v1", "Ox", "oxen", true)
			require.NoError(t, w.Orchestrator.Apply(t.Context(), j))
			require.NotEmpty(t, d["one"].Paths("/oxen/ox"))
		})
	}
	w, _ := open(t)
	j := conformance.Job(w.Targets[0], 1)
	other := strings.Replace(ox, "/v1", "/v2", 1)
	j.Instruction.Contents = append(j.Instruction.Contents, job.Content{Name: "oxen", YAML: definition + "---\n" + other})
	var refusal *orchestrator.Refusal
	require.ErrorAs(t, w.Orchestrator.Apply(t.Context(), j), &refusal, "no time will bring a version that is not defined")
}

// TestApply_intoNoOtherNamespace: whatever a manifest claims to be a definition (anyone may define a kind with that
// name), and whatever API names it gives to a kind.
func TestApply_intoNoOtherNamespace(t *testing.T) {
	t.Parallel()
	const claim = `kind: CustomResourceDefinition
metadata: {name: claim}
spec: {group: %s, scope: Cluster, names: {kind: %s, plural: namespaces/kube-system/%s}, versions: [{name: v1}]}
---
apiVersion: %s
kind: %s
metadata: {name: mine}
`
	for name, manifests := range map[string]string{
		"by a kind of Kubernetes": "apiVersion: apiextensions.k8s.io/v1\n" + fmt.Sprintf(claim, `""`, "Secret", "secrets", "v1", "Secret"),
		"by another definition":   "apiVersion: example.org/v1\n" + fmt.Sprintf(claim, "example.net", "Ox", "oxen", "example.net/v1", "Ox"),
		"by a kind of its own":    "apiVersion: apiextensions.k8s.io/v1\n" + fmt.Sprintf(claim, "example.net", "Ox", "oxen", "example.net/v1", "Ox"),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, d := open(t)
			d["one"].Put(t, "/api/v1/namespaces/kube-system", `{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"kube-system"}}`)
			d["one"].Define("example.org", "v1", "CustomResourceDefinition", "customresourcedefinitions", true)
			d["one"].Define("example.net", "v1", "Ox", "oxen", true)
			j := conformance.Job(w.Targets[0], 1)
			j.Instruction.Contents = append(j.Instruction.Contents, job.Content{Name: "claim", YAML: manifests})
			err := w.Orchestrator.Apply(t.Context(), j)
			require.Empty(t, d["one"].Paths("/namespaces/kube-system/"), "%v", err)
		})
	}
}

// TestApply_sharesWhatIsOfOld: earlier versions also set the epoch and job id on objects without pods; these do not
// concern other jobs.
func TestApply_sharesWhatIsOfOld(t *testing.T) {
	t.Parallel()
	for name, last := range map[string]int{"whose job goes first": 1, "whose job goes last": 0} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, d := open(t)
			old := conformance.Job(w.Targets[0], 5)
			require.NoError(t, w.Orchestrator.Apply(t.Context(), old))
			path := "/api/v1/namespaces/" + old.Namespace + "/configmaps/settings"
			d["one"].Change(path, func(o *kubeapi.Object) {
				notes := o.GetAnnotations()
				notes["littoral.dev/epoch"] = "5"
				o.SetAnnotations(notes)
			})
			d["one"].Change(d["one"].Paths("/secrets/")[0], func(o *kubeapi.Object) {
				text, _, _ := unstructured.NestedString(o.Object, "data", "objects")
				body, err := base64.StdEncoding.DecodeString(text)
				require.NoError(t, err)
				label := `"littoral.dev/job":"` + old.ID.String() + `"`
				aged := strings.ReplaceAll(string(body), `"app.kubernetes.io/managed-by"`, label+`,"app.kubernetes.io/managed-by"`)
				text = base64.StdEncoding.EncodeToString([]byte(aged))
				require.NoError(t, unstructured.SetNestedField(o.Object, text, "data", "objects"))
			})
			other := *old
			other.ID, other.Component, other.Epoch = uuid.New(), "other", 1
			other.Instruction.Contents = old.Instruction.Contents[1:] // no pods
			require.NoError(t, w.Orchestrator.Apply(t.Context(), &other))
			jobs := []*job.Job{old, &other}
			for _, j := range []*job.Job{jobs[1-last], jobs[last]} {
				require.NotNil(t, d["one"].Get(path), "it goes with the last that lists it")
				require.NoError(t, w.Orchestrator.Remove(t.Context(), j))
				if j == jobs[last] {
					require.Nil(t, d["one"].Get(path))
				}
				d["one"].Work()
				require.NoError(t, w.Orchestrator.Remove(t.Context(), j))
			}
		})
	}
}

// TestApply_fencesWhatBearsNoEpoch: an older decision is delayed before it creates the object, or after it has read it,
// and a newer one comes in between.
func TestApply_fencesWhatBearsNoEpoch(t *testing.T) {
	t.Parallel()
	for _, verb := range []string{http.MethodGet, http.MethodPatch} {
		t.Run(verb, func(t *testing.T) {
			t.Parallel()
			w, d := open(t)
			older := conformance.Job(w.Targets[0], 1)
			older.Instruction.Contents = older.Instruction.Contents[1:] // no pods
			require.NoError(t, w.Orchestrator.Apply(t.Context(), older))
			newer := conformance.As(older, job.Replace)
			newer.Epoch = 2
			newer.Instruction.Contents = []job.Content{{
				Name: "settings", YAML: strings.Replace(older.Instruction.Contents[0].YAML, "a: b", "a: c", 1),
			}}
			path := "/api/v1/namespaces/" + older.Namespace + "/configmaps/settings"
			comeBetween := sync.OnceValue(func() error { return w.Orchestrator.Apply(t.Context(), newer) })
			slow := kubernetes.New(held{d, func(r *http.Request) {
				if r.Method == verb && r.URL.Path == path {
					assert.NoError(t, comeBetween())
				}
			}})
			require.ErrorIs(t, slow.Apply(t.Context(), older), orchestrator.ErrFenced)
			require.Equal(t, map[string]any{"a": "c"}, d["one"].Get(path).Object["data"])
		})
	}
}

// held are doubles that show each call to the test before it is made.
type held struct {
	doubles

	show func(*http.Request)
}

func (h held) Open(name string) (*kube.Client, error) {
	return kube.New(h.doubles[name].URL, &transport.Config{WrapTransport: func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(r *http.Request) (*http.Response, error) {
			h.show(r)
			return next.RoundTrip(r)
		})
	}})
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
