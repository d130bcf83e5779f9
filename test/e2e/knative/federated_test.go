package knative_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"math"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/littoral-project/littoral/functions"
	"github.com/littoral-project/littoral/infra/runner/host"
	"github.com/littoral-project/littoral/infra/runner/issuer"
	"github.com/littoral-project/littoral/infra/runner/prometheus"
	"github.com/littoral-project/littoral/infra/runner/prometheus/prometheustest"
	"github.com/littoral-project/littoral/knative"
	"github.com/littoral-project/littoral/shared/auth"
	"github.com/littoral-project/littoral/shared/peer"
	"github.com/littoral-project/littoral/shared/settings"
	"github.com/littoral-project/littoral/test/clocks"
)

// said is a call between two controllers, and its answer.
type said struct{ method, path, asked, answered string }

// line passes calls of one controller on to another, and keeps all that is said.
type line struct {
	through http.RoundTripper

	mu  sync.Mutex
	all []said
}

// RoundTrip implements http.RoundTripper.
func (l *line) RoundTrip(r *http.Request) (*http.Response, error) {
	var asked []byte
	if r.Body != nil {
		var err error
		if asked, err = io.ReadAll(r.Body); err != nil {
			return nil, err
		}
		r.Body = io.NopCloser(bytes.NewReader(asked))
	}
	resp, err := l.through.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	answered, err := io.ReadAll(resp.Body)
	_ = resp.Body.Close()
	resp.Body = io.NopCloser(bytes.NewReader(answered))
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all = append(l.all, said{r.Method, r.URL.Path, string(asked), string(answered)})
	return resp, err
}

// open listens at an address, and leads to the base URL.
func (l *line) open(t *testing.T, at, to string) net.Addr {
	t.Helper()
	target, err := url.Parse(to)
	require.NoError(t, err)
	listener, err := net.Listen("tcp", net.JoinHostPort(at, "0"))
	require.NoError(t, err)
	server := &httptest.Server{Listener: listener, Config: &http.Server{Handler: &httputil.ReverseProxy{
		Transport: l,
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(target)
			r.Out.Host = target.Host
			r.Out.Header.Del("Accept-Encoding") // what is said is to be read
		},
		ErrorLog: slog.NewLogLogger(slog.DiscardHandler, 0),
	}}}
	server.Start()
	t.Cleanup(server.Close)
	return listener.Addr()
}

// update is what a participant sent in a round.
type update struct {
	Round   int
	Change  []float64
	Windows int
}

// updates are those that went over the line and were taken.
func (l *line) updates(t *testing.T) (all []update) {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, s := range l.all {
		if s.method == http.MethodPost && strings.HasSuffix(s.path, "/updates") && s.answered == "" {
			var u update
			fields := map[string]any{}
			require.NoError(t, json.Unmarshal([]byte(s.asked), &u))
			require.NoError(t, json.Unmarshal([]byte(s.asked), &fields))
			require.Len(t, fields, 3, "a round, a change and a number of windows: %s", s.asked)
			all = append(all, u)
		}
	}
	return all
}

var numbers = regexp.MustCompile(`-?\d+(\.\d+)?([eE][-+]?\d+)?`)

