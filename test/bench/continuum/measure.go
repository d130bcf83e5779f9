package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"runtime/pprof"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/littoral-project/littoral/shared/events"
	"github.com/littoral-project/littoral/test/bench/stats"
	"github.com/littoral-project/littoral/test/images"
)

const (
	alone       = 20  // submissions one after the other
	together    = 50  // submissions at once
	drainedOnce = 20  // busy nodes
	share       = 100 // one node in so many changes

	patience = 10 * time.Minute // with what should take seconds
)

// descriptor has that many components.
func descriptor(name string, components int) []byte {
	var b strings.Builder
	fmt.Fprintf(&b, "name: %s\ncomponents:\n", name)
	for i := range components {
		fmt.Fprintf(&b, `  - name: part%[1]d
    type: kubernetes
    requirements: {cpu: 250m, memory: 128Mi, architecture: x86_64}
    manifests: [{name: part%[1]d, manifest: {apiVersion: v1, kind: ConfigMap, metadata: {name: part%[1]d}}}]
`, i)
	}
	return []byte(b.String())
}

// measure measures one size.
func (w *world) measure(ctx context.Context, nodes int) (m size, err error) {
	m.Nodes = nodes
	c, end, err := w.newContinuum(ctx, nodes)
	defer end()
	if err != nil {
		return m, err
	}
	if err := c.begin(ctx); err != nil {
		return m, err
	}
	begin := time.Now()
	wasLate, err := c.look(ctx)
	switch {
	case err != nil:
		return m, err
	case wasLate:
		m.add("first tick, which did not end within its time", "ms", stats.Millis(time.Since(begin)))
	default:
		m.add("first tick", "ms", stats.Millis(time.Since(begin)))
	}
	if err := c.known(ctx, nodes, wasLate); err != nil {
		return m, err
	}
	for _, p := range inOrder {
		if !slices.Contains(strings.Split(w.options.only, ","), p.name) {
			continue
		}
		fmt.Fprintf(os.Stderr, "continuum: %d nodes, %s ...\n", nodes, p.name)
		if err := p.measure(c, ctx, &m); err != nil {
			return m, err
		}
	}
	m.Load = stats.Load()
	return m, nil
}

// late reports whether a tick that has failed did so because its time was over. That is a measurement and no fault: there was more to read
// and to store than that, and the next look goes on.
func late(ctx context.Context, begin time.Time) bool {
	return ctx.Err() == nil && time.Since(begin) >= images.Limits("aggregator-tick").Timeout
}

// look delivers a tick within this process, and reports whether that was late.
func (c *continuum) look(ctx context.Context) (wasLate bool, err error) {
	begin := time.Now()
	err = c.broker.TickOne(ctx, "aggregator-tick")
	if err != nil && late(ctx, begin) {
		fmt.Fprintln(os.Stderr, "continuum: late:", err)
		return true, nil
	}
	return false, err
}

// known looks until all nodes are known: a look ends when its time is over, and the next one goes on. wasLate says that the last one did.
func (c *continuum) known(ctx context.Context, nodes int, wasLate bool) error {
	for range 10 {
		found := 0
		err := c.db.QueryRow(ctx, `select count(*) from topology_nodes`).Scan(&found)
		if err != nil || found == nodes && !wasLate {
			return err
		}
		if err = c.fleet.Emit(ctx); err != nil {
			return err
		}
		if wasLate, err = c.look(ctx); err != nil {
			return err
		}
		if err := c.db.Flush(ctx); err != nil {
			return err
		}
	}
	return fmt.Errorf("%d nodes are not all known after ten looks", nodes)
}

// inOrder are the parts, of which -only selects some.
var inOrder = []struct {
	name    string
	measure func(*continuum, context.Context, *size) error
}{
	{"ticking", (*continuum).ticking},
	{"taxonomy", (*continuum).taxonomy},
	{"deciding", (*continuum).deciding},
	{"submitting", (*continuum).submitting},
	{"draining", (*continuum).draining},
	{"resting", (*continuum).resting},
}

func parts() (names []string) {
	for _, p := range inOrder {
		names = append(names, p.name)
	}
	return names
}

// profiled writes a processor profile of this process while it does something, if one is wanted.
func (c *continuum) profiled(name string, do func() error) error {
	if c.world.options.profile == "" {
		return do()
	}
	file, err := os.Create(filepath.Join(c.world.options.profile, name+".pprof"))
	if err != nil {
		return err
	}
	if err := pprof.StartCPUProfile(file); err != nil {
		return errors.Join(err, file.Close())
	}
	err = do()
	pprof.StopCPUProfile()
	return errors.Join(err, file.Close())
}

