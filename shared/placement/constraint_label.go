package placement

import (
	"fmt"
	"slices"
	"strings"
)

// label: each required label of the node must have one of the allowed values.
type label struct{}

func (label) rule() Rule { return RuleLabel }

func (label) key(b []byte, c *Component) []byte {
	for _, k := range sortedKeys(c.Labels) {
		b = appendStrings(append(appendStrings(b, []string{k}), '='), c.Labels[k])
	}
	return b
}

func (label) applies(r *request) bool { return len(r.Labels) > 0 }

func (label) admits(r *request, n *nodeInfo) bool {
	for key, values := range r.Labels {
		if got, ok := n.Labels[key]; !ok || !slices.Contains(values, got) {
			return false
		}
	}
	return true
}

func (label) why(r *request, n *nodeInfo) []Failure {
	var out []Failure
	for _, key := range sortedKeys(r.Labels) {
		values := r.Labels[key]
		got, ok := n.Labels[key]
		if ok && slices.Contains(values, got) {
			continue
		}
		f := Failure{Key: key, Needed: key + "=" + strings.Join(values, "|"), Available: key + "=" + got}
		if !ok {
			f.Available = "no such label"
		}
		f.Detail = fmt.Sprintf("needs label %s, the node has %s", f.Needed, f.Available)
		out = append(out, f)
	}
	return out
}

func (label) relax(_ *misfit, f Failure) change {
	return drop("the label", f.Needed, 1, func(x *Component) { x.Labels = without(x.Labels, f.Key) })
}
