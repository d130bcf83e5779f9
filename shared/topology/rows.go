package topology

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/littoral-project/littoral/shared/store"
)

// The topology is stored as one row per cluster and per node, which is written only when it has changed. A row has the
// document as people get it, and beside it the columns that placement filters and scores by, so that a decision reads
// numbers instead of parsing documents.
const (
	// The nodes table has the time of the newest telemetry, which is the only thing that is written on each tick.
	selectPlaces = placesColumns + placesOrder

	// The same of some, by name.
	selectPlacesAt = placesColumns + `where (p.cluster, p.node) in (select * from unnest($1::text[], $2::text[]))
` + placesOrder

	placesColumns = `select p.cluster_key, p.node_key, p.cluster, p.node, n.last_seen, p.engine, p.architecture, p.schedulable,
p.cores, p.memory, p.gpus, p.storage, p.cpu_percent, p.memory_percent, p.used_memory, p.free_memory, p.watts, p.sca,
p.forecast_cpu, p.forecast_memory, p.labels, p.devices, p.pods, p.hearing
from topology_nodes p join nodes n on n.cluster = p.cluster and n.node = p.node
`
	placesOrder = `order by p.cluster collate "C", p.node collate "C"`

	selectClusters = `select key, body from topology_clusters`

	selectNodes = `select p.cluster_key, p.node_key, n.last_seen, p.body, ` + selectReadings + `
from topology_nodes p join nodes n on n.cluster = p.cluster and n.node = p.node`

	selectReadings = `p.cpu_percent, p.memory_percent, p.used_memory, p.free_memory, p.watts, p.forecast_cpu, p.forecast_memory`

	// What Save compares with.
	selectStored = `select cluster_key, node_key, cluster, node, digest, written_at,
cpu_percent, memory_percent, used_memory, free_memory, watts, forecast_cpu, forecast_memory, told from topology_nodes`

	// The same, of nodes that have one of the keys or one of the names.
	selectStoredOf = selectStored + `
where (cluster_key, node_key) in (select * from unnest($1::text[], $2::text[]))
or (cluster, node) in (select * from unnest($3::text[], $4::text[]))`

	selectStoredNames = `select cluster_key, node_key, cluster, node from topology_nodes`

	upsertPlaces = `insert into topology_nodes (cluster_key, node_key, cluster, node, digest, written_at, engine, architecture,
	schedulable, cores, memory, gpus, storage, cpu_percent, memory_percent, used_memory, free_memory, watts, sca,
	forecast_cpu, forecast_memory, labels, devices, pods, told, body, uuid, series, name, hearing, identity)
select * from unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::bigint[], $6::timestamptz[], $7::text[], $8::text[],
	$9::bool[], $10::float8[], $11::float8[], $12::float8[], $13::float8[], $14::float8[], $15::float8[], $16::float8[],
	$17::float8[], $18::float8[], $19::float8[], $20::float8[], $21::float8[], $22::text[]::json[], $23::text[]::json[],
	$24::text[]::json[], $25::text[]::json[], $26::text[]::json[], $27::text[], $28::bigint[], $29::text[], $30::text[]::json[], $31::text[])
on conflict (cluster_key, node_key) do update set
	cluster = excluded.cluster, node = excluded.node, digest = excluded.digest, written_at = excluded.written_at,
	engine = excluded.engine, architecture = excluded.architecture, schedulable = excluded.schedulable,
	cores = excluded.cores, memory = excluded.memory, gpus = excluded.gpus, storage = excluded.storage,
	cpu_percent = excluded.cpu_percent, memory_percent = excluded.memory_percent, used_memory = excluded.used_memory,
	free_memory = excluded.free_memory, watts = excluded.watts, sca = excluded.sca, forecast_cpu = excluded.forecast_cpu,
	forecast_memory = excluded.forecast_memory, labels = excluded.labels, devices = excluded.devices,
	pods = excluded.pods, told = excluded.told, body = excluded.body, uuid = excluded.uuid, series = excluded.series,
	name = excluded.name, hearing = excluded.hearing, identity = excluded.identity`

	deletePlaces = `delete from topology_nodes
where (cluster_key, node_key) in (select * from unnest($1::text[], $2::text[]))`

	upsertClusters = `insert into topology_clusters (key, body)
select * from unnest($1::text[], $2::text[]::json[])
on conflict (key) do update set body = excluded.body where topology_clusters.body::text <> excluded.body::text`

	deleteClusters = `delete from topology_clusters where key <> all($1)`
)

