// Package clusterlink says which components of an application talk with each other across clusters, and writes the objects that
// let them: those of ClusterLink, or those of Kubernetes' Multi-Cluster Services. It does no I/O.
//
// A component that offers a Service (outgoing) is its server, one that needs it (incoming, or by a channel) its client. In one cluster they need
// nothing. Where a client runs without a server beside it, the cluster of each server exports the Service, and that of the
// client imports it; both allow exactly that client.
package clusterlink

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"go.yaml.in/yaml/v3"

	"github.com/littoral-project/littoral/shared/appmodel"
)

// The kinds of links.
const (
	None        = "none" // it is left to the applications how their components reach each other
	ClusterLink = "clusterlink"
	MCS         = "mcs" // Kubernetes' Multi-Cluster Services, which Submariner and Cilium implement
)

// Settings say how links are made; they are read from the environment by envconfig.
type Settings struct {
	Kind string `envconfig:"LINKS" default:"none"`
	// Peers are the names of clusters in the fabric where these are others than in the taxonomy.
	Peers map[string]string `envconfig:"LINKS_PEERS"`
}

// On reports whether components are linked.
func (s Settings) On() bool { return s.Kind != "" && s.Kind != None }

// Check refuses another kind.
func (s Settings) Check() error {
	if s.On() && s.Kind != ClusterLink && s.Kind != MCS {
		return fmt.Errorf("LINKS is %q, and it is %s, %s or %s", s.Kind, None, ClusterLink, MCS)
	}
	return nil
}

// Place is where a component runs, or is to.
type Place struct {
	Component string `json:"component"`
	Cluster   string `json:"cluster"`
}

// Link lets the clients of a Service in one cluster reach its servers in others.
type Link struct {
	Service string   `json:"service"`
	Port    int      `json:"port"`
	Cluster string   `json:"cluster"` // of the clients
	Clients []string `json:"clients"` // components
	Servers []Place  `json:"servers"`
}

// Talks reports whether any component of the application says that it needs a Service.
func Talks(app *appmodel.Application) bool {
	for i := range app.Components {
		if Calls(app, &app.Components[i]) {
			return true
		}
	}
	return false
}

// Calls reports whether the component says that it needs a Service, or sends to another component over a channel.
func Calls(app *appmodel.Application, c *appmodel.Component) bool {
	return len(c.Communication.Incoming) > 0 || slices.ContainsFunc(app.Channels, func(ch appmodel.Channel) bool {
		return ch.From == c.Name && app.Has(&ch) && ch.To.Component != c.Name
	})
}

// needs lists the Services that a component needs: those that it names, and those of the components that its channels end at.
func needs(app *appmodel.Application, c *appmodel.Component, services map[string]*offer) []string {
	list := slices.Clone(c.Communication.Incoming)
	for i := range app.Channels {
		ch := &app.Channels[i]
		if ch.From != c.Name || !app.Has(ch) || ch.To.Component == c.Name {
			continue
		}
		for _, name := range slices.Sorted(maps.Keys(services)) {
			o := services[name]
			if slices.Contains(o.servers, ch.To.Component) && (ch.To.Port == 0 || ch.To.Port == o.port) && !slices.Contains(list, name) {
				list = append(list, name)
			}
		}
	}
	return list
}

// Needed returns the pairs of components, client and server, that have to be where a link can be made: the client needs a
// Service with a port, cannot do without it, and has it from nobody else. With several servers any of them would do, so none is
// tied to it.
func Needed(app *appmodel.Application) [][2]string {
	var pairs [][2]string
	services := offers(app)
	for i := range app.Components {
		c := &app.Components[i]
		for _, service := range needs(app, c, services) {
			o := services[service]
			if o == nil || o.port == 0 || len(o.servers) != 1 || o.servers[0] == c.Name || slices.Contains(c.Communication.Optional, service) {
				continue
			}
			if pair := [2]string{c.Name, o.servers[0]}; !slices.Contains(pairs, pair) {
				pairs = append(pairs, pair)
			}
		}
	}
	return pairs
}

// offer is a Service, who offers it and on which port.
type offer struct {
	port    int
	servers []string
}

func offers(app *appmodel.Application) map[string]*offer {
	all := map[string]*offer{}
	of := func(service, component string) *offer {
		o := all[service]
		if o == nil {
			o = &offer{}
			all[service] = o
		}
		if !slices.Contains(o.servers, component) {
			o.servers = append(o.servers, component)
		}
		return o
	}
	for i := range app.Components {
		c := &app.Components[i]
		for _, service := range c.Communication.Outgoing {
			of(service, c.Name)
		}
		for _, m := range c.Manifests {
			if m.Kind != "Service" {
				continue
			}
			var s struct {
				Metadata struct{ Name string }
				Spec     struct{ Ports []struct{ Port int } }
			}
			if yaml.Unmarshal([]byte(m.YAML), &s) == nil && len(s.Spec.Ports) > 0 {
				of(cmp.Or(s.Metadata.Name, m.Name), c.Name).port = s.Spec.Ports[0].Port // a link has one port
			}
		}
	}
	return all
}

