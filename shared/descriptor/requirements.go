package descriptor

import (
	"slices"
	"strings"

	"github.com/littoral-project/littoral/shared/appmodel"
	"go.yaml.in/yaml/v3"
)

// architectures maps every spelling in use to the name Go, Kubernetes and OCI images have for it.
var architectures = map[string]string{
	"amd64": "amd64", "x86_64": "amd64", "x86-64": "amd64", "x64": "amd64", "intel": "amd64", "intel/x86_64": "amd64",
	"arm64": "arm64", "aarch64": "arm64", "arm64/aarch64": "arm64",
	"any": "", "*": "",
}

// otherArchitectures are those besides amd64 and arm64 that Linux, Docker and Kubernetes run on, in the words of nodes.
// No image runs on any other, sparc for one.
var otherArchitectures = []string{
	"arm", "armhf", "armv6l", "armv7", "armv7l", "arm/v6", "arm/v7", "armv8", "arm64v8", "arm64/v8",
	"386", "i386", "i486", "i586", "i686", "x86", "intel64",
	"loong64", "loongarch64", "mips64le", "mips64el", "ppc64le", "riscv64", "s390x",
}

// runnable reports whether there are nodes of an architecture.
func runnable(name string) bool {
	name = strings.ToLower(strings.TrimSpace(name))
	_, known := architectures[name]
	return known || name == "" || slices.Contains(otherArchitectures, name)
}

// Architecture returns the canonical name of a processor architecture: amd64 or arm64 for all their spellings, empty
// for "any", another one trimmed but otherwise as given.
func Architecture(name string) string {
	name = strings.TrimSpace(name)
	if known, ok := architectures[strings.ToLower(name)]; ok {
		return known
	}
	return name
}

// littleMemory is less than anyone asks for on purpose: bytes were written where mebibytes were meant.
const littleMemory = 1 << 10

func (r *reader) requirements(n *yaml.Node, path string) appmodel.Requirements {
	var q appmodel.Requirements
	f, ok := r.object(n, path)
	if !ok {
		return q
	}
	if v, path := f.get("architecture"); v != nil {
		q.Architecture = Architecture(r.text(v, path))
		if v.Kind == yaml.ScalarNode && !r.stored && !runnable(v.Value) {
			r.complain(path, v, "%q is no architecture that a node can have: amd64, arm64, arm, riscv64 and the like", shorten(v.Value))
		}
	}
	if v, path := f.get("cpu"); v != nil {
		q.CPUMilli = r.quantity(v, path, parseCPU)
	}
	if v, path := f.get("memory"); v != nil {
		q.MemoryBytes = r.quantity(v, path, parseAmount)
		if q.MemoryBytes > 0 && q.MemoryBytes < littleMemory {
			r.warn(path, v, "%s means %d bytes; is a unit such as Mi missing?", shorten(v.Value), q.MemoryBytes)
		} else if better := asKubernetes(v.Value); q.MemoryBytes > 0 && better != "" && better != strings.TrimSpace(v.Value) {
			r.warn(path, v, "%q is no quantity of Kubernetes, taken for %s", shorten(v.Value), better)
		}
	}
	if v, path := f.get("devices", "device"); v != nil {
		q.Devices = r.texts(v, path)
	}
	if v, path := f.get("nodelabel", "nodeLabel"); v != nil {
		q.NodeLabel = r.nodeLabel(v, path)
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		k, v := n.Content[i], n.Content[i+1]
		if f.used[k.Value] || isNull(v) {
			continue
		}
		at := join(path, shorten(k.Value))
		if v.Kind != yaml.ScalarNode {
			r.fault(at, k, "is not a known requirement: architecture, cpu, memory, devices, nodelabel or an amount")
			continue
		}
		if q.Resources == nil {
			q.Resources = map[string]int64{}
		}
		q.Resources[k.Value] = r.quantity(v, at, parseAmount)
	}
	return q
}

func (r *reader) quantity(n *yaml.Node, path string, parse func(string) (int64, error)) int64 {
	text := r.text(n, path)
	if n.Kind != yaml.ScalarNode {
		return 0
	}
	value, err := parse(text)
	if err != nil {
		r.fault(path, n, "%v", err)
	}
	return value
}

func (r *reader) nodeLabel(n *yaml.Node, path string) *appmodel.NodeLabel {
	f, ok := r.object(n, path)
	if !ok {
		return nil
	}
	var l appmodel.NodeLabel
	l.Key = strings.TrimSpace(r.optional(f, "key"))
	if l.Key == "" {
		r.fault(join(path, "key"), n, "is missing: a nodelabel is a key and its values")
	}
	values, at := f.get("values", "value")
	l.Values = r.texts(values, at)
	r.labelled[len(r.app.Components)] = spot{at, values}
	if len(l.Values) == 0 {
		r.fault(join(path, "values"), n, "is missing: a nodelabel names at least one value")
	}
	r.rest(f)
	return &l
}
