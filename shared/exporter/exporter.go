// Package exporter tells the components of applications where they run: which pods of which clusters are theirs.
//
// What a component is told is a value on the bus under {instance}/{component}, as ICOS's topology exporter has it. It is
// published when it changes, in the transaction that notices, and repeated once in a while. It is computed from what
// telemetry said last; as long as nothing was said, nothing is published.
package exporter

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/littoral-project/littoral/shared/bus"
	"github.com/littoral-project/littoral/shared/bus/keyexpr"
	"github.com/littoral-project/littoral/shared/events"
	"github.com/littoral-project/littoral/shared/problem"
	"github.com/littoral-project/littoral/shared/store"
	"github.com/littoral-project/littoral/shared/topology"
)

// Value is what a component is told. Generation, ObservedAt and the numbers of pods are not in ICOS.
type Value struct {
	Application string             `json:"application"` // its name
	Clusters    map[string]Cluster `json:"clusters"`    // by the taxonomy's key; empty = it runs nowhere
	Generation  int64              `json:"generation"`  // of a later value it is greater
	ObservedAt  time.Time          `json:"observedAt"`  // when telemetry was asked
}

// Cluster is the part of a component that runs in one cluster.
type Cluster struct {
	Name string         `json:"name"`
	Pods map[string]Pod `json:"pods"` // by uid
}

// Pod is one pod of the component.
type Pod struct {
	Name     string  `json:"name"`
	IP       string  `json:"ip"`
	Port     int     `json:"port,omitempty"`
	Cores    float64 `json:"cores,omitempty"`     // reserved for it
	MemoryGB float64 `json:"memory_gb,omitempty"` // reserved for it, in 10^9 bytes
}

// Application is what is registered.
type Application struct {
	Name       string   `json:"name"`
	Components []string `json:"components"`
}

const (
	insertApplication = `insert into exported_applications (instance, name, components, by_hand) values ($1, $2, $3, $4)
on conflict (instance) do update set name = excluded.name, components = excluded.components, by_hand = excluded.by_hand`

	lockApplication = `select name, components, by_hand from exported_applications where instance = $1 for update`

	deleteApplication = `delete from exported_applications where instance = $1`

	selectApplications = `select a.instance, a.name, array(select component from exported_components c
where c.instance = a.instance and c.ended_at is null order by component) from exported_applications a`

	selectJobs = `select a.name, a.desired = 'running' and a.deleted_at is null, a.deleted_at is not null or a.desired = 'deleted',
coalesce(j.component, ''), coalesce(j.type, '') = 'DeleteDeployment', coalesce(j.cluster, ''), coalesce(j.cpu_milli, 0), coalesce(j.memory_bytes, 0)
from applications a left join jobs j on j.application_id = a.id and j.cleans is null where a.id = $1 order by j.component, j.replica`

	selectPublished = `select component, clusters from exported_components where instance = $1 and ended_at is null order by component`

	selectObserved = `select at from topology where head is not null`

	// The column pods names the instances of a node's pods; only nodes that have some are parsed.
	selectNodes = `select cluster_key, node_key, cluster, node from topology_nodes
where pods is not null and strpos(pods::text, $1) > 0 and ($2::text[] is null or cluster = any($2))`

	selectBody = `select body from topology_nodes where cluster_key = $1 and node_key = $2`

	upsertTold = `insert into exported_components (instance, component, generation, clusters, places, ended_at)
values ($1, $2, nextval('exported_generations'), $3, $4, case when $5 then now() end)
on conflict (instance, component) do update set generation = excluded.generation, clusters = excluded.clusters,
	places = excluded.places, ended_at = excluded.ended_at
returning generation`

	selectAffected = `select instance from exported_components where places && $1 and ended_at is null
union select i from topology_nodes n, json_array_elements(n.pods) p, json_array_elements_text(p -> 'i') i
where n.pods is not null and n.cluster || '/' || n.node = any($1) and i in (select instance from exported_applications)
order by 1`
)

