package topology

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/littoral-project/littoral/shared/events"
	"github.com/littoral-project/littoral/shared/history"
	"github.com/littoral-project/littoral/shared/problem"
	"github.com/littoral-project/littoral/shared/store"
)

const (
	selectCurrent = `select taxonomy, at from topology`

	// The topology that was announced last. Differences are taken from it, so that many small ones add up.
	selectAnnounced = `select t.at, s.taxonomy, s.at from topology t left join topology_snapshots s on s.id = t.snapshot`

	upsertCurrent = `insert into topology (snapshot, taxonomy, at, silent_until) values ($1, $2, $3, $4)
on conflict (singleton) do update set
	snapshot = excluded.snapshot, taxonomy = excluded.taxonomy, at = excluded.at, silent_until = excluded.silent_until`
	updateCurrent = `update topology set taxonomy = $1, at = $2, silent_until = $3`

	insertSnapshot = `insert into topology_snapshots (id, at, changes, taxonomy) values ($1, $2, $3, $4)`

	// UUIDv7 sorts by age. The newest snapshots stay; one of them is the present topology.
	pruneSnapshots = `delete from topology_snapshots
where id <= (select id from topology_snapshots order by id desc offset $1 limit 1)`

	// A new node needs no handover. For a known one, shared/application detects a change of agent by the difference
	// between agent and served_by, and by what former agents own, of which the last eight are kept.
	upsertNodes = `insert into nodes (cluster, node, last_seen, schedulable, orchestrator, agent, cluster_uuid, served_by, served_in)
select *, agent, cluster_uuid
from unnest($1::text[], $2::text[], $3::timestamptz[], $4::bool[], $5::text[], $6::text[], $7::text[])
  as seen (cluster, node, last_seen, schedulable, orchestrator, agent, cluster_uuid)
on conflict (cluster, node) do update set
	last_seen = greatest(nodes.last_seen, excluded.last_seen), schedulable = excluded.schedulable,
	formerly = case when nodes.agent in ('', excluded.agent) then nodes.formerly
		else (array_remove(nodes.formerly, nodes.agent) || nodes.agent)[greatest(cardinality(nodes.formerly) - 6, 1):] end,
	orchestrator = excluded.orchestrator, agent = excluded.agent, cluster_uuid = coalesce(nullif(excluded.cluster_uuid, ''), nodes.cluster_uuid)
returning cluster, node, last_seen`
)

const (
	announcedChanges = 2000 // limit of one event and history row; the snapshot has all
	historyChanges   = 10   // named in the message
)

// MaxSnapshots is the most snapshots that are kept. It is far more than a day produces, after which the archive
// (functions/jobmanager/archive) takes old ones: snapshots are only lost if that does not run.
const MaxSnapshots = 10_000

// Fresh is the age from which the topology is too old to decide by. The PingSource of the aggregator may be suspended
// while nothing runs; whoever then finds the topology too old has it updated.
const Fresh = 15 * time.Minute

// ErrUnknown is the cause of Current's error before the first snapshot.
var ErrUnknown = errors.New("no snapshot yet")

// Current returns the taxonomy saved last and its time. The error is Unavailable before the first tick.
func Current(ctx context.Context, q store.Querier) (*Taxonomy, time.Time, error) {
	var body []byte
	var at time.Time
	err := q.QueryRow(ctx, selectCurrent).Scan(&body, &at)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return nil, time.Time{}, problem.Wrap(problem.Unavailable, ErrUnknown,
			"no telemetry of the infrastructure has been seen yet; try again")
	case err != nil:
		return nil, time.Time{}, fmt.Errorf("read the topology: %w", err)
	}
	t, err := decodeStored(body)
	return t, at, err
}

// decodeStored decodes what Save wrote, without checks.
func decodeStored(body []byte) (*Taxonomy, error) {
	t := &Taxonomy{}
	if err := json.Unmarshal(body, t); err != nil {
		return nil, fmt.Errorf("decode the stored topology: %w", err)
	}
	return t, nil
}

// Save stores t as the topology at that moment. If it differs from the announced one in what matters to placement, it
// also stores a snapshot, writes history and emits events.TopologyChanged, all in tx. A topology that is not newer than
// the stored one changes nothing. One after a pause is announced even without changes, since somebody may be waiting
// for it. Nodes silent for longer than staleAfter are lost. lastSeen never goes back: it is raised in t where the nodes
// table has a later time.
func Save(
	ctx context.Context, tx *store.Tx, t *Taxonomy, at time.Time, staleAfter time.Duration,
) (changed bool, err error) {
	if err := tx.Lock(ctx, store.LockTopology); err != nil { // one writer at a time, even before the row exists
		return false, err
	}
	at = at.UTC().Truncate(time.Microsecond) // what Postgres keeps
	before, storedAt, err := announced(ctx, tx)
	if err != nil || !at.After(storedAt) {
		return false, err
	}
	if err := saveNodes(ctx, tx, t, at); err != nil {
		return false, err
	}
	before.staleAfter = staleAfter
	found := changes(before, moment{t, at, staleAfter})
	body, err := json.Marshal(t)
	if err != nil {
		return false, fmt.Errorf("encode the topology: %w", err)
	}
	first := storedAt.IsZero()
	if len(found) == 0 && !first && at.Sub(storedAt) > Fresh {
		found = append(found, events.TopologyChange{
			Change: Refreshed, Detail: "as it was at " + storedAt.Format(time.RFC3339) + ", when it was last looked at",
		})
	}
	if len(found) == 0 && !first {
		if _, err := tx.Exec(ctx, updateCurrent, body, at, orNull(t.SilentUntil())); err != nil {
			return false, fmt.Errorf("store the topology: %w", err)
		}
		return false, nil
	}
	return len(found) > 0, announce(ctx, tx, t, body, at, found)
}

