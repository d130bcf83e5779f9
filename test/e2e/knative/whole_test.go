package knative_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/littoral-project/littoral/infra/runner/fleet"
	"github.com/littoral-project/littoral/infra/runner/prometheus"
	"github.com/littoral-project/littoral/shared/api"
	"github.com/littoral-project/littoral/shared/auth"
	"github.com/littoral-project/littoral/shared/cli"
	"github.com/littoral-project/littoral/shared/history/recorded"
	"github.com/littoral-project/littoral/shared/label"
)

// The course of what is measured. There is a value each half minute of the past, and what follows is measured as it comes.
const (
	learnt = 5 * time.Hour // of the past, that models are trained on
	every  = 30 * time.Second
	step   = 2 * time.Minute // of models
	ahead  = 15              // steps: half an hour

	linkPeriod, nodePeriod = 125 * time.Minute, 120 * time.Minute          // no rhythm of a day
	usual                  = 95_000.0                                      // kbit/s of a link that does not wane
	needs                  = 20_000.0                                      // of the channel
	filling, fillingHost   = "edge1-c", "0d5b7c0c9e7f4f5ab0f1b1b5c0a20004" // a small node, on which the ends of the channel find no room
)

// scene is a continuum whose telemetry has a course: links of which one wanes, and a node that fills.
type scene struct {
	*continuum

	begun time.Time // when the node that fills was nearly empty
	run   string    // a label of what is learnt from, since telemetry has the series of former runs too

	mu     sync.Mutex
	random *rand.Rand
	node   map[string]string // the labels of the series of the node that fills
	links  [][2]string       // that are measured
	waning [2]string
	narrow time.Time // when it no longer carries the channel
}

// used is the share of the memory of the node that fills which is in use.
func (s *scene) used(at time.Time) float64 {
	return 0.50 - 0.44*math.Cos(2*math.Pi*at.Sub(s.begun).Minutes()/nodePeriod.Minutes())
}

// carried is what a link carries, in kbit/s.
func (s *scene) carried(link [2]string, at time.Time) float64 {
	if link != s.waning {
		return usual
	}
	middle, swing := 50_000.0, 45_000.0
	fallen := math.Asin((middle-needs)/swing) / (2 * math.Pi) // the part of a period from the middle to what is too narrow
	return middle - swing*math.Sin(2*math.Pi*(fallen+at.Sub(s.narrow).Minutes()/linkPeriod.Minutes()))
}

// told is what telemetry is told in a round of the fleet. The fleet has forecasts of its own: here only models foresee.
func (s *scene) told(samples []prometheus.Sample) []prometheus.Sample {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []prometheus.Sample
	for _, one := range samples {
		if strings.HasPrefix(one.Name, "intelligence_") {
			continue
		}
		if one.Name == "node_memory_MemAvailable_bytes" && one.Labels[label.Host] == fillingHost {
			s.node = maps.Clone(one.Labels)
			s.node["run"] = s.run
			all = append(all, s.memory(one.At)...)
			continue
		}
		if one.Name != "node_memory_MemTotal_bytes" || one.Labels[label.Host] != fillingHost {
			all = append(all, one)
		}
	}
	if len(samples) > 0 {
		all = append(all, s.bandwidths(samples[0].At)...)
	}
	return all
}

const smallRAM = 2 << 30

func (s *scene) memory(at time.Time) []prometheus.Sample {
	used := s.used(at) + 0.002*s.random.NormFloat64()
	return []prometheus.Sample{
		{Name: "node_memory_MemTotal_bytes", Labels: s.node, Value: smallRAM, At: at},
		{Name: "node_memory_MemAvailable_bytes", Labels: s.node, Value: math.Round((1 - used) * smallRAM), At: at},
	}
}

func (s *scene) bandwidths(at time.Time) (all []prometheus.Sample) {
	for _, link := range s.links {
		all = append(all, prometheus.Sample{
			Name: "net_bandwidth_kbps", Labels: map[string]string{"source_node": link[0], "target_node": link[1], "run": s.run},
			Value: s.carried(link, at) + 200*s.random.NormFloat64(), At: at,
		})
	}
	return all
}

