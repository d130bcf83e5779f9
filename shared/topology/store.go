package topology

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/littoral-project/littoral/shared/events"
	"github.com/littoral-project/littoral/shared/history"
	"github.com/littoral-project/littoral/shared/history/recorded"
	"github.com/littoral-project/littoral/shared/problem"
	"github.com/littoral-project/littoral/shared/store"
)

const (
	// A former version stored the whole topology in the column taxonomy. Until the first tick has written the rows, there
	// is no head, and nothing is known.
	selectHead = `select head, at from topology where head is not null`

	selectBeginning = `select count(*) < 2 from (select from topology_snapshots limit 2) s`

	selectStoredAt = `select coalesce(max(at), 'epoch') from topology where head is not null`

	upsertCurrent = `insert into topology (snapshot, taxonomy, head, at, silent_until) values ($1, '{}', $2, $3, $4)
on conflict (singleton) do update set
	snapshot = excluded.snapshot, head = excluded.head, at = excluded.at, silent_until = excluded.silent_until`
	updateCurrent = `update topology set head = $1, at = $2, silent_until = $3`

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
	h, err := readHead(ctx, q)
	if err != nil {
		return nil, time.Time{}, err
	}
	t, err := h.taxonomy, h.fill(ctx, q, func(body []byte, n *Node) error { return json.Unmarshal(body, n) })
	return t, h.at, err
}

// Beginning reports whether nothing was announced before the present topology: whoever waits may do so only since nothing
// was known.
func Beginning(ctx context.Context, q store.Querier) (bool, error) {
	var first bool
	if err := q.QueryRow(ctx, selectBeginning).Scan(&first); err != nil {
		return false, fmt.Errorf("count snapshots: %w", err)
	}
	return first, nil
}

// head is what the topology says as a whole; its clusters are rows of their own.
type head struct {
	taxonomy *Taxonomy
	at       time.Time
	// The others are as of Part.
	doubts     []string
	wholeAt    Measure
	identified bool
}

// headBody is a head as it is stored.
type headBody struct {
	*Taxonomy
	Doubts  []string `json:"doubts,omitempty"`
	WholeAt Measure  `json:"wholeAt,omitzero"`

	Identified bool `json:"identified,omitempty"`
}

func (h head) encode() ([]byte, error) {
	body, err := json.Marshal(headBody{h.taxonomy, h.doubts, h.wholeAt, h.identified})
	if err != nil {
		return nil, fmt.Errorf("encode the topology: %w", err)
	}
	return body, nil
}

func readHead(ctx context.Context, q store.Querier) (head, error) {
	var body []byte
	h := head{taxonomy: &Taxonomy{}}
	err := q.QueryRow(ctx, selectHead).Scan(&body, &h.at)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return h, problem.Wrap(problem.Unavailable, ErrUnknown,
			"no telemetry of the infrastructure has been seen yet; try again")
	case err != nil:
		return h, fmt.Errorf("read the topology: %w", err)
	}
	stored := headBody{Taxonomy: h.taxonomy}
	if err := json.Unmarshal(body, &stored); err != nil {
		return h, fmt.Errorf("decode the stored topology: %w", err)
	}
	h.doubts, h.wholeAt, h.identified = stored.Doubts, stored.WholeAt, stored.Identified
	return h, nil
}

// fillClusters adds the clusters, without nodes.
func (h head) fillClusters(ctx context.Context, q store.Querier) error {
	clusters, err := readClusters(ctx, q)
	if err != nil {
		return err
	}
	h.taxonomy.Cluster = make(map[string]Cluster, len(clusters))
	for key, c := range clusters {
		c.Node = map[string]Node{}
		h.taxonomy.Cluster[key] = *c
	}
	return nil
}