// Chunk checks a name that becomes a chunk of a key. The error is Invalid.
func Chunk(path, name string) error {
	var faults problem.Faults
	checkChunk(path, name, &faults)
	return faults.Err("this cannot be registered")
}

func checkChunk(path, name string, faults *problem.Faults) {
	e, err := keyexpr.ParseKey(name)
	switch {
	case err != nil:
		faults.Add(path, 0, "cannot be part of a key: %v", err)
	case strings.ContainsAny(string(e), "/\x00") || strings.HasPrefix(name, "@"):
		faults.Add(path, 0, "cannot be part of a key: it has a %q or begins with %q", "/", "@")
	}
}

// Register adds an application that is not ours, or replaces what is known of it, and publishes.
func Register(ctx context.Context, tx *store.Tx, instance string, a Application) error {
	var faults problem.Faults
	checkChunk("app_instance", instance, &faults)
	for i, c := range a.Components {
		checkChunk(fmt.Sprintf("components[%d].name", i), c, &faults)
	}
	if err := faults.Err("this cannot be registered"); err != nil {
		return err
	}
	if _, err := tx.Exec(ctx, insertApplication, instance, a.Name, a.Components, true); err != nil {
		return fmt.Errorf("register %s: %w", instance, err)
	}
	return Update(ctx, tx, instance)
}

// Unregister publishes that the components run nowhere, and forgets the application; found is false if it was not known.
func Unregister(ctx context.Context, tx *store.Tx, instance string) (found bool, err error) {
	known, err := lock(ctx, tx, instance)
	if err != nil || known == nil {
		return false, err
	}
	if err := publishLocations(ctx, tx, instance, known.Name, nil, time.Now()); err != nil {
		return true, err
	}
	if _, err := tx.Exec(ctx, deleteApplication, instance); err != nil {
		return true, fmt.Errorf("unregister %s: %w", instance, err)
	}
	return true, nil
}

