// Package codecoapp reads the CodecoApp (codeco.he-codeco.eu/v1alpha1), the application model of CODECO, into the neutral
// model of package appmodel. All generations of the schema are read; they share one version and are told apart by their
// keys (shared/docs/codeco.md).
//
// Each service becomes a component with one Deployment and, where it has ports, one Service. That is done by writing a
// descriptor from the nodes of the document, so everything that holds for a descriptor holds here too: bounds, names,
// checks of objects, lines. Paths of faults are those of the CodecoApp. There is no I/O here and no clock.
package codecoapp

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/littoral-project/littoral/shared/appmodel"
	"github.com/littoral-project/littoral/shared/descriptor"
	"github.com/littoral-project/littoral/shared/problem"
)

// Group, Version and Kind of the object.
const (
	Group   = "codeco.he-codeco.eu"
	Version = "v1alpha1"
	Kind    = "CodecoApp"
)

// Generation is a state of the schema over time.
type Generation int

// The generations.
const (
	V0 Generation = iota // name and two classes, no services
	V1                   // services name a pod spec that is kept elsewhere (D11)
	V2                   // services hold their pod spec, and channels
	V3                   // a performance profile, and channels with two fields
)

// Parse reads a CodecoApp for submission. The document may be followed by the objects that a CodecoApp of the first
// generation names: a PodTemplate or a Pod for each podspecname. The error is that of descriptor.Parse.
func Parse(doc []byte) (*appmodel.Application, error) { return read(doc, descriptor.Submitted) }

// ParseStored reads a CodecoApp that was accepted before.
func ParseStored(doc []byte) (*appmodel.Application, error) { return read(doc, descriptor.Stored) }

// ParseHeader reads a CodecoApp that is only asked about.
func ParseHeader(doc []byte) (*appmodel.Application, error) { return read(doc, descriptor.Header) }

// Is reports whether a document is a CodecoApp, by its first kind and group.
func Is(doc []byte) bool {
	if !strings.Contains(string(doc), Group) {
		return false
	}
	var faults problem.Faults
	roots, err := descriptor.Load(doc, &faults)
	return err == nil && slices.ContainsFunc(roots, isCodecoApp)
}

func isCodecoApp(root *yaml.Node) bool {
	group, _, _ := strings.Cut(text(root, "apiVersion"), "/")
	return group == Group && text(root, "kind") == Kind
}

const invalid = "the CodecoApp is invalid"

func read(doc []byte, as descriptor.Reading) (*appmodel.Application, error) {
	var faults problem.Faults
	roots, err := descriptor.Load(doc, &faults)
	if err != nil {
		return nil, err
	}
	r := reader{faults: faults, pods: map[string]*yaml.Node{}}
	head := r.head(roots)
	if head == nil {
		return nil, r.faults.Err(invalid)
	}
	r.application(head)
	if !r.faults.Empty() {
		return nil, problem.WithWarnings(r.faults.Err(invalid), r.warnings)
	}
	app, err := descriptor.Translated(r.tree(), as)
	var refused *problem.Error
	if errors.As(err, &refused) {
		r.faults.Append(r.translated(refused.Fields)...)
		err = r.faults.Err(invalid)
	}
	if app == nil {
		return nil, err
	}
	app.Dialect, app.Namespace = appmodel.CODECO, r.namespace
	app.Channels, app.Profile = r.channels, r.profile
	app.Warnings = append(r.warnings, r.translated(app.Warnings)...)
	app.Derived = append(r.translated(app.Derived), r.derived...)
	app.Source = source{app.Source, head, &r}
	return app, problem.WithWarnings(err, app.Warnings)
}

// source is the document of a model.
type source struct {
	appmodel.Source // of the descriptor; nil for one that was stored

	head *yaml.Node
	r    *reader
}

// Line implements appmodel.Source.
func (s source) Line(path string, within int) int {
	if s.Source == nil {
		return 0
	}
	for _, p := range s.r.paths {
		if rest, ok := below(path, p.descriptor); ok {
			path = p.own + rest
			break
		}
	}
	n := s.head
	for key := range strings.SplitSeq(path, ".") {
		name, _, _ := strings.Cut(key, "[")
		next := child(n, name)
		if next == nil || next.Kind == yaml.SequenceNode {
			break
		}
		n = next
	}
	return n.Line + within
}

// reader collects what a CodecoApp says.
type reader struct {
	faults   problem.Faults
	warnings []problem.Field
	derived  []problem.Field

	generation  Generation
	name        string
	namespace   string
	services    []service
	policies    []*yaml.Node
	channels    []appmodel.Channel
	profile     string
	annotations *yaml.Node
	pods        map[string]*yaml.Node // pod specs in further documents
	paths       []renamed
}

// renamed is where a part of the descriptor stands in the CodecoApp.
type renamed struct{ descriptor, own string }

func (r *reader) fault(path string, n *yaml.Node, format string, args ...any) {
	r.faults.Add(path, n.Line, format, args...)
}

func (r *reader) warn(path string, n *yaml.Node, format string, args ...any) {
	if len(r.warnings) < 100 {
		r.warnings = append(r.warnings, problem.Field{Path: path, Line: n.Line, Detail: fmt.Sprintf(format, args...)})
	}
}

// translated gives faults of the descriptor the paths of the CodecoApp.
func (r *reader) translated(fields []problem.Field) []problem.Field {
	out := slices.Clone(fields)
	for i := range out {
		for _, p := range r.paths { // the longest first
			if rest, ok := below(out[i].Path, p.descriptor); ok {
				out[i].Path = p.own + rest
				break
			}
		}
	}
	return out
}

