// Package awareness observes nodes for the formulas of package profile, and keeps the scores that come of them. Placement reads
// them for applications that have a profile (shared/match).
package awareness

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/littoral-project/littoral/shared/mdm/connect"
	"github.com/littoral-project/littoral/shared/netma/links"
	"github.com/littoral-project/littoral/shared/pdlc/profile"
	"github.com/littoral-project/littoral/shared/problem"
	"github.com/littoral-project/littoral/shared/store"
	"github.com/littoral-project/littoral/shared/swm/channels"
	"github.com/littoral-project/littoral/shared/swm/topologies"
)

// Node is one with what is known of it.
type Node struct {
	Cluster string         `json:"cluster"`
	Name    string         `json:"node_name"`
	Metrics profile.Values `json:"metrics"`
	At      time.Time      `json:"at"`

	Links map[string]Link `json:"-"` // outwards, by the name of the node at the other end
}

// Link has moving averages of a link; nil is not known.
type Link struct {
	Failure *float64 // part of the packets that it loses, 1 while FailureOf says so
	Energy  *float64 // watts
}

// Score is that of a node for a profile.
type Score struct {
	Profile string    `json:"profile"`
	Cluster string    `json:"cluster"`
	Node    string    `json:"node_name"`
	Score   *float64  `json:"score"` // nil: it has none
	Share   float64   `json:"share"` // of the best node's
	Why     string    `json:"why,omitempty"`
	At      time.Time `json:"at"`
}

const (
	selectProfiles = `select name, formula, about from pdlc_profiles order by name`

	upsertProfile = `insert into pdlc_profiles (name, formula, about, created_by) values ($1, $2, $3, $4)
on conflict (name) do update set formula = excluded.formula, about = excluded.about, updated_at = now()`

	deleteProfile = `delete from pdlc_profiles where name = $1`

	deleteScores = `delete from pdlc_scores where profile = $1`

	selectNodes = `select t.cluster, t.node, t.cores, t.memory, t.cpu_percent, t.memory_percent, t.watts, t.sca, t.forecast_cpu,
	t.schedulable is not false and (n.last_seen is null or n.last_seen > $1)
from topology_nodes t left join nodes n using (cluster, node) order by t.cluster, t.node`

	selectFormer = `select cluster, node, metrics, at from pdlc_nodes order by cluster, node`

	upsertNodes = `insert into pdlc_nodes (cluster, node, metrics, at) select *, $4::timestamptz from unnest($1::text[], $2::text[], $3::jsonb[])
on conflict (cluster, node) do update set metrics = excluded.metrics, at = excluded.at`

	forgetNodes = `delete from pdlc_nodes where at < $1`

	upsertScores = `insert into pdlc_scores (profile, cluster, node, score, share, why, at)
select *, $7::timestamptz from unnest($1::text[], $2::text[], $3::text[], $4::float8[], $5::float8[], $6::text[])
on conflict (profile, cluster, node) do update set score = excluded.score, share = excluded.share, why = excluded.why, at = excluded.at`

	forgetScores = `delete from pdlc_scores where at < $1`

	selectScores = `select profile, cluster, node, score, share, why, at from pdlc_scores where ($1 = '' or profile = $1) order by profile, cluster, node`
)

// Profiles lists those that are always there and those that were added; of one name, the added one.
func Profiles(ctx context.Context, q store.Querier, printed bool) ([]profile.Profile, error) {
	added, err := store.Collect(ctx, q, "read profiles", func(row pgx.CollectableRow) (p profile.Profile, err error) {
		err = row.Scan(&p.Name, &p.Formula, &p.About)
		return p, err
	}, selectProfiles)
	if err != nil {
		return nil, err
	}
	by := map[string]profile.Profile{}
	for _, p := range append(profile.Builtin(printed), added...) {
		by[p.Name] = p
	}
	return slices.SortedFunc(maps.Values(by), func(a, b profile.Profile) int { return cmp.Compare(a.Name, b.Name) }), nil
}

var profileName = regexp.MustCompile(`^[a-z][a-z0-9-]{0,62}$`)

// SaveProfile adds a profile, or replaces one. The error is Invalid for a formula that cannot be read.
func SaveProfile(ctx context.Context, tx *store.Tx, p profile.Profile, by string) error {
	var faults problem.Faults
	if !profileName.MatchString(p.Name) {
		faults.Add("name", 0, "is no name: small letters, digits and -, at most 63, a letter first")
	}
	if _, err := profile.Parse(p.Formula); err != nil {
		faults.Add("formula", 0, "%v; metrics are %s", err, profile.Known())
	}
	if len(p.About) > 500 {
		faults.Add("about", 0, "has more than 500 bytes")
	}
	if err := faults.Err("the profile is not understood"); err != nil {
		return err
	}
	_, err := tx.Exec(ctx, upsertProfile, p.Name, p.Formula, p.About, by)
	return store.Classify(err)
}