// keptBack requires that updates of the size went over the line, and that none of the samples did, in either direction.
func (l *line) keptBack(t *testing.T, weights int, samples []float64) {
	t.Helper()
	require.Greater(t, len(samples), 100)
	all := l.updates(t)
	require.NotEmpty(t, all)
	for _, u := range all {
		require.Len(t, u.Change, weights, "as many numbers as there are weights, and no more")
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	var text strings.Builder
	for _, s := range l.all {
		text.WriteString(s.asked + "\n" + s.answered + "\n")
	}
	told := map[float64]bool{}
	for _, number := range numbers.FindAllString(text.String(), -1) {
		if v, err := strconv.ParseFloat(number, 64); err == nil {
			told[v] = true
		}
	}
	for _, v := range samples {
		require.False(t, told[v], "a sample has left its cluster: %v", v)
		if sample := strconv.FormatFloat(v, 'f', -1, 64); strings.Contains(sample, ".") {
			require.NotContains(t, text.String(), sample[:min(len(sample), 9)], "a sample has left its cluster")
		}
	}
	t.Logf("%d calls with %d bytes, among them %d updates of %d numbers: none of %d samples", len(l.all), text.Len(), len(all), weights, len(samples))
}

// ofEdge is a load of edge1 that its controller alone knows, and what it has measured.
const ofEdge = "edge1_power_watts"

// edgeController is a controller of edge1 beside its control plane, which runs no containers: a laptop host that pods reach.
type edgeController struct {
	*host.Host

	home    string
	samples []float64 // that its telemetry has
}

// startEdge starts the controller of edge1 at an address of this machine. It takes part in rounds of the cluster, whose base URL and
// secret for controllers are given, and in those of its own.
func startEdge(t *testing.T, at, cluster, secret string) *edgeController {
	t.Helper()
	dir, err := os.MkdirTemp("", "littoral-edge-") // which a Postgres under another account reaches
	require.NoError(t, err)
	require.NoError(t, os.Chmod(dir, 0o755))
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(dir)) })
	e := &edgeController{home: dir}

	telemetry := prometheustest.With(t, prometheus.Options{Retention: 24 * time.Hour})
	random := rand.New(rand.NewPCG(3, 4))
	now := time.Now().Truncate(5 * time.Second)
	var past []prometheus.Sample
	for i := -2500; i < 1000; i++ { // the later ones come while the test runs
		at := now.Add(time.Duration(i) * 5 * time.Second)
		v := 5000 + 321.5*math.Cos(float64(at.Unix())/300) + random.NormFloat64()
		past, e.samples = append(past, prometheus.Sample{Name: ofEdge, Labels: map[string]string{"node": "edge1-a"}, Value: v, At: at}),
			append(e.samples, v)
	}
	require.NoError(t, telemetry.Append(t.Context(), past))
	server := httptest.NewServer(telemetry.Handler())
	t.Cleanup(server.Close)

	peers, err := json.Marshal([]peer.Peer{{
		Name: ofCluster, Address: cluster, Subject: "controller",
		TokenURL: cluster + "/oidc/token", ClientID: string(auth.Controller), Secret: secret,
	}})
	require.NoError(t, err)
	e.Host, err = host.Start(t.Context(), host.Options{
		Addr: net.JoinHostPort(at, "0"), Home: dir, Fleet: host.FleetNone, Registry: functions.Registry,
		Files: map[string]fs.FS{"/knative": knative.Files, "/triggers": clocks.EachSecond(t, "pdlc-participate", "pdlc-end-rounds")}, Log: slog.New(slog.DiscardHandler),
		Settings: settings.Map(map[string]string{
			"CONTROLLER_NAME": "edge1", "CONTROLLER_PEERS": string(peers), "CONTROLLER_TIMEOUT": "30s", "PROMETHEUS_ADDRESS": server.URL,
			"FEDERATIONS": fmt.Sprintf(`[{"peer": %q, "name": %q, "query": %q}, {"peer": "edge1", "name": %q, "query": %q}]`,
				ofCluster, shared, ofEdge, another, ofEdge),
		}),
	})
	require.NoError(t, err)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		require.NoError(t, e.Stop(ctx))
	})
	return e
}

// Names of the cluster's controller, and of the federations: one at the cluster, and one at edge1.
const ofCluster, shared, another = "e2e-cluster", "e2e-shared", "e2e-another"

