package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/littoral-project/littoral/infra/runner/prometheus"
	"github.com/littoral-project/littoral/shared/policy/policies"
	"github.com/littoral-project/littoral/shared/policy/registry"
	"github.com/littoral-project/littoral/shared/policy/render"
	"github.com/littoral-project/littoral/shared/store"
	"github.com/littoral-project/littoral/test/bench/stats"
)

const (
	manyPolicies = 10_000
	perMessage   = 100 // alerts of a webhook message
)

// policiesResult is the throughput of rendering and judging many policies.
type policiesResult struct {
	Policies int     `json:"policies"`
	Render   float64 `json:"rendersPerSecond"` // on one processor, without storing
	Judge    float64 `json:"judgesPerSecond"`  // the decision only
	Webhook  float64 `json:"alertsPerSecond"`  // from the webhook to the action's end, each of another policy
	Repeats  float64 `json:"repeatsPerSecond"` // the same alerts once more
	P50      float64 `json:"messageP50Ms"`     // of a message with perMessage new alerts, with everything that follows
	P99      float64 `json:"messageP99Ms"`
}

// somePolicy is the i-th of many: all kinds of load on a host, each with its own threshold and instance.
func somePolicy(i int) registry.Policy {
	kinds := []struct {
		template string
		limit    float64
	}{
		{"app-host-cpu-usage-perc", 0.5},
		{"app-host-cpu-usage-perc-excl", 0.5},
		{"app-host-memory-usage-perc", 0.5},
		{"app-host-memory-usage-perc-excl", 0.5},
		{"app-sca-score", 34},
	}
	k := kinds[i%len(kinds)]
	return registry.Policy{
		Name: fmt.Sprintf("policy-%d", i),
		Subject: registry.Subject{
			Type: registry.AppSubject, AppName: "shop", AppInstance: fmt.Sprintf("i-%d", i/len(kinds)), AppComponent: "web",
		},
		Spec:      registry.Spec{Type: registry.TemplateSpec, TemplateName: k.template},
		Variables: registry.Variables{"threshold": k.limit * (1 + float64(i%100)/1000)},
		Action: registry.Action{
			Type: registry.ActionWebhook, HTTPMethod: http.MethodPost,
			ExtraParams: map[string]string{registry.RemediationParam: "none"},
		},
	}
}

func rendered(p *registry.Policy) (registry.Spec, error) { return render.Policy(p, time.Minute) }

