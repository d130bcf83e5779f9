package descriptor

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"slices"

	"go.yaml.in/yaml/v3"

	"github.com/littoral-project/littoral/shared/appmodel"
	"github.com/littoral-project/littoral/shared/problem"
)

// Edit is a descriptor in which objects are replaced. It is parsed and written once for all replacements; doing so for
// each of many components would take minutes.
type Edit struct {
	roots []*yaml.Node
	head  int
}

// Open reads a document, which must be one that Parse accepts.
func Open(document []byte) (*Edit, error) {
	var faults problem.Faults
	roots, err := load(document, &faults)
	if err == nil {
		err = faults.Err(invalid)
	}
	if err != nil {
		return nil, err
	}
	head := slices.IndexFunc(roots, isHead)
	if head < 0 {
		return nil, errors.New("the descriptor has no components")
	}
	return &Edit{roots, head}, nil
}

// Replace replaces the objects of one component by the given ones, written inline. Nodes on the way to them are copied,
// since load shares nodes.
func (e *Edit) Replace(component string, objects []appmodel.Manifest) error {
	entries := &yaml.Node{Kind: yaml.SequenceNode}
	for _, m := range objects {
		entry, err := manifestNode(m)
		if err != nil {
			return err
		}
		entries.Content = append(entries.Content, entry)
	}
	return e.set(component, "manifests", entries)
}

// set gives a field of one component another value.
func (e *Edit) set(component, name string, value *yaml.Node) error {
	components := *field(e.roots[e.head], "components")
	at := slices.IndexFunc(components.Content, func(c *yaml.Node) bool { return scalar(c, "name") == component })
	if at < 0 {
		return fmt.Errorf("the descriptor has no component %q", component)
	}
	components.Content = slices.Clone(components.Content)
	components.Content[at] = withField(components.Content[at], name, value)
	e.roots[e.head] = withField(e.roots[e.head], "components", &components)
	return nil
}

// Document returns the edited document. Other parts keep their content but lose comments and layout, and aliases are
// written out, so that nothing else changes together with a component.
func (e *Edit) Document() ([]byte, error) {
	var out bytes.Buffer
	encoder := yaml.NewEncoder(&out)
	encoder.SetIndent(2)
	for _, root := range e.roots {
		if err := encoder.Encode(root); err != nil {
			return nil, fmt.Errorf("write descriptor: %w", err)
		}
	}
	return out.Bytes(), encoder.Close()
}

// manifestNode returns {name: ..., manifest: {...}}; a nameless object is named by its metadata.
func manifestNode(m appmodel.Manifest) (*yaml.Node, error) {
	var faults problem.Faults
	roots, err := load([]byte(m.YAML), &faults)
	if err == nil {
		err = faults.Err("the object is not valid")
	}
	if err != nil {
		return nil, fmt.Errorf("manifest %q: %w", m.Name, err)
	}
	if len(roots) != 1 || roots[0].Kind != yaml.MappingNode {
		return nil, fmt.Errorf("manifest %q is not one object", m.Name)
	}
	entry := &yaml.Node{Kind: yaml.MappingNode}
	entry = withField(entry, "name", textNode(cmp.Or(m.Name, metadataName(roots[0]))))
	return withField(entry, "manifest", roots[0]), nil
}

// withField returns a copy of the object in which the key has the value.
func withField(n *yaml.Node, name string, value *yaml.Node) *yaml.Node {
	c := *n
	c.Content = slices.Clone(n.Content)
	for i := 0; i+1 < len(c.Content); i += 2 {
		if c.Content[i].Value == name {
			c.Content[i+1] = value
			return &c
		}
	}
	c.Content = append(c.Content, textNode(name), value)
	return &c
}

func textNode(text string) *yaml.Node {
	return &yaml.Node{Kind: yaml.ScalarNode, Tag: tagStr, Value: text}
}
