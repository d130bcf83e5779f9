package placement

// cpu: its millicores must be free on the node. A node exactly as large as the demand fits.
type cpu struct{}

func (cpu) rule() Rule { return RuleCPU }

func (cpu) key(b []byte, c *Component) []byte { return appendInt(b, c.CPU) }

func (cpu) applies(r *request) bool { return r.CPU != 0 }

func (cpu) admits(r *request, n *nodeInfo) bool { return r.CPU <= n.freeCPU }

func (k cpu) why(r *request, n *nodeInfo) []Failure {
	short := k.shortage(r, n, "")
	return []Failure{short.failure()}
}

func (k cpu) relax(at *misfit, f Failure) change { return lowerAmount(at, k, f) }

func (cpu) demand(r *request, add func(string, int64)) {
	if r.CPU != 0 {
		add("", r.CPU)
	}
}

func (cpu) free(n *nodeInfo, _ string) int64 { return n.freeCPU }

func (k cpu) shortage(r *request, n *nodeInfo, _ string) shortage {
	out := shortage{
		dim: dim{kind: k}, need: r.CPU, free: n.freeCPU, reported: true, whole: n.CPU, other: n.OtherCPU,
	}
	out.reserve(n, func(v *Reservation) int64 { return v.CPU })
	return out
}

func (cpu) text(_ string, v int64) string { return cores(v) }

func (cpu) bare(v int64) string { return CoreCount(v) }

func (cpu) unit() (string, float64) { return "core", 1000 }

func (cpu) lower(what shortage, to int64) change {
	return reduce("cpu", what.need, to, cores, func(x *Component, v int64) { x.CPU = v })
}
