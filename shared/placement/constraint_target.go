package placement

import "slices"

// fixedTarget: the user fixed where it may go.
type fixedTarget struct{}

func (fixedTarget) rule() Rule { return RuleTarget }

func (fixedTarget) key(b []byte, c *Component) []byte { return appendTargets(b, c.Targets) }

func (fixedTarget) applies(r *request) bool { return len(r.Targets) > 0 }

func (fixedTarget) admits(r *request, n *nodeInfo) bool {
	return len(r.Targets) == 0 || matchesAny(r.Targets, n)
}

func (fixedTarget) why(r *request, n *nodeInfo) []Failure {
	return []Failure{{
		Detail: "must go to " + places(r.Targets),
		Needed: places(r.Targets), Available: place(n.Target()),
	}}
}

func (fixedTarget) relax(at *misfit, _ Failure) change {
	return drop("the fixed place", places(at.request.Targets), 1, func(x *Component) { x.Targets = nil })
}

func matchesAny(ts []Target, n *nodeInfo) bool {
	return slices.ContainsFunc(ts, func(t Target) bool { return t.matches(n.Node) })
}
