package orchestrator

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/littoral-project/littoral/shared/job"
)

// Steps of the remediations that change what containers ask for (contracts/icos.md §6.3).
const (
	StepCPUMilli    = 1000
	StepMemoryBytes = 1000 << 20
)

// MaxReplicas bounds what scaling up can come to.
const MaxReplicas = 200

// Keeps reports whether the job leaves its copy as it is, but for the fields that scaling changes.
func Keeps(j *job.Job) bool { return j.Type == job.Update && !job.Remediation(j.SubType).Rewrites() }

// remedies lists the scalings that the job's copy is to show, oldest first, after the id of the remediation that wrote its
// objects as they stand in the job, "" when none did since their content is what it is. Those that are refused change
// nothing. The books count replicas by the same rule.
func remedies(j *job.Job) (written string, scalings []job.Remedy) {
	for _, r := range j.Remediations {
		switch {
		case r.Status == job.RemedyFailed, unsupported(j, r.Type) != nil:
		case r.Type.Rewrites():
			written, scalings = r.ID.String(), nil
		default:
			scalings = append(scalings, r)
		}
	}
	return written, scalings
}

// Scalings lists how objects that are written as they stand in the job are to be scaled then.
func Scalings(j *job.Job) []job.Remedy {
	_, scalings := remedies(j)
	return scalings
}

// Lacking returns those of the Scalings that a copy of this record has not seen. ok is false when it differs in more than
// these: then its objects are to be written anew. A scaling is relative, so only the record that is written along with it
// tells whether it was carried out.
func (r Record) Lacking(j *job.Job) (scalings []job.Remedy, ok bool) {
	want := RecordOf(j)
	if r.Epoch != want.Epoch || r.Content != want.Content {
		return nil, false
	}
	written, scalings := remedies(j)
	if r.Remedy == written {
		return scalings, true
	}
	last := slices.IndexFunc(scalings, func(s job.Remedy) bool { return s.ID.String() == r.Remedy })
	return scalings[last+1:], last >= 0
}

// Unsupported says why nobody here can carry out the remediation that the job asks for; nil when somebody can, or when
// it asks for none. Such a job leaves the copy as it is.
func Unsupported(j *job.Job) *Refusal {
	if j.Type != job.Update {
		return nil
	}
	return unsupported(j, job.Remediation(j.SubType))
}

func unsupported(j *job.Job, r job.Remediation) *Refusal {
	switch r {
	case job.Secure:
		return Refuse(ReasonNotSupported, "nothing here can act inside a container, as %q asks", r)
	case job.ScaleUp, job.ScaleDown:
		if settled := settledByAutoscalers(j); len(settled) > 0 {
			return Refuse(
				ReasonNotSupported, "how many replicas %s has is for its HorizontalPodAutoscaler to say", identity(settled[0]),
			)
		}
	}
	return nil
}

const autoscaler = "HorizontalPodAutoscaler"

// settledByAutoscalers is autoscaled of the job's manifests. Most have no autoscaler and need not be read.
func settledByAutoscalers(j *job.Job) []*unstructured.Unstructured {
	scales := func(c job.Content) bool { return strings.Contains(c.YAML, autoscaler) }
	if !slices.ContainsFunc(j.Instruction.Contents, scales) {
		return nil
	}
	objects, err := Read(j.Instruction.Contents)
	if err != nil {
		return nil // Build says so
	}
	return autoscaled(objects)
}

// scaleTarget returns the kind and name of what an autoscaler scales; ok is false for all else.
func scaleTarget(o *unstructured.Unstructured) (of [2]string, ok bool) {
	ref, _, _ := unstructured.NestedStringMap(o.Object, "spec", "scaleTargetRef")
	return [2]string{ref["kind"], ref["name"]}, o.GetKind() == autoscaler
}

// autoscaled lists those of the objects whose number of replicas an autoscaler among them settles.
func autoscaled(objects []*unstructured.Unstructured) (settled []*unstructured.Unstructured) {
	named := map[[2]string]bool{} // by kind and name
	for _, o := range objects {
		if of, scales := scaleTarget(o); scales {
			named[of] = true
		}
	}
	for _, o := range objects {
		if Replicated(o) && named[[2]string{o.GetKind(), o.GetName()}] {
			settled = append(settled, o)
		}
	}
	return settled
}

// Scale changes the one field of the object that each of the remediations means, and says whether it did: the number of
// replicas for up and down, what the first container asks for, for out and in. The last replica stays.
func Scale(o *unstructured.Unstructured, by ...job.Remedy) (changed bool, err error) {
	for _, r := range by {
		did, err := scale(o, r)
		if err != nil {
			return changed, err
		}
		changed = changed || did
	}
	if changed {
		Stamp(o)
	}
	return changed, nil
}

