package placement

import "strings"

// orchestrator: only some orchestrators may run it.
type orchestrator struct{}

func (orchestrator) rule() Rule { return RuleOrchestrator }

func (orchestrator) key(b []byte, c *Component) []byte { return appendStrings(b, c.Orchestrators) }

func (orchestrator) applies(r *request) bool { return len(r.orchestrators) > 0 }

func (orchestrator) admits(r *request, n *nodeInfo) bool {
	return allows(r.orchestrators, n.orchestrator)
}

func (orchestrator) why(r *request, n *nodeInfo) []Failure {
	return oneOf("orchestrator", r.Orchestrators, n.Orchestrator)
}

func (orchestrator) relax(at *misfit, _ Failure) change {
	return drop("the orchestrator", strings.Join(at.request.Orchestrators, ", "), 1,
		func(x *Component) { x.Orchestrators = nil })
}
