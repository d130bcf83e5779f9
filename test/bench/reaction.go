package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/littoral-project/littoral/test/bench/stats"
)

const (
	webhookUsual  = 100
	webhookWarmUp = 5
	stagesUsual   = 10
	stagesEvery   = 5 * time.Second // for scrapes and evaluations
	// The measurement violates the policy again immediately, so the brake must not delay it.
	unbraked = "1ms"
)

// webhookResult is the time from an alert to the new target of its component.
type webhookResult struct {
	Rounds   int     `json:"rounds"`
	Answered float64 `json:"answeredP50Ms"` // the answer of the webhook itself
	P50      float64 `json:"p50Ms"`
	P99      float64 `json:"p99Ms"`
	Max      float64 `json:"maxMs"`
}

// loop is an application on the laptop host with a policy on one component.
type loop struct {
	caller
	db     *pgx.Conn
	app    string
	policy string
}

// policyWatched selects the policy that a bench gives to the application.
const policyWatched = `name like '%watched'`

// startLoop starts the application. policy is one line of YAML, the policy of its web component.
func (w *world) startLoop(
	ctx context.Context, name, policy string, settings map[string]string,
) (l *loop, stop func() error, err error) {
	text, err := withPolicy(policy)
	if err != nil {
		return nil, nil, err
	}
	l, stop, err = w.startFleet(ctx, name, settings)
	if err != nil {
		return nil, nil, err
	}
	if err := l.submit(ctx, text, policyWatched); err != nil {
		return nil, nil, errors.Join(err, stop())
	}
	return l, stop, nil
}

// startFleet starts the laptop host, without an application.
func (w *world) startFleet(ctx context.Context, name string, settings map[string]string) (*loop, func() error, error) {
	database, _, err := w.database(ctx, name)
	if err != nil {
		return nil, nil, err
	}
	h, c, err := w.startHost(ctx, name, database, settings)
	if err != nil {
		return nil, nil, err
	}
	l := &loop{caller: c}
	if l.db, err = pgx.Connect(ctx, database); err != nil {
		return nil, nil, errors.Join(err, h.stop(ctx))
	}
	return l, func() error {
		_ = l.db.Close(context.WithoutCancel(ctx))
		return h.stop(ctx)
	}, nil
}

// submit starts the application and waits until it runs and the policy that is selected is watched.
func (l *loop) submit(ctx context.Context, descriptor []byte, which string) error {
	g, err := l.call(ctx, http.MethodPost, "/jobmanager/groups", descriptor)
	if err != nil {
		return err
	}
	l.app = g.ID
	if err := l.await(ctx, g.ID, "Available"); err != nil {
		return err
	}
	return l.until(ctx, "its rule is made", func() (bool, error) {
		err := l.db.QueryRow(ctx, `select id::text from policies where instance = $1 and rule_file <> '' and `+which, g.ID).Scan(&l.policy)
		if errors.Is(err, pgx.ErrNoRows) {
			return false, nil
		}
		return err == nil, err
	})
}

// until polls until the condition is true.
func (l *loop) until(ctx context.Context, what string, is func() (bool, error)) error {
	for deadline := time.Now().Add(2 * time.Minute); ; time.Sleep(time.Millisecond) {
		ok, err := is()
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil:
			return fmt.Errorf("until %s: %w", what, err)
		case ok:
			return nil
		case time.Now().After(deadline):
			return fmt.Errorf("until %s: not within two minutes", what)
		}
	}
}

// node returns the node of the watched component.
func (l *loop) node(ctx context.Context) (node string, available bool, err error) {
	err = l.db.QueryRow(ctx, `select node, state = 'Finished' from jobs where application_id = $1 and component = 'web'
and cleans is null`, l.app).Scan(&node, &available)
	return node, available, err
}

func (l *loop) awaitIdle(ctx context.Context) error {
	return l.until(ctx, "it runs and nothing is cleaned up", func() (bool, error) {
		var busy int
		err := l.db.QueryRow(ctx, `select count(*) from jobs where application_id = $1 and state <> 'Finished'`, l.app).
			Scan(&busy)
		return busy == 0, err
	})
}

