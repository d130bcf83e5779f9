package broker

import (
	"context"
	"fmt"
	"sync"

	cloudevents "github.com/cloudevents/sdk-go/v2/event"
	"k8s.io/apimachinery/pkg/types"
	eventingduckv1 "knative.dev/eventing/pkg/apis/duck/v1"
	"knative.dev/eventing/pkg/eventfilter"

	"github.com/littoral-project/littoral/infra/runner/filter"
	"github.com/littoral-project/littoral/infra/runner/manifests"
	"github.com/littoral-project/littoral/infra/runner/mesh"
)

// trigger is a parsed Trigger.
type trigger struct {
	name       string // namespace/name, as stored in rows
	broker     types.NamespacedName
	filter     eventfilter.Filter
	subscriber string // URL
	sink       string // URL of the dead letter sink, "" for none
	policy     policy
	stats      counters

	mu      sync.Mutex
	waiting []*delivery
	running int
}

func newTrigger(o Options, key types.NamespacedName) (*trigger, error) {
	spec := o.Set.Triggers[key].Spec
	t := &trigger{
		name: key.String(), broker: manifests.BrokerOf(key, spec.Broker), filter: filter.Of(spec),
	}
	at, err := mesh.Resolve(&spec.Subscriber)
	if err != nil {
		return nil, err
	}
	t.subscriber = at.String()

	// The Trigger's delivery spec replaces the Broker's as a whole; only the dead letter sink falls back to the
	// Broker's.
	var ofBroker eventingduckv1.DeliverySpec
	if br := o.Set.Brokers[t.broker]; br != nil && br.Spec.Delivery != nil {
		ofBroker = *br.Spec.Delivery
	}
	delivery := ofBroker
	if spec.Delivery != nil {
		delivery = *spec.Delivery
	}
	if delivery.DeadLetterSink == nil {
		delivery.DeadLetterSink = ofBroker.DeadLetterSink
	}
	if delivery.DeadLetterSink != nil {
		at, err := mesh.Resolve(delivery.DeadLetterSink)
		if err != nil {
			return nil, fmt.Errorf("dead letter sink: %w", err)
		}
		t.sink = at.String()
	}
	t.policy, err = newPolicy(delivery)
	return t, err
}

func (t *trigger) wants(ctx context.Context, e cloudevents.Event) bool {
	return t.filter.Filter(ctx, e) != eventfilter.FailFilter
}
