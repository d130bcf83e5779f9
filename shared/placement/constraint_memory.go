package placement

// memory: its bytes must be free on the node. A node exactly as large as the demand fits.
type memory struct{}

func (memory) rule() Rule { return RuleMemory }

func (memory) key(b []byte, c *Component) []byte { return appendInt(b, c.Memory) }

func (memory) applies(r *request) bool { return r.Memory != 0 }

func (memory) admits(r *request, n *nodeInfo) bool { return r.Memory <= n.freeMemory }

func (k memory) why(r *request, n *nodeInfo) []Failure {
	short := k.shortage(r, n, "")
	return []Failure{short.failure()}
}

func (k memory) relax(at *misfit, f Failure) change { return lowerAmount(at, k, f) }

func (memory) demand(r *request, add func(string, int64)) {
	if r.Memory != 0 {
		add("", r.Memory)
	}
}

func (memory) free(n *nodeInfo, _ string) int64 { return n.freeMemory }

func (k memory) shortage(r *request, n *nodeInfo, _ string) shortage {
	out := shortage{
		dim: dim{kind: k}, need: r.Memory, free: n.freeMemory, reported: true, whole: n.Memory, other: n.OtherMemory,
	}
	out.reserve(n, func(v *Reservation) int64 { return v.Memory })
	return out
}

func (memory) text(_ string, v int64) string { return Size(v) }

func (memory) bare(v int64) string { return Size(v) }

func (memory) unit() (string, float64) { return "GiB", 1 << 30 }

func (memory) lower(what shortage, to int64) change {
	return reduce("memory", what.need, to, Size, func(x *Component, v int64) { x.Memory = v })
}