// fill adds the clusters and nodes.
func (h head) fill(ctx context.Context, q store.Querier, decode func([]byte, *Node) error) error {
	if err := h.fillClusters(ctx, q); err != nil {
		return err
	}
	rows, err := q.Query(ctx, selectNodes)
	if err != nil {
		return fmt.Errorf("read the nodes: %w", err)
	}
	return eachNode(rows, func(cluster, node string, n *Node) error {
		if c, known := h.taxonomy.Cluster[cluster]; known {
			c.Node[node] = *n
		}
		return nil
	}, decode)
}

// eachNode reads rows of selectNodes.
func eachNode(rows pgx.Rows, yield func(cluster, node string, n *Node) error, decode func([]byte, *Node) error) error {
	var cluster, node string
	var seen time.Time
	var body []byte
	var now readings
	_, err := pgx.ForEachRow(rows, append([]any{&cluster, &node, &seen, &body}, now.columns()...), func() error {
		var n Node
		if err := decode(body, &n); err != nil {
			return err
		}
		n.LastSeen = Known(toSeconds(seen))
		now.set(&n)
		return yield(cluster, node, &n)
	})
	if err != nil {
		return fmt.Errorf("read the nodes: %w", err)
	}
	return nil
}

// Part says which nodes of a taxonomy were looked at. The others are known to be as they were, but for when they were
// seen.
type Part struct {
	Nodes   map[[2]string]bool // by cluster and node key
	Doubts  []string           // warnings about other nodes than these, which are kept until all are looked at
	WholeAt Measure            // as of Outline.WholeAt, in epoch seconds
	News    *News              // of the others; may be nil

	// Identified: each series of telemetry finds its node by what is stored of the nodes, all of which telemetry has.
	Identified bool

	// Alone: clusters and other nodes are as they were stored at the moment Since.
	Alone bool

	// Since is the moment of the stored topology that telemetry was compared with. If another one is stored, nothing is: what changed
	// and changed back meanwhile is not known. Zero if it was not compared.
	Since time.Time

	// Counts are what the next look compares with, a document of package collect. Nil if there are none: then the next look is of all.
	Counts []byte
}

func (p *Part) alone() bool { return p != nil && p.Alone }

func (p *Part) has(at *Place) bool { return p == nil || p.Nodes[[2]string{at.ClusterKey, at.NodeKey}] }

// Save stores t as the topology at that moment: the rows of the nodes and clusters that differ from what is stored. If
// it differs from what was announced in what matters to placement, it also stores a snapshot with the nodes that differ,
// writes history and emits events.TopologyChanged, all in tx. A topology that is not newer than the stored one changes
// nothing. One after a pause is announced even without changes, since somebody may be waiting for it. Nodes silent for
// longer than staleAfter are lost. lastSeen never goes back: it is raised in t where the nodes table has a later time.
func Save(
	ctx context.Context, tx *store.Tx, t *Taxonomy, at time.Time, staleAfter time.Duration,
) (changed bool, err error) {
	return SavePart(ctx, tx, t, at, staleAfter, nil)
}

