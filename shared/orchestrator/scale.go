package orchestrator

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/littoral-project/littoral/shared/job"
)

// Steps by which remediations change resource requests (contracts/icos.md §6.3).
const (
	StepCPUMilli    = 1000
	StepMemoryBytes = 1000 << 20
)

// MaxReplicas is the most replicas that scaling up can reach.
const MaxReplicas = 200

// Keeps reports whether the job leaves its copy as it is, apart from the fields that scaling changes.
func Keeps(j *job.Job) bool { return j.Type == job.Update && !job.Remediation(j.SubType).Rewrites() }

// remedies returns the scalings that the job's copy must show, oldest first, and the id of the remediation that last
// rewrote its objects ("" if none did since the content was set). Scalings before that rewrite are gone; refused ones
// change nothing. Package job counts replicas by the same rule.
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

// Scalings returns how to scale objects that have just been built from the job.
func Scalings(j *job.Job) []job.Remedy {
	_, scalings := remedies(j)
	return scalings
}

// Lacking returns the scalings that a copy with this record still lacks. ok is false when the copy differs in more than
// that: its objects must then be built anew. A scaling is relative, so the record, which is written together with it,
// is the only way to tell whether it was carried out.
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

// Unsupported returns why no orchestrator can carry out the remediation that the job asks for; nil when one can, or
// when the job asks for none. The copy then stays as it is.
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

// settledByAutoscalers applies autoscaled to the job's manifests. Most jobs have no autoscaler and need not be parsed.
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

// scaleTarget returns kind and name of what an autoscaler scales; ok is false for other objects.
func scaleTarget(o *unstructured.Unstructured) (of [2]string, ok bool) {
	ref, _, _ := unstructured.NestedStringMap(o.Object, "spec", "scaleTargetRef")
	return [2]string{ref["kind"], ref["name"]}, o.GetKind() == autoscaler
}

// autoscaled returns the objects whose number of replicas is set by an autoscaler among the objects.
func autoscaled(objects []*unstructured.Unstructured) (settled []*unstructured.Unstructured) {
	named := map[[2]string]bool{} // by kind and name
	for _, o := range objects {
		if of, scales := scaleTarget(o); scales {
			named[of] = true
		}
	}
	for _, o := range objects {
		if replicated(o) && named[[2]string{o.GetKind(), o.GetName()}] {
			settled = append(settled, o)
		}
	}
	return settled
}

// Scale carries out the remediations on the object and reports whether it changed: up and down change the number of
// replicas, out and in what the first container requests. At least one replica stays.
func Scale(o *unstructured.Unstructured, by ...job.Remedy) (changed bool, err error) {
	for _, r := range by {
		did, err := scale(o, r)
		if err != nil {
			return changed, err
		}
		changed = changed || did
	}
	if changed {
		stamp(o)
	}
	return changed, nil
}

func scale(o *unstructured.Unstructured, r job.Remedy) (changed bool, err error) {
	switch r.Type {
	case job.ScaleUp, job.ScaleDown:
		if !replicated(o) {
			return false, nil
		}
		by := int64(max(r.Step, 1))
		if r.Type == job.ScaleDown {
			by = -by
		}
		return replicas(o, by)
	case job.ScaleOut, job.ScaleIn:
		path, bears := PodTemplate(o)
		if !bears || len(path) == 0 { // the requests of a bare Pod are immutable
			return false, nil
		}
		return requests(o, append(path, "spec", "containers"), r.Type == job.ScaleOut)
	}
	return false, nil
}

func replicas(o *unstructured.Unstructured, by int64) (bool, error) {
	have := int64(1) // for none
	if value, _, _ := unstructured.NestedFieldNoCopy(o.Object, "spec", "replicas"); value != nil {
		n, isNumber := value.(int64)
		if !isNumber {
			return false, Refuse(ReasonBadManifest, "%s: spec.replicas is not a whole number", identity(o))
		}
		have = n
	}
	next := ScaledReplicas(have, by)
	if next == have {
		return false, nil
	}
	return true, unstructured.SetNestedField(o.Object, next, "spec", "replicas")
}

// ScaledReplicas adds by, which may be negative, within 1 and MaxReplicas.
func ScaledReplicas(have, by int64) int64 {
	if by > 0 {
		return max(have, min(MaxReplicas, have+by))
	}
	return max(min(have, 1), have+by)
}

// ScaledRequest adds or takes away a step; a request of no more than one step is not lowered.
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
		from := "requests"
		if asks, _, _ := unstructured.NestedFieldNoCopy(first, "resources", from, r.name); asks == nil {
			from = "limits" // an API server takes the limit for the request
		}
		have, err := quantity(first, from, r.name)
		if err != nil {
			return false, Refuse(ReasonBadManifest, "%s: %v", identity(o), err)
		}
		next := ScaledRequest(r.read(have), r.step, more)
		if next == r.read(have) {
			continue
		}
		changed = true
		err = errors.Join(present(first, "resources"), present(first, "resources", "requests"))
		if err == nil {
			err = unstructured.SetNestedField(first, r.write(next), "resources", "requests", r.name)
		}
		if err != nil {
			return false, Refuse(ReasonBadManifest, "%s: %v", identity(o), err)
		}
		// A limit below the request would be rejected.
		if limit, err := quantity(first, "limits", r.name); err == nil && !limit.IsZero() && r.read(limit) < next {
			if err := unstructured.SetNestedField(first, r.write(next), "resources", "limits", r.name); err != nil {
				return false, err
			}
		}
	}
	return changed, unstructured.SetNestedSlice(o.Object, containers, path...)
}

// quantity reads a request or limit of the container, which may be text or a number; 0 when absent.
func quantity(container map[string]any, field, name string) (resource.Quantity, error) {
	value, found, err := unstructured.NestedFieldNoCopy(container, "resources", field, name)
	if err != nil || !found || value == nil {
		return resource.Quantity{}, err
	}
	return resource.ParseQuantity(fmt.Sprint(value))
}
