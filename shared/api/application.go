package api

import "time"

// Application is one instance of a descriptor (contract: JobGroup).
type Application struct {
	ID             string      `json:"id"`
	CreatedAt      time.Time   `json:"created_at"`
	UpdatedAt      time.Time   `json:"updated_at"`
	Name           string      `json:"appName"`
	Description    string      `json:"appDescription"`
	Namespace      string      `json:"namespace"`
	Desired        string      `json:"desired"`          // running, stopped, deleted
	Status         string      `json:"status"`           // StatusPending, ...
	Message        string      `json:"message"`          // the reason of the status in one line
	Health         string      `json:"health,omitempty"` // Healthy, Progressing, Unknown, Degraded: of the component that fares worst
	Version        int64       `json:"version"`          // increases with each change of the descriptor
	HandledVersion int64       `json:"judged"`           // the version that the matchmaker has handled; 0 = unknown
	Owner          string      `json:"owner"`
	Jobs           []Job       `json:"jobs"`
	Conditions     []Condition `json:"conditions,omitempty"` // of the application as a whole
	Warnings       []string    `json:"warnings,omitempty"`   // oddities in the descriptor of this request
}

// The statuses of an application.
const (
	StatusPending   = "Pending"   // some component has no place
	StatusDeploying = "Deploying" // placed, but not all of it runs; or updated, and not handled by the matchmaker yet
	StatusAvailable = "Available" // every component runs, according to its orchestrator
	StatusDegraded  = "Degraded"  // some component failed or is impaired
	StatusUnknown   = "Unknown"   // some component is where nothing answers
	StatusStopping  = "Stopping"
	StatusStopped   = "Stopped"
	StatusDeleting  = "Deleting"
	StatusDeleted   = "Deleted" // only in the answer to its deletion
)

// UpdatePending reports whether the matchmaker has still to handle an update of a running application.
func (a *Application) UpdatePending() bool {
	return a.Desired == "running" && a.HandledVersion != 0 && a.HandledVersion < a.Version
}

// Components returns the jobs of components, without the removals of former copies and without components that were
// removed from the descriptor.
func (a *Application) Components() []Job {
	list := make([]Job, 0, len(a.Jobs))
	for _, j := range a.Jobs {
		if j.Cleans == "" && !a.Removed(&j) {
			list = append(list, j)
		}
	}
	return list
}

// Removed reports whether an update has removed the job's component from the descriptor of a running application,
// whether it is already gone or still to be removed.
func (a *Application) Removed(j *Job) bool {
	return a.Desired == "running" && j.Cleans == "" && !j.Live()
}

// Job is the work for one component, or the removal of a former copy.
type Job struct {
	ID           string      `json:"id"`
	CreatedAt    time.Time   `json:"created_at"`
	UpdatedAt    time.Time   `json:"updated_at"`
	GroupID      string      `json:"job_group_id"`
	GroupName    string      `json:"job_group_name"`
	GroupText    string      `json:"job_group_description"`
	OwnerID      string      `json:"owner_id"` // the agent that owns it
	Type         string      `json:"type"`
	SubType      string      `json:"sub_type"`
	State        string      `json:"state"`
	Manifests    []Manifest  `json:"manifests"`
	Targets      Target      `json:"targets"`
	Orchestrator string      `json:"orchestrator"`
	Resource     Resource    `json:"resource"`
	Namespace    string      `json:"namespace"`
	Instruction  Instruction `json:"instruction"`
	Epoch        int64       `json:"epoch"` // of the placement decision it carries out
	Replica      int         `json:"replica"`
	Cleans       string      `json:"cleans,omitempty"` // the job whose former copy this one removes
	LeaseUntil   *time.Time  `json:"lease_until,omitempty"`
}

// Component returns the name of the component, with the number of the replica unless it is the first.
func (j *Job) Component() string { return replica(j.Instruction.ComponentName, j.Replica) }

// Available reports whether the component runs, by the server's rule: if an orchestrator does not report that
// condition, a finished job counts as available.
func (j *Job) Available() bool {
	if j.State != "Finished" || j.Gone() {
		return false
	}
	for _, c := range j.Resource.Conditions {
		if c.Type == "Available" {
			return c.Status == "True"
		}
	}
	return true
}

// Gone reports whether nothing of the job runs or is being started: it was removed, or stopped before anyone took it.
func (j *Job) Gone() bool {
	return j.State == "Finished" && (j.Type == "DeleteDeployment" || j.OwnerID == "")
}

// Live reports whether the job runs or should run.
func (j *Job) Live() bool { return j.Cleans == "" && j.Type != "DeleteDeployment" && !j.Gone() }

// Manifest is one object to deploy, in the older format.
type Manifest struct {
	YAML string `json:"yamlString"`
}

// Instruction is what to deploy.
type Instruction struct {
	ID            string       `json:"id"`
	JobID         string       `json:"job_id"`
	ComponentName string       `json:"componentName"`
	Type          string       `json:"type"`
	Contents      []Content    `json:"contents"`
	Requirements  Requirements `json:"requirements"`
}

// Content is one object to deploy.
type Content struct {
	Name string `json:"name"`
	YAML string `json:"yaml"`
}

// Requirements are quantities as text, "" for none.
type Requirements struct {
	Architecture string `json:"architecture"`
	CPU          string `json:"cpu"`
	Devices      string `json:"devices"`
	Memory       string `json:"memory"`
}

// Target is a place; the zero Target is none.
type Target struct {
	Orchestrator string `json:"orchestrator"`
	Cluster      string `json:"cluster_name"`
	Node         string `json:"node_name"`
}

// String returns "cluster/node", "" for none.
func (t Target) String() string {
	if t.Cluster == "" {
		return ""
	}
	return t.Cluster + "/" + t.Node
}

// Resource is the orchestrator's report about a job.
type Resource struct {
	JobID        string      `json:"job_id"`
	UUID         string      `json:"resource_uuid"`
	Name         string      `json:"resource_name"`
	Conditions   []Condition `json:"conditions"`
	Remediations []Remedy    `json:"remediations,omitempty"`
}

// Condition is one observed fact about a resource.
type Condition struct {
	Type               string    `json:"type"`
	Status             string    `json:"status"` // True, False, Unknown
	ObservedGeneration int64     `json:"observedGeneration"`
	LastTransitionTime time.Time `json:"lastTransitionTime"`
	Reason             string    `json:"reason"`
	Message            string    `json:"message"`
}

// Remedy is a requested remediation and its result.
type Remedy struct {
	ID         string        `json:"id"`
	ResourceID string        `json:"resource_id"`
	Type       string        `json:"remediationType"`
	Status     string        `json:"remediationStatus"` // Pending, Remediated, Failed
	Target     *RemedyTarget `json:"remediationTarget,omitempty"`
	Step       int           `json:"remediationStep,omitempty"` // number of replicas added or removed; 0 = one
}

// RemedyTarget is the container that a "secure" remediation acts on.
type RemedyTarget struct {
	Container string `json:"container"`
	Pod       string `json:"pod"`
	PodUID    string `json:"pod_uid"`
	Node      string `json:"node"`
	Namespace string `json:"namespace"`
	Command   string `json:"command"`
}
