package storetest

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/jackc/pgx/v5"

	"github.com/littoral-project/littoral/shared/store"
)

// LockOrder is the order in which transactions take locks, so that no two wait for each other: a transaction that has one may
// wait for those after it only. Names of locks and turns are those of package store; the others are tables, and stand for locks
// on their rows. shared/docs/locks.md explains it.
var LockOrder = []string{
	"inbox", "archive", "topology", "idempotency key", "application name", "swm_objects", "policy", "policies", "policy_alerts", "policy_actions", "handovers", "claims",
	"actions", "placement", "channel_replans", "vlink_provider", "nodes", "bound_agents", "cordons", "applications", "jobs", "node_reservations", "link_sides", "revisions", "policy_events", "reaction_times", "rule_files", "history",
	"topology_nodes", "topology_clusters", "topology_snapshots", "archives", "issuer_keys", "controllers", "codeco_apps", "node_costs", "network_topologies", "channels", "channel_ends", "network_reservations", "addresses", "ipams", "link_measurements", "alto_streams", "mec_access_points", "mec_users", "mec_subscriptions", "dead_letters", "exported_applications", "exported_components",
	"pdlc_pipelines", "model name", "metrics", "metric_forecasts", "metric_series", "trainings", "models", "pdlc_profiles", "pdlc_nodes", "pdlc_scores", "pdlc_agents", "pdlc_recommendations", "pdlc_federations", "pdlc_updates", "metadata", "mdm_entities", "mdm_relations", "mdm_tombstones", "mdm_versions", "mdm_connectors", "mdm_schemas", "bus", "bus_values",
	"bus_forgotten", "bus_sinks", "subscriptions", "outbox",
}

// LockExceptions are pairs that are taken the other way round, with the reason why that does no harm.
var LockExceptions = map[[2]string]string{
	{"policies", "policy"}:             following,
	{"applications", "policy"}:         following,
	{"jobs", "policy"}:                 following,
	{"applications", "policy_alerts"}:  forgetting,
	{"jobs", "policy_alerts"}:          forgetting,
	{"applications", "policy_actions"}: archiving,
	{"jobs", "policy_actions"}:         archiving,

	{"mdm_relations", "mdm_entities"}:   turns,
	{"mdm_tombstones", "mdm_entities"}:  turns,
	{"mdm_tombstones", "mdm_relations"}: turns,
	{"mdm_versions", "mdm_entities"}:    turns,
	{"mdm_versions", "mdm_relations"}:   turns,
	{"mdm_versions", "mdm_tombstones"}:  turns,
}

const (
	following = "a policy that a descriptor asks for is created while its application is locked; if a person creates the same one at " +
		"that moment, Postgres ends one of the two transactions, and it is repeated"
	forgetting = "whoever gets at the alerts of a policy has locked the policy before"
	turns      = "the events of a batch are applied in their order, and publishers take turns (the lock metadata)"
	archiving  = "only actions of applications that were deleted long ago, which nobody locks any more"
)

type outOfOrder struct{}

// OutOfOrder is for a test that takes locks out of order on purpose, to make others wait.
func OutOfOrder(ctx context.Context) context.Context {
	return context.WithValue(ctx, outOfOrder{}, true)
}

// lockWatch watches the statements of all databases of this test process, and keeps those that take a lock out of order.
type lockWatch struct {
	mu    sync.Mutex
	held  map[*pgx.Conn][]string // of connections in a transaction
	wrong map[string]bool
}

var watch = &lockWatch{held: map[*pgx.Conn][]string{}, wrong: map[string]bool{}}

// outOfOrder returns an error that lists what was out of order.
func (w *lockWatch) outOfOrder() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.wrong) == 0 {
		return nil
	}
	var list []string
	for text := range w.wrong {
		list = append(list, text)
	}
	slices.Sort(list)
	return fmt.Errorf("locks are taken out of order (shared/docs/locks.md):\n%s", strings.Join(list, "\n"))
}

// TraceQueryStart implements pgx.QueryTracer.
func (w *lockWatch) TraceQueryStart(ctx context.Context, conn *pgx.Conn, d pgx.TraceQueryStartData) context.Context {
	w.note(ctx, conn, d.SQL, d.Args)
	return ctx
}

// TraceQueryEnd implements pgx.QueryTracer.
func (w *lockWatch) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

// TraceBatchStart implements pgx.BatchTracer.
func (w *lockWatch) TraceBatchStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceBatchStartData) context.Context {
	return ctx
}