// remember tells telemetry what was in the past, until now.
func (s *scene) remember(of func(at time.Time) []prometheus.Sample) {
	s.t.Helper()
	var all []prometheus.Sample
	s.mu.Lock()
	now := time.Now()
	for at := now.Add(-learnt - 2*step); at.Before(now); at = at.Add(every) {
		all = append(all, of(at)...)
	}
	s.mu.Unlock()
	require.NoError(s.t, s.RemoteWrite(s.t.Context(), all))
}

func newScene(t *testing.T) *scene {
	plan, err := fleet.Load("testdata/ocm.json")
	require.NoError(t, err)
	edge := plan.Clusters[slices.IndexFunc(plan.Clusters, func(c *fleet.Cluster) bool { return c.Name == "edge1" })]
	small := *edge.Nodes[len(edge.Nodes)-1]
	small.Name, small.HostID, small.IP = filling, fillingHost, "10.1.0.4"
	small.Cores, small.RAM = 2, smallRAM
	edge.Nodes = append(edge.Nodes, &small)
	s := &scene{random: rand.New(rand.NewPCG(1, 2)), begun: time.Now().Add(-8 * time.Minute), run: uuid.NewString()}
	s.continuum = newContinuumOf(t, plan, s.told)
	s.mu.Lock()
	defer s.mu.Unlock()
	require.NotEmpty(t, s.node, "the fleet tells of the node")
	return s
}

// network hands in a network that the deployed generator makes up, with the names of our nodes, and returns its links.
func (s *scene) network(t *testing.T) (links [][2]string) {
	t.Helper()
	var a answer
	s.eventually("a network is made up", func() (done bool) {
		var err error
		a, err = s.try(auth.Operator, http.MethodGet, "/pdlc/generated/network.json?nodes=3&clusters=2&seed=7", "")
		return err == nil && a.status == http.StatusOK
	})
	type topology struct {
		Spec struct {
			Nodes []struct{ Name string }
			Links []struct{ Source, Target string }
		}
	}
	var generated topology
	require.NoError(t, json.Unmarshal(a.body, &generated))
	require.Len(t, generated.Spec.Nodes, len(codecoNodes))
	text := string(a.body)
	for i, node := range []string{"edge1-a", "edge1-b", "lab"} { // two of one cluster, and one of another, as in the made-up world
		text = strings.ReplaceAll(text, `"`+generated.Spec.Nodes[i].Name+`"`, `"`+node+`"`)
	}
	const path = "/swm/topologies/e2e-whole"
	require.Equal(t, 2, s.ask(auth.Operator, http.MethodPut, path, text, nil)/100)
	t.Cleanup(func() {
		s.eventually("the network is gone", func() bool { // not before what goes over it
			a, err := s.try(auth.Operator, http.MethodDelete, path, "")
			return err == nil && (a.status/100 == 2 || a.status == http.StatusNotFound)
		})
	})
	var ours topology
	require.NoError(t, json.Unmarshal([]byte(text), &ours))
	for _, l := range ours.Spec.Links {
		links = append(links, [2]string{l.Source, l.Target})
	}
	return links
}

// channel returns the state of the application's channel, and the link that it takes; none while it has no way.
func (s *scene) channel(links [][2]string) (state string, link [2]string) {
	s.t.Helper()
	var all []struct{ Status, Path string }
	require.Equal(s.t, http.StatusOK, s.ask(auth.Viewer, http.MethodGet, "/swm/channels?app="+s.id, "", &all))
	if len(all) != 1 {
		return "", link
	}
	if i := slices.IndexFunc(links, func(l [2]string) bool { return l[0]+"-"+l[1] == all[0].Path }); i >= 0 {
		link = links[i]
	}
	return all[0].Status, link
}

// runs waits until both ends of the channel run, and returns the link that it takes.
func (s *scene) runs(links [][2]string) (link [2]string) {
	s.t.Helper()
	linked := s.setting("LINKS") == "clusterlink" // then an end waits for the other where that is in another cluster
	s.eventually("the channel runs", func() bool {
		if linked {
			s.findLinksValid()
		}
		var state string
		state, link = s.channel(links)
		return state == "RUNNING" && link != [2]string{}
	})
	return link
}

