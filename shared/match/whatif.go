package match

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/littoral-project/littoral/shared/application"
	"github.com/littoral-project/littoral/shared/appmodel"
	"github.com/littoral-project/littoral/shared/etag"
	"github.com/littoral-project/littoral/shared/history/recorded"
	"github.com/littoral-project/littoral/shared/job"
	"github.com/littoral-project/littoral/shared/placement"
	"github.com/littoral-project/littoral/shared/problem"
	"github.com/littoral-project/littoral/shared/store"
	"github.com/littoral-project/littoral/shared/topology"
)

// Question supposes changes of the infrastructure, and a descriptor that is handed in then.
type Question struct {
	Drain      []string                      `json:"drain"`      // nodes, as CLUSTER/NODE
	Cut        []string                      `json:"cut"`        // clusters that are lost
	Set        map[string]map[string]float64 `json:"set"`        // by CLUSTER/NODE: sca, cpu and memory (percent), energy (watts), cores, ram (bytes)
	Descriptor string                        `json:"descriptor"` // to submit, or to update its application with
	App        *uuid.UUID                    `json:"app"`        // the application that it is for; nil = the only one of its name, else a new one

	Parsed *appmodel.Application `json:"-"` // Descriptor, parsed
}

// Outcome is what would happen.
type Outcome struct {
	Moves    []Shift  `json:"moves"`    // components that would get another place
	Losers   []Shift  `json:"losers"`   // components that would be without a place, or stay where they do not fit
	Arrivals []Shift  `json:"arrivals"` // components that would get a first place
	Plan     *Preview `json:"plan,omitempty"`

	Downtime Downtime `json:"downtime"`
	Before   Capacity `json:"before"`
	After    Capacity `json:"after"`
	Gap      float64  `json:"gap"`    // how far from the best the worst of the decisions may be, as a share of it; 0 if proven best
	Exact    bool     `json:"exact"`  // no decision can be better, by proof
	Looked   int      `json:"looked"` // applications that it concerns
}

// Shift is what would become of one component.
type Shift struct {
	Application uuid.UUID   `json:"application"`
	Name        string      `json:"name"` // of the application
	Component   string      `json:"component"`
	Replica     int         `json:"replica"`
	From        *job.Target `json:"from,omitempty"`
	To          *job.Target `json:"to,omitempty"`
	Why         string      `json:"why,omitempty"`
}

// Downtime is how long a component that moves is expected not to run: what it took from a placement to running lately.
type Downtime struct {
	EachSeconds  *float64 `json:"eachSeconds"`  // the median; null when nothing was placed lately
	TotalSeconds *float64 `json:"totalSeconds"` // of all moves one after the other
	From         int      `json:"from"`         // of so many placements
}

// Capacity is what the nodes have that take components.
type Capacity struct {
	Nodes          int   `json:"nodes"`
	CPUMilli       int64 `json:"cpuMilli"`
	MemoryBytes    int64 `json:"memoryBytes"`
	CPUReserved    int64 `json:"cpuReservedMilli"`
	MemoryReserved int64 `json:"memoryReservedBytes"`
}

// mostSupposed bounds how many applications one question may concern: it holds their locks.
const mostSupposed = 1000

// assumption is what a question takes for granted; it changes what was read of the infrastructure.
type assumption struct {
	drained map[string]bool
	cut     map[string]bool
	set     map[string]map[string]float64
}

// readings are what Set may change.
var readings = map[string]func(*topology.Node, topology.Measure){
	"sca":    func(n *topology.Node, v topology.Measure) { n.ScaScore = v },
	"cpu":    func(n *topology.Node, v topology.Measure) { n.DynamicMetrics.CPUUsagePercent = v },
	"memory": func(n *topology.Node, v topology.Measure) { n.DynamicMetrics.MemoryUsagePercent = v },
	"energy": func(n *topology.Node, v topology.Measure) { n.DynamicMetrics.CPUPowerWatts = v },
	"cores":  func(n *topology.Node, v topology.Measure) { n.StaticMetrics.CPUCores = v },
	"ram":    func(n *topology.Node, v topology.Measure) { n.StaticMetrics.RAMMemory = v },
}