// ask calls the controller of edge1, and returns the status.
func (e *edgeController) ask(t *testing.T, role auth.Role, method, path, body string, into any) int {
	t.Helper()
	token, err := os.ReadFile(e.TokenFile(string(role)))
	require.NoError(t, err)
	r, err := http.NewRequestWithContext(t.Context(), method, e.URL()+path, strings.NewReader(body))
	require.NoError(t, err)
	r.Header.Set("Authorization", "Bearer "+strings.TrimSpace(string(token)))
	resp, err := http.DefaultClient.Do(r)
	require.NoError(t, err)
	defer func() { _ = resp.Body.Close() }()
	answer, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	if into != nil && resp.StatusCode/100 == 2 {
		require.NoError(t, json.Unmarshal(answer, into), "%s", answer)
	}
	return resp.StatusCode
}

// inCluster is a series that the cluster's Prometheus measures of itself, and its query.
const inCluster = `process_resident_memory_bytes{job="prometheus"}`

// measuredInCluster are the samples of it in the last hours.
func (w *world) measuredInCluster(t *testing.T) (samples []float64) {
	t.Helper()
	resp, err := w.Inside().Get(w.setting("PROMETHEUS_ADDRESS") + "/api/v1/query?query=" + url.QueryEscape(inCluster+"[3h]"))
	require.NoError(t, err)
	defer func() { _ = resp.Body.Close() }()
	var answer struct {
		Data struct {
			Result []struct{ Values [][2]any }
		}
	}
	require.NoError(t, json.NewDecoder(resp.Body).Decode(&answer))
	for _, series := range answer.Data.Result {
		for _, v := range series.Values {
			value, err := strconv.ParseFloat(v[1].(string), 64)
			require.NoError(t, err)
			samples = append(samples, value)
		}
	}
	slices.Sort(samples)
	return slices.Compact(samples)
}

type federationState struct {
	Round, Heard int
	Weights      []float64
	Refused      []any
}

