package contracts_test

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	deployed "github.com/littoral-project/littoral/shared/job"
	"github.com/littoral-project/littoral/shared/orchestrator/kinds"
	"github.com/littoral-project/littoral/shared/problem"
	"github.com/littoral-project/littoral/shared/store"
	"github.com/littoral-project/littoral/shared/topology"
	"github.com/littoral-project/littoral/shared/trace"
	"github.com/littoral-project/littoral/test/inprocess"
)

// TestExecutable: every form of the poll gives the same answer (shared/docs/contracts.md §1.2, §1.6).
func TestExecutable(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	free := w.submit(t, hubShop).Jobs[0]
	_, mine := w.running(t, hubShop)
	w.operator.call(t, http.MethodPut, "/jobmanager/groups/stop/"+mine.GroupID, "").is(t, http.StatusOK)
	for name, row := range map[string]struct {
		as   client
		path string
		want []string
	}{
		"the newest form, to the owner":           {w.hub, "/ocm/agent-hub", []string{free.ID, mine.ID}},
		"the newest form, to the agent of others": {w.edge, "/ocm/agent-edge", []string{}},
		"the newest form, to an unknown agent":    {w.spare, "/ocm/agent-spare", []string{free.ID}},
		"the form of D3.2":                        {w.hub, "/ocm?icos_agent_id=agent-hub", []string{free.ID, mine.ID}},
		"the oldest form": {
			w.hub, "/orchestrator/ocm?icos_agent_id=agent-hub", []string{free.ID, mine.ID},
		},
		"the oldest form, without saying who":     {w.anyAgent, "/orchestrator/ocm", []string{free.ID}},
		"a form that names nobody":                {w.anyAgent, "/ocm", []string{free.ID}},
		"another orchestrator's jobs":             {w.edge, "/nuvla/agent-edge", []string{}},
		"those of its own elsewhere":              {w.hub, "/nuvla/agent-hub", []string{}},
		"an orchestrator that nobody has":         {w.agent(t, "a"), "/kubernetes/a", []string{}},
		"an orchestrator in capitals":             {w.hub, "/OCM/agent-hub", []string{free.ID, mine.ID}},
		"an agent called like the oldest form's ": {w.agent(t, "orchestrator"), "/ocm/orchestrator", []string{free.ID}},
	} {
		t.Run(name, func(t *testing.T) {
			a := row.as.get(t, "/jobmanager/jobs/executable"+row.path)
			ids := []string{}
			for _, j := range decode[[]job](t, a) {
				ids = append(ids, j.ID)
			}
			require.Equal(t, row.want, ids)
		})
	}
	w.anyAgent.call(t, http.MethodGet, "/jobmanager/jobs/executable/slurm/a", "").refused(t, http.StatusBadRequest)
}

// TestPromoteHasOneWinner: a hundred agents try at once.
func TestPromoteHasOneWinner(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	j := w.submit(t, hubShop).Jobs[0]
	var won, lost atomic.Int64
	var all sync.WaitGroup
	for i := range 100 {
		all.Go(func() {
			id := fmt.Sprint("agent-", i)
			a := w.agent(t, id).send(t, http.MethodPatch, "/jobmanager/jobs/promote/"+j.ID, body{"owner_id": id})
			switch a.status {
			case http.StatusNoContent:
				won.Add(1)
			case http.StatusConflict:
				lost.Add(1)
			}
		})
	}
	all.Wait()
	require.Equal(t, int64(1), won.Load())
	require.Equal(t, int64(99), lost.Load())
	now := w.job(t, j.ID)
	require.Equal(t, "Progressing", now.State)
	require.Empty(t, w.agent(t, now.OwnerID).send(t, http.MethodPatch, "/jobmanager/jobs/promote/"+j.ID, body{"owner_id": now.OwnerID}).
		is(t, http.StatusNoContent).body, "the winner may repeat it")
	w.legal(t)
}

// TestTakeover: after the lease has expired another agent gets the job, and the former owner is fenced. The cluster of
// the other agent is unknown, since an agent with a known cluster is only offered jobs for its own places.
func TestTakeover(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	mine := w.claim(t, w.hub, hubAgent, w.submit(t, hubShop).Jobs[0])
	require.Empty(t, w.executable(t, w.spare, spareAgent, "ocm"), "its lease runs")
	w.unchanged(t, func() {
		w.spare.send(t, http.MethodPatch, "/jobmanager/jobs/promote/"+mine.ID, body{"owner_id": spareAgent}).
			refused(t, http.StatusConflict)
	})
	w.lapse(t, mine.ID)
	require.Len(t, w.executable(t, w.spare, spareAgent, "ocm"), 1)
	theirs := w.claim(t, w.spare, spareAgent, mine)
	require.Equal(t, standing{create, "", "Progressing", spareAgent}, theirs.stands())
	require.Equal(t, mine.Epoch+1, theirs.Epoch)
	w.unchanged(t, func() {
		w.hub.send(t, http.MethodPut, "/jobmanager/jobs", report(hubAgent, mine, "Finished", "Available")).
			refused(t, http.StatusConflict)
		w.hub.send(t, http.MethodPatch, "/jobmanager/jobs/promote/"+mine.ID, body{"owner_id": hubAgent}).
			refused(t, http.StatusConflict)
	})
	w.spare.send(t, http.MethodPut, "/jobmanager/jobs", report(spareAgent, theirs, "Finished", "Available")).
		is(t, http.StatusOK)

	renewed := w.claim(t, w.hub, hubAgent, w.submit(t, hubShop).Jobs[0])
	w.lapse(t, renewed.ID)
	w.claim(t, w.hub, hubAgent, renewed)
	require.Equal(t, renewed.Epoch, w.job(t, renewed.ID).Epoch, "the owner renews its own, lapsed or not")
	require.Empty(t, w.executable(t, w.spare, spareAgent, "ocm"))
	w.legal(t)
}