func runPolicies(ctx context.Context, w *world) (result, error) {
	s, err := w.newSystem(ctx, "policies", wiring{})
	if err != nil {
		return nil, err
	}
	r := policiesResult{Policies: manyPolicies}
	made := make([]*policies.Policy, manyPolicies)
	begin := time.Now()
	for i := range made {
		made[i] = policies.New(somePolicy(i), policies.FromAPI)
		if err := made[i].Render(rendered); err != nil {
			return nil, err
		}
	}
	r.Render = perSecond(manyPolicies, time.Since(begin))
	r.Judge = judging()
	// They are stored and activated, but without rules, since the measurement begins with the alert.
	for batch := range slices.Chunk(made, 500) {
		err := s.db.Tx(ctx, func(ctx context.Context, tx *store.Tx) error {
			for _, p := range batch {
				if _, _, err := policies.Create(ctx, tx, p, true); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	start := time.Now().Add(-time.Minute)
	var took stats.Sample
	begin = time.Now()
	for batch := range slices.Chunk(made, perMessage) {
		at := time.Now()
		if err := s.alert(ctx, batch, start); err != nil {
			return nil, err
		}
		took.Add(time.Since(at))
	}
	r.Webhook, r.P50, r.P99 = perSecond(manyPolicies, time.Since(begin)), took.P50(), took.P99()
	if err := s.allViolated(ctx); err != nil {
		return nil, err
	}
	begin = time.Now()
	for batch := range slices.Chunk(made, perMessage) {
		if err := s.alert(ctx, batch, start); err != nil {
			return nil, err
		}
	}
	r.Repeats = perSecond(manyPolicies, time.Since(begin))
	return r, nil
}

func perSecond(n int, d time.Duration) float64 { return float64(n) / d.Seconds() }

// judging counts how many notices a policy's state can judge per second.
func judging() float64 {
	const n = 1_000_000
	at := time.Unix(1_700_000_000, 0)
	s := registry.State{}.Activate(at)
	begin := time.Now()
	for i := range n {
		s, _ = s.Judge(registry.Notice{
			Fingerprint: "f", StartsAt: at.Add(time.Duration(i/4) * time.Second), Firing: i%4 != 3, Since: s.Since,
		}, false)
	}
	took := time.Since(begin)
	runtime.KeepAlive(s)
	return perSecond(n, took)
}

// alert sends a webhook message with one alert of each policy. It returns when everything that follows is done.
func (s *system) alert(ctx context.Context, about []*policies.Policy, start time.Time) error {
	var alerts []map[string]any
	for _, p := range about {
		alerts = append(alerts, alertOf(p.ID, "firing", start, map[string]string{
			"icos_app_name": "shop", "icos_app_instance": p.Instance, "icos_app_component": "web",
		}))
	}
	body, err := json.Marshal(message(alerts))
	if err != nil {
		return err
	}
	return s.call(ctx, "admin", http.MethodPost, webhookPath, body, nil)
}

// message is a webhook body, version 4.
func message(alerts []map[string]any) map[string]any {
	return map[string]any{"version": "4", "status": "firing", "receiver": "littoral", "alerts": alerts}
}

func alertOf(policy, status string, start time.Time, labels map[string]string) map[string]any {
	return map[string]any{
		"status": status, "startsAt": start.UTC().Format(time.RFC3339Nano), "endsAt": "0001-01-01T00:00:00Z",
		"fingerprint": "c04fd2082a9b94e9", "labels": labels,
		"annotations": map[string]string{"plm_id": policy, "plm_expr_value": "0.92", "plm_measurement_backend": "prom-1"},
	}
}

// allViolated returns an error unless each policy is violated and was acted upon once.
func (s *system) allViolated(ctx context.Context) error {
	var violated, acted int
	err := s.db.QueryRow(ctx, `select (select count(*) from policies where phase = 'violated'),
(select count(*) from policy_actions where acted_at is not null)`).Scan(&violated, &acted)
	if err == nil && (violated != manyPolicies || acted != manyPolicies) {
		err = fmt.Errorf("%d of %d policies are violated, %d were acted upon", violated, manyPolicies, acted)
	}
	return err
}

func (r policiesResult) print(w io.Writer) {
	stats.Table(w, [][]string{
		{"", "per second"},
		{"policies rendered", fmt.Sprintf("%.0f", r.Render)},
		{"notices judged, the decision alone", fmt.Sprintf("%.0f", r.Judge)},
		{"new alerts, webhook to the end of the action", fmt.Sprintf("%.0f", r.Webhook)},
		{"repeated alerts", fmt.Sprintf("%.0f", r.Repeats)},
	})
	_, _ = fmt.Fprintf(w, "\n%d policies of five templates, remediation none. %d alerts a message: p50 %s ms, p99 %s\n"+
		"ms. All functions in one process over HTTP, events delivered at once, Postgres with fsync on.\n",
		r.Policies, perMessage, say(r.P50), say(r.P99))
}

// The history for backtests: hosts with applications, scraped every step for a day.
const (
	pastHosts    = 20
	pastPolicies = 100
	pastStep     = 15 * time.Second
	pastSpan     = 24 * time.Hour
)

// backtestResult is the performance of backtests.
type backtestResult struct {
	Policies    int     `json:"policies"`
	Evaluations int     `json:"evaluationsPerPolicy"`
	Series      int     `json:"series"`
	Episodes    int     `json:"episodes"` // in total
	Total       float64 `json:"totalMs"`
	P50         float64 `json:"p50Ms"`
	P99         float64 `json:"p99Ms"`
}

func runBacktest(ctx context.Context, w *world) (_ result, err error) {
	dir, err := os.MkdirTemp(w.dir, "past-")
	if err != nil {
		return nil, err
	}
	server, err := prometheus.Open(prometheus.Options{Dir: dir, Retention: 2 * pastSpan})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, server.Close()) }()
	to := time.Now().Truncate(pastStep)
	series, err := fillPast(ctx, server, to)
	if err != nil {
		return nil, err
	}
	address, err := w.serve(ctx, func(string) (http.Handler, error) { return server.Handler(), nil })
	if err != nil {
		return nil, err
	}
	s, err := w.newSystem(ctx, "backtest", wiring{metrics: address})
	if err != nil {
		return nil, err
	}
	r := backtestResult{Policies: pastPolicies, Series: series}
	var took stats.Sample
	begin := time.Now()
	for i := range pastPolicies {
		p := somePolicy(i)
		p.Subject.AppInstance = fmt.Sprintf("i-%d", i%pastHosts)
		body, err := json.Marshal(map[string]any{"policy": p, "from": to.Add(-pastSpan), "to": to, "step": pastStep.String()})
		if err != nil {
			return nil, err
		}
		var past struct {
			Evaluations int
			Episodes    []json.RawMessage
		}
		at := time.Now()
		if err := s.call(ctx, "operator", http.MethodPost, "/polman/registry/api/v1/backtest", body, &past); err != nil {
			return nil, err
		}
		took.Add(time.Since(at))
		r.Evaluations, r.Episodes = past.Evaluations, r.Episodes+len(past.Episodes)
	}
	r.Total, r.P50, r.P99 = stats.Millis(time.Since(begin)), took.P50(), took.P99()
	if r.Episodes == 0 {
		return nil, errors.New("no policy would have fired: the past is not what it should be")
	}
	return r, nil
}

// fillPast writes a day of telemetry: every host is busy for one hour and has little memory for another.
func fillPast(ctx context.Context, server *prometheus.Server, to time.Time) (series int, err error) {
	busy := make([]float64, pastHosts)
	for at := to.Add(-pastSpan); !at.After(to); at = at.Add(pastStep) {
		var batch []prometheus.Sample
		for h := range pastHosts {
			host := fmt.Sprintf("h-%d", h)
			labels := func(more ...string) map[string]string {
				m := map[string]string{
					"icos_host_id": host, "icos_host_name": "c:" + host, "icos_agent_id": "a", "icos_cluster_id": "c",
					"icos_controller_id": "o",
				}
				for i := 0; i < len(more); i += 2 {
					m[more[i]] = more[i+1]
				}
				return m
			}
			hour := (at.Hour() + h) % 24
			idle := 0.8
			if hour == 3 {
				idle = 0.1
			}
			busy[h] += idle * pastStep.Seconds()
			free := 8e9
			if hour == 5 {
				free = 1e9
			}
			ip := fmt.Sprintf("10.0.0.%d", h)
			add := func(name string, value float64, more ...string) {
				batch = append(batch, prometheus.Sample{Name: name, Labels: labels(more...), Value: value, At: at})
			}
			add("node_cpu_seconds_total", busy[h], "mode", "idle", "cpu", "0")
			add("node_cpu_seconds_total", busy[h], "mode", "idle", "cpu", "1")
			add("node_memory_MemAvailable_bytes", free)
			add("node_memory_MemTotal_bytes", 16e9)
			add("tlum_host_info", 1, "hostname", host, "ip", ip, "os", "linux", "arch", "amd64")
			add("SCA_score", 70-30*float64(hour/23), "agent_hostname", host, "agent_ip", ip)
			add("tlum_workload_info", 1, "name", "n__web-1", "id", "pod-"+host, "status", "running", "icos_app_name", "shop",
				"icos_app_instance", fmt.Sprintf("i-%d", h), "icos_app_component", "web")
		}
		series = len(batch)
		if err := server.Append(ctx, batch); err != nil {
			return 0, err
		}
	}
	return series, nil
}

func (r backtestResult) print(w io.Writer) {
	stats.Table(w, [][]string{
		{"policies", "evaluations each", "series", "episodes", "total s", "p50 ms", "p99 ms"},
		{
			fmt.Sprint(r.Policies), fmt.Sprint(r.Evaluations), fmt.Sprint(r.Series), fmt.Sprint(r.Episodes),
			say(r.Total / 1000), say(r.P50), say(r.P99),
		},
	})
	_, _ = fmt.Fprintf(w, "\nPOST backtest over %s at %s, one after the other, against the embedded Prometheus.\n",
		pastSpan, pastStep)
}

// withPolicy is chainFile with a policy for its web component and without its own policies that could be violated.
func withPolicy(policy string) ([]byte, error) {
	text, err := os.ReadFile(chainFile)
	if err != nil {
		return nil, fmt.Errorf("run it from the root of the source: %w", err)
	}
	const own, where = "  - security: high", "policies:\n"
	if !bytes.Contains(text, []byte(own)) || !bytes.Contains(text, []byte(where)) {
		return nil, fmt.Errorf("%s has other policies than it had", chainFile)
	}
	changed := strings.Replace(string(text), own, "", 1)
	return []byte(strings.Replace(changed, where, where+"      - "+policy+"\n", 1)), nil
}