// profileTicks profiles ticks with 1 % changed within this process, where functions and Prometheus can be told apart by
// their frames.
func (c *continuum) profileTicks(ctx context.Context, nodes int) error {
	if c.world.options.profile == "" {
		return nil
	}
	for i := range c.world.options.rounds {
		if err := c.change(nodes, strconv.Itoa(20+i)); err != nil {
			return err
		}
		if err := c.fleet.Emit(ctx); err != nil {
			return err
		}
		tick := func() error { return c.broker.TickOne(ctx, "aggregator-tick") }
		if err := c.profiled(fmt.Sprintf("tick-%d-%d", nodes, i), tick); err != nil {
			return err
		}
	}
	return nil
}

// ticking measures the collection as a process of its own.
func (c *continuum) ticking(ctx context.Context, m *size) error {
	p, err := c.start(ctx, "aggregator-tick")
	if err != nil {
		return err
	}
	defer p.stop()
	tick := func() error { return p.deliver(ctx, c.world, events.Tick, nil) }
	if err := c.fleet.Emit(ctx); err != nil { // the first tick may have taken so long that nodes would count as lost, and then come back
		return err
	}
	if err := tick(); err != nil { // warm
		return err
	}
	timed := func(name string, times int, before func() error) error {
		var took, busy, emitted, asked []float64
		for range times {
			if err := before(); err != nil {
				return err
			}
			simulated := stats.Processor()
			if err := c.fleet.Emit(ctx); err != nil {
				return err
			}
			emitted = append(emitted, stats.Millis(stats.Processor()-simulated))
			begin, used, telemetry := time.Now(), p.busy(), stats.Processor()
			err := tick()
			if err != nil && late(ctx, begin) {
				fmt.Fprintln(os.Stderr, "continuum: late:", err)
				m.add(name+", which did not end within its time", "ms", stats.Millis(time.Since(begin)))
				return nil
			}
			if err != nil {
				return err
			}
			asked = append(asked, stats.Millis(stats.Processor()-telemetry))
			took, busy = append(took, stats.Millis(time.Since(begin))), append(busy, p.busy()-used)
		}
		m.add(name+", whole", "ms", mean(took))
		m.add(name+", processor", "ms", mean(busy))
		m.add(name+", processor of Prometheus", "ms", mean(asked))
		if times > 1 {
			m.add("one round of the simulated fleet, with storing it, processor", "ms", mean(emitted))
			c.tick = mean(busy)
		}
		return nil
	}
	if err := timed("tick without change", c.world.options.rounds, func() error { return nil }); err != nil {
		return err
	}
	if err := timed("tick with 1 % changed", 1, func() error { return c.change(m.Nodes, "77") }); err != nil {
		return err
	}
	if err := c.profileTicks(ctx, m.Nodes); err != nil {
		return err
	}
	if err := c.begun(ctx); err != nil {
		return err
	}
	if err := timed("tick of all nodes", 1, func() error { return nil }); err != nil {
		return err
	}
	p.memory(m)
	return nil
}

// change gives one node in so many another score.
func (c *continuum) change(nodes int, score string) error {
	all := map[string]map[string]string{}
	for i := 0; i < nodes; i += share {
		all[nodeName(i)] = map[string]string{"sca": score}
	}
	return c.fleet.SetAll(all)
}

// begun makes the stored picture one that is to be looked at as a whole, as each few minutes.
func (c *continuum) begun(ctx context.Context) error {
	_, err := c.db.Exec(ctx, `update topology set head = (head::jsonb - 'wholeAt')::json`)
	return err
}

func mean(of []float64) float64 {
	var sum float64
	for _, v := range of {
		sum += v
	}
	return sum / float64(len(of))
}

func (c *continuum) taxonomy(ctx context.Context, m *size) error {
	p, err := c.start(ctx, "aggregator-taxonomy")
	if err != nil {
		return err
	}
	defer p.stop()
	var last answer
	get := func(query string, header map[string]string) func() error {
		return func() (err error) {
			last, err = c.world.ask(ctx, http.MethodGet, p.url+"/aggregator/"+query, "viewer", nil, header)
			return err
		}
	}
	took, err := median(c.world.options.rounds, get("", nil))
	if err != nil {
		return err
	}
	m.add("GET /aggregator/, whole", "ms", took)
	m.add("GET /aggregator/, processor", "ms", p.busy()/float64(c.world.options.rounds))
	m.add("GET /aggregator/, size", "KiB", float64(len(last.body))/1024)
	tag := map[string]string{"If-None-Match": last.header.Get("ETag")}
	if took, err = median(c.world.options.rounds, get("?cluster=site-0000", nil)); err != nil {
		return err
	}
	m.add("GET /aggregator/, one cluster", "ms", took)
	// A look that began meanwhile may end, and change something.
	for tries := 0; last.status != http.StatusNotModified; tries++ {
		if tries == 10 {
			return fmt.Errorf("what has not changed was answered with %d", last.status)
		}
		if took, err = median(c.world.options.rounds, get("", tag)); err != nil {
			return err
		}
		if last.status == http.StatusOK {
			tag["If-None-Match"] = last.header.Get("ETag")
		}
	}
	m.add("GET /aggregator/, unchanged", "ms", took)
	p.memory(m)
	return nil
}