// TestReports: the forms in which each generation of agents reports.
func TestReports(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		path string
		body func(job) body
	}{
		"ours": {"/jobmanager/jobs", func(j job) body { return report(hubAgent, j, "Finished", "Available") }},
		"numbers, of v1.4.1": {"/jobmanager/jobs", func(j job) body {
			b := report(hubAgent, j, "", "Available")
			b["type"], b["state"] = 5, 3
			delete(b, "epoch")
			return b
		}},
		"numbers as text": {"/jobmanager/jobs", func(j job) body {
			b := report(hubAgent, j, "3", "Available")
			b["type"] = "5"
			return b
		}},
		"names of v1.4.1": {"/jobmanager/jobs", func(j job) body { return report(hubAgent, j, "JobFinished", "Available") }},
		"ID in capitals": {"/jobmanager/jobs", func(j job) body {
			b := report(hubAgent, j, "Finished", "Available")
			b["ID"] = b["id"]
			delete(b, "id")
			return b
		}},
		"the id in the query too, as newer agents do": {"/jobmanager/jobs?id=%s&orchestrator=ocm", func(j job) body {
			return report(hubAgent, j, "Finished", "Available")
		}},
		"the id in the query only": {"/jobmanager/jobs?id=%s", func(j job) body {
			b := report(hubAgent, j, "Finished", "Available")
			delete(b, "id")
			return b
		}},
		"targets as a list": {"/jobmanager/jobs", func(j job) body {
			b := report(hubAgent, j, "Finished", "Available")
			b["targets"] = []body{{"cluster_name": "hub", "orchestrator": "ocm"}}
			return b
		}},
		"targets as an empty list": {"/jobmanager/jobs", func(j job) body {
			b := report(hubAgent, j, "Finished", "Available")
			b["targets"] = []body{}
			return b
		}},
		"no owner: the token says who": {"/jobmanager/jobs", func(j job) body {
			b := report(hubAgent, j, "Finished", "Available")
			delete(b, "owner_id")
			return b
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			j := w.claim(t, w.hub, hubAgent, w.submit(t, hubShop).Jobs[0])
			path := row.path
			if path != "/jobmanager/jobs" {
				path = fmt.Sprintf(path, j.ID)
			}
			a := w.hub.send(t, http.MethodPut, path, row.body(j)).is(t, http.StatusOK)
			require.Equal(t, standing{create, "", "Finished", hubAgent}, decode[job](t, a).stands(), "names are emitted")
			require.Equal(t, "Available", w.job(t, j.ID).Resource.Conditions[0].Type)
			raw := decode[body](t, a)
			require.Equal(t, j.ID, raw["id"])
			require.NotContains(t, raw, "ID")
			w.unchanged(t, func() { w.hub.send(t, http.MethodPut, path, row.body(j)).is(t, http.StatusOK) })
		})
	}
}

// TestReportsOnAReplacement: newer agents know it as an update, older ones as a type of its own; an update of another kind
// is other work.
func TestReportsOnAReplacement(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		said   body
		status int
	}{
		"as it is listed":              {body{"type": update, "sub_type": "replace"}, http.StatusOK},
		"in the name of v1.4.1":        {body{"type": "ReplaceDeployment", "sub_type": ""}, http.StatusOK},
		"in the number of v1.4.1":      {body{"type": 8}, http.StatusOK},
		"without what kind of update":  {body{"type": update}, http.StatusOK},
		"as an update of another kind": {body{"type": update, "sub_type": "scale-up"}, http.StatusConflict},
		"as a creation":                {body{"type": create}, http.StatusConflict},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			g, j := w.running(t, hubShop)
			w.operator.call(t, http.MethodPut, "/jobmanager/groups/"+g.ID, strings.Replace(hubShop, "red", "blue", 1)).
				is(t, http.StatusOK)
			b := report(hubAgent, w.claim(t, w.hub, hubAgent, j), "Finished", "Available")
			maps.Copy(b, row.said)
			w.hub.send(t, http.MethodPut, "/jobmanager/jobs", b).is(t, row.status)
		})
	}
	w := newWorld(t)
	g, j := w.running(t, hubShop)
	w.operator.send(t, http.MethodPost, "/jobmanager/policies/incompliance", body{
		"policyName": "p", "remediation": "scale-up", "subject": body{"appInstance": g.ID, "appComponent": "web"},
	}).is(t, http.StatusOK)
	late := report(hubAgent, w.claim(t, w.hub, hubAgent, j), "Finished", "Available")
	late["sub_type"] = "replace"
	w.unchanged(t, func() {
		w.hub.send(t, http.MethodPut, "/jobmanager/jobs", late).refused(t, http.StatusConflict)
	})
}

