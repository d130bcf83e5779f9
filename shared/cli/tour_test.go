package cli_test

import (
	"bytes"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/littoral-project/littoral/shared/api"
	"github.com/littoral-project/littoral/shared/auth"
	"github.com/littoral-project/littoral/shared/placement"
	"github.com/littoral-project/littoral/test/inprocess"
)

// TestATour runs the commands of a new user, one after the other; its golden file has every output.
func TestATour(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	var tr transcript
	do := func(line string) result {
		args := strings.Fields(line)
		r := h.run(args...)
		tr.add(r, args...)
		return r
	}
	do("get apps")
	do("get clusters -o wide")
	do("get nodes")
	do("get nodes -o wide --cluster edge")
	do("plan -f testdata/shop.yaml")
	do("explain -f testdata/shop.yaml")

	// The agents begin to work after the placement has been shown.
	h.at(2, func() { require.Equal(t, 2, h.work()) })
	do("apply -f testdata/shop.yaml --wait")
	do("get apps")
	do("get apps -o wide")
	do("get jobs")
	do("get jobs -o wide --orchestrator nuvla --state Finished")
	do("describe app shop")
	do("explain app shop")
	do("plan -f testdata/shop.yaml")
	do("apply -f testdata/shop.yaml")
	do("plan -f testdata/shop-green.yaml")
	h.at(3, func() { require.Equal(t, 1, h.work()) })
	do("apply -f testdata/shop-green.yaml --wait")
	do("wait app shop --for=finished")

	do("fleet")
	do("fleet drain edge-1")
	h.sys.SaveTopology(inprocess.Drain(inprocess.Topology(time.Now()), "edge/edge-1"))
	do("get apps -o wide")
	do("explain app shop")
	h.sys.SaveTopology(inprocess.Topology(time.Now().Add(time.Millisecond)))
	h.drain("")
	for n := range 6 {
		h.at(3+n, func() { h.work() }) // first the rest of the drained node, which makes room for the camera
	}
	do("wait app shop")
	do("describe app shop --history 1")

	do("events --app shop --tail 4")
	do("events --app shop --tail 2 -o wide")
	h.at(3, func() { h.work() })
	do("stop app shop --wait")
	do("apply -f testdata/shop.yaml")
	h.at(3, func() { h.work() })
	do("start app shop -w")
	h.at(3, func() { h.work() })
	do("delete app shop")
	do("wait app shop --for=deleted")
	do("submit -f testdata/huge.yaml")
	do("describe app huge --history 2")
	do("explain app huge")
	do("delete app huge --no-wait")
	require.Empty(t, h.sys.Broker.Failures())
	golden(t, "tour.golden", hideTraces(tr.String()))
}

// hideTraces replaces trace ids, causes and event ids.
func hideTraces(text string) string {
	return traces.ReplaceAllString(text, strings.Repeat("0", 32))
}

func TestDescribe_asJSONHasApplicationDecisionsAndHistory(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	h.ok("apply", "-f", "testdata/shop.yaml")
	var d struct {
		Application api.Application
		Decisions   []struct {
			ID       int64
			At       time.Time
			Cause    string
			Decision placement.Decision
		}
		History []api.Entry
	}
	decoder := json.NewDecoder(strings.NewReader(h.ok("describe", "app", "shop", "-o", "json")))
	decoder.DisallowUnknownFields()
	raw := map[string]json.RawMessage{}
	require.NoError(t, decoder.Decode(&raw))
	require.Len(t, raw, 3)
	for key, into := range map[string]any{"application": &d.Application, "decisions": &d.Decisions, "history": &d.History} {
		require.NoError(t, json.Unmarshal(raw[key], into), key)
	}
	require.Equal(t, "shop", d.Application.Name)
	require.NotEmpty(t, d.History)
	require.Len(t, d.Decisions, 1)
	require.Equal(t, "it was submitted", d.Decisions[0].Decision.Because)
	require.Contains(t, d.Decisions[0].Cause, "event ")
	require.True(t, d.Decisions[0].Decision.Exact)
	web := d.Decisions[0].Decision.Why[0]
	require.Equal(t, "web", web.Component)
	require.True(t, web.Nodes[0].Chosen)
	require.Equal(t, "camera", web.Nodes[0].Affinity[0].With)
	require.Equal(t, web.Margin, web.Nodes[0].Total-web.Nodes[1].Total)
}

