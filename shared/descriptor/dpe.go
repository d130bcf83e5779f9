package descriptor

import (
	"slices"

	"go.yaml.in/yaml/v3"

	"github.com/littoral-project/littoral/shared/appmodel"
)

const (
	maxCores  = 100_000
	maxMemory = 1 << 20 // GB
)

// dpe reads what a component says of the sidecar for its COMPSs agents. An empty object asks for it as it is.
func (r *reader) dpe(n *yaml.Node, path string) *appmodel.DPE {
	f, ok := r.object(n, path)
	if !ok {
		return nil
	}
	figure := func(name string, low, high float64) float64 {
		n, path := f.get(name)
		if n == nil {
			return 0
		}
		value, _ := r.number(n, path, low, high)
		return value
	}
	d := &appmodel.DPE{Cores: figure("cores", 1, maxCores), MemoryGB: figure("memory", 0, maxMemory)}
	if port := figure("port", 1, maxPort); port != float64(int(port)) {
		r.fault(join(path, "port"), n, "must be a whole number")
	} else {
		d.Port = int(port)
	}
	r.rest(f)
	return d
}

// bearsPods reports whether objects of the kind have a template of pods, or are one.
func bearsPods(kind string) bool {
	return slices.Contains([]string{"Deployment", "StatefulSet", "DaemonSet", "ReplicaSet", "ReplicationController", "Job", "CronJob", "Pod"}, kind)
}

// annotated returns the object with an annotation; what it is made from stays as it is, since several components may have it.
func annotated(object *yaml.Node, key, value string) *yaml.Node {
	return with(object, "metadata", func(metadata *yaml.Node) *yaml.Node {
		return with(metadata, "annotations", func(annotations *yaml.Node) *yaml.Node {
			return with(annotations, key, func(*yaml.Node) *yaml.Node {
				return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: value, Style: yaml.SingleQuotedStyle}
			})
		})
	})
}

// with returns a copy of the object in which another value stands for the key.
func with(object *yaml.Node, key string, change func(*yaml.Node) *yaml.Node) *yaml.Node {
	out := &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map"}
	if object != nil && object.Kind == yaml.MappingNode {
		*out = *object
		out.Content = slices.Clone(object.Content)
	}
	for i := 0; i+1 < len(out.Content); i += 2 {
		if out.Content[i].Value == key {
			out.Content[i+1] = change(out.Content[i+1])
			return out
		}
	}
	out.Content = append(out.Content, &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: key}, change(nil))
	return out
}