// TestReportsOnFormerContent: agents of ICOS carry out what they were listed, without reading the job again, and give it
// back. Content that was replaced in between is not forgotten for that.
func TestReportsOnFormerContent(t *testing.T) {
	t.Parallel()
	type giving func(listed body) body
	v141 := func(listed body) body { return body{"manifests": listed["manifests"]} }
	d32 := func(listed body) body { return body{"instruction": listed["instruction"]} }
	for name, row := range map[string]struct {
		gives   giving
		runs    bool // earlier, so that the change is a replacement
		uuid    string
		state   string
		changes int
		want    standing
	}{
		"in the model of v1.4.1":                 {v141, false, "u", "Finished", 1, standing{update, "replace", "Created", hubAgent}},
		"in the model of D3.2":                   {d32, false, "u", "Finished", 1, standing{update, "replace", "Created", hubAgent}},
		"before anything was made":               {v141, false, "", "Progressing", 1, standing{create, "", "Created", hubAgent}},
		"of a replacement":                       {v141, true, "u", "Finished", 1, standing{update, "replace", "Created", hubAgent}},
		"that went wrong":                        {v141, true, "u", "Degraded", 1, standing{update, "replace", "Created", hubAgent}},
		"that was replaced more than once":       {v141, false, "u", "Finished", 3, standing{update, "replace", "Created", hubAgent}},
		"which is the present one":               {v141, false, "u", "Finished", 0, standing{create, "", "Finished", hubAgent}},
		"which is not given":                     {func(body) body { return nil }, false, "u", "Finished", 0, standing{create, "", "Finished", hubAgent}},
		"which is given in a way of nobody else": {func(body) body { return body{"manifests": "x", "instruction": []int{1}} }, false, "u", "Finished", 1, standing{create, "", "Finished", hubAgent}},
		"which the agent has written in its way": {
			func(body) body { return body{"manifests": []body{{"yamlString": "kind: ConfigMap"}}} },
			false, "u", "Finished", 1,
			standing{create, "", "Finished", hubAgent},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			g := w.submit(t, hubShop)
			colour := func(name string) {
				changed := strings.Replace(hubShop, "red", name, 1)
				w.operator.call(t, http.MethodPut, "/jobmanager/groups/"+g.ID, changed).is(t, http.StatusOK)
			}
			if row.runs {
				w.finish(t, w.hub, hubAgent, g.Jobs[0])
				colour("green")
			}
			listed := decode[[]body](t, w.hub.get(t, "/jobmanager/jobs/executable/ocm/"+hubAgent))[0]
			for i := range row.changes {
				colour(fmt.Sprint("blue-", i))
			}
			j := w.claim(t, w.hub, hubAgent, g.Jobs[0])
			b := report(hubAgent, j, row.state, "Available")
			b["type"] = listed["type"]
			b["resource"].(body)["resource_uuid"] = row.uuid
			maps.Copy(b, row.gives(listed))
			a := w.hub.send(t, http.MethodPut, "/jobmanager/jobs", b).is(t, http.StatusOK)
			require.Equal(t, row.want, decode[job](t, a).stands())
			if row.want.State != "Created" {
				w.legal(t)
				return
			}
			require.Contains(t, string(w.viewer.get(t, "/jobmanager/history?limit=1000").body),
				hubAgent+" carried out content that was replaced before it took the job")
			w.hub.send(t, http.MethodPut, "/jobmanager/jobs", b).refused(t, http.StatusConflict)

			offered := w.executable(t, w.hub, hubAgent, "ocm")
			require.Len(t, offered, 1)
			require.Contains(t, offered[0].Manifests[0].YAML, "blue")
			again := report(hubAgent, w.claim(t, w.hub, hubAgent, offered[0]), "Finished", "Available")
			again["manifests"] = offered[0].Manifests
			w.hub.send(t, http.MethodPut, "/jobmanager/jobs", again).is(t, http.StatusOK)
			require.Equal(t, "Available", w.group(t, g.ID).Status)
			w.legal(t)
		})
	}
}

// drain makes the named nodes of the hub drained, and no others.
func (w *world) drain(nodes ...string) {
	w.SaveTopology(inprocess.Drain(inprocess.Topology(time.Now()), nodes...))
}

// TestReportsOfFormerPlaces: these agents do not notice either that a job was moved before they took it, and report the
// place where it was listed.
func TestReportsOfFormerPlaces(t *testing.T) {
	t.Parallel()
	finished := standing{create, "", "Finished", hubAgent}
	back := standing{create, "", "Created", hubAgent}
	for name, row := range map[string]struct {
		targets func(listed, present target) any // nil = not in the report
		state   string
		want    standing
	}{
		"as an object":                 {func(listed, _ target) any { return listed }, "Finished", back},
		"as a list":                    {func(listed, _ target) any { return []target{listed} }, "Finished", back},
		"with what went wrong there":   {func(listed, _ target) any { return listed }, "Degraded", back},
		"before anything was made":     {func(listed, _ target) any { return listed }, "Progressing", back},
		"which is the present one":     {func(_, present target) any { return present }, "Finished", finished},
		"which is the present cluster": {func(_, present target) any { return target{Cluster: present.Cluster} }, "Finished", finished},
		"which is not given":           {nil, "Finished", finished},
		"which is an empty list":       {func(target, target) any { return []target{} }, "Finished", finished},
		"which is null":                {func(target, target) any { return nil }, "Finished", finished},
		"which cannot be read":         {func(target, target) any { return []int{1} }, "Finished", finished},
		"by a name of its own":         {func(target, target) any { return target{Cluster: "nuvlabox/1", Node: "n"} }, "Finished", finished},
		"by a name of its own there":   {func(_, present target) any { return target{Cluster: present.Cluster, Node: "n"} }, "Finished", finished},
		"which is another agent's":     {func(target, target) any { return target{Cluster: "edge", Node: "edge-1"} }, "Finished", finished},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			g := w.submit(t, freeShop)
			listed := w.executable(t, w.hub, hubAgent, "ocm")[0].Targets
			w.drain(listed.Cluster + "/" + listed.Node)
			j := w.claim(t, w.hub, hubAgent, g.Jobs[0])
			require.NotEqual(t, listed, j.Targets)
			b := report(hubAgent, j, row.state, "Available")
			delete(b, "epoch")
			if row.targets != nil {
				b["targets"] = row.targets(listed, j.Targets)
			}
			a := w.hub.send(t, http.MethodPut, "/jobmanager/jobs", b).is(t, http.StatusOK)
			require.Equal(t, row.want, decode[job](t, a).stands())
			if row.want != back {
				require.Len(t, w.group(t, g.ID).Jobs, 1)
				w.legal(t)
				return
			}
			require.Contains(t, string(w.viewer.get(t, "/jobmanager/history?limit=1000").body),
				"carried it out at "+listed.Cluster+"/"+listed.Node+", where it is not any more")
			w.unchanged(t, func() { w.hub.send(t, http.MethodPut, "/jobmanager/jobs", b).refused(t, http.StatusConflict) })

			offered := w.executable(t, w.hub, hubAgent, "ocm")
			require.Len(t, offered, 2)
			again, cleanup := offered[0], offered[1]
			require.Equal(t, []any{j.ID, j.Targets, "", j.Epoch}, []any{again.ID, again.Targets, again.Resource.UUID, again.Epoch})
			require.Equal(t, standing{remove, "reallocate", "Created", hubAgent}, cleanup.stands())
			require.Equal(t, []any{j.ID, listed, "uid-" + j.ID}, []any{cleanup.Cleans, cleanup.Targets, cleanup.Resource.UUID})
			w.finish(t, w.hub, hubAgent, cleanup)
			w.finish(t, w.hub, hubAgent, again)
			require.Equal(t, "Available", w.group(t, g.ID).Status)
			require.Equal(t, j.Targets, w.job(t, j.ID).Targets)
			w.legal(t)
		})
	}
}

