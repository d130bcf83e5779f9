package api_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/littoral-project/littoral/shared/api"
	"github.com/littoral-project/littoral/shared/application"
	"github.com/littoral-project/littoral/shared/appmodel"
	"github.com/littoral-project/littoral/shared/history"
	"github.com/littoral-project/littoral/shared/icoswire"
	"github.com/littoral-project/littoral/shared/icoswire/jobgroup"
	"github.com/littoral-project/littoral/shared/job"
	"github.com/littoral-project/littoral/shared/match"
	"github.com/littoral-project/littoral/shared/placement"
	"github.com/littoral-project/littoral/shared/policy/remediation"
	"github.com/littoral-project/littoral/shared/problem"
	"github.com/littoral-project/littoral/shared/topology"
)

var (
	someID = uuid.MustParse("0198c2ab-1234-7000-8000-000000000001")
	noon   = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
)

// fullJob has a value in every field.
func fullJob() *job.Job {
	return &job.Job{
		ID: someID, ApplicationID: someID, ApplicationName: "shop", ApplicationDescription: "a shop",
		Namespace: "shop-0198c2ab",
		Component: "web", Replica: 2, Cleans: &someID, Type: job.Update, SubType: "scale-up", State: job.Progressing,
		Target: job.Target{Orchestrator: "ocm", Cluster: "hub", Node: "hub-1"}, OwnerID: "agent-hub", Epoch: 3,
		LeaseUntil: &noon,
		Instruction: job.Instruction{
			ComponentName: "web", Type: "kubernetes", Contents: []job.Content{{Name: "web", YAML: "kind: ConfigMap"}},
			Requirements: appmodel.Requirements{Architecture: "amd64"},
		},
		CPUMilli: 500, MemoryBytes: 1 << 28, Devices: []string{"/dev/video0"}, ResourceUUID: "r-1", ResourceName: "web",
		Conditions: []job.Condition{{
			Type: "Available", Status: "True", ObservedGeneration: 1, LastTransitionTime: noon, Reason: "Ready", Message: "runs",
		}},
		Remediations: []job.Remedy{{
			ID: someID, ResourceID: "r-1", Type: job.Secure, Status: "Pending", Step: 2,
			Target: &job.RemedyTarget{Container: "c", Pod: "p", PodUID: "u", Node: "n", Namespace: "s", Command: "x"},
		}},
		CreatedAt: noon, UpdatedAt: noon,
	}
}

func fullApplication() *application.Application {
	return &application.Application{
		ID: someID, Name: "shop", Description: "a shop", Namespace: "shop-0198c2ab", Desired: application.Running, Version: 2, HandledVersion: 1,
		Owner: "operator", CreatedAt: noon, UpdatedAt: noon, Jobs: []*job.Job{fullJob()}, Warnings: []string{"odd"},
		Unwatched: map[string]string{"policies[0]": "odd"}, UnwatchedAt: &noon,
	}
}

func justIn() *application.Application {
	waiting := job.New(someID, "web", 0, job.Instruction{})
	return &application.Application{ID: someID, Desired: application.Running, Jobs: []*job.Job{waiting}}
}

func fullEntry() history.Entry {
	return history.Entry{
		ID: 1, At: noon, ApplicationID: &someID, JobID: &someID, Component: "web", Event: "job.placed", FromState: "Created",
		ToState: "Created", Message: "m", Cause: "c", TraceID: "t", Data: json.RawMessage(`{"a":1}`),
	}
}

func fullPreview() match.Preview {
	target := job.Target{Orchestrator: "ocm", Cluster: "hub", Node: "hub-1"}
	return match.Preview{Application: &someID, Name: "shop", Changes: 1, Warnings: []string{"odd"}, Derived: []string{"d"}, Steps: []match.Step{
		{Component: "web", Replica: 1, Action: "move", From: &target, To: &target, Variant: "docker", Why: "w"},
	}}
}

