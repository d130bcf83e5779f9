package descriptor

import (
	"fmt"
	"slices"

	"go.yaml.in/yaml/v3"

	"github.com/littoral-project/littoral/shared/appmodel"
	"github.com/littoral-project/littoral/shared/compose/reading"
	"github.com/littoral-project/littoral/shared/problem"
)

// readCompose has the compose files of each component read: it takes over what is wrong with them, what they would get of the
// machine that they run on, for whoever decides about that, and the requirements that the component leaves out.
func (r *reader) readCompose() {
	read := map[string]reading.Component{} // components may share their files
	said := map[string]bool{}
	values := 0
	for i, p := range r.index.plans {
		c := &r.app.Components[i]
		files, key := composeFiles(p)
		if len(files) == 0 || c.Type == appmodel.TypeKubernetes {
			continue
		}
		found, before := read[key]
		if !before {
			for _, d := range files {
				values += size(d.node)
			}
			switch {
			case r.compose == nil:
				if !r.header {
					r.fault(files[0].path, files[0].node, "is a compose file, and none is read here")
				}
				continue
			case values > maxCompose:
				r.complain(files[0].path, files[0].node, "has too much: the compose files of all components may have %d values", maxCompose)
				return
			}
			found = r.compose(texts(files))
			read[key] = found
		}
		within := func(list []reading.Finding, say func(path string, n *yaml.Node, detail string)) {
			line := func(f reading.Finding) int { n, _ := files[f.File].within(f.Keys); return n.Line }
			slices.SortStableFunc(list, func(a, b reading.Finding) int { return line(a) - line(b) })
			for _, f := range list {
				n, path := files[f.File].within(f.Keys)
				if once := path + "\n" + f.Detail; !said[once] {
					said[once] = true
					say(path, n, f.Detail)
				}
			}
		}
		within(found.Faults, func(path string, n *yaml.Node, detail string) { r.complain(path, n, "%s", detail) })
		within(found.Warnings, func(path string, n *yaml.Node, detail string) { r.warn(path, n, "%s", detail) })
		within(found.HostAccess, func(path string, n *yaml.Node, detail string) {
			r.app.HostAccess = append(r.app.HostAccess, problem.Field{Path: path, Line: n.Line, Detail: detail})
		})
		asks := appmodel.ComposeNeeds{Component: c.Name}
		if amount := found.CPUMilli.Amount; amount <= maxCPUMilli {
			asks.CPUMilli, asks.CPULine = amount, firstLine(files, found.CPUMilli.At)
		}
		if amount := found.Memory.Amount; amount <= maxAmount {
			asks.MemoryBytes, asks.MemoryLine = amount, firstLine(files, found.Memory.At)
		}
		r.app.Derive(asks)
	}
}

// composeFiles returns the compose files of a component, and what they have in common with those of another; none if one is
// no compose file, which is complained of elsewhere.
func composeFiles(p plan) (files []*definition, key string) {
	for _, m := range p {
		switch {
		case m.def == nil || m.def.kind != "":
		case !isCompose(m.def.node):
			return nil, ""
		default:
			files, key = append(files, m.def), key+fmt.Sprintf("%p ", m.def)
		}
	}
	return files, key
}

func isCompose(n *yaml.Node) bool {
	services := field(n, "services")
	return services != nil && services.Kind == yaml.MappingNode && len(services.Content) > 0
}

// size returns how many values there are in a tree.
func size(n *yaml.Node) int {
	all := 1
	for _, c := range n.Content {
		all += size(c)
	}
	return all
}

func texts(files []*definition) (all []reading.File) {
	for _, d := range files {
		if d.text == "" {
			d.text, _ = render(d.node) // an empty file is at fault
		}
		all = append(all, reading.File{Name: d.name, Text: d.text})
	}
	return all
}

// within returns the value at the keys, or the nearest around it, and its path.
func (d *definition) within(keys []string) (*yaml.Node, string) {
	n, path := d.node, d.path
	for _, key := range keys {
		var next *yaml.Node
		where := join(path, shorten(key))
		switch n.Kind {
		case yaml.MappingNode:
			next = field(n, key)
		case yaml.SequenceNode:
			var i int
			if _, err := fmt.Sscan(key, &i); err == nil && i >= 0 && i < len(n.Content) {
				next, where = n.Content[i], at(path, i)
			}
		}
		if next == nil {
			break
		}
		n, path = next, where
	}
	return n, path
}

func firstLine(files []*definition, places []reading.Place) int {
	first := 0
	for _, p := range places {
		if n, _ := files[p.File].within(p.Keys); first == 0 || n.Line < first {
			first = n.Line
		}
	}
	return first
}