type measuredLink struct {
	Source, Target, Degraded string
	BandwidthKbps            float64
	Forecasts                []struct{ Values []float64 }
}

// measured returns what the controller knows of a link, after it has looked.
func (s *scene) measured(link [2]string) measuredLink {
	s.t.Helper()
	s.tick("netma-measure")
	var all []measuredLink
	require.Equal(s.t, http.StatusOK, s.ask(auth.Viewer, http.MethodGet, "/netma/links", "", &all))
	i := slices.IndexFunc(all, func(l measuredLink) bool { return l.Source == link[0] && l.Target == link[1] })
	require.GreaterOrEqual(s.t, i, 0, "%v is not measured", link)
	return all[i]
}

// learn trains a model on the past of a query, and publishes what it foresees of the queried series, for which there may be more of
// them, as a metric.
func (s *scene) learn(model, query, metric, of string) {
	s.t.Helper()
	call := func(path string, body map[string]any, into any) int {
		text, err := json.Marshal(body)
		require.NoError(s.t, err)
		return s.ask(auth.Operator, http.MethodPost, "/metricsexport/"+path, string(text), into)
	}
	start := time.Now()
	var training struct {
		ID         string `json:"training_id"`
		State, Why string
		Tag        string         `json:"Trained Model"`
		Results    map[string]any `json:"Results with test dataset"`
	}
	require.Equal(s.t, http.StatusAccepted, call("train", map[string]any{
		"model_name": model, "model_type": "ridge", "telemetry_metric": query, "horizon": ahead,
		"step_in_seconds": step.Seconds(), "window_in_seconds": learnt.Seconds(),
	}, &training))
	s.eventually("the model is trained", func() bool {
		return s.ask(auth.Viewer, http.MethodGet, "/metricsexport/trainings/"+training.ID, "", &training) == http.StatusOK &&
			training.State != "Waiting"
	})
	require.Equal(s.t, "Finished", training.State, training.Why)
	s.t.Cleanup(func() { call("remove_model", map[string]any{"model_tag": training.Tag}, nil) })
	s.t.Logf("%s trained %s after it was asked for: %v", training.Tag, time.Since(start).Round(time.Second/10), training.Results)
	require.Equal(s.t, http.StatusOK, call("create_model_metric", map[string]any{
		"metric_name": metric, "type": 2, "model_name": model, "telemetry_metric": of, "step_in_seconds": step.Seconds(), "steps_ahead": ahead,
	}, nil))
	s.t.Cleanup(func() { call("stop_model_metrics", map[string]any{"metric_names": []string{metric}}, nil) })
	s.tick("metricsexport-compute")
}

// forecast is the share of its memory, in percent, that the taxonomy says a node of edge1 will use.
func (s *scene) forecast(node string) float64 {
	a, err := s.try(auth.Viewer, http.MethodGet, "/aggregator/", "")
	if err != nil || a.status != http.StatusOK {
		return 0
	}
	var taxonomy struct {
		Cluster map[string]struct {
			Node map[string]struct {
				Name       string
				Forecasted struct {
					Memory float64 `json:"memoryUtilizationPrediction"`
				} `json:"forecastedMetrics"`
			}
		}
	}
	require.NoError(s.t, json.Unmarshal(a.body, &taxonomy))
	for _, cluster := range taxonomy.Cluster {
		for _, n := range cluster.Node {
			if n.Name == node {
				return n.Forecasted.Memory
			}
		}
	}
	return 0
}

// useForecasts changes the setting. What plans anew has read the former one if it runs, so it starts again.
func (s *scene) useForecasts(used string) {
	s.t.Helper()
	require.NoError(s.t, s.Set("USE_FORECAST", used))
	s.renew("swm-replan")
}

