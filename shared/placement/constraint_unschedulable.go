package placement

// unschedulable: a node that is cordoned, drained or lost takes nothing new.
type unschedulable struct{}

func (unschedulable) rule() Rule { return RuleUnschedulable }

func (unschedulable) key(b []byte, c *Component) []byte { return appendStays(b, c) }

// appendStays is shared by the constraints that do not hold for what runs on.
func appendStays(b []byte, c *Component) []byte {
	if c.Stays {
		b = append(b, "stays"...)
	}
	return b
}

func (unschedulable) applies(r *request) bool { return !r.Stays }

func (unschedulable) admits(r *request, n *nodeInfo) bool { return r.Stays || !n.Unschedulable }

func (unschedulable) why(*request, *nodeInfo) []Failure {
	return []Failure{{Detail: "the node takes no new work", Needed: "schedulable", Available: "unschedulable"}}
}

// relax has nothing to offer: it is no requirement of the component, so no relaxation looks at such a node.
func (unschedulable) relax(*misfit, Failure) change { return change{} }
