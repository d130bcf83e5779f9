package codecoapp

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/littoral-project/littoral/shared/appmodel"
	"github.com/littoral-project/littoral/shared/label"
)

// service is one entry of codecoapp-msspec.
type service struct {
	name, path string
	node       *yaml.Node
	pod        *yaml.Node // its pod spec
	podPath    string
	cpu, mem   *yaml.Node // what the first generation requires; else the containers say it
}

var serviceName = regexp.MustCompile(`^[a-z]+([-a-z0-9]+)?$`)

func (r *reader) service(n *yaml.Node, path string) {
	if n.Kind != yaml.MappingNode {
		r.fault(path, n, "must be an object with serviceName and podspec")
		return
	}
	s := service{node: n, path: path}
	name, key := first(n, "serviceName", "name")
	switch {
	case name == nil:
		r.fault(path+".serviceName", n, "is missing")
	case name.Kind != yaml.ScalarNode || !serviceName.MatchString(name.Value):
		r.fault(path+"."+key, name, "must begin with a letter and have small letters, digits and dashes alone")
	case slices.ContainsFunc(r.services, func(other service) bool { return other.name == name.Value }):
		r.fault(path+"."+key, name, "%q is the name of an earlier service already", name.Value)
	default:
		s.name = name.Value
	}
	switch pod, ref := child(n, "podspec"), child(n, "podspecname"); {
	case pod != nil && pod.Kind == yaml.MappingNode:
		s.pod, s.podPath = pod, path+".podspec"
	case pod != nil:
		r.fault(path+".podspec", pod, "must be a pod spec, with containers")
	case ref != nil && r.pods[ref.Value] != nil:
		s.pod, s.podPath = r.pods[ref.Value], path+".podspecname"
	case ref != nil:
		r.fault(path+".podspecname", ref, "names a pod spec that is not here: add a document of kind PodTemplate or Pod "+
			"with this name in its metadata")
	default:
		r.fault(path+".podspec", n, "is missing")
	}
	if required := child(n, "required-resources"); required != nil {
		s.cpu, s.mem = child(required, "cpu"), child(required, "mem")
		for _, key := range []string{"nwbandwidth", "nwlatency"} {
			if v := child(required, key); v != nil {
				r.warn(path+".required-resources."+key, v, "ignored: it does not say to which service")
			}
		}
		r.unknown(required, path+".required-resources", "cpu", "mem", "nwbandwidth", "nwlatency")
	}
	for _, key := range []string{"nwbandwidth", "nwlatency"} {
		if v := child(n, key); v != nil {
			r.warn(path+"."+key, v, "ignored: it does not say to which service; a channel does")
		}
	}
	if list := child(n, "serviceChannels"); list != nil {
		r.serviceChannels(s, list, path+".serviceChannels")
	}
	r.unknown(n, path, "serviceName", "name", "podspec", "podspecname", "required-resources", "serviceChannels", "nwbandwidth", "nwlatency")
	r.services = append(r.services, s)
}

// tree writes the descriptor.
func (r *reader) tree() *yaml.Node {
	components := list()
	var paths []renamed
	for i, s := range r.services {
		at := fmt.Sprintf("components[%d]", i)
		paths = append(paths,
			renamed{at + ".manifests[0].manifest.spec.template.spec", s.podPath},
			renamed{at + ".manifests", s.podPath},
			renamed{at + ".requirements", s.podPath + ".containers"},
			renamed{at + ".name", s.path + ".serviceName"},
			renamed{at, s.path},
		)
		components.Content = append(components.Content, r.component(s))
	}
	r.paths = append(paths, append(r.paths, renamed{"components", "spec.codecoapp-msspec"})...)
	root := object("name", str(r.name), "components", components)
	if len(r.policies) > 0 {
		root.Content = append(root.Content, str("policies"), list(r.policies...))
	}
	for _, s := range r.services { // faults of the whole point at the list
		root.Line = min(max(root.Line, 1), s.node.Line)
	}
	return root
}

