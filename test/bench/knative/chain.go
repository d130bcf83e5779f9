package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/littoral-project/littoral/infra/runner/fleet"
	"github.com/littoral-project/littoral/shared/api"
	"github.com/littoral-project/littoral/shared/auth"
	"github.com/littoral-project/littoral/test/bench/stats"
)

// toWork are the functions between a submission and its ManifestWork; chained are all functions in a run.
var (
	toWork  = []string{"jobmanager-group-create", "matchmaker-place", "deploymentmanager-deploy-ocm"}
	chained = append([]string{"deploymentmanager-sync-ocm", "jobmanager-group-delete", "aggregator-tick"}, toWork...)
)

// chainRun is one application from zero pods, in milliseconds since the request was sent.
type chainRun struct {
	Prewake   bool    `json:"prewake"`
	Answered  float64 `json:"answered_ms"`  // 201
	Placed    float64 `json:"placed_ms"`    // according to the history
	Work      float64 `json:"work_ms"`      // the ManifestWork appeared on the hub
	Reported  float64 `json:"reported_ms"`  // the work's status says that the pods are ready
	Available float64 `json:"available_ms"` // the application is Available
	Cold      float64 `json:"cold_start_ms"`
	Crowd     float64 `json:"cold_starts_at_once_ms"` // the last of as many hellos as functions to the work
	Warm      float64 `json:"warm_work_ms"`           // Work of another application right after, all awake
}

// down is the time from Littoral to the orchestrator; up is the time from the orchestrator's report to the database.
func (r chainRun) down() float64 { return r.Work }
func (r chainRun) up() float64   { return r.Available - r.Reported }

// chain is what its runs share.
type chain struct {
	*bench
	client *http.Client // an operator
	db     *pgx.Conn
	works  *works
}

type chainResult struct {
	Runs   []chainRun `json:"runs"`
	Target string     `json:"target"`
}

// runChain submits one application after the other with all functions at zero, alternately with and without prewaking.
// One more application exists all the time, as in a system in use: the first one starts the PingSources.
func runChain(ctx context.Context, b *bench) (_ result, err error) {
	if *hellos < len(toWork) {
		return nil, fmt.Errorf("chain: %d hellos are needed, as many as functions on the way to the orchestrator", len(toWork))
	}
	if err := b.deployHellos(ctx, *hellos); err != nil {
		return nil, err
	}
	stop, err := b.telemetry(ctx)
	if err != nil {
		return nil, err
	}
	defer stop()
	db, err := b.database(ctx, "littoral-migrations")
	if err != nil {
		return nil, err
	}
	defer func() { _ = db.Close(context.WithoutCancel(ctx)) }()
	client, err := b.Client(auth.Operator)
	if err != nil {
		return nil, err
	}
	works, err := watchWorks(ctx)
	if err != nil {
		return nil, err
	}
	defer works.stop()
	c := &chain{bench: b, client: client, db: db, works: works}
	standing, err := c.stand(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, c.forget(context.WithoutCancel(ctx), standing)) }()
	before, err := b.Setting("PREWAKE")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, b.Set("PREWAKE", before)) }()
	r := &chainResult{Target: *taken}
	for n := range *rounds {
		for _, on := range []bool{true, false} {
			say("chain: round %d of %d, PREWAKE=%t", n+1, *rounds, on)
			if err := b.Set("PREWAKE", fmt.Sprint(on)); err != nil {
				return nil, err
			}
			one, err := c.run(ctx)
			if err != nil {
				return nil, err
			}
			one.Prewake = on
			r.Runs = append(r.Runs, one)
			say("chain: %+v", one)
		}
	}
	return r, nil
}

// database connects to the Postgres in a Secret.
func (b *bench) database(ctx context.Context, secret string) (*pgx.Conn, error) {
	address, err := b.databaseURL(secret)
	if err != nil {
		return nil, err
	}
	return pgx.Connect(ctx, address)
}