func (a *assumption) apply(inv *inventory) {
	if a == nil {
		return
	}
	inv.places = slices.DeleteFunc(inv.places, func(p topology.Place) bool { return a.cut[p.Cluster] })
	for i := range inv.places {
		p := &inv.places[i]
		name := p.Cluster + "/" + p.Node
		if !a.drained[name] && a.set[name] == nil {
			continue
		}
		n := *p.At
		if a.drained[name] {
			no := false
			n.Schedulable = &no
		}
		for what, v := range a.set[name] {
			readings[what](&n, topology.Known(v))
		}
		p.At = &n
	}
}

// assume checks the names in the question. The error is Invalid with all that are unknown.
func (q *Question) assume(inv *inventory) (*assumption, error) {
	a := &assumption{drained: map[string]bool{}, cut: map[string]bool{}, set: q.Set}
	nodes, clusters := map[string]bool{}, map[string]bool{}
	for _, p := range inv.places {
		nodes[p.Cluster+"/"+p.Node], clusters[p.Cluster] = true, true
	}
	var faults problem.Faults
	for i, n := range q.Drain {
		if a.drained[n] = true; !nodes[n] {
			faults.Add(fmt.Sprintf("drain[%d]", i), 0, "there is no node %q; a node is named CLUSTER/NODE", n)
		}
	}
	for i, c := range q.Cut {
		if a.cut[c] = true; !clusters[c] {
			faults.Add(fmt.Sprintf("cut[%d]", i), 0, "there is no cluster %q", c)
		}
	}
	for _, n := range slices.Sorted(maps.Keys(q.Set)) {
		if !nodes[n] {
			faults.Add("set."+n, 0, "there is no such node; a node is named CLUSTER/NODE")
		}
		for _, what := range slices.Sorted(maps.Keys(q.Set[n])) {
			switch v := q.Set[n][what]; {
			case readings[what] == nil:
				faults.Add("set."+n+"."+what, 0, "is not one of %s", strings.Join(slices.Sorted(maps.Keys(readings)), ", "))
			case v < 0:
				faults.Add("set."+n+"."+what, 0, "is below 0")
			}
		}
	}
	return a, faults.Err("the question is not valid")
}

// leaves says why a job would have to leave its place; empty if it need not.
func (a *assumption) leaves(j *job.Job) string {
	switch {
	case !j.Placed() || !j.Live():
		return ""
	case a.cut[j.Target.Cluster]:
		return "its cluster would be cut off"
	case a.drained[j.Target.Cluster+"/"+j.Target.Node]:
		return "its node would be drained"
	}
	return ""
}

const (
	selectRunningOn = `select distinct j.application_id from jobs j join applications a on a.id = j.application_id
where j.cluster <> '' and j.cleans is null and j.type <> 'DeleteDeployment' and a.desired = 'running' and a.deleted_at is null
and (j.cluster = any($1) or j.cluster || '/' || j.node = any($2)) order by 1 limit $3`
	selectLastEntry = `select coalesce(max(id), 0) from history`
	selectDecisions = `select data from history where id > $1 and application_id is not null and data is not null
and event in ('` + recorded.ApplicationPlaced + `', '` + recorded.ApplicationUnplaced + `')`
	// Placements of which it is known when what was placed ran, newest first.
	selectDowntime = `select coalesce(percentile_cont(0.5) within group (order by extract(epoch from took)), 0)::float8, count(*)
from (select (select min(f.at) from history f where f.job_id = p.job_id and f.id > p.id and f.to_state = 'Finished') - p.at as took
  from (select id, at, job_id from history where event = '` + recorded.JobPlaced + `' and job_id is not null order by id desc limit 100) p) t
where took is not null`
)

// WhatIf answers the question by doing what it says in a transaction that is rolled back: so it shows what the real code
// would do. The error is Invalid for what is unknown, Unavailable without fresh telemetry, or that of Look.
func WhatIf(ctx context.Context, db *store.DB, q Question, s Settings, lostAfter time.Duration) (*Outcome, error) {
	w := whatif{q: q, s: s, lostAfter: lostAfter, before: map[uuid.UUID]*application.Application{}}
	err := db.Tx(ctx, func(ctx context.Context, tx *store.Tx) error {
		w.out = Outcome{Moves: []Shift{}, Losers: []Shift{}, Arrivals: []Shift{}, Exact: true}
		if err := Lock(ctx, tx); err != nil {
			return err
		}
		if err := w.run(ctx, tx); err != nil {
			return err
		}
		return errRollBack
	})
	if !errors.Is(err, errRollBack) {
		return nil, err
	}
	return &w.out, nil
}