const (
	// A reading that has moved by less than this is not written: percentage points, and otherwise a share of it.
	readingStep  = 1
	readingShare = 0.02

	// displayAge is how old in a row may be what only people look at, such as a temperature.
	displayAge = time.Minute
)

// readings are the values of a node that move all the time and that placement looks at.
type readings struct {
	CPUPercent, MemoryPercent, UsedMemory, FreeMemory, Watts, ForecastCPU, ForecastMemory *float64
}

func readingsOf(n *Node) readings {
	d, f := n.DynamicMetrics, n.ForecastedMetrics
	return readings{
		pointer(d.CPUUsagePercent), pointer(d.MemoryUsagePercent), pointer(d.UsedRAM), pointer(d.FreeRAM),
		pointer(d.CPUPowerWatts), pointer(f.CPUUtilizationPrediction), pointer(f.MemoryUtilizationPrediction),
	}
}

// near reports whether no reading has moved by more than noise.
func (r readings) near(o readings) bool {
	point := func(a, b *float64, step float64) bool {
		return (a == nil) == (b == nil) && (a == nil || *a == *b || math.Abs(*a-*b) < step)
	}
	part := func(a, b *float64) bool { return point(a, b, readingShare*max(value(a), value(b))) }
	return point(r.CPUPercent, o.CPUPercent, readingStep) && point(r.MemoryPercent, o.MemoryPercent, readingStep) &&
		point(r.ForecastCPU, o.ForecastCPU, readingStep) && point(r.ForecastMemory, o.ForecastMemory, readingStep) &&
		part(r.UsedMemory, o.UsedMemory) && part(r.FreeMemory, o.FreeMemory) && part(r.Watts, o.Watts)
}

// columns are where a row of selectReadings is read to.
func (r *readings) columns() []any {
	return []any{&r.CPUPercent, &r.MemoryPercent, &r.UsedMemory, &r.FreeMemory, &r.Watts, &r.ForecastCPU, &r.ForecastMemory}
}

// set gives the node these readings.
func (r readings) set(n *Node) {
	d, f := &n.DynamicMetrics, &n.ForecastedMetrics
	d.CPUUsagePercent, d.MemoryUsagePercent = measure(r.CPUPercent), measure(r.MemoryPercent)
	d.UsedRAM, d.FreeRAM, d.CPUPowerWatts = measure(r.UsedMemory), measure(r.FreeMemory), measure(r.Watts)
	f.CPUUtilizationPrediction, f.MemoryUtilizationPrediction = measure(r.ForecastCPU), measure(r.ForecastMemory)
}

// into writes the readings into the document of a node, which is stored without them since they are written more often.
// A document of a former version has them.
func (r readings) into(body []byte) []byte {
	if bytes.Contains(body, []byte(`UsagePercent":`)) {
		return body
	}
	for _, part := range []struct {
		in   string
		keys []string
		of   []*float64
	}{
		{
			"dynamicMetrics",
			[]string{"freeRAM", "usedRAM", "cpuPowerWatts", "cpuUsagePercent", "memoryUsagePercent"},
			[]*float64{r.FreeMemory, r.UsedMemory, r.Watts, r.CPUPercent, r.MemoryPercent},
		},
		{
			"forecastedMetrics",
			[]string{"cpuUtilizationPrediction", "memoryUtilizationPrediction"},
			[]*float64{r.ForecastCPU, r.ForecastMemory},
		},
	} {
		// Quotation marks within texts are escaped, and what people name comes later in the document.
		before, after, found := bytes.Cut(body, []byte(`"`+part.in+`":{`))
		if !found {
			continue
		}
		made := make([]byte, 0, len(body)+200)
		made = append(append(made, before...), `"`+part.in+`":{`...)
		for i, v := range part.of {
			if v == nil {
				continue
			}
			text, err := json.Marshal(*v)
			if err != nil {
				continue // what Postgres stores as a number of these is finite
			}
			made = append(append(append(made, `"`+part.keys[i]+`":`...), text...), ',')
		}
		if after[0] == '}' {
			made = bytes.TrimSuffix(made, []byte(","))
		}
		body = append(made, after...)
	}
	return body
}

