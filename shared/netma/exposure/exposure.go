// Package exposure shows the network by ALTO: which resources there are, and each of them made of a view.
package exposure

import (
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/littoral-project/littoral/shared/alto"
	"github.com/littoral-project/littoral/shared/netma/view"
	"github.com/littoral-project/littoral/shared/problem"
)

// Map is the id of the only network map.
const Map = "network"

// Properties of endpoints.
const (
	PropertyPID     = Map + ".pid"
	PropertyNode    = "priv:node"
	PropertyCluster = "priv:cluster"
)

// Directory lists the resources. Their addresses are relative to the directory's. Costs of which something is foreseen may be asked for
// by the calendar, which is nil when nothing is.
func Directory(calendar *view.Calendar) alto.Resources {
	yes := true
	d := alto.Resources{
		Meta:      alto.DirectoryMeta{DefaultNetworkMap: Map, CostTypes: map[string]alto.CostType{}},
		Resources: map[string]alto.Resource{},
	}
	var names, foreseen []string
	for _, m := range view.Metrics() {
		for _, mode := range []string{alto.Numerical, alto.Ordinal} {
			name := nameOf(alto.CostType{Mode: mode, Metric: m.Name})
			names = append(names, name)
			if calendar.Has(m) {
				foreseen = append(foreseen, name)
			}
			d.Meta.CostTypes[name] = alto.CostType{Mode: mode, Metric: m.Name, Description: m.Description}
			d.Resources[costPrefix+name] = alto.Resource{
				URI: "/alto/costmap/" + mode + "/" + m.Name, MediaType: alto.CostMap,
				Capabilities: &alto.Capabilities{CostTypeNames: []string{name}}, Uses: []string{Map},
			}
		}
	}
	slices.Sort(names)
	costs := alto.Capabilities{CostConstraints: &yes, CostTypeNames: names, MaxCostTypes: len(names), TestableCostTypeNames: names}
	if len(foreseen) > 0 {
		slices.Sort(foreseen)
		costs.Calendars = []alto.Calendar{{
			CostTypeNames: foreseen, IntervalSize: calendar.Interval.Seconds(), NumberOfIntervals: calendar.Count,
		}}
	}
	d.Resources[Map] = alto.Resource{URI: "/alto/networkmap", MediaType: alto.NetworkMap}
	d.Resources[networkFiltered] = alto.Resource{
		URI: "/alto/networkmap", MediaType: alto.NetworkMap, Accepts: alto.NetworkMapFilter, Uses: []string{Map},
	}
	d.Resources[costFiltered] = alto.Resource{
		URI: "/alto/costmap", MediaType: alto.CostMap, Accepts: alto.CostMapFilter, Capabilities: &costs, Uses: []string{Map},
	}
	d.Resources[endpointProperty] = alto.Resource{
		URI: "/alto/endpointprop", MediaType: alto.EndpointProp, Accepts: alto.EndpointPropParams,
		Capabilities: &alto.Capabilities{PropTypes: []string{PropertyPID, PropertyNode, PropertyCluster}}, Uses: []string{Map},
	}
	d.Resources[endpointCost] = alto.Resource{
		URI: "/alto/endpointcost", MediaType: alto.EndpointCost, Accepts: alto.EndpointCostParams, Capabilities: &costs,
	}
	addUpdates(&d)
	return d
}

// nameOf is what a type of cost is called in the directory.
func nameOf(t alto.CostType) string { return strings.TrimPrefix(t.Metric, "priv:") + "-" + t.Mode[:3] }

// TypeOf finds the type of cost under its full name.
func TypeOf(asked alto.CostType) (alto.CostType, bool) {
	m, known := view.MetricOf(asked.Metric)
	return alto.CostType{Mode: asked.Mode, Metric: m.Name}, known && (asked.Mode == alto.Numerical || asked.Mode == alto.Ordinal)
}

// Tag is the version of the network map.
func Tag(v *view.View) alto.VersionTag { return alto.VersionTag{ResourceID: Map, Tag: v.Tag} }

// NetworkMap is the part of the map that the filter wants; the zero filter wants all. All addresses that belong to no node
// belong to one place more, so that the map is complete.
func NetworkMap(v *view.View, filter alto.MapFilter) alto.NetworkMapDocument {
	tag := Tag(v)
	d := alto.NetworkMapDocument{Meta: alto.Meta{VTag: &tag}, NetworkMap: map[string]alto.Group{}}
	wanted := func(list []string, name string) bool { return len(list) == 0 || slices.Contains(list, name) }
	add := func(name string, group alto.Group) {
		for kind := range group {
			if !wanted(filter.AddressTypes, kind) {
				delete(group, kind)
			}
		}
		if wanted(filter.PIDs, name) {
			d.NetworkMap[name] = group
		}
	}
	for i := range v.PIDs {
		group := alto.Group{}
		for _, a := range v.PIDs[i].Addresses {
			kind, _, _ := strings.Cut(alto.Typed(a), ":")
			group[kind] = append(group[kind], netip.PrefixFrom(a, a.BitLen()).String())
		}
		add(v.PIDs[i].Name, group)
	}
	add(view.Elsewhere, alto.Group{alto.IPv4: {"0.0.0.0/0"}, alto.IPv6: {"::/0"}})
	return d
}

