package orchestrator

import (
	"errors"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/littoral-project/littoral/shared/job"
)

// Manifest is what has to be known of a Kubernetes manifest in order to tell who sets its number of replicas.
type Manifest struct {
	APIVersion string `yaml:"apiVersion"`
	Kind       string `yaml:"kind"`
	Metadata   struct {
		Name      string `yaml:"name"`
		Namespace string `yaml:"namespace"`
	} `yaml:"metadata"`
	Spec struct {
		ScaleTargetRef struct {
			Kind string `yaml:"kind"`
			Name string `yaml:"name"`
		} `yaml:"scaleTargetRef"` // of an autoscaler
	} `yaml:"spec"`
	Items []Manifest `yaml:"items"` // of a List
}

const autoscaler = "HorizontalPodAutoscaler"

// replicated lists the kinds with a settable number of pods, with their groups.
var replicated = []string{"apps/Deployment", "apps/StatefulSet", "apps/ReplicaSet", "ReplicationController"}

// Replicated reports whether the number of pods of such a kind can be set. The group of the core API is "".
func Replicated(group, kind string) bool {
	return slices.Contains(replicated, strings.TrimPrefix(group+"/"+kind, "/"))
}

func (m *Manifest) group() string {
	group, _, grouped := strings.Cut(m.APIVersion, "/")
	if !grouped {
		return ""
	}
	return group
}

// String names the object: kind, namespace and name.
func (m *Manifest) String() string {
	id := strings.TrimPrefix(m.group()+"/"+m.Kind, "/") + " "
	if m.Metadata.Namespace != "" {
		id += m.Metadata.Namespace + "/"
	}
	return id + m.Metadata.Name
}

// Autoscaled returns those whose number of replicas is set by an autoscaler among them.
func Autoscaled(all []*Manifest) (scaled []*Manifest) {
	named := map[[2]string]bool{} // by kind and name
	for _, m := range all {
		if m.Kind == autoscaler {
			named[[2]string{m.Spec.ScaleTargetRef.Kind, m.Spec.ScaleTargetRef.Name}] = true
		}
	}
	for _, m := range all {
		if Replicated(m.group(), m.Kind) && named[[2]string{m.Kind, m.Metadata.Name}] {
			scaled = append(scaled, m)
		}
	}
	return scaled
}

// autoscaledIn applies Autoscaled to the job's manifests. Most jobs have no autoscaler and need not be parsed. What
// cannot be read is left out; whoever deploys it says so.
func autoscaledIn(j *job.Job) []*Manifest {
	scales := func(c job.Content) bool { return strings.Contains(c.YAML, autoscaler) }
	if !slices.ContainsFunc(j.Instruction.Contents, scales) {
		return nil
	}
	var all []*Manifest
	for _, c := range j.Instruction.Contents {
		documents := yaml.NewDecoder(strings.NewReader(c.YAML))
		for {
			m := &Manifest{}
			var misfit *yaml.TypeError // of a field that another kind has otherwise; the rest is read
			if err := documents.Decode(m); err != nil && !errors.As(err, &misfit) {
				break
			}
			if len(m.Items) == 0 {
				all = append(all, m)
			}
			for i := range m.Items {
				all = append(all, &m.Items[i])
			}
		}
	}
	return Autoscaled(all)
}
