// Package filter decides which events a Trigger takes, with Knative's own packages, for whatever delivers events outside a
// cluster: the laptop host's Broker and that of the tests.
package filter

import (
	"context"

	cloudevents "github.com/cloudevents/sdk-go/v2"
	"go.uber.org/zap"
	eventingv1 "knative.dev/eventing/pkg/apis/eventing/v1"
	"knative.dev/eventing/pkg/eventfilter"
	"knative.dev/eventing/pkg/eventfilter/attributes"
	"knative.dev/eventing/pkg/eventfilter/subscriptionsapi"
)

// Of makes the filter of a Trigger. If both kinds are given, "filters" wins, as in Knative.
func Of(spec eventingv1.TriggerSpec) eventfilter.Filter {
	switch {
	case len(spec.Filters) > 0:
		return all(each(spec.Filters))
	case spec.Filter != nil:
		return attributes.NewAttributesFilter(spec.Filter.Attributes)
	default:
		return subscriptionsapi.NewNoFilter()
	}
}

// one makes one filter. Knative's own "all" and "any" bring those of their parts forward that decide most often, in goroutines of their
// own that write what others read (a data race in v0.50); what they answer does not depend on the order.
func one(f eventingv1.SubscriptionsAPIFilter) eventfilter.Filter {
	switch {
	case len(f.All) > 0:
		return all(each(f.All))
	case len(f.Any) > 0:
		return either(each(f.Any))
	case f.Not != nil:
		return subscriptionsapi.NewNotFilter(one(*f.Not))
	default:
		return subscriptionsapi.MaterializeSubscriptionsAPIFilter(zap.NewNop(), f)
	}
}

func each(filters []eventingv1.SubscriptionsAPIFilter) []eventfilter.Filter {
	made := make([]eventfilter.Filter, 0, len(filters))
	for _, f := range filters {
		if f := one(f); f != nil { // else it is none, as whoever reads manifests says
			made = append(made, f)
		}
	}
	return made
}

type (
	all    []eventfilter.Filter
	either []eventfilter.Filter
)

// Filter passes an event that all pass.
func (f all) Filter(ctx context.Context, event cloudevents.Event) eventfilter.FilterResult {
	return until(ctx, eventfilter.FailFilter, f, event)
}

// Filter passes an event that one of them passes.
func (f either) Filter(ctx context.Context, event cloudevents.Event) eventfilter.FilterResult {
	return until(ctx, eventfilter.PassFilter, f, event)
}

// until asks them in turn until one gives the answer that decides.
func until(ctx context.Context, decides eventfilter.FilterResult, filters []eventfilter.Filter, event cloudevents.Event) eventfilter.FilterResult {
	result := eventfilter.NoFilter
	for _, f := range filters {
		if result = f.Filter(ctx, event); result == decides {
			break
		}
	}
	return result
}

// Cleanup has nothing to do: only Knative's "all" and "any" hold something.
func (all) Cleanup() {}

// Cleanup has nothing to do.
func (either) Cleanup() {}