func value(v *float64) float64 {
	if v == nil {
		return 0
	}
	return *v
}

func pointer(m Measure) *float64 {
	v, known := m.Get()
	if !known {
		return nil
	}
	return &v
}

func measure(v *float64) Measure {
	if v == nil {
		return Measure{}
	}
	return Known(*v)
}

// usage is what one pod of ours uses, in its shortest form.
type usage struct {
	Instances []string `json:"i"`
	Cores     Measure  `json:"c,omitzero"`
	Bytes     Measure  `json:"m,omitzero"`
}

// digest is equal for nodes that differ in nothing but what moves all the time. What pods use is not left out: it is
// subtracted from what the node uses, so both must be of one moment.
func (p *Place) digest() (int64, error) {
	n := *p.At
	n.LastSeen, n.ForecastedMetrics, n.Hearing = Measure{}, ForecastedMetrics{}, Hearing{}
	n.DynamicMetrics = DynamicMetrics{AvailableStorage: n.DynamicMetrics.AvailableStorage}
	if n.NetworkInterfaces != nil {
		n.NetworkInterfaces = maps.Clone(n.NetworkInterfaces)
		for key, i := range n.NetworkInterfaces {
			i.IngressUssage, i.EngressUssage = Measure{}, Measure{}
			n.NetworkInterfaces[key] = i
		}
	}
	rest, err := json.Marshal(n)
	if err != nil {
		return 0, fmt.Errorf("encode the node %s/%s: %w", p.Cluster, p.Node, err)
	}
	h := fnv.New64a()
	_, _ = fmt.Fprintf(h, "%s\x00%s\x00%d\x00%s\x00", p.Cluster, p.Node, n.Series, n.Identity.text())
	_, _ = h.Write(rest)
	return int64(h.Sum64()), nil // any 64 bits
}

// ours lists what pods of applications use.
func (n *Node) ours() []usage {
	var list []usage
	for _, p := range n.Pod {
		var u usage
		for _, w := range p.Workload {
			if w.AppInstance != "" {
				u.Instances = append(u.Instances, w.AppInstance)
			}
		}
		if u.Instances == nil {
			continue
		}
		slices.Sort(u.Instances)
		var cores, bytes float64
		for _, c := range p.Container {
			cores += c.CPUUsage.Or(0)
			bytes += c.ContainerMemory.Or(0)
		}
		u.Cores, u.Bytes = Known(cores), Known(bytes)
		list = append(list, u)
	}
	return list
}

// placeRow is a row of selectPlaces.
type placeRow struct {
	ClusterKey, NodeKey, Cluster, Node    string
	LastSeen                              time.Time
	Engine, Architecture                  string
	Schedulable                           *bool
	Cores, Memory, GPUs, Storage          *float64
	CPUPercent, MemoryPercent, UsedMemory *float64
	FreeMemory, Watts, SCA                *float64
	ForecastCPU, ForecastMemory           *float64
	Labels, Devices, Pods, Hearing        []byte
}

// documents are labels and devices by their text: most nodes have those of others. Nobody changes them.
type documents struct {
	labels  map[string]map[string]string
	devices map[string]map[string]Device
}

// parsed returns the document of a text, which is parsed once.
func parsed[V any](known map[string]map[string]V, text []byte) (map[string]V, error) {
	if text == nil {
		return nil, nil
	}
	if m, ok := known[string(text)]; ok {
		return m, nil
	}
	var m map[string]V
	err := json.Unmarshal(text, &m)
	known[string(text)] = m
	return m, err
}

