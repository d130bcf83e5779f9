package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/littoral-project/littoral/infra/runner/fleet"
	"github.com/littoral-project/littoral/test/bench/stats"
)

const (
	chainUsual  = 100
	chainWarmUp = 5
	chainFile   = "test/examples/hello.yaml"
)

// chainResult is the time from submitting a descriptor until it is Available.
type chainResult struct {
	Applications int        `json:"applications"`
	P50          float64    `json:"p50Ms"`
	P99          float64    `json:"p99Ms"`
	Stages       []stageRow `json:"stages"` // by function, in the order of their first calls
}

type stageRow struct {
	Function string  `json:"function"`
	Calls    float64 `json:"callsPerApplication"`
	P50      float64 `json:"p50Ms"` // per application: in all its calls, without the calls that they caused
	SQL      float64 `json:"sqlP50Ms"`
	Share    float64 `json:"share"` // of the median of the total
}

func runChain(ctx context.Context, w *world) (result, error) {
	descriptor, err := os.ReadFile(chainFile)
	if err != nil {
		return nil, fmt.Errorf("run it from the root of the source: %w", err)
	}
	watch := &stopwatch{}
	s, err := w.newSystem(ctx, "chain", wiring{around: watch.around, tracer: watch})
	if err != nil {
		return nil, err
	}
	n := times(chainUsual)
	var total stats.Sample
	watch.reset()
	for i := range n + chainWarmUp {
		if err := s.refresh(ctx); err != nil {
			return nil, err
		}
		watch.begin()
		begin := time.Now()
		id, err := s.bringUp(ctx, descriptor)
		if err != nil {
			return nil, err
		}
		took := time.Since(begin)
		watch.end(i >= chainWarmUp)
		if i >= chainWarmUp {
			total.Add(took)
		}
		if err := s.restore(ctx, id); err != nil {
			return nil, err
		}
	}
	return chainResult{Applications: n, P50: total.P50(), P99: total.P99(), Stages: watch.rows(n, total.P50())}, nil
}

// bringUp submits the descriptor, lets every agent work once and checks that it is Available.
func (s *system) bringUp(ctx context.Context, descriptor []byte) (id string, err error) {
	var g group
	if err := s.call(ctx, "operator", http.MethodPost, "/jobmanager/groups", descriptor, &g); err != nil {
		return "", err
	}
	if err := s.finish(ctx); err != nil {
		return "", err
	}
	if err := s.call(ctx, "viewer", http.MethodGet, "/jobmanager/groups/"+g.ID, nil, &g); err != nil {
		return "", err
	}
	if g.Status != "Available" {
		return "", fmt.Errorf("the application is %s, not Available", g.Status)
	}
	return g.ID, nil
}

// restore restores the infrastructure.
func (s *system) restore(ctx context.Context, id string) error {
	if err := s.call(ctx, "operator", http.MethodPut, "/jobmanager/groups/stop/"+id, nil, nil); err != nil {
		return err
	}
	if err := s.finish(ctx); err != nil {
		return err
	}
	return s.call(ctx, "operator", http.MethodDelete, "/jobmanager/groups/"+id, nil, nil)
}

// stopwatch measures how long each function worked. Calls are sequential; if a function gets an event while another one
// still answers, the other one's time is interrupted.
type stopwatch struct {
	mu      sync.Mutex
	running []string
	since   time.Time
	asked   time.Time // start of the running statement
	order   []string
	now     map[string]*spent // of the present application
	all     map[string]*stage
}

type spent struct {
	calls     int
	time, sql time.Duration
}

type stage struct {
	calls     int
	time, sql stats.Sample
}

func (w *stopwatch) reset() { w.all = map[string]*stage{} }

func (w *stopwatch) begin() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.now = map[string]*spent{}
}

func (w *stopwatch) end(counts bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for name, s := range w.now {
		if !counts {
			continue
		}
		if w.all[name] == nil {
			w.all[name] = &stage{}
		}
		w.all[name].calls += s.calls
		w.all[name].time.Add(s.time)
		w.all[name].sql.Add(s.sql)
	}
	w.now = nil
}

func (w *stopwatch) around(name string, h http.Handler) http.Handler {
	return http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		w.enter(name)
		defer w.leave()
		h.ServeHTTP(out, r)
	})
}

func (w *stopwatch) enter(name string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.charge()
	w.running = append(w.running, name)
	if w.now == nil {
		return
	}
	if w.now[name] == nil {
		w.now[name] = &spent{}
	}
	w.now[name].calls++
	if !slices.Contains(w.order, name) {
		w.order = append(w.order, name)
	}
}

func (w *stopwatch) leave() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.charge()
	w.running = w.running[:len(w.running)-1]
}

// charge adds the time since the last change to the function that was working.
func (w *stopwatch) charge() {
	now := time.Now()
	if s := w.current(); s != nil {
		s.time += now.Sub(w.since)
	}
	w.since = now
}

func (w *stopwatch) current() *spent {
	if len(w.running) == 0 {
		return nil
	}
	return w.now[w.running[len(w.running)-1]]
}

// TraceQueryStart implements pgx.QueryTracer.
func (w *stopwatch) TraceQueryStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceQueryStartData) context.Context {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.asked = time.Now()
	return ctx
}

// TraceQueryEnd adds the time that Postgres took.
func (w *stopwatch) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if s := w.current(); s != nil {
		s.sql += time.Since(w.asked)
	}
}

// TraceBatchStart and TraceBatchEnd do the same for batches of statements.
func (w *stopwatch) TraceBatchStart(ctx context.Context, c *pgx.Conn, _ pgx.TraceBatchStartData) context.Context {
	return w.TraceQueryStart(ctx, c, pgx.TraceQueryStartData{})
}

func (w *stopwatch) TraceBatchQuery(context.Context, *pgx.Conn, pgx.TraceBatchQueryData) {}

func (w *stopwatch) TraceBatchEnd(ctx context.Context, c *pgx.Conn, _ pgx.TraceBatchEndData) {
	w.TraceQueryEnd(ctx, c, pgx.TraceQueryEndData{})
}

func (w *stopwatch) rows(applications int, whole float64) []stageRow {
	var rows []stageRow
	for _, name := range w.order {
		s := w.all[name]
		if s == nil {
			continue
		}
		rows = append(rows, stageRow{
			Function: name, Calls: float64(s.calls) / float64(applications), P50: s.time.P50(), SQL: s.sql.P50(),
			Share: s.time.P50() / whole,
		})
	}
	return rows
}

func (r chainResult) print(w io.Writer) {
	rows := [][]string{{"function", "calls", "p50 ms", "of it SQL", "share"}}
	rest := r.P50
	for _, s := range r.Stages {
		rest -= s.P50
		rows = append(rows, []string{
			s.Function, strconv.FormatFloat(s.Calls, 'f', 1, 64), say(s.P50), say(s.SQL), fmt.Sprintf("%.0f%%", 100*s.Share),
		})
	}
	rows = append(rows,
		[]string{"HTTP, routing, agents", "", say(rest), "", fmt.Sprintf("%.0f%%", 100*rest/r.P50)},
		[]string{"submit to Available", "", say(r.P50), "", "p99 " + say(r.P99)},
	)
	stats.Table(w, rows)
	_, _ = fmt.Fprintf(w, "\n%d applications of %s (2 components), one after the other; "+
		"%d agents poll once each and report without delay.\n"+
		"All functions in one process over HTTP, events delivered at once, Postgres with fsync on.\n",
		r.Applications, chainFile, len(fleet.Default().Clusters))
}
