package api

import "time"

// Application is one instance of a descriptor (contract: JobGroup).
type Application struct {
	ID          string    `json:"id"`
	CreatedAt   time.Time `json:"created_at"`
	UpdatedAt   time.Time `json:"updated_at"`
	Name        string    `json:"appName"`
	Description string    `json:"appDescription"`
	Namespace   string    `json:"namespace"`
	Desired     string    `json:"desired"` // running, stopped, deleted
	Status      string    `json:"status"`  // StatusPending, ...
	Message     string    `json:"message"` // what the status waits for, in one line
	Version     int64     `json:"version"` // grows with each change of the descriptor
	Judged      int64     `json:"judged"`  // the version that the matchmaker has looked at; 0 = the server does not say
	Owner       string    `json:"owner"`
	Jobs        []Job     `json:"jobs"`
	Warnings    []string  `json:"warnings,omitempty"` // what is odd about the descriptor that this answers
}

// The statuses of an application.
const (
	StatusPending   = "Pending"   // some component has no place
	StatusDeploying = "Deploying" // placed, not all of it runs; or updated, and the matchmaker has not looked yet
	StatusAvailable = "Available" // every component runs, say their orchestrators
	StatusDegraded  = "Degraded"  // some component failed or runs badly
	StatusUnknown   = "Unknown"   // some component is where nobody answers
	StatusStopping  = "Stopping"
	StatusStopped   = "Stopped"
	StatusDeleting  = "Deleting"
	StatusDeleted   = "Deleted" // said to whoever deletes it, and never after
)

// Overlooked reports whether the matchmaker is yet to look at an update of what is meant to run.
func (a *Application) Overlooked() bool {
	return a.Desired == "running" && a.Judged != 0 && a.Judged < a.Version
}

// Components returns the jobs that are components, without the removals of copies they left behind, and without what was
// taken out.
func (a *Application) Components() []Job {
	list := make([]Job, 0, len(a.Jobs))
	for _, j := range a.Jobs {
		if j.Cleans == "" && !a.TakenOut(&j) {
			list = append(list, j)
		}
	}
	return list
}

// TakenOut reports whether an update has taken the job's component out of an application that is meant to run, be it gone
// or yet to be removed.
func (a *Application) TakenOut(j *Job) bool {
	return a.Desired == "running" && j.Cleans == "" && !j.Live()
}

// Job is one component's work, or the removal of a copy that it left behind.
type Job struct {
	ID           string      `json:"id"`
	CreatedAt    time.Time   `json:"created_at"`
	UpdatedAt    time.Time   `json:"updated_at"`
	GroupID      string      `json:"job_group_id"`
	GroupName    string      `json:"job_group_name"`
	GroupText    string      `json:"job_group_description"`
	OwnerID      string      `json:"owner_id"` // the agent that took it
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

// Component returns the name of the component, with the number of the replica where it is not the first.
func (j *Job) Component() string { return replica(j.Instruction.ComponentName, j.Replica) }

// Available reports whether the component runs, by the server's rule: an orchestrator that reports no such condition is
// taken at its word that the job is finished.
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

// Live reports whether the job runs or is meant to.
func (j *Job) Live() bool { return j.Cleans == "" && j.Type != "DeleteDeployment" && !j.Gone() }

// Manifest is one object to deploy, in the older spelling.
type Manifest struct {
	YAML string `json:"yamlString"`
}

// Instruction is what is to be deployed.
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

// Resource is what the orchestrator reports for a job.
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

// Remedy is a remediation that was asked for, with how it went.
type Remedy struct {
	ID         string        `json:"id"`
	ResourceID string        `json:"resource_id"`
	Type       string        `json:"remediationType"`
	Status     string        `json:"remediationStatus"` // Pending, Remediated, Failed
	Target     *RemedyTarget `json:"remediationTarget,omitempty"`
	Step       int           `json:"remediationStep,omitempty"` // replicas more or fewer; 0 = one
}

// RemedyTarget is the container a "secure" remediation acts on.
type RemedyTarget struct {
	Container string `json:"container"`
	Pod       string `json:"pod"`
	PodUID    string `json:"pod_uid"`
	Node      string `json:"node"`
	Namespace string `json:"namespace"`
	Command   string `json:"command"`
}
