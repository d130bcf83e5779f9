package placement

// resource: of each further countable thing, what it asks for must be free on the node.
type resource struct{}

func (resource) rule() Rule { return RuleResource }

func (resource) key(b []byte, c *Component) []byte {
	for _, k := range sortedKeys(c.Resources) {
		b = appendInt(append(appendStrings(b, []string{k}), '='), c.Resources[k])
	}
	return b
}

func (resource) applies(r *request) bool { return len(r.Resources) > 0 }

func (resource) admits(r *request, n *nodeInfo) bool {
	for key, amount := range r.Resources {
		if amount > n.Resources[key] {
			return false
		}
	}
	return true
}

func (k resource) why(r *request, n *nodeInfo) []Failure { return shortages(k, r, n) }

func (k resource) relax(at *misfit, f Failure) change { return lowerAmount(at, k, f) }

func (resource) demand(r *request, add func(string, int64)) {
	for _, key := range sortedKeys(r.Resources) {
		if v := r.Resources[key]; v != 0 {
			add(key, v)
		}
	}
}

func (resource) free(n *nodeInfo, key string) int64 { return n.Resources[key] }

func (k resource) shortage(r *request, n *nodeInfo, key string) shortage {
	return shortage{dim: dim{k, key}, need: r.Resources[key], free: n.Resources[key]}
}

func (resource) text(key string, v int64) string { return plain(v) + " " + key }

func (resource) bare(v int64) string { return plain(v) }

func (resource) unit() (string, float64) { return "unit", 1 }

func (resource) lower(what shortage, to int64) change {
	key := what.key
	return reduce(key, what.need, to, plain, func(x *Component, v int64) {
		rest := without(x.Resources, key)
		rest[key] = v
		x.Resources = rest
	})
}
