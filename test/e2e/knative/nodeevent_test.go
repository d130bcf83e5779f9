package knative_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/littoral-project/littoral/infra/runner/fleet"
	"github.com/littoral-project/littoral/shared/api"
	"github.com/littoral-project/littoral/shared/auth"
	"github.com/littoral-project/littoral/shared/events"
	"github.com/littoral-project/littoral/shared/history/recorded"
	"github.com/littoral-project/littoral/shared/job"
	"github.com/littoral-project/littoral/shared/policy/template"
	"github.com/littoral-project/littoral/shared/topology"
)

const (
	staleAfter = time.Minute     // the default of STALE_AFTER
	clock      = 5 * time.Minute // the schedule of the clocks
)

// stage is what was reached, and when.
type stage struct {
	what string
	at   time.Time
}

// tell lists stages with the seconds from the first one, and from the one before. Each must have been reached, and none before the
// one before it but by what clocks of programs differ.
func tell(t *testing.T, all []stage) {
	t.Helper()
	var text strings.Builder
	for i, s := range all {
		before := all[max(i-1, 0)]
		require.False(t, s.at.IsZero(), "%s", s.what)
		require.GreaterOrEqual(t, s.at.Sub(before.at), -time.Second, "%s, after %s", s.what, before.what)
		fmt.Fprintf(&text, "\n%8.2f s %+8.2f s  %s", s.at.Sub(all[0].at).Seconds(), s.at.Sub(before.at).Seconds(), s.what)
	}
	t.Logf("seconds since the event, and since the line before:%s", &text)
}

// The policies of the descriptor.
const (
	lostTelemetry = "      - {redeployOnLostTelemetry: 30s}\n"
	trust         = "      - {name: trust, fromTemplate: app-sca-score, variables: {threshold: 1}, remediation: reallocate}\n"
)

// with is a descriptor in which something is replaced.
func with(t testing.TB, descriptor, what, by string) string {
	t.Helper()
	require.Contains(t, descriptor, what)
	return strings.Replace(descriptor, what, by, 1)
}

// onlyTheLeaf begins with the node lab of cluster1, of which the leaf exporter alone tells, and edge1, whose nodes are closed.
// cluster1 has the id by which other tests tell of it, so that nothing has to be forgotten first. labels select the leaf's series.
func onlyTheLeaf(t *testing.T, arguments ...string) (c *continuum, labels string) {
	plan, err := fleet.Load("testdata/ocm.json")
	require.NoError(t, err)
	i := slices.IndexFunc(plan.Clusters, func(p *fleet.Cluster) bool { return p.Name == "cluster1" })
	require.GreaterOrEqual(t, i, 0)
	id := plan.Clusters[i].UUID
	c = newContinuum(t, "edge1")
	c.startLeaf(t, append(arguments, "--cluster-id="+id)...)
	c.knownByTheLeaf(id)
	c.closeEdge()
	c.seen()
	return c, fmt.Sprintf(`icos_cluster_id=%q,job="leaf"`, id)
}

// closeEdge lets nothing go to edge1.
func (c *continuum) closeEdge() {
	c.t.Helper()
	for _, node := range []string{"edge1/edge1-a", "edge1/edge1-b"} {
		require.NoError(c.t, c.fleet.Drain(node))
	}
}

// openEdge lets applications go to edge1-a.
func (c *continuum) openEdge() {
	c.t.Helper()
	require.NoError(c.t, c.fleet.Restore("edge1/edge1-a"))
	c.seen()
}

// begin submits the application, which then runs on the node lab. It asks for no cpu: of a real machine the leaf also tells what
// others use there, which may be all.
func (c *continuum) begin(descriptor string) {
	c.t.Helper()
	descriptor = with(c.t, descriptor, "cpu: 50m, ", "")
	var g api.Application
	require.Equal(c.t, http.StatusCreated, c.ask(auth.Operator, http.MethodPost, "/jobmanager/groups", descriptor, &g,
		"Idempotency-Key", uuid.NewString()))
	c.id, c.namespace = g.ID, g.Namespace
	c.t.Cleanup(func() { c.remove(g.ID) })
	c.runsAt("cluster1")
}

// tellsOfIt waits until Prometheus knows from the leaf that the application runs on the node.
func (c *continuum) tellsOfIt(m *monitoring) {
	c.t.Helper()
	c.eventually("the leaf tells of the application", func() bool {
		return len(m.query(fmt.Sprintf("tlum_workload_info{icos_app_instance=%q,status=\"running\"}", c.id))) == 1
	})
}

// happened is what history has since then of that kind; app may be empty.
func (c *continuum) happened(since time.Time, app string, events ...string) []api.Entry {
	c.t.Helper()
	query := url.Values{"limit": {"500"}, "event": {strings.Join(events, ",")}}
	if app != "" {
		query.Set("app", app)
	}
	var all []api.Entry
	require.Equal(c.t, http.StatusOK, c.ask(auth.Viewer, http.MethodGet, "/jobmanager/history?"+query.Encode(), "", &all))
	return slices.DeleteFunc(all, func(e api.Entry) bool { return e.At.Before(since) })
}

