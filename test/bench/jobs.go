package main

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	cloudevents "github.com/cloudevents/sdk-go/v2/event"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/littoral-project/littoral/shared/job"
	"github.com/littoral-project/littoral/shared/store"
	"github.com/littoral-project/littoral/shared/trace"
	"github.com/littoral-project/littoral/test/bench/stats"
)

const (
	budgetJobs   = 0.70
	jobClients   = 8
	jobCycles    = 750 // of each client in a round
	jobsUsual    = 7   // rounds
	jobAgent     = "agent-bench"
	clientStride = 10_000_000 // between the ids of two clients' jobs
)

// jobsResult compares the store code with pgbench. A cycle is one job that is promoted and reported Finished: two
// transactions, and the deletion of the published event from the outbox.
type jobsResult struct {
	Clients int        `json:"clients"`
	Cycles  int        `json:"cyclesPerRound"`
	Rounds  []jobRound `json:"rounds"`
	Ours    float64    `json:"cyclesPerSecond"` // medians
	Raw     float64    `json:"pgbenchCyclesPerSecond"`
	Ratio   float64    `json:"ratio"`
	Reads   float64    `json:"ratioToPgbenchThatReadsToo"`
	OursCPU load       `json:"microsPerCycle"` // medians
	RawCPU  load       `json:"pgbenchMicrosPerCycle"`
	Trips   int        `json:"roundTripsPerCycle"`
	Writes  int        `json:"pgbenchRoundTripsPerCycle"`
	Awaited awaited    `json:"awaited"`
}

// load is the processor time of a cycle, in microseconds. Unlike its duration, it hardly depends on other programs.
type load struct {
	Client float64 `json:"client"`
	Server float64 `json:"postgres"`
}

func (l load) String() string {
	return fmt.Sprintf("%.0f us in the client and %.0f us in Postgres", l.Client, l.Server)
}

func medianLoad(all []load) load {
	var client, server stats.Sample
	for _, l := range all {
		client, server = append(client, l.Client), append(server, l.Server)
	}
	return load{client.P50(), server.P50()}
}

type jobRound struct {
	Ours  float64 `json:"cyclesPerSecond"`
	Raw   float64 `json:"pgbenchCyclesPerSecond"`
	Ratio float64 `json:"ratio"`
	Reads float64 `json:"pgbenchThatReadsTooCyclesPerSecond"`
}

func runJobs(ctx context.Context, w *world) (result, error) {
	pgbench, err := findPgbench()
	if err != nil {
		return nil, err
	}
	address, _, err := w.database(ctx, "jobs")
	if err != nil {
		return nil, err
	}
	b := &jobBench{address: address, pgbench: pgbench, dir: w.dir, data: filepath.Join(w.dir, "pg")}
	if b.db, err = store.Open(ctx, store.Config{DatabaseURL: address, MaxConns: jobClients, PublishAtOnce: jobClients}, accepts{}, nil); err != nil {
		return nil, err
	}
	defer func() { b.db.Close() }() // runAwaited opens another
	if err := b.record(ctx); err != nil {
		return nil, err
	}
	r := jobsResult{Clients: jobClients, Cycles: jobClients * jobCycles, Trips: b.trips, Writes: b.writes}
	var ours, raw, ratios, reads stats.Sample
	var oursCPU, rawCPU []load
	for range times(jobsUsual) {
		o, oc, err := b.ours(ctx)
		if err != nil {
			return nil, err
		}
		p, pc, err := b.raw(ctx, b.writing)
		if err != nil {
			return nil, err
		}
		q, _, err := b.raw(ctx, b.everything)
		if err != nil {
			return nil, err
		}
		r.Rounds = append(r.Rounds, jobRound{o, p, o / p, q})
		ours, raw, ratios, reads = append(ours, o), append(raw, p), append(ratios, o/p), append(reads, o/q)
		oursCPU, rawCPU = append(oursCPU, oc), append(rawCPU, pc)
	}
	r.Ours, r.Raw, r.Ratio, r.Reads = ours.P50(), raw.P50(), ratios.P50(), reads.P50()
	r.OursCPU, r.RawCPU = medianLoad(oursCPU), medianLoad(rawCPU)
	r.Awaited, err = b.runAwaited(ctx)
	return r, err
}

// accepts is a Broker that accepts everything at once.
type accepts struct{}

func (accepts) Publish(context.Context, cloudevents.Event) error { return nil }

// findPgbench searches the PATH and Debian's directories.
func findPgbench() (string, error) {
	if program, err := exec.LookPath("pgbench"); err == nil {
		return program, nil
	}
	if found, err := filepath.Glob("/usr/lib/postgresql/*/bin/pgbench"); err == nil && len(found) > 0 {
		return found[len(found)-1], nil
	}
	return "", errors.New("pgbench is not on this machine; Debian has it in the package postgresql")
}

