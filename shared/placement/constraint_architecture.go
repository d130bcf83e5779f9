package placement

// architecture: the processor must be of the kind that its image is built for.
type architecture struct{}

func (architecture) rule() Rule { return RuleArchitecture }

func (architecture) key(b []byte, c *Component) []byte {
	return appendStrings(b, []string{c.Architecture})
}

func (architecture) applies(r *request) bool { return r.architecture != "" }

func (architecture) admits(r *request, n *nodeInfo) bool {
	return r.architecture == "" || r.architecture == n.architecture
}

func (architecture) why(r *request, n *nodeInfo) []Failure {
	return oneOf("architecture", []string{r.architecture}, n.architecture)
}

func (architecture) relax(at *misfit, _ Failure) change {
	return drop("the architecture", at.request.architecture, 1, func(x *Component) { x.Architecture = "" })
}