func TestWait_doesNotTakeForAvailableWhatADrainedNodeStillRuns(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	h.at(2, func() { require.Equal(t, 2, h.work()) })
	h.ok("apply", "-f", "testdata/shop.yaml", "--wait")
	h.drain("edge/edge-1") // telemetry reports it, and the server has not read it yet
	r := h.run("wait", "app", "shop", "--timeout", "1s")
	require.Equal(t, 1, r.code)
	require.Contains(t, r.err, "yet to leave edge/edge-1, which was drained")
	h.at(3, func() { // now it has: there is no other place for the shop's camera
		h.sys.SaveTopology(inprocess.Drain(inprocess.Topology(time.Now()), "edge/edge-1"))
	})
	r = h.run("wait", "app", "shop", "--timeout", "1s")
	require.Equal(t, 1, r.code)
	require.Contains(t, r.err, "Pending")
	h.drain("")
	h.sys.SaveTopology(inprocess.Topology(time.Now().Add(time.Millisecond)))
	for n := range 8 {
		h.at(3+n, func() { h.work() })
	}
	require.Contains(t, h.ok("wait", "app", "shop"), "available")
}

func TestAnApplicationInALostClusterIsNotShownAsRunning(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	h.at(2, func() { require.Equal(t, 2, h.work()) })
	h.ok("apply", "-f", "testdata/shop.yaml", "--wait")
	require.Regexp(t, `shop +\w+ +Available +Healthy +2/2`, h.ok("get", "apps"))
	lost := inprocess.Topology(time.Now())
	lost.Cluster["edge"] = inprocess.Topology(time.Now().Add(-2 * time.Minute)).Cluster["edge"]
	_, err := h.sys.DB.Exec(t.Context(), `update nodes set last_seen = last_seen - interval '1 hour'`) // it never goes back otherwise
	require.NoError(t, err)
	h.sys.SaveTopology(lost)
	require.Regexp(t, `shop +\w+ +Unknown +Unknown +[01]/2`, h.ok("get", "apps"))
	said := h.ok("describe", "app", "shop")
	require.Regexp(t, `Available: +Unknown \(ClusterLost for \w+\): camera, web: all of cluster edge silent for 2m\d+s, moves in \dm\d+s`, said)
	require.Regexp(t, `application\.unknown`, said)
}

// TestWhatAnUpdateTookOutCountsNoMore: a wait ignores it, and it is not listed as running.
func TestWhatAnUpdateTookOutCountsNoMore(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	h.drain("")
	text, err := os.ReadFile("testdata/shop.yaml")
	require.NoError(t, err)
	const elsewhere = "targets: [{orchestrator: nuvla, cluster_name: edge, node_name: edge-2}]\n    communication"
	shop := strings.Replace(string(text), "communication", elsewhere, 1)
	web, _, _ := strings.Cut(shop, "  - name: camera")
	file := filepath.Join(t.TempDir(), "shop.yaml")
	require.NoError(t, os.WriteFile(file, []byte(shop), 0o600))
	h.at(2, func() { require.Equal(t, 2, h.work()) })
	h.ok("apply", "-f", file, "--wait")
	require.NoError(t, os.WriteFile(file, []byte(web), 0o600))
	h.drain("edge/edge-1") // where the camera is, with no agent to remove it
	require.Contains(t, h.ok("apply", "-f", file, "--wait"), "1 of 1 components run; 1 more still to be removed")
	counts := func() {
		h.ok("wait", "app", "shop")
		out := h.ok("get", "apps", "-o", "wide")
		require.Contains(t, out, "1/1")
		require.NotContains(t, out, "edge/edge-1")
		require.Contains(t, h.ok("describe", "app", "shop"), "camera (taken out)\n")
	}
	counts()
	require.Equal(t, 1, h.work(), "the camera is removed")
	counts()
}

// TestWhatIsOddAboutADescriptorIsSaid: next to the output, before and after it is submitted.
func TestWhatIsOddAboutADescriptorIsSaid(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	text, err := os.ReadFile("testdata/shop.yaml")
	require.NoError(t, err)
	odd := filepath.Join(t.TempDir(), "shop.yaml")
	require.NoError(t, os.WriteFile(odd, bytes.Replace(text, []byte("requirements"), []byte("requirments"), 1), 0o600))
	for _, line := range []string{"plan -f ", "explain -f ", "apply -f ", "apply -f ", "plan -f "} {
		r := h.run(append(strings.Fields(line), odd)...)
		require.Equal(t, "littoral: warning: components[0].requirments (line 6): unknown key, ignored\n", r.err, line)
	}
}