func scale(o *unstructured.Unstructured, r job.Remedy) (changed bool, err error) {
	switch r.Type {
	case job.ScaleUp, job.ScaleDown:
		if !Replicated(o) {
			return false, nil
		}
		by := int64(max(r.Step, 1))
		if r.Type == job.ScaleDown {
			by = -by
		}
		return replicas(o, by)
	case job.ScaleOut, job.ScaleIn:
		path, bears := PodTemplate(o)
		if !bears || len(path) == 0 { // what a pod asks for cannot be changed
			return false, nil
		}
		return requests(o, append(path, "spec", "containers"), r.Type == job.ScaleOut)
	}
	return false, nil
}

func replicas(o *unstructured.Unstructured, by int64) (bool, error) {
	have, found, err := unstructured.NestedInt64(o.Object, "spec", "replicas")
	if err != nil {
		return false, Refuse(ReasonBadManifest, "%s: %v", identity(o), err)
	}
	if !found {
		have = 1
	}
	next := ScaledReplicas(have, by)
	if next == have {
		return false, nil
	}
	return true, unstructured.SetNestedField(o.Object, next, "spec", "replicas")
}

// ScaledReplicas is by more, or fewer when that is negative, within bounds: what runs never ends by scaling.
func ScaledReplicas(have, by int64) int64 {
	if by > 0 {
		return max(have, min(MaxReplicas, have+by))
	}
	return max(min(have, 1), have+by)
}

// ScaledRequest is a step more or less; what asks for no more than a step keeps what it has.
func ScaledRequest(have, step int64, more bool) int64 {
	switch {
	case more:
		return have + step
	case have > step:
		return have - step
	}
	return have
}

func requests(o *unstructured.Unstructured, path []string, more bool) (bool, error) {
	containers, found, err := unstructured.NestedSlice(o.Object, path...)
	if err != nil || !found || len(containers) == 0 {
		return false, err
	}
	first, ok := containers[0].(map[string]any)
	if !ok {
		return false, Refuse(ReasonBadManifest, "%s: its first container is not an object", identity(o))
	}
	changed := false
	for _, r := range []struct {
		name  string
		read  func(resource.Quantity) int64
		write func(int64) string
		step  int64
	}{
		{
			"cpu", func(q resource.Quantity) int64 { return q.MilliValue() },
			func(n int64) string { return fmt.Sprintf("%dm", n) }, StepCPUMilli,
		},
		{
			"memory", func(q resource.Quantity) int64 { return q.Value() },
			func(n int64) string { return resource.NewQuantity(n, resource.BinarySI).String() }, StepMemoryBytes,
		},
	} {
		have, err := quantity(first, "requests", r.name)
		if err != nil {
			return false, Refuse(ReasonBadManifest, "%s: %v", identity(o), err)
		}
		next := ScaledRequest(r.read(have), r.step, more)
		if next == r.read(have) {
			continue
		}
		changed = true
		if err := unstructured.SetNestedField(first, r.write(next), "resources", "requests", r.name); err != nil {
			return false, Refuse(ReasonBadManifest, "%s: %v", identity(o), err)
		}
		// A limit below the request would be refused.
		if limit, err := quantity(first, "limits", r.name); err == nil && !limit.IsZero() && r.read(limit) < next {
			if err := unstructured.SetNestedField(first, r.write(next), "resources", "limits", r.name); err != nil {
				return false, err
			}
		}
	}
	return changed, unstructured.SetNestedSlice(o.Object, containers, path...)
}

// quantity reads a request or limit of the container, which manifests write as text or as a number; 0 when it has none.
func quantity(container map[string]any, field, name string) (resource.Quantity, error) {
	value, found, err := unstructured.NestedFieldNoCopy(container, "resources", field, name)
	if err != nil || !found || value == nil {
		return resource.Quantity{}, err
	}
	return resource.ParseQuantity(fmt.Sprint(value))
}

// CPUMilli returns what the first container of the object's pods asks for.
func CPUMilli(o *unstructured.Unstructured) int64 {
	path, bears := PodTemplate(o)
	if !bears {
		return 0
	}
	containers, _, _ := unstructured.NestedSlice(o.Object, append(path, "spec", "containers")...)
	if len(containers) == 0 {
		return 0
	}
	first, ok := containers[0].(map[string]any)
	if !ok {
		return 0
	}
	q, err := quantity(first, "requests", "cpu")
	if err != nil {
		return 0
	}
	return q.MilliValue()
}