// DeleteProfile deletes one that was added. The error is NotFound.
func DeleteProfile(ctx context.Context, tx *store.Tx, name string) error {
	tag, err := tx.Exec(ctx, deleteProfile, name)
	if err != nil {
		return store.Classify(err)
	}
	if tag.RowsAffected() == 0 {
		return problem.New(problem.NotFound, "nobody added a profile %s", problem.Brief(name, 60))
	}
	_, err = tx.Exec(ctx, deleteScores, name)
	return store.Classify(err)
}

// Scores lists them for a profile, or for all with "".
func Scores(ctx context.Context, q store.Querier, name string) ([]Score, error) {
	return store.Collect(ctx, q, "read scores", pgx.RowToStructByPos[Score], selectScores, name)
}

// Nodes lists what is known of nodes.
func Nodes(ctx context.Context, q store.Querier) ([]Node, error) {
	return store.Collect(ctx, q, "read metrics of nodes", func(row pgx.CollectableRow) (n Node, err error) {
		err = row.Scan(&n.Cluster, &n.Name, &n.Metrics, &n.At)
		n.takeLinks()
		return n, err
	}, selectFormer)
}

// Averages of links are stored with the metrics of the node that they leave, under names that no formula has.
const (
	storedFailure = "link_failure to "
	storedEnergy  = "link_energy to "
)

// stored are the metrics and the averages of links as one.
func (n *Node) stored() profile.Values {
	all := maps.Clone(n.Metrics)
	for to, l := range n.Links {
		if l.Failure != nil {
			all[storedFailure+to] = *l.Failure
		}
		if l.Energy != nil {
			all[storedEnergy+to] = *l.Energy
		}
	}
	return all
}

// takeLinks takes the averages of links out of what was stored.
func (n *Node) takeLinks() {
	n.Links = map[string]Link{}
	maps.DeleteFunc(n.Metrics, func(name string, v float64) bool {
		if to, is := strings.CutPrefix(name, storedFailure); is {
			l := n.Links[to]
			l.Failure = &v
			n.Links[to] = l
			return true
		}
		to, is := strings.CutPrefix(name, storedEnergy)
		if is {
			l := n.Links[to]
			l.Energy = &v
			n.Links[to] = l
		}
		return is
	})
}

// Settings of the observation.
type Settings struct {
	Printed bool `envconfig:"PDLC_PRINTED_FORMULAS" default:"false"`
}

// How failures, and the energy of links, are averaged: as CODECO's exponential moving averages, once for each observation.
const (
	newest   = 0.1
	apart    = 30 * time.Second // observations that follow each other faster count once
	kept     = 24 * time.Hour   // of nodes that are gone
	lossFull = 100.0            // percent
)

// Observe looks at all nodes and scores them for each profile. staleAfter is from when a silent node counts as failed.
func Observe(ctx context.Context, db *store.DB, s Settings, staleAfter time.Duration, now time.Time) error {
	nodes, err := look(ctx, db, staleAfter, now)
	if err != nil || len(nodes) == 0 {
		return err
	}
	profiles, err := Profiles(ctx, db, s.Printed)
	if err != nil {
		return err
	}
	return db.Tx(ctx, func(ctx context.Context, tx *store.Tx) error {
		if err := saveNodes(ctx, tx, nodes, now); err != nil {
			return err
		}
		return saveScores(ctx, tx, score(nodes, profiles), now)
	})
}

// score computes all scores. A stored formula that can be read no longer gives none, and says so.
func score(nodes []Node, profiles []profile.Profile) []Score {
	values := make([]profile.Values, len(nodes))
	for i := range nodes {
		values[i] = nodes[i].Metrics
	}
	var out []Score
	for _, p := range profiles {
		f, err := profile.Parse(p.Formula)
		var scores []profile.Score
		if err == nil {
			scores = f.Score(values)
		} else {
			scores = slices.Repeat([]profile.Score{{Why: err.Error()}}, len(nodes))
		}
		shares := profile.Share(scores)
		for i := range nodes {
			out = append(out, Score{Profile: p.Name, Cluster: nodes[i].Cluster, Node: nodes[i].Name, Score: scores[i].Value, Share: shares[i], Why: scores[i].Why})
		}
	}
	return out
}