// TestReportsOfFormerPlaces_thatAreBeingLeft: the clean-up of an earlier copy in that place does not remove this copy,
// so it needs its own clean-up, but only one. A removal needs none.
func TestReportsOfFormerPlaces_thatAreBeingLeft(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	g := w.submit(t, freeShop)
	former := w.claim(t, w.hub, hubAgent, g.Jobs[0])
	w.drain(former.Targets.Cluster + "/" + former.Targets.Node)
	tell := func(j job, want standing) {
		t.Helper()
		b := report(hubAgent, j, "Finished", "Available")
		delete(b, "epoch")
		b["targets"] = former.Targets
		a := w.hub.send(t, http.MethodPut, "/jobmanager/jobs", b).is(t, http.StatusOK)
		require.Equal(t, want, decode[job](t, a).stands())
	}
	require.Len(t, w.group(t, g.ID).Jobs, 2, "it had been taken")
	var copies []string
	for range 2 {
		tell(w.claim(t, w.hub, hubAgent, former), standing{create, "", "Created", hubAgent})
	}
	for _, j := range w.group(t, g.ID).Jobs {
		if j.Cleans != "" {
			copies = append(copies, j.Resource.UUID)
			w.finish(t, w.hub, hubAgent, j)
		}
	}
	require.ElementsMatch(t, []string{"", "uid-" + former.ID}, copies)

	w.finish(t, w.hub, hubAgent, former)
	w.operator.call(t, http.MethodPut, "/jobmanager/groups/stop/"+g.ID, "").is(t, http.StatusOK)
	tell(w.claim(t, w.hub, hubAgent, former), standing{remove, "", "Created", hubAgent})
	require.Len(t, w.group(t, g.ID).Jobs, 1)
	w.finish(t, w.hub, hubAgent, former)
	require.Equal(t, "Stopped", w.group(t, g.ID).Status)
	w.legal(t)
}

// withQuay is the infrastructure with a cluster that no agent serves, and some nodes drained.
func withQuay(drained ...string) *topology.Taxonomy {
	all := inprocess.Topology(time.Now())
	quay := all.Cluster["hub"]
	quay.Name, quay.UUID, quay.AgentID, quay.Node = "quay", "quay-uuid", "", map[string]topology.Node{}
	node := all.Cluster["hub"].Node["hub-1"]
	node.Name = "quay-1"
	quay.Node["quay-1"] = node
	all.Cluster["quay"] = quay
	edge := all.Cluster["edge"]
	edge.Type = kinds.OCM
	all.Cluster["edge"] = edge
	return inprocess.Drain(all, drained...)
}

