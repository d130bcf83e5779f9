// Package ocm carries out jobs through Open Cluster Management: one ManifestWork per job, in the hub's namespace of the
// managed cluster that the job's target names, which the cluster's own agent applies (shared/docs/contracts.md
// §17).
//
// The hub is all that is ever asked. What a newcomer gets wrong: a ManifestWork's condition Available says that objects
// exist on the cluster, not that pods run; that comes from the feedback that each work asks for.
package ocm

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/littoral-project/littoral/shared/job"
	"github.com/littoral-project/littoral/shared/kube"
	"github.com/littoral-project/littoral/shared/orchestrator"
	"github.com/littoral-project/littoral/shared/orchestrator/manifest"
	"github.com/littoral-project/littoral/shared/problem"
)

// Resources of the hub.
var (
	Works = schema.GroupVersionResource{
		Group:    "work.open-cluster-management.io",
		Version:  "v1",
		Resource: "manifestworks",
	}
	Clusters = schema.GroupVersionResource{
		Group:    "cluster.open-cluster-management.io",
		Version:  "v1",
		Resource: "managedclusters",
	}
)

// attempts bounds how often a work is read again after somebody changed it between reading and writing.
const attempts = 5

// Hub is an orchestrator over one hub.
type Hub struct {
	client *kube.Client
	seen   *snapshot // answers Observe when set
}

var _ orchestrator.Orchestrator = (*Hub)(nil)

// snapshot is the status of all our works at one moment. Keeping the works themselves would take too much memory.
type snapshot struct {
	silent map[string]string              // by cluster, see silence
	works  map[string]orchestrator.Status // by "cluster/name"
}

// Config is read from the environment by envconfig.
type Config struct {
	// Hub says where the hub's API is: "in-cluster", or the path of a kubeconfig. Empty leaves jobs to agents that
	// poll.
	Hub string `envconfig:"OCM_HUB"`
}

// Open returns the orchestrator for the settings, without dialling; nil when they name no hub. wrap is put around its
// calls.
func Open(s Config, wrap func(http.RoundTripper) http.RoundTripper) (orchestrator.Orchestrator, error) {
	if s.Hub == "" {
		return nil, nil
	}
	client, err := kube.Open(s.Hub, wrap)
	if err != nil {
		return nil, fmt.Errorf("OCM_HUB: %w", err)
	}
	return New(client), nil
}

// New returns the orchestrator.
func New(client *kube.Client) *Hub { return &Hub{client: client} }

func (h *Hub) works(cluster string) dynamic.ResourceInterface {
	return h.client.Resource(Works).Namespace(cluster)
}

// Knows reports whether the cluster is registered at the hub.
func (h *Hub) Knows(ctx context.Context, cluster string) (bool, error) {
	_, err := h.cluster(ctx, cluster)
	return orchestrator.Known(err)
}

// Apply writes the job's work under the resource version it was read at, so that an older decision never overwrites a
// newer one.
func (h *Hub) Apply(ctx context.Context, j *job.Job) error {
	if _, err := h.cluster(ctx, j.Cluster); err != nil {
		return err
	}
	for range attempts {
		err := h.applyOnce(ctx, j)
		if !apierrors.IsConflict(err) && !apierrors.IsAlreadyExists(err) {
			return manifest.Classify(err, "ManifestWork "+orchestrator.NameOf(j))
		}
	}
	return problem.New(
		problem.Unavailable,
		"ManifestWork %s of %s keeps changing; try again",
		orchestrator.NameOf(j),
		j.Cluster,
	)
}

func (h *Hub) applyOnce(ctx context.Context, j *job.Job) error {
	have, err := h.work(ctx, j)
	if err != nil {
		return err
	}
	if have == nil {
		work, err := newWork(j, nil)
		if err != nil {
			return err
		}
		_, err = h.works(j.Cluster).Create(ctx, work, metav1.CreateOptions{FieldManager: orchestrator.Manager})
		return err
	}
	record, ours := manifest.ReadRecord(have)
	switch {
	case !ours || record.Subject != orchestrator.Subject(j):
		return orchestrator.Refuse(
			orchestrator.ReasonNameTaken, "%s has a ManifestWork %s that is not ours", j.Cluster, have.GetName(),
		)
	case record.Epoch > j.Epoch:
		return orchestrator.ErrFenced
	case have.GetDeletionTimestamp() != nil, leftOut(have):
		return orchestrator.ErrLeaving
	}
	work, err := newWork(j, have)
	if err != nil || work == nil {
		return err
	}
	part := leaveOut(have, work)
	_, err = h.works(j.Cluster).Update(ctx, work, metav1.UpdateOptions{FieldManager: orchestrator.Manager})
	if err == nil && part { // the next attempt adds what was left out
		return orchestrator.ErrLeaving
	}
	return err
}

// work returns the job's work; nil when there is none.
func (h *Hub) work(ctx context.Context, j *job.Job) (*unstructured.Unstructured, error) {
	have, err := h.works(j.Cluster).Get(ctx, orchestrator.NameOf(j), metav1.GetOptions{})
	if kube.IsAbsent(err) {
		return nil, nil
	}
	return have, err
}

// cluster returns the managed cluster. The error is a Refusal when the hub has none of that name, or has not accepted
// it.
func (h *Hub) cluster(ctx context.Context, name string) (*unstructured.Unstructured, error) {
	c, err := h.client.Resource(Clusters).Get(ctx, name, metav1.GetOptions{})
	if kube.IsAbsent(err) {
		return nil, notFound(name)
	}
	if err != nil {
		return nil, manifest.Classify(err, "ManagedCluster "+name)
	}
	if accepted, _, _ := unstructured.NestedBool(c.Object, "spec", "hubAcceptsClient"); !accepted {
		return nil, orchestrator.Refuse(
			"ClusterNotAccepted",
			"the hub has not accepted the cluster %s (hubAcceptsClient)",
			name,
		)
	}
	return c, nil
}