type jobBench struct {
	address, pgbench, dir string
	data                  string // of Postgres
	db                    *store.DB
	writing, everything   string   // scripts
	variables             []string // -D arguments of pgbench
	trips, writes         int
}

var benchApplication = uuid.MustParse("11111111-1111-7111-8111-111111111111")

// jobID is the id of a client's job number n, as the SQL below computes it.
func jobID(client, n int) (id uuid.UUID) {
	binary.BigEndian.PutUint64(id[8:], uint64(client*clientStride+n)) // both are small and positive
	return id
}

const (
	sqlApplication = `insert into applications (id, name, namespace, descriptor)
values ($1, 'bench', 'bench-11111111', '')`

	// Jobs after the matchmaker's decision: placed, without an owner.
	sqlJobs = `insert into jobs (id, application_id, component, replica, type, state, orchestrator, cluster, node, epoch,
  instruction, cpu_milli, memory_bytes, lost_after, resource_name, conditions)
select lpad(to_hex(client * $2::bigint + n), 32, '0')::uuid, $1, 'web', client * $2 + n, 'CreateDeployment', 'Created',
  'ocm', 'cloud', 'cloud-1', 1, $4, 500, 134217728, '5 minutes', 'web', $5
from generate_series(0, $6 - 1) client, generate_series(1, $3) n`
)

// seed replaces all jobs by those of one round.
func (b *jobBench) seed(ctx context.Context) error {
	instruction := job.Instruction{ComponentName: "web", Type: "kubernetes", Contents: []job.Content{{
		Name: "web", YAML: strings.Repeat("# as long as a small Deployment is\n", 25),
	}}}
	conditions := []job.Condition{{
		Type: job.ConditionCreated, Status: "True", ObservedGeneration: 1, LastTransitionTime: time.Now().UTC(),
		Reason: "AwaitingForExecution", Message: "best of 12 nodes",
	}}
	if _, err := b.db.Exec(ctx, `truncate applications, jobs, history, outbox cascade`); err != nil {
		return err
	}
	if _, err := b.db.Exec(ctx, sqlApplication, benchApplication); err != nil {
		return err
	}
	_, err := b.db.Exec(ctx, sqlJobs, benchApplication, clientStride, jobCycles+1, instruction, conditions, jobClients)
	if err != nil {
		return err
	}
	for _, statement := range []string{`vacuum analyze applications, jobs, history, outbox`, `checkpoint`} {
		if _, err := b.db.Exec(ctx, statement); err != nil {
			return err
		}
	}
	return nil
}

// cycle promotes a job and reports it Finished, as the functions do.
func cycle(ctx context.Context, db *store.DB, id uuid.UUID) error {
	ctx = trace.WithCause(store.WithSource(trace.Start(ctx, ""), "/functions/bench"), "caller "+jobAgent)
	err := db.Tx(ctx, func(ctx context.Context, tx *store.Tx) error {
		return job.Claim(ctx, tx, id, jobAgent, job.DefaultLease)
	})
	if err != nil {
		return err
	}
	return db.Tx(ctx, func(ctx context.Context, tx *store.Tx) error {
		_, err := job.Work(ctx, tx, job.Report{
			ID: id, OwnerID: jobAgent, Type: job.Create, State: job.Finished, Epoch: 1,
			Resource: job.Resource{UUID: "resource", Name: "web", Conditions: []job.Condition{{
				Type: job.ConditionAvailable, Status: "True", LastTransitionTime: time.Now().UTC(), Reason: "Reported",
			}}},
		}, job.DefaultLease)
		return err
	})
}

// ours runs a round with the store code and returns cycles per second and what one costs.
func (b *jobBench) ours(ctx context.Context) (rate float64, cost load, err error) {
	if err := b.seed(ctx); err != nil {
		return 0, load{}, err
	}
	for client := range jobClients { // every connection is open and has prepared its statements
		if err := cycle(ctx, b.db, jobID(client, jobCycles+1)); err != nil {
			return 0, load{}, err
		}
	}
	if err := b.db.Flush(ctx); err != nil {
		return 0, load{}, err
	}
	runtime.GC()
	var running sync.WaitGroup
	failures := make([]error, jobClients)
	client, server, begin := stats.Processor(), b.serverCPU(), time.Now()
	for client := range jobClients {
		running.Go(func() {
			for n := 1; n <= jobCycles && failures[client] == nil; n++ {
				failures[client] = cycle(ctx, b.db, jobID(client, n))
			}
		})
	}
	running.Wait()
	if err := b.db.Flush(ctx); err != nil { // a cycle ends when its events have left the outbox
		return 0, load{}, err
	}
	took := time.Since(begin)
	const all = jobClients * jobCycles
	return all / took.Seconds(), perCycle(stats.Processor()-client, b.serverCPU()-server), errors.Join(failures...)
}

