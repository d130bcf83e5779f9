package fleet

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Job is a job as an agent reads it from the public API. It deliberately shares no type with the job manager: agents by
// other authors have only the contract (shared/docs/contracts.md §1.3, §1.4). It also accepts the formats of older managers.
type Job struct {
	ID           string      `json:"id"` // "ID" is accepted too
	Type         enum        `json:"type"`
	SubType      enum        `json:"sub_type"`
	State        enum        `json:"state"`
	Epoch        int64       `json:"epoch"` // of the placement decision; 0 from a manager without epochs
	OwnerID      string      `json:"owner_id"`
	Orchestrator string      `json:"orchestrator"`
	Targets      targets     `json:"targets"`
	Namespace    string      `json:"namespace"`
	GroupID      string      `json:"job_group_id"`
	GroupName    string      `json:"job_group_name"`
	Cleans       string      `json:"cleans,omitempty"` // id of the job whose former copy this one removes
	Instruction  Instruction `json:"instruction"`
	Manifests    []struct {
		YAML string `json:"yamlString"`
	} `json:"manifests,omitempty"`
	Resource Resource `json:"resource"`
}

// Instruction is what to deploy.
type Instruction struct {
	ComponentName string       `json:"componentName"`
	Contents      []Content    `json:"contents"`
	Requirements  Requirements `json:"requirements"`
}

// Content is one object to deploy.
type Content struct {
	Name string `json:"name"`
	YAML string `json:"yaml"`
}

// Requirements are the component's requirements.
type Requirements struct {
	CPU    loose `json:"cpu"`
	Memory loose `json:"memory"`
}

// Resource is an orchestrator's report about a job.
type Resource struct {
	JobID        string           `json:"job_id"`
	UUID         string           `json:"resource_uuid"`
	Name         string           `json:"resource_name"`
	Conditions   []Condition      `json:"conditions"`
	Remediations []map[string]any `json:"remediations,omitempty"`
}

// Condition is one observed fact about a resource.
type Condition struct {
	Type               string    `json:"type"`
	Status             string    `json:"status"`
	ObservedGeneration int64     `json:"observedGeneration"`
	LastTransitionTime time.Time `json:"lastTransitionTime"`
	Reason             string    `json:"reason"`
	Message            string    `json:"message"`
}

// Names in the contract.
const (
	typeCreate  = "CreateDeployment"
	typeDelete  = "DeleteDeployment"
	typeUpdate  = "UpdateDeployment"
	typeReplace = "ReplaceDeployment"

	stateProgressing = "Progressing"
	stateFinished    = "Finished"
	stateDegraded    = "Degraded"

	scaleUp    = "scale-up"
	scaleDown  = "scale-down"
	scaleOut   = "scale-out"
	scaleIn    = "scale-in"
	patch      = "patch"
	secure     = "secure"
	reallocate = "reallocate"
)

// subject returns the id of the job whose copy this job changes.
func (j *Job) subject() string {
	if j.Cleans != "" {
		return j.Cleans
	}
	return j.ID
}

// remedy returns an id of the job's remediation; "" from a job manager without such ids.
func (j *Job) remedy() string {
	if len(j.Resource.Remediations) == 0 {
		return ""
	}
	id, _ := j.Resource.Remediations[len(j.Resource.Remediations)-1]["id"].(string)
	return id
}

// step returns the number of replicas to add or remove.
func (j *Job) step() int64 {
	if n := len(j.Resource.Remediations); n > 0 {
		if step, ok := j.Resource.Remediations[n-1]["remediationStep"].(float64); ok && step > 1 {
			return int64(step)
		}
	}
	return 1
}

// contents returns the manifests in either of their formats.
func (j *Job) contents() []Content {
	if len(j.Instruction.Contents) > 0 {
		return j.Instruction.Contents
	}
	var all []Content
	for _, m := range j.Manifests {
		all = append(all, Content{YAML: m.YAML})
	}
	return all
}

// enum is a name in the contract; the numbers of v1.4.1 are converted to names.
type enum string

var enumNumbers = map[string]enum{
	"1": "Created", "2": stateProgressing, "3": stateFinished, "4": stateDegraded,
	"5": typeCreate, "6": typeDelete, "7": typeUpdate, "8": typeReplace,
}

func (e *enum) UnmarshalJSON(b []byte) error {
	var text loose
	if err := text.UnmarshalJSON(b); err != nil {
		return err
	}
	*e = enum(text)
	if name, ok := enumNumbers[string(text)]; ok {
		*e = name
	}
	return nil
}

// loose is text that some managers write as a number.
type loose string

func (l *loose) UnmarshalJSON(b []byte) error {
	var v any
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	if err := d.Decode(&v); err != nil {
		return err
	}
	switch v := v.(type) {
	case nil:
		*l = ""
	case string:
		*l = loose(v)
	case json.Number:
		*l = loose(v.String())
	default:
		return fmt.Errorf("%s is neither text nor a number", b)
	}
	return nil
}

type target struct {
	Cluster      string `json:"cluster_name"`
	Node         string `json:"node_name"`
	Orchestrator string `json:"orchestrator"`
}

// targets is one place; older managers write a list, of which the first one counts.
type targets struct{ target }

func (t *targets) UnmarshalJSON(b []byte) error {
	if !strings.HasPrefix(strings.TrimSpace(string(b)), "[") {
		return json.Unmarshal(b, &t.target)
	}
	var list []target
	if err := json.Unmarshal(b, &list); err != nil || len(list) == 0 {
		return err
	}
	t.target = list[0]
	return nil
}

func formatNumber(v any) string {
	if f, ok := v.(float64); ok {
		return strconv.FormatFloat(f, 'f', -1, 64)
	}
	return fmt.Sprint(v)
}
