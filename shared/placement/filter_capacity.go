package placement

import (
	"fmt"
	"strconv"
	"strings"
)

// capacity is one amount that a component needs on one node, with the free part and the holders of the rest.
type capacity struct {
	rule         Rule
	key          string // device path or resource key
	need, free   int64
	whole, other int64 // cpu and memory only
	held         []holding
}

// holding is a part of a node's capacity that someone uses.
type holding struct {
	by     string
	how    string // "reserved by" or "taken by"
	amount int64
}

// text formats an amount of the rule's kind.
func (c *capacity) text(v int64) string {
	switch c.rule {
	case RuleCPU:
		return cores(v)
	case RuleMemory:
		return size(v)
	case RuleDevice:
		return plural(int(v), "device") + " " + c.key
	default:
		return strconv.FormatInt(v, 10) + " " + c.key
	}
}

// maxHolders is how many holders a detail names; the others are counted.
const maxHolders = 5

// failure describes the shortage: "needs 4 cores, 2.5 free of 8, 3 reserved by shop/web".
func (c *capacity) failure() Failure {
	f := Failure{Rule: c.rule, Key: c.key, Needed: c.text(c.need), Available: c.text(c.free)}
	bare := func(v int64) string { // without the unit if the first number has it
		switch c.rule {
		case RuleCPU:
			return coreCount(v)
		case RuleMemory:
			return size(v)
		default:
			return strconv.FormatInt(v, 10)
		}
	}
	known := c.rule == RuleCPU || c.rule == RuleMemory
	if known && c.whole == 0 {
		f.Available = "unknown"
		f.Detail = fmt.Sprintf("needs %s, the node does not report how much %s it has", f.Needed, c.rule)
		return f
	}
	parts := []string{"needs " + f.Needed}
	if known {
		parts = append(parts, fmt.Sprintf("%s free of %s", bare(c.free), bare(c.whole)))
	} else {
		parts = append(parts, bare(c.free)+" free")
	}
	if c.other > 0 {
		parts = append(parts, bare(c.other)+" used by others")
	}
	for i, h := range c.held {
		if i == maxHolders {
			parts = append(parts, fmt.Sprintf("and %d more", len(c.held)-maxHolders))
			break
		}
		parts = append(parts, fmt.Sprintf("%s %s %s", bare(h.amount), h.how, h.by))
	}
	f.Detail = strings.Join(parts, ", ")
	return f
}

// capacityOf returns the cpu or memory on the node for the request, with its reservations.
func capacityOf(r *request, h *have, rule Rule) *capacity {
	c := &capacity{rule: rule, need: r.CPU, free: h.freeCPU, whole: h.CPU, other: h.OtherCPU}
	if rule == RuleMemory {
		c.need, c.free, c.whole, c.other = r.Memory, h.freeMemory, h.Memory, h.OtherMemory
	}
	for i := range h.Reserved {
		v := &h.Reserved[i]
		amount := v.CPU
		if rule == RuleMemory {
			amount = v.Memory
		}
		if amount > 0 {
			c.held = append(c.held, holding{by: v.Holder, how: "reserved by", amount: amount})
		}
	}
	return c
}

// deviceOf and resourceOf do the same for one device path and one resource key.
func deviceOf(r *request, h *have, path string) *capacity {
	c := &capacity{rule: RuleDevice, key: path, need: r.devices[path], free: int64(h.Devices[path])}
	for i := range h.Reserved {
		v, n := &h.Reserved[i], int64(0)
		for _, d := range v.Devices {
			if d == path {
				n++
			}
		}
		if n > 0 {
			c.held = append(c.held, holding{by: v.Holder, how: "reserved by", amount: n})
		}
	}
	return c
}

func resourceOf(r *request, h *have, key string) *capacity {
	return &capacity{rule: RuleResource, key: key, need: r.Resources[key], free: h.Resources[key]}
}

func hasDevices(r *request, h *have) bool {
	for path, n := range r.devices {
		if n > int64(h.Devices[path]) {
			return false
		}
	}
	return true
}

func whyDevices(r *request, h *have) []Failure {
	var out []Failure
	for _, path := range sortedKeys(r.devices) {
		if c := deviceOf(r, h, path); c.need > c.free {
			out = append(out, c.failure())
		}
	}
	return out
}

func hasResources(r *request, h *have) bool {
	for key, n := range r.Resources {
		if n > h.Resources[key] {
			return false
		}
	}
	return true
}

func whyResources(r *request, h *have) []Failure {
	var out []Failure
	for _, key := range sortedKeys(r.Resources) {
		if c := resourceOf(r, h, key); c.need > c.free {
			out = append(out, c.failure())
		}
	}
	return out
}