// moved waits until the application has left cluster1 since then and is available in edge1, and returns the stages of that.
// Nobody makes a function run meanwhile: only clocks, alerts and events do. Reading history wakes none that takes part.
func (c *continuum) moved(since time.Time) (stages []stage) {
	c.t.Helper()
	steps := []struct {
		move job.Move
		what string
	}{
		{job.Displace, "displaced"},
		{job.Place, "new target decided"},
		{job.Promote, "taken by the deployment manager"},
		{job.Finish, "available in edge1"},
	}
	var names []string
	for _, s := range steps {
		names = append(names, s.move.Event())
	}
	require.Eventually(c.t, func() bool {
		stages = nil
		all, id := c.happened(since, c.id, names...), ""
		for _, e := range all { // of the job that moves, not of the one that removes what it leaves behind
			if len(stages) < len(steps) && e.Event == names[len(stages)] && (id == "" || e.JobID == id) {
				stages, id = append(stages, stage{steps[len(stages)].what, e.At}), e.JobID
			}
		}
		return len(stages) == len(steps)
	}, 3*patience, time.Second, "it is available elsewhere")
	require.Equal(c.t, "edge1", c.runsAt("edge1").Targets.Cluster)
	return stages
}

// changed is when the topology was seen to have changed on the node lab in that way, since then; zero if it was not.
func (c *continuum) changed(since time.Time, change string) time.Time {
	c.t.Helper()
	for _, e := range c.happened(since, "", recorded.TopologyChanged) {
		var changes []events.TopologyChange
		require.NoError(c.t, json.Unmarshal(e.Data, &changes))
		if slices.ContainsFunc(changes, func(of events.TopologyChange) bool {
			return of.Cluster == "cluster1" && of.Node == "lab" && of.Change == change
		}) {
			return e.At
		}
	}
	return time.Time{}
}

// violated is when the policy was judged to be violated since then.
func (c *continuum) violated(since time.Time) time.Time {
	c.t.Helper()
	all := c.happened(since, c.id, recorded.PolicyViolated)
	require.NotEmpty(c.t, all, "a policy was violated")
	return all[0].At
}

// clocks waits until the clocks tick: they rest, at the 31st of February, while there is no application.
func (c *continuum) clocks() {
	c.t.Helper()
	for _, name := range []string{"aggregator-tick", "jobmanager-displace"} {
		c.eventually("the clock of "+name+" ticks", func() bool {
			schedule := c.kubectl("get", "pingsource", name, "-o", "jsonpath={.spec.schedule}")
			return schedule != "" && schedule != "0 0 31 2 *"
		})
	}
}

// firing is the series of an alert while it fires.
func firing(name, more string) string {
	return fmt.Sprintf(`ALERTS{alertname=%q,alertstate="firing"%s}`, name, more)
}

// The names of rule files.
const (
	fileOfNodes    = "littoral-topology.yml"
	fileOfPolicies = "littoral-policies.yml"
)

// silence is an application on the node lab, of which only the leaf exporter there tells.
type silence struct {
	*continuum

	m    *monitoring
	node string // the series that says that the node is there
	host string // its id
}

func newSilence(t *testing.T) *silence {
	m := newWorld(t).monitoring(t)
	c, leaf := onlyTheLeaf(t)
	s := &silence{continuum: c, m: m, node: "tlum_host_info{" + leaf + "}"}
	require.Empty(t, s.setting("STALE_AFTER"), "it is measured with the default")
	found := m.query(s.node)
	require.Len(t, found, 1)
	s.host = found[0].Metric["icos_host_id"]
	s.begin(with(t, s.descriptor("silent"), trust, ""))
	s.tellsOfIt(m)
	return s
}

// measure ends the leaf, waits until the application is available in edge1, and logs the stages from the last sample on; known are
// those between it and the move.
func (s *silence) measure(t *testing.T, known func(last time.Time) []stage) {
	t.Helper()
	ended := time.Now()
	s.stopLeaf()
	moved := s.moved(ended)
	last := s.m.last(s.node)
	t.Logf("the last sample is of %.2f s before the leaf was told to end", ended.Sub(last).Seconds())
	tell(t, slices.Concat([]stage{{"the last sample", last}}, known(last), moved))
	s.gone("cluster1")
}

// quiet waits until no clock ticks while something else is measured.
func (s *silence) quiet() {
	s.t.Helper()
	s.asleep()
	s.eventually("no clock ticks in the next three minutes", func() bool {
		now := time.Now()
		return now.Truncate(clock).Add(clock).Sub(now) > 3*time.Minute
	})
}