// TestPlan_showsChangesOutsideOfComponents: apply would change something outside the components, so plan must report it.
func TestPlan_showsChangesOutsideOfComponents(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	h.ok("apply", "-f", "testdata/shop.yaml")
	text, err := os.ReadFile("testdata/shop.yaml")
	require.NoError(t, err)
	file := filepath.Join(t.TempDir(), "shop.yaml")
	require.NoError(t, os.WriteFile(file, append(text, "policies: [{type: scheduler, performance: 1}]\n"...), 0o600))
	r := h.run("plan", "-f", file)
	require.Equal(t, 1, r.code)
	require.Regexp(t, `~ +\(application\) +change +- +- +other policies\n +\+ \(application\): policies\[scheduler\]\n1 to change`, r.out)
}

// TestOneOfTwoOfAName: it can be updated by its id, as plan explains.
func TestOneOfTwoOfAName(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	h.ok("submit", "-f", "testdata/shop.yaml")
	h.ok("submit", "-f", "testdata/shop.yaml")
	var apps []api.Application
	read := func() {
		require.NoError(t, json.Unmarshal([]byte(h.ok("get", "apps", "-o", "json")), &apps))
		require.Len(t, apps, 2)
	}
	read()
	id := apps[1].ID
	r := h.run("plan", "-f", "testdata/shop-green.yaml", "--app", id[:8])
	require.Equal(t, 1, r.code, r.err)
	_, apply, ok := strings.Cut(strings.TrimSpace(r.out), "Do it with: littoral ")
	require.True(t, ok, r.out)
	require.Contains(t, h.ok(strings.Fields(apply)...), "application shop updated: "+id)
	require.Contains(t, h.ok("apply", "-f", "testdata/shop-green.yaml", "--app", id[:8]), "application shop unchanged: "+id)
	read()
	require.EqualValues(t, 1, apps[0].Version)
	require.EqualValues(t, 2, apps[1].Version)
}

func TestNodesAreLostWhenTheServerSaysSo(t *testing.T) {
	t.Parallel()
	h := newHost(t) // its nodes were seen 5 s ago
	require.NotContains(t, h.ok("get", "nodes"), "Lost")
	h.staleAfter = 4
	require.Contains(t, h.ok("get", "nodes"), "Lost")
}

func TestASecondLookAtAnApplicationThatFails(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	h.ok("apply", "-f", "testdata/shop.yaml")
	agent := h.sys.Agent("nuvla", "agent-edge")
	for _, j := range agent.ClaimAll() {
		agent.Report(j, "Degraded", "Degraded", "the image\x1b[31m cannot be pulled\n!")
	}
	out := h.ok("describe", "app", "shop")
	require.Contains(t, out, "Degraded")
	require.Contains(t, out, "the image [31m cannot be pulled !", "what others write cannot steer the terminal")
	require.NotContains(t, out, "\x1b")
}

func TestWaitingEnds(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		before []string // commands
		args   string
		code   int
		says   []string
	}{
		"when the time is up": {
			[]string{"apply -f testdata/huge.yaml"},
			"wait app huge --timeout 1s", 1,
			[]string{"huge is not available in time: it is Pending", "littoral explain app"},
		},
		"at once when it will never be available": {
			[]string{"apply -f testdata/huge.yaml", "stop app huge"},
			"wait app huge", 1,
			[]string{"asked to stop", "littoral start app"},
		},
		"at once when nobody asked for its deletion": {
			[]string{"apply -f testdata/huge.yaml"},
			"wait app huge --for=deleted", 1,
			[]string{"nobody has asked", "littoral delete app"},
		},
		"at once when nobody asked for its stop": {
			[]string{"apply -f testdata/huge.yaml"},
			"wait app huge --for=stopped", 1,
			[]string{"is meant to run", "littoral stop app"},
		},
		"with a usage error for a time of nothing": {
			[]string{"apply -f testdata/huge.yaml"}, "wait app huge --timeout 0s", 2, []string{"--timeout"},
		},
		"at once when it is stopped already": {
			[]string{"apply -f testdata/huge.yaml", "stop app huge"}, "wait app huge --for=stopped", 0, nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHost(t)
			for _, line := range row.before {
				h.ok(strings.Fields(line)...)
			}
			r := h.run(strings.Fields(row.args)...)
			require.Equal(t, row.code, r.code, "%s%s", r.out, r.err)
			for _, text := range row.says {
				require.Contains(t, r.err, text)
			}
		})
	}
}