func runWebhook(ctx context.Context, w *world) (_ result, err error) {
	l, stop, err := w.startLoop(ctx, "webhook",
		"{name: watched, type: custom, fromTemplate: app-host-cpu-usage-perc, remediation: redeploy, "+
			"variables: {threshold: 1}}",
		map[string]string{
			"FLEET_DELAY": "0s", "FLEET_POLL": laptopPoll.String(), "POLICY_COOLDOWN": unbraked, "POLICY_MOVES_PER_HOUR": "0",
		})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, stop()) }()
	n := times(webhookUsual)
	var answered, total stats.Sample
	for i := range n + webhookWarmUp {
		from, _, err := l.node(ctx)
		if err != nil {
			return nil, err
		}
		start := time.Now()
		labels := map[string]string{
			"icos_app_name": "hello", "icos_app_instance": l.app, "icos_app_component": "web", "k8s_node_name": from,
		}
		tell := func(status string) error {
			body, err := json.Marshal(message([]map[string]any{alertOf(l.policy, status, start, labels)}))
			if err != nil {
				return err
			}
			return l.ask(ctx, http.MethodPost, webhookPath, body, &struct{}{})
		}
		begin := time.Now()
		if err := tell("firing"); err != nil {
			return nil, err
		}
		took := time.Since(begin)
		err = l.until(ctx, "it has another target", func() (bool, error) {
			node, _, err := l.node(ctx)
			return node != "" && node != from, err
		})
		if err != nil {
			return nil, err
		}
		if i >= webhookWarmUp {
			answered.Add(took)
			total.Add(time.Since(begin))
		}
		if err := tell("resolved"); err != nil {
			return nil, err
		}
		if err := l.awaitIdle(ctx); err != nil {
			return nil, err
		}
	}
	return webhookResult{
		Rounds: n, Answered: answered.P50(), P50: total.P50(), P99: total.P99(), Max: total.Quantile(1),
	}, nil
}

func (r webhookResult) print(w io.Writer) {
	stats.Table(w, [][]string{
		{"", "p50 ms", "p99 ms", "max ms"},
		{"webhook answered", say(r.Answered), "", ""},
		{"webhook to the new target", say(r.P50), say(r.P99), say(r.Max)},
	})
	_, _ = fmt.Fprintf(w, "\n%d moves of a component of %s on the laptop host with its Broker on disk, warm; the new\n"+
		"target is seen in Postgres, which is asked every millisecond. Goal: p99 <= 250 ms without the fleet's delays.\n", r.Rounds,
		chainFile)
}

// stagesResult is the time of each stage of a reaction, in milliseconds, in their order.
type stagesResult struct {
	Rounds int        `json:"rounds"`
	Scrape float64    `json:"scrapeSeconds"`
	Stages []spanRow  `json:"stages"`
	Total  [2]float64 `json:"totalP50AndMaxMs"`
}

type spanRow struct {
	Stage string  `json:"stage"`
	P50   float64 `json:"p50Ms"`
	Max   float64 `json:"maxMs"`
}

// marks are the stages, each from one instant to the next.
var marks = []string{
	"the node's score drops -> sampled at once", "sampled -> the rule's alert starts", "alert -> webhook received",
	"received -> judged", "judged -> acted, new target written", "target -> taken by the agent",
	"taken -> Available there",
}

func runStages(ctx context.Context, w *world) (_ result, err error) {
	l, stop, err := w.startLoop(ctx, "stages",
		"{name: watched, type: security, level: medium, properties: {interval: 5s}}", map[string]string{
			"FLEET_EVERY": stagesEvery.String(), "POLICY_COOLDOWN": unbraked, "POLICY_MOVES_PER_HOUR": "0",
		})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, stop()) }()
	n := times(stagesUsual)
	spans := make([]stats.Sample, len(marks))
	var total stats.Sample
	for range n {
		instants, err := l.react(ctx)
		if err != nil {
			return nil, err
		}
		for i := range marks {
			spans[i].Add(instants[i+1].Sub(instants[i]))
		}
		total.Add(instants[len(marks)].Sub(instants[0]))
	}
	r := stagesResult{Rounds: n, Scrape: stagesEvery.Seconds(), Total: [2]float64{total.P50(), total.Quantile(1)}}
	for i, name := range marks {
		r.Stages = append(r.Stages, spanRow{name, spans[i].P50(), spans[i].Quantile(1)})
	}
	return r, nil
}

