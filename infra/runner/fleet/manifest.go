package fleet

import (
	"bufio"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"

	"github.com/littoral-project/littoral/shared/orchestrator"
)

// Workload is an object with pods in a job's manifests.
type Workload struct {
	Name       string      `json:"name"`
	Replicas   int         `json:"replicas"`
	Containers []Container `json:"containers"`
}

// Container requests cpu in millicores and memory in bytes.
type Container struct {
	Name        string `json:"name"`
	CPUMilli    int64  `json:"cpuMilli"`
	MemoryBytes int64  `json:"memoryBytes"`
}

const (
	maxReplicas   = orchestrator.MaxReplicas // of one workload: each pod has its own series
	maxContainers = 20                       // of one pod
	maxWorkloads  = 100                      // of one job
	maxQuantity   = 1 << 50
)

// podKinds are the kinds of Kubernetes objects that have pods.
var podKinds = []string{"Deployment", "StatefulSet", "DaemonSet", "ReplicaSet", "Job", "Pod"}

// object is the part of a manifest that determines the pods: a Kubernetes object, or the services of a compose file.
type object struct {
	Kind     string `json:"kind"`
	Metadata struct {
		Name string `json:"name"`
	} `json:"metadata"`
	Spec struct {
		Replicas *int `json:"replicas"`
		Template struct {
			Spec podSpec `json:"spec"`
		} `json:"template"`
		podSpec
	} `json:"spec"`
	Services map[string]any `json:"services"`
}

type podSpec struct {
	Containers []struct {
		Name      string `json:"name"`
		Resources struct {
			Requests map[string]any `json:"requests"`
		} `json:"resources"`
	} `json:"containers"`
}

// workloads reads the workloads in the contents of a job. A document that cannot be parsed is skipped; the others still
// count. Without any Kubernetes object, the component is assumed to be one container.
func workloads(component string, contents []Content, needs Requirements) []Workload {
	var found []Workload
	objects := 0
	for _, c := range contents {
		documents := utilyaml.NewYAMLReader(bufio.NewReader(strings.NewReader(c.YAML)))
		for len(found) < maxWorkloads {
			text, err := documents.Read()
			if err != nil {
				break // the end
			}
			var o object
			if yaml.Unmarshal(text, &o) != nil {
				continue
			}
			if o.Kind != "" || len(o.Services) > 0 {
				objects++
			}
			found = append(found, o.workloads()...)
		}
	}
	found = found[:min(maxWorkloads, len(found))]
	if objects == 0 {
		found = []Workload{{Name: component, Replicas: 1, Containers: []Container{{Name: component}}}}
	}
	assume(found, needs)
	return found
}

func (o *object) workloads() []Workload {
	if slices.Contains(podKinds, o.Kind) {
		pod := o.Spec.Template.Spec
		if o.Kind == "Pod" {
			pod = o.Spec.podSpec
		}
		w := Workload{Name: o.Metadata.Name, Replicas: 1}
		if o.Spec.Replicas != nil {
			w.Replicas = min(maxReplicas, max(0, *o.Spec.Replicas))
		}
		for _, c := range pod.Containers[:min(maxContainers, len(pod.Containers))] {
			w.Containers = append(w.Containers, Container{
				Name:        c.Name,
				CPUMilli:    quantity(c.Resources.Requests["cpu"], true),
				MemoryBytes: quantity(c.Resources.Requests["memory"], false),
			})
		}
		return []Workload{w}
	}
	var services []Workload
	for name := range o.Services {
		services = append(services, Workload{Name: name, Replicas: 1, Containers: []Container{{Name: name}}})
	}
	slices.SortFunc(services, func(a, b Workload) int { return strings.Compare(a.Name, b.Name) })
	return services
}

// assume gives the first container the component's requirements if no manifest has requests.
func assume(all []Workload, needs Requirements) {
	var cpu, memory int64
	for _, w := range all {
		for _, c := range w.Containers {
			cpu, memory = cpu+c.CPUMilli, memory+c.MemoryBytes
		}
	}
	for i := range all {
		if len(all[i].Containers) == 0 {
			continue
		}
		first := &all[i].Containers[0]
		if cpu == 0 {
			first.CPUMilli = quantity(string(needs.CPU), true)
		}
		if memory == 0 {
			first.MemoryBytes = quantity(string(needs.Memory), false)
		}
		return
	}
}

// quantity parses a Kubernetes quantity, as a number or as text; it returns 0 if it is invalid. The result is bounded
// so that sums do not overflow.
func quantity(v any, milli bool) int64 {
	var text string
	switch v := v.(type) {
	case string:
		text = v
	case int64, float64:
		text = strings.TrimSpace(formatNumber(v))
	default:
		return 0
	}
	q, err := resource.ParseQuantity(text)
	if err != nil || q.Sign() <= 0 {
		return 0
	}
	if milli {
		return min(maxQuantity, q.MilliValue())
	}
	return min(maxQuantity, q.Value())
}
