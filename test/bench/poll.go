package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/littoral-project/littoral/shared/job"
	"github.com/littoral-project/littoral/shared/store"
	"github.com/littoral-project/littoral/test/bench/stats"
)

const (
	budgetPoll     = 1.3
	pollUsual      = 1000 // polls of each size
	pollExecutable = 5
)

var pollSizes = []int{10, 1_000, 100_000}

// pollResult is the cost of an agent's poll depending on the number of stored finished jobs.
type pollResult struct {
	Polls int       `json:"polls"`
	Sizes []pollRow `json:"sizes"`
}

type pollRow struct {
	Stored  int      `json:"storedJobs"`
	P50     float64  `json:"p50Ms"`
	P99     float64  `json:"p99Ms"`
	Ratio   float64  `json:"ratio"`   // of the median to that of the smallest size
	Blocks  int      `json:"blocks"`  // of 8 KiB, read by the query
	Indexes []string `json:"indexes"` // on jobs, used by the query
	Scans   bool     `json:"scansJobs"`
}

func runPoll(ctx context.Context, w *world) (result, error) {
	systems := make([]*system, len(pollSizes))
	r := pollResult{Polls: times(pollUsual), Sizes: make([]pollRow, len(pollSizes))}
	for i, size := range pollSizes {
		var err error
		if systems[i], err = w.newSystem(ctx, fmt.Sprintf("poll_%d", size), wiring{}); err != nil {
			return nil, err
		}
		if err := fill(ctx, systems[i].db, size); err != nil {
			return nil, err
		}
		r.Sizes[i].Stored = size
		if err := explain(ctx, systems[i], &r.Sizes[i]); err != nil {
			return nil, err
		}
	}
	took := make([]stats.Sample, len(pollSizes))
	for n := range r.Polls + 20 { // the first ones are not counted: plans and caches settle
		for i, s := range systems {
			begin := time.Now()
			var jobs []work
			if err := s.call(ctx, "agent:"+jobAgent, http.MethodGet, "/jobmanager/jobs/executable/ocm/"+jobAgent, nil, &jobs); err != nil {
				return nil, err
			}
			if n >= 20 {
				took[i].Add(time.Since(begin))
			}
			if len(jobs) != pollExecutable {
				return nil, fmt.Errorf("%d jobs are executable among %d, not %d", len(jobs), pollSizes[i], pollExecutable)
			}
		}
	}
	for i := range r.Sizes {
		r.Sizes[i].P50, r.Sizes[i].P99, r.Sizes[i].Ratio = took[i].P50(), took[i].P99(), took[i].P50()/took[0].P50()
	}
	return r, nil
}

const (
	sqlFinished = `insert into jobs (id, application_id, component, replica, type, state, orchestrator, cluster, node,
  owner_id, epoch, instruction, lost_after, resource_name)
select gen_random_uuid(), $1, 'web', n, 'CreateDeployment', 'Finished', 'ocm', 'cloud', 'cloud-1', $2, 1,
  '{"contents": []}', '5 minutes', 'web'
from generate_series(1, $3) n`

	sqlOpen = `insert into jobs (id, application_id, component, replica, type, state, orchestrator, cluster, node,
  epoch, instruction, lost_after, resource_name)
select gen_random_uuid(), $1, 'new', n, 'CreateDeployment', 'Created', 'ocm', 'cloud', 'cloud-1', 1,
  '{"contents": []}', '5 minutes', 'new'
from generate_series(1, $2) n`
)

func fill(ctx context.Context, db *store.DB, size int) error {
	if _, err := db.Exec(ctx, sqlApplication, benchApplication); err != nil {
		return err
	}
	if _, err := db.Exec(ctx, sqlFinished, benchApplication, jobAgent, size); err != nil {
		return err
	}
	if _, err := db.Exec(ctx, sqlOpen, benchApplication, pollExecutable); err != nil {
		return err
	}
	_, err := db.Exec(ctx, `vacuum analyze jobs, applications`)
	return err
}

// explain asks Postgres for the plan of the statement that the store code sends.
func explain(ctx context.Context, s *system, row *pollRow) error {
	t := &recorder{}
	db, err := store.Open(ctx, store.Config{DatabaseURL: s.tcp, MaxConns: 1}, accepts{}, t)
	if err != nil {
		return err
	}
	defer db.Close()
	if _, err := job.Executable(ctx, db, "ocm", jobAgent); err != nil {
		return err
	}
	asked := t.sent[0]
	lines, err := store.Collect(ctx, db, "explain", pgx.RowTo[string],
		"explain (analyze, buffers, costs off, timing off) "+asked.sql, asked.args...)
	if err != nil {
		return err
	}
	for _, line := range lines {
		if found := scanned.FindStringSubmatch(line); found != nil && !slices.Contains(row.Indexes, found[1]) {
			row.Indexes = append(row.Indexes, found[1])
		}
		row.Scans = row.Scans || strings.Contains(line, "Seq Scan on jobs")
	}
	slices.Sort(row.Indexes)
	for _, line := range lines { // the first one is for the whole statement
		if found := touched.FindStringSubmatch(line); found != nil {
			hit, _ := strconv.Atoi(found[1])
			read, _ := strconv.Atoi(found[2])
			row.Blocks = hit + read
			break
		}
	}
	return nil
}

var (
	scanned = regexp.MustCompile(`Scan (?:using|on) (jobs_\w+)`)
	touched = regexp.MustCompile(`Buffers: shared hit=(\d+)(?: read=(\d+))?`)
)

func (r pollResult) print(w io.Writer) {
	rows := [][]string{{"finished jobs", "p50 ms", "p99 ms", "ratio", "blocks", "scans jobs", "indexes"}}
	for _, s := range r.Sizes {
		rows = append(rows, []string{
			strconv.Itoa(s.Stored), say(s.P50), say(s.P99), say(s.Ratio), strconv.Itoa(s.Blocks), strconv.FormatBool(s.Scans),
			strings.Join(s.Indexes, " "),
		})
	}
	stats.Table(w, rows)
	_, _ = fmt.Fprintf(w, "\nGET executable over HTTP, token checked, %d jobs executable; "+
		"%d polls of each size, in turn. Goal: ratio <= %.1f, by an index.\n", pollExecutable, r.Polls, budgetPoll)
}