func saveNodes(ctx context.Context, tx *store.Tx, nodes []Node, now time.Time) error {
	var clusters, names, metrics []string
	for i := range nodes {
		text, err := json.Marshal(nodes[i].stored())
		if err != nil {
			return fmt.Errorf("encode metrics: %w", err)
		}
		clusters, names, metrics = append(clusters, nodes[i].Cluster), append(names, nodes[i].Name), append(metrics, string(text))
	}
	_, err := tx.Exec(ctx, upsertNodes, clusters, names, metrics, now)
	if err == nil {
		_, err = tx.Exec(ctx, forgetNodes, now.Add(-kept))
	}
	return store.Classify(err)
}

func saveScores(ctx context.Context, tx *store.Tx, all []Score, now time.Time) error {
	var texts [4][]string
	var values []*float64
	var shares []float64
	for i := range all {
		for k, v := range []string{all[i].Profile, all[i].Cluster, all[i].Node, all[i].Why} {
			texts[k] = append(texts[k], v)
		}
		values, shares = append(values, all[i].Score), append(shares, all[i].Share)
	}
	_, err := tx.Exec(ctx, upsertScores, texts[0], texts[1], texts[2], values, shares, texts[3], now)
	if err == nil {
		_, err = tx.Exec(ctx, forgetScores, now) // of nodes and profiles that are no more
	}
	return store.Classify(err)
}

// look collects the metrics of all nodes.
func look(ctx context.Context, db *store.DB, staleAfter time.Duration, now time.Time) ([]Node, error) {
	former := map[[2]string]Node{}
	known, err := Nodes(ctx, db)
	if err != nil {
		return nil, err
	}
	for _, n := range known {
		former[[2]string{n.Cluster, n.Name}] = n
	}
	table, err := connect.Nodes(ctx, db)
	if err != nil {
		return nil, err
	}
	nets, err := edges(ctx, db)
	if err != nil {
		return nil, err
	}
	nodes, err := store.Collect(ctx, db, "read nodes", func(row pgx.CollectableRow) (Node, error) {
		n := Node{Metrics: profile.Values{}, At: now}
		var cores, memory, cpu, mem, watts, sca, forecast *float64
		var up bool
		err := row.Scan(&n.Cluster, &n.Name, &cores, &memory, &cpu, &mem, &watts, &sca, &forecast, &up)
		for _, m := range []struct {
			name string
			v    *float64
			by   float64
		}{
			{"cores", cores, 1},
			{"memory", memory, 1},
			{"cpu", cpu, 0.01},
			{"mem", mem, 0.01},
			{"energy", watts, 1},
			{"security", sca, 0.01},
			{"cpu_forecast", cmp.Or(forecast, cpu), 0.01},
		} {
			if m.v != nil && links.Known(*m.v) != nil { // one node's nonsense does not keep the others from being observed
				n.Metrics[m.name] = *m.v * m.by
			}
		}
		n.Metrics["node_failure"] = 1
		if up {
			n.Metrics["node_failure"] = 0
		}
		return n, err
	}, selectNodes, now.Add(-staleAfter))
	if err != nil {
		return nil, err
	}
	for i := range nodes {
		n := &nodes[i]
		nets[n.Name].tell(n.Metrics)
		n.Links = nets[n.Name].outwards()
		n.average(former[[2]string{n.Cluster, n.Name}])
	}
	return nodes, join(nodes, table)
}

// average makes moving averages of failures, and of what links draw.
func (n *Node) average(before Node) {
	weight := newest
	if n.At.Sub(before.At) < apart {
		weight = 0
	}
	for _, name := range []string{"node_failure", "link_failure"} {
		was, had := before.Metrics[name]
		is, has := n.Metrics[name]
		if had && has {
			n.Metrics[name] = was + weight*(is-was)
		}
	}
	for to, l := range n.Links {
		former := before.Links[to]
		n.Links[to] = Link{averaged(former.Failure, l.Failure, weight), averaged(former.Energy, l.Energy, weight)}
	}
}

// averaged is what was told so far and what is told now; nil where that is nothing.
func averaged(was, is *float64, weight float64) *float64 {
	if was == nil || is == nil {
		return is
	}
	v := *was + weight*(*is-*was)
	return &v
}

