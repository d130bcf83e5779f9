package placement

import "fmt"

// freeMemory: so much must be free on the node before anything of the problem is placed.
type freeMemory struct{}

func (freeMemory) rule() Rule { return RuleFreeMemory }

func (freeMemory) key(b []byte, c *Component) []byte { return appendInt(b, c.MinFreeMemory) }

func (freeMemory) applies(r *request) bool { return r.MinFreeMemory != 0 }

func (freeMemory) admits(r *request, n *nodeInfo) bool { return r.MinFreeMemory <= n.freeMemory }

func (freeMemory) why(r *request, n *nodeInfo) []Failure {
	return []Failure{{
		Detail: fmt.Sprintf("needs a node with %s free, this one has %s", Size(r.MinFreeMemory), Size(n.freeMemory)),
		Needed: Size(r.MinFreeMemory), Available: Size(n.freeMemory),
	}}
}

func (freeMemory) relax(at *misfit, _ Failure) change {
	return reduce("free memory", at.request.MinFreeMemory, at.node.freeMemory, Size,
		func(x *Component, v int64) { x.MinFreeMemory = v })
}
