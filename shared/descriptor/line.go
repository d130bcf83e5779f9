package descriptor

import (
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Line returns the line of the document where the value at the path stands, such as policies[0].spec.expr; that of the
// nearest part of the path that is there. Of a text over several lines, within counts them from 0. It is 0 after
// ParseStored, which keeps no lines.
func (a *Application) Line(path string, within int) int {
	n := a.head
	if n == nil {
		return 0
	}
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
