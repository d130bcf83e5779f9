package descriptor

import "go.yaml.in/yaml/v3"

// spot is a place in the document.
type spot struct {
	path string
	node *yaml.Node
}

// checkSubmission finds what is refused in a new document but accepted in one that was stored earlier.
func (r *reader) checkSubmission() {
	if r.faults.Empty() { // otherwise nothing is written out that could be too large
		r.checkReplicas()
	}
	r.checkShared()
	r.checkNumbers()
}

// checkReplicas limits the number of jobs, each of which carries the objects of its component. Only node labels can
// exceed the limit, so the fault is reported at the node label that adds most.
func (r *reader) checkReplicas() {
	jobs, size := 0, 0
	most, mostJobs := 0, 0
	largest, largestSize := 0, 0
	for i := range r.app.Components {
		c := &r.app.Components[i]
		bytes := 0
		for _, m := range c.Manifests {
			bytes += len(m.YAML)
		}
		replicas := len(c.Replicas())
		jobs, size = jobs+replicas, size+replicas*bytes
		if replicas > mostJobs {
			most, mostJobs = i, replicas
		}
		if added := (replicas - 1) * bytes; added > largestSize {
			largest, largestSize = i, added
		}
	}
	if jobs > maxJobs {
		at := r.labelled[most]
		r.fault(at.path, at.node, "are %d, so that the application has %d jobs; %d are allowed", mostJobs, jobs, maxJobs)
	}
	if size > maxRendered {
		at := r.labelled[largest]
		r.fault(at.path, at.node, "have the manifests written once for each: those of all jobs together have %d bytes; "+
			"%d are allowed", size, maxRendered)
	}
}
