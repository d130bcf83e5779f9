package manifests

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"
	eventingduckv1 "knative.dev/eventing/pkg/apis/duck/v1"
	duckv1 "knative.dev/pkg/apis/duck/v1"
)

// dangling lists every reference to an object that is not in the set. A cluster would wait for it to appear; here it
// never will.
func (s *Set) dangling() []error {
	var faults []error
	check := func(owner, field string, d *duckv1.Destination) {
		if err := s.exists(d); err != nil {
			faults = append(faults, fmt.Errorf("%s: %s: %w", owner, field, err))
		}
	}
	delivery := func(owner string, d *eventingduckv1.DeliverySpec) {
		if d != nil && d.DeadLetterSink != nil {
			check(owner, "spec.delivery.deadLetterSink", d.DeadLetterSink)
		}
	}
	for _, key := range Sorted(s.Brokers) {
		delivery("Broker "+key.Name, s.Brokers[key].Spec.Delivery)
	}
	for _, key := range Sorted(s.Triggers) {
		t, owner := s.Triggers[key], "Trigger "+key.Name
		if _, ok := s.Brokers[BrokerOf(key, t.Spec.Broker)]; !ok {
			faults = append(faults, fmt.Errorf("%s: spec.broker: there is no Broker %q", owner, t.Spec.Broker))
		}
		check(owner, "spec.subscriber", &t.Spec.Subscriber)
		delivery(owner, t.Spec.Delivery)
	}
	for _, key := range Sorted(s.PingSources) {
		sink := &s.PingSources[key].Spec.Sink
		if sink.Ref != nil && sink.Ref.Namespace == "" {
			sink.Ref.Namespace = key.Namespace // Knative's controller does so too; the defaults of the type do not
		}
		check("PingSource "+key.Name, "spec.sink", sink)
	}
	for _, key := range Sorted(s.APIServerSources) {
		sink := &s.APIServerSources[key].Spec.Sink
		if sink.Ref != nil && sink.Ref.Namespace == "" {
			sink.Ref.Namespace = key.Namespace
		}
		check("ApiServerSource "+key.Name, "spec.sink", sink)
	}
	return faults
}

// BrokerOf returns the Broker of a Trigger, which is always in the same namespace.
func BrokerOf(trigger types.NamespacedName, broker string) types.NamespacedName {
	return types.NamespacedName{Namespace: trigger.Namespace, Name: broker}
}

func (s *Set) exists(d *duckv1.Destination) error {
	if d.Ref == nil {
		return nil // an absolute URI (validated), which may point anywhere
	}
	key := types.NamespacedName{Namespace: d.Ref.Namespace, Name: d.Ref.Name}
	group, _, _ := strings.Cut(d.Ref.APIVersion, "/")
	var known bool
	switch group + " " + d.Ref.Kind {
	case "serving.knative.dev Service":
		_, known = s.Services[key]
	case "eventing.knative.dev Broker":
		_, known = s.Brokers[key]
	default:
		return fmt.Errorf("the laptop host delivers to Knative Services and Brokers, not to %s %s",
			d.Ref.APIVersion, d.Ref.Kind)
	}
	if !known {
		return fmt.Errorf("there is no %s %q in namespace %q", d.Ref.Kind, d.Ref.Name, d.Ref.Namespace)
	}
	return nil
}

// Sorted returns the keys of one of the Set's maps in sorted order, so that faults and logs are the same in each run.
func Sorted[T any](m map[types.NamespacedName]T) []types.NamespacedName {
	return slices.SortedFunc(maps.Keys(m), func(a, b types.NamespacedName) int {
		return strings.Compare(a.String(), b.String())
	})
}