// Of returns the links that the application needs with its components in these places, in a fixed order. A Service without a
// port cannot be linked.
func Of(app *appmodel.Application, places []Place) []Link {
	services := offers(app)
	found := map[[2]string]*Link{} // by service and cluster
	for i := range app.Components {
		c := &app.Components[i]
		for _, service := range needs(app, c, services) {
			o := services[service]
			if o == nil || o.port == 0 || slices.Contains(o.servers, c.Name) {
				continue
			}
			var servers []Place
			for _, p := range places {
				if slices.Contains(o.servers, p.Component) && !slices.Contains(servers, p) {
					servers = append(servers, p)
				}
			}
			slices.SortFunc(servers, compare)
			for _, p := range places {
				if p.Component != c.Name || len(servers) == 0 ||
					slices.ContainsFunc(servers, func(s Place) bool { return s.Cluster == p.Cluster }) {
					continue
				}
				key := [2]string{service, p.Cluster}
				if found[key] == nil {
					found[key] = &Link{Service: service, Port: o.port, Cluster: p.Cluster, Servers: servers}
				}
				if l := found[key]; !slices.Contains(l.Clients, c.Name) {
					l.Clients = append(l.Clients, c.Name)
				}
			}
		}
	}
	links := make([]Link, 0, len(found))
	for _, l := range found {
		slices.Sort(l.Clients)
		links = append(links, *l)
	}
	slices.SortFunc(links, func(a, b Link) int {
		return cmp.Or(cmp.Compare(a.Service, b.Service), cmp.Compare(a.Cluster, b.Cluster))
	})
	return links
}

func compare(a, b Place) int {
	return cmp.Or(cmp.Compare(a.Cluster, b.Cluster), cmp.Compare(a.Component, b.Component))
}

// LabelComponent is the label of pods by which a policy knows a client. ClusterLink makes an attribute's name of it, which may
// have no second "/".
const LabelComponent = "littoral-component"

// Object is an object to apply beside a component, by its name.
type Object struct{ Name, JSON string }

// Objects returns what a component at a place has to bring for the links: a server exports, a client imports, and both allow.
// Components beside each other bring equal objects under equal names.
func (s Settings) Objects(links []Link, at Place, namespace string) []Object {
	var all []Object
	add := func(o object) {
		text, _ := json.Marshal(o) // maps of texts always encode
		all = append(all, Object{o.Metadata["name"].(string) + "-" + o.Kind, string(text)})
	}
	exported := map[string]bool{}
	for _, l := range links {
		imports := l.Cluster == at.Cluster && slices.Contains(l.Clients, at.Component)
		exports := slices.Contains(l.Servers, at)
		switch {
		case imports && s.Kind == MCS:
			add(serviceImport(l))
		case imports:
			add(s.importOf(l, namespace))
		}
		if exports && !exported[l.Service] {
			exported[l.Service] = true
			add(s.export(l))
		}
		if s.Kind == MCS || !imports && !exports {
			continue // there, NetworkPolicies are for the application to write
		}
		clients := []string{at.Component}
		if exports {
			clients = l.Clients
		}
		for _, client := range clients {
			add(s.policy(l, client, namespace, exports))
		}
	}
	slices.SortFunc(all, func(a, b Object) int { return cmp.Compare(a.Name, b.Name) })
	return slices.CompactFunc(all, func(a, b Object) bool { return a.Name == b.Name })
}

type object struct {
	APIVersion string         `json:"apiVersion"`
	Kind       string         `json:"kind"`
	Metadata   map[string]any `json:"metadata"`
	Spec       map[string]any `json:"spec,omitempty"`
}

// The versions of both APIs.
const (
	linkVersion = "clusterlink.net/v1alpha1"
	mcsVersion  = "multicluster.x-k8s.io/v1alpha1"
)

func named(version, kind, name string, spec map[string]any) object {
	return object{version, kind, map[string]any{"name": name}, spec}
}

func (s Settings) peer(cluster string) string { return cmp.Or(s.Peers[cluster], cluster) }

func (s Settings) export(l Link) object {
	if s.Kind == MCS {
		return named(mcsVersion, "ServiceExport", l.Service, nil)
	}
	return named(linkVersion, "Export", l.Service, map[string]any{"port": l.Port})
}

// importOf names the servers. The namespace of an application is called the same everywhere.
func (s Settings) importOf(l Link, namespace string) object {
	var sources []any
	for _, at := range l.Servers {
		source := map[string]any{"peer": s.peer(at.Cluster), "exportName": l.Service, "exportNamespace": namespace}
		if n := len(sources); n == 0 || sources[n-1].(map[string]any)["peer"] != source["peer"] { // in the order of clusters
			sources = append(sources, source)
		}
	}
	return named(linkVersion, "Import", l.Service, map[string]any{"port": l.Port, "sources": sources})
}

func serviceImport(l Link) object {
	return named(mcsVersion, "ServiceImport", l.Service, map[string]any{
		"type": "ClusterSetIP", "ports": []any{map[string]any{"port": l.Port, "protocol": "TCP"}},
	})
}

// policy allows one client one Service: on its own side, and on the server's side as one of its peer.
func (s Settings) policy(l Link, client, namespace string, served bool) object {
	from := map[string]any{
		"client.clusterlink.net/namespace": namespace, "client.clusterlink.net/labels." + LabelComponent: label(client),
	}
	if served {
		from["peer.clusterlink.net/name"] = s.peer(l.Cluster)
	}
	to := map[string]any{"export.clusterlink.net/name": l.Service, "export.clusterlink.net/namespace": namespace}
	side := "to"
	if served {
		side = "from"
	}
	return named(linkVersion, "AccessPolicy", fmt.Sprintf("littoral-%s-%s", side, digest(l.Service, client, l.Cluster)), map[string]any{
		"action": "allow", "from": selectors(from), "to": selectors(to),
	})
}

func selectors(labels map[string]any) []any {
	return []any{map[string]any{"workloadSelector": map[string]any{"matchLabels": labels}}}
}

// label is a component's name as the value of a label.
func label(component string) string {
	const longest = 63
	if len(component) <= longest {
		return component
	}
	return component[:longest-9] + "-" + digest(component)[:8]
}

func digest(parts ...string) string {
	text, _ := json.Marshal(parts) // texts always encode
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:8])
}

// Label returns the value of LabelComponent on the pods of a component.
func Label(component string) string { return label(component) }
