package descriptor

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"go.yaml.in/yaml/v3"
)

// WithManifests returns the document with the objects of one component replaced by the given ones, written inline into
// the component. The rest stays as it was, but for comments and layout. The document must be one that Parse accepts.
func WithManifests(document []byte, component string, objects []Manifest) ([]byte, error) {
	decoder := yaml.NewDecoder(bytes.NewReader(document))
	var out bytes.Buffer
	encoder := yaml.NewEncoder(&out)
	encoder.SetIndent(2)
	for first := true; ; first = false {
		var root yaml.Node
		err := decoder.Decode(&root)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("read descriptor: %w", err)
		}
		if first {
			if err := replaceManifests(&root, component, objects); err != nil {
				return nil, err
			}
		}
		if err := encoder.Encode(&root); err != nil {
			return nil, fmt.Errorf("write descriptor: %w", err)
		}
	}
	return out.Bytes(), encoder.Close()
}

func replaceManifests(root *yaml.Node, component string, objects []Manifest) error {
	entries := &yaml.Node{Kind: yaml.SequenceNode}
	for _, m := range objects {
		entry, err := manifestNode(m)
		if err != nil {
			return err
		}
		entries.Content = append(entries.Content, entry)
	}
	if len(root.Content) == 0 {
		return errors.New("the descriptor is empty")
	}
	list := child(root.Content[0], "components")
	if list == nil {
		return errors.New("the descriptor has no components")
	}
	for _, c := range list.Content {
		if name := child(c, "name"); name == nil || name.Value != component {
			continue
		}
		if at := child(c, "manifests"); at != nil {
			*at = *entries
			return nil
		}
		c.Content = append(c.Content, &yaml.Node{Kind: yaml.ScalarNode, Value: "manifests"}, entries)
		return nil
	}
	return fmt.Errorf("the descriptor has no component %q", component)
}

// manifestNode returns {name: ..., manifest: {...}}; a nameless object is named by its metadata.
func manifestNode(m Manifest) (*yaml.Node, error) {
	var object yaml.Node
	if err := yaml.Unmarshal([]byte(m.YAML), &object); err != nil {
		return nil, fmt.Errorf("manifest %q is not YAML: %w", m.Name, err)
	}
	if len(object.Content) == 0 || object.Content[0].Kind != yaml.MappingNode {
		return nil, fmt.Errorf("manifest %q is not an object", m.Name)
	}
	name := m.Name
	if name == "" {
		if metadata := child(object.Content[0], "metadata"); metadata != nil {
			if n := child(metadata, "name"); n != nil {
				name = n.Value
			}
		}
	}
	scalar := func(v string) *yaml.Node { return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: v} }
	return &yaml.Node{Kind: yaml.MappingNode, Content: []*yaml.Node{
		scalar("name"), scalar(name), scalar("manifest"), object.Content[0],
	}}, nil
}

// child returns the value of a key of a mapping, nil when it has none.
func child(n *yaml.Node, key string) *yaml.Node {
	for i := 0; n.Kind == yaml.MappingNode && i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == key {
			return n.Content[i+1]
		}
	}
	return nil
}