// SilentUntil is when telemetry last had no nodes at all; the zero time if never.
func (t *Taxonomy) SilentUntil() time.Time {
	s, known := t.Timestamp.SilentUntil.Get()
	if !known {
		return time.Time{}
	}
	return fromSeconds(s)
}

// orNull is how a time that may be unknown is stored.
func orNull(at time.Time) *time.Time {
	if at.IsZero() {
		return nil
	}
	return &at
}

// announced returns the topology of the last snapshot (the zero moment before the first), and when the topology was
// last stored.
func announced(ctx context.Context, tx *store.Tx) (before moment, storedAt time.Time, err error) {
	var body []byte
	var at *time.Time
	err = tx.QueryRow(ctx, selectAnnounced).Scan(&storedAt, &body, &at)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return moment{}, time.Time{}, nil
	case err != nil:
		return moment{}, time.Time{}, fmt.Errorf("read the topology: %w", err)
	case at == nil: // somebody emptied the snapshots: announce all again
		return moment{}, storedAt, nil
	}
	before.at = *at
	before.taxonomy, err = decodeStored(body)
	return before, storedAt, err
}

func saveNodes(ctx context.Context, tx *store.Tx, t *Taxonomy, at time.Time) error {
	places := t.Places()
	byName := make(map[[2]string]Place, len(places))
	clusters, nodes, agents := make([]string, len(places)), make([]string, len(places)), make([]string, len(places))
	orchestrators, uuids := make([]string, len(places)), make([]string, len(places))
	seen, schedulable := make([]time.Time, len(places)), make([]bool, len(places))
	for i, p := range places {
		byName[[2]string{p.Cluster, p.Node}] = p
		clusters[i], nodes[i], schedulable[i], agents[i] = p.Cluster, p.Node, p.At.CanSchedule(), p.In.AgentID
		orchestrators[i], uuids[i] = p.In.Orchestrator(), p.In.UUID
		// A source that does not say when it saw the node sees it now, as does one whose clock is ahead.
		seen[i] = at
		if s, known := p.At.SeenAt(); known && s.Before(at) {
			seen[i] = s
		}
	}
	rows, err := tx.Query(ctx, upsertNodes, clusters, nodes, seen, schedulable, orchestrators, agents, uuids)
	if err != nil {
		return fmt.Errorf("store nodes: %w", err)
	}
	var cluster, node string
	var last time.Time
	_, err = pgx.ForEachRow(rows, []any{&cluster, &node, &last}, func() error {
		p := byName[[2]string{cluster, node}]
		n := t.Cluster[p.ClusterKey].Node[p.NodeKey]
		n.LastSeen = Known(toSeconds(last))
		t.Cluster[p.ClusterKey].Node[p.NodeKey] = n
		return nil
	})
	if err != nil {
		return fmt.Errorf("store nodes: %w", err)
	}
	return nil
}

func announce(
	ctx context.Context, tx *store.Tx, t *Taxonomy, body []byte, at time.Time, found []events.TopologyChange,
) error {
	id, err := uuid.NewV7()
	if err != nil {
		return err
	}
	if found == nil {
		found = []events.TopologyChange{}
	}
	list, err := json.Marshal(found)
	if err != nil {
		return fmt.Errorf("encode changes: %w", err)
	}
	if _, err := tx.Exec(ctx, insertSnapshot, id, at, list, body); err != nil {
		return fmt.Errorf("store a snapshot: %w", err)
	}
	if _, err := tx.Exec(ctx, upsertCurrent, id, body, at, orNull(t.SilentUntil())); err != nil {
		return fmt.Errorf("store the topology: %w", err)
	}
	switch cut, err := Forget(ctx, tx, MaxSnapshots); {
	case err != nil:
		return err
	case cut > 0:
		slog.WarnContext(ctx, "snapshots of the topology were deleted before they were archived", "snapshots", cut)
	}
	if len(found) == 0 {
		return nil
	}
	told := found[:min(len(found), announcedChanges)]
	if len(told) < len(found) {
		if list, err = json.Marshal(told); err != nil {
			return fmt.Errorf("encode changes: %w", err)
		}
	}
	entry := history.Entry{Event: "topology.changed", Message: sentence(found), Data: list} // which counts the rest
	if err := history.Record(ctx, tx, entry); err != nil {
		return err
	}
	return tx.Emit(ctx, events.TopologyChanged, id.String(), events.Topology{Snapshot: id, Changes: told})
}

// Forget deletes all snapshots but the newest ones to keep, and returns how many it deleted.
func Forget(ctx context.Context, q store.Querier, keep int) (deleted int64, err error) {
	tag, err := q.Exec(ctx, pruneSnapshots, keep)
	if err != nil {
		return 0, fmt.Errorf("prune snapshots: %w", err)
	}
	return tag.RowsAffected(), nil
}

// sentence describes the first changes for people.
func sentence(found []events.TopologyChange) string {
	var parts []string
	for _, c := range found[:min(len(found), historyChanges)] {
		parts = append(parts, fmt.Sprintf("%s %s (%s)", c.Place(), c.Change, c.Detail))
	}
	if more := len(found) - len(parts); more > 0 {
		parts = append(parts, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(parts, "; ")
}