func perCycle(client, server time.Duration) load {
	const all = jobClients * jobCycles
	return load{float64(client.Microseconds()) / all, float64(server.Microseconds()) / all}
}

// raw runs a round with pgbench.
func (b *jobBench) raw(ctx context.Context, text string) (rate float64, cost load, err error) {
	if err := b.seed(ctx); err != nil {
		return 0, load{}, err
	}
	script := filepath.Join(b.dir, "cycle.sql")
	if err := os.WriteFile(script, []byte(text), 0o600); err != nil {
		return 0, load{}, err
	}
	args := append([]string{
		"-n", "-M", "prepared", "-c", strconv.Itoa(jobClients), "-j", strconv.Itoa(runtime.NumCPU()),
		"-t", strconv.Itoa(jobCycles), "-f", script,
	}, b.variables...)
	cmd := exec.CommandContext(ctx, b.pgbench, append(args, b.address)...)
	server := b.serverCPU()
	out, err := cmd.CombinedOutput()
	server = b.serverCPU() - server
	if err != nil {
		return 0, load{}, fmt.Errorf("pgbench: %w\n%s", err, out)
	}
	found := regexp.MustCompile(`tps = ([0-9.]+) \(without initial connection time\)`).FindSubmatch(out)
	if found == nil {
		return 0, load{}, fmt.Errorf("pgbench did not say what is expected:\n%s", out)
	}
	var done int
	const finished = `select count(*) from jobs where state = 'Finished'`
	if err := b.db.QueryRow(ctx, finished).Scan(&done); err != nil || done != jobClients*jobCycles {
		return 0, load{}, errors.Join(err, fmt.Errorf("pgbench finished %d jobs", done))
	}
	rate, err = strconv.ParseFloat(string(found[1]), 64)
	return rate, perCycle(cmd.ProcessState.UserTime()+cmd.ProcessState.SystemTime(), server), err
}

// serverCPU is the processor time of Postgres so far: of its first process, of the ended children, and of the running
// ones.
func (b *jobBench) serverCPU() time.Duration {
	text, err := os.ReadFile(filepath.Join(b.data, "postmaster.pid"))
	if err != nil {
		return 0
	}
	first, _, _ := strings.Cut(string(text), "\n")
	ticks := 0
	found, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, file := range found {
		text, err := os.ReadFile(file)
		if err != nil {
			continue // it has ended
		}
		pid, rest, _ := strings.Cut(string(text), " ")
		// The name is in parentheses and may contain anything; state, parent and the rest follow, from field 3 on.
		at := strings.Fields(rest[strings.LastIndexByte(rest, ')')+1:])
		switch {
		case pid == first:
			ticks += number(at[11]) + number(at[12]) + number(at[13]) + number(at[14])
		case at[1] == first:
			ticks += number(at[11]) + number(at[12])
		}
	}
	const tick = 10 * time.Millisecond // USER_HZ is 100 on every Linux that Go runs on
	return time.Duration(ticks) * tick
}

func number(text string) int {
	n, _ := strconv.Atoi(text)
	return n
}

// record runs one cycle and makes pgbench scripts from its statements: the same text with the same values, but with
// other ids. One script leaves out the statements that only read.
func (b *jobBench) record(ctx context.Context) error {
	if err := b.seed(ctx); err != nil {
		return err
	}
	t := &recorder{}
	db, err := store.Open(ctx, store.Config{DatabaseURL: b.address, MaxConns: 1}, accepts{}, t)
	if err != nil {
		return err
	}
	defer db.Close()
	id := jobID(0, jobCycles+1)
	if err := errors.Join(cycle(ctx, db, id), db.Flush(ctx)); err != nil {
		return err
	}
	b.trips = len(t.sent) - t.saved
	all := []string{`\set n :n + 1`, fmt.Sprintf(`\set job :client_id * %d + :n`, clientStride)}
	lines := slices.Clone(all)
	b.variables = []string{"-D", "n=0"}
	for i, s := range t.sent {
		text := placeholder.ReplaceAllStringFunc(s.sql, func(p string) string {
			n, _ := strconv.Atoi(p[1:])
			return b.operand(fmt.Sprintf("v%d_%d", i, n), s.args[n-1], id)
		})
		line := strings.ReplaceAll(text, "\n", " ") + ";"
		all = append(all, line)
		if !strings.HasPrefix(s.sql, "select") {
			b.writes++
			lines = append(lines, line)
		}
	}
	b.writing, b.everything = strings.Join(lines, "\n")+"\n", strings.Join(all, "\n")+"\n"
	return nil
}

