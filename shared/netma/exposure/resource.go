package exposure

import (
	"encoding/json"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/littoral-project/littoral/shared/alto"
	"github.com/littoral-project/littoral/shared/netma/view"
)

// Ids of resources of the directory.
const (
	networkFiltered  = "network-filtered"
	costFiltered     = "cost-filtered"
	endpointProperty = "endpoint-property"
	endpointCost     = "endpoint-cost"
	updates          = "updates"
	costPrefix       = "cost-"
)

// Resource is one of the directory, with what it is asked.
type Resource struct {
	Media   string
	Caller  bool // it may differ by who asks
	produce func(v *view.View, caller netip.Addr, now time.Time) ([]byte, error)
}

// Document makes the resource of a view. The error is an *alto.Error when something is asked for that there is not any more.
func (r Resource) Document(v *view.View, caller netip.Addr, now time.Time) ([]byte, error) {
	return r.produce(v, caller, now)
}

// ResourceOf finds the resource of a substream, and reads its input. The error says where in the request.
func ResourceOf(s alto.Substream) (Resource, *alto.Error) {
	at := "add/" + s.ID
	var fault *alto.Error
	if s.Input == nil {
		s.Input = json.RawMessage("{}") // of which each says what is missing
	}
	r := Resource{}
	switch s.ResourceID {
	case Map:
		r.Media = alto.NetworkMap
		r.produce = func(v *view.View, _ netip.Addr, _ time.Time) ([]byte, error) {
			return json.Marshal(NetworkMap(v, alto.MapFilter{}))
		}
	case networkFiltered:
		var asked alto.MapFilter
		asked, fault = alto.ParseMapFilter(s.Input)
		r.Media = alto.NetworkMap
		r.produce = func(v *view.View, _ netip.Addr, _ time.Time) ([]byte, error) {
			return json.Marshal(NetworkMap(v, asked))
		}
	case costFiltered:
		var asked *alto.CostFilter
		asked, fault = alto.ParseCostFilter(s.Input, TypeOf)
		r.Media = alto.CostMap
		r.produce = func(v *view.View, _ netip.Addr, now time.Time) ([]byte, error) { return Filtered(v, asked, now) }
	case endpointCost:
		var asked *alto.CostFilter
		asked, fault = alto.ParseEndpointCost(s.Input, TypeOf)
		r.Media, r.Caller = alto.EndpointCost, true
		r.produce = func(v *view.View, caller netip.Addr, now time.Time) ([]byte, error) {
			return BetweenEndpoints(v, asked, caller, now)
		}
	case endpointProperty:
		var asked alto.PropertyRequest
		asked, fault = alto.ParsePropertyRequest(s.Input, IsProperty)
		r.Media = alto.EndpointProp
		r.produce = func(v *view.View, _ netip.Addr, _ time.Time) ([]byte, error) {
			return json.Marshal(EndpointProperties(v, asked))
		}
	default:
		kind, known := wholeMap(s.ResourceID)
		if !known {
			return r, alto.BadValue(at+"/resource-id", s.ResourceID)
		}
		r.Media = alto.CostMap
		r.produce = func(v *view.View, _ netip.Addr, _ time.Time) ([]byte, error) { return CostMap(v, kind) }
	}
	if fault != nil {
		return r, fault.Below(at + "/input")
	}
	return r, nil
}

// wholeMap finds the type of a whole cost map by the id of the map.
func wholeMap(id string) (alto.CostType, bool) {
	for _, m := range view.Metrics() {
		for _, mode := range []string{alto.Numerical, alto.Ordinal} {
			kind := alto.CostType{Mode: mode, Metric: m.Name}
			if strings.TrimPrefix(id, costPrefix) == nameOf(kind) && strings.HasPrefix(id, costPrefix) {
				return kind, true
			}
		}
	}
	return alto.CostType{}, false
}

// addUpdates adds the stream of updates of all other resources.
func addUpdates(d *alto.Resources) {
	yes := true
	can := alto.Capabilities{IncrementalChanges: map[string]string{}, StreamControl: &yes}
	var uses []string
	for id := range d.Resources {
		can.IncrementalChanges[id] = alto.MergePatch + "," + alto.JSONPatch
		uses = append(uses, id)
	}
	slices.Sort(uses)
	d.Resources[updates] = alto.Resource{
		URI: "/alto/updates", MediaType: alto.EventStream, Accepts: alto.UpdateParams, Capabilities: &can, Uses: uses,
	}
}
