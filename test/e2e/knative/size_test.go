package knative_test

import (
	"context"
	"log/slog"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/littoral-project/littoral/infra/runner/fleet"
	"github.com/littoral-project/littoral/shared/auth"
	"github.com/littoral-project/littoral/shared/topology"
)

// TestFiveThousandNodes: one submission, one explanation and one drain among 5,000 nodes, each from zero, with the
// functions at the limits of their pods. The nodes have no agents, so that what is placed does not start.
func TestFiveThousandNodes(t *testing.T) {
	w := newWorld(t)
	plan, err := fleet.Generated("nodes=5000,seed=7")
	require.NoError(t, err)
	f, err := fleet.New(fleet.Options{
		Plan: plan, File: filepath.Join(t.TempDir(), "fleet.json"), Append: w.RemoteWrite, Log: slog.New(slog.DiscardHandler),
	})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if err := f.Run(ctx); err != nil && ctx.Err() == nil {
			t.Errorf("the fleet has ended: %v", err)
		}
	}()
	t.Cleanup(func() {
		cancel()
		<-ended
	})
	start := time.Now()
	took := func(what string) {
		t.Logf("%s: %s", what, time.Since(start).Round(time.Second/10))
		w.noneOutOfMemory()
	}
	w.eventually("the aggregator sees all nodes", func() bool {
		if !w.nudge("aggregator-tick") {
			return false
		}
		a, err := w.try(auth.Viewer, http.MethodGet, "/aggregator/", "")
		return err == nil && a.status == http.StatusOK && known(t, a.body, plan)
	})
	took("5,000 nodes are known")

	w.asleep()
	start = time.Now()
	id := w.submit(t, strings.Replace(application("e2e-size"), "    targets: [{cluster_name: e2e-pier, orchestrator: nuvla}]\n", "", 1))
	place := func() string {
		jobs := w.jobs(id)
		if len(jobs) != 1 || jobs[0].Targets.Node == "" {
			return ""
		}
		return jobs[0].Targets.Cluster + "/" + jobs[0].Targets.Node
	}
	w.eventually("it has a place", func() bool { return place() != "" })
	took("submission to place, from zero")

	w.asleep()
	start = time.Now()
	var a answer
	w.eventually("it is explained", func() bool {
		a, err = w.try(auth.Viewer, http.MethodPost, "/matchmaker/explain?app="+id, "")
		return err == nil && a.status == http.StatusOK
	})
	took("explanation, from zero")
	for _, cluster := range plan.Clusters {
		for _, node := range cluster.Nodes {
			require.Contains(t, string(a.body), `"`+node.Name+`"`)
		}
	}

	w.asleep()
	start = time.Now()
	first := place()
	require.Equal(t, http.StatusOK, w.ask(auth.Operator, http.MethodPut, "/matchmaker/nodes/"+first+"/drain", "", nil))
	t.Cleanup(func() { w.ask(auth.Operator, http.MethodPut, "/matchmaker/nodes/"+first+"/uncordon", "", nil) })
	w.eventually("it has another place", func() bool { return place() != "" && place() != first })
	took("drain to another place, from zero")
}

// known reports whether a taxonomy has every node of the plan.
func known(t *testing.T, taxonomy []byte, plan *fleet.Plan) bool {
	t.Helper()
	all, err := topology.Parse(taxonomy)
	require.NoError(t, err)
	there := map[string]bool{}
	for _, place := range all.Places() {
		there[place.Cluster+"/"+place.Node] = true
	}
	for _, cluster := range plan.Clusters {
		for _, node := range cluster.Nodes {
			if !there[cluster.Name+"/"+node.Name] {
				return false
			}
		}
	}
	return true
}

// noneOutOfMemory checks that no container of Littoral was ended for the memory that it took.
func (w *world) noneOutOfMemory() {
	w.t.Helper()
	for _, state := range []string{"lastState", "state"} {
		out := w.kubectl("get", "pods", "-o", `jsonpath={range .items[*]}{.metadata.name}: `+
			`{.status.containerStatuses[*].`+state+`.terminated.reason}{"\n"}{end}`)
		require.NotContains(w.t, out, "OOMKilled")
	}
}
