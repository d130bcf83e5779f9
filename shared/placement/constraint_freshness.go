package placement

import (
	"fmt"
	"time"
)

// freshness: a node whose telemetry is too old is not used; that is how a lost node is left.
type freshness struct{}

func (freshness) rule() Rule { return RuleFreshness }

// key leaves the age at which telemetry is stale to the group, which is part of every key.
func (freshness) key(b []byte, c *Component) []byte { return appendStays(b, c) }

func (freshness) applies(r *request) bool { return !r.Stays }

func (freshness) admits(r *request, n *nodeInfo) bool {
	return r.Stays || (!n.Stale && (r.staleAfter == 0 || n.Age <= r.staleAfter))
}

func (freshness) why(r *request, n *nodeInfo) []Failure {
	f := Failure{Detail: "its telemetry is stale", Needed: "fresh telemetry", Available: "stale telemetry"}
	if n.Age > 0 {
		age := n.Age.Round(time.Millisecond)
		f.Detail, f.Available = fmt.Sprintf("its telemetry is %s old", age), age.String()
		if r.staleAfter > 0 {
			f.Detail += fmt.Sprintf(", stale after %s", r.staleAfter)
			f.Needed = "at most " + r.staleAfter.String()
		}
	}
	for _, doubt := range n.Doubts {
		f.Detail += "; " + doubt
	}
	return []Failure{f}
}

// relax has nothing to offer: it is no requirement of the component, so no relaxation looks at such a node.
func (freshness) relax(*misfit, Failure) change { return change{} }
