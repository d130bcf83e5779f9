package placement

import "slices"

// exclusion: places it must not go, such as a node that violated a policy.
type exclusion struct{}

func (exclusion) rule() Rule { return RuleExcluded }

func (exclusion) key(b []byte, c *Component) []byte { return appendTargets(b, c.Excluded) }

func (exclusion) applies(r *request) bool { return len(r.Excluded) > 0 }

func (exclusion) admits(r *request, n *nodeInfo) bool { return !matchesAny(r.Excluded, n) }

func (exclusion) why(r *request, n *nodeInfo) []Failure {
	var by []Target
	for _, t := range r.Excluded {
		if t.matches(n.Node) {
			by = append(by, t)
		}
	}
	return []Failure{{Detail: "excluded as " + places(by), Needed: "not " + places(by), Available: place(n.Target())}}
}

// relax costs more than to drop a requirement, since someone excluded the place on purpose.
func (exclusion) relax(at *misfit, f Failure) change {
	return drop("the exclusion", f.Needed, 2, func(x *Component) {
		x.Excluded = slices.DeleteFunc(slices.Clone(x.Excluded), func(t Target) bool { return t.matches(at.node.Node) })
	})
}