type whatif struct {
	q         Question
	s         Settings
	lostAfter time.Duration
	assumed   *assumption
	before    map[uuid.UUID]*application.Application
	order     []uuid.UUID
	out       Outcome
}

func (w *whatif) run(ctx context.Context, tx *store.Tx) error {
	inv, blind, err := freshInventory(ctx, tx, w.s)
	switch {
	case err != nil:
		return err
	case blind != "":
		return problem.New(problem.Unavailable, "nobody can tell now: %s", blind)
	}
	if w.assumed, err = w.q.assume(inv); err != nil {
		return err
	}
	w.out.Before = inv.capacity()
	w.s.assume = w.assumed
	var last int64
	if err := tx.QueryRow(ctx, selectLastEntry).Scan(&last); err != nil {
		return fmt.Errorf("read the last entry: %w", err)
	}
	if err := w.infrastructure(ctx, tx); err != nil {
		return err
	}
	if w.q.Parsed != nil {
		if err := w.descriptor(ctx, tx); err != nil {
			return err
		}
	}
	for _, id := range w.order {
		after, err := application.Get(ctx, tx, id)
		if err != nil {
			return err
		}
		w.compare(w.before[id], after)
	}
	w.out.Looked = len(w.order)
	if inv, err = readInventory(ctx, tx, w.s); err != nil {
		return err
	}
	w.out.After = inv.capacity()
	if err := w.proof(ctx, tx, last); err != nil {
		return err
	}
	return w.downtime(ctx, tx)
}

// infrastructure does what would follow from the drains, cuts and readings.
func (w *whatif) infrastructure(ctx context.Context, tx *store.Tx) error {
	var nodes []string
	for n := range w.assumed.drained {
		nodes = append(nodes, n)
	}
	for n := range w.assumed.set {
		nodes = append(nodes, n)
	}
	cut := slices.Sorted(maps.Keys(w.assumed.cut))
	if len(nodes)+len(cut) == 0 {
		return nil
	}
	apps, err := store.Collect(ctx, tx, "find what it concerns", pgx.RowTo[uuid.UUID], selectRunningOn, cut, nodes, mostSupposed+1)
	if err != nil {
		return err
	}
	if len(apps) > mostSupposed {
		return problem.New(problem.Conflict, "it concerns more than %d applications; ask about less at once", mostSupposed)
	}
	waiting, err := application.Waiting(ctx, tx, uuid.Nil, MostTogether)
	if err != nil {
		return err
	}
	for _, id := range slices.Concat(apps, waiting) {
		if err := w.remember(ctx, tx, id); err != nil {
			return err
		}
	}
	for _, id := range apps {
		if err := application.DisplaceFor(ctx, tx, id, w.assumed.leaves); err != nil {
			return err
		}
	}
	again := slices.Concat(apps, waiting)
	slices.SortFunc(again, func(a, b uuid.UUID) int { return strings.Compare(a.String(), b.String()) })
	if err := PlaceAll(ctx, tx, slices.Compact(again), w.s, "to see what would happen"); err != nil {
		return err
	}
	onSet := func(j *job.Job) bool { return w.assumed.set[j.Target.Cluster+"/"+j.Target.Node] != nil }
	for _, id := range apps {
		if len(w.assumed.set) == 0 || !slices.ContainsFunc(w.before[id].Jobs, onSet) {
			continue
		}
		if _, err := place(ctx, tx, id, w.s, onSet, "to see what would happen"); err != nil {
			return err
		}
	}
	return nil
}

func (w *whatif) remember(ctx context.Context, tx *store.Tx, id uuid.UUID) error {
	if w.before[id] != nil {
		return nil
	}
	a, err := application.Get(ctx, tx, id)
	if err != nil {
		return err
	}
	w.before[id], w.order = a, append(w.order, id)
	return nil
}