// deciding measures the functions that answer by the whole infrastructure, each as a process of its own.
func (c *continuum) deciding(ctx context.Context, m *size) error {
	for _, f := range []struct{ name, path string }{
		{"matchmaker-plan", "/matchmaker/plan"},
		{"matchmaker-matchmake", "/matchmaker/matchmake"},
		{"matchmaker-explain", "/matchmaker/explain"},
	} {
		p, err := c.start(ctx, f.name)
		if err != nil {
			return err
		}
		ask := func() error {
			_, err := c.world.ask(ctx, http.MethodPost, p.url+f.path, "viewer", descriptor("asked", 2), nil)
			return err
		}
		if err := ask(); err != nil { // warm
			return err
		}
		busy := p.busy()
		took, err := median(c.world.options.rounds, ask)
		m.add("POST "+f.path, "ms", took)
		m.add("POST "+f.path+", processor", "ms", (p.busy()-busy)/float64(c.world.options.rounds))
		p.memory(m)
		p.stop()
		if err != nil {
			return err
		}
	}
	return c.placing(ctx, m)
}

// placing measures matchmaker-place by a storm of events, as a process of its own.
func (c *continuum) placing(ctx context.Context, m *size) error {
	p, err := c.start(ctx, "matchmaker-place")
	if err != nil {
		return err
	}
	defer p.stop()
	c.broker.Connect(nil, false) // nobody else places them
	defer func() { c.broker.Dequeue(); c.broker.Connect(c.consumers, true) }()
	var all []uuid.UUID
	for i := range c.world.options.rounds {
		id, err := c.post(ctx, descriptor(fmt.Sprintf("apart-%d", i), 2))
		if err != nil {
			return err
		}
		all = append(all, uuid.MustParse(id))
	}
	i := 0
	took, err := median(len(all), func() error {
		i++
		return p.deliver(ctx, c.world, events.ApplicationSubmitted, events.Application{ID: all[i-1]})
	})
	if err != nil {
		return err
	}
	m.add("matchmaker-place, one application", "ms", took)
	m.add("matchmaker-place, one application, processor", "ms", p.busy()/float64(c.world.options.rounds))
	p.memory(m)
	return nil
}

const selectUnplaced = `select count(*) from jobs where cluster = '' and type = 'CreateDeployment'`

// submitting measures submissions through all functions: one by one, then many at once.
func (c *continuum) submitting(ctx context.Context, m *size) error {
	c.submitted = true
	if err := c.refresh(ctx); err != nil {
		return err
	}
	var one stats.Sample
	used := stats.Processor()
	for i := range alone {
		begin := time.Now()
		if _, err := c.post(ctx, descriptor(fmt.Sprintf("alone-%d", i), 1+i%4)); err != nil {
			return err
		}
		if err := c.db.Flush(ctx); err != nil {
			return err
		}
		one.Add(time.Since(begin))
	}
	m.add("submit to placed, p50", "ms", one.P50())
	m.add("submit to placed, p99", "ms", one.P99())

	m.add("submit to placed, processor of all functions", "ms", stats.Millis(stats.Processor()-used)/alone)

	used = stats.Processor()
	begin := time.Now()
	var all sync.WaitGroup
	failed := make([]error, together)
	for i := range together {
		all.Go(func() {
			_, failed[i] = c.post(ctx, descriptor(fmt.Sprintf("together-%d", i), 1+i%4))
		})
	}
	all.Wait()
	for _, err := range failed {
		if err != nil {
			return err
		}
	}
	if err := c.awaitNone(ctx, selectUnplaced); err != nil {
		return err
	}
	m.add("50 submissions at once to all placed", "ms", stats.Millis(time.Since(begin)))
	m.add("50 submissions at once, processor of all functions", "ms", stats.Millis(stats.Processor()-used))
	return nil
}

// outcome is how and when something ended.
type outcome struct {
	after time.Duration
	err   error
}

// awaitNone delivers what there is to deliver until the statement counts nothing.
func (c *continuum) awaitNone(ctx context.Context, statement string, args ...any) error {
	return c.await(ctx, func() error { return c.db.Flush(ctx) }, statement, args...)
}

