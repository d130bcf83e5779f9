package placement

import (
	"fmt"
	"strings"
)

// engine: the container engine of the node must be one of those it is made for.
type engine struct{}

func (engine) rule() Rule { return RuleEngine }

func (engine) key(b []byte, c *Component) []byte { return appendStrings(b, c.Engines) }

func (engine) applies(r *request) bool { return len(r.engines) > 0 }

func (engine) admits(r *request, n *nodeInfo) bool { return allows(r.engines, n.engine) }

func (engine) why(r *request, n *nodeInfo) []Failure { return oneOf("engine", r.Engines, n.Engine) }

func (engine) relax(at *misfit, _ Failure) change {
	return drop("the engine", strings.Join(at.request.Engines, ", "), 1, func(x *Component) { x.Engines = nil })
}

// oneOf is the failure of a node that has none of the allowed values.
func oneOf(what string, allowed []string, got string) []Failure {
	needed := strings.Join(allowed, " or ")
	if got == "" {
		got = "unknown"
	}
	return []Failure{{
		Detail: fmt.Sprintf("needs %s %s, the node has %s", what, needed, got),
		Needed: needed, Available: got,
	}}
}