// TestTakenUnaware: an agent that does not name the epoch takes what it was listed at its own place, and has been placed since
// where it works for nobody. What becomes of that at the other place does not wait for this agent for ever.
func TestTakenUnaware(t *testing.T) {
	t.Parallel()
	const manager = "deploymentmanager-ocm" // serves the other place, and telemetry knows nothing of it
	for name, row := range map[string]struct {
		happens func(t *testing.T, w *world, g group, j job) job // to the job that the agent has, and what is left for it there
		says    bool                                             // the agent says that something of the job runs
		want    standing                                         // once it was left alone for a lease
		epoch   int64                                            // later than that of what was left
	}{
		"the job is moved": {
			happens: func(t *testing.T, w *world, g group, _ job) job {
				t.Helper()
				w.SaveTopology(withQuay("quay/quay-1"))
				for _, j := range w.group(t, g.ID).Jobs {
					if j.Cleans != "" {
						return j
					}
				}
				require.Fail(t, "nothing is to be removed")
				return job{}
			},
			want: standing{remove, "reallocate", "Progressing", manager},
		},
		"the job is stopped": {
			happens: func(t *testing.T, w *world, g group, j job) job {
				t.Helper()
				w.operator.call(t, http.MethodPut, "/jobmanager/groups/stop/"+g.ID, "").is(t, http.StatusOK)
				return j
			},
			want: standing{remove, "", "Progressing", manager}, epoch: 1,
		},
		"it says where it has created it": {
			happens: func(t *testing.T, w *world, _ group, j job) job {
				t.Helper()
				b := report(hubAgent, j, "Finished", "Available")
				delete(b, "epoch")
				b["targets"] = target{Cluster: "hub", Node: "hub-1"}
				w.hub.send(t, http.MethodPut, "/jobmanager/jobs", b).is(t, http.StatusOK)
				return j
			},
			want: standing{create, "", "Progressing", manager}, epoch: 1,
		},
		"it serves the other place too, though telemetry does not know it": {
			happens: func(t *testing.T, w *world, g group, j job) job {
				t.Helper()
				b := report(hubAgent, j, "Finished", "Available")
				w.hub.send(t, http.MethodPut, "/jobmanager/jobs", b).is(t, http.StatusOK)
				w.operator.call(t, http.MethodPut, "/jobmanager/groups/stop/"+g.ID, "").is(t, http.StatusOK)
				return j
			},
			says: true, want: standing{remove, "", "Created", hubAgent},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.SaveTopology(withQuay("quay/quay-1"))
			g := w.submit(t, freeShop)
			listed := w.executable(t, w.hub, hubAgent, "ocm")
			require.Len(t, listed, 1)
			w.SaveTopology(withQuay("hub/hub-1", "hub/hub-2"))
			j := w.claim(t, w.hub, hubAgent, listed[0])
			require.Equal(t, "quay", j.Targets.Cluster)

			left := row.happens(t, w, g, j)
			require.Equal(t, hubAgent, w.job(t, left.ID).OwnerID)
			left.Epoch = w.job(t, left.ID).Epoch
			woken := trace.WithCause(trace.Start(store.WithSource(t.Context(), "/functions/deploymentmanager-sync-ocm"), ""), "tick")
			take := func() (offered bool, taken *deployed.Job) {
				jobs, err := deployed.Executable(t.Context(), w.DB, "ocm", manager)
				require.NoError(t, err)
				offered = slices.ContainsFunc(jobs, func(o *deployed.Job) bool { return o.ID.String() == left.ID })
				require.NoError(t, w.DB.Tx(woken, func(ctx context.Context, tx *store.Tx) error {
					var err error
					taken, err = deployed.ClaimEpoch(ctx, tx, uuid.MustParse(left.ID), left.Epoch, manager, time.Minute)
					return err
				}))
				return offered, taken
			}
			offered, taken := take()
			require.False(t, offered || taken != nil, "its owner has time for it")

			_, err := w.DB.Exec(t.Context(), `update jobs set updated_at = updated_at - $1::interval,
lease_until = lease_until - $1::interval where id = $2`, deployed.DefaultLease+time.Minute, left.ID)
			require.NoError(t, err)
			require.Empty(t, slices.DeleteFunc(w.executable(t, w.edge, edgeAgent, "ocm"), func(o job) bool { return o.ID != left.ID }),
				"an agent with other places is not offered it")
			offered, taken = take()
			require.Equal(t, !row.says, offered)
			require.Equal(t, !row.says, taken != nil)
			require.Equal(t, row.want, w.job(t, left.ID).stands())
			require.Equal(t, left.Epoch+row.epoch, w.job(t, left.ID).Epoch,
				"its former owner is fenced; a clean-up is about a copy of the epoch that it has")
			w.legal(t)
		})
	}
}

// deleted is a removal as newer agents of ICOS report it: in their format, as it was listed, with one more condition.
func deleted(listed body, status string) body {
	b := maps.Clone(listed)
	for _, ours := range []string{"epoch", "replica", "cleans", "lease_until"} {
		delete(b, ours)
	}
	resource := maps.Clone(listed["resource"].(body))
	resource["conditions"] = append(slices.Clone(resource["conditions"].([]any)), body{
		"type": "Deleted", "status": status, "lastTransitionTime": nil, "reason": "", "message": "",
	})
	b["resource"] = resource
	return b
}

// TestRemovalByNewerAgents: they report the end of a removal by a condition, in the state in which they got the job.
func TestRemovalByNewerAgents(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	g, j := w.running(t, hubShop)
	tell := func(as client, b body) *answer {
		return as.send(t, http.MethodPut, "/jobmanager/jobs?orchestrator=ocm&id="+j.ID, b)
	}
	running := decode[body](t, w.viewer.get(t, "/jobmanager/jobs/"+j.ID))
	running["state"] = "Created"
	w.unchanged(t, func() { require.Equal(t, []string{"state"}, tell(w.hub, deleted(running, "True")).fields(t)) })

	w.operator.call(t, http.MethodPut, "/jobmanager/groups/stop/"+g.ID, "").is(t, http.StatusOK)
	listed := decode[[]body](t, w.hub.get(t, "/jobmanager/jobs/executable/ocm/"+hubAgent))[0]
	require.Equal(t, "Created", listed["state"])
	w.unchanged(t, func() { tell(w.hub, deleted(listed, "True")).refused(t, http.StatusConflict) }) // not taken
	w.claim(t, w.hub, hubAgent, j)
	w.unchanged(t, func() {
		require.Equal(t, []string{"state"}, tell(w.hub, listed).fields(t))
		require.Equal(t, []string{"state"}, tell(w.hub, deleted(listed, "False")).fields(t))
		stray := deleted(listed, "True")
		delete(stray, "owner_id")
		tell(w.edge, stray).refused(t, http.StatusConflict)
	})
	a := tell(w.hub, deleted(listed, "True")).is(t, http.StatusOK)
	require.Equal(t, standing{remove, "", "Finished", ""}, decode[job](t, a).stands())
	require.Equal(t, "Stopped", w.group(t, g.ID).Status)
	w.unchanged(t, func() {
		again := deleted(listed, "True")
		again["epoch"] = listed["epoch"]
		tell(w.hub, again).is(t, http.StatusOK)
	})
	w.operator.call(t, http.MethodDelete, "/jobmanager/groups/"+g.ID, "").is(t, http.StatusOK)
	w.legal(t)
}