// TestASilentNodeIsSeenByTheClock: the leaf exporter of the node on which an application runs ends, and the application is available
// in the other cluster. Prometheus evaluates no rule, so that it takes until a clock ticks.
func TestASilentNodeIsSeenByTheClock(t *testing.T) {
	s := newSilence(t)
	evaluated, err := s.m.groups()
	require.NoError(t, err)
	require.NotEmpty(t, evaluated)
	require.NotContains(t, evaluated, "littoral-topology", "somebody else has alerts about nodes")
	s.clocks()
	s.openEdge()
	s.asleep()
	s.measure(t, func(last time.Time) []stage {
		known := s.changed(last, topology.Lost)
		due, tick := last.Add(staleAfter), known.Truncate(clock)
		if tick.Before(due) { // the node became silent while the function started
			tick = due
		}
		t.Logf("%.2f s are the wait for a clock, of at most %.0f", tick.Sub(due).Seconds(), clock.Seconds())
		return []stage{{"STALE_AFTER is over", due}, {"the clock ticks", tick}, {"the topology has changed: lost", known}}
	})
}

// TestASilentNodeIsSeenByItsAlert: the same, where Prometheus and Alertmanager tell of nodes that are silent.
func TestASilentNodeIsSeenByItsAlert(t *testing.T) {
	s := newSilence(t)
	s.m.alert(map[string]string{fileOfNodes: s.m.rulesOfNodes()})
	s.openEdge()
	s.quiet()
	s.measure(t, func(last time.Time) []stage {
		known := s.changed(last, topology.Lost)
		require.True(t, !known.Truncate(clock).After(last.Add(staleAfter)), "no clock has ticked since the node counts as silent")
		return []stage{
			{"STALE_AFTER is over", last.Add(staleAfter)},
			{"LittoralNodeSilent fires", s.m.first(firing("LittoralNodeSilent", fmt.Sprintf(",icos_host_id=%q", s.host)), "== 1", last)},
			{"the topology has changed: lost", known},
		}
	})
}

// TestASilentNodeIsSeenByThePolicy: the same, where the rule of the application's own policy is evaluated too, which allows for
// half of STALE_AFTER.
func TestASilentNodeIsSeenByThePolicy(t *testing.T) {
	s := newSilence(t)
	p := s.enforced(s.id, template.LostTelemetry)
	s.m.alert(map[string]string{fileOfNodes: s.m.rulesOfNodes(), fileOfPolicies: s.m.rulesOfPolicies()})
	s.openEdge()
	s.quiet()
	s.measure(t, func(last time.Time) []stage {
		return []stage{
			{"the 30 s of redeployOnLostTelemetry are over", last.Add(30 * time.Second)},
			{"the rule of the policy fires", s.m.first(firing(p.Name+":rule-0", ""), "== 1", last)},
			{"the policy is violated", s.violated(last)},
		}
	})
}

// TestADeviceGoes: the device that an application requires disappears from the node's /dev. The leaf exporter pushes that, the
// rule of the policy that follows from the requirement fires, and the application is available in the other cluster. No
// clock takes part. The stages are logged.
//
// The node lab is this machine, as far as files go, so a folder made here stands for its /dev.
func TestADeviceGoes(t *testing.T) {
	const camera = "squat.ai/video"
	m := newWorld(t).monitoring(t)
	dev := t.TempDir()
	file := filepath.Join(dev, "video0")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	c, leaf := onlyTheLeaf(t, "--path-dev=/host"+dev)
	require.NoError(t, c.fleet.Set("edge1/edge1-a", map[string]string{"device:" + camera: topology.DeviceAvailable}))
	c.seen()
	device := fmt.Sprintf("node_mounted{%s,resource_path=%q}", leaf, camera)
	require.Len(t, m.query(device+" == 1"), 1, "the leaf sees the folder of the test as the node's /dev")

	text := with(t, c.descriptor("device"), "    policies:\n"+lostTelemetry+trust, "")
	c.begin(with(t, text, "memory: 32Mi}", "memory: 32Mi, devices: "+camera+"}"))
	p := c.enforced(c.id, template.DeviceAvailable)
	m.alert(map[string]string{fileOfNodes: m.rulesOfNodes(), fileOfPolicies: m.rulesOfPolicies()})

	c.tellsOfIt(m)
	c.openEdge()
	c.asleep()
	gone := time.Now()
	require.NoError(t, os.Remove(file))
	moved := c.moved(gone)
	tell(t, slices.Concat([]stage{
		{"the device is gone", gone},
		{"pushed by the leaf", m.first(device, "== -1", gone)},
		{"the rule of the policy fires", m.first(firing(p.Name+":rule-0", ""), "== 1", gone)},
		{"the policy is violated", c.violated(gone)},
	}, moved))
	c.gone("cluster1")
}
