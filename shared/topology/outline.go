package topology

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/littoral-project/littoral/shared/problem"
	"github.com/littoral-project/littoral/shared/store"
)

const (
	// Numbers only, since this is read of all nodes each time that somebody looks.
	selectOutline = `select p.series, extract(epoch from n.last_seen)::float8, p.pods is not null,
coalesce(p.cpu_percent, 'NaN'), coalesce(p.used_memory, 'NaN'), coalesce(p.free_memory, 'NaN'), coalesce(p.watts, 'NaN'),
coalesce(p.forecast_cpu, 'NaN'), coalesce(p.forecast_memory, 'NaN'),
coalesce((p.told ->> 'othersCPU')::float8, 'NaN'), coalesce((p.told ->> 'othersMemory')::float8, 'NaN')
from topology_nodes p join nodes n on n.cluster = p.cluster and n.node = p.node`

	selectCounts = `select counts from topology where head is not null and at = $1 and counted_at = at`
	updateCounts = `update topology set counts = $1, counted_at = $2`

	selectKnown = `select p.cluster_key, p.node_key, p.name, p.uuid, p.series, p.identity, n.last_seen, p.written_at
from topology_nodes p join nodes n on n.cluster = p.cluster and n.node = p.node`

	// The identity is as of Identity.text.
	selectKnownOf = selectKnown + `
where p.series = any($1::bigint[]) or p.cluster_key = any($2::text[]) or p.uuid = any($3::text[]) or p.name = any($4::text[])
or p.node_key = any($4)
or split_part(p.identity, E'\n', 3) = any($4) or split_part(p.identity, E'\n', 4) = any($4)`

	selectBodies = selectNodes + `
where (p.cluster_key, p.node_key) in (select * from unnest($1::text[], $2::text[]))`

	updateSeen = `update nodes n set last_seen = u.seen
from unnest($1::bigint[], $2::timestamptz[]) as u (series, seen) join topology_nodes p on p.series = u.series
where n.cluster = p.cluster and n.node = p.node and n.last_seen < u.seen`

	// A value that is not a number is left as it is.
	updateReadings = `update topology_nodes p set
	cpu_percent = u.cpu, memory_percent = u.percent, used_memory = u.used, free_memory = u.free, watts = u.watts,
	forecast_cpu = u.forecast_cpu, forecast_memory = u.forecast_memory
from (select series, nullif(cpu, 'NaN') as cpu, nullif(percent, 'NaN') as percent, nullif(used, 'NaN') as used,
	nullif(free, 'NaN') as free, nullif(watts, 'NaN') as watts, nullif(forecast_cpu, 'NaN') as forecast_cpu,
	nullif(forecast_memory, 'NaN') as forecast_memory
	from unnest($1::bigint[], $2::float8[], $3::float8[], $4::float8[], $5::float8[], $6::float8[], $7::float8[], $8::float8[])
	as v (series, cpu, percent, used, free, watts, forecast_cpu, forecast_memory)) u
where p.series = u.series`
)

// Outline is what a look compares with, to find out which nodes it must ask about.
type Outline struct {
	At      time.Time
	WholeAt time.Time // when all nodes were last asked about, and every query was answered; zero if never
	Nodes   []Outlined
	Counts  []byte // as of Part.Counts; nil if the look at that moment has stored none
}

// Outlined is one node. What is not known is not a number.
type Outlined struct {
	Series          int64   // as of Node.Series
	Seen            float64 // epoch seconds
	RunsOurs        bool    // applications
	Readings        Readings
	AnnouncedCPU    float64 // what others use, in percent, as it was announced last
	AnnouncedMemory float64
}

// Readings are what moves all the time and placement looks at: percent, bytes, watts. What is not known is not a number.
type Readings struct {
	CPUPercent, UsedMemory, FreeMemory, Watts, ForecastCPU, ForecastMemory float64
}

// Near reports whether no reading has moved by more than noise.
func (r Readings) Near(o Readings) bool { return r.measured().near(o.measured()) }

