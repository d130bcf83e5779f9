package descriptor

import (
	"fmt"
	"math/big"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/littoral-project/littoral/shared/appmodel"
	"github.com/littoral-project/littoral/shared/problem"
)

// derive takes the requirements that a component leaves out from what its compose files ask for in deploy.resources:
// the sum over the services and their replicas of what is reserved, or else the limit. Every reading of a descriptor
// derives the same, so that a stored one is placed as it was planned.
func (r *reader) derive() {
	for i, p := range r.index.plans {
		c := &r.app.Components[i]
		if c.Type != appmodel.TypeDocker && c.Type != appmodel.TypeMultiple {
			continue
		}
		var cpu, memory derived
		chosen, given := profilesOf(p), r.givenTo(p)
		for _, m := range p {
			if m.def == nil || m.def.kind != "" {
				continue
			}
			visitServices(m.def, func(service *yaml.Node, path string) {
				if !runs(service, chosen) {
					return
				}
				replicas := r.replicas(service, path, given)
				cpu.add(r.asked(service, path, "cpus", composeCPU, given), replicas)
				memory.add(r.asked(service, path, "memory", composeBytes, given), replicas)
			})
		}
		need := &c.Requirements
		path := at("components", i) + ".requirements"
		if need.CPUMilli == 0 && cpu.total > 0 && cpu.total <= maxCPUMilli {
			need.CPUMilli = cpu.total
			r.noteDerived(path+".cpu", cpu.node, "is %dm, as the services of its compose file ask for in deploy.resources", cpu.total)
		}
		if need.MemoryBytes == 0 && memory.total > 0 && memory.total <= maxAmount {
			need.MemoryBytes = memory.total
			r.noteDerived(path+".memory", memory.node, "is %d bytes, as the services of its compose file ask for in deploy.resources", memory.total)
		}
	}
}

// profilesOf returns the profiles that the compose files of a component choose, under x-littoral.
func profilesOf(p plan) map[string]bool {
	chosen := map[string]bool{}
	for _, m := range p {
		if m.def == nil || m.def.kind != "" {
			continue
		}
		if list := field(field(m.def.node, ours), "profiles"); list != nil && list.Kind == yaml.SequenceNode {
			for _, n := range list.Content {
				chosen[n.Value] = true
			}
		}
	}
	return chosen
}

// runs reports whether a service is of no profile or of one that is chosen.
func runs(service *yaml.Node, chosen map[string]bool) bool {
	list := field(service, "profiles")
	if list == nil || list.Kind != yaml.SequenceNode || len(list.Content) == 0 || chosen["*"] {
		return true
	}
	for _, n := range list.Content {
		if chosen[n.Value] {
			return true
		}
	}
	return false
}

// noteDerived records what was derived.
func (r *reader) noteDerived(path string, n *yaml.Node, format string, args ...any) {
	r.app.Derived = append(r.app.Derived, problem.Field{Path: path, Line: n.Line, Detail: fmt.Sprintf(format, args...)})
}

// derived is a sum, and where its first part stands.
type derived struct {
	total int64
	node  *yaml.Node
}

func (d *derived) add(one derived, times int64) {
	if one.node == nil || one.total > maxAmount/max(times, 1) {
		return
	}
	d.total = min(d.total+one.total*times, maxAmount+1)
	if d.node == nil {
		d.node = one.node
	}
}

func visitServices(d *definition, f func(service *yaml.Node, path string)) {
	services := field(d.node, "services")
	for i := 0; services != nil && services.Kind == yaml.MappingNode && i+1 < len(services.Content); i += 2 {
		f(services.Content[i+1], join(join(d.path, "services"), shorten(services.Content[i].Value)))
	}
}

// replicas returns how often a service runs: 1 unless it says otherwise.
func (r *reader) replicas(service *yaml.Node, path string, given map[string]string) int64 {
	n, path := field(field(service, "deploy"), "replicas"), join(path, "deploy.replicas")
	if n == nil || isNull(n) {
		return 1
	}
	text, known := told(n, given)
	if !known {
		return 1
	}
	value, ok := finite(text)
	if !ok || n.Kind != yaml.ScalarNode || value < 0 || value > maxReplicas || value != float64(int64(value)) {
		if !r.stored {
			r.complain(path, n, "must be a whole number from 0 to %d", maxReplicas)
		}
		return 1
	}
	return int64(value)
}

// asked returns the amount that a service reserves, or else its limit.
func (r *reader) asked(
	service *yaml.Node, path, name string, parse func(string) (int64, error), given map[string]string,
) derived {
	resources := field(field(service, "deploy"), "resources")
	for _, of := range []string{"reservations", "limits"} {
		n := field(field(resources, of), name)
		if n == nil || isNull(n) {
			continue
		}
		text, known := told(n, given)
		if !known {
			continue
		}
		amount, err := parse(text)
		switch {
		case n.Kind != yaml.ScalarNode:
			err = fmt.Errorf("must be an amount, not %s", kindOf(n))
		case err == nil && name == "memory" && n.ShortTag() != "!!str": // compose has it so
			err = fmt.Errorf("%s must have a unit, such as %[1]sM, or stand in quotes", shorten(n.Value))
		}
		if err != nil {
			if !r.stored {
				r.complain(join(path, "deploy.resources."+of+"."+name), n, "%v", err)
			}
			continue
		}
		return derived{amount, n}
	}
	return derived{}
}

// told returns the text of a value with those of its variables; false when one is missing, which is complained of elsewhere.
func told(n *yaml.Node, given map[string]string) (string, bool) {
	text, missing, err := valued(n.Value, given)
	return text, len(missing) == 0 && err == nil
}

// composeCPU returns thousandths of a core, rounded up; a compose file has whole cores and fractions only.
func composeCPU(text string) (int64, error) {
	if !isNumber(strings.TrimSpace(text)) {
		return 0, fmt.Errorf("%q is no number of cores such as 0.5", shorten(text))
	}
	return parseCPU(text)
}

// composeBytes returns bytes, rounded up. The units of a compose file are powers of 1024 in any spelling: 200M, 200mb and
// 200MiB are the same.
func composeBytes(text string) (int64, error) {
	wrong := fmt.Errorf("%q is no amount of memory such as 200M or 1gb", shorten(text))
	number, unit := split(strings.TrimSpace(text))
	unit = strings.TrimSuffix(strings.TrimSuffix(strings.ToLower(strings.TrimSpace(unit)), "b"), "i")
	power := strings.Index("kmgtp", unit) + 1
	if unit == "" {
		power = 0
	}
	if len(text) > 64 || !isNumber(number) || len(unit) > 1 || unit != "" && power == 0 {
		return 0, wrong
	}
	value, ok := new(big.Rat).SetString(number)
	if !ok || value.Sign() < 0 {
		return 0, wrong
	}
	value.Mul(value, new(big.Rat).SetInt(new(big.Int).Lsh(big.NewInt(1), uint(10*power)))) // 0 to 5
	amount, ok := ceil(value)
	if !ok || amount > maxAmount {
		return 0, fmt.Errorf("%q is more than an exbibyte", shorten(text))
	}
	return amount, nil
}
