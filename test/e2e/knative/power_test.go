package knative_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/littoral-project/littoral/infra/runner/fleet"
	"github.com/littoral-project/littoral/shared/api"
	"github.com/littoral-project/littoral/shared/auth"
)

// startOver is what a cluster may take, from when its power is back, until everything that it accepted runs.
const startOver = 2 * time.Minute

// TestPowerCuts ends every process of the cluster at once, again and again, while applications are handed in and moved by drains of
// the node that they run on. Soon after each start all that was accepted runs, once, and where it should. The applications run at
// simulated clusters, which have power all the time.
//
// LITTORAL_E2E_POWER is a program that does it: with "off" it sends SIGKILL to each process of the cluster, with "on" it starts the
// cluster and returns when its daemons run. LITTORAL_E2E_CUTS is how often, ten by default.
func TestPowerCuts(t *testing.T) {
	w := newWorld(t)
	program := os.Getenv("LITTORAL_E2E_POWER")
	if program == "" {
		t.Skip("LITTORAL_E2E_POWER names no program that cuts the cluster's power")
	}
	cuts, seed := 10, uint64(time.Now().UnixNano())
	if text := os.Getenv("LITTORAL_E2E_CUTS"); text != "" {
		var err error
		cuts, err = strconv.Atoi(text)
		require.NoError(t, err)
	}
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	power := func(how string) {
		out, err := exec.Command(program, how).CombinedOutput()
		require.NoError(t, err, "%s", out)
	}

	f := w.startFleet(t, fleetFile)
	w.removeAll("e2e-power-") // left by an interrupted run
	w.client(auth.Operator)
	w.client(auth.Viewer)
	nodes := []string{"e2e-pier-1", "e2e-pier-2"}
	order := func(node, how string) {
		path := "/matchmaker/nodes/e2e-pier/" + node + "/" + how
		w.eventually(node+": "+how, func() bool {
			a, err := w.try(auth.Operator, http.MethodPut, path, "")
			return err == nil && (a.status == http.StatusOK || how == "uncordon" && a.status == http.StatusNotFound)
		})
	}
	t.Cleanup(func() {
		for _, node := range nodes {
			order(node, "uncordon")
		}
	})
	for i := range cuts {
		closed, open := nodes[i%2], nodes[(i+1)%2]
		name := fmt.Sprintf("e2e-power-%d", i+1)
		t.Run(name, func(t *testing.T) {
			w := &world{Littoral: w.Littoral, t: t}
			r, handed := &result{answers: map[int]int{}}, &submissions{name: name, made: map[string][]string{}}
			quit := make(chan struct{})
			var all sync.WaitGroup
			all.Go(func() { handed.run(w, quit, r) })
			end := sync.OnceFunc(func() {
				close(quit)
				all.Wait()
			})
			t.Cleanup(func() { w.removeAll(name + "-") })
			t.Cleanup(end)
			w.eventually("applications are accepted", func() bool { return r.created() >= 5 })
			order(open, "uncordon")
			order(closed, "drain")
			// The cut comes somewhere in the move.
			time.Sleep(time.Duration(random.IntN(20_000)) * time.Millisecond)
			accepted := handed.accepted()
			power("off")
			power("on")
			start := time.Now()
			var amiss string
			for amiss = "not looked yet"; amiss != "" && time.Since(start) < patience; time.Sleep(pause) {
				amiss = w.amiss(f, accepted, open)
			}
			require.Empty(t, amiss, "%s after the start", patience)
			took := time.Since(start)
			t.Logf("%d applications run on %s, %.0f s after the start", len(accepted), open, took.Seconds())
			end()
			t.Logf("answers by status, 0 for none: %v", r.answers)
			handed.areThereOnce(w)
			w.eventually("what was accepted since runs too", func() bool { return w.amiss(f, handed.accepted(), open) == "" })
			require.LessOrEqual(t, took, startOver)
		})
	}
}

// amiss tells of one application that does not run just once, on the node, as the controller says too; nothing if all do.
func (w *world) amiss(f *fleet.Fleet, accepted map[string][]string, node string) string {
	copies := map[string][]api.FleetCopy{}
	where := map[string]string{}
	for _, c := range f.View().Clusters {
		for _, n := range c.Nodes {
			for _, have := range n.Copies {
				copies[have.Application] = append(copies[have.Application], have)
				where[have.Job] = n.Name
			}
		}
	}
	for name := range accepted {
		has := copies[name]
		switch {
		case len(has) != 1:
			return fmt.Sprintf("%s has %d copies", name, len(has))
		case where[has[0].Job] != node:
			return fmt.Sprintf("%s is on %s", name, where[has[0].Job])
		case !has[0].Running:
			return fmt.Sprintf("%s does not run: %s", name, has[0].Message)
		}
	}
	var all []api.Application
	a, err := w.try(auth.Viewer, http.MethodGet, "/jobmanager/groups?limit=500", "")
	if err == nil && a.status == http.StatusOK {
		err = json.Unmarshal(a.body, &all)
	}
	if err != nil || a.status != http.StatusOK {
		return fmt.Sprintf("no applications: %d, %v", a.status, err)
	}
	available := map[string]bool{}
	for i := range all {
		available[all[i].ID] = all[i].Status == api.StatusAvailable
	}
	for name, ids := range accepted {
		if !available[ids[0]] {
			return name + " is not available"
		}
	}
	return ""
}