// why are the decisions about an application that begin their reason like that.
func (s *scene) why(id, reason string) (all []string) {
	s.t.Helper()
	var entries []struct{ Data struct{ Because string } }
	path := "/jobmanager/history?event=" + recorded.ApplicationPlaced + "&app=" + id
	require.Equal(s.t, http.StatusOK, s.ask(auth.Viewer, http.MethodGet, path, "", &entries))
	for _, e := range entries {
		if strings.HasPrefix(e.Data.Because, reason) {
			all = append(all, e.Data.Because)
		}
	}
	return all
}

// describe is what the command line says of an application.
func (s *scene) describe(name string) string {
	s.t.Helper()
	token, err := s.Token(auth.Viewer)
	require.NoError(s.t, err)
	file := filepath.Join(s.t.TempDir(), "token")
	require.NoError(s.t, os.WriteFile(file, []byte(token), 0o600))
	env := map[string]string{"LITTORAL_SERVER": s.Base, "LITTORAL_TOKEN_FILE": file}
	var out bytes.Buffer
	shell := cli.Shell{Stdout: &out, Stderr: &out, Getenv: func(name string) string { return env[name] }}
	require.Zero(s.t, shell.Run(s.t.Context(), []string{"describe", "app", name}), "%s", &out)
	return out.String()
}

// console opens the page of the application that says why it is where it is, and requires that it shows the texts. Where there is no
// browser it does nothing.
func (s *scene) console(shot string, texts ...string) {
	s.t.Helper()
	modules, err := filepath.Abs(filepath.Join(here, "bin", "tools", "browser"))
	require.NoError(s.t, err)
	if _, err := os.Stat(filepath.Join(modules, "node_modules")); err != nil {
		s.t.Log("there is no browser to drive: make e2e-console installs what it takes")
		return
	}
	if _, err := exec.LookPath("chromium"); err != nil {
		s.t.Log("there is no chromium")
		return
	}
	token, err := s.Token(auth.Viewer)
	require.NoError(s.t, err)
	list, err := json.Marshal(texts)
	require.NoError(s.t, err)
	cmd := exec.CommandContext(s.t.Context(), "node", filepath.Join(here, "test", "e2e", "console", "why.mjs"))
	cmd.Env = append(os.Environ(), "LITTORAL_SERVER="+s.Base, "LITTORAL_MODULES="+modules, "LITTORAL_TOKEN="+token,
		"APPLICATION="+s.id, "TEXTS="+string(list), "SHOT="+filepath.Join(here, "bin", shot))
	out, err := cmd.CombinedOutput()
	require.NoError(s.t, err, "%s", out)
	s.t.Logf("the console shows %q", texts)
}

// camera has two ends, of which no node has room for both, and a channel from one to the other.
func (s *scene) camera() string {
	return fmt.Sprintf(`apiVersion: codeco.he-codeco.eu/v1alpha1
kind: CodecoApp
metadata: {name: e2e-whole, namespace: e2e-whole}
spec:
  appName: e2e-whole
  securityClass: None
  performanceProfile: Greenness
  codecoapp-msspec:
    - serviceName: front
      podspec:
        terminationGracePeriodSeconds: 1
        containers: [{name: c, image: "%[1]s", resources: {requests: {cpu: 20m, memory: 4Gi}}}]
      serviceChannels:
        - channelName: frames
          otherService: {serviceName: back, appName: e2e-whole, port: 9000}
          advancedChannelSettings: {minBandwidth: 20M, maxDelay: 50e-3}
    - serviceName: back
      podspec:
        terminationGracePeriodSeconds: 1
        containers: [{name: c, image: "%[1]s", resources: {requests: {cpu: 20m, memory: 4Gi}}}]
`, s.image)
}

// ledger is small enough for the node that fills.
func (s *scene) ledger() string {
	return fmt.Sprintf(`apiVersion: codeco.he-codeco.eu/v1alpha1
kind: CodecoApp
metadata: {name: e2e-ledger, namespace: e2e-whole}
spec:
  appName: e2e-ledger
  securityClass: None
  performanceProfile: Greenness
  codecoapp-msspec:
    - serviceName: book
      podspec:
        terminationGracePeriodSeconds: 1
        containers: [{name: c, image: "%s", resources: {requests: {cpu: 20m, memory: 512Mi}}}]
`, s.image)
}

