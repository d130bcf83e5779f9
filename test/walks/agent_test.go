package walks_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/stretchr/testify/require"

	"github.com/littoral-project/littoral/test/inprocess"
)

// agent polls for jobs like those of ICOS: it lists them, takes them one by one, carries out the listed form, and
// reports. It may be slow at any point, and die at any point; then it finds its former work by the name of the job.
type agent struct {
	*world
	*inprocess.Agent

	listed []inprocess.Job
	epochs bool // it reports the epoch of the job, which agents of ICOS do not
	names  bool // it names a copy after the job and the node, else after a running number
	made   int
	copies map[string]string // what it runs: job/number or job/node -> first manifest
	rising []seen            // the resources whose result it waits for
	unsaid map[string]string // created before it died: job/node -> job/number
}

// seen is a copy that an agent has created.
type seen struct{ job, owner, resource string }

func (a *agent) list() {
	a.report()
	a.look()
	a.listed = slices.DeleteFunc(a.List(), func(j inprocess.Job) bool { return j.Targets.Cluster != "four" })
	a.log("agent is listed %d jobs", len(a.listed))
}

// look removes what it had created before it died, and could not say, of jobs that others own by now: nobody else knows of it.
func (a *agent) look() {
	for _, name := range slices.Sorted(maps.Keys(a.unsaid)) {
		id, _, _ := strings.Cut(name, "/")
		status, answer := a.Call(a.ID, http.MethodGet, "/jobmanager/jobs/"+id, "")
		if status != http.StatusOK {
			continue
		}
		if owner := decode[inprocess.Job](a.t, answer).Owner; owner != "" && !slices.Contains(agents, owner) {
			a.log("agent removes what it has of %s, which belongs to %s", id, owner)
			delete(a.copies, a.unsaid[name])
			delete(a.unsaid, name)
		}
	}
}

// do takes the first of the listed jobs and carries it out.
func (a *agent) do() {
	if len(a.listed) == 0 {
		return
	}
	j := a.listed[0]
	a.listed = a.listed[1:]
	status, answer := a.Promote(j.ID)
	a.log("agent takes %s %s %s epoch %d at %s: %d %s", j.Type, j.SubType, j.ID, j.Epoch, j.Targets.Node, status, brief(answer))
	require.Contains(a.t, []int{http.StatusNoContent, http.StatusNotFound, http.StatusConflict}, status, "%s", answer)
	if status != http.StatusNoContent {
		return
	}
	dies := a.random.IntN(12)
	if dies == 0 {
		a.log("agent dies before it does anything")
		return
	}
	changes := j.Type == "UpdateDeployment" && j.SubType != "replace" // something of what runs, and writes none of it anew
	name := cmp.Or(j.Cleans, j.ID) + "/" + j.Targets.Node
	resource := cmp.Or(j.Resource.UUID, a.unsaid[name])
	if a.names {
		resource = name
	} else if _, there := a.copies[resource]; !there && j.Type == "CreateDeployment" {
		a.made++
		resource = fmt.Sprintf("%s/%d", j.ID, a.made)
	}
	condition := "Available"
	switch {
	case j.Type == "DeleteDeployment", j.SubType == "reallocate":
		delete(a.copies, resource)
		condition = "Deleted"
	case changes:
	default:
		a.copies[resource] = j.Manifests[0].YAML
	}
	if dies == 1 {
		a.log("agent dies before it says so")
		a.unsaid[name] = resource
		return
	}
	state, waits := "Finished", condition == "Available" && !changes && a.random.IntN(3) == 0
	if waits {
		state, condition = "Progressing", "Applied"
	}
	status, answer = a.Send(inprocess.Report{
		Job: j, State: state, Resource: resource, Condition: inprocess.Condition{Type: condition, Reason: "Reported"},
		NoEpoch: !a.epochs, Manifests: j.Manifests, Targets: &j.Targets,
	})
	a.log("agent reports %s %s epoch %d: %d %s", j.Type, j.ID, j.Epoch, status, brief(answer))
	require.Contains(a.t, []int{http.StatusOK, http.StatusNotFound, http.StatusConflict}, status, "%s", answer)
	switch {
	case status != http.StatusOK && condition != "Deleted":
		delete(a.copies, resource) // the job manager answers that it is too late
	case waits:
		a.rising = append(a.rising, seen{j.ID, a.ID, resource})
	}
}

// report reports the result of what it waits for.
func (a *agent) report() {
	for _, seen := range a.rising {
		status, answer := a.As(seen.owner).See(seen.job, seen.resource, inprocess.Condition{Type: "Available", Status: "True", Reason: "Seen"})
		a.log("agent sees %v available: %d %s", seen.job, status, brief(answer))
		require.Contains(a.t, []int{http.StatusOK, http.StatusNotFound, http.StatusConflict}, status, "%s", answer)
	}
	a.rising = nil
}

// brief is the beginning of a refusal.
func brief(answer []byte) string {
	var d struct {
		Detail string `json:"detail"`
	}
	_ = json.Unmarshal(answer, &d)
	return d.Detail
}