// List returns all registered applications by instance.
func List(ctx context.Context, q store.Querier) (map[string]Application, error) {
	found := map[string]Application{}
	rows, err := q.Query(ctx, selectApplications)
	if err != nil {
		return nil, fmt.Errorf("read registrations: %w", err)
	}
	var instance string
	var a Application
	_, err = pgx.ForEachRow(rows, []any{&instance, &a.Name, &a.Components}, func() error {
		found[instance] = Application{a.Name, slices.Clone(a.Components)}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read registrations: %w", err)
	}
	return found, nil
}

// Affected lists the registered instances that have pods on the nodes, or were told that they have.
func Affected(ctx context.Context, q store.Querier, changes []events.TopologyChange) ([]string, error) {
	var places []string
	for _, c := range changes {
		places = append(places, c.Cluster+"/"+c.Node)
	}
	return store.Collect(ctx, q, "find applications of nodes", pgx.RowTo[string], selectAffected, places)
}

// component is what our jobs say about one.
type component struct {
	clusters []string
	pod      Pod // what is reserved for each of its pods
}

// Update publishes what has changed about the components of instances. One of ours is registered by that, and forgotten
// once it is deleted; of others nothing is known but what was registered. The error is Unavailable while telemetry has not
// said anything yet.
func Update(ctx context.Context, tx *store.Tx, instances ...string) error {
	n := nodes{}
	for _, instance := range instances {
		if err := n.update(ctx, tx, instance); err != nil {
			return err
		}
	}
	return nil
}

// nodes are those that were read, by the keys of cluster and node: each is read once, however many instances run there.
type nodes map[[2]string]*topology.Node

func (all nodes) node(ctx context.Context, q store.Querier, key [2]string) (*topology.Node, error) {
	if n := all[key]; n != nil {
		return n, nil
	}
	n := &topology.Node{}
	var body []byte
	err := q.QueryRow(ctx, selectBody, key[0], key[1]).Scan(&body)
	switch {
	case errors.Is(err, pgx.ErrNoRows): // it is gone since it was found
	case err != nil:
		return nil, fmt.Errorf("read the node %s/%s: %w", key[0], key[1], err)
	default:
		if err := json.Unmarshal(body, n); err != nil {
			return nil, fmt.Errorf("decode the node %s/%s: %w", key[0], key[1], err)
		}
	}
	all[key] = n
	return n, nil
}

func (all nodes) update(ctx context.Context, tx *store.Tx, instance string) error {
	id, err := uuid.Parse(instance)
	ours := err == nil
	name, running, deleted := "", false, false
	components := map[string]*component{}
	if ours {
		if name, running, deleted, components, err = readJobs(ctx, tx, id); err != nil {
			return err
		}
		ours = name != ""
	}
	if ours && !deleted {
		if _, err := tx.Exec(ctx, insertApplication, instance, name, []string{}, false); err != nil {
			return fmt.Errorf("register %s: %w", instance, err)
		}
	}
	known, err := lock(ctx, tx, instance)
	if err != nil || known == nil {
		return err
	}
	if deleted {
		_, err := Unregister(ctx, tx, instance)
		return err
	}
	if !ours {
		name, running = known.Name, true
		for _, c := range known.Components {
			components[c] = &component{}
		}
	}
	where := map[string]*location{}
	for c := range components {
		where[c] = &location{clusters: map[string]Cluster{}}
	}
	at := time.Now()
	if running {
		if at, err = all.observe(ctx, tx, instance, ours, components, where); err != nil {
			return err
		}
	}
	return publishLocations(ctx, tx, instance, name, where, at)
}

func lock(ctx context.Context, tx *store.Tx, instance string) (*Application, error) {
	var a Application
	var byHand bool
	err := tx.QueryRow(ctx, lockApplication, instance).Scan(&a.Name, &a.Components, &byHand)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, nil // nobody registered it
	}
	if err != nil {
		return nil, fmt.Errorf("read the registration of %s: %w", instance, err)
	}
	return &a, nil
}

func readJobs(ctx context.Context, q store.Querier, id uuid.UUID) (
	name string, running, deleted bool, components map[string]*component, err error,
) {
	components = map[string]*component{}
	rows, err := q.Query(ctx, selectJobs, id)
	if err != nil {
		return "", false, false, nil, fmt.Errorf("read jobs: %w", err)
	}
	var of, cluster string
	var removal bool
	var cpu, memory int64
	_, err = pgx.ForEachRow(rows, []any{&name, &running, &deleted, &of, &removal, &cluster, &cpu, &memory}, func() error {
		if of == "" {
			return nil
		}
		c := components[of]
		if c == nil {
			c = &component{}
			components[of] = c
		}
		if !removal && cluster != "" {
			c.clusters = append(c.clusters, cluster)
			c.pod = Pod{Cores: float64(cpu) / 1000, MemoryGB: math.Round(float64(memory)/1e6) / 1e3}
		}
		return nil
	})
	if err != nil {
		return "", false, false, nil, fmt.Errorf("read jobs: %w", err)
	}
	return name, running, deleted, components, nil
}

// location is where one component runs, as it is published to it.
type location struct {
	clusters map[string]Cluster
	places   []string
}