func (r *placeRow) node(shared documents) (*Node, error) {
	n := &Node{
		Name: r.Node, Engine: r.Engine, Schedulable: r.Schedulable, LastSeen: Known(toSeconds(r.LastSeen)),
		ScaScore: measure(r.SCA),
		StaticMetrics: StaticMetrics{
			CPUArchitecture: r.Architecture, CPUCores: measure(r.Cores), RAMMemory: measure(r.Memory), GPUCores: measure(r.GPUs),
		},
		DynamicMetrics: DynamicMetrics{
			CPUUsagePercent: measure(r.CPUPercent), MemoryUsagePercent: measure(r.MemoryPercent),
			UsedRAM: measure(r.UsedMemory), FreeRAM: measure(r.FreeMemory), CPUPowerWatts: measure(r.Watts),
			AvailableStorage: AvailableStorage{Free: measure(r.Storage)},
		},
		ForecastedMetrics: ForecastedMetrics{
			CPUUtilizationPrediction: measure(r.ForecastCPU), MemoryUtilizationPrediction: measure(r.ForecastMemory),
		},
	}
	var pods []usage
	var failed, err error
	n.Labels, err = parsed(shared.labels, r.Labels)
	failed = errors.Join(failed, err)
	n.Devices, err = parsed(shared.devices, r.Devices)
	failed = errors.Join(failed, err)
	if r.Pods != nil {
		failed = errors.Join(failed, json.Unmarshal(r.Pods, &pods))
	}
	if r.Hearing != nil {
		failed = errors.Join(failed, json.Unmarshal(r.Hearing, &n.Hearing))
	}
	if failed != nil {
		return nil, fmt.Errorf("decode the stored node %s/%s: %w", r.Cluster, r.Node, failed)
	}
	for i, u := range pods {
		p := Pod{Workload: map[string]Workload{}, Container: map[string]Container{"": {CPUUsage: u.Cores, ContainerMemory: u.Bytes}}}
		for _, instance := range u.Instances {
			p.Workload[instance] = Workload{AppInstance: instance}
		}
		if n.Pod == nil {
			n.Pod = map[string]Pod{}
		}
		n.Pod[fmt.Sprint(i)] = p
	}
	return n, nil
}

// Inventory is the topology as placement needs it.
type Inventory struct {
	// Places are in the order of Taxonomy.Places. Their nodes have only what placement filters and scores by: engine,
	// capacity, readings, score, labels, devices, freshness, and in Pod what applications use, one container for each pod.
	Places      []Place
	At          time.Time
	SilentUntil time.Time // when telemetry last had no nodes at all; zero if never
}

// ReadInventory returns the topology saved last. The error is that of Current.
func ReadInventory(ctx context.Context, q store.Querier) (*Inventory, error) {
	return readInventory(ctx, q, selectPlaces)
}

// ReadInventoryAt is ReadInventory of the nodes with these names alone, each with its cluster. Those that there are not are
// left out.
func ReadInventoryAt(ctx context.Context, q store.Querier, names [][2]string) (*Inventory, error) {
	return readInventory(ctx, q, selectPlacesAt, Columns(names)...)
}

// Columns are the clusters and the nodes of names, as arguments of a statement that unnests them.
func Columns(names [][2]string) []any {
	clusters, nodes := make([]string, len(names)), make([]string, len(names))
	for i, name := range names {
		clusters[i], nodes[i] = name[0], name[1]
	}
	return []any{clusters, nodes}
}