// descriptor submits it, or updates its application with it.
func (w *whatif) descriptor(ctx context.Context, tx *store.Tx) error {
	document := []byte(w.q.Descriptor)
	before, err := findExisting(ctx, tx, w.q.Parsed.Name, w.q.App)
	if err != nil {
		return err
	}
	p := &Preview{Name: w.q.Parsed.Name, Derived: problem.Texts(w.q.Parsed.Derived)}
	var after *application.Application
	if before == nil {
		after, _, err = application.Submit(ctx, tx, application.Submission{Document: document, Parsed: w.q.Parsed, LostAfter: w.lostAfter})
	} else {
		p.Application = &before.ID
		after, err = application.NewChange(before.ID, document, w.q.Parsed).Put(ctx, tx, "", etag.Match{}, w.lostAfter)
	}
	if err != nil {
		return err
	}
	p.Warnings = after.Warnings
	changed := before == nil || after.Version != before.Version
	if err := Place(ctx, tx, after.ID, w.s, changed, "to see what would happen"); err != nil {
		return err
	}
	id := after.ID
	if after, err = application.Get(ctx, tx, id); err != nil {
		return err
	}
	p.compare(w.q.Parsed, before, after)
	if before != nil && changed {
		if err := p.rest(before, w.q.Parsed); err != nil {
			return err
		}
	}
	w.out.Plan = p
	if w.before[id] == nil {
		w.order = append(w.order, id)
		if w.before[id] = before; before == nil {
			w.before[id] = &application.Application{}
		}
	}
	return nil
}

// compare sorts the components of an application into those that move, lose and arrive.
func (w *whatif) compare(before, after *application.Application) {
	was := map[uuid.UUID]*job.Job{}
	for _, j := range before.Jobs {
		was[j.ID] = j
	}
	for _, j := range after.Jobs {
		if j.Cleans != nil || !j.Live() {
			continue
		}
		old := was[j.ID]
		shift := Shift{Application: after.ID, Name: after.Name, Component: j.Component, Replica: j.Replica, Why: step(old, j).Why}
		had := old != nil && old.Placed()
		if had {
			shift.From = &old.Target
		}
		if j.Placed() {
			shift.To = &j.Target
		}
		switch {
		case had && !j.Placed():
			w.out.Losers = append(w.out.Losers, shift)
		case had && j.IsMisplaced(job.TooLarge) && !old.IsMisplaced(job.TooLarge):
			shift.To = nil
			w.out.Losers = append(w.out.Losers, shift)
		case had && j.Target != old.Target:
			w.out.Moves = append(w.out.Moves, shift)
		case !had && j.Placed():
			w.out.Arrivals = append(w.out.Arrivals, shift)
		case !had && old == nil:
			w.out.Losers = append(w.out.Losers, shift) // new, and nowhere to go
		}
	}
}

// proof reads what the decisions say of how good they are.
func (w *whatif) proof(ctx context.Context, tx *store.Tx, last int64) error {
	stored, err := store.Collect(ctx, tx, "read decisions", pgx.RowTo[[]byte], selectDecisions, last)
	if err != nil {
		return err
	}
	for _, body := range stored {
		var d placement.Decision
		if json.Unmarshal(body, &d) != nil || len(d.Assignments) == 0 {
			continue
		}
		w.out.Gap, w.out.Exact = max(w.out.Gap, d.Gap), w.out.Exact && d.Exact
	}
	return nil
}

func (w *whatif) downtime(ctx context.Context, tx *store.Tx) error {
	var median float64
	d := &w.out.Downtime
	if err := tx.QueryRow(ctx, selectDowntime).Scan(&median, &d.From); err != nil {
		return fmt.Errorf("read how long placements took: %w", err)
	}
	if d.From > 0 {
		total := median * float64(len(w.out.Moves))
		d.EachSeconds, d.TotalSeconds = &median, &total
	}
	return nil
}

// capacity sums what the nodes have that take components.
func (inv *inventory) capacity() Capacity {
	var c Capacity
	for _, p := range inv.places {
		if !p.At.CanSchedule() || p.At.Lost(inv.at, inv.staleAfter) || inv.closed(p.Cluster, p.Node) {
			continue
		}
		c.Nodes++
		cpu, _ := p.At.CPUMilli()
		memory, _ := p.At.MemoryBytes()
		c.CPUMilli, c.MemoryBytes = c.CPUMilli+cpu, c.MemoryBytes+memory
		for _, r := range inv.reservations[[2]string{p.Cluster, p.Node}] {
			c.CPUReserved, c.MemoryReserved = c.CPUReserved+r.CPUMilli, c.MemoryReserved+r.Memory
		}
	}
	return c
}
