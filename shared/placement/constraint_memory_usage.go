package placement

// memoryUsage: the node's memory must not be fuller than that at present.
type memoryUsage struct{}

func (memoryUsage) rule() Rule { return RuleMemoryUsage }

func (memoryUsage) key(b []byte, c *Component) []byte { return appendFloat(b, c.MaxMemoryUsage) }

func (memoryUsage) applies(r *request) bool { return r.MaxMemoryUsage != 0 }

func (memoryUsage) admits(r *request, n *nodeInfo) bool {
	return r.MaxMemoryUsage == 0 || n.MemoryUsage <= r.MaxMemoryUsage
}

func (memoryUsage) why(r *request, n *nodeInfo) []Failure {
	return whyUsage("memory", r.MaxMemoryUsage, n.MemoryUsage)
}

func (memoryUsage) relax(at *misfit, _ Failure) change {
	return raiseUsage("memory", at.request.MaxMemoryUsage, at.node.MemoryUsage,
		func(x *Component, v float64) { x.MaxMemoryUsage = v })
}