// databaseURL is DATABASE_URL in a Secret, changed so that this machine can use it.
func (b *bench) databaseURL(secret string) (string, error) {
	text, err := b.Secret(secret, "DATABASE_URL")
	if err != nil {
		return "", err
	}
	u, err := url.Parse(text)
	if err != nil {
		return "", err
	}
	if !strings.Contains(u.Hostname(), ".") {
		if u.Host, err = b.Resolve(u.Hostname() + ".littoral.svc.cluster.local:" + u.Port()); err != nil {
			return "", err
		}
	}
	return u.String(), nil
}

// telemetry emits telemetry for the nodes of the hub's clusters, like their exporters, until stop is called.
func (b *bench) telemetry(ctx context.Context) (stop func(), err error) {
	plan, err := fleet.Load("test/e2e/knative/testdata/ocm.json")
	if err != nil {
		return nil, err
	}
	folder, err := os.MkdirTemp("", "littoral-bench-")
	if err != nil {
		return nil, err
	}
	f, err := fleet.New(fleet.Options{
		Plan: plan, File: filepath.Join(folder, "fleet.json"), Append: b.RemoteWrite, Every: 5 * time.Second,
		Log: slog.New(slog.DiscardHandler), // without an API, so without agents
	})
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = f.Run(ctx)
	}()
	return func() { cancel(); <-ended; _ = os.RemoveAll(folder) }, f.Emit(ctx)
}

// works follows all changes of ManifestWorks. It watches from before the first run, since starting a watch keeps a core
// busy.
type works struct {
	stop func()

	mu   sync.Mutex
	seen []seen
}

func watchWorks(ctx context.Context) (*works, error) {
	w := &works{}
	var err error
	w.stop, err = watch(ctx, func(_ string, object json.RawMessage) {
		one := readWork(object)
		w.mu.Lock()
		defer w.mu.Unlock()
		w.seen = append(w.seen, one)
	}, "manifestworks", "-A")
	return w, err
}

// of returns when the work of an application was first seen, and when its pods were first reported ready.
func (w *works) of(application string) (work, ready time.Time, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, s := range w.seen {
		if !strings.Contains(s.text, application) {
			continue
		}
		if work.IsZero() {
			work = s.at
		}
		if s.ready {
			return work, s.at, nil
		}
	}
	return work, ready, fmt.Errorf("the ManifestWork of %s was not seen with ready pods in %d changes", application, len(w.seen))
}

// seen is a change of a ManifestWork, with the time at which it arrived here.
type seen struct {
	at    time.Time
	text  string // the work, which contains the application's id
	ready bool
}

func readWork(object json.RawMessage) seen {
	s := seen{at: time.Now(), text: string(object)}
	var o struct {
		Status struct {
			ResourceStatus struct {
				Manifests []struct {
					StatusFeedback struct {
						Values []struct {
							Name       string `json:"name"`
							FieldValue struct {
								Integer int64 `json:"integer"`
							} `json:"fieldValue"`
						} `json:"values"`
					} `json:"statusFeedback"`
				} `json:"manifests"`
			} `json:"resourceStatus"`
		} `json:"status"`
	}
	if json.Unmarshal(object, &o) != nil {
		return s
	}
	for _, m := range o.Status.ResourceStatus.Manifests {
		for _, v := range m.StatusFeedback.Values {
			s.ready = s.ready || v.Name == "AvailableReplicas" && v.FieldValue.Integer > 0
		}
	}
	return s
}

// stand submits an application that stays.
func (c *chain) stand(ctx context.Context) (id string, err error) {
	if status, err := c.Tick(ctx, "aggregator-tick"); err != nil || status/100 != 2 {
		return "", fmt.Errorf("aggregator-tick: %d %w", status, err)
	}
	image, err := c.helloImage()
	if err != nil {
		return "", err
	}
	g, err := c.submit(ctx, fmt.Sprintf("bench-standing-%d", time.Now().Unix()), image)
	return g.ID, err
}

func (b *bench) helloImage() (string, error) {
	return b.Kubectl("get", "ksvc", b.hellos[0].name, "-o", "jsonpath={.spec.template.spec.containers[0].image}")
}

