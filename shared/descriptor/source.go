package descriptor

import (
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// source is the document of a model.
type source struct {
	head       *yaml.Node   // with the components
	components []*yaml.Node // in their order; aliases are resolved when they are written out
}

// Component implements appmodel.Source.
func (s *source) Component(i int) map[string]any { return plain(s.components[i]).(map[string]any) }

// Line implements appmodel.Source.
func (s *source) Line(path string, within int) int {
	n := s.head
	rest := path
	for rest != "" {
		key, more, _ := strings.Cut(rest, ".")
		name, index, indexed := strings.Cut(key, "[")
		next := field(n, name)
		if next == nil {
			return n.Line
		}
		n, rest = next, more
		if i, err := strconv.Atoi(strings.TrimSuffix(index, "]")); indexed && n.Kind == yaml.SequenceNode {
			if err != nil || i < 0 || i >= len(n.Content) {
				return n.Line
			}
			n = n.Content[i]
		}
	}
	if n.Style&yaml.LiteralStyle != 0 { // its text begins below the indicator
		return n.Line + 1 + within
	}
	return n.Line
}
