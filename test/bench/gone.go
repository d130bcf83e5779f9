package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing/fstest"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/littoral-project/littoral/shared/api"
	"github.com/littoral-project/littoral/shared/topology"
	"github.com/littoral-project/littoral/test/bench/stats"
	"github.com/littoral-project/littoral/triggers"
)

const (
	goneUsual = 3
	goneEvery = 2 * time.Second // between two samples of the fleet
)

// goneResult is the time of each stage from what happens to a node to Available elsewhere, in milliseconds.
type goneResult struct {
	Rounds int         `json:"rounds"`
	Events []goneEvent `json:"events"`
}

type goneEvent struct {
	Event  string     `json:"event"`
	Stages []spanRow  `json:"stages"`
	Total  [2]float64 `json:"totalP50AndMaxMs"`
}

// place is where the component is.
type place struct{ cluster, node string }

// happening is what may happen to a node of the fleet.
type happening struct {
	name     string
	do, undo string
	of, back func(place) api.FleetCommand
	last     bool   // its time in telemetry is that of the last sample, not of the first
	seen     string // that time; %s is the node
	known    string // the select of the instant "at" at which somebody knows, between $2 and d.at
	stages   [3]string
}

// inTopology is the last look at the nodes before a component leaves.
const inTopology = `select max(at) at from topology_snapshots where at > $2 and at <= d.at`

// happenings befall an application that requires no device.
var happenings = []happening{
	{
		name: "the node is drained", do: "drain", undo: "restore", of: ofNode, back: ofNode,
		seen: `timestamp(kube_node_spec_unschedulable{node="%s"} == 1)`, known: inTopology,
		stages: [3]string{"drained -> in Prometheus", "in Prometheus -> topology.changed", "topology.changed -> alert (none is needed)"},
	},
	{
		name: "its cluster falls silent", do: "cut", undo: "heal", of: ofCluster, back: ofCluster, last: true,
		seen: `max(max_over_time(timestamp(tlum_host_info{hostname="%s"})[2m:1s]))`, known: inTopology,
		stages: [3]string{
			"cut off -> its last sample (negative: before)", "in Prometheus -> topology.changed",
			"topology.changed -> policy.violated (lost telemetry)",
		},
	},
}

const camera = "squat.ai/video"

// deviceGoes befalls one that requires a camera: the policy that follows from this moves it.
var deviceGoes = happening{
	name: "its device goes", do: "set", undo: "set", of: ofCamera(topology.DeviceDetached), back: ofCamera(topology.DeviceAvailable),
	seen:   `timestamp(node_mounted{resource_path="` + camera + `", icos_host_name=~".*:%s"} == -1)`,
	known:  `select min(started_at) at from policy_actions where instance = ($1::uuid)::text and acted_at > $2`,
	stages: [3]string{"detached -> in Prometheus", "in Prometheus -> the rule's alert", "alert -> policy.violated (device-available)"},
}

func ofNode(p place) api.FleetCommand    { return api.FleetCommand{Node: p.node} }
func ofCluster(p place) api.FleetCommand { return api.FleetCommand{Cluster: p.cluster} }

func ofCamera(state string) func(place) api.FleetCommand {
	return func(p place) api.FleetCommand {
		return api.FleetCommand{Node: p.node, Set: map[string]string{"device:" + camera: state}}
	}
}

var goneMarks = []string{
	"-> job.displaced", "displaced -> taken by an agent elsewhere", "taken -> Available there",
}

// often are the triggers with the tasks that look at nodes every few seconds. On a cluster the alert LittoralNodeSilent wakes them, and
// the schedule of minutes is for what that misses; the laptop has no such alert.
func often() (fs.FS, error) {
	quick, schedule := fstest.MapFS{}, regexp.MustCompile(`schedule: .*`)
	return quick, fs.WalkDir(triggers.Files, ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := fs.ReadFile(triggers.Files, path)
		if path == "aggregator-tick.yaml" || path == "jobmanager-displace.yaml" {
			text = schedule.ReplaceAll(text, []byte(`schedule: "*/5 * * * * *"`))
		}
		quick[path] = &fstest.MapFile{Data: text}
		return err
	})
}

func runGone(ctx context.Context, w *world) (_ result, err error) {
	if w.triggers, err = often(); err != nil {
		return nil, err
	}
	defer func() { w.triggers = nil }()
	settings := map[string]string{
		"FLEET_EVERY": goneEvery.String(), "POLICY_COOLDOWN": unbraked, "POLICY_MOVES_PER_HOUR": "0",
	}
	r := goneResult{Rounds: times(goneUsual)}
	text, err := withPolicy("{name: watched, type: security, level: low}")
	if err != nil {
		return nil, err
	}
	if err := r.of(ctx, w, "gone", settings, text, policyWatched, happenings...); err != nil {
		return nil, err
	}
	err = r.of(ctx, w, "device", settings, withCamera(text), `definition -> 'spec' ->> 'templateName' = 'device-available'`, deviceGoes)
	return r, err
}

// withCamera adds a camera to what the web component of a descriptor requires, which is its first one.
func withCamera(descriptor []byte) []byte {
	const where = "    requirements:\n"
	return bytes.Replace(descriptor, []byte(where), []byte(where+"      devices: "+camera+"\n"), 1)
}

