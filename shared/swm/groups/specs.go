package groups

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net"
	"net/netip"
	"strings"
	"time"

	"github.com/littoral-project/littoral/shared/appmodel"
	"github.com/littoral-project/littoral/shared/dialect"
	"github.com/littoral-project/littoral/shared/network"
	"github.com/littoral-project/littoral/shared/problem"
	"github.com/littoral-project/littoral/shared/swm/ipam"
	"github.com/littoral-project/littoral/shared/swm/topologies"
)

// GroupSpec is the spec of an ApplicationGroup.
type GroupSpec struct {
	MinMember *int32 `json:"minMember"` // applications to wait for; 1 when left out
}

// Members is how many applications the group waits for.
func (s *GroupSpec) Members() int {
	if s.MinMember == nil {
		return 1
	}
	return int(*s.MinMember)
}

func (s *GroupSpec) check(_ *Object, faults *problem.Faults) {
	if s.Members() < 1 || s.Members() > maxMembers {
		faults.Add("spec.minMember", 0, "is to be from 1 to %d", maxMembers)
	}
}

const maxMembers = 1000

// ApplicationSpec is the spec of an Application.
type ApplicationSpec struct {
	Workloads []Workload `json:"workloads"`
}

// Workload is one pod.
type Workload struct {
	Basename string `json:"basename"`
	Template struct {
		Metadata map[string]any `json:"metadata,omitempty"`
		Spec     map[string]any `json:"spec"`
	} `json:"template"`
	Channels            []WorkloadChannel  `json:"channels,omitempty"`
	Costs               map[string]float64 `json:"costs,omitempty"`               // by node, lower is better
	NodeRecommendations map[string]float64 `json:"nodeRecommendations,omitempty"` // by node, higher is better
}

// WorkloadChannel leads from its workload to another.
type WorkloadChannel struct {
	Basename      string `json:"basename"`
	OtherWorkload struct {
		Basename        string `json:"basename"`
		ApplicationName string `json:"applicationName"`
		Port            int    `json:"port,omitempty"`
	} `json:"otherWorkload"`
	ServiceClass string   `json:"serviceClass,omitempty"`
	Bandwidth    quantity `json:"bandwidth,omitempty"`    // bit/s
	MaxDelay     quantity `json:"maxDelay,omitempty"`     // s
	FrameSize    quantity `json:"framesize,omitempty"`    // bytes
	SendInterval quantity `json:"sendInterval,omitempty"` // s
}

// quantity is text, or a bare number.
type quantity = topologies.Quantity

func (s *ApplicationSpec) check(o *Object, faults *problem.Faults) {
	o.MemberOf = o.document.Metadata.Labels[LabelGroup]
	if o.MemberOf == "" {
		faults.Add("metadata.labels."+LabelGroup, 0, "is missing: it names the group of the application")
	}
	if len(s.Workloads) == 0 {
		faults.Add("spec.workloads", 0, "must be a list of at least one workload")
		return
	}
	for i, w := range s.Workloads {
		for kind, values := range map[string]map[string]float64{"costs": w.Costs, "nodeRecommendations": w.NodeRecommendations} {
			for node, v := range values {
				if math.IsNaN(v) || math.Abs(v) > mostCost {
					faults.Add(fmt.Sprintf("spec.workloads[%d].%s.%s", i, kind, problem.Brief(node, 60)), 0, "is not from -%g to %g", mostCost, mostCost)
				}
			}
		}
	}
	_, err := translated(Key{ApplicationGroup, o.Namespace, o.MemberOf}, []*Object{o})
	var refused *problem.Error
	if errors.As(err, &refused) {
		for _, f := range refused.Fields {
			faults.Add(strings.TrimPrefix(f.Path, o.Name+"."), 0, "%s", f.Detail)
		}
		if len(refused.Fields) == 0 {
			faults.Add("spec", 0, "%s", refused.Detail)
		}
	} else if err != nil {
		faults.Add("spec", 0, "%v", err)
	}
}

const mostCost = 1e12

// EndpointSpec is the spec of a NetworkEndpoint: the interfaces of a node.
type EndpointSpec struct {
	NodeName          string `json:"nodeName"`
	NetworkInterfaces []struct {
		Name               string   `json:"name"`
		MACAddress         string   `json:"macAddress,omitempty"`
		IPv4Address        string   `json:"ipv4Address,omitempty"`
		AlternateAddresses []string `json:"alternateAddresses,omitempty"`
	} `json:"networkInterfaces"`
	MappedNetworkInterfaces map[string]string `json:"mappedNetworkInterfaces,omitempty"`
}

