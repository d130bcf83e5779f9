// Package topologies keeps descriptions of networks: NetworkTopology documents of CODECO, in the form in which NetMA writes
// them (qos-scheduler.siemens.com/v1alpha1), and makes of all of them the topology that channels are placed on.
package topologies

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"strings"
	"time"

	"github.com/littoral-project/littoral/shared/descriptor"
	"github.com/littoral-project/littoral/shared/network"
	"github.com/littoral-project/littoral/shared/problem"
)

// Document is a NetworkTopology. Links are directed.
type Document struct {
	NetworkImplementation string `json:"networkImplementation"`
	PhysicalBase          string `json:"physicalBase,omitempty"` // the implementation whose media it uses; empty: it is physical
	Nodes                 []Node `json:"nodes"`
	Links                 []Link `json:"links"`
	Paths                 []Path `json:"paths,omitempty"`
}

// Node is a computer, by the name that the taxonomy has for it, or a switch.
type Node struct {
	Name       string `json:"name"`
	Type       string `json:"type,omitempty"` // COMPUTE, which is the default, or NETWORK
	IPAddress  string `json:"ipAddress,omitempty"`
	MACAddress string `json:"macaddress,omitempty"`
}

// Link leads from a node to another.
type Link struct {
	Name         string       `json:"name,omitempty"`
	Source       string       `json:"source"`
	Target       string       `json:"target"`
	Capabilities Capabilities `json:"capabilities,omitzero"`
}

// Capabilities are quantities as Kubernetes writes them.
type Capabilities struct {
	BandWidthBits     Quantity          `json:"bandWidthBits,omitempty"` // bit/s
	LatencyNanos      Quantity          `json:"latencyNanos,omitempty"`
	OtherCapabilities map[string]string `json:"otherCapabilities,omitempty"`
}

// Quantity is text, or a bare number.
type Quantity string

// UnmarshalJSON implements json.Unmarshaler.
func (q *Quantity) UnmarshalJSON(text []byte) error {
	if len(text) > 0 && text[0] == '"' {
		return json.Unmarshal(text, (*string)(q))
	}
	*q = Quantity(text)
	return nil
}

// Path lists nodes.
type Path struct {
	Nodes []string `json:"nodes"`
}

// Keys of OtherCapabilities with a meaning here: the medium that links share, and the class of the network, which the first
// link that has it says for all.
const (
	keyMedium = "medium"
	keyClass  = "serviceClass"
)

// Parse reads a NetworkTopology as YAML or JSON: the object of Kubernetes, or its spec alone. The error is Malformed, or
// Invalid with every fault at its path.
func Parse(body []byte) (*Document, error) {
	var object struct {
		Document
		Kind string    `json:"kind"`
		Spec *Document `json:"spec"`
	}
	var faults problem.Faults
	roots, err := descriptor.Load(body, &faults)
	if err != nil {
		return nil, err
	}
	if len(roots) != 1 {
		return nil, problem.New(problem.Malformed, "the body has %d documents; one is wanted", len(roots))
	}
	text, err := json.Marshal(descriptor.Plain(roots[0]))
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(text, &object); err != nil {
		return nil, problem.Wrap(problem.Malformed, err, "the topology cannot be read: %v", err)
	}
	d, prefix := &object.Document, ""
	if object.Spec != nil {
		d, prefix = object.Spec, "spec."
	}
	if object.Kind != "" && object.Kind != "NetworkTopology" {
		return nil, problem.New(problem.Invalid, "the document is a %s, no NetworkTopology", problem.Brief(object.Kind, 60))
	}
	if d.NetworkImplementation == "" {
		faults.Add(prefix+"networkImplementation", 0, "is missing: it names the network")
	}
	if _, err := d.network(prefix, &faults); err != nil {
		return nil, err
	}
	return d, faults.Err("the topology is invalid")
}

// parts are what a document adds to the topology.
type parts struct {
	nodes   []network.Node
	network network.Network
}

