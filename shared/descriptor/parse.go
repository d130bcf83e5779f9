package descriptor

import (
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/littoral-project/littoral/shared/appmodel"
	"github.com/littoral-project/littoral/shared/compose/reading"
	"github.com/littoral-project/littoral/shared/problem"
)

// Parse reads a descriptor for submission: YAML of one or several documents, or JSON. Every component must have its
// manifests. The error is a *problem.Error: TooLarge beyond the bounds on size, Malformed when the text cannot be read
// at all, else Invalid with every fault, its path (components[1].requirements.cpu) and line, and all warnings. Together
// with Invalid comes what could be read, so that others can check it too.
//
// Compose files are read by the given reader, and refused without one: its library is too large for whoever does not take
// descriptors.
func Parse(doc []byte, compose reading.Reader) (*appmodel.Application, error) {
	return read(doc, reader{compose: compose})
}

// ParseStored reads a descriptor that was accepted before, without the rules that were added since. What its compose files ask
// for was stored with it.
func ParseStored(doc []byte) (*appmodel.Application, error) { return read(doc, reader{stored: true}) }

// ParseHeader reads a descriptor for matchmaking, where only the components count. Manifests are resolved as in Parse;
// a missing one is left with its name alone. Faults in manifests, and names that no cluster would accept, are warnings.
// Without a reader of compose files nothing is known of these.
func ParseHeader(doc []byte, compose reading.Reader) (*appmodel.Application, error) {
	return read(doc, reader{header: true, compose: compose})
}

const invalid = "the descriptor is invalid"

func read(doc []byte, r reader) (*appmodel.Application, error) {
	roots, err := load(doc, &r.faults)
	if err != nil {
		return nil, err
	}
	return r.read(roots)
}

func (r *reader) read(roots []*yaml.Node) (*appmodel.Application, error) {
	r.app.Dialect, r.labelled = appmodel.ICOS, map[int]spot{}
	r.application(roots)
	if r.faults.Empty() {
		if err := r.renderManifests(); err != nil {
			return nil, err
		}
	}
	if !r.stored {
		r.readCompose()
	}
	r.check()
	if !r.stored {
		r.checkObjects()
	}
	if !r.header && !r.stored {
		r.checkSubmission()
	}
	if r.moreWarned > 0 {
		r.app.Warnings = append(r.app.Warnings, problem.Field{Path: document, Detail: "further warnings are not listed"})
	}
	return &r.app, problem.WithWarnings(r.faults.Err(invalid), r.app.Warnings)
}

// application reads the head, the first document with components, and leaves the others to the manifests.
func (r *reader) application(roots []*yaml.Node) {
	head := -1
	for i, root := range roots {
		if !isHead(root) {
			continue
		}
		if head >= 0 {
			r.fault(documentPath(i), root, "is a second descriptor; the first begins on line %d", roots[head].Line)
			roots[i] = nil
			continue
		}
		head = i
	}
	if head < 0 {
		line := 0
		if len(roots) > 0 {
			line = roots[0].Line
		}
		r.faults.Add("components", line, "is missing: no document of the descriptor has any component")
		return
	}
	f, ok := r.object(roots[head], "")
	if !ok {
		return
	}
	if !r.stored {
		r.app.Source = &r.source
		r.source.head = roots[head]
	}
	name, path := f.get("name")
	if name != nil {
		r.app.Name = r.label(name, path, maxApplicationName)
	}
	r.app.Description = r.optional(f, "description")
	r.app.Namespace = r.optional(f, "namespace")
	r.index.collect(r, f, roots, head)

	components, path := f.get("components")
	entries := r.list(components, path)
	if len(components.Content) == 0 && components.Kind == yaml.SequenceNode {
		r.fault(path, components, "is empty: at least one component is needed")
	}
	if len(entries) > maxComponents {
		r.fault(path, components, "has %d components; %d are allowed", len(entries), maxComponents)
		return
	}
	first := map[string]int{}
	for i, entry := range entries {
		r.source.components = append(r.source.components, entry)
		c, line, ok := r.component(entry, at(path, i))
		if !ok { // its place is kept, so that the paths of others are right
			r.app.Components = append(r.app.Components, appmodel.Component{})
			r.index.plans, r.types = append(r.index.plans, nil), append(r.types, spot{at(path, i), entry})
			continue
		}
		if before, seen := first[c.Name]; seen {
			r.faults.Add(at(path, i)+".name", line, "%q is the name of the component on line %d already",
				shorten(c.Name), before)
		} else if c.Name != "" {
			first[c.Name] = line
		}
		r.app.Components = append(r.app.Components, c)
	}
	if policies, path := f.get("policies"); policies != nil {
		r.app.Policies = r.policies(policies, path, "")
	}
	if v, path := f.get("profile"); v != nil {
		r.app.Profile = strings.ToLower(r.label(v, path, maxLabel))
	}
	if v, path := f.get("mixedTypes"); v != nil {
		r.app.MixedTypes = r.truth(v, path)
	}
	if f.has("dependencies") {
		r.warn("dependencies", nil, "ignored: say what a component needs in its communication")
	}
	if f.has("requirements") {
		r.warn("requirements", nil, "ignored: requirements belong to each component")
	}
	r.rest(f)
}

