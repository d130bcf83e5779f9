package fleet

import (
	"slices"
	"time"

	"github.com/littoral-project/littoral/shared/orchestrator"
)

// Copy is what a cluster runs for a job, or the record that it was removed. Its names derive from the job id, so
// carrying out the job again changes the copy and never creates a second one.
type Copy struct {
	Job         string     `json:"job"`
	Epoch       int64      `json:"epoch"` // of the decision that created it
	Removed     bool       `json:"removed,omitempty"`
	Application string     `json:"application"`
	Instance    string     `json:"instance"` // application id
	Component   string     `json:"component"`
	Namespace   string     `json:"namespace"`
	Node        string     `json:"node"`
	Workloads   []Workload `json:"workloads,omitempty"`
	Generation  int64      `json:"generation"` // number of changes
	Since       time.Time  `json:"since"`      // in this place, or since the removal
	Changed     time.Time  `json:"changed"`
	Told        string     `json:"told,omitempty"`   // the condition reported last
	Remedy      string     `json:"remedy,omitempty"` // the remediation carried out last, which is not repeated
}

// ResourceName is the name of the copy in the cluster, the same for every orchestrator.
func (c *Copy) ResourceName() string { return orchestrator.ResourceName(c.Component, c.Job) }

// ResourceUUID stays the same while the copy stays in its place under one decision.
func (c *Copy) ResourceUUID(cluster string) string {
	return stableUUID("resource", cluster, c.Job, formatNumber(c.Epoch))
}

// admits reports whether a job of the epoch may change the copy: an older decision never may.
func (c *clusterState) admits(j *Job) bool {
	have := c.Copies[j.subject()]
	return have == nil || j.Epoch >= have.Epoch
}

// apply carries out the job. The caller has checked that the cluster admits it.
func (c *clusterState) apply(j *Job, now time.Time) {
	if j.Type == typeDelete || (j.Type == typeUpdate && j.SubType == reallocate) {
		c.remove(j, now)
		return
	}
	have := c.Copies[j.ID]
	fresh := have == nil || have.Removed || have.Epoch != j.Epoch || have.Node != j.Targets.Node
	next := &Copy{
		Job: j.ID, Epoch: j.Epoch, Application: j.GroupName, Instance: j.GroupID,
		Component: j.Instruction.ComponentName, Namespace: j.Namespace, Node: j.Targets.Node,
		Generation: 1, Since: now, Changed: now,
	}
	if next.Component == "" {
		next.Component = j.Resource.Name // older managers (v1.4.1) name it only here
	}
	if !fresh {
		next.Generation, next.Since = have.Generation+1, have.Since
	}
	again := false
	if j.Type == typeUpdate && have != nil && !have.Removed {
		next.Workloads = have.Workloads
		again = !fresh && j.remedy() != "" && j.remedy() == have.Remedy
	}
	if next.Workloads == nil || !changesOneField(j.SubType) {
		named := workloads(next.Component, j.contents(), j.Instruction.Requirements)
		if j.SubType == patch { // a patch removes no workloads
			named = append(named, others(next.Workloads, named)...)
		}
		next.Workloads = named[:min(maxWorkloads, len(named))]
	}
	if j.Type == typeUpdate {
		next.Remedy = j.remedy()
		if !again {
			next.Workloads = scaled(next.Workloads, j.SubType, j.step())
		}
	}
	c.Copies[j.ID] = next
}

func (c *clusterState) remove(j *Job, now time.Time) {
	id := j.subject()
	c.Copies[id] = &Copy{Job: id, Epoch: j.Epoch, Removed: true, Since: now}
}

// fence drops the copy of the job if a later decision has replaced its own; a newer copy stays.
func (c *clusterState) fence(job string, epoch int64) (dropped bool) {
	have := c.Copies[job]
	if have == nil || have.Removed || have.Epoch != epoch {
		return false
	}
	delete(c.Copies, job)
	return true
}

// changesOneField reports whether the remediation changes at most one field of the running workloads; others replace them.
func changesOneField(remediation enum) bool {
	return slices.Contains([]enum{scaleUp, scaleDown, scaleOut, scaleIn, secure}, remediation)
}

// others lists the workloads in all that are not in named.
func others(all, named []Workload) []Workload {
	return slices.DeleteFunc(slices.Clone(all), func(w Workload) bool {
		return slices.ContainsFunc(named, func(n Workload) bool { return n.Name == w.Name })
	})
}

// scaled returns the workloads after the remediation: up and down change replicas, out and in change the requests of
// the first container, as both code lines of the reference do. Nothing shrinks below one replica or grows beyond a
// limit.
func scaled(all []Workload, remediation enum, step int64) []Workload {
	out := slices.Clone(all)
	for i := range out {
		w := &out[i]
		w.Containers = slices.Clone(w.Containers)
		switch remediation {
		case scaleUp:
			w.Replicas = int(orchestrator.ScaledReplicas(int64(w.Replicas), step))
		case scaleDown:
			w.Replicas = int(orchestrator.ScaledReplicas(int64(w.Replicas), -step))
		case scaleOut, scaleIn:
			if len(w.Containers) > 0 {
				w.Containers[0].resize(remediation == scaleOut)
			}
		}
	}
	return out
}

func (c *Container) resize(grow bool) {
	c.CPUMilli = orchestrator.ScaledRequest(c.CPUMilli, orchestrator.StepCPUMilli, grow)
	c.MemoryBytes = orchestrator.ScaledRequest(c.MemoryBytes, orchestrator.StepMemoryBytes, grow)
}