// join adds what the table of the metadata graph says.
func join(nodes []Node, table []connect.Node) error {
	by := map[[2]string]*connect.Node{}
	for i := range table {
		by[[2]string{table[i].Cluster, table[i].Name}] = &table[i]
	}
	var errs []error
	for i := range nodes {
		row := by[[2]string{nodes[i].Cluster, nodes[i].Name}]
		if row == nil {
			continue
		}
		percent, err := strconv.ParseFloat(row.Portability, 64)
		nodes[i].Metrics["portability"] = percent / 100
		if row.Freshness != "" {
			age, wrong := time.ParseDuration(row.Freshness)
			err = errors.Join(err, wrong)
			nodes[i].Metrics["freshness"] = max(0, age.Seconds())
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// edge is what the links of a node have together.
type edge struct{ links, into map[string]*link } // by the node at the other end

type link struct {
	free, failure float64 // bit/s, 0 to 1
	bandwidth     bool    // free is known
	rtt           *float64
	measured      Link // what was measured last, not averaged
}

// outwards is what was measured of the links of a node.
func (e *edge) outwards() map[string]Link {
	if e == nil {
		return nil
	}
	all := map[string]Link{}
	for to, l := range e.links {
		if l.measured != (Link{}) {
			all[to] = l.measured
		}
	}
	return all
}

func (e *edge) tell(v profile.Values) {
	if e == nil {
		return
	}
	for _, l := range e.into {
		if l.bandwidth {
			v["ibw"] += l.free
		}
	}
	if len(e.links) == 0 {
		return // others have links to it, and nobody knows of one of its own
	}
	v["degree"] = float64(len(e.links))
	free, failure, rtt, timed, known := 0.0, 0.0, 0.0, 0, false
	for _, l := range e.links {
		failure += l.failure
		if l.bandwidth {
			free, known = free+l.free, true
		}
		if l.rtt != nil {
			rtt, timed = rtt+*l.rtt/1000, timed+1
		}
	}
	v["link_failure"] = failure
	if known {
		v["ebw"] = free
	}
	if timed > 0 {
		v["latency"] = rtt / float64(timed)
	}
}

// FailureOf returns the part of its packets that a link loses, 1 for one that keeps its channels no longer or is silent; nil if
// nobody has measured that.
func FailureOf(m *links.Measurement, now time.Time) *float64 {
	failure := 1.0
	if m.Degraded == "" && now.Sub(m.MeasuredAt) <= links.Fresh {
		if m.Loss == nil {
			return nil
		}
		failure = min(1, *m.Loss/lossFull)
	}
	return &failure
}

// edges are the links of each node, in both directions: as they were described, with what channels leave of their bandwidth, and as they
// were measured. A link that was measured and is silent now counts as failed, one that loses packets by what it loses.
func edges(ctx context.Context, q store.Querier) (map[string]*edge, error) {
	out := map[string]*edge{}
	at := func(from, to string) *link {
		for _, end := range []string{from, to} {
			if out[end] == nil {
				out[end] = &edge{links: map[string]*link{}, into: map[string]*link{}}
			}
		}
		if out[from].links[to] == nil {
			one := &link{}
			out[from].links[to], out[to].into[from] = one, one
		}
		return out[from].links[to]
	}
	described, err := topologies.Read(ctx, q)
	if err != nil {
		return nil, err
	}
	if described != nil {
		using, err := channels.Using(ctx, q)
		if err != nil {
			return nil, err
		}
		left := channels.Occupied(described, using, func(uuid.UUID) bool { return false })
		free := map[string]float64{}
		for i := range left.Networks {
			for _, m := range left.Networks[i].Media {
				free[m.ID] = float64(m.Free())
			}
		}
		for i := range left.Networks {
			for _, l := range left.Networks[i].Links {
				if l.Source == l.Target {
					continue
				}
				one := at(l.Source, l.Target)
				one.free, one.bandwidth = max(one.free, free[l.Medium]), true
			}
		}
	}
	measured, err := links.All(ctx, q)
	for i := range measured {
		m := &measured[i]
		one := at(m.Source, m.Target)
		one.rtt = m.RTT
		if one.measured.Failure = FailureOf(m, time.Now()); one.measured.Failure != nil {
			one.failure = *one.measured.Failure
		}
		if m.Energy != nil && time.Since(m.MeasuredAt) <= links.Fresh {
			one.measured.Energy = links.Known(*m.Energy)
		}
		if b := cmp.Or(m.Bandwidth, m.Throughput); b != nil && (!one.bandwidth || *b*1000 < one.free) {
			one.free, one.bandwidth = *b*1000, true
		}
	}
	return out, err
}
