// Package pause suspends PingSources while there is nothing to watch, and resumes them when there is.
//
// It does so for PingSources with the label littoral.dev/rests=true. A suspended one wakes no function, so that an idle
// system has no pods at all; what its function looks after does not exist then.
package pause

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/littoral-project/littoral/shared/events"
	"github.com/littoral-project/littoral/shared/function"
	"github.com/littoral-project/littoral/shared/kube"
	"github.com/littoral-project/littoral/shared/problem"
	"github.com/littoral-project/littoral/shared/store"
)

// Spec declares the function.
var Spec = function.Spec{
	Consumes:    []string{events.Tick, events.ApplicationFirst, events.PolicyFirst},
	NoPrewake:   true,
	Class:       function.Remote,
	Concurrency: 1,
	Kubernetes:  true,
}

const (
	rests   = "littoral.dev/rests=true" // the label of a PingSource that may rest
	resumes = "littoral.dev/schedule"   // annotation: the schedule of one that rests
	never   = "0 0 31 2 *"              // the 31st of February
	manager = "littoral-clock"          // of the fields that are set here

	// An application that is gone for its user may still have removals pending in a cluster, and policies in the rule
	// store.
	selectBusy = `select exists (select from applications where deleted_at is null)
or exists (select from jobs where state <> 'Finished')
or exists (select from policies where deleted_at is null or rule_done < rule_wanted)
or exists (select from outbox)`
)

// PingSources are where clocks are kept.
var PingSources = schema.GroupVersionResource{Group: "sources.knative.dev", Version: "v1", Resource: "pingsources"}

// Function is the task with its store and the API of the cluster; without that it leaves clocks alone.
type Function struct {
	db      *store.DB
	sources dynamic.ResourceInterface
}

type config struct {
	// Clocks is where the PingSources are: "in-cluster", or the path of a kubeconfig. Empty leaves them as they are.
	Clocks    string `envconfig:"CLOCKS"`
	Namespace string `envconfig:"CLOCKS_NAMESPACE" default:"littoral"`
}

// New reads the settings and dials nothing.
func New(env *function.Env) (*Function, error) {
	f := &Function{db: env.DB}
	var c config
	if err := env.Config(&c); err != nil || c.Clocks == "" {
		return f, err
	}
	client, err := kube.Open(c.Clocks, env.Observe.Transport)
	if err != nil {
		return nil, fmt.Errorf("CLOCKS: %w", err)
	}
	f.sources = client.Resource(PingSources).Namespace(c.Namespace)
	return f, nil
}

// rounds bounds how often Run looks again. Each further round means that what there is to watch appeared or went away
// during the one before.
const rounds = 5

// Run resumes or suspends every PingSource, depending on what there is. A roll-out resumes all of them, and the next
// tick of this function suspends them again.
//
// No lock is held while the API server is asked. Instead, whoever has set a PingSource looks again, until what it has set
// is what is needed then: so of several calls at a time the last one sets them right.
func (f *Function) Run(ctx context.Context) error {
	if f.sources == nil {
		return nil
	}
	for range rounds {
		busy, err := f.busy(ctx)
		if err != nil {
			return err
		}
		changed, err := f.setAll(ctx, busy)
		if err != nil || !changed {
			return err
		}
	}
	return problem.New(problem.Unavailable, "there is something to watch now and then; try again")
}

// busy reports whether there is something to watch.
func (f *Function) busy(ctx context.Context) (busy bool, err error) {
	if err := f.db.QueryRow(ctx, selectBusy).Scan(&busy); err != nil {
		return false, fmt.Errorf("look for something to watch: %w", err)
	}
	return busy, nil
}

// setAll sets every clock. changed is false if all were as they shall be.
func (f *Function) setAll(ctx context.Context, busy bool) (changed bool, err error) {
	var clocks []unstructured.Unstructured
	err = kube.Each(ctx, f.sources, rests, func(u *unstructured.Unstructured) { clocks = append(clocks, *u) })
	if err != nil {
		return false, fmt.Errorf("list the clocks: %w", err)
	}
	for i := range clocks {
		set, err := f.set(ctx, &clocks[i], busy)
		if err != nil {
			return false, err
		}
		changed = changed || set
	}
	return changed, nil
}

// set sets one clock; set is false if it is as it shall be.
func (f *Function) set(ctx context.Context, clock *unstructured.Unstructured, ticks bool) (set bool, err error) {
	schedule, _, _ := unstructured.NestedString(clock.Object, "spec", "schedule")
	kept := clock.GetAnnotations()[resumes]
	wanted := &unstructured.Unstructured{}
	wanted.SetGroupVersionKind(clock.GroupVersionKind())
	wanted.SetName(clock.GetName())
	switch {
	case ticks && schedule == never && kept != "":
		schedule = kept
	case !ticks && schedule != never:
		wanted.SetAnnotations(map[string]string{resumes: schedule})
		schedule = never
	default:
		return false, nil
	}
	if err := unstructured.SetNestedField(wanted.Object, schedule, "spec", "schedule"); err != nil {
		return false, err
	}
	_, err = f.sources.Apply(ctx, clock.GetName(), wanted, metav1.ApplyOptions{FieldManager: manager, Force: true})
	if err != nil {
		return false, fmt.Errorf("set the clock %s: %w", clock.GetName(), err)
	}
	return true, nil
}