// of measures what happens to one application.
func (r *goneResult) of(
	ctx context.Context, w *world, name string, settings map[string]string, text []byte, which string, all ...happening,
) (err error) {
	l, stop, err := w.startFleet(ctx, name, settings)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stop()) }()
	for _, node := range []string{"cloud-1", "cloud-2", "cloud-3", "edge-3", "edge-4"} { // those that the component may go to
		if err := l.fleet(ctx, "set", ofCamera(topology.DeviceAvailable)(place{node: node})); err != nil {
			return err
		}
	}
	if err := l.submit(ctx, text, which); err != nil {
		return err
	}
	for _, h := range all {
		names := append(h.stages[:], goneMarks...)
		spans := make([]stats.Sample, len(names))
		var total stats.Sample
		for range r.Rounds {
			instants, err := l.lose(ctx, h)
			if err != nil {
				return fmt.Errorf("%s: %w", h.name, err)
			}
			for i := range names {
				spans[i].Add(instants[i+1].Sub(instants[i]))
			}
			total.Add(instants[len(names)].Sub(instants[0]))
		}
		e := goneEvent{Event: h.name, Total: [2]float64{total.P50(), total.Quantile(1)}}
		for i, name := range names {
			e.Stages = append(e.Stages, spanRow{name, spans[i].P50(), spans[i].Quantile(1)})
		}
		r.Events = append(r.Events, e)
	}
	return nil
}

// lose makes it happen at some instant between two samples, and returns the instants of all stages.
func (l *loop) lose(ctx context.Context, h happening) ([]time.Time, error) {
	time.Sleep(time.Duration(rand.Int64N(int64(goneEvery))))
	var from place
	err := l.db.QueryRow(ctx, `select cluster, node from jobs where application_id = $1 and component = 'web' and cleans is null`, l.app).
		Scan(&from.cluster, &from.node)
	if err != nil {
		return nil, err
	}
	begin := time.Now()
	if err := l.fleet(ctx, h.do, h.of(from)); err != nil {
		return nil, err
	}
	at := make([]time.Time, 5) // known, violated, displaced, taken, available
	var sampled time.Time
	err = l.until(ctx, "it is Available elsewhere", func() (bool, error) {
		if now, err := l.when(ctx, fmt.Sprintf(h.seen, from.node)); err != nil || now.IsZero() {
			return false, err
		} else if h.last || sampled.IsZero() {
			sampled = now
		}
		err := l.db.QueryRow(ctx, `select t.at, coalesce(v.at, t.at), d.at, p.at, f.at
from (select min(at) at from history where application_id = $1 and component = 'web' and event = 'job.displaced' and at > $2) d
join lateral (`+h.known+`) t on t.at is not null
join lateral (select min(at) at from history where application_id = $1 and component = 'web' and event = 'policy.violated' and at > $2 and at < d.at) v on true
join jobs j on j.application_id = $1 and j.component = 'web' and j.cleans is null and j.node <> $3
join lateral (select min(at) at from history where job_id = j.id and event = 'job.promoted' and at > d.at) p on p.at is not null
join lateral (select min(at) at from history where job_id = j.id and event = 'job.finished' and at > p.at) f on f.at is not null`,
			l.app, begin, from.node).Scan(&at[0], &at[1], &at[2], &at[3], &at[4])
		if errors.Is(err, pgx.ErrNoRows) {
			return false, nil
		}
		return err == nil, err
	})
	if err != nil {
		return nil, err
	}
	if err := l.fleet(ctx, h.undo, h.back(from)); err != nil {
		return nil, err
	}
	err = l.until(ctx, "the place is there again, and the policy is kept", func() (bool, error) {
		var back bool
		err := l.db.QueryRow(ctx, `select n.schedulable and n.last_seen > $3 and p.phase = 'enforced' from nodes n, policies p
where n.cluster = $1 and n.node = $2 and p.id = $4`, from.cluster, from.node, at[4], l.policy).Scan(&back)
		return back, err
	})
	if err == nil {
		err = l.awaitIdle(ctx)
	}
	return append([]time.Time{begin, sampled}, at...), err
}

// fleet gives the fleet a command.
func (l *loop) fleet(ctx context.Context, command string, of api.FleetCommand) error {
	body, err := json.Marshal(of)
	if err != nil {
		return err
	}
	return l.ask(ctx, http.MethodPost, "/fleet/"+command, body, &struct{}{})
}

// when is the value of a query, which is a time; zero where it has none.
func (l *loop) when(ctx context.Context, query string) (time.Time, error) {
	var answer struct {
		Data struct {
			Result []struct{ Value []any }
		}
	}
	path := "/prometheus/api/v1/query?" + url.Values{"query": {query}}.Encode()
	if err := l.ask(ctx, http.MethodGet, path, nil, &answer); err != nil || len(answer.Data.Result) == 0 {
		return time.Time{}, err
	}
	value := answer.Data.Result[0].Value
	if len(value) != 2 {
		return time.Time{}, errors.New("a sample without a value")
	}
	var seconds float64
	_, err := fmt.Sscan(strings.Trim(fmt.Sprint(value[1]), `"`), &seconds)
	return time.UnixMilli(int64(seconds * 1000)), err
}

func (r goneResult) print(w io.Writer) {
	for _, e := range r.Events {
		rows := [][]string{{e.Event, "p50 ms", "max ms"}}
		for _, s := range e.Stages {
			rows = append(rows, []string{s.Stage, say(s.P50), say(s.Max)})
		}
		stats.Table(w, append(rows, []string{"all", say(e.Total[0]), say(e.Total[1])}))
		_, _ = fmt.Fprintln(w)
	}
	_, _ = fmt.Fprintf(w, "%d rounds each on the laptop host: the fleet is sampled every %.0f s, its agents poll every second and take 0.7 s to\n"+
		"deploy. A node is silent after 15 s (STALE_AFTER there). The tasks that look at nodes run every 5 s.\n", r.Rounds, goneEvery.Seconds())
}