// await does something again and again until the statement counts nothing.
func (c *continuum) await(ctx context.Context, do func() error, statement string, args ...any) error {
	for deadline := time.Now().Add(patience); ; time.Sleep(2 * time.Millisecond) {
		if err := do(); err != nil {
			return err
		}
		left := 0
		if err := c.db.QueryRow(ctx, statement, args...).Scan(&left); err != nil {
			return err
		}
		if left == 0 {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("%d are left after %s of: %s; failed deliveries: %v", left, patience, statement, c.broker.Failures())
		}
	}
}

const (
	selectBusy = `select cluster || '/' || node from jobs where cluster <> '' and cleans is null
group by cluster, node order by cluster, node limit $1`
	selectStranded = `select count(*) from jobs
where cleans is null and type <> 'DeleteDeployment' and (cluster = '' or cluster || '/' || node = any ($1))`
)

// draining drains busy nodes at once and measures until their components are placed elsewhere, from the tick that sees
// it.
func (c *continuum) draining(ctx context.Context, m *size) error {
	if !c.submitted {
		if err := c.submitting(ctx, &size{}); err != nil {
			return err
		}
	}
	rows, err := c.db.Query(ctx, selectBusy, drainedOnce)
	if err != nil {
		return err
	}
	busy, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return err
	}
	for _, node := range busy {
		if err := c.fleet.Drain(node); err != nil {
			return err
		}
	}
	if err := c.fleet.Emit(ctx); err != nil {
		return err
	}
	begin, used := time.Now(), stats.Processor()
	placed := make(chan outcome, 1)
	watching, stop := context.WithCancel(ctx)
	defer stop()
	go func() {
		err := c.await(watching, func() error { return nil }, selectStranded, busy)
		placed <- outcome{time.Since(begin), err}
	}()
	unseen := false
	err = c.profiled(fmt.Sprintf("drain-tick-%d", m.Nodes), func() (err error) {
		unseen, err = c.look(ctx)
		return err
	})
	if err != nil {
		return err
	}
	ticked, looked := stats.Millis(time.Since(begin)), stats.Processor()
	if unseen {
		m.add(fmt.Sprintf("%d busy nodes drained, which was not seen within the time of a tick", drainedOnce), "ms", ticked)
		stop()
		<-placed
		return nil
	}
	err = c.profiled(fmt.Sprintf("drain-%d", m.Nodes), func() error { return c.awaitNone(ctx, selectStranded, busy) })
	if err != nil {
		return err
	}
	whole := time.Since(begin)
	seen := <-placed
	if seen.err != nil {
		return seen.err
	}
	m.add(fmt.Sprintf("%d busy nodes drained to all placed elsewhere, with the tick", drainedOnce), "ms", stats.Millis(seen.after))
	m.add("until what follows from it is done as well", "ms", stats.Millis(whole))
	m.add("the tick of the drain", "ms", ticked)
	m.add("the tick of the drain, processor of all functions and Prometheus", "ms", stats.Millis(looked-used))
	m.add("after the tick of the drain, processor of all functions", "ms", stats.Millis(stats.Processor()-looked))
	m.add("nodes drained", "", float64(len(busy)))
	return nil
}

// scheduled are the functions that a clock wakes every few minutes, besides aggregator-tick and those that ask clusters.
var scheduled = []string{"outbox-sweep", "jobmanager-displace", "policymanager-reconcile", "clock-pause"}

// every is the schedule of their triggers.
const every = 5 * time.Minute

// resting measures what Littoral does when nobody asks for anything, with many applications: the processor time of what
// a clock wakes, as a share of one core. The simulated fleet and Prometheus are measured apart.
func (c *continuum) resting(ctx context.Context, m *size) error {
	if c.world.options.applications == 0 {
		return nil
	}
	for i := range c.world.options.applications {
		if i%share == 0 { // or nodes would be silent for too long
			if err := c.refresh(ctx); err != nil {
				return err
			}
		}
		if _, err := c.post(ctx, descriptor(fmt.Sprintf("resting-%d", i), 1)); err != nil {
			return err
		}
	}
	if err := c.awaitNone(ctx, selectUnplaced); err != nil {
		return err
	}
	used := stats.Processor()
	for _, name := range scheduled {
		if err := c.broker.TickOne(ctx, name); err != nil {
			return err
		}
		if err := c.db.Flush(ctx); err != nil {
			return err
		}
	}
	busy := c.tick + stats.Millis(stats.Processor()-used)
	m.add("at rest, without the fleet and Prometheus", "% of a core", 100*busy/stats.Millis(every))
	return nil
}
