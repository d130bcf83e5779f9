package placement

import "fmt"

// security: the node's security score must be high enough; an unknown one fails.
type security struct{}

func (security) rule() Rule { return RuleSecurity }

func (security) key(b []byte, c *Component) []byte { return appendInt(b, int64(c.MinSecurity)) }

func (security) applies(r *request) bool { return r.MinSecurity != 0 }

func (security) admits(r *request, n *nodeInfo) bool {
	return r.MinSecurity == 0 || (n.SCA != nil && *n.SCA >= float64(r.MinSecurity))
}

func (security) why(r *request, n *nodeInfo) []Failure {
	f := Failure{Needed: fmt.Sprintf("at least %d", r.MinSecurity), Available: "unknown"}
	if n.SCA != nil {
		f.Available = fmt.Sprintf("%v", *n.SCA)
	}
	f.Detail = fmt.Sprintf("needs a security score of %s, the node's is %s", f.Needed, f.Available)
	return []Failure{f}
}

func (security) relax(at *misfit, _ Failure) change {
	needed, sca := at.request.MinSecurity, at.node.SCA
	if sca == nil || *sca < 1 {
		return drop("the security score", fmt.Sprintf("at least %d", needed), 1,
			func(x *Component) { x.MinSecurity = 0 })
	}
	return reduce("the security score", int64(needed), int64(*sca), plain,
		func(x *Component, v int64) { x.MinSecurity = int(v) })
}
