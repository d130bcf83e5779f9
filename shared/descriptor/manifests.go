package descriptor

import (
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/littoral-project/littoral/shared/appmodel"
	"github.com/littoral-project/littoral/shared/label"
	"github.com/littoral-project/littoral/shared/problem"
)

// manifestIndex holds every object that the descriptor defines outside its components: the entries of the top-level
// manifests and the further YAML documents. Objects of one name but different kinds belong together.
type manifestIndex struct {
	byName  map[string][]*definition
	order   []*definition
	slipped bool // the section is there but unreadable, so missing names are not reported again
	plans   []plan
}

// definition is one object and where it stands.
type definition struct {
	name, path string
	node       *yaml.Node
	kind       string
	used       bool
	text       string
	ordered    string // cached result of content
}

// plan is the manifests of one component, still to be rendered; an entry without a definition is only a name.
type plan []planned

type planned struct {
	spot
	name string
	def  *definition
}

func (x *manifestIndex) collect(r *reader, head *fields, roots []*yaml.Node, at int) {
	x.byName = map[string][]*definition{}
	if section, path := head.get("manifests"); section != nil {
		x.inline(r, section, path)
	}
	for i, root := range roots {
		if i != at && root != nil {
			x.document(r, root, documentPath(i))
		}
	}
	if len(x.order) > maxEntries {
		r.complain("manifests", roots[at], "has %d objects; %d are allowed", len(x.order), maxEntries)
	}
}

func (x *manifestIndex) inline(r *reader, section *yaml.Node, path string) {
	if section.Kind != yaml.SequenceNode {
		x.slipped = true
		if !r.slips(section, path, r.complain) {
			r.complain(path, section, "must be a list, not %s", kindOf(section))
		}
		return
	}
	for i, entry := range r.list(section, path) {
		path := at(path, i)
		if entry.Kind != yaml.MappingNode || r.slips(entry, path, r.complain) {
			if entry.Kind != yaml.MappingNode {
				r.complain(path, entry, "must be an object with name and manifest, not %s", kindOf(entry))
			}
			x.slipped = true
			continue
		}
		f := &fields{node: entry, path: path, used: map[string]bool{}}
		name, _ := f.get("name")
		object, objectPath := f.get("manifest")
		f.has("type")
		f.has("description")
		r.rest(f)
		if object == nil && isObject(entry) {
			x.slipped = true
			r.complain(path, entry, isNoEntry)
			continue
		}
		if name == nil || name.Kind != yaml.ScalarNode || name.Value == "" {
			r.complain(join(path, "name"), entry, "is missing")
			continue
		}
		if object == nil {
			x.slipped = x.slipped || len(entry.Content) > 2
			r.complain(join(path, "manifest"), entry, "is missing: %q has no object", shorten(name.Value))
			continue
		}
		x.define(r, name.Value, objectPath, object)
	}
}

// document takes a further YAML document, which is known by its metadata.name.
func (x *manifestIndex) document(r *reader, root *yaml.Node, path string) {
	if root.Kind != yaml.MappingNode {
		r.complain(path, root, "must be an object, not %s", kindOf(root))
		return
	}
	name := metadataName(root)
	if name == "" {
		r.complain(join(path, "metadata.name"), root, "is missing, so no component can name this document")
		return
	}
	x.define(r, name, path, root)
}

func (x *manifestIndex) define(r *reader, name, path string, node *yaml.Node) {
	if node.Kind != yaml.MappingNode || len(node.Content) == 0 {
		r.complain(path, node, "must be an object, not %s", kindOf(node))
		x.slipped = true
		return
	}
	d := &definition{name: name, path: path, node: node, kind: scalar(node, "kind")}
	for _, other := range x.byName[name] {
		if other.kind == d.kind {
			r.complain(path, node, "%q is defined a second time; the first is on line %d", shorten(name), other.node.Line)
			return
		}
		if len(x.byName[name]) > 16 {
			r.complain(path, node, "%q has too many objects", shorten(name))
			return
		}
	}
	x.byName[name] = append(x.byName[name], d)
	x.order = append(x.order, d)
}

// manifests reads what a component names: entries with a name, an entry with its own object, or the bare name.
func (r *reader) manifests(c *appmodel.Component, f *fields) {
	var p plan
	section, path := f.get("manifests")
	if section == nil {
		r.complain(join(f.path, "manifests"), f.node, "is missing: a component needs at least one manifest")
	} else {
		entries := r.list(section, path)
		if len(entries) == 0 && section.Kind == yaml.SequenceNode {
			r.complain(path, section, "is empty: a component needs at least one manifest")
		}
		seen := map[string]bool{}
		for i, entry := range entries {
			p = append(p, r.manifestEntry(entry, at(path, i), seen)...)
		}
	}
	r.index.plans = append(r.index.plans, p)
	for _, m := range p {
		c.Manifests = append(c.Manifests, appmodel.Manifest{Name: m.name})
	}
}