// atRest waits until the hellos and all functions of the chain are at zero, and until the PingSources, which all fire
// every five minutes, leave a minute for a measurement. It also waits for the work after the end of the last pod.
func (c *chain) atRest(ctx context.Context) error {
	const every, needed, settle = 5 * time.Minute, time.Minute, 5 * time.Second
	for {
		if err := c.pods.asleep(ctx, append(names(c.hellos), chained...)...); err != nil {
			return err
		}
		select {
		case <-time.After(settle):
		case <-ctx.Done():
			return ctx.Err()
		}
		left := time.Until(time.Now().Truncate(every).Add(every))
		if left >= needed {
			return nil
		}
		select {
		case <-time.After(left + 5*time.Second): // functions that wake after that are noticed
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// run measures hello from zero, as many hellos at once as there are functions to the work, the chain from zero, and the
// chain awake. A start continues after its answer, so all must be at rest again between the measurements from zero.
func (c *chain) run(ctx context.Context) (run chainRun, err error) {
	ctx, cancel := context.WithTimeout(ctx, 3*patience)
	defer cancel()
	if status, err := c.Tick(ctx, "aggregator-tick"); err != nil || status/100 != 2 {
		return run, fmt.Errorf("aggregator-tick: %d %w", status, err)
	}
	if _, err := c.ask(ctx, target{url: c.Base + "/oidc/keys", role: auth.Operator}); err != nil { // fetches the token
		return run, err
	}
	image, err := c.helloImage()
	if err != nil {
		return run, err
	}
	if err := c.atRest(ctx); err != nil {
		return run, err
	}
	cold, err := c.ask(ctx, c.hellos[0])
	if err != nil {
		return run, err
	}
	if err := c.atRest(ctx); err != nil {
		return run, err
	}
	crowd, failures := c.together(ctx, c.hellos[:len(toWork)])
	if failures > 0 {
		return run, fmt.Errorf("%d of %d hellos at once were not answered", failures, len(toWork))
	}
	if err := c.atRest(ctx); err != nil {
		return run, err
	}
	if run, err = c.follow(ctx, image); err != nil {
		return run, err
	}
	warm, err := c.follow(ctx, image)
	run.Cold, run.Crowd, run.Warm = cold, crowd.Quantile(1), warm.Work
	return run, err
}

// follow submits an application and records its events until it is available.
func (c *chain) follow(ctx context.Context, image string) (run chainRun, err error) {
	name := fmt.Sprintf("bench-%d", time.Now().UnixMilli())
	begin := time.Now()
	since := func(t time.Time) float64 { return float64(t.Sub(begin)) / float64(time.Millisecond) }
	g, err := c.submit(ctx, name, image)
	if err != nil {
		return run, err
	}
	run.Answered = since(time.Now())
	defer func() { err = errors.Join(err, c.forget(context.WithoutCancel(ctx), g.ID)) }()
	for run.Available == 0 {
		var placed, finished *time.Time
		if err := c.db.QueryRow(ctx, `select min(at) filter (where event = 'application.placed'),
			min(at) filter (where event = 'job.finished') from history where application_id = $1`, g.ID).
			Scan(&placed, &finished); err != nil {
			return run, err
		}
		if finished != nil {
			run.Placed, run.Available = since(*placed), since(*finished)
		}
		select {
		case <-time.After(50 * time.Millisecond): // Postgres does not notify about new rows
		case <-ctx.Done():
			return run, fmt.Errorf("application %s is not available: %w", g.ID, ctx.Err())
		}
	}
	work, ready, err := c.works.of(g.ID)
	run.Work, run.Reported = since(work), since(ready)
	return run, err
}

func (c *chain) submit(ctx context.Context, name, image string) (g api.Application, err error) {
	cluster, node, _ := strings.Cut(*taken, "/")
	body := fmt.Sprintf(`name: %s
components:
  - name: web
    type: kubernetes
    requirements: {cpu: 10m, memory: 4Mi}
    targets: [{cluster_name: %s, node_name: %s, orchestrator: ocm}]
    manifests:
      - name: web
        manifest:
          apiVersion: apps/v1
          kind: Deployment
          metadata: {name: web}
          spec:
            replicas: 1
            selector: {matchLabels: {app: web}}
            template:
              metadata: {labels: {app: web}}
              spec:
                terminationGracePeriodSeconds: 1
                containers: [{name: web, image: "%s", env: [{name: PORT, value: "8080"}]}]
`, name, cluster, node, image)
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, c.Base+"/jobmanager/groups", strings.NewReader(body))
	if err != nil {
		return g, err
	}
	r.Header.Set("Idempotency-Key", name)
	resp, err := c.client.Do(r)
	if err != nil {
		return g, err
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusCreated {
		err = fmt.Errorf("submit: %s: %s", resp.Status, text)
	}
	if err != nil {
		return g, err
	}
	return g, json.Unmarshal(text, &g)
}

// forget stops the application and waits until it is gone.
func (c *chain) forget(ctx context.Context, id string) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		r, err := http.NewRequestWithContext(ctx, http.MethodDelete, c.Base+"/jobmanager/groups/"+id+"?stop=true", http.NoBody)
		if err != nil {
			return err
		}
		resp, err := c.client.Do(r)
		if err != nil {
			return err
		}
		_ = resp.Body.Close()
		if resp.StatusCode == http.StatusNotFound {
			return nil
		}
		select {
		case <-time.After(time.Second):
		case <-ctx.Done():
			return fmt.Errorf("application %s is not gone: %w", id, ctx.Err())
		}
	}
}

// of returns one measure of all runs of a kind.
func (r *chainResult) of(prewake bool, what func(chainRun) float64) stats.Sample {
	var s stats.Sample
	for _, run := range r.Runs {
		if run.Prewake == prewake {
			s = append(s, what(run))
		}
	}
	return s
}

func (r *chainResult) rows() [][]string {
	all := [][]string{{"p50 ms since the request", "woken ahead", "max", "not", "max"}}
	for _, m := range []struct {
		name string
		of   func(chainRun) float64
	}{
		{"answered 201", func(c chainRun) float64 { return c.Answered }},
		{"placed", func(c chainRun) float64 { return c.Placed }},
		{"ManifestWork at the hub", func(c chainRun) float64 { return c.Work }},
		{"agent reports ready pods", func(c chainRun) float64 { return c.Reported }},
		{"available in the books", func(c chainRun) float64 { return c.Available }},
		{"of it the orchestrator", func(c chainRun) float64 { return c.Reported - c.Work }},
		{"of it Littoral, way down", chainRun.down},
		{"of it Littoral, way up", chainRun.up},
		{"hello from zero", func(c chainRun) float64 { return c.Cold }},
		{fmt.Sprintf("%d hellos at once, the last", len(toWork)), func(c chainRun) float64 { return c.Crowd }},
		{"Littoral, way down, all awake", func(c chainRun) float64 { return c.Warm }},
	} {
		on, off := r.of(true, m.of), r.of(false, m.of)
		all = append(all, []string{m.name, ms(on.P50()), ms(on.Quantile(1)), ms(off.P50()), ms(off.Quantile(1))})
	}
	return all
}

func (r *chainResult) notes() []string {
	var all []string
	var cold, crowd stats.Sample
	for _, run := range r.Runs {
		cold, crowd = append(cold, run.Cold), append(crowd, run.Crowd)
	}
	for _, on := range []bool{true, false} {
		down, up := r.of(on, chainRun.down).P50(), r.of(on, chainRun.up).P50()
		all = append(all, fmt.Sprintf("PREWAKE=%t, %d runs: way down %.2f, way up %.2f, both %.2f cold starts of hello; goal 1.50: %s.",
			on, len(r.of(on, chainRun.down)), down/cold.P50(), up/cold.P50(), (down+up)/cold.P50(),
			verdict((down+up)/cold.P50() <= 1.5)),
			fmt.Sprintf("PREWAKE=%t: both %.2f times what as many hellos at once take, which is %.2f cold starts.",
				on, (down+up)/crowd.P50(), crowd.P50()/cold.P50()))
	}
	return append(all, "The application runs at "+r.Target+".")
}
