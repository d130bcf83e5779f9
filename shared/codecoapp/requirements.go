package codecoapp

import (
	"fmt"
	"math/big"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/littoral-project/littoral/shared/descriptor"
	"github.com/littoral-project/littoral/shared/problem"
)

// requirements writes what a node must have for the service: what the first generation says, else what the containers
// request (a limit alone is a request), as a scheduler of Kubernetes counts it.
func (r *reader) requirements(s service) *yaml.Node {
	needs := object()
	for _, need := range []struct {
		name, requested string
		given           *yaml.Node
	}{{"cpu", "cpu", s.cpu}, {"memory", "memory", s.mem}} {
		if need.given != nil && need.given.Value != "" {
			needs.Content = append(needs.Content, str(need.name), r.firstGeneration(s, need.name, need.given))
			continue
		}
		sum := new(big.Rat)
		for _, container := range entries(child(s.pod, "containers")) {
			if n := requested(container, need.requested); n != nil {
				if q, err := descriptor.Quantity(n.Value); err == nil { // else the object's own check says so
					sum.Add(sum, q)
				}
			}
		}
		for _, container := range entries(child(s.pod, "initContainers")) { // they run before, one after the other
			if n := requested(container, need.requested); n != nil {
				if q, err := descriptor.Quantity(n.Value); err == nil && q.Cmp(sum) > 0 {
					sum = q
				}
			}
		}
		if sum.Sign() > 0 {
			n := str(sum.FloatString(3))
			n.Line = s.node.Line
			needs.Content = append(needs.Content, str(need.name), n)
			r.derived = append(r.derived, problem.Field{
				Path: s.path + ".podspec", Line: s.pod.Line, Detail: fmt.Sprintf("the containers request %s of %s", plainNumber(sum), need.name),
			})
		}
	}
	if arch := child(child(s.pod, "nodeSelector"), "kubernetes.io/arch"); arch != nil {
		needs.Content = append(needs.Content, str("architecture"), arch)
	}
	return needs
}

// firstGeneration reads an amount of D11, whose text gives other units than its sample: "2" are cores there and "120G"
// are bytes, while the text means percent of a core and gigabytes. A bare number of cpu above 64 is taken for percent.
func (r *reader) firstGeneration(s service, name string, n *yaml.Node) *yaml.Node {
	out := *n
	value, err := strconv.ParseFloat(strings.TrimSpace(n.Value), 64)
	if err != nil {
		return &out
	}
	key := map[string]string{"cpu": "cpu", "memory": "mem"}[name]
	switch {
	case name == "cpu" && value > 64:
		out.Value = strconv.FormatFloat(value/100, 'f', -1, 64)
		r.warn(s.path+".required-resources."+key, n, "taken for percent of a core")
	case name == "memory" && value < 1<<20:
		out.Value += "G"
		r.warn(s.path+".required-resources."+key, n, "taken for gigabytes")
	}
	out.Tag = "!!str"
	return &out
}

func requested(container *yaml.Node, name string) *yaml.Node {
	resources := child(container, "resources")
	if n := child(child(resources, "requests"), name); n != nil {
		return n
	}
	return child(child(resources, "limits"), name)
}

func entries(n *yaml.Node) []*yaml.Node {
	if n == nil || n.Kind != yaml.SequenceNode {
		return nil
	}
	return n.Content
}

func plainNumber(q *big.Rat) string {
	f, _ := q.Float64()
	return strconv.FormatFloat(f, 'f', -1, 64)
}
