package placement

import "fmt"

// cpuUsage: the node must not be busier than that at present.
type cpuUsage struct{}

func (cpuUsage) rule() Rule { return RuleCPUUsage }

func (cpuUsage) key(b []byte, c *Component) []byte { return appendFloat(b, c.MaxCPUUsage) }

func (cpuUsage) applies(r *request) bool { return r.MaxCPUUsage != 0 }

func (cpuUsage) admits(r *request, n *nodeInfo) bool {
	return r.MaxCPUUsage == 0 || n.CPUUsage <= r.MaxCPUUsage
}

func (cpuUsage) why(r *request, n *nodeInfo) []Failure {
	return whyUsage("cpu", r.MaxCPUUsage, n.CPUUsage)
}

func (cpuUsage) relax(at *misfit, _ Failure) change {
	return raiseUsage("cpu", at.request.MaxCPUUsage, at.node.CPUUsage,
		func(x *Component, v float64) { x.MaxCPUUsage = v })
}

func whyUsage(what string, most, now float64) []Failure {
	return []Failure{{
		Detail: fmt.Sprintf("%s usage may be %s, it is %s", what, percent(most), percent(now)),
		Needed: "at most " + percent(most), Available: percent(now),
	}}
}

func raiseUsage(what string, from, to float64, do func(*Component, float64)) change {
	if to > 1 {
		return drop("the "+what+" usage limit", percent(from), 1, func(x *Component) { do(x, 0) })
	}
	return change{
		Change: Change{
			From: percent(from), To: percent(to),
			Detail: fmt.Sprintf("raise the %s usage limit from %s to %s", what, percent(from), percent(to)),
		},
		cost:  lost(1-from, 1-to),
		apply: func(p *Problem, i int) { do(&p.Components[i], to) },
	}
}
