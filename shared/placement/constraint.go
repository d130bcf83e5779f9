package placement

// constraint is a hard rule about a component and a node, whatever else is placed. Each is a type of its own, in the
// file named after it; constraints lists them.
type constraint interface {
	rule() Rule
	// key appends all that the constraint reads of a component. Components whose keys are equal for every constraint
	// share their candidates, so a field that is read but not in the key gives wrong plans.
	key(b []byte, c *Component) []byte
	// applies reports whether any node can fail the constraint for the request.
	applies(r *request) bool
	admits(r *request, n *nodeInfo) bool
	// why returns the failures, with their numbers, of a node that keep refuses; the caller adds the rule.
	why(r *request, n *nodeInfo) []Failure
	// relax returns the change of requirements that removes one failure.
	relax(at *misfit, f Failure) change
}

// peerConstraint is a hard rule that depends on where the other components are. The solver enforces these rules itself,
// so that no search can break one; here they are explained.
type peerConstraint interface {
	rule() Rule
	// broken calls add with each rule that an unplaced component breaks at a node, with the others in their places.
	broken(s *state, c, n int32, add func(Rule))
	// why returns what broken finds, with its numbers.
	why(s *state, c, n int32) []Failure
	relax(at *misfit, f Failure) change
}

// constraints lists the rules in the order in which they are checked: cheap and frequent ones first. Amounts come last,
// since cpu and memory are checked apart from the rest.
var constraints = append([]constraint{
	unschedulable{},
	freshness{},
	fixedTarget{},
	exclusion{},
	orchestrator{},
	sharedOrchestrator{},
	engine{},
	architecture{},
	label{},
	security{},
	cpuUsage{},
	memoryUsage{},
	freeMemory{},
}, asConstraints(amountConstraints)...)

// amountConstraints lists the kinds of things that nodes have a limited amount of.
var amountConstraints = []amountConstraint{cpu{}, memory{}, device{}, resource{}}

// peerConstraints lists the rules about the places of others.
var peerConstraints = []peerConstraint{
	remainder{}, antiAffinity{}, spreadLimit{}, linkable{}, linkLatency{}, linkBandwidth{}, channelRoute{}, oneOrchestrator{},
}

func asConstraints(in []amountConstraint) []constraint {
	out := make([]constraint, len(in))
	for i := range in {
		out[i] = in[i]
	}
	return out
}

// isAmount reports whether others on the node matter to the constraint.
func isAmount(k constraint) bool {
	_, ok := k.(amountConstraint)
	return ok
}

// constraintSet is all requirements of a component except cpu and memory, and the nodes that meet them. Most components
// differ only in cpu and memory.
type constraintSet struct {
	request *request
	met     []bool // by node
}

// setKey appends the keys of all constraints except cpu and memory, so that equal text means an equal set.
func setKey(b []byte, c *Component) []byte {
	for _, k := range constraints {
		if k != constraint(cpu{}) && k != constraint(memory{}) {
			b = append(k.key(b, c), ';')
		}
	}
	if c.Current != nil && !c.Current.whole() { // then equals have the same places to stay
		b = appendTargets(append(b, "at "...), []Target{*c.Current})
	}
	return b
}

// meets reports whether the node meets all constraints of the request, except those of cpu and memory.
func (r *request) meets(n *nodeInfo) bool {
	for _, k := range r.asks {
		if !k.admits(r, n) {
			return false
		}
	}
	return true
}

// failures returns every failed constraint of the request on the node, with or without those on amounts.
func failures(r *request, n *nodeInfo, amounts bool) []Failure {
	var out []Failure
	for _, k := range constraints {
		if (amounts || !isAmount(k)) && !k.admits(r, n) {
			for _, f := range k.why(r, n) {
				f.Rule = k.rule()
				out = append(out, f)
			}
		}
	}
	return out
}

// relaxed returns the change that removes the failure.
func relaxed(at *misfit, f Failure) change {
	var out change
	for _, k := range constraints {
		if k.rule() == f.Rule {
			out = k.relax(at, f)
		}
	}
	for _, k := range peerConstraints { // the rule about one orchestrator is in both lists, and changes the same there
		if k.rule() == f.Rule {
			out = k.relax(at, f)
		}
	}
	out.Rule, out.Key = f.Rule, f.Key
	return out
}