func TestWaitingOutlivesAServerThatIsAwayForAWhile(t *testing.T) {
	t.Parallel()
	for _, away := range []int{
		http.StatusServiceUnavailable, http.StatusBadGateway, http.StatusGatewayTimeout, http.StatusOK,
	} {
		t.Run(http.StatusText(away), func(t *testing.T) {
			t.Parallel()
			h := newHost(t)
			h.ok("apply", "-f", "testdata/shop.yaml")
			gets := 0
			h.onPath = func(r *http.Request) int {
				if r.Method == http.MethodGet && strings.HasPrefix(r.URL.Path, "/jobmanager/groups/") {
					if gets++; gets > 1 && gets < 9 { // longer than the client's timeout of one call
						return away
					}
					if gets == 9 {
						h.work()
					}
				}
				return 0
			}
			out := h.ok("wait", "app", "shop")
			require.Contains(t, out, "available")
			require.GreaterOrEqual(t, gets, 9)
		})
	}
}

// TestStartAndStop_sayWhenNothingChanges: starting a running application must not be reported as a start.
func TestStartAndStop_sayWhenNothingChanges(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	h.ok("apply", "-f", "testdata/shop.yaml")
	for _, step := range [][2]string{
		{"start", "unchanged"}, {"stop", "stopping"}, {"stop", "unchanged"}, {"start", "started"}, {"start", "unchanged"},
	} {
		require.Contains(t, h.ok(step[0], "app", "shop"), "application shop "+step[1]+": ")
	}
}

// TestDelete_saysWhatBecomesOfIt: deleting an application that is being removed must not be reported as a new stop.
func TestDelete_saysWhatBecomesOfIt(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	h.ok("apply", "-f", "testdata/shop.yaml")
	require.Equal(t, 2, h.work())
	require.Contains(t, h.ok("delete", "app", "shop", "--no-wait"), "application shop stopping, to be deleted: ")
	require.Contains(t, h.ok("delete", "app", "shop", "--no-wait"), "application shop still being removed: ")
	h.ok("apply", "-f", "testdata/huge.yaml") // it has no place, so there is nothing to remove
	require.Contains(t, h.ok("delete", "app", "huge"), "application huge gone: ")
}

// TestWait_endsWhenTheApplicationIsDeleted: it will never become available.
func TestWait_endsWhenTheApplicationIsDeleted(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	h.ok("apply", "-f", "testdata/huge.yaml")
	h.at(2, func() { h.ok("delete", "app", "huge", "--no-wait") })
	r := h.run("wait", "app", "huge")
	require.Equal(t, 1, r.code, r.out)
	require.Contains(t, r.err, "it was deleted meanwhile")
}

// TestOnlyTheServerSaysThatAnApplicationIsGone: a 404 of another server does not count.
func TestOnlyTheServerSaysThatAnApplicationIsGone(t *testing.T) {
	t.Parallel()
	for name, lost := range map[string]int{"from the first": 0, "while it waits": 1} { // requests before that
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHost(t)
			h.ok("apply", "-f", "testdata/shop.yaml")
			require.Equal(t, 2, h.work())
			h.ok("delete", "app", "shop", "--no-wait")
			looks := 0
			h.onPath = func(r *http.Request) int {
				if strings.HasPrefix(r.URL.Path, "/jobmanager/groups") {
					if looks++; looks > lost {
						return http.StatusNotFound
					}
				}
				return 0
			}
			r := h.run("wait", "app", "shop", "--for=deleted")
			require.Equal(t, 1, r.code, r.out)
			require.Contains(t, r.err, "in front of")
		})
	}
}

// TestATimeOfNothing: it is refused before anything is changed.
func TestATimeOfNothing(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	refused := func(line string) {
		r := h.run(strings.Fields(line)...)
		require.Equal(t, 2, r.code, "%s: %s%s", line, r.out, r.err)
		require.Contains(t, r.err, "--timeout must be more than 0")
	}
	refused("apply -f testdata/huge.yaml --wait --timeout 0s")
	refused("submit -f testdata/huge.yaml --wait --timeout 0s")
	require.Equal(t, 1, h.run("describe", "app", "huge").code)
	h.ok("apply", "-f", "testdata/huge.yaml")
	for _, change := range []string{"start", "stop", "delete"} {
		refused(change + " app huge --timeout 0s")
	}
	require.Contains(t, h.ok("describe", "app", "huge"), "Wanted:       running")
}

func TestARoleThatMayOnlyLook(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	for line, code := range map[string]int{
		"get apps": 0, "get jobs": 0, "get nodes": 0, "events": 0, "plan -f testdata/shop.yaml": 1,
		"explain -f testdata/shop.yaml": 0,
		"apply -f testdata/shop.yaml":   1,
	} {
		r := h.as(t.Context(), auth.Viewer, strings.Fields(line)...)
		require.Equal(t, code, r.code, "%s: %s", line, r.err)
	}
}
