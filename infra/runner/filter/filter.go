// Package filter decides which events a Trigger takes, with Knative's own packages, for whatever delivers events outside a
// cluster: the laptop host's Broker and that of the tests.
package filter

import (
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
		return subscriptionsapi.CreateSubscriptionsAPIFilters(zap.NewNop(), spec.Filters)
	case spec.Filter != nil:
		return attributes.NewAttributesFilter(spec.Filter.Attributes)
	default:
		return subscriptionsapi.NewNoFilter()
	}
}