var placeholder = regexp.MustCompile(`\$\d+`)

// operand writes an argument for pgbench: an expression for ids, which differ from cycle to cycle, else a variable with
// the value.
func (b *jobBench) operand(name string, arg any, job uuid.UUID) string {
	const expression = `lpad(to_hex(:job::bigint), 32, '0')::uuid`
	switch v := arg.(type) {
	case uuid.UUID:
		if v == job {
			return expression
		}
	case *uuid.UUID:
		if v != nil && *v == job {
			return expression
		}
	case []uuid.UUID: // ids of events, each about one job
		return "array[" + expression + "]"
	}
	value, null := plain(arg)
	switch {
	case null:
		return "null"
	case value == "": // pgbench has no empty variables
		return "''"
	}
	if _, err := uuid.Parse(value); err == nil && value != benchApplication.String() {
		return expression // the event's own id
	}
	b.variables = append(b.variables, "-D", name+"="+value)
	return ":" + name
}

// plain formats a value as text for Postgres.
func plain(arg any) (text string, null bool) {
	v := reflect.ValueOf(arg)
	if !v.IsValid() || (v.Kind() == reflect.Pointer || v.Kind() == reflect.Slice) && v.IsNil() {
		return "", true
	}
	if v.Kind() == reflect.Pointer {
		return plain(v.Elem().Interface())
	}
	switch a := arg.(type) {
	case time.Duration:
		return fmt.Sprintf("%d microseconds", a.Microseconds()), false
	case time.Time:
		return a.Format(time.RFC3339Nano), false
	case uuid.UUID:
		return a.String(), false
	case []byte:
		return string(a), false
	case json.RawMessage:
		return string(a), false
	case []string:
		return "{" + strings.Join(a, ",") + "}", false
	}
	if v.Kind() == reflect.Slice && v.Type().Elem().Kind() == reflect.String { // of a type of its own
		all := make([]string, 0, v.Len())
		for i := range v.Len() {
			all = append(all, v.Index(i).String())
		}
		return plain(all)
	}
	switch v.Kind() {
	case reflect.String:
		return v.String(), false
	case reflect.Struct, reflect.Slice, reflect.Map:
		text, err := json.Marshal(arg)
		return string(text), err != nil
	}
	return fmt.Sprint(arg), false
}

// recorder records every statement with its arguments.
type recorder struct {
	sent  []statement
	saved int // round trips that batches saved
}

type statement struct {
	sql  string
	args []any
}

func (r *recorder) TraceQueryStart(ctx context.Context, _ *pgx.Conn, d pgx.TraceQueryStartData) context.Context {
	r.sent = append(r.sent, statement{d.SQL, slices.Clone(d.Args)})
	return ctx
}

func (r *recorder) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

// TraceBatchStart records the statements of a batch.
func (r *recorder) TraceBatchStart(ctx context.Context, _ *pgx.Conn, d pgx.TraceBatchStartData) context.Context {
	for _, q := range d.Batch.QueuedQueries {
		r.sent = append(r.sent, statement{q.SQL, slices.Clone(q.Arguments)})
	}
	r.saved += len(d.Batch.QueuedQueries) - 1
	return ctx
}

func (r *recorder) TraceBatchQuery(context.Context, *pgx.Conn, pgx.TraceBatchQueryData) {}
func (r *recorder) TraceBatchEnd(context.Context, *pgx.Conn, pgx.TraceBatchEndData)     {}

func (r jobsResult) print(w io.Writer) {
	rows := [][]string{{
		"round", "store cycles/s", "pgbench cycles/s", "ratio", "pgbench that reads too", "ratio",
	}}
	for i, x := range r.Rounds {
		rows = append(rows, []string{
			strconv.Itoa(i + 1), say(x.Ours), say(x.Raw), say(x.Ratio), say(x.Reads), say(x.Ours / x.Reads),
		})
	}
	rows = append(rows, []string{"median", say(r.Ours), say(r.Raw), say(r.Ratio), "", say(r.Reads)})
	stats.Table(w, rows)
	_, _ = fmt.Fprintf(w, "\n%d connections, %d cycles a round, fsync on. "+
		"A cycle is promote, report Finished and clear the outbox: 3 commits, 2 of which wait for the disk.\n"+
		"Round trips of a cycle: %d, reads included; pgbench that reads nothing: %d.\n"+
		"Processor time of a cycle: %s; with pgbench %s.\nGoal: ratio >= %.2f.\n",
		r.Clients, r.Cycles, r.Trips, r.Writes, r.OursCPU, r.RawCPU, budgetJobs)
	r.Awaited.print(w)
}