// CostMap writes the whole cost map of a type.
func CostMap(v *view.View, kind alto.CostType) ([]byte, error) {
	return v.Document(kind.Mode+" "+kind.Metric, func() ([]byte, error) {
		names := make([]string, len(v.PIDs))
		for i := range v.PIDs {
			names[i] = v.PIDs[i].Name
		}
		meta := alto.Meta{DependentVTags: []alto.VersionTag{Tag(v)}, CostType: &kind}
		cost := costOf(v, kind)
		return alto.AppendCosts(make([]byte, 0, 16*len(names)*(len(names)+1)), "cost-map", meta, alto.Matrix{
			Sources: names, Targets: names, Cost: func(_, s, t int) (float64, bool) { return cost(s, t) },
		})
	})
}

// costOf returns costs of a known type by the numbers of places.
func costOf(v *view.View, kind alto.CostType) func(from, to int) (float64, bool) {
	m, _ := view.MetricOf(kind.Metric)
	if kind.Mode == alto.Ordinal {
		return v.Ranks(m)
	}
	return v.Costs(m)
}

// Filtered writes the part of a cost map that is asked for, of now or by intervals from now on. Names that there are not are left out.
// The error is an *alto.Error when something is asked for that there is not.
func Filtered(v *view.View, filter *alto.CostFilter, now time.Time) ([]byte, error) {
	places := func(names []string) (found []string, at []int) {
		if len(names) == 0 {
			for i := range v.PIDs {
				found, at = append(found, v.PIDs[i].Name), append(at, i)
			}
			return found, at
		}
		for _, name := range names {
			if i, there := v.Find(name); there {
				found, at = append(found, name), append(at, i)
			}
		}
		return found, at
	}
	sources, from := places(filter.Srcs)
	targets, to := places(filter.Dsts)
	meta := alto.Meta{DependentVTags: []alto.VersionTag{Tag(v)}}
	return part{v, filter, from, to}.write("cost-map", meta, sources, targets, now)
}

// BetweenEndpoints writes the costs between addresses: those of the places that they belong to. Without addresses on one side
// it is the caller's that is meant. The errors are as of Filtered.
func BetweenEndpoints(v *view.View, filter *alto.CostFilter, caller netip.Addr, now time.Time) ([]byte, error) {
	places := func(addresses []string) ([]string, []int) {
		if len(addresses) == 0 {
			addresses = []string{alto.Typed(caller)}
		}
		at := make([]int, len(addresses))
		for i, text := range addresses {
			a, _ := alto.Address(text)
			k, there := v.At(a)
			if !there {
				k = -1
			}
			at[i] = k
		}
		return addresses, at
	}
	sources, from := places(filter.Srcs)
	targets, to := places(filter.Dsts)
	return part{v, filter, from, to}.write("endpoint-cost-map", alto.Meta{}, sources, targets, now)
}

// EndpointProperties says what endpoints are.
func EndpointProperties(v *view.View, asked alto.PropertyRequest) alto.EndpointProperties {
	out := alto.EndpointProperties{
		Meta:       alto.Meta{DependentVTags: []alto.VersionTag{Tag(v)}},
		Properties: map[string]map[string]string{},
	}
	for _, text := range asked.Endpoints {
		a, _ := alto.Address(text)
		values := map[string]string{PropertyPID: view.Elsewhere}
		if i, there := v.At(a); there {
			values[PropertyPID], values[PropertyNode], values[PropertyCluster] = v.PIDs[i].Name, v.PIDs[i].Node, v.PIDs[i].Cluster
		}
		own := map[string]string{}
		for _, name := range asked.Properties {
			if value := values[name]; value != "" {
				own[name] = value
			}
		}
		out.Properties[text] = own
	}
	return out
}

// IsProperty reports whether endpoints have such a property.
func IsProperty(name string) bool {
	return name == PropertyPID || name == PropertyNode || name == PropertyCluster
}

// Check refuses a request of another media type, and one that accepts neither what is answered nor an error.
func Check(r *http.Request, accepts, answers string) error {
	if accepts != "" {
		kind, _, _ := strings.Cut(r.Header.Get("Content-Type"), ";")
		switch strings.TrimSpace(strings.ToLower(kind)) {
		case accepts, "", "application/json": // the others are what people send by hand
		default:
			return problem.New(problem.UnsupportedMedia, "the body is to be %s", accepts)
		}
	}
	wanted := strings.Join(r.Header.Values("Accept"), ",")
	if wanted == "" {
		return nil
	}
	for part := range strings.SplitSeq(wanted, ",") {
		kind, _, _ := strings.Cut(strings.TrimSpace(part), ";")
		switch strings.ToLower(strings.TrimSpace(kind)) {
		case answers, "*/*", "application/*", "application/json":
			return nil
		}
	}
	return problem.New(problem.NotAcceptable, "the answer is %s", answers)
}

// Caller is the address of who asks: as the proxy before us saw it, or of the connection.
func Caller(r *http.Request) netip.Addr {
	if seen := r.Header.Values("X-Forwarded-For"); len(seen) > 0 {
		last := seen[len(seen)-1]
		if a, err := netip.ParseAddr(strings.TrimSpace(last[strings.LastIndex(last, ",")+1:])); err == nil {
			return a.Unmap()
		}
	}
	a, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return netip.IPv4Unspecified()
	}
	return a.Addr().Unmap()
}