// below returns what follows a prefix that ends where a part of the path does.
func below(path, prefix string) (rest string, ok bool) {
	rest, ok = strings.CutPrefix(path, prefix)
	return rest, ok && (rest == "" || rest[0] == '.' || rest[0] == '[')
}

// head returns the CodecoApp among the documents; the others may be pod specs.
func (r *reader) head(roots []*yaml.Node) (head *yaml.Node) {
	for i, root := range roots {
		switch kind := text(root, "kind"); {
		case isCodecoApp(root) && head == nil:
			head = root
		case isCodecoApp(root):
			r.fault(fmt.Sprintf("documents[%d]", i), root, "is a second CodecoApp; the first begins on line %d", head.Line)
		case kind == "PodTemplate":
			r.pods[text(child(root, "metadata"), "name")] = child(child(root, "template"), "spec")
		case kind == "Pod":
			r.pods[text(child(root, "metadata"), "name")] = child(root, "spec")
		default:
			r.fault(fmt.Sprintf("documents[%d]", i), root, "is neither a CodecoApp nor a Pod or PodTemplate that one names")
		}
	}
	if head == nil {
		r.faults.Add("kind", 1, "no document is a %s of %s", Kind, Group)
	}
	return head
}

func (r *reader) application(head *yaml.Node) {
	metadata := child(head, "metadata")
	r.namespace, r.annotations = text(metadata, "namespace"), child(metadata, "annotations")
	spec := child(head, "spec")
	if spec == nil || spec.Kind != yaml.MappingNode {
		r.fault("spec", head, "is missing, or no object")
		return
	}
	r.generation = generationOf(spec)
	r.name = text(metadata, "name")
	r.paths = append(r.paths, renamed{"name", "metadata.name"})
	if n, key := first(spec, "appName", "name"); n != nil {
		r.name, r.paths[0].own = n.Value, "spec."+key
	}
	if r.name == "" {
		r.fault("spec.appName", spec, "is missing, and so is metadata.name")
	}
	r.classes(spec)
	list := child(spec, "codecoapp-msspec")
	switch {
	case list == nil:
		r.fault("spec.codecoapp-msspec", spec, "is missing: the application has no services, so there is nothing to run")
		return
	case list.Kind != yaml.SequenceNode || len(list.Content) == 0:
		r.fault("spec.codecoapp-msspec", list, "must be a list of at least one service")
		return
	}
	for i, n := range list.Content {
		r.service(n, fmt.Sprintf("spec.codecoapp-msspec[%d]", i))
	}
	r.unknown(spec, "spec", "appName", "name", "codecoapp-msspec", "qosClass", "qosclass", "securityClass", "securityclass",
		"complianceClass", "complianceclass", "appEnergyLimit", "appenergylimit", "appFailureTolerance", "appfailuretolerance",
		"performanceProfile")
}

// generationOf recognises the generation by the keys that came with it.
func generationOf(spec *yaml.Node) Generation {
	if child(spec, "performanceProfile") != nil {
		return V3
	}
	list := child(spec, "codecoapp-msspec")
	if list == nil {
		if child(spec, "appName") != nil {
			return V2
		}
		return V0
	}
	generation := V2
	for _, service := range list.Content {
		if child(service, "podspecname") != nil {
			generation = V1
		}
		if channels := child(service, "serviceChannels"); channels != nil {
			for _, ch := range channels.Content {
				if child(child(ch, "advancedChannelSettings"), "bandwidth") != nil {
					return V3
				}
			}
		}
	}
	return generation
}

// unknown warns of keys that nobody reads.
func (r *reader) unknown(n *yaml.Node, path string, known ...string) {
	for i := 0; n.Kind == yaml.MappingNode && i+1 < len(n.Content); i += 2 {
		if key := n.Content[i]; !slices.Contains(known, key.Value) {
			r.warn(path+"."+problem.Brief(key.Value, 60), key, "unknown key, ignored")
		}
	}
}

// child returns the value of a key that is not null; nil without one.
func child(n *yaml.Node, key string) *yaml.Node {
	if n == nil || n.Kind != yaml.MappingNode {
		return nil
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		if v := n.Content[i+1]; n.Content[i].Value == key && !(v.Kind == yaml.ScalarNode && v.Tag == "!!null") {
			return v
		}
	}
	return nil
}

// first returns the value of the first of the keys that is there.
func first(n *yaml.Node, keys ...string) (value *yaml.Node, key string) {
	for _, key := range keys {
		if v := child(n, key); v != nil {
			return v, key
		}
	}
	return nil, keys[0]
}

// text returns the value of a key that holds one; empty without.
func text(n *yaml.Node, key string) string {
	if v := child(n, key); v != nil && v.Kind == yaml.ScalarNode {
		return strings.TrimSpace(v.Value)
	}
	return ""
}

// Object returns the CodecoApp of a document in the types of encoding/json.
func Object(doc []byte) (map[string]any, error) {
	var faults problem.Faults
	roots, err := descriptor.Load(doc, &faults)
	if err != nil {
		return nil, err
	}
	for _, root := range roots {
		if isCodecoApp(root) {
			object, _ := descriptor.Plain(root).(map[string]any)
			return object, nil
		}
	}
	return nil, problem.New(problem.Invalid, "the document is no CodecoApp")
}

// Name returns the namespace and name in the metadata; the name may stand in the spec alone.
func Name(object map[string]any) (namespace, name string) {
	metadata, _ := object["metadata"].(map[string]any)
	namespace, _ = metadata["namespace"].(string)
	if name, _ = metadata["name"].(string); name != "" {
		return namespace, name
	}
	spec, _ := object["spec"].(map[string]any)
	for _, key := range []string{"appName", "name"} {
		if name, _ = spec[key].(string); name != "" {
			break
		}
	}
	return namespace, name
}
