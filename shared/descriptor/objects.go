package descriptor

import (
	"slices"
	"strings"

	"github.com/littoral-project/littoral/shared/appmodel"
	"go.yaml.in/yaml/v3"
)

// checkObjects holds the objects of each component against its type and its requirements. What cannot work is refused,
// what may is a warning.
func (r *reader) checkObjects() {
	for i, p := range r.index.plans {
		c := &r.app.Components[i]
		seen := map[*definition]bool{}
		var asks asked
		for _, m := range p {
			if m.def == nil || seen[m.def] {
				continue
			}
			seen[m.def] = true
			r.checkForm(c, m)
			if o, _ := m.def.object(); slices.Contains(podBearers[o.group], o.kind) {
				visit(m.def.node, m.def.path, podsOf(o.kind), func(spec *yaml.Node, path string) {
					asks.add(r.checkResources(spec, path))
					r.checkSelector(c, spec, path)
				})
			}
		}
		r.checkAsked(c, asks, at("components", i)+".requirements")
	}
}

// checkForm refuses what the engine of the component's type cannot run.
func (r *reader) checkForm(c *appmodel.Component, m planned) {
	services := field(m.def.node, "services")
	compose := m.def.kind == "" && services != nil
	switch {
	case compose && c.Type == appmodel.TypeKubernetes:
		r.complain(m.path, m.node, "%q is a compose file, which Kubernetes cannot run: give the component the type docker, "+
			"or multiple with Kubernetes objects beside it", shorten(m.name))
	case m.def.kind != "" && c.Type == appmodel.TypeDocker:
		r.complain(m.path, m.node, "%q is a Kubernetes %s, which Docker cannot run: give the component the type kubernetes, "+
			"or multiple with a compose file beside it", shorten(m.name), shorten(m.def.kind))
	case compose && (services.Kind != yaml.MappingNode || len(services.Content) == 0):
		r.complain(join(m.def.path, "services"), services, "must be an object with at least one service")
	case m.def.kind == "" && !compose && c.Type == appmodel.TypeDocker:
		r.complain(m.path, m.node, "%q is no compose file: it has no services", shorten(m.name))
	case m.def.kind == "" && !compose:
		r.complain(m.path, m.node, "%q is neither a Kubernetes object, which has a kind, nor a compose file, which has services",
			shorten(m.name))
	}
}

// asked is what pods ask for: thousandths of a core, and bytes.
type asked struct {
	cpu, memory int64
	node        *yaml.Node // where, nil if nowhere
}

func (a *asked) add(b asked) {
	a.cpu, a.memory = a.cpu+b.cpu, a.memory+b.memory
	if a.node == nil {
		a.node = b.node
	}
}

// checkAsked warns of pods that ask for more than their component, whose node is chosen by the latter.
func (r *reader) checkAsked(c *appmodel.Component, asks asked, path string) {
	if need := c.Requirements.CPUMilli; need > 0 && asks.cpu > need {
		r.warn(path+".cpu", asks.node, "is %dm, but the manifests ask for %dm: a node with room for the former may have none for the latter",
			need, asks.cpu)
	}
	if need := c.Requirements.MemoryBytes; need > 0 && asks.memory > need {
		r.warn(path+".memory", asks.node, "is %d bytes, but the manifests ask for %d: a node with room for the former may have none for the latter",
			need, asks.memory)
	}
}

// checkResources refuses amounts that no cluster reads, in the containers of one pod, and returns what it asks for.
func (r *reader) checkResources(spec *yaml.Node, path string) (total asked) {
	visit(spec, path, "containers.*", func(container *yaml.Node, path string) {
		amounts := map[[2]string]int64{}
		for _, of := range []string{"requests", "limits"} {
			visit(container, path, "resources."+of, func(list *yaml.Node, path string) {
				for i := 0; list.Kind == yaml.MappingNode && i+1 < len(list.Content); i += 2 {
					name, n := list.Content[i].Value, list.Content[i+1]
					amount, ok := r.checkAmount(name, n, join(path, shorten(name)))
					if request, there := amounts[[2]string{"requests", name}]; ok && there && of == "limits" && amount < request {
						r.complain(join(path, shorten(name)), n, "%s is less than what is requested", shorten(n.Value))
					}
					if ok {
						amounts[[2]string{of, name}] = amount
						total.node = list.Content[i]
					}
				}
			})
		}
		asks := func(name string) int64 { // a limit alone is a request too
			if request, there := amounts[[2]string{"requests", name}]; there {
				return request
			}
			return amounts[[2]string{"limits", name}]
		}
		total.cpu, total.memory = total.cpu+asks("cpu"), total.memory+asks("memory")
	})
	return total
}

// checkAmount checks one amount in the resources of a container and returns it, in thousandths for cpu.
func (r *reader) checkAmount(name string, n *yaml.Node, path string) (amount int64, ok bool) {
	if n.Kind != yaml.ScalarNode || isNull(n) {
		r.complain(path, n, "must be a quantity, not %s", kindOf(n))
		return 0, false
	}
	parse := parseAmount
	if name == "cpu" {
		parse = parseCPU
	}
	amount, err := parse(n.Value)
	switch better := asKubernetes(n.Value); {
	case err != nil:
		r.complain(path, n, "%v", err)
	case better == "":
		r.complain(path, n, "%q is no quantity that a cluster reads", shorten(n.Value))
	case better != strings.TrimSpace(n.Value):
		r.warn(path, n, "%q is no quantity that a cluster reads, taken for %s", shorten(n.Value), better)
	}
	return amount, err == nil
}

// checkSelector refuses a pod that can only run on another architecture than its component is placed on.
func (r *reader) checkSelector(c *appmodel.Component, spec *yaml.Node, path string) {
	want := c.Requirements.Architecture
	visit(spec, path, "nodeSelector", func(n *yaml.Node, path string) {
		const key = "kubernetes.io/arch"
		if v := field(n, key); want != "" && v != nil && v.Kind == yaml.ScalarNode && Architecture(v.Value) != want {
			r.complain(join(path, key), v, "is %s, but the component requires the architecture %s", shorten(v.Value), want)
		}
	})
}

// rewriteAmounts returns a copy of an object with pods in which every amount of a container is one that a cluster
// reads; the same object if there is nothing to change.
func rewriteAmounts(d *definition) *yaml.Node {
	o, _ := d.object()
	if !slices.Contains(podBearers[o.group], o.kind) {
		return d.node
	}
	changed := map[*yaml.Node]string{}
	visit(d.node, "", podsOf(o.kind)+".containers.*.resources", func(n *yaml.Node, _ string) {
		for _, of := range []string{"requests", "limits"} {
			list := field(n, of)
			for i := 1; list != nil && list.Kind == yaml.MappingNode && i < len(list.Content); i += 2 {
				value := list.Content[i]
				if better := asKubernetes(value.Value); value.Kind == yaml.ScalarNode && better != "" && better != value.Value {
					changed[value] = better
				}
			}
		}
	})
	if len(changed) == 0 {
		return d.node
	}
	return withValues(d.node, changed)
}

// withValues returns a copy of n with other texts for some scalars; nodes are shared by aliases, so none is changed.
func withValues(n *yaml.Node, texts map[*yaml.Node]string) *yaml.Node {
	c := *n
	if text, ok := texts[n]; ok {
		c.Value, c.Tag = text, tagStr
	}
	c.Content = make([]*yaml.Node, len(n.Content))
	for i, child := range n.Content {
		c.Content[i] = withValues(child, texts)
	}
	return &c
}