func readInventory(ctx context.Context, q store.Querier, places string, args ...any) (*Inventory, error) {
	h, err := readHead(ctx, q)
	if err != nil {
		return nil, err
	}
	inv := &Inventory{At: h.at, SilentUntil: h.taxonomy.SilentUntil()}
	clusters, err := readClusters(ctx, q)
	if err != nil {
		return nil, err
	}
	rows, err := q.Query(ctx, places, args...)
	if err != nil {
		return nil, fmt.Errorf("read the nodes: %w", err)
	}
	defer rows.Close()
	shared := documents{map[string]map[string]string{}, map[string]map[string]Device{}}
	for rows.Next() {
		var r placeRow
		if err := rows.Scan(
			&r.ClusterKey, &r.NodeKey, &r.Cluster, &r.Node, &r.LastSeen, &r.Engine, &r.Architecture, &r.Schedulable,
			&r.Cores, &r.Memory, &r.GPUs, &r.Storage, &r.CPUPercent, &r.MemoryPercent, &r.UsedMemory, &r.FreeMemory,
			&r.Watts, &r.SCA, &r.ForecastCPU, &r.ForecastMemory, &r.Labels, &r.Devices, &r.Pods, &r.Hearing,
		); err != nil {
			return nil, fmt.Errorf("read the nodes: %w", err)
		}
		c, known := clusters[r.ClusterKey]
		if !known {
			continue // it was removed between the two statements
		}
		n, err := r.node(shared)
		if err != nil {
			return nil, err
		}
		inv.Places = append(inv.Places, Place{r.Cluster, r.Node, r.ClusterKey, r.NodeKey, c, n})
	}
	rows.Close()
	if err := rows.Err(); err != nil {
		return nil, fmt.Errorf("read the nodes: %w", err)
	}
	return inv, nil
}

// readClusters returns the clusters by key, without their nodes.
func readClusters(ctx context.Context, q store.Querier) (map[string]*Cluster, error) {
	rows, err := q.Query(ctx, selectClusters)
	if err != nil {
		return nil, fmt.Errorf("read the clusters: %w", err)
	}
	all := map[string]*Cluster{}
	var key string
	var body []byte
	_, err = pgx.ForEachRow(rows, []any{&key, &body}, func() error {
		c := &Cluster{}
		all[key] = c
		return json.Unmarshal(body, c)
	})
	if err != nil {
		return nil, fmt.Errorf("read the clusters: %w", err)
	}
	return all, nil
}

// stored is what the rows hold of a node, as far as Save compares.
type stored struct {
	clusterKey, nodeKey, cluster, node string
	digest                             int64
	written                            time.Time
	readings                           readings
	announced                          []byte
}

// current reports whether the row need not be written: nothing but readings has changed, and those by no more than
// noise.
func (s *stored) current(p *Place, digest int64, at time.Time) bool {
	return s.digest == digest && s.readings.near(readingsOf(p.At)) && at.Sub(s.written) < displayAge
}

// readStored reads the rows, by key. Of nodes that a part is not about it has only the names.
func readStored(ctx context.Context, tx *store.Tx, places []Place, part *Part) (map[[2]string]*stored, error) {
	all := map[[2]string]*stored{}
	statement, args := selectStored, []any(nil)
	if part != nil {
		var ck, nk, c, n []string
		for i := range places {
			if p := &places[i]; part.has(p) {
				ck, nk, c, n = append(ck, p.ClusterKey), append(nk, p.NodeKey), append(c, p.Cluster), append(n, p.Node)
			}
		}
		statement, args = selectStoredOf, []any{ck, nk, c, n}
		if !part.Alone {
			if err := readNames(ctx, tx, all); err != nil {
				return nil, err
			}
		}
	}
	rows, err := tx.Query(ctx, statement, args...)
	if err != nil {
		return nil, fmt.Errorf("read the nodes: %w", err)
	}
	defer rows.Close()
	for rows.Next() {
		s := &stored{}
		r := &s.readings
		if err := rows.Scan(
			&s.clusterKey, &s.nodeKey, &s.cluster, &s.node, &s.digest, &s.written, &r.CPUPercent, &r.MemoryPercent,
			&r.UsedMemory, &r.FreeMemory, &r.Watts, &r.ForecastCPU, &r.ForecastMemory, &s.announced,
		); err != nil {
			return nil, fmt.Errorf("read the nodes: %w", err)
		}
		all[[2]string{s.clusterKey, s.nodeKey}] = s
	}
	rows.Close()
	if err := rows.Err(); err != nil {
		return nil, fmt.Errorf("read the nodes: %w", err)
	}
	return all, nil
}