// known waits until an object of Kubernetes is an application here.
func (s *scene) known(name string) {
	s.t.Helper()
	s.eventually(name+" is an application", func() bool {
		return s.found(name) || s.nudge("acm-app-apply") && false // the watch begins again with each new namespace
	})
}

// TestForecastsMoveAGroupBeforeItSuffers is the whole of CODECO II on a cluster: a made-up network, an application with
// "performanceProfile: Greenness" by kubectl, telemetry in the cluster's Prometheus by which a link will soon be too narrow and a node
// full, models of it that the deployed functions train and publish. Where forecasts are used, the application is planned again while
// the link still carries it, and another one leaves the node while it still has room; history, the command line and the console say
// why. Where they are not, both stay. It needs "make install-codeco" and the server of "make e2e-s3".
func TestForecastsMoveAGroupBeforeItSuffers(t *testing.T) {
	s := newScene(t)
	if out, err := s.Kubectl("get", "apiserversource", "acm-app-apply"); err != nil {
		t.Skipf("CODECO is not installed (make install-codeco): %s", out)
	}
	s.namespace = "default"
	for _, cluster := range []string{"cluster1", "edge1"} {
		if _, err := s.in(cluster, "get", "crd", "exports.clusterlink.net"); err != nil && s.setting("LINKS") == "clusterlink" {
			s.change("LINKS", "none") // nobody can say of links that they are valid
		}
	}
	s.keepObjects(t)
	s.takeThePast(learnt + time.Hour)
	s.change("METRICS_PUSH_URL", s.setting("PROMETHEUS_ADDRESS")+"/api/v1/otlp/v1/metrics")
	s.change("USE_FORECAST", "false")
	s.asleep() // no function has the former settings
	s.remember(s.memory)

	kubectl := s.kubectlIn("e2e-whole")
	exec.Command("kubectl", "create", "namespace", "e2e-whole").Run() //nolint:errcheck // it may be there
	links := s.network(t)
	camera, ledger := s.camera(), s.ledger()
	t.Cleanup(func() {
		kubectl(camera+"---\n"+ledger, "delete", "--ignore-not-found", "--timeout=5m", "-f", "-")
		kubectl("", "delete", "namespace", "e2e-whole", "--wait=false")
	})
	start := time.Now()
	kubectl(camera, "apply", "-f", "-")
	s.known("e2e-whole")
	first := s.runs(links)
	t.Logf("the channel runs over the link from %s to %s %s after kubectl apply", first[0], first[1], time.Since(start).Round(time.Second/10))

	// Its link wanes, and will be too narrow in ten minutes.
	s.mu.Lock()
	s.links, s.waning, s.narrow = links, first, time.Now().Add(10*time.Minute)
	s.mu.Unlock()
	s.remember(s.bandwidths)
	s.learn("e2e-links", fmt.Sprintf("net_bandwidth_kbps{run=%q, source_node=%q, target_node=%q}", s.run, first[0], first[1]),
		"net_bandwidth_kbps_forecast", fmt.Sprintf("net_bandwidth_kbps{run=%q}", s.run))
	s.tick("pdlc-score")
	link := s.measured(first)
	require.Len(t, link.Forecasts, 1)
	foreseen := slices.Min(link.Forecasts[0].Values)
	t.Logf("the link carries %.0f kbit/s, and %.0f are foreseen", link.BandwidthKbps, foreseen)
	require.Greater(t, link.BandwidthKbps, needs)
	require.Less(t, foreseen, needs)

	s.tick("swm-replan")
	state, now := s.channel(links)
	require.Equal(t, first, now, "forecasts are not used")
	require.Equal(t, "RUNNING", state)
	require.Empty(t, s.why(s.id, "channel frames will be"))
	s.console("whole-before.png", "Channels", "frames", "RUNNING", first[0]+"-"+first[1], "foreseen", "profile")

	s.useForecasts("true")
	start = time.Now()
	s.tick("swm-replan")
	var second [2]string
	s.eventually("the channel has another way", func() bool {
		_, second = s.channel(links)
		return second != first && second != [2]string{}
	})
	t.Logf("planned anew over the link from %s to %s, %s before %s to %s is too narrow", second[0], second[1],
		time.Until(s.narrow).Round(time.Second), first[0], first[1])
	require.Equal(t, second, s.runs(links))
	t.Logf("it runs there %s after it was planned", time.Since(start).Round(time.Second/10))
	link = s.measured(first)
	require.Greater(t, link.BandwidthKbps, needs, "the link still carries the channel that has left it")
	because := s.why(s.id, "channel frames will be out of QoS: the link from "+first[0]+" to "+first[1]+" carries")
	require.Len(t, because, 1)
	t.Logf("%s", because[0])
	require.Contains(t, strings.Join(strings.Fields(s.describe("e2e-whole")), " "), because[0])
	s.console("whole-after.png", "Channels", "frames", "RUNNING", second[0]+"-"+second[1], "channel frames will be out of QoS", "profile")

	// Another application is alone on a node that fills.
	s.useForecasts("false")
	order := func(how string) {
		for _, node := range []string{"cluster1/lab", "edge1/edge1-a", "edge1/edge1-b"} {
			s.eventually(node+": "+how, func() bool {
				a, err := s.try(auth.Operator, http.MethodPut, "/matchmaker/nodes/"+node+"/"+how, "")
				return err == nil && (a.status == http.StatusOK || how == "uncordon" && a.status == http.StatusNotFound)
			})
		}
	}
	t.Cleanup(func() { order("uncordon") })
	order("cordon")
	kubectl(ledger, "apply", "-f", "-")
	s.known("e2e-ledger")
	s.available(s.id)
	require.Equal(t, filling, s.jobs(s.id)[0].Targets.Node)
	order("uncordon")
	query := fmt.Sprintf("100 * (1 - node_memory_MemAvailable_bytes{run=%[1]q} / node_memory_MemTotal_bytes{run=%[1]q})", s.run)
	s.learn("e2e-memory", query, "intelligence_node_memory_utilization_prediction", query)
	s.eventually("the taxonomy has the forecast", func() bool {
		s.nudge("aggregator-tick")
		return s.forecast(filling) > 77
	})
	t.Logf("%.0f %% of the memory of %s is in use, and %.0f %% are foreseen", 100*s.used(time.Now()), filling, s.forecast(filling))
	s.tick("swm-replan")
	require.Equal(t, filling, s.jobs(s.id)[0].Targets.Node, "forecasts are not used")
	require.Empty(t, s.why(s.id, "node "))

	s.useForecasts("true")
	s.nudge("aggregator-tick")
	s.tick("swm-replan")
	s.eventually("the application has left the node that fills", func() bool {
		jobs := s.jobs(s.id)
		return len(jobs) > 0 && !slices.ContainsFunc(jobs, func(j api.Job) bool { return j.Targets.Node == filling })
	})
	require.Less(t, s.used(time.Now()), 0.75, "it still had room there")
	s.available(s.id)
	because = s.why(s.id, "node edge1/"+filling+" will be full: the forecast of")
	require.Len(t, because, 1)
	t.Logf("%s", because[0])
	require.Contains(t, strings.Join(strings.Fields(s.describe("e2e-ledger")), " "), because[0])

	// What was foreseen comes, and nobody is there any more.
	require.True(t, s.found("e2e-whole"))
	require.Eventually(t, func() bool {
		state, _ := s.channel(links)
		require.NotEqual(t, "OOQOS", state)
		link = s.measured(first)
		return link.BandwidthKbps < needs
	}, time.Until(s.narrow)+patience, 10*time.Second, "the link gets narrow")
	s.tick("swm-replan")
	require.Empty(t, link.Degraded)
	require.Equal(t, second, s.runs(links))
	require.Empty(t, s.why(s.id, "channel frames is out of QoS"))
	t.Logf("the link carries %.0f kbit/s now, and no channel was ever out of QoS", link.BandwidthKbps)
}