// SavePart is Save of a taxonomy that says only of some nodes how they are, and of all that there are; nil = of all.
func SavePart(
	ctx context.Context, tx *store.Tx, t *Taxonomy, at time.Time, staleAfter time.Duration, part *Part,
) (changed bool, err error) {
	if err := tx.Lock(ctx, store.LockTopology); err != nil { // one writer at a time, even before the row exists
		return false, err
	}
	at = at.UTC().Truncate(time.Microsecond) // what Postgres keeps
	var storedAt time.Time
	if err := tx.QueryRow(ctx, selectStoredAt).Scan(&storedAt); err != nil {
		return false, fmt.Errorf("read the topology: %w", err)
	}
	if !at.After(storedAt) {
		return false, nil
	}
	if part != nil && !part.Since.IsZero() && !part.Since.Equal(storedAt) {
		return false, nil
	}
	places := t.Places()
	if part.alone() {
		places = slices.DeleteFunc(places, func(p Place) bool { return !part.has(&p) })
	}
	if err := saveNodes(ctx, tx, t, places, at); err != nil {
		return false, err
	}
	found, differ, moved, err := savePlaces(ctx, tx, places, at, staleAfter, part)
	if err != nil {
		return false, err
	}
	if err := announceMoved(ctx, tx, moved); err != nil {
		return false, err
	}
	if part != nil && part.News != nil {
		if err := part.News.store(ctx, tx); err != nil {
			return false, err
		}
	}
	if !part.alone() {
		if err := saveClusters(ctx, tx, t); err != nil {
			return false, err
		}
	}
	whole := *t
	whole.Cluster = nil
	now := head{taxonomy: &whole, at: at}
	var counts []byte
	if part != nil {
		counts = part.Counts
		now.doubts, now.wholeAt, now.identified = part.Doubts, part.WholeAt, part.Identified
	}
	body, err := now.encode()
	if err != nil {
		return false, err
	}
	first := storedAt.Unix() == 0
	if !first && at.Sub(storedAt) > Fresh {
		found = append(found, events.TopologyChange{
			Change: Refreshed, Detail: "as it was at " + storedAt.UTC().Format(time.RFC3339) + ", when it was last looked at",
		})
	}
	if len(found) == 0 && !first {
		if _, err := tx.Exec(ctx, updateCurrent, body, at, orNull(t.SilentUntil())); err != nil {
			return false, fmt.Errorf("store the topology: %w", err)
		}
		return false, saveCounts(ctx, tx, counts, at)
	}
	urgentFirst(found)
	if err := announce(ctx, tx, t, t.only(differ), body, at, found); err != nil {
		return false, err
	}
	return len(found) > 0, saveCounts(ctx, tx, counts, at)
}

// savePlaces stores the nodes that differ from their rows, and returns what has changed since it was announced, and the
// nodes about which there is news. moved names the nodes on which applications have other pods than before.
func savePlaces(
	ctx context.Context, tx *store.Tx, places []Place, at time.Time, staleAfter time.Duration, part *Part,
) (found []events.TopologyChange, differ []Place, moved []events.TopologyChange, err error) {
	before, err := readStored(ctx, tx, places, part)
	if err != nil {
		return nil, nil, nil, err
	}
	names := make(map[[2]string]*stored, len(before)) // as people know the nodes: a key may change where a name does not
	for _, s := range before {
		names[[2]string{s.cluster, s.node}] = s
	}
	var rows columns
	for i := range places {
		p := &places[i]
		if !part.has(p) {
			delete(names, [2]string{p.Cluster, p.Node})
			delete(before, [2]string{p.ClusterKey, p.NodeKey})
			continue
		}
		digest, err := p.digest()
		if err != nil {
			return nil, nil, nil, err
		}
		now := announcedOf(p.At, at, staleAfter)
		var news []events.TopologyChange
		known := names[[2]string{p.Cluster, p.Node}]
		delete(names, [2]string{p.Cluster, p.Node})
		var was announced
		if known == nil {
			news = added(*p, now, at)
		} else {
			if err := json.Unmarshal(known.announced, &was); err != nil {
				return nil, nil, nil, fmt.Errorf("decode what was told of %s/%s: %w", p.Cluster, p.Node, err)
			}
			if news = changes(*p, was, now, at); len(news) == 0 {
				pods := now.Pods
				now = was
				now.Pods = pods
			}
		}
		if was.Pods != now.Pods {
			moved = append(moved, p.change(Pods, ""))
		}
		row := before[[2]string{p.ClusterKey, p.NodeKey}]
		delete(before, [2]string{p.ClusterKey, p.NodeKey})
		if len(news) > 0 {
			found, differ = append(found, news...), append(differ, *p)
		} else if row != nil && row == known && row.current(p, digest, at) {
			continue
		}
		if err := rows.add(p, digest, at, now); err != nil {
			return nil, nil, nil, err
		}
	}
	for _, gone := range names {
		found = append(found, events.TopologyChange{
			Cluster: gone.cluster, Node: gone.node, Change: Removed, Detail: "telemetry knows it no longer",
		})
	}
	if len(before) > 0 {
		clusters, nodes := make([]string, 0, len(before)), make([]string, 0, len(before))
		for key := range before {
			clusters, nodes = append(clusters, key[0]), append(nodes, key[1])
		}
		if _, err := tx.Exec(ctx, deletePlaces, clusters, nodes); err != nil {
			return nil, nil, nil, fmt.Errorf("remove nodes: %w", err)
		}
	}
	return found, differ, moved, rows.save(ctx, tx)
}