func (s *EndpointSpec) check(_ *Object, faults *problem.Faults) {
	if s.NodeName == "" || len(s.NodeName) > longestName {
		faults.Add("spec.nodeName", 0, "is to name a node")
	}
	has := map[string]bool{}
	for i, n := range s.NetworkInterfaces {
		path := fmt.Sprintf("spec.networkInterfaces[%d]", i)
		switch {
		case n.Name == "":
			faults.Add(path+".name", 0, "is missing")
		case has[n.Name]:
			faults.Add(path+".name", 0, "is that of another interface too")
		}
		has[n.Name] = true
		if n.MACAddress != "" {
			if _, err := net.ParseMAC(n.MACAddress); err != nil {
				faults.Add(path+".macAddress", 0, "%q is no hardware address", problem.Brief(n.MACAddress, 60))
			}
		}
		if at, err := netip.ParseAddr(n.IPv4Address); n.IPv4Address != "" && (err != nil || !at.Is4()) {
			faults.Add(path+".ipv4Address", 0, "%q is no address of IPv4", problem.Brief(n.IPv4Address, 60))
		}
		for k, a := range n.AlternateAddresses {
			if _, err := netip.ParseAddr(a); err != nil {
				faults.Add(fmt.Sprintf("%s.alternateAddresses[%d]", path, k), 0, "%q is no address", problem.Brief(a, 60))
			}
		}
	}
	for of, name := range s.MappedNetworkInterfaces {
		if !has[name] {
			faults.Add("spec.mappedNetworkInterfaces."+problem.Brief(of, 60), 0, "%q is none of the interfaces", problem.Brief(name, 60))
		}
	}
}

// NodeRef is an end of a link or a path.
type NodeRef struct {
	Name string `json:"name"`
	Type string `json:"type,omitempty"` // COMPUTE, which is the default, or NETWORK
}

func (n NodeRef) check(path string, faults *problem.Faults) {
	if n.Name == "" || len(n.Name) > longestName {
		faults.Add(path+".name", 0, "is to name a node")
	}
	if t := strings.ToUpper(n.Type); t != "" && t != "COMPUTE" && t != "NETWORK" {
		faults.Add(path+".type", 0, "%q is neither COMPUTE nor NETWORK", problem.Brief(n.Type, 60))
	}
}

// LinkSpec is the spec of a NetworkLink, which is directed.
type LinkSpec struct {
	LinkFrom      NodeRef `json:"linkFrom"`
	LinkTo        NodeRef `json:"linkTo"`
	BandWidthBits int64   `json:"bandWidthBits"`
	LatencyNanos  int64   `json:"latencyNanos"`
	PhysicalBase  string  `json:"physicalBase,omitempty"`
}

func (s *LinkSpec) check(o *Object, faults *problem.Faults) {
	partOf(o, faults)
	s.LinkFrom.check("spec.linkFrom", faults)
	s.LinkTo.check("spec.linkTo", faults)
	if s.BandWidthBits < 0 || s.BandWidthBits > network.MaxBandwidth {
		faults.Add("spec.bandWidthBits", 0, "is to be from 0 to %d bit/s", int64(network.MaxBandwidth))
	}
	if s.LatencyNanos < 0 || s.LatencyNanos > int64(time.Hour) {
		faults.Add("spec.latencyNanos", 0, "is to be from 0 to an hour")
	}
}

// PathSpec is the spec of a NetworkPath: links by their names, in order.
type PathSpec struct {
	Start NodeRef  `json:"start"`
	End   NodeRef  `json:"end"`
	Links []string `json:"links"`
}

func (s *PathSpec) check(o *Object, faults *problem.Faults) {
	partOf(o, faults)
	s.Start.check("spec.start", faults)
	s.End.check("spec.end", faults)
	if len(s.Links) == 0 {
		faults.Add("spec.links", 0, "must be a list of at least one link")
	}
}

// partOf reads which network the object is a part of.
func partOf(o *Object, faults *problem.Faults) {
	if o.MemberOf = o.document.Metadata.Labels[LabelNetwork]; o.MemberOf == "" {
		faults.Add("metadata.labels."+LabelNetwork, 0, "is missing: it names the network")
	}
}