// readNames adds all rows, with their names only.
func readNames(ctx context.Context, tx *store.Tx, all map[[2]string]*stored) error {
	rows, err := tx.Query(ctx, selectStoredNames)
	if err != nil {
		return fmt.Errorf("read the nodes: %w", err)
	}
	var s stored
	_, err = pgx.ForEachRow(rows, []any{&s.clusterKey, &s.nodeKey, &s.cluster, &s.node}, func() error {
		one := s
		all[[2]string{s.clusterKey, s.nodeKey}] = &one
		return nil
	})
	if err != nil {
		return fmt.Errorf("read the nodes: %w", err)
	}
	return nil
}

// columns are the values of upsertPlaces, one slice per column.
type columns struct {
	clusterKey, nodeKey, cluster, node    []string
	digest                                []int64
	written                               []time.Time
	engine, architecture                  []string
	schedulable                           []*bool
	cores, memory, gpus, storage          []*float64
	cpu, memoryPercent, used, free, watts []*float64
	sca, forecastCPU, forecastMemory      []*float64
	labels, devices, pods, hearing        []*string
	announced, body, uuid, name, identity []string
	series                                []int64
}

func (c *columns) add(p *Place, digest int64, at time.Time, was announced) error {
	n := p.At
	var failed error
	document := func(v any, empty bool) *string {
		if empty {
			return nil
		}
		text, err := json.Marshal(v)
		if err != nil {
			failed = err
		}
		s := string(text)
		return &s
	}
	pods := n.ours()
	r := readingsOf(n)
	c.clusterKey, c.nodeKey = append(c.clusterKey, p.ClusterKey), append(c.nodeKey, p.NodeKey)
	c.cluster, c.node = append(c.cluster, p.Cluster), append(c.node, p.Node)
	c.digest, c.written = append(c.digest, digest), append(c.written, at)
	c.engine, c.architecture = append(c.engine, n.Engine), append(c.architecture, n.StaticMetrics.CPUArchitecture)
	c.schedulable = append(c.schedulable, n.Schedulable)
	c.cores, c.memory = append(c.cores, pointer(n.StaticMetrics.CPUCores)), append(c.memory, pointer(n.StaticMetrics.RAMMemory))
	c.gpus = append(c.gpus, pointer(n.StaticMetrics.GPUCores))
	c.storage = append(c.storage, pointer(n.DynamicMetrics.AvailableStorage.Free))
	c.cpu, c.memoryPercent = append(c.cpu, r.CPUPercent), append(c.memoryPercent, r.MemoryPercent)
	c.used, c.free, c.watts = append(c.used, r.UsedMemory), append(c.free, r.FreeMemory), append(c.watts, r.Watts)
	c.sca = append(c.sca, pointer(n.ScaScore))
	c.forecastCPU, c.forecastMemory = append(c.forecastCPU, r.ForecastCPU), append(c.forecastMemory, r.ForecastMemory)
	c.labels = append(c.labels, document(n.Labels, len(n.Labels) == 0))
	c.devices = append(c.devices, document(n.Devices, len(n.Devices) == 0))
	c.pods = append(c.pods, document(pods, len(pods) == 0))
	c.hearing = append(c.hearing, document(n.Hearing, n.Hearing.IsZero()))
	body := *n
	body.LastSeen = Measure{} // which the nodes table has
	readings{}.set(&body)     // which have columns
	c.uuid, c.series, c.name = append(c.uuid, n.UUID), append(c.series, n.Series), append(c.name, n.Name)
	c.identity = append(c.identity, n.Identity.text())
	c.announced, c.body = append(c.announced, *document(was, false)), append(c.body, *document(body, false))
	return failed
}

func (c *columns) save(ctx context.Context, tx *store.Tx) error {
	if len(c.nodeKey) == 0 {
		return nil
	}
	_, err := tx.Exec(ctx, upsertPlaces, c.clusterKey, c.nodeKey, c.cluster, c.node, c.digest, c.written, c.engine,
		c.architecture, c.schedulable, c.cores, c.memory, c.gpus, c.storage, c.cpu, c.memoryPercent, c.used, c.free,
		c.watts, c.sca, c.forecastCPU, c.forecastMemory, c.labels, c.devices, c.pods, c.announced, c.body, c.uuid, c.series,
		c.name, c.hearing, c.identity)
	if err != nil {
		return fmt.Errorf("store nodes: %w", err)
	}
	return nil
}
