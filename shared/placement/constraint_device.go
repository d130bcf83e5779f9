package placement

import (
	"slices"
	"strconv"
)

// device: of each device path, as many as it lists must be free on the node.
type device struct{}

func (device) rule() Rule { return RuleDevice }

// key is the same for any order of the list.
func (device) key(b []byte, c *Component) []byte {
	if len(c.Devices) == 0 {
		return b
	}
	return appendStrings(b, slices.Sorted(slices.Values(c.Devices)))
}

func (device) applies(r *request) bool { return len(r.devices) > 0 }

func (device) admits(r *request, n *nodeInfo) bool {
	for path, count := range r.devices {
		if count > int64(n.Devices[path]) {
			return false
		}
	}
	return true
}

func (k device) why(r *request, n *nodeInfo) []Failure { return shortages(k, r, n) }

func (k device) relax(at *misfit, f Failure) change { return lowerAmount(at, k, f) }

func (device) demand(r *request, add func(string, int64)) {
	for _, path := range sortedKeys(r.devices) {
		add(path, r.devices[path])
	}
}

func (device) free(n *nodeInfo, path string) int64 { return int64(n.Devices[path]) }

func (k device) shortage(r *request, n *nodeInfo, path string) shortage {
	out := shortage{dim: dim{k, path}, need: r.devices[path], free: int64(n.Devices[path])}
	out.reserve(n, func(v *Reservation) int64 {
		count := int64(0)
		for _, d := range v.Devices {
			if d == path {
				count++
			}
		}
		return count
	})
	return out
}

func (device) text(path string, v int64) string { return plural(int(v), "device") + " " + path }

func (device) bare(v int64) string { return plain(v) }

func (device) unit() (string, float64) { return "device", 1 }

func (device) lower(what shortage, to int64) change {
	path := what.key
	return reduce("device "+path, what.need, to, plain, func(x *Component, v int64) {
		kept := int64(0)
		x.Devices = slices.DeleteFunc(slices.Clone(x.Devices), func(d string) bool {
			if d == path {
				kept++
			}
			return d == path && kept > v
		})
	})
}

// shortages returns the failures of a kind of amount with keys.
func shortages(k amountConstraint, r *request, n *nodeInfo) []Failure {
	var out []Failure
	k.demand(r, func(key string, _ int64) {
		if short := k.shortage(r, n, key); short.need > short.free {
			out = append(out, short.failure())
		}
	})
	return out
}

func plain(v int64) string { return strconv.FormatInt(v, 10) }