// IpamSpec is the spec of an Ipam, which asks for addresses.
type IpamSpec struct {
	NumberOfAddresses int64  `json:"numberOfAddresses"`
	Purpose           string `json:"purpose,omitempty"`
}

func (s *IpamSpec) check(_ *Object, faults *problem.Faults) {
	if s.NumberOfAddresses < 1 || s.NumberOfAddresses > ipam.Most {
		faults.Add("spec.numberOfAddresses", 0, "is to be from 1 to %d", int64(ipam.Most))
	}
}

// service is a workload as a service of a CodecoApp.
type service struct {
	ServiceName     string           `json:"serviceName"`
	Podspec         map[string]any   `json:"podspec"`
	ServiceChannels []serviceChannel `json:"serviceChannels,omitempty"`
}

type serviceChannel struct {
	ChannelName  string       `json:"channelName"`
	OtherService otherService `json:"otherService"`
	ServiceClass string       `json:"serviceClass,omitempty"`
	Settings     settings     `json:"advancedChannelSettings,omitzero"`
}

type otherService struct {
	ServiceName string `json:"serviceName"`
	AppName     string `json:"appName,omitempty"`
	Port        int    `json:"port,omitempty"`
}

type settings struct {
	MinBandwidth quantity `json:"minBandwidth,omitempty"`
	MaxDelay     quantity `json:"maxDelay,omitempty"`
	FrameSize    quantity `json:"frameSize,omitempty"`
	SendInterval quantity `json:"sendInterval,omitempty"`
}

// Component is what a workload of an application is called in the application that runs the group.
func Component(application, workload string) string { return application + "-" + workload }

// translation is a group as a CodecoApp.
type translation struct {
	text   []byte
	parsed *appmodel.Application
}

// translated writes a group with its members as a CodecoApp. The paths of faults are "member.spec.workloads[0]..."; the error is that
// of dialect.Decode.
func translated(group Key, members []*Object) (*translation, error) {
	type place struct{ codeco, own string }
	var places []place
	services := []service{}
	own := map[string]bool{}
	for _, m := range members {
		own[m.Name] = true
	}
	for _, m := range members {
		for i, w := range m.Spec.(*ApplicationSpec).Workloads {
			s := service{ServiceName: Component(m.Name, w.Basename), Podspec: w.Template.Spec}
			places = append(places, place{
				fmt.Sprintf("spec.codecoapp-msspec[%d]", len(services)), fmt.Sprintf("%s.spec.workloads[%d]", m.Name, i),
			})
			for _, c := range w.Channels {
				to := otherService{Port: c.OtherWorkload.Port}
				app := c.OtherWorkload.ApplicationName
				if app == "" {
					app = m.Name
				}
				to.ServiceName = Component(app, c.OtherWorkload.Basename)
				if !own[app] {
					to.AppName = app
				}
				s.ServiceChannels = append(s.ServiceChannels, serviceChannel{
					c.Basename, to, c.ServiceClass, settings{c.Bandwidth, c.MaxDelay, c.FrameSize, c.SendInterval},
				})
			}
			services = append(services, s)
		}
	}
	text, err := json.Marshal(map[string]any{
		"apiVersion": "codeco.he-codeco.eu/v1alpha1", "kind": "CodecoApp",
		"metadata": map[string]any{"name": group.Name, "namespace": group.Namespace},
		"spec":     map[string]any{"appName": group.Name, "codecoapp-msspec": services},
	})
	if err != nil {
		return nil, err
	}
	parsed, err := dialect.Decode(appmodel.CODECO, text, nil)
	var refused *problem.Error
	if errors.As(err, &refused) {
		for i, f := range refused.Fields {
			for k := len(places) - 1; k >= 0; k-- { // so that [1] is not taken for the beginning of [12]
				if rest, ok := strings.CutPrefix(f.Path, places[k].codeco); ok {
					refused.Fields[i].Path = places[k].own + words.Replace(rest)
					break
				}
			}
			refused.Fields[i].Line = 0
		}
	}
	return &translation{text, parsed}, err
}

// words are the keys of a service as those of a workload.
var words = strings.NewReplacer(
	".serviceName", ".basename", ".podspec", ".template.spec", ".serviceChannels", ".channels", ".channelName", ".basename",
	".otherService", ".otherWorkload", ".advancedChannelSettings", "", ".minBandwidth", ".bandwidth", ".frameSize", ".framesize",
)