// TestClustersTrainTogether: rounds of federated averaging between the cluster's functions and a controller of edge1, which is
// reached by pods and reaches the cluster's ingress. Each of them has a federation that the other takes part in with a series that
// it alone has. All that goes between the two is kept: updates, and none of the samples.
func TestClustersTrainTogether(t *testing.T) {
	w := newWorld(t)
	w.keepObjects(t)
	outward := &line{through: w.Inside().Transport} // from edge1 to the cluster
	atCluster := outward.open(t, "127.0.0.1", w.Base)
	secret, err := w.Secret("issuer", string(auth.Controller))
	require.NoError(t, err)
	e := startEdge(t, w.here(), "http://"+atCluster.String(), secret)
	inward := &line{through: http.DefaultTransport} // from the cluster to edge1
	atEdge := inward.open(t, w.here(), e.URL())
	w.admit(t, atEdge)

	tokens, err := issuer.New(issuer.Options{URL: e.URL() + "/oidc", Dir: filepath.Join(e.home, "oidc"), Clients: issuer.People()})
	require.NoError(t, err)
	peers, err := json.Marshal([]peer.Peer{{
		Name: "edge1", Address: "http://" + atEdge.String(), Subject: "controller",
		TokenURL: "http://" + atEdge.String() + "/oidc/token", ClientID: string(auth.Controller),
		Secret: tokens.Credentials(string(auth.Controller)).ClientSecret,
	}})
	require.NoError(t, err)
	w.changeSecret(map[string]string{"CONTROLLER_PEERS": string(peers)})
	w.change("CONTROLLER_NAME", ofCluster)
	w.change("CONTROLLER_TIMEOUT", "30s")
	federations, err := json.Marshal([]map[string]string{{"peer": "edge1", "name": another, "query": inCluster}})
	require.NoError(t, err)
	w.change("FEDERATIONS", string(federations))
	w.renew("metricsexport-train", "metricsexport-fit", "pdlc-participate") // edge1 keeps others awake, which asks for rounds all the time

	t.Run("a training at the cluster", func(t *testing.T) {
		w := &world{Littoral: w.Littoral, t: t}
		const lags, horizon, rounds = 4, 2, 3
		order, err := json.Marshal(map[string]any{
			"model_name": shared, "use_federated": true, "telemetry_metric": inCluster, "step_in_seconds": 5, "window_in_seconds": 900,
			"horizon": horizon, "federated_params": map[string]any{
				"round_seconds": 15, "run_config": map[string]any{"num-server-rounds": rounds, "local-epochs": 3, "time-step": lags},
			},
		})
		require.NoError(t, err)
		start := time.Now()
		var training struct {
			ID    string `json:"training_id"`
			State string
			Why   string
			Tag   string `json:"Trained Model"`
			Model struct {
				Kind       string
				Federation struct{ Rounds, Participants int }
			}
		}
		require.Equal(t, http.StatusAccepted, w.ask(auth.Operator, http.MethodPost, "/metricsexport/train", string(order), &training))
		w.eventually("the rounds end", func() bool {
			w.nudge("pdlc-end-rounds") // which its clock does every five minutes
			return w.ask(auth.Viewer, http.MethodGet, "/metricsexport/trainings/"+training.ID, "", &training) == http.StatusOK &&
				training.State != "Waiting"
		})
		require.Equal(t, "Finished", training.State, training.Why)
		t.Cleanup(func() {
			w.ask(auth.Operator, http.MethodPost, "/metricsexport/remove_model", fmt.Sprintf(`{"model_tag": %q}`, training.Tag), nil)
		})
		require.Equal(t, "federated", training.Model.Kind)
		require.Equal(t, rounds, training.Model.Federation.Rounds)
		require.Equal(t, 2, training.Model.Federation.Participants, "the cluster and edge1")
		t.Logf("%d rounds in %s, trained model %s", rounds, time.Since(start).Round(time.Second/10), training.Tag)
		for round := 1; round <= rounds; round++ {
			require.True(t, slices.ContainsFunc(outward.updates(t), func(u update) bool { return u.Round == round }), "round %d without edge1", round)
		}
		outward.keptBack(t, horizon*(lags+1), slices.Concat(e.samples, w.measuredInCluster(t)))
	})

	t.Run("a federation of edge1", func(t *testing.T) {
		w := &world{Littoral: w.Littoral, t: t}
		const plan = `{"lags": 2, "horizon": 1, "fewest": 2, "round_seconds": 5, "step_in_seconds": 5}`
		const path = "/pdlc/federations/" + another
		start := time.Now()
		var f federationState
		require.Equal(t, http.StatusOK, e.ask(t, auth.Operator, http.MethodPut, path, plan, &f))
		weights := map[int][]float64{f.Round: f.Weights} // at the beginning of a round
		w.eventually("both are heard in three rounds", func() bool {
			w.nudge("pdlc-participate")
			if e.ask(t, auth.Viewer, http.MethodGet, path, "", &f) == http.StatusOK {
				weights[f.Round] = f.Weights
				require.Empty(t, f.Refused)
			}
			return f.Round >= 4 && f.Heard == 2
		})
		t.Logf("round %d after %s, weights %v", f.Round, time.Since(start).Round(time.Second/10), f.Weights)
		inward.keptBack(t, len(f.Weights), slices.Concat(e.samples, w.measuredInCluster(t)))

		// The model is of both: a round changes it by the mean of what the cluster sent and of what edge1 trained, which is not nothing.
		last := map[int]update{}
		for _, u := range inward.updates(t) {
			last[u.Round] = u
		}
		seen := 0
		for round, u := range last {
			before, after := weights[round], weights[round+1]
			if before == nil || after == nil {
				continue
			}
			seen++
			sent, own := 0.0, 0.0
			for i := range u.Change {
				sent += u.Change[i] * u.Change[i]
				d := 2*(after[i]-before[i]) - u.Change[i]
				own += d * d
			}
			require.Positive(t, sent, "round %d", round)
			require.Positive(t, own, "round %d", round)
			require.Less(t, math.Sqrt(own), 5.001, "no change is longer than it may be")
		}
		require.Positive(t, seen)
	})
}