func notFound(name string) error {
	return orchestrator.Refuse(orchestrator.ReasonClusterNotFound, "no cluster %s is registered at the hub", name)
}

// Remove deletes the job's work, which stays until the cluster's agent has deleted what it applied.
func (h *Hub) Remove(ctx context.Context, j *job.Job) error {
	for range attempts {
		have, err := h.work(ctx, j)
		if err != nil || have == nil {
			return manifest.Classify(err, "ManifestWork "+orchestrator.NameOf(j))
		}
		record, ours := manifest.ReadRecord(have)
		if !ours || record.Subject != orchestrator.Subject(j) || have.GetDeletionTimestamp() != nil {
			return nil
		}
		if record.Epoch > j.Epoch {
			return orchestrator.ErrFenced
		}
		if err := h.delete(ctx, have); !apierrors.IsConflict(err) {
			return manifest.Classify(err, "ManifestWork "+have.GetName())
		}
	}
	return problem.New(
		problem.Unavailable,
		"ManifestWork %s of %s keeps changing; try again",
		orchestrator.NameOf(j),
		j.Cluster,
	)
}

// delete deletes the work unless it has changed since it was read.
func (h *Hub) delete(ctx context.Context, work *unstructured.Unstructured) error {
	uid, version := work.GetUID(), work.GetResourceVersion()
	err := h.works(work.GetNamespace()).Delete(ctx, work.GetName(), metav1.DeleteOptions{
		Preconditions: &metav1.Preconditions{UID: &uid, ResourceVersion: &version},
	})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// Observe reads the work's status and whether the cluster's agent answers.
func (h *Hub) Observe(ctx context.Context, j *job.Job) (orchestrator.Status, error) {
	silent, err := h.silent(ctx, j.Cluster)
	var refusal *orchestrator.Refusal
	switch {
	case errors.As(err, &refusal):
		return orchestrator.Status{Refused: refusal}, nil
	case err != nil:
		return orchestrator.Status{}, err
	}
	s, err := h.status(ctx, j)
	if err != nil {
		return s, manifest.Classify(err, "ManifestWork "+orchestrator.NameOf(j))
	}
	if s.Exists || j.Type != job.Delete { // an agent takes the finalizer off when all is deleted: that nothing is left is certain
		s.Silent = silent
	}
	return s, nil
}

// silent returns why the cluster counts as silent, "" when it does not.
func (h *Hub) silent(ctx context.Context, name string) (string, error) {
	if h.seen != nil {
		silent, known := h.seen.silent[name]
		if !known {
			return "", notFound(name)
		}
		return silent, nil
	}
	cluster, err := h.cluster(ctx, name)
	if err != nil {
		return "", err
	}
	return silence(cluster), nil
}

// status returns what the job's work says, whether or not its cluster answers.
func (h *Hub) status(ctx context.Context, j *job.Job) (orchestrator.Status, error) {
	if h.seen != nil {
		return h.seen.works[j.Cluster+"/"+orchestrator.NameOf(j)], nil
	}
	work, err := h.work(ctx, j)
	if err != nil || work == nil {
		return orchestrator.Status{}, err
	}
	return statusOf(work), nil
}

// silence says since when the hub has not heard of the cluster's agent; "" when it has.
func silence(cluster *unstructured.Unstructured) string {
	for _, c := range conditionsIn(cluster.Object, "status", "conditions") {
		if c.Type == "ManagedClusterConditionAvailable" && c.Status != "True" {
			return fmt.Sprintf("the hub has not heard of cluster %s since about %s (%s)", cluster.GetName(), c.Since, c.Reason)
		}
	}
	return ""
}

// Copies lists our works in all clusters.
func (h *Hub) Copies(ctx context.Context) ([]orchestrator.Copy, orchestrator.Orchestrator, error) {
	seen := &snapshot{silent: map[string]string{}, works: map[string]orchestrator.Status{}}
	var copies []orchestrator.Copy
	// Works first: if a cluster is removed in between, the cluster shows as missing and its works do not show as gone.
	selector := orchestrator.LabelManager + "=" + orchestrator.Manager
	err := kube.Each(ctx, h.client.Resource(Works), selector, func(o *unstructured.Unstructured) {
		if record, ours := manifest.ReadRecord(o); ours {
			seen.works[o.GetNamespace()+"/"+o.GetName()] = statusOf(o)
			copies = append(copies, orchestrator.Copy{Record: record, Cluster: o.GetNamespace()})
		}
	})
	if err == nil {
		err = kube.Each(ctx, h.client.Resource(Clusters), "", func(o *unstructured.Unstructured) {
			seen.silent[o.GetName()] = silence(o)
		})
	}
	return copies, &Hub{client: h.client, seen: seen}, manifest.Classify(err, "the list of works")
}

// standing is a condition of an object on the hub.
type standing struct {
	Type, Status, Reason, Message, Since string
	Generation                           int64
}

func conditionsIn(in map[string]any, path ...string) []standing {
	list, _, _ := unstructured.NestedSlice(in, path...)
	var all []standing
	for _, entry := range list {
		c, ok := entry.(map[string]any)
		if !ok {
			continue
		}
		text := func(name string) string { s, _ := c[name].(string); return s }
		generation, _ := c["observedGeneration"].(int64)
		all = append(all, standing{
			text("type"), text("status"), text("reason"), text("message"), text("lastTransitionTime"), generation,
		})
	}
	return all
}

// brief keeps a message short enough for a condition, in one line.
func brief(s string) string { return problem.Brief(strings.Join(strings.Fields(s), " "), 500) }