// TestCleanupByNewerAgents: after their report the capacity is free, and goes to a job that waits for it.
func TestCleanupByNewerAgents(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	large := strings.Replace(freeShop, "cpu: 500m", "cpu: 5", 1)
	_, j := w.running(t, large)
	w.operator.send(t, http.MethodPost, "/jobmanager/policies/incompliance", body{
		"policyName": "p", "remediation": "reallocate", "subject": body{"resourceId": j.Resource.UUID},
	}).is(t, http.StatusOK)
	waiting := w.submit(t, strings.Replace(large, "name: shop", "name: waiting", 1))
	require.Empty(t, waiting.Jobs[0].Targets.Node, "one half of the hub is taken, the other held")

	offered := decode[[]body](t, w.hub.get(t, "/jobmanager/jobs/executable/ocm/"+hubAgent))
	at := slices.IndexFunc(offered, func(b body) bool { return b["cleans"] == j.ID })
	require.GreaterOrEqual(t, at, 0)
	cleanup := offered[at]
	w.claim(t, w.hub, hubAgent, job{ID: cleanup["id"].(string)})
	w.hub.send(t, http.MethodPut, "/jobmanager/jobs", deleted(cleanup, "True")).is(t, http.StatusOK)
	require.Equal(t, j.Targets, w.group(t, waiting.ID).Jobs[0].Targets)
	w.legal(t)
}

// TestReportIsRefusedForWhatItIs: the refusal says which agent owns the job, if any.
func TestReportIsRefusedForWhatItIs(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	g := w.submit(t, hubShop)
	j := g.Jobs[0]
	refused := func(as client, agent string) string {
		var d problem.Document
		w.unchanged(t, func() {
			d = as.send(t, http.MethodPut, "/jobmanager/jobs", report(agent, j, "Finished", "Available")).
				refused(t, http.StatusConflict)
		})
		return d.Detail
	}
	require.Contains(t, refused(w.hub, hubAgent), "is Created and nobody has taken it")

	j = w.claim(t, w.hub, hubAgent, j)
	w.lapse(t, j.ID)
	w.claim(t, w.spare, spareAgent, j)
	require.Contains(t, refused(w.hub, hubAgent), `belongs to "agent-spare", not to "agent-hub"`)

	w.operator.call(t, http.MethodPut, "/jobmanager/groups/stop/"+g.ID, "").is(t, http.StatusOK)
	w.finish(t, w.spare, spareAgent, w.job(t, j.ID))
	require.Contains(t, refused(w.hub, hubAgent), "is Finished and nobody has it")
}

// TestDegradedSaysWhy: history and application show the failed condition, not those that are fine.
func TestDegradedSaysWhy(t *testing.T) {
	t.Parallel()
	applied := body{"type": "Applied", "status": "True", "message": "3 objects"}
	for name, row := range map[string]struct {
		conditions     []body
		history, group string
	}{
		"by words": {
			[]body{applied, {"type": "Available", "status": "False", "reason": "NoRoom", "message": "0 of 2 pods run"}},
			"not Available at hub/hub-1: 0 of 2 pods run", "web is degraded at hub/hub-1: 0 of 2 pods run",
		},
		"by a reason": {
			[]body{applied, {"type": "Available", "status": "True"}, {"type": "Degraded", "status": "True", "reason": "Slow"}},
			"Degraded at hub/hub-1: Slow", "web is degraded at hub/hub-1: Slow",
		},
		"by what was refused": {
			[]body{{"type": "Progressing", "status": "True"}, {"type": "Applied", "status": "False", "message": "exceeded quota"}},
			"not Applied at hub/hub-1: exceeded quota", "web is degraded at hub/hub-1: exceeded quota",
		},
		"by nothing": {
			[]body{{"type": "Available", "status": "False"}},
			"not Available at hub/hub-1: no reason is given", "web is degraded at hub/hub-1: no reason is given",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			g := w.submit(t, hubShop)
			b := report(hubAgent, w.claim(t, w.hub, hubAgent, g.Jobs[0]), "Degraded", "")
			b["resource"].(body)["conditions"] = row.conditions
			w.hub.send(t, http.MethodPut, "/jobmanager/jobs", b).is(t, http.StatusOK)
			happened := decode[[]body](t, w.viewer.get(t, "/jobmanager/history?app="+g.ID))
			require.Equal(t, []any{"job.degraded", row.history},
				[]any{happened[len(happened)-1]["event"], happened[len(happened)-1]["message"]})
			now := decode[body](t, w.viewer.get(t, "/jobmanager/groups/"+g.ID))
			require.Equal(t, []any{"Degraded", row.group}, []any{now["status"], now["message"]})
		})
	}
}