func (r *reader) manifestEntry(entry *yaml.Node, path string, seen map[string]bool) plan {
	var name string
	var object *yaml.Node
	objectPath := path
	if entry.Kind == yaml.MappingNode {
		if r.slips(entry, path, r.fault) {
			return nil
		}
		f := &fields{node: entry, path: path, used: map[string]bool{}}
		n, namePath := f.get("name")
		name = r.text(n, namePath)
		object, objectPath = f.get("manifest")
		f.has("type")
		r.rest(f)
		if name == "" && object != nil {
			name = metadataName(object)
		}
	} else {
		name = r.text(entry, path)
	}
	switch {
	case name != "":
	case isObject(entry):
		r.fault(path, entry, isNoEntry)
		return nil
	default:
		r.fault(join(path, "name"), entry, "is missing")
		return nil
	}
	kind := scalar(object, "kind")
	if key := name + "\x00" + kind; !seen[key] {
		seen[key] = true
	} else if object != nil {
		r.complain(objectPath, object, "this component has the %s %q already", shorten(kind), shorten(name))
		return nil
	} else {
		r.warn(path, entry, "%q is named twice by this component", shorten(name))
		return nil
	}
	if object != nil {
		if object.Kind != yaml.MappingNode || len(object.Content) == 0 {
			r.complain(objectPath, object, "must be an object, not %s", kindOf(object))
			return nil
		}
		d := &definition{name: name, path: objectPath, node: object, kind: kind, used: true}
		return plan{{spot{path, entry}, name, d}}
	}
	defs := r.index.byName[name]
	if len(defs) == 0 {
		if !r.header && !r.index.slipped {
			r.fault(path, entry, "%q is not defined: neither under manifests nor as a document with that metadata.name",
				shorten(name))
		}
		return plan{{spot{path, entry}, name, nil}}
	}
	var p plan
	for _, d := range defs {
		d.used = true
		p = append(p, planned{spot{path, entry}, name, d})
	}
	return p
}

// renderManifests writes out the objects the components name, once nothing is wrong any more.
func (r *reader) renderManifests() error {
	size := 0
	for i, p := range r.index.plans {
		for j, m := range p {
			if m.def == nil {
				continue
			}
			if m.def.text == "" {
				text, err := render(rewriteAmounts(m.def))
				if err != nil {
					return problem.Wrap(problem.Malformed, err, "the manifest %q cannot be written as YAML", shorten(m.name))
				}
				m.def.text = text
			}
			if size += len(m.def.text); size > maxRendered {
				return problem.New(problem.TooLarge, "the manifests of all components together are larger than %d bytes",
					maxRendered)
			}
			out := &r.app.Components[i].Manifests[j]
			out.YAML, out.Kind, out.APIVersion = m.def.text, m.def.kind, scalar(m.def.node, "apiVersion")
			if dpe := r.app.Components[i].DPE; dpe != nil && bearsPods(out.Kind) {
				text, err := render(annotated(rewriteAmounts(m.def), label.MarkDPE, dpe.String()))
				if err != nil {
					return problem.Wrap(problem.Malformed, err, "the manifest %q cannot be written as YAML", shorten(m.name))
				}
				out.YAML = text
			}
		}
	}
	return nil
}

const isNoEntry = `is an object of Kubernetes itself: it belongs below the key "manifest" of the entry`

// isObject reports whether a list entry is itself an object, which should stand below its key "manifest".
func isObject(entry *yaml.Node) bool {
	return scalar(entry, "apiVersion") != "" && scalar(entry, "kind") != "" && field(entry, "manifest") == nil
}

// field returns the value of a key, nil when n has none.
func field(n *yaml.Node, name string) *yaml.Node {
	if n == nil || n.Kind != yaml.MappingNode {
		return nil
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == name {
			return n.Content[i+1]
		}
	}
	return nil
}

// scalar returns the text of a key, empty when there is none.
func scalar(n *yaml.Node, name string) string {
	if v := field(n, name); v != nil && v.Kind == yaml.ScalarNode && !isNull(v) {
		return v.Value
	}
	return ""
}

func metadataName(n *yaml.Node) string {
	return strings.TrimSpace(scalar(field(n, "metadata"), "name"))
}