func (r Readings) measured() readings {
	n := func(v float64) *float64 {
		if math.IsNaN(v) {
			return nil
		}
		return &v
	}
	return readings{
		CPUPercent: n(r.CPUPercent), UsedMemory: n(r.UsedMemory), FreeMemory: n(r.FreeMemory), Watts: n(r.Watts),
		ForecastCPU: n(r.ForecastCPU), ForecastMemory: n(r.ForecastMemory),
	}
}

// MemoryPercent is the used share of the memory that the kernel has, as collect has it.
func (r Readings) MemoryPercent() float64 {
	return min(max(100*r.UsedMemory/(r.UsedMemory+r.FreeMemory), 0), 100)
}

// ReadOutline returns the outline of the topology saved last. The error is that of Current.
func ReadOutline(ctx context.Context, q store.Querier) (*Outline, error) {
	h, err := readHead(ctx, q)
	if err != nil {
		return nil, err
	}
	o := &Outline{At: h.at}
	if at, known := h.wholeAt.Get(); known {
		o.WholeAt = fromSeconds(at)
	}
	rows, err := q.Query(ctx, selectOutline)
	if err != nil {
		return nil, fmt.Errorf("read the nodes: %w", err)
	}
	var n Outlined
	r := &n.Readings
	_, err = pgx.ForEachRow(rows, []any{
		&n.Series, &n.Seen, &n.RunsOurs, &r.CPUPercent, &r.UsedMemory, &r.FreeMemory, &r.Watts, &r.ForecastCPU, &r.ForecastMemory,
		&n.AnnouncedCPU, &n.AnnouncedMemory,
	}, func() error {
		o.Nodes = append(o.Nodes, n)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read the nodes: %w", err)
	}
	if err := q.QueryRow(ctx, selectCounts, o.At).Scan(&o.Counts); err != nil && !errors.Is(err, pgx.ErrNoRows) {
		return nil, fmt.Errorf("read what was counted: %w", err)
	}
	return o, nil
}

// saveCounts stores what the look at that moment has counted, if it has. It must be the moment of the stored topology.
func saveCounts(ctx context.Context, tx *store.Tx, counts []byte, at time.Time) error {
	if counts == nil {
		return nil
	}
	if _, err := tx.Exec(ctx, updateCounts, counts, at); err != nil {
		return fmt.Errorf("store what was counted: %w", err)
	}
	return nil
}

// News is what a look has found of nodes about which nothing else has changed.
type News struct {
	At     time.Time
	Since  time.Time // as of Part.Since
	Oldest Measure   // as of Timestamp.OldestTimestamp
	Counts []byte    // as of Part.Counts

	Series []int64 // of nodes that were heard of, and when
	Seen   []time.Time

	Moved    []int64 // of nodes whose readings have moved
	Readings []Readings
}

// Touch stores the news. It is dropped if the stored topology is not older, or not the one that the news are about.
func Touch(ctx context.Context, tx *store.Tx, news *News) error {
	if err := tx.Lock(ctx, store.LockTopology); err != nil {
		return err
	}
	h, err := readHead(ctx, tx)
	at := news.At.UTC().Truncate(time.Microsecond)
	if err != nil || !at.After(h.at) || !news.Since.IsZero() && !news.Since.Equal(h.at) {
		return err
	}
	if err := news.store(ctx, tx); err != nil {
		return err
	}
	news.Date(h.taxonomy)
	body, err := h.encode()
	if err != nil {
		return err
	}
	if _, err := tx.Exec(ctx, updateCurrent, body, at, orNull(h.taxonomy.SilentUntil())); err != nil {
		return fmt.Errorf("store the topology: %w", err)
	}
	return saveCounts(ctx, tx, news.Counts, at)
}

// Date sets how old the topology is.
func (news *News) Date(t *Taxonomy) {
	if oldest, known := news.Oldest.Get(); known {
		at := news.At.UTC().Truncate(time.Microsecond)
		t.Timestamp.OldestTimestamp, t.Timestamp.TimeSinceOldest = Known(oldest), Known(toSeconds(at)-oldest)
	}
}

// store stores when nodes were seen, and the readings.
func (news *News) store(ctx context.Context, tx *store.Tx) error {
	if len(news.Series) > 0 {
		if _, err := tx.Exec(ctx, updateSeen, news.Series, news.Seen); err != nil {
			return fmt.Errorf("store when nodes were seen: %w", err)
		}
	}
	if n := len(news.Moved); n > 0 {
		var columns [7][]float64
		for _, r := range news.Readings {
			for i, v := range []float64{
				r.CPUPercent, r.MemoryPercent(), r.UsedMemory, r.FreeMemory, r.Watts, r.ForecastCPU, r.ForecastMemory,
			} {
				columns[i] = append(columns[i], v)
			}
		}
		arguments := []any{news.Moved}
		for _, c := range columns {
			arguments = append(arguments, c)
		}
		if _, err := tx.Exec(ctx, updateReadings, arguments...); err != nil {
			return fmt.Errorf("store readings: %w", err)
		}
	}
	return nil
}

// KnownNodes is the topology saved last as far as it says what there is: clusters with all that is stored of them, and of
// the nodes that were read name, identifier, series and when they were seen.
type KnownNodes struct {
	*Taxonomy
	At      time.Time               // zero before the first tick
	Doubts  []string                // as of Part.Doubts
	WholeAt Measure                 // as of Part.WholeAt
	Written map[[2]string]time.Time // by cluster and node key

	Identified bool // as of Part.Identified
}

// ReadKnown returns what is known, without any node; before the first tick that is nothing.
func ReadKnown(ctx context.Context, q store.Querier) (*KnownNodes, error) {
	k := &KnownNodes{Taxonomy: &Taxonomy{Cluster: map[string]Cluster{}}, Written: map[[2]string]time.Time{}}
	h, err := readHead(ctx, q)
	if problem.KindOf(err) == problem.Unavailable {
		return k, nil
	}
	if err != nil {
		return nil, err
	}
	k.Taxonomy, k.At, k.Doubts, k.WholeAt, k.Identified = h.taxonomy, h.at, h.doubts, h.wholeAt, h.identified
	return k, h.fillClusters(ctx, q)
}

// Called are words for nodes.
type Called struct {
	Series   []int64  // as of Node.Series
	Clusters []string // by key; all nodes of these
	IDs      []string // as of Node.UUID
	Names    []string // of any kind: a node's own, its key, those of its host
}

// ReadAll reads all nodes.
func (k *KnownNodes) ReadAll(ctx context.Context, q store.Querier) error {
	return k.read(ctx, q, selectKnown)
}

// Read reads the nodes that are called so. These are all that a series with such a label may be about, so that it finds
// none if all nodes would make it ambiguous.
func (k *KnownNodes) Read(ctx context.Context, q store.Querier, c Called) error {
	return k.read(ctx, q, selectKnownOf, c.Series, c.Clusters, c.IDs, c.Names)
}

func (k *KnownNodes) read(ctx context.Context, q store.Querier, statement string, args ...any) error {
	rows, err := q.Query(ctx, statement, args...)
	if err != nil {
		return fmt.Errorf("read the nodes: %w", err)
	}
	var cluster, node, name, id, identity string
	var series int64
	var seen, written time.Time
	_, err = pgx.ForEachRow(rows, []any{&cluster, &node, &name, &id, &series, &identity, &seen, &written}, func() error {
		if c, known := k.Cluster[cluster]; known {
			c.Node[node] = Node{
				Name: name, UUID: id, Series: series, Identity: identityOf(identity), LastSeen: Known(toSeconds(seen)),
			}
			k.Written[[2]string{cluster, node}] = written
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("read the nodes: %w", err)
	}
	return nil
}

// Load reads all that is stored of some nodes, given by cluster and node key.
func (k *KnownNodes) Load(ctx context.Context, q store.Querier, keys [][2]string) error {
	clusters, nodes := make([]string, len(keys)), make([]string, len(keys))
	for i, key := range keys {
		clusters[i], nodes[i] = key[0], key[1]
	}
	rows, err := q.Query(ctx, selectBodies, clusters, nodes)
	if err != nil {
		return fmt.Errorf("read the nodes: %w", err)
	}
	return eachNode(rows, func(cluster, node string, n *Node) error {
		if c, known := k.Cluster[cluster]; known {
			n.Series, n.Identity = c.Node[node].Series, c.Node[node].Identity
			c.Node[node] = *n
		}
		return nil
	}, func(body []byte, n *Node) error { return json.Unmarshal(body, n) })
}