// announceMoved tells on which nodes applications have other pods than before. The removal of a node is told with the
// changes of the topology.
func announceMoved(ctx context.Context, tx *store.Tx, moved []events.TopologyChange) error {
	for len(moved) > 0 {
		id, err := uuid.NewV7()
		if err != nil {
			return err
		}
		part := moved[:min(len(moved), announcedChanges)]
		moved = moved[len(part):]
		if err := tx.Emit(ctx, events.PodsChanged, id.String(), events.Topology{Changes: part}); err != nil {
			return err
		}
	}
	return nil
}

func saveClusters(ctx context.Context, tx *store.Tx, t *Taxonomy) error {
	keys, bodies := make([]string, 0, len(t.Cluster)), make([]string, 0, len(t.Cluster))
	for key, c := range t.Cluster {
		c.Node = nil
		body, err := json.Marshal(c)
		if err != nil {
			return fmt.Errorf("encode the cluster %s: %w", key, err)
		}
		keys, bodies = append(keys, key), append(bodies, string(body))
	}
	if _, err := tx.Exec(ctx, deleteClusters, keys); err != nil {
		return fmt.Errorf("remove clusters: %w", err)
	}
	if _, err := tx.Exec(ctx, upsertClusters, keys, bodies); err != nil {
		return fmt.Errorf("store clusters: %w", err)
	}
	return nil
}

// only returns the topology with these nodes alone.
func (t *Taxonomy) only(places []Place) *Taxonomy {
	part := *t
	part.Cluster = map[string]Cluster{}
	for _, p := range places {
		c, known := part.Cluster[p.ClusterKey]
		if !known {
			c = *p.In
			c.Node = map[string]Node{}
		}
		c.Node[p.NodeKey] = *p.At
		part.Cluster[p.ClusterKey] = c
	}
	return &part
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

func saveNodes(ctx context.Context, tx *store.Tx, t *Taxonomy, places []Place, at time.Time) error {
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
		p.At.LastSeen = Known(toSeconds(last))
		t.Cluster[p.ClusterKey].Node[p.NodeKey] = *p.At
		return nil
	})
	if err != nil {
		return fmt.Errorf("store nodes: %w", err)
	}
	return nil
}

// announce tells what was found; news has the nodes that it was found about.
func announce(
	ctx context.Context, tx *store.Tx, t, news *Taxonomy, head []byte, at time.Time, found []events.TopologyChange,
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
	body, err := json.Marshal(news)
	if err != nil {
		return fmt.Errorf("encode a snapshot: %w", err)
	}
	if _, err := tx.Exec(ctx, insertSnapshot, id, at, list, body); err != nil {
		return fmt.Errorf("store a snapshot: %w", err)
	}
	if _, err := tx.Exec(ctx, upsertCurrent, id, head, at, orNull(t.SilentUntil())); err != nil {
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
	listed := found[:min(len(found), announcedChanges)]
	if len(listed) < len(found) {
		if list, err = json.Marshal(listed); err != nil {
			return fmt.Errorf("encode changes: %w", err)
		}
	}
	entry := history.Entry{Event: recorded.TopologyChanged, Message: sentence(found), Data: list} // which counts the rest
	if err := history.Record(ctx, tx, entry); err != nil {
		return err
	}
	return tx.Emit(ctx, events.TopologyChanged, id.String(), events.Topology{Snapshot: id, Changes: listed})
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