// TestAgentOfTwoClusters: an agent that telemetry assigns to both is offered the jobs of both, and its reports count
// for each.
func TestAgentOfTwoClusters(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	infrastructure := inprocess.Topology(time.Now())
	edge := infrastructure.Cluster["edge"]
	edge.Type, edge.AgentID = kinds.OCM, hubAgent
	infrastructure.Cluster["edge"] = edge
	w.SaveTopology(infrastructure)
	here := w.submit(t, hubShop)
	there := w.submit(t, strings.NewReplacer("hub", "edge", "name: shop", "name: other").Replace(hubShop))
	offered := w.executable(t, w.hub, hubAgent, "ocm")
	require.Len(t, offered, 2)
	for _, j := range offered {
		w.finish(t, w.hub, hubAgent, j)
	}
	for cluster, g := range map[string]group{"hub": here, "edge": there} {
		now := w.group(t, g.ID)
		require.Equal(t, []any{"Available", cluster}, []any{now.Status, now.Jobs[0].Targets.Cluster})
		seen := body{"job_id": now.Jobs[0].ID, "owner_id": hubAgent, "conditions": []body{{"type": "Available", "status": "False"}}}
		w.hub.send(t, http.MethodPut, "/jobmanager/resources/status", seen).is(t, http.StatusOK)
		require.Equal(t, "Degraded", w.group(t, g.ID).Status)
		w.operator.call(t, http.MethodPut, "/jobmanager/groups/stop/"+g.ID, "").is(t, http.StatusOK)
	}
	for _, j := range w.executable(t, w.hub, hubAgent, "ocm") {
		require.Equal(t, remove, j.Type)
		w.finish(t, w.hub, hubAgent, j)
	}
	require.Equal(t, []string{"Stopped", "Stopped"}, []string{w.group(t, here.ID).Status, w.group(t, there.ID).Status})
	w.legal(t)
}

// TestOldestLocks: PUT jobs/{id} by the first Nuvla agents (shared/docs/contracts.md §1.8).
func TestOldestLocks(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	j := w.submit(t, hubShop).Jobs[0]
	put := func(c client, state int) *answer {
		return c.send(t, http.MethodPut, "/jobmanager/jobs/"+j.ID, body{
			"ID": j.ID, "uuid": "00000000-0000-0000-0000-000000000000", "locker": state == 2, "state": state,
		})
	}
	for _, step := range []struct {
		what   string
		as     client
		state  int
		status int
		want   standing
	}{
		{"nobody has it to unlock", w.hub, 1, 409, standing{create, "", "Created", ""}},
		{"the agent locks it", w.hub, 2, 200, standing{create, "", "Progressing", hubAgent}},
		{"and again", w.hub, 2, 200, standing{create, "", "Progressing", hubAgent}},
		{"another cannot", w.spare, 2, 409, standing{create, "", "Progressing", hubAgent}},
		{"nor unlock it", w.spare, 1, 409, standing{create, "", "Progressing", hubAgent}},
		{"nor complete it", w.spare, 3, 409, standing{create, "", "Progressing", hubAgent}},
		{"the agent unlocks it", w.hub, 1, 200, standing{create, "", "Created", ""}},
		{"the other locks it", w.spare, 2, 200, standing{create, "", "Progressing", spareAgent}},
		{"and completes it", w.spare, 3, 200, standing{create, "", "Finished", spareAgent}},
		{"and again", w.spare, 3, 200, standing{create, "", "Finished", spareAgent}},
		{"it cannot be locked any more", w.hub, 2, 409, standing{create, "", "Finished", spareAgent}},
	} {
		require.Equal(t, step.status, put(step.as, step.state).status, step.what)
		require.Equal(t, step.want, w.job(t, j.ID).stands(), step.what)
	}
	require.Equal(t, j.Epoch+1, w.job(t, j.ID).Epoch, "since it was unlocked, nothing of the time before counts")
	w.legal(t)
}

// TestStatus: the status that an orchestrator reports between job updates, in every spelling of the route.
func TestStatus(t *testing.T) {
	t.Parallel()
	for _, path := range []string{
		"/jobmanager/status", "/jobmanager/status/", "/jobmanager/resources/status", "/jobmanager/resources/status/%s",
	} {
		t.Run(path, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			g, j := w.running(t, hubShop)
			if path == "/jobmanager/resources/status/%s" {
				path = fmt.Sprintf(path, j.ID)
			}
			show := func(b body) job {
				b["job_id"] = j.ID
				a := w.hub.send(t, http.MethodPut, path, b).is(t, http.StatusOK)
				require.Equal(t, j.ID, decode[body](t, a)["job_id"], "the answer is the resource")
				return w.job(t, j.ID)
			}
			failing := []body{
				{"type": "Available", "status": "False", "reason": "CrashLoop"},
				{"type": "Degraded", "status": "True"},
			}
			now := show(body{"epoch": j.Epoch, "conditions": failing})
			require.Equal(t, "Degraded", now.State)
			require.Equal(t, "Degraded", w.group(t, g.ID).Status)
			w.unchangedButLease(t, func() { show(body{"epoch": j.Epoch, "conditions": failing}) })
			now = show(body{"resource_uuid": j.Resource.UUID, "conditions": []body{{"type": "Available", "status": "True"}}})
			require.Equal(t, "Finished", now.State)

			w.unchanged(t, func() { show(body{"epoch": j.Epoch}) }) // renewing the lease does not change the conditions

			full := decode[body](t, w.viewer.get(t, "/jobmanager/status/"+j.ID))
			require.Equal(t, j.ID, full["job_id"])
			require.Equal(t, j.Resource.UUID, full["resource_uuid"])
			older := decode[[]condition](t, w.viewer.get(t, "/jobmanager/resources/status/"+j.ID))
			require.Equal(t, now.Resource.Conditions, older, "the older path answers the conditions alone")
			w.legal(t)
		})
	}
}

