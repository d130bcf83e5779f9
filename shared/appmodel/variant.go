package appmodel

import "slices"

// A component of the type multiple has its objects twice: as Kubernetes objects and as a Compose file. Each set is a
// variant, named by the component type that it would have alone. A job carries one of them, that of the engine of its
// node.

// Engines returns the component types whose engine may run the component: its own, or for the type multiple those it
// has a variant for. Types are not mixed (D3.3 §3.2.1): beside a component that can run on one engine only, one of the
// type multiple runs there too, unless the descriptor says mixedTypes.
func (a *Application) Engines(c *Component) []string {
	if c.Type != TypeMultiple {
		return []string{c.Type}
	}
	engines := c.variants()
	if only := a.OnlyType(); slices.Contains(engines, only) {
		return []string{only}
	}
	return engines
}

// OnlyType returns the one engine that components of a single type leave to all others; "" if they leave both.
func (a *Application) OnlyType() string {
	only := ""
	for i := range a.Components {
		switch t := a.Components[i].Type; {
		case t == TypeMultiple:
		case a.MixedTypes, only != "" && only != t: // the latter in a descriptor that was accepted earlier
			return ""
		default:
			only = t
		}
	}
	return only
}

// Variant returns the manifests that the engine of the type gets, in their order: all of them, unless the component has
// variants.
func (c *Component) Variant(engine string) []Manifest {
	if c.Type != TypeMultiple {
		return c.Manifests
	}
	var own []Manifest
	for _, m := range c.Manifests {
		if m.suits(engine) {
			own = append(own, m)
		}
	}
	return own
}

// variants returns the types of which the component has manifests.
func (c *Component) variants() []string {
	return Variants(func(engine string) bool {
		return slices.ContainsFunc(c.Manifests, func(m Manifest) bool { return m.suits(engine) })
	})
}

// Variants returns the types of components that there is something of.
func Variants(has func(engine string) bool) []string {
	return slices.DeleteFunc([]string{TypeKubernetes, TypeDocker}, func(engine string) bool { return !has(engine) })
}

// suits reports whether the engine of the type can run the manifest. One that is only named, as the matchmaker gets
// them, may be for either.
func (m *Manifest) suits(engine string) bool { return m.YAML == "" || Suits(m.Kind, engine) }

// Suits tells by its kind, which a Compose file does not have, whether the engine can run an object.
func Suits(kind, engine string) bool { return (kind != "") == (engine == TypeKubernetes) }
