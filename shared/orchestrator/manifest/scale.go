package manifest

import (
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/littoral-project/littoral/shared/job"
	"github.com/littoral-project/littoral/shared/orchestrator"
)

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
		if gk := o.GroupVersionKind().GroupKind(); !orchestrator.Replicated(gk.Group, gk.Kind) {
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
			return false, orchestrator.Refuse(orchestrator.ReasonBadManifest, "%s: spec.replicas is not a whole number", identity(o))
		}
		have = n
	}
	next := orchestrator.ScaledReplicas(have, by)
	if next == have {
		return false, nil
	}
	return true, unstructured.SetNestedField(o.Object, next, "spec", "replicas")
}

func requests(o *unstructured.Unstructured, path []string, more bool) (bool, error) {
	containers, found, err := unstructured.NestedSlice(o.Object, path...)
	if err != nil || !found || len(containers) == 0 {
		return false, err
	}
	first, ok := containers[0].(map[string]any)
	if !ok {
		return false, orchestrator.Refuse(orchestrator.ReasonBadManifest, "%s: its first container is not an object", identity(o))
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
			func(n int64) string { return fmt.Sprintf("%dm", n) }, orchestrator.StepCPUMilli,
		},
		{
			"memory", func(q resource.Quantity) int64 { return q.Value() },
			func(n int64) string { return resource.NewQuantity(n, resource.BinarySI).String() }, orchestrator.StepMemoryBytes,
		},
	} {
		from := "requests"
		if asks, _, _ := unstructured.NestedFieldNoCopy(first, "resources", from, r.name); asks == nil {
			from = "limits" // an API server takes the limit for the request
		}
		have, err := quantity(first, from, r.name)
		if err != nil {
			return false, orchestrator.Refuse(orchestrator.ReasonBadManifest, "%s: %v", identity(o), err)
		}
		next := orchestrator.ScaledRequest(r.read(have), r.step, more)
		if next == r.read(have) {
			continue
		}
		changed = true
		err = errors.Join(present(first, "resources"), present(first, "resources", "requests"))
		if err == nil {
			err = unstructured.SetNestedField(first, r.write(next), "resources", "requests", r.name)
		}
		if err != nil {
			return false, orchestrator.Refuse(orchestrator.ReasonBadManifest, "%s: %v", identity(o), err)
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

// scaleTarget returns kind and name of what an autoscaler scales; ok is false for other objects.
func scaleTarget(o *unstructured.Unstructured) (of [2]string, ok bool) {
	ref, _, _ := unstructured.NestedStringMap(o.Object, "spec", "scaleTargetRef")
	return [2]string{ref["kind"], ref["name"]}, o.GetKind() == "HorizontalPodAutoscaler"
}

// autoscaled returns the objects whose number of replicas is set by an autoscaler among the objects.
func autoscaled(objects []*unstructured.Unstructured) (scaled []*unstructured.Unstructured) {
	all, of := make([]*orchestrator.Manifest, len(objects)), map[*orchestrator.Manifest]*unstructured.Unstructured{}
	for i, o := range objects {
		m := &orchestrator.Manifest{APIVersion: o.GetAPIVersion(), Kind: o.GetKind()}
		m.Metadata.Name = o.GetName()
		target, _ := scaleTarget(o)
		m.Spec.ScaleTargetRef.Kind, m.Spec.ScaleTargetRef.Name = target[0], target[1]
		all[i], of[m] = m, o
	}
	for _, m := range orchestrator.Autoscaled(all) {
		scaled = append(scaled, of[m])
	}
	return scaled
}