// react violates the policy at some instant between two evaluations, and returns the instants of all marks.
func (l *loop) react(ctx context.Context) ([]time.Time, error) {
	time.Sleep(time.Duration(rand.Int64N(int64(stagesEvery))))
	node, _, err := l.node(ctx)
	if err != nil {
		return nil, err
	}
	begin := time.Now()
	if err := l.score(ctx, node, "5"); err != nil {
		return nil, err
	}
	var sampled time.Time
	err = l.until(ctx, "the score is sampled", func() (bool, error) {
		sampled, err = l.sampled(ctx, node)
		return !sampled.IsZero(), err
	})
	if err != nil {
		return nil, err
	}
	at := make([]time.Time, 6) // started, received, judged, acted, promoted, finished
	err = l.until(ctx, "it is Available elsewhere", func() (bool, error) {
		err := l.db.QueryRow(ctx, `select a.started_at, a.received_at, a.judged_at, a.acted_at, p.at, f.at
from policy_actions a
join jobs j on j.application_id = $1 and j.component = 'web' and j.cleans is null
join lateral (select min(at) at from history where job_id = j.id and event = 'job.promoted' and at > a.acted_at) p
  on p.at is not null
join lateral (select min(at) at from history where job_id = j.id and event = 'job.finished' and at > p.at) f
  on f.at is not null
where a.policy_id = $2 and a.status = 'done' and a.acted_at > $3 order by a.acted_at limit 1`, l.app, l.policy, begin).
			Scan(&at[0], &at[1], &at[2], &at[3], &at[4], &at[5])
		if errors.Is(err, pgx.ErrNoRows) {
			return false, nil
		}
		return err == nil, err
	})
	if err != nil {
		return nil, err
	}
	if now, available, err := l.node(ctx); err != nil || now == node || !available {
		return nil, errors.Join(err, fmt.Errorf("it is at %s, available %t, after it left %s", now, available, node))
	}
	// The next round begins without a violation.
	if err := l.score(ctx, node, "90"); err != nil {
		return nil, err
	}
	err = l.until(ctx, "the policy is kept again", func() (bool, error) {
		var kept bool
		err := l.db.QueryRow(ctx, `select phase = 'enforced' from policies where id = $1`, l.policy).Scan(&kept)
		return kept, err
	})
	if err == nil {
		err = l.awaitIdle(ctx)
	}
	return append([]time.Time{begin, sampled}, at...), err
}

func (l *loop) score(ctx context.Context, node, value string) error {
	body, err := json.Marshal(map[string]any{"node": node, "set": map[string]string{"sca": value}})
	if err != nil {
		return err
	}
	return l.ask(ctx, http.MethodPost, "/fleet/set", body, &struct{}{})
}

// sampled returns when the low score was first sampled; zero if it was not yet.
func (l *loop) sampled(ctx context.Context, node string) (time.Time, error) {
	return l.when(ctx, fmt.Sprintf("timestamp(SCA_score{agent_hostname=%q} < 50)", node))
}

func (r stagesResult) print(w io.Writer) {
	rows := [][]string{{"stage", "p50 ms", "max ms"}}
	for _, s := range r.Stages {
		rows = append(rows, []string{s.Stage, say(s.P50), say(s.Max)})
	}
	rows = append(rows, []string{"all", say(r.Total[0]), say(r.Total[1])})
	stats.Table(w, rows)
	_, _ = fmt.Fprintf(w, "\n%d rounds on the laptop host: scrape and evaluation every %.0f s by the embedded Prometheus\n"+
		"engine, its agents poll every second and take 0.7 s to deploy. The fleet tells what it is told to do at once,\n"+
		"so the wait for a scrape is not in here: it adds %.1f s on average, %.0f s at most.\n", r.Rounds, r.Scrape, r.Scrape/2, r.Scrape)
}