func fullProblem() problem.Document {
	fields := []problem.Field{{Path: "a", Line: 3, Detail: "b"}}
	return problem.Of(&problem.Error{Kind: problem.Invalid, Detail: "d", Fields: fields}, "trace")
}

func fullAnswer() match.Answer {
	place := placement.Target{Orchestrator: "ocm", Cluster: "hub", Node: "hub-1"}
	score := placement.Score{Performance: 1, Energy: 2, Security: 3, Weighted: 2}
	return match.Answer{
		Warnings: []string{"odd"},
		Plan: placement.Plan{
			Assignments: []placement.Assignment{{
				Component: "web", Placed: true, Target: place, Score: score, Affinity: 1, Moved: true, Stayed: true, Reason: "why",
				Rejections: map[placement.Rule]int{placement.RuleCPU: 1},
			}},
			Placed: 1, PlacedBound: 1, Objective: 2, Bound: 2, Exact: true, ScoreTotal: 2, Orchestrator: "ocm", Work: 9,
		},
		Explanation: placement.Explanation{
			Components: []placement.ComponentExplanation{{
				Component: "web", Placed: true, Target: place, Summary: "it won", Omitted: 1, RunnerUp: &place, Margin: 1,
				Nodes: []placement.NodeExplanation{{
					Target: place, Chosen: true, Score: score, Move: 1, Total: 2,
					Failures: []placement.Failure{{Rule: placement.RuleCPU, Key: "k", Detail: "d", Needed: "4", Available: "2"}},
					Affinity: []placement.AffinityTerm{{With: "db", Closeness: "apart", Weight: 5, Points: 0}},
				}},
				Rejections: map[placement.Rule]int{placement.RuleCPU: 1},
				Relaxation: &placement.Relaxation{
					Changes: []placement.Change{{Rule: placement.RuleCPU, Key: "k", From: "4", To: "2", Detail: "lower"}},
					Target:  place, Verified: true,
				},
			}},
			Placed: 1, Objective: 2, Bound: 2, Exact: true,
		},
	}
}

// taxonomy is a published sample with all of ICOS's measurements.
func taxonomy(t *testing.T) *topology.Taxonomy {
	t.Helper()
	text, err := os.ReadFile("../../test/contracts/topology/topology.json")
	require.NoError(t, err)
	parsed, err := topology.Parse(text)
	require.NoError(t, err)
	return parsed
}

func TestTheClientLosesNothingThatFunctionsAnswer(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		answered any    // of a function
		into     any    // into which the client decodes it
		schema   string // the name in the page
	}{
		"a whole application":     {jobgroup.Of(fullApplication()), &api.Application{}, "JobGroup"},
		"an application just in":  {jobgroup.Of(justIn()), &api.Application{}, "JobGroup"},
		"a whole job":             {icoswire.JobOf(fullJob()), &api.Job{}, "Job"},
		"a resource":              {icoswire.ResourceOf(fullJob()), &api.Resource{}, "Resource"},
		"an entry of the history": {fullEntry(), &api.Entry{}, "Entry"},
		"a short entry":           {history.Entry{ID: 1, At: noon, Event: "topology.changed"}, &api.Entry{}, "Entry"},
		"a preview":               {fullPreview(), &api.Preview{}, "Preview"},
		"an explanation":          {fullAnswer(), &api.Answer{}, "Answer"},
		"a taxonomy":              {taxonomy(t), &api.Taxonomy{}, "Taxonomy"},
		"a problem": {
			fullProblem(), &problem.Document{}, "Problem",
		},
		"an incompliance": {
			remediation.Incompliance{ID: "1", Remediation: job.Reallocate, Subject: remediation.Subject{Manifest: "m"}},
			&remediation.Incompliance{}, "Incompliance",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			answered, err := json.Marshal(row.answered)
			require.NoError(t, err)
			require.NoError(t, json.Unmarshal(answered, row.into))
			again, err := json.Marshal(row.into)
			require.NoError(t, err)
			if row.schema == "Taxonomy" { // known fields of the frame, all of clusters and nodes
				answered, again = part(t, answered, "cluster"), part(t, again, "cluster")
			} else {
				checkSchema(t, page(t), row.schema, answered)
			}
			require.JSONEq(t, string(answered), string(again))
		})
	}
}