// isHead reports whether a document has components and is no Kubernetes object, which may have components of its own.
func isHead(root *yaml.Node) bool {
	if root.Kind != yaml.MappingNode {
		return false
	}
	f := fields{node: root, used: map[string]bool{}}
	components, _ := f.get("components")
	return components != nil && !(f.has("apiVersion") && f.has("kind"))
}

func (r *reader) optional(f *fields, name string) string {
	n, path := f.get(name)
	return r.text(n, path)
}

func (r *reader) component(n *yaml.Node, path string) (c appmodel.Component, line int, ok bool) {
	if n.Kind == yaml.MappingNode && r.slips(n, path, r.fault) {
		return c, n.Line, false
	}
	f, ok := r.object(n, path)
	if !ok {
		return c, n.Line, false
	}
	line = n.Line
	if name, path := f.get("name"); name != nil {
		line = name.Line
		c.Name = r.label(name, path, maxLabel)
	}
	if c.Name == "" {
		r.fault(join(path, "name"), n, "is missing")
	}
	r.componentType(&c, f)
	r.manifests(&c, f)
	if v, path := f.get("requirements"); v != nil {
		c.Requirements = r.requirements(v, path)
	}
	if v, path := f.get("policies"); v != nil {
		c.Policies = r.policies(v, path, c.Name)
	}
	if v, path := f.get("targets", "target"); v != nil {
		c.Targets = r.targets(v, path)
	}
	if v, path := f.get("communication"); v != nil {
		c.Communication = r.communication(v, path)
	}
	if v, path := f.get("near"); v != nil {
		c.Near = r.near(v, path)
	}
	if v, path := f.get("scaling"); v != nil {
		c.Scaling = r.scaling(v, path)
	}
	if v, path := f.get("dpe"); v != nil {
		c.DPE = r.dpe(v, path)
		if c.Type == appmodel.TypeDocker {
			r.warn(path, v, "ignored: only pods get the sidecar")
		}
	}
	r.rest(f)
	return c, line, true
}

// componentTypes are the words in use. Older documents name the form of the manifest instead of the engine.
var componentTypes = map[string]string{
	"kubernetes": appmodel.TypeKubernetes, "k8s": appmodel.TypeKubernetes, "manifest": appmodel.TypeKubernetes, "helm": appmodel.TypeKubernetes,
	"docker": appmodel.TypeDocker, "container": appmodel.TypeDocker, "docker-compose": appmodel.TypeDocker, "compose": appmodel.TypeDocker,
	"multiple": appmodel.TypeMultiple,
}

func (r *reader) componentType(c *appmodel.Component, f *fields) {
	n, path := f.get("type")
	if n == nil {
		r.types = append(r.types, spot{join(f.path, "type"), f.node})
	} else {
		r.types = append(r.types, spot{path, n})
	}
	c.RawType, c.Type = r.text(n, path), appmodel.TypeKubernetes
	if c.RawType == "" {
		if n == nil && !r.header {
			r.warn(join(f.path, "type"), f.node, "is missing, taken for kubernetes")
		}
		return
	}
	known, ok := componentTypes[strings.ToLower(c.RawType)]
	if !ok {
		r.fault(path, n, "%q is not a component type: kubernetes, docker or multiple", shorten(c.RawType))
		return
	}
	c.Type = known
}

const namesNoPlace = "names neither cluster_name nor node_name"

