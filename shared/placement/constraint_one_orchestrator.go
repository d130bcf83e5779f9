package placement

import "strings"

// sharedOrchestrator: its application demands one orchestrator, and some of its components are placed already.
type sharedOrchestrator struct{}

func (sharedOrchestrator) rule() Rule { return RuleOneOrchestrator }

func (sharedOrchestrator) key(b []byte, c *Component) []byte { return appendStrings(b, c.Shared) }

func (sharedOrchestrator) applies(r *request) bool { return len(r.shared) > 0 }

func (sharedOrchestrator) admits(r *request, n *nodeInfo) bool {
	return allows(r.shared, n.orchestrator)
}

func (sharedOrchestrator) why(r *request, n *nodeInfo) []Failure {
	return []Failure{elsewhere(strings.Join(r.Shared, ", "), n.Orchestrator)}
}

func (sharedOrchestrator) relax(at *misfit, f Failure) change { return oneOrchestrator{}.relax(at, f) }

// oneOrchestrator: the components of a group that are placed together share an orchestrator.
type oneOrchestrator struct{}

func (oneOrchestrator) rule() Rule { return RuleOneOrchestrator }

func (oneOrchestrator) broken(s *state, c, n int32, add func(Rule)) {
	if s.Foreign(c, n) {
		add(RuleOneOrchestrator)
	}
}

func (oneOrchestrator) why(s *state, c, n int32) []Failure {
	if !s.Foreign(c, n) {
		return nil
	}
	others := s.m.orchestrators[s.Orchestrator(s.m.Components[c].Group)]
	return []Failure{elsewhere(others, s.m.nodes[n].Orchestrator)}
}

func (oneOrchestrator) relax(at *misfit, _ Failure) change {
	g := at.m.Components[at.c].Group
	return change{
		Change: Change{From: "one orchestrator", To: "none", Detail: "allow several orchestrators"},
		cost:   1, apply: func(p *Problem, i int) {
			p.Components[i].Shared = nil
			if g == 0 {
				p.OneOrchestrator = false
			} else {
				p.Groups[g-1].OneOrchestrator = false
			}
		},
	}
}

// elsewhere is the failure of a node under another orchestrator than the others.
func elsewhere(others, has string) Failure {
	return Failure{
		Rule: RuleOneOrchestrator, Detail: "all components go to one orchestrator, the others are on " + others,
		Needed: others, Available: has,
	}
}
