package descriptor

import (
	"math"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// number is a field that a cluster accepts only within limits. In its path, * stands for each entry of a list.
type number struct {
	at        string
	low, high float64
}

// Number fields of Kubernetes that descriptors have and that would make a cluster refuse the object after placement.
var (
	numbersOfSets     = []number{{"spec.replicas", 0, math.MaxInt32}}
	numbersOfServices = []number{{"spec.ports.*.port", 1, maxPort}, {"spec.ports.*.nodePort", 0, maxPort}}
	numbersOfScalers  = []number{{"spec.minReplicas", 0, math.MaxInt32}, {"spec.maxReplicas", 1, math.MaxInt32}}
	numbersOfPods     = []number{{"containers.*.ports.*.containerPort", 1, maxPort}, {"containers.*.ports.*.hostPort", 0, maxPort}}
)

const maxPort = math.MaxUint16

// checkNumbers refuses numbers that no cluster accepts in objects that have pods, scale them or make them reachable.
func (r *reader) checkNumbers() {
	seen := map[*definition]bool{}
	for _, p := range r.index.plans {
		for _, m := range p {
			if m.def == nil || seen[m.def] {
				continue
			}
			seen[m.def] = true
			switch o, _ := m.def.object(); {
			case slices.Contains(podBearers[o.group], o.kind):
				r.checkWhole(m.def.node, m.def.path, numbersOfSets)
				visit(m.def.node, m.def.path, podsOf(o.kind), func(spec *yaml.Node, path string) {
					r.checkWhole(spec, path, numbersOfPods)
				})
			case o.group == "" && o.kind == "Service":
				r.checkWhole(m.def.node, m.def.path, numbersOfServices)
			case o.group == "autoscaling" && o.kind == "HorizontalPodAutoscaler":
				r.checkWhole(m.def.node, m.def.path, numbersOfScalers)
			}
		}
	}
}

// podsOf returns the path to the pod spec of a kind.
func podsOf(kind string) string {
	switch kind {
	case "Pod":
		return "spec"
	case "CronJob":
		return "spec.jobTemplate.spec.template.spec"
	}
	return "spec.template.spec"
}

func (r *reader) checkWhole(n *yaml.Node, path string, numbers []number) {
	for _, number := range numbers {
		visit(n, path, number.at, func(n *yaml.Node, path string) {
			value, ok := finite(n.Value)
			given := shorten(n.Value)
			switch n.Tag {
			case tagFloat:
			case tagInt:
				var whole int64
				ok = n.Decode(&whole) == nil // 0x50 is a number too
				value = float64(whole)
			default:
				ok, given = false, kindOf(n)
			}
			if !ok || value != math.Trunc(value) || value < number.low || value > number.high {
				r.fault(path, n, "must be a whole number from %.0f to %.0f, not %s", number.low, number.high, given)
			}
		})
	}
}

// visit calls f with each value, present and not null, that the path leads to from n.
func visit(n *yaml.Node, path, rest string, f func(n *yaml.Node, path string)) {
	name, rest, more := strings.Cut(rest, ".")
	step := func(n *yaml.Node, path string) {
		switch {
		case n == nil || isNull(n):
		case more:
			visit(n, path, rest, f)
		default:
			f(n, path)
		}
	}
	switch {
	case name != "*":
		step(field(n, name), join(path, name))
	case n.Kind == yaml.SequenceNode:
		for i, entry := range n.Content {
			step(entry, at(path, i))
		}
	}
}