func part(t *testing.T, text []byte, key string) []byte {
	t.Helper()
	var whole map[string]json.RawMessage
	require.NoError(t, json.Unmarshal(text, &whole))
	return whole[key]
}

// TestJobsStandAlikeOnBothSides: server and client agree which jobs are available, gone or live.
func TestJobsStandAlikeOnBothSides(t *testing.T) {
	t.Parallel()
	for _, state := range []job.State{job.Created, job.Progressing, job.Finished, job.Degraded} {
		for _, typ := range []job.Type{job.Create, job.Delete, job.Update, job.Replace} {
			for _, owner := range []string{"", "agent-hub"} {
				for _, available := range []string{"", "True", "False", "Unknown"} {
					server := &job.Job{State: state, Type: typ, OwnerID: owner}
					if available != "" {
						server.Conditions = []job.Condition{{Type: job.ConditionAvailable, Status: available}}
					}
					text, err := json.Marshal(icoswire.JobOf(server))
					require.NoError(t, err)
					var client api.Job
					require.NoError(t, json.Unmarshal(text, &client))
					require.Equal(t, server.Available(), client.Available(), "available: %s", text)
					require.Equal(t, server.Gone(), client.Gone(), "gone: %s", text)
					require.Equal(t, server.Live(), client.Live(), "live: %s", text)
				}
			}
		}
	}
}

func TestComponentsAreThoseThatCount(t *testing.T) {
	t.Parallel()
	count := func(desired application.Desired) (counted int, status string) {
		cleans := uuid.New()
		text, err := json.Marshal(jobgroup.Of(&application.Application{Desired: desired, Jobs: []*job.Job{
			{Component: "runs", State: job.Finished, OwnerID: "agent-hub"},
			{Component: "leaves", State: job.Created, Type: job.Delete, OwnerID: "agent-hub"},
			{Component: "removed", State: job.Finished, Type: job.Delete, OwnerID: "agent-hub"},
			{Component: "copy", State: job.Created, Type: job.Delete, OwnerID: "agent-hub", Cleans: &cleans},
		}}))
		require.NoError(t, err)
		var a api.Application
		require.NoError(t, json.Unmarshal(text, &a))
		return len(a.Components()), a.Status + ": " + a.Message
	}
	counted, status := count(application.Running)
	require.Equal(t, 1, counted, "an update took two out, of which one is yet to be removed")
	require.Equal(t, "Available: 1 of 1 components run; 1 more still to be removed", status)
	counted, status = count(application.Stopped)
	require.Equal(t, 3, counted, "they come back when it is started")
	require.Equal(t, "Stopping: 2 of 3 components still to be removed", status)
}

func TestPlacesAreCalledAlikeOnBothSides(t *testing.T) {
	t.Parallel()
	server := taxonomy(t)
	// Two clusters with the same name, and a node without a name, are called by their keys.
	server.Cluster["twin-1"] = topology.Cluster{Name: "twin", Node: map[string]topology.Node{"n": {}}}
	server.Cluster["twin-2"] = topology.Cluster{Name: "twin", Node: map[string]topology.Node{"n": {Name: "m"}}}
	text, err := json.Marshal(server)
	require.NoError(t, err)
	var client api.Taxonomy
	require.NoError(t, json.Unmarshal(text, &client))
	var want, have []string
	for _, p := range server.Places() {
		want = append(want, p.Cluster+"/"+p.Node)
	}
	for _, p := range client.Places() {
		have = append(have, p.Cluster+"/"+p.Node)
	}
	require.Equal(t, want, have)
	require.Contains(t, have, "twin-1/n")
}