// network reads the document, except for what needs its base: links of a network on another one without a bandwidth of
// their own have no medium yet.
func (d *Document) network(prefix string, faults *problem.Faults) (parts, error) {
	p := parts{network: network.Network{ID: d.NetworkImplementation, Class: network.BestEffort, Base: d.PhysicalBase}}
	if len(d.Nodes) > network.MaxNodes || len(d.Links) > network.MaxLinks || len(d.Paths) > network.MaxPaths {
		return p, problem.New(problem.TooLarge, "the topology has %d nodes, %d links and %d paths; %d, %d and %d are allowed",
			len(d.Nodes), len(d.Links), len(d.Paths), network.MaxNodes, network.MaxLinks, network.MaxPaths)
	}
	for i, n := range d.Nodes {
		kind := network.Compute
		switch strings.ToUpper(n.Type) {
		case "", "COMPUTE":
		case "NETWORK":
			kind = network.Forwarder
		default:
			faults.Add(fmt.Sprintf("%snodes[%d].type", prefix, i), 0, "%q is neither COMPUTE nor NETWORK", n.Type)
		}
		p.nodes = append(p.nodes, network.Node{ID: n.Name, Kind: kind})
	}
	media := map[string]int{}
	links := map[[2]string]string{}
	for i, l := range d.Links {
		at := fmt.Sprintf("%slinks[%d]", prefix, i)
		if l.Name == "" {
			l.Name = l.Source + "-" + l.Target
		}
		if class := network.Class(l.Capabilities.OtherCapabilities[keyClass]); class == network.Assured {
			p.network.Class = class
		}
		out := network.Link{ID: l.Name, Source: l.Source, Target: l.Target, Medium: l.Capabilities.OtherCapabilities[keyMedium]}
		latency := amount(faults, at+".capabilities.latencyNanos", l.Capabilities.LatencyNanos, int64(time.Hour))
		out.Latency = time.Duration(latency)
		if bits := l.Capabilities.BandWidthBits; bits != "" {
			if out.Medium == "" {
				out.Medium = l.Name
			}
			bandwidth := amount(faults, at+".capabilities.bandWidthBits", bits, network.MaxBandwidth)
			if known, shared := media[out.Medium]; !shared {
				media[out.Medium] = len(p.network.Media)
				p.network.Media = append(p.network.Media, network.Medium{ID: out.Medium, Bandwidth: bandwidth})
			} else if p.network.Media[known].Bandwidth != bandwidth {
				faults.Add(at+".capabilities.bandWidthBits", 0, "differs from that of another link on the medium %q", out.Medium)
			}
		} else if d.PhysicalBase == "" {
			faults.Add(at+".capabilities.bandWidthBits", 0, "is missing: a physical link has a bandwidth")
		}
		links[[2]string{l.Source, l.Target}] = l.Name
		p.network.Links = append(p.network.Links, out)
	}
	for i, path := range d.Paths {
		out := network.Path{ID: fmt.Sprintf("path-%d", i)}
		for k := 0; k+1 < len(path.Nodes); k++ {
			link, there := links[[2]string{path.Nodes[k], path.Nodes[k+1]}]
			if !there {
				faults.Add(fmt.Sprintf("%spaths[%d].nodes[%d]", prefix, i, k+1), 0, "no link leads there from %q", path.Nodes[k])
				break
			}
			out.Links = append(out.Links, link)
		}
		p.network.Paths = append(p.network.Paths, out)
	}
	if d.PhysicalBase == "" { // the rest needs the base
		alone := network.Topology{Nodes: p.nodes, Networks: []network.Network{p.network}}
		var own problem.Faults
		alone.Check("", &own)
		var refused *problem.Error
		if errors.As(own.Err(""), &refused) {
			for _, f := range refused.Fields {
				f.Path = prefix + strings.TrimPrefix(f.Path, "networks[0].")
				faults.Append(f)
			}
		}
	}
	return p, nil
}

// amount reads a quantity as a whole number, rounded down.
func amount(faults *problem.Faults, path string, text Quantity, most int64) int64 {
	if text == "" {
		return 0
	}
	q, err := descriptor.Quantity(string(text))
	if err != nil {
		faults.Add(path, 0, "%v", err)
		return 0
	}
	whole := new(big.Int).Quo(q.Num(), q.Denom())
	if !whole.IsInt64() || whole.Int64() > most {
		faults.Add(path, 0, "is more than %d", most)
		return 0
	}
	return whole.Int64()
}
