// Package pause suspends PingSources while there is nothing that they look after, and resumes them when there is.
//
// The label littoral.dev/ticks-while of a PingSource names what that is. A suspended one wakes no function, so that an idle system
// has no pods at all. One without the label is never suspended.
package pause

import (
	"context"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"
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
	Consumes:    []string{events.Tick, events.ApplicationFirst, events.PolicyFirst, events.ClockWanted},
	NoPrewake:   true,
	Class:       function.Remote,
	Concurrency: 1,
	Kubernetes:  true,
}

const (
	ticksWhile = "littoral.dev/ticks-while" // the label of a PingSource that may rest
	resumes    = "littoral.dev/schedule"    // annotation: the schedule of one that rests
	never      = "0 0 31 2 *"               // the 31st of February
	manager    = "littoral-clock"           // of the fields that are set here

	// An application that is gone for its user may still have removals pending in a cluster, and policies in the rule
	// store.
	selectNeeds = `select need from (values
    ('work', exists (select from applications where deleted_at is null)
        or exists (select from jobs where state <> 'Finished')
        or exists (select from policies where deleted_at is null or rule_done < rule_wanted)
        or exists (select from outbox)),
    ('codeco', exists (select from applications where dialect = 'codeco' and deleted_at is null)),
    ('handovers', exists (select from handovers where state not in ('home', 'over'))),
    ('controllers', exists (select from controllers)),
    ('location-subscriptions', exists (select from mec_subscriptions where not expired)),
    ('channels', exists (select from channels c join applications a on a.id = c.application_id
        where c.network <> '' and a.desired = 'running' and a.deleted_at is null))
) as needs (need, there) where there`
	work       = "work"
	channels   = "channels"       // that may be out of QoS; with forecasts any work counts, since its node may fill
	lighthouse = "lighthouse"     // one is set
	objects    = "codeco-objects" // a cluster is set whose objects of CODECO are taken in
	anything   = "anything"       // of what is in the store
)

// needs are what PingSources can name.
var needs = []string{work, "codeco", "handovers", "controllers", "location-subscriptions", channels, lighthouse, objects, anything}

// PingSources are where clocks are kept.
var PingSources = schema.GroupVersionResource{Group: "sources.knative.dev", Version: "v1", Resource: "pingsources"}

// Function is the task with its store and the API of the cluster; without that it leaves clocks alone.
type Function struct {
	db         *store.DB
	sources    dynamic.ResourceInterface
	lighthouse bool
	objects    bool
	forecasts  bool
}

type config struct {
	// Clocks is where the PingSources are: "in-cluster", or the path of a kubeconfig. Empty leaves them as they are.
	Clocks    string `envconfig:"CLOCKS"`
	Namespace string `envconfig:"CLOCKS_NAMESPACE" default:"littoral"`

	Lighthouse string `envconfig:"LIGHTHOUSE"`
	Objects    string `envconfig:"CODECO_OBJECTS"`
	Forecasts  bool   `envconfig:"USE_FORECAST"   default:"false"`
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
	f.lighthouse, f.objects, f.forecasts = c.Lighthouse != "", c.Objects != "", c.Forecasts
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
		there, err := f.needs(ctx)
		if err != nil {
			return err
		}
		changed, err := f.setAll(ctx, there)
		if err != nil || !changed {
			return err
		}
	}
	return problem.New(problem.Unavailable, "what there is to watch comes and goes; try again")
}

// needs returns what there is to look after.
func (f *Function) needs(ctx context.Context) ([]string, error) {
	there, err := store.Collect(ctx, f.db, "look for something to watch", pgx.RowTo[string], selectNeeds)
	if len(there) > 0 {
		there = append(there, anything)
	}
	if f.forecasts && slices.Contains(there, work) {
		there = append(there, channels)
	}
	if f.lighthouse {
		there = append(there, lighthouse)
	}
	if f.objects {
		there = append(there, objects)
	}
	return there, err
}

// setAll sets every clock. changed is false if all were as they shall be.
func (f *Function) setAll(ctx context.Context, there []string) (changed bool, err error) {
	var clocks []unstructured.Unstructured
	err = kube.Each(ctx, f.sources, ticksWhile, func(u *unstructured.Unstructured) { clocks = append(clocks, *u) })
	if err != nil {
		return false, fmt.Errorf("list the clocks: %w", err)
	}
	for i := range clocks {
		need := clocks[i].GetLabels()[ticksWhile]
		// A need that this version does not know is one of another, which is being rolled out.
		set, err := f.set(ctx, &clocks[i], slices.Contains(there, need) || !slices.Contains(needs, need))
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