// component writes a service as a component.
func (r *reader) component(s service) *yaml.Node {
	name := r.name + "-" + s.name // as CODECO names the pods
	labels := object(label.Service, str(name))
	deployment := object(
		"apiVersion", str("apps/v1"), "kind", str("Deployment"),
		"metadata", object("name", str(name), "labels", labels),
		"spec", object(
			"replicas", number(1),
			"selector", object("matchLabels", labels),
			"template", object("metadata", object("labels", labels), "spec", r.podOf(s)),
		),
	)
	manifests := list(object("name", str(name), "manifest", deployment))
	if ports := r.portsOf(s); len(ports.Content) > 0 {
		manifests.Content = append(manifests.Content, object("name", str(s.name), "manifest", object(
			"apiVersion", str("v1"), "kind", str("Service"), "metadata", object("name", str(s.name)),
			"spec", object("selector", labels, "ports", ports),
		)))
	}
	c := object("name", str(s.name), "type", str(appmodel.TypeKubernetes), "manifests", manifests)
	if needs := r.requirements(s); len(needs.Content) > 0 {
		c.Content = append(c.Content, str("requirements"), needs)
	}
	if near := r.near(s); len(near.Content) > 0 {
		c.Content = append(c.Content, str("near"), near)
	}
	c.Line = s.node.Line
	return c
}

// near reads from annotations, since the schema has no keys for them, what a service is better close to:
// near-data.littoral.dev/<service> and near-users.littoral.dev/<service>, with names between commas.
func (r *reader) near(s service) *yaml.Node {
	near := object()
	for _, key := range []string{"data", "users"} {
		names := list()
		for name := range strings.SplitSeq(text(r.annotations, "near-"+key+".littoral.dev/"+s.name), ",") {
			if name = strings.TrimSpace(name); name != "" {
				names.Content = append(names.Content, str(name))
			}
		}
		if len(names.Content) > 0 {
			near.Content = append(near.Content, str(key), names)
		}
	}
	return near
}

// podOf returns the pod spec without what placement decides and what a Deployment does not take.
func (r *reader) podOf(s service) *yaml.Node {
	pod := *s.pod
	pod.Content = nil
	for i := 0; i+1 < len(s.pod.Content); i += 2 {
		key, value := s.pod.Content[i], s.pod.Content[i+1]
		switch {
		case key.Value == "schedulerName": // of SWM, whose part the matchmaker has here
		case key.Value == "nodeName":
			r.warn(s.podPath+".nodeName", key, "ignored: the place is chosen by what the application asks for")
		case key.Value == "restartPolicy" && value.Value != "Always":
			r.warn(s.podPath+".restartPolicy", value, "taken for Always: a service runs until it is stopped")
		default:
			pod.Content = append(pod.Content, key, value)
		}
	}
	return &pod
}

// portsOf lists the ports of the containers, and those to which channels lead.
func (r *reader) portsOf(s service) *yaml.Node {
	var numbers []int
	names := map[int]*yaml.Node{}
	protocols := map[int]*yaml.Node{}
	if containers := child(s.pod, "containers"); containers != nil {
		for _, c := range containers.Content {
			ports := child(c, "ports")
			for i := 0; ports != nil && i < len(ports.Content); i++ {
				port, err := strconv.Atoi(text(ports.Content[i], "containerPort"))
				if err == nil && !slices.Contains(numbers, port) {
					numbers = append(numbers, port)
					protocols[port] = child(ports.Content[i], "protocol")
					names[port] = child(ports.Content[i], "name")
				}
			}
		}
	}
	for i := range r.channels {
		if to := r.channels[i].To; to.Application == "" && to.Component == s.name && to.Port > 0 && !slices.Contains(numbers, to.Port) {
			numbers = append(numbers, to.Port)
		}
	}
	out := list()
	for _, port := range numbers {
		entry := object("name", str("port-"+strconv.Itoa(port)), "port", number(port))
		if n := names[port]; n != nil {
			entry.Content[1] = n
		}
		if p := protocols[port]; p != nil {
			entry.Content = append(entry.Content, str("protocol"), p)
		}
		out.Content = append(out.Content, entry)
	}
	return out
}

func object(pairs ...any) *yaml.Node {
	n := &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map"}
	for _, p := range pairs {
		switch p := p.(type) {
		case string:
			n.Content = append(n.Content, str(p))
		case *yaml.Node:
			n.Content = append(n.Content, p)
		}
	}
	return n
}

func list(entries ...*yaml.Node) *yaml.Node {
	return &yaml.Node{Kind: yaml.SequenceNode, Tag: "!!seq", Content: entries}
}

func str(s string) *yaml.Node {
	return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: s}
}

func number(n int) *yaml.Node {
	return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!int", Value: strconv.Itoa(n)}
}
