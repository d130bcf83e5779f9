package descriptor

import (
	"slices"
	"strings"

	"github.com/littoral-project/littoral/shared/appmodel"
	"go.yaml.in/yaml/v3"
)

// check compares the parts of a valid descriptor with each other. What does not fit is only a warning, since the
// published examples have all of these oddities.
func (r *reader) check() {
	r.checkWeights()
	r.checkPolicyNames()
	r.checkEngines()
	r.checkUnused()
	r.turnCommunication()
}

func (r *reader) checkWeights() {
	weights := false
	for i := range r.app.Policies {
		if r.app.Policies[i].Weights == nil {
			continue
		}
		if weights {
			r.warn(at("policies", i), nil, "ignored: an earlier policy gives the weights already")
		}
		weights = true
	}
}

func (r *reader) checkPolicyNames() {
	seen := map[string]bool{}
	check := func(path string, policies []appmodel.Policy) {
		for i := range policies {
			name := policies[i].Name
			if name != "" && seen[name] {
				r.warn(at(path, i)+".name", nil, "%q names more than one policy", shorten(name))
			}
			seen[name] = true
		}
	}
	check("policies", r.app.Policies)
	for i := range r.app.Components {
		check(at("components", i)+".policies", r.app.Components[i].Policies)
	}
}

// checkEngines holds component types against each other: a mixture has to be asked for (D3.3 §3.2.2), since the
// components then share no network.
func (r *reader) checkEngines() {
	first := map[string]int{}
	for i := range r.app.Components {
		if _, seen := first[r.app.Components[i].Type]; !seen {
			first[r.app.Components[i].Type] = i
		}
	}
	_, multiple := first[appmodel.TypeMultiple]
	at, docker := first[appmodel.TypeDocker]
	other, kubernetes := first[appmodel.TypeKubernetes]
	if docker && kubernetes && !r.app.MixedTypes {
		const mixed = "the type %s is mixed with %s of component %q, so the components cannot share one engine; give " +
			"all the same type, or multiple, or say mixedTypes: true at the top if they may run apart"
		late, early := max(at, other), min(at, other)
		c, with := &r.app.Components[late], &r.app.Components[early]
		spot := r.types[late]
		if r.stored {
			r.warn(spot.path, spot.node, mixed, c.Type, with.Type, shorten(with.Name))
		} else {
			r.complain(spot.path, spot.node, mixed, c.Type, with.Type, shorten(with.Name))
		}
	}
	if multiple {
		r.checkVariants()
	}
}

// checkVariants refuses a component of the type multiple that has nothing for the engine of all others.
func (r *reader) checkVariants() {
	only := r.app.OnlyType()
	for i := range r.app.Components {
		c := &r.app.Components[i]
		if c.Type != appmodel.TypeMultiple {
			continue
		}
		spot, has := r.types[i], r.index.plans[i].variants()
		switch {
		case len(has) == 2 || len(has) == 0:
		case only != "" && has[0] != only && !r.stored:
			r.complain(spot.path, spot.node, "has manifests for %s only, but other components are for %s", has[0], only)
		default:
			r.warn(spot.path, spot.node, "multiple has manifests for %s only, so that it runs nowhere else", has[0])
		}
	}
}

func (r *reader) checkUnused() {
	for _, d := range r.index.order {
		if !d.used {
			r.warn(d.path, d.node, "no component names the manifest %q, so it is not deployed", shorten(d.name))
		}
	}
}

// turnCommunication finds out by the owner of each Service which of outgoing and incoming is meant: one revision of the
// published format has the two the other way round. A Service that no component owns stays as written.
func (r *reader) turnCommunication() {
	owners := r.owners()
	offered := map[string]bool{}
	for i := range r.app.Components {
		c := &r.app.Components[i]
		c.Communication = r.turned(c.Communication, at("components", i)+".communication", func(service string) ownership {
			_, own := slices.BinarySearch(owners[service], i)
			return ownership{own: own, foreign: !own && len(owners[service]) > 0}
		})
		for _, s := range c.Communication.Outgoing {
			offered[s] = true
		}
	}
	for i := range r.app.Components {
		for _, s := range r.app.Components[i].Communication.Incoming {
			if !offered[s] && len(owners[s]) == 0 {
				r.warn(at("components", i)+".communication", nil, "no component offers %q", shorten(s))
			}
		}
	}
}

// ownership says whether a component has a Service in its manifests, and whether another has.
type ownership struct{ own, foreign bool }

func (r *reader) turned(c appmodel.Communication, path string, ownerOf func(string) ownership) appmodel.Communication {
	var out appmodel.Communication
	both := map[string]bool{}
	for _, s := range c.Outgoing {
		both[s] = true
		if ownerOf(s).foreign {
			r.warn(path, nil, "outgoing %q is a Service of another component, taken for incoming", shorten(s))
			out.Incoming = append(out.Incoming, s)
			continue
		}
		out.Outgoing = append(out.Outgoing, s)
	}
	for _, s := range c.Incoming {
		switch {
		case both[s]:
			r.warn(path, nil, "%q is both outgoing and incoming", shorten(s))
			out.Incoming = append(out.Incoming, s)
		case ownerOf(s).own:
			r.warn(path, nil, "incoming %q is a Service of this component, taken for outgoing", shorten(s))
			out.Outgoing = append(out.Outgoing, s)
		default:
			out.Incoming = append(out.Incoming, s)
		}
	}
	out.Outgoing, out.Incoming = distinct(out.Outgoing), distinct(out.Incoming)
	for _, s := range c.Optional {
		if slices.Contains(out.Incoming, s) {
			out.Optional = append(out.Optional, s)
		}
	}
	return out
}

// owners returns, by Service, the indexes of the components that have it, in order.
func (r *reader) owners() map[string][]int {
	owners := map[string][]int{}
	for i, p := range r.index.plans {
		for _, m := range p {
			if m.def == nil {
				continue
			}
			for _, service := range services(m.def) {
				if have := owners[service]; len(have) == 0 || have[len(have)-1] != i {
					owners[service] = append(have, i)
				}
			}
		}
	}
	return owners
}

// services returns the names under which an object can be reached: that of a Service, those in a Compose file.
func services(d *definition) []string {
	if strings.EqualFold(d.kind, "Service") {
		if name := metadataName(d.node); name != "" && name != d.name {
			return []string{name, d.name}
		}
		return []string{d.name}
	}
	compose := field(d.node, "services")
	if d.kind != "" || compose == nil || compose.Kind != yaml.MappingNode {
		return nil
	}
	var out []string
	for i := 0; i < len(compose.Content); i += 2 {
		out = append(out, compose.Content[i].Value)
	}
	return out
}