// observe finds the pods in the stored topology: of applications of ours in the clusters where their components are placed,
// so that what still runs at a former place does not count.
func (all nodes) observe(
	ctx context.Context, q store.Querier, instance string, ours bool, components map[string]*component, where map[string]*location,
) (at time.Time, err error) {
	err = q.QueryRow(ctx, selectObserved).Scan(&at)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return at, problem.Wrap(problem.Unavailable, topology.ErrUnknown, "no telemetry of the infrastructure has been seen yet; try again")
	case err != nil:
		return at, fmt.Errorf("read the topology: %w", err)
	}
	var clusters []string // nil = all
	if ours {
		clusters = []string{}
		for _, c := range components {
			clusters = append(clusters, c.clusters...)
		}
	}
	quoted, _ := json.Marshal(instance) // a text always encodes
	type row struct{ ClusterKey, NodeKey, Cluster, Node string }
	found, err := store.Collect(ctx, q, "read nodes", pgx.RowToStructByPos[row], selectNodes, string(quoted), clusters)
	if err != nil {
		return at, err
	}
	for _, r := range found {
		n, err := all.node(ctx, q, [2]string{r.ClusterKey, r.NodeKey})
		if err != nil {
			return at, err
		}
		for uid, p := range n.Pod {
			w, is := p.Workload[instance]
			t := where[w.AppComponent]
			if !is || t == nil || ours && !slices.Contains(components[w.AppComponent].clusters, r.Cluster) {
				continue
			}
			t.add(r.ClusterKey, r.Cluster, r.Node, uid, p, components[w.AppComponent].pod)
		}
	}
	return at, nil
}

func (t *location) add(key, cluster, node, uid string, p topology.Pod, as Pod) {
	if _, has := t.clusters[key]; !has {
		t.clusters[key] = Cluster{Name: cluster, Pods: map[string]Pod{}}
	}
	if _, name, found := strings.Cut(p.Name, "__"); found {
		as.Name = name
	} else {
		as.Name = p.Name
	}
	as.IP = p.IP
	for _, c := range slices.Sorted(maps.Keys(p.Container)) {
		if port, err := strconv.Atoi(p.Container[c].Port); err == nil && port > 0 {
			as.Port = port
			break
		}
	}
	t.clusters[key].Pods[uid] = as
	if place := cluster + "/" + node; !slices.Contains(t.places, place) {
		t.places = append(t.places, place)
	}
}

// publishLocations publishes to each component what differs from what was published to it last. A component that is none any
// more is told that it runs nowhere.
func publishLocations(ctx context.Context, tx *store.Tx, instance, name string, where map[string]*location, at time.Time) error {
	type row struct{ Component, Clusters string }
	before := map[string]string{}
	rows, err := store.Collect(ctx, tx, "read what was told", pgx.RowToStructByPos[row], selectPublished, instance)
	if err != nil {
		return err
	}
	for _, r := range rows {
		before[r.Component] = r.Clusters
	}
	all := maps.Clone(where)
	if all == nil {
		all = map[string]*location{}
	}
	for c := range before {
		if all[c] == nil {
			all[c] = &location{clusters: map[string]Cluster{}}
		}
	}
	var changes []bus.Change
	var news []events.Published
	for _, c := range slices.Sorted(maps.Keys(all)) {
		clusters, err := json.Marshal(all[c].clusters)
		if err != nil {
			return fmt.Errorf("encode clusters: %w", err)
		}
		ended := where[c] == nil
		if last, was := before[c]; was && last == string(clusters) && !ended {
			continue
		}
		slices.Sort(all[c].places)
		value := Value{Application: name, Clusters: all[c].clusters, ObservedAt: at.UTC()}
		if all[c].places == nil {
			all[c].places = []string{}
		}
		err = tx.QueryRow(ctx, upsertTold, instance, c, string(clusters), all[c].places, ended).Scan(&value.Generation)
		if err != nil {
			return fmt.Errorf("store what %s is told: %w", c, err)
		}
		payload, err := json.Marshal(value)
		if err != nil {
			return fmt.Errorf("encode what %s is told: %w", c, err)
		}
		key := keyexpr.Expr(instance + "/" + c)
		changes = append(changes, bus.Change{Key: key, Encoding: bus.JSON, Payload: payload})
		news = append(news, events.Published{Key: string(key), Instance: instance, Component: c, Generation: value.Generation, Value: payload})
	}
	if err := bus.Publish(ctx, tx, changes...); err != nil {
		return err
	}
	for _, n := range news {
		if err := tx.Emit(ctx, events.TopologyPublished, n.Key, n); err != nil {
			return err
		}
	}
	return nil
}