// targets accepts an object, a list of them and an empty list. An object with nothing in it fixes nothing.
func (r *reader) targets(n *yaml.Node, path string) []appmodel.Target {
	entries, paths := []*yaml.Node{n}, []string{path}
	if n.Kind != yaml.MappingNode || r.slips(n, path, r.fault) {
		entries, paths = nil, nil
		if n.Kind != yaml.MappingNode {
			for i, entry := range r.list(n, path) {
				entries, paths = append(entries, entry), append(paths, at(path, i))
			}
		}
	}
	var out []appmodel.Target
	for i, entry := range entries {
		f, ok := r.object(entry, paths[i])
		if !ok {
			continue
		}
		t := appmodel.Target{
			Cluster:      r.optional(f, "cluster_name"),
			Node:         r.optional(f, "node_name"),
			Orchestrator: strings.ToLower(r.optional(f, "orchestrator")),
		}
		named := f.has("cluster_name") || f.has("node_name") || f.has("orchestrator")
		r.rest(f)
		switch {
		case t.Cluster != "" || t.Node != "":
			out = append(out, t)
		case t.Orchestrator != "":
			r.fault(paths[i], entry, namesNoPlace)
		case !named && len(entry.Content) > 0 && !r.stored:
			r.complain(paths[i], entry, namesNoPlace)
		}
	}
	return out
}

// communication accepts a list of single-key objects (- incoming: svc) and one object of lists (incoming: [a, b]). Beside
// incoming may stand optional: true, which is not in ICOS.
func (r *reader) communication(n *yaml.Node, path string) appmodel.Communication {
	var c appmodel.Communication
	add := func(n *yaml.Node, path string) {
		f, ok := r.object(n, path)
		if !ok || r.slips(n, path, r.fault) {
			return
		}
		if v, path := f.get("outgoing"); v != nil {
			c.Outgoing = append(c.Outgoing, r.texts(v, path)...)
		}
		var needed []string
		if v, path := f.get("incoming"); v != nil {
			needed = r.texts(v, path)
			c.Incoming = append(c.Incoming, needed...)
		}
		if v, path := f.get("optional"); v != nil && r.truth(v, path) {
			c.Optional = append(c.Optional, needed...)
		}
		r.rest(f)
	}
	if n.Kind == yaml.MappingNode {
		add(n, path)
	} else {
		for i, entry := range r.list(n, path) {
			add(entry, at(path, i))
		}
	}
	c.Outgoing, c.Incoming, c.Optional = distinct(c.Outgoing), distinct(c.Incoming), distinct(c.Optional)
	return c
}

// near names the data sets and the zones of users that a component is better close to.
func (r *reader) near(n *yaml.Node, path string) appmodel.Near {
	var near appmodel.Near
	f, ok := r.object(n, path)
	if !ok || r.slips(n, path, r.fault) {
		return near
	}
	read := func(key string) []string {
		v, path := f.get(key)
		if v == nil {
			return nil
		}
		names := distinct(r.texts(v, path))
		if len(names) > maxNear {
			r.fault(path, v, "has %d names; %d are allowed", len(names), maxNear)
		}
		return names
	}
	near.Data, near.Users = read("data"), read("users")
	r.rest(f)
	return near
}

// maxNear bounds the data sets, and the zones, of a component.
const maxNear = 50

// distinct drops repetitions from list.
func distinct(list []string) []string {
	seen := make(map[string]bool, len(list))
	return slices.DeleteFunc(list, func(s string) bool {
		before := seen[s]
		seen[s] = true
		return before
	})
}

const maxReplicas = 10_000

func (r *reader) scaling(n *yaml.Node, path string) *appmodel.Scaling {
	f, ok := r.object(n, path)
	if !ok {
		return nil
	}
	whole := func(name string, low, otherwise int) int {
		n, path := f.get(name)
		if n == nil {
			return otherwise
		}
		value, ok := r.number(n, path, float64(low), maxReplicas)
		switch {
		case !ok: // so that this fault does not cause another
			return otherwise
		case value != float64(int(value)):
			r.fault(path, n, "must be a whole number, not %s", shorten(n.Value))
		}
		return int(value)
	}
	s := appmodel.Scaling{MinReplicas: whole("minReplicas", 0, 1), Step: whole("step", 1, 1)}
	if s.MinReplicas == 0 {
		r.warn(join(path, "minReplicas"), n, "is 0, taken for 1: the last replica is never scaled away")
		s.MinReplicas = 1
	}
	s.MaxReplicas = whole("maxReplicas", 1, max(1, s.MinReplicas))
	if s.MaxReplicas < s.MinReplicas {
		r.fault(join(path, "maxReplicas"), n, "is %d, less than minReplicas %d", s.MaxReplicas, s.MinReplicas)
	}
	r.rest(f)
	return &s
}