// TraceBatchQuery implements pgx.BatchTracer.
func (w *lockWatch) TraceBatchQuery(ctx context.Context, conn *pgx.Conn, d pgx.TraceBatchQueryData) {
	w.note(ctx, conn, d.SQL, d.Args)
}

// TraceBatchEnd implements pgx.BatchTracer.
func (w *lockWatch) TraceBatchEnd(context.Context, *pgx.Conn, pgx.TraceBatchEndData) {}

func (w *lockWatch) note(ctx context.Context, conn *pgx.Conn, sql string, args []any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch verb, _, _ := strings.Cut(strings.ToLower(strings.TrimSpace(sql)), " "); verb {
	case "begin":
		w.held[conn] = []string{}
		return
	case "commit", "rollback":
		delete(w.held, conn)
		return
	}
	held, within := w.held[conn]
	if !within {
		return // a statement of its own has nothing when it waits
	}
	for _, l := range locksOf(sql, args) {
		if slices.Contains(held, l.name) {
			continue
		}
		for _, before := range held {
			if l.waits && ctx.Value(outOfOrder{}) == nil {
				w.edge(before, l.name, sql)
			}
		}
		held = append(held, l.name)
	}
	w.held[conn] = held
}

// edge notes that a transaction waits for one lock while it has another. Tables that a test has made itself are in no order.
func (w *lockWatch) edge(before, after, sql string) {
	from, to := slices.Index(LockOrder, before), slices.Index(LockOrder, after)
	if from > to && to >= 0 && LockExceptions[[2]string{before, after}] == "" {
		w.wrong[fmt.Sprintf("%s, then %s, by: %s", before, after, strings.Join(strings.Fields(sql), " "))] = true
	}
}

// lock is what a statement gets, and whether it waits for it.
type lock struct {
	name  string
	waits bool
}

var (
	advisory = regexp.MustCompile(`(?i)(pg_try_advisory_xact_lock|pg_advisory_xact_lock)\((\$1|hashtextextended\(\$1, \$2\))\)`)
	writes   = regexp.MustCompile(`(?i)\b(?:update|delete from|insert into)\s+([a-z_]+)`)
	rows     = regexp.MustCompile(`(?i)\bfor (?:no key )?update(?: of ([a-z]+))?( skip locked)?`)
	sources  = regexp.MustCompile(`(?i)\b(?:from|join)\s+([a-z_]+)(?:\s+as)?(?:\s+([a-z]+)\b)?`)
)

// locksOf returns the locks that a statement takes, those on rows in the order of the text.
func locksOf(sql string, args []any) []lock {
	var found []lock
	if m := advisory.FindStringSubmatch(sql); m != nil {
		waits := !strings.Contains(strings.ToLower(m[1]), "try")
		if m[2] == "$1" {
			return []lock{{fmt.Sprint(store.Lock(args[0].(int64))), waits}} // as store passes it
		}
		return []lock{{fmt.Sprint(store.Turn(args[1].(int64))), waits}} // as store passes it
	}
	for _, m := range rows.FindAllStringSubmatchIndex(sql, -1) {
		of := ""
		if m[2] >= 0 {
			of = sql[m[2]:m[3]]
		}
		for _, s := range sources.FindAllStringSubmatch(own(sql[:m[0]]), -1) {
			if of == "" || s[2] == of || s[1] == of {
				found = append(found, lock{s[1], m[4] < 0})
				break
			}
		}
	}
	for _, m := range writes.FindAllStringSubmatch(sql, -1) {
		if m[1] == "set" || m[1] == "of" || m[1] == "skip" || m[1] == "nowait" {
			continue
		}
		if strings.HasPrefix(strings.ToLower(m[0]), "insert") && !strings.Contains(strings.ToLower(sql), "on conflict") {
			continue // of a new id: nobody has it
		}
		found = append(found, lock{m[1], true})
	}
	return found
}

// own returns the part of a text that belongs to the query at its end: what is in brackets there belongs to others, and so does
// what is before a bracket that is still open.
func own(text string) string {
	var stack []string
	now := ""
	for _, r := range text {
		switch {
		case r == '(':
			stack, now = append(stack, now), ""
		case r == ')' && len(stack) > 0:
			now, stack = stack[len(stack)-1], stack[:len(stack)-1]
		default:
			now += string(r)
		}
	}
	return now
}
