package kubeapi

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// statusOf is the status that controllers write for kinds with pods when n pods run.
var statusOf = map[string]func(o *Object, n int64) map[string]any{
	"Deployment": func(o *Object, n int64) map[string]any {
		// Old pods stay until new ones are ready, with one pod more than wanted. If the new form never becomes ready,
		// the available pods are the old ones.
		old, _, _ := unstructured.NestedInt64(o.Object, "status", "availableReplicas")
		if runs(o, "slow") && old > 0 {
			return map[string]any{"replicas": old + 1, "readyReplicas": old, "availableReplicas": old, "updatedReplicas": int64(1)}
		}
		return map[string]any{"replicas": n, "readyReplicas": n, "availableReplicas": n, "updatedReplicas": n}
	},
	"StatefulSet": func(_ *Object, n int64) map[string]any {
		return map[string]any{"replicas": n, "readyReplicas": n, "updatedReplicas": n}
	},
	"ReplicaSet":            ofReplicaSet,
	"ReplicationController": ofReplicaSet,
	"DaemonSet": func(_ *Object, n int64) map[string]any {
		return map[string]any{
			"desiredNumberScheduled": n, "numberReady": n, "numberAvailable": n, "updatedNumberScheduled": n,
		}
	},
	"Job": func(o *Object, n int64) map[string]any {
		if runs(o, "done") {
			complete := []any{map[string]any{"type": "Complete", "status": "True"}}
			return map[string]any{"succeeded": n, "conditions": complete}
		}
		return map[string]any{"active": n, "ready": n}
	},
	"Pod": func(_ *Object, n int64) map[string]any {
		if n == 0 {
			return map[string]any{"phase": "Pending"}
		}
		ready := []any{map[string]any{"type": "Ready", "status": "True"}}
		return map[string]any{"phase": "Running", "conditions": ready}
	},
}

func ofReplicaSet(_ *Object, n int64) map[string]any {
	return map[string]any{"replicas": n, "readyReplicas": n, "availableReplicas": n}
}

// runs reports whether the image of the object's pods has a name that begins like that.
func runs(o *Object, image string) bool {
	text, _ := json.Marshal(o.Object)
	return strings.Contains(string(text), `"image":"`+image)
}

// expired reports whether the object is a Job that has ended and has ttlSecondsAfterFinished.
func expired(o *Object) bool {
	_, bounded, _ := unstructured.NestedInt64(o.Object, "spec", "ttlSecondsAfterFinished")
	_, ended, _ := unstructured.NestedInt64(o.Object, "status", "succeeded")
	return o.GetKind() == "Job" && bounded && ended
}

// Work lets the controllers of the cluster do what there is to do: pods run if their node exists, and deleted objects
// go away, also in terminating namespaces. Pods whose image begins with "slow" never become ready; Jobs whose image
// begins with "done" end at once.
func (s *Server) Work() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, path := range slices.Sorted(maps.Keys(s.objects)) {
		o := s.objects[path]
		write, bears := statusOf[o.GetKind()]
		ns := s.objects["/api/v1/namespaces/"+o.GetNamespace()]
		switch {
		case o.GetDeletionTimestamp() != nil && len(o.GetFinalizers()) == 0 && o.GetKind() != "Namespace", expired(o),
			o.GetNamespace() != "" && ns != nil && ns.GetDeletionTimestamp() != nil:
			s.forget(path)
		case bears:
			status := write(o, s.pods(o))
			status["observedGeneration"] = o.GetGeneration()
			// As what arrives over the wire is.
			o.Object["status"] = plain(status)
		}
	}
	for _, path := range slices.Sorted(maps.Keys(s.objects)) {
		if o := s.objects[path]; o.GetKind() == "Namespace" && o.GetDeletionTimestamp() != nil {
			s.forget(path)
		}
	}
}

// pods is how many pods of the object run.
func (s *Server) pods(o *Object) int64 {
	if runs(o, "slow") {
		return 0
	}
	for _, path := range [][]string{{"spec", "template", "spec"}, {"spec"}} {
		terms, _, _ := unstructured.NestedSlice(o.Object, append(path, "affinity", "nodeAffinity",
			"requiredDuringSchedulingIgnoredDuringExecution", "nodeSelectorTerms")...)
		for _, t := range terms {
			fields, _, _ := unstructured.NestedSlice(t.(map[string]any), "matchFields")
			for _, f := range fields {
				node := f.(map[string]any)["values"].([]any)[0].(string)
				if s.objects["/api/v1/nodes/"+node] == nil {
					return 0
				}
			}
		}
	}
	if n, found, _ := unstructured.NestedInt64(o.Object, "spec", "replicas"); found {
		return n
	}
	return 1
}
