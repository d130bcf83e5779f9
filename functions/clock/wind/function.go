// Package wind suspends PingSources while there is nothing to watch, and resumes them when there is.
//
// It does so for PingSources with the label littoral.dev/rests=true. A suspended one wakes no function, so that an idle
// system has no pods at all; what its function looks after does not exist then.
package wind

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/littoral-project/littoral/shared/events"
	"github.com/littoral-project/littoral/shared/function"
	"github.com/littoral-project/littoral/shared/kube"
	"github.com/littoral-project/littoral/shared/store"
)

// Spec declares the function.
var Spec = function.Spec{
	Consumes:    []string{events.Tick, events.ApplicationFirst, events.PolicyFirst},
	Aside:       true,
	Timeout:     30 * time.Second,
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

// Run resumes or suspends every PingSource, depending on what there is. A roll-out resumes all of them, and the next
// tick of this function suspends them again.
func (f *Function) Run(ctx context.Context) error {
	if f.sources == nil {
		return nil
	}
	return f.db.Tx(ctx, func(ctx context.Context, tx *store.Tx) error {
		if err := tx.Lock(ctx, store.LockClocks); err != nil { // deciding and acting, one at a time
			return err
		}
		var busy bool
		if err := tx.QueryRow(ctx, selectBusy).Scan(&busy); err != nil {
			return fmt.Errorf("look for something to watch: %w", err)
		}
		var clocks []unstructured.Unstructured
		err := kube.Each(ctx, f.sources, rests, func(u *unstructured.Unstructured) { clocks = append(clocks, *u) })
		if err != nil {
			return fmt.Errorf("list the clocks: %w", err)
		}
		for i := range clocks {
			if err := f.wind(ctx, &clocks[i], busy); err != nil {
				return err
			}
		}
		return nil
	})
}

// wind sets one clock, if it is not as it shall be.
func (f *Function) wind(ctx context.Context, clock *unstructured.Unstructured, ticks bool) error {
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
		return nil
	}
	if err := unstructured.SetNestedField(wanted.Object, schedule, "spec", "schedule"); err != nil {
		return err
	}
	_, err := f.sources.Apply(ctx, clock.GetName(), wanted, metav1.ApplyOptions{FieldManager: manager, Force: true})
	if err != nil {
		return fmt.Errorf("set the clock %s: %w", clock.GetName(), err)
	}
	return nil
}