// checkSchema fails if the JSON contains something that the page's schema does not allow.
func checkSchema(t *testing.T, doc object, name string, text []byte) {
	t.Helper()
	var value any
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	require.NoError(t, d.Decode(&value))
	for _, fault := range against(doc, object{"$ref": "#/components/schemas/" + name}, value, name) {
		t.Error(fault)
	}
}

// against compares a value with a schema, for the parts of JSON Schema that the page uses.
func against(doc, schema object, value any, path string) (faults []string) {
	for {
		ref, ok := schema["$ref"].(string)
		if !ok {
			break
		}
		schema = resolve(doc, ref)
	}
	schema = whole(doc, schema)
	for _, key := range []string{"oneOf", "anyOf"} {
		alternatives, said := schema[key].([]any)
		var best []string
		for i, v := range alternatives {
			if of := against(doc, v.(object), value, path); i == 0 || len(of) < len(best) {
				best = of
			}
		}
		if said {
			faults = append(faults, best...)
		}
	}
	if typ, said := schema["type"]; said && !typed(typ, value) {
		return []string{fmt.Sprintf("%s is %v (%s), and the page says %v", path, value, reflect.TypeOf(value), typ)}
	}
	if enum, said := schema["enum"].([]any); said && !contains(enum, value) {
		faults = append(faults, fmt.Sprintf("%s is %v, and the page says %v", path, value, enum))
	}
	switch value := value.(type) {
	case []any:
		items, _ := schema["items"].(object)
		for i, v := range value {
			faults = append(faults, against(doc, items, v, fmt.Sprintf("%s[%d]", path, i))...)
		}
	case object:
		faults = append(faults, againstObject(doc, schema, value, path)...)
	}
	return faults
}

func againstObject(doc, schema, value object, path string) (faults []string) {
	properties, _ := schema["properties"].(object)
	further, _ := schema["additionalProperties"].(object)
	required, _ := schema["required"].([]any)
	for _, key := range required {
		if _, there := value[key.(string)]; !there {
			faults = append(faults, fmt.Sprintf("%s.%s is required and missing", path, key))
		}
	}
	if schema["type"] == nil || properties == nil && further == nil {
		return faults
	}
	for key, v := range value {
		property, known := properties[key].(object)
		switch {
		case known:
			faults = append(faults, against(doc, property, v, path+"."+key)...)
		case further != nil:
			faults = append(faults, against(doc, further, v, path+"."+key)...)
		case schema["additionalProperties"] != true:
			faults = append(faults, fmt.Sprintf("%s.%s is not in the page", path, key))
		}
	}
	return faults
}

// whole returns the schema with those of its allOf in it.
func whole(doc, schema object) object {
	parts, said := schema["allOf"].([]any)
	if !said {
		return schema
	}
	properties, required := object{}, []any{}
	for _, v := range append([]any{object{"properties": schema["properties"], "required": schema["required"]}}, parts...) {
		part := whole(doc, followed(doc, v))
		more, _ := part["properties"].(object)
		maps.Copy(properties, more)
		needed, _ := part["required"].([]any)
		required = append(required, needed...)
	}
	return object{"type": "object", "properties": properties, "required": required}
}

func contains(list []any, v any) bool {
	for _, have := range list {
		if fmt.Sprint(have) == fmt.Sprint(v) {
			return true
		}
	}
	return false
}

func typed(typ, value any) bool {
	if several, ok := typ.([]any); ok {
		for _, one := range several {
			if typed(one, value) {
				return true
			}
		}
		return false
	}
	switch v := value.(type) {
	case nil:
		return typ == "null"
	case string:
		return typ == "string"
	case bool:
		return typ == "boolean"
	case json.Number:
		return typ == "number" || (typ == "integer" && !strings.ContainsAny(v.String(), ".eE"))
	case []any:
		return typ == "array"
	}
	return typ == "object"
}