// TestStatusOfAResource: what agents of ICOS send when they synchronise, with the uid of each ManifestWork, since they
// do not know the job then.
func TestStatusOfAResource(t *testing.T) {
	t.Parallel()
	const short, long = "/jobmanager/resources/status", "/jobmanager/resources/status/%s"
	for name, row := range map[string]struct{ path, body string }{
		"of v1.4.1": {short, `{"id":"","job_id":"","resource_uuid":"%s","resource_name":"web-x7k2p","conditions":[%s]}`},
		"of v1.4.1, with the times of its zero model": {
			short,
			`{"created_at":"0001-01-01T00:00:00Z","updated_at":"0001-01-01T00:00:00Z","id":"","job_id":"","resource_uuid":"%s",` +
				`"resource_name":"web-x7k2p","conditions":[%s]}`,
		},
		"by the newer path":                           {"/jobmanager/status/", `{"id":"","job_id":"","job_group_id":"","resource_uuid":"%s","conditions":[%s]}`},
		"with the uid for an id":                      {long, `{"id":"%s","job_id":"","resource_name":"web-x7k2p","conditions":[%s]}`},
		"with the uid in the path and for a resource": {long, `{"resource_uuid":"%s","node_target":"","conditions":[%s]}`},
		"with an empty id beside the uid in the path": {long, `{"id":"","job_id":"","resource_uuid":"%s","conditions":[%s]}`},
		"with the id of a job that there never was": {
			short, `{"job_id":"` + uuid.NewString() + `","resource_uuid":"%s","conditions":[%s]}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			g, j, uid := w.runningAs(t, hubShop)
			path := strings.ReplaceAll(row.path, "%s", uid)
			show := func(as client, available string) *answer {
				condition := `{"type":"Available","status":"` + available + `","observedGeneration":1,` +
					`"lastTransitionTime":"2024-07-01T10:00:00Z","reason":"ResourcesAvailable","message":""}`
				return as.call(t, http.MethodPut, path, fmt.Sprintf(row.body, uid, condition))
			}
			seen := decode[body](t, show(w.hub, "False").is(t, http.StatusOK))
			require.Equal(t, j.ID, seen["job_id"])
			require.Equal(t, uid, seen["resource_uuid"])
			require.Equal(t, "Degraded", w.job(t, j.ID).State)
			w.unchanged(t, func() { show(w.edge, "True").refused(t, http.StatusConflict) })
			show(w.anyAgent, "True").is(t, http.StatusOK)
			require.Equal(t, "Finished", w.job(t, j.ID).State)

			w.operator.call(t, http.MethodPut, "/jobmanager/groups/stop/"+g.ID, "").is(t, http.StatusOK)
			w.unchanged(t, func() { show(w.hub, "True").refused(t, http.StatusConflict) })
			w.operator.call(t, http.MethodPut, "/jobmanager/groups/start/"+g.ID, "").is(t, http.StatusOK)
			w.unchanged(t, func() {
				why := show(w.hub, "True").refused(t, http.StatusNotFound)
				require.Contains(t, why.Detail, uid, "only its clean-up knows the copy now")
			})
			w.legal(t)
		})
	}
}

// TestStatusOfASharedResource: an agent may have created one resource for several jobs; then its report must name the
// job.
func TestStatusOfASharedResource(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	_, j, uid := w.runningAs(t, hubShop)
	_, other, _ := w.runningAs(t, strings.Replace(hubShop, "name: shop", "name: other", 1))
	again := report(hubAgent, other, "Finished", "Available")
	again["resource"].(body)["resource_uuid"] = uid
	w.hub.send(t, http.MethodPut, "/jobmanager/jobs", again).is(t, http.StatusOK)
	sent := body{"id": "", "job_id": "", "resource_uuid": uid, "conditions": []body{{"type": "Available", "status": "False"}}}
	w.unchanged(t, func() {
		w.hub.send(t, http.MethodPut, "/jobmanager/resources/status", sent).refused(t, http.StatusConflict)
	})
	sent["job_id"] = other.ID
	w.hub.send(t, http.MethodPut, "/jobmanager/resources/status", sent).is(t, http.StatusOK)
	require.Equal(t, "Degraded", w.job(t, other.ID).State)
	require.Equal(t, "Finished", w.job(t, j.ID).State)
}

// runningAs is running, with a resource that has the uid of a ManifestWork.
func (w *world) runningAs(t testing.TB, descriptor string) (g group, j job, uid string) {
	t.Helper()
	g = w.submit(t, descriptor)
	uid = uuid.NewString()
	b := report(hubAgent, w.claim(t, w.hub, hubAgent, g.Jobs[0]), "Finished", "Available")
	b["resource"].(body)["job_id"], b["resource"].(body)["resource_uuid"] = "", uid // such agents name no job here
	w.hub.send(t, http.MethodPut, "/jobmanager/jobs", b).is(t, http.StatusOK)
	return g, w.job(t, g.Jobs[0].ID), uid
}

// TestShortStatus is the form in D3.3: a job and the new status.
func TestShortStatus(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	_, j := w.running(t, hubShop)
	for _, row := range []struct{ status, state string }{{"Degraded", "Degraded"}, {"Available", "Finished"}} {
		w.hub.send(t, http.MethodPut, "/jobmanager/status/", body{"job_id": j.ID, "owner_id": hubAgent, "status": row.status}).
			is(t, http.StatusOK)
		now := w.job(t, j.ID)
		require.Equal(t, row.state, now.State)
		require.Equal(t, row.status, now.Resource.Conditions[0].Type)
	}
	w.hub.send(t, http.MethodPut, "/jobmanager/status/", body{"job_id": j.ID, "owner_id": hubAgent, "status": "Splendid"}).
		fields(t)
}

// unchangedButLease is unchanged for calls that renew a lease.
func (w *world) unchangedButLease(t testing.TB, calls func()) {
	t.Helper()
	still := func() map[string]string {
		_, err := w.DB.Exec(t.Context(), `update jobs set lease_until = null`)
		require.NoError(t, err)
		return w.stored(t)
	}
	before := still()
	calls()
	require.Equal(t, before, still())
}
