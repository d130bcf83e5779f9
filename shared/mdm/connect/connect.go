// Package connect publishes to the metadata graph what Littoral knows itself: applications with their components and places, and
// the clusters and nodes of the taxonomy. What is known already is not said again.
package connect

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/littoral-project/littoral/shared/mdm"
	"github.com/littoral-project/littoral/shared/store"
)

// The connectors. Their ids are derived from their names.
var (
	applications   = mdm.EntityID("connector", "littoral/applications")
	infrastructure = mdm.EntityID("connector", "littoral/infrastructure")
)

// Types of entities and relations.
const (
	App       = "app"
	Component = "component"
	Compute   = "compute"
	Cluster   = "cluster"

	PartOf = "PART_OF" // component to app
	RunsOn = "RUNS_ON" // component to compute
	In     = "IN"      // compute to cluster
)

// NodeID is the id of a node.
func NodeID(cluster, node string) uuid.UUID { return mdm.EntityID(Compute, cluster+"/"+node) }

const (
	selectApplication = `select name, desired, dialect, deleted_at is not null or desired = 'deleted' from applications where id = $1`

	selectComponents = `select component, count(*), coalesce(array_agg(distinct cluster || '/' || node) filter (where node <> '' and type <> 'DeleteDeployment'), '{}'),
	coalesce(array_agg(distinct orchestrator) filter (where orchestrator <> ''), '{}')
from jobs where application_id = $1 and cleans is null group by component order by component`

	selectFormer = `select source from mdm_relations where target = $1 and type = $2 and connector = $3`

	selectPlaces = `select source, target from mdm_relations where source = any($1) and type = $2 and connector = $3`
)

// component is one of an application.
type component struct {
	Name          string
	Replicas      int64
	Places        []string
	Orchestrators []string
}

// Application publishes an application as it is now. Publishers take turns from here on, so that what it reads is not older than
// what another call has published.
func Application(ctx context.Context, tx *store.Tx, id uuid.UUID) error {
	if err := tx.Lock(ctx, store.LockMetadata); err != nil {
		return err
	}
	var name, desired, dialect string
	var gone bool
	err := tx.QueryRow(ctx, selectApplication, id).Scan(&name, &desired, &dialect, &gone)
	if errors.Is(err, pgx.ErrNoRows) {
		gone = true
	} else if err != nil {
		return fmt.Errorf("read application: %w", err)
	}
	b := batch{source: mdm.Source{Connector: applications, Type: ours, At: time.Now()}}
	app := mdm.EntityID(App, id.String())
	var all []component
	if !gone {
		if all, err = store.Collect(ctx, tx, "read components", pgx.RowToStructByPos[component], selectComponents, id); err != nil {
			return err
		}
		b.entity(App, id.String(), map[string]any{"name": name, "desired": desired, "dialect": dialect})
	}
	var current []uuid.UUID
	places := map[[2]uuid.UUID]bool{}
	for _, c := range all {
		own := mdm.EntityID(Component, id.String()+"/"+c.Name)
		current = append(current, own)
		b.entity(Component, id.String()+"/"+c.Name, map[string]any{"name": c.Name, "app": name, "replicas": c.Replicas, "orchestrators": c.Orchestrators})
		b.relation(PartOf, own, app)
		for _, place := range c.Places {
			at := mdm.EntityID(Compute, place)
			places[[2]uuid.UUID{own, at}] = true
			b.relation(RunsOn, own, at)
		}
	}
	if err := b.without(ctx, tx, app, current, places); err != nil {
		return err
	}
	if gone {
		b.gone(App, app)
	}
	return b.publish(ctx, tx)
}

// ours is the type of the connectors.
const ours = "littoral"

// without adds that former components, and former places of present ones, are no more.
func (b *batch) without(ctx context.Context, tx *store.Tx, app uuid.UUID, current []uuid.UUID, places map[[2]uuid.UUID]bool) error {
	former, err := store.Collect(ctx, tx, "read former components", pgx.RowTo[uuid.UUID], selectFormer, app, PartOf, b.source.Connector)
	if err != nil {
		return err
	}
	for _, own := range former {
		if !slices.Contains(current, own) {
			b.gone(Component, own)
		}
	}
	type place struct{ Source, Target uuid.UUID }
	known, err := store.Collect(ctx, tx, "read former places", pgx.RowToStructByPos[place], selectPlaces, current, RunsOn, b.source.Connector)
	if err != nil {
		return err
	}
	for _, p := range known {
		if !places[[2]uuid.UUID{p.Source, p.Target}] {
			b.add(b.source.Unrelated(RunsOn, p.Source, p.Target))
		}
	}
	return nil
}

// batch collects changes.
type batch struct {
	source  mdm.Source
	changes []mdm.Change
	err     error
}

func (b *batch) add(c mdm.Change, err error) {
	b.changes, b.err = append(b.changes, c), errors.Join(b.err, err)
}

func (b *batch) entity(kind, name string, attributes map[string]any) {
	b.add(b.source.Entity(kind, name, attributes))
}

func (b *batch) relation(kind string, from, to uuid.UUID) { b.add(b.source.Relation(kind, from, to)) }
func (b *batch) gone(kind string, id uuid.UUID)           { b.add(b.source.Gone(kind, id)) }

// publish publishes what is news. It comes last in its transaction.
func (b *batch) publish(ctx context.Context, tx *store.Tx) error {
	if b.err != nil {
		return b.err
	}
	news, err := mdm.News(ctx, tx, b.changes)
	if err != nil || len(news) == 0 {
		return err
	}
	_, err = mdm.Publish(ctx, tx, news)
	return err
}

const (
	selectNodes = `select cluster, node, engine, architecture, cores, memory, gpus, sca, labels from topology_nodes order by cluster, node`

	selectOthers = `select edf_id, type from mdm_entities where connector = $1 and type = any($2) and not edf_id = any($3)`
)

// node is one of the taxonomy.
type node struct {
	Cluster, Node, Engine, Architecture string
	Cores, Memory, GPUs, SCA            *float64
	Labels                              map[string]string
}

// attributes are what changes seldom. What changes all the time is asked for where it is (Nodes).
func (n node) attributes() map[string]any {
	all := map[string]any{"name": n.Node, "cluster": n.Cluster, "engine": n.Engine, "arch": n.Architecture}
	for name, value := range map[string]*float64{"cpu": n.Cores, "memory": n.Memory, "gpus": n.GPUs, "sca": n.SCA} {
		if value != nil {
			all[name] = *value
		}
	}
	if compliance := level(n.SCA); compliance != "" {
		all["compliance"] = compliance
	}
	if len(n.Labels) > 0 {
		all["labels"] = n.Labels
	}
	return all
}

// level is a security score in words, by the limits that policies have (CODECO's compliance class means the same score).
func level(sca *float64) string {
	switch {
	case sca == nil:
		return ""
	case *sca >= 80:
		return "High"
	case *sca >= 50:
		return "Medium"
	}
	return "Low"
}

// Infrastructure publishes the nodes and clusters of the taxonomy, a batch in a transaction, and deletes those that are no more.
func Infrastructure(ctx context.Context, db *store.DB) error {
	nodes, err := store.Collect(ctx, db, "read nodes", pgx.RowToStructByPos[node], selectNodes)
	if err != nil {
		return err
	}
	b := batch{source: mdm.Source{Connector: infrastructure, Type: ours, At: time.Now()}}
	present := []uuid.UUID{}
	seen := map[string]bool{}
	for _, n := range nodes {
		if !seen[n.Cluster] {
			seen[n.Cluster] = true
			present = append(present, mdm.EntityID(Cluster, n.Cluster))
			b.entity(Cluster, n.Cluster, map[string]any{"name": n.Cluster})
		}
		present = append(present, NodeID(n.Cluster, n.Node))
		b.entity(Compute, n.Cluster+"/"+n.Node, n.attributes())
		b.relation(In, NodeID(n.Cluster, n.Node), mdm.EntityID(Cluster, n.Cluster))
	}
	if err := b.publishAll(ctx, db, []string{Cluster, Compute}, present); err != nil {
		return err
	}
	return introduce(ctx, db)
}

// publishAll publishes all that a connector knows of some types, a batch in a transaction: what it has published before and is not
// present any more is gone.
func (b *batch) publishAll(ctx context.Context, db *store.DB, types []string, present []uuid.UUID) error {
	type other struct {
		ID   uuid.UUID
		Type string
	}
	gone, err := store.Collect(ctx, db, "read what was published", pgx.RowToStructByPos[other], selectOthers, b.source.Connector, types, present)
	if err != nil {
		return err
	}
	for _, o := range gone {
		b.gone(o.Type, o.ID)
	}
	if b.err != nil {
		return b.err
	}
	for some := range slices.Chunk(b.changes, mdm.MaxBatch) {
		one := batch{source: b.source, changes: some}
		if err := db.Tx(ctx, one.publish); err != nil {
			return err
		}
	}
	return nil
}

// Applications may stay as they are for a long time.
const longest = 30 * 24 * 3600

// introduce tells the registry who publishes, and that this one has looked.
func introduce(ctx context.Context, q store.Querier) error {
	err := mdm.Introduce(ctx, q, mdm.Connector{ID: infrastructure, Type: ours, Name: "Clusters and nodes of the taxonomy", Interval: 300}, true)
	if err != nil {
		return err
	}
	return mdm.Introduce(ctx, q, mdm.Connector{ID: applications, Type: ours, Name: "Applications and their places", Interval: longest}, false)
}

// Node is what CODECO's table 15 says of one. What is not known is left out.
type Node struct {
	Name        string   `json:"node_name"`
	Cluster     string   `json:"cluster"`
	Freshness   string   `json:"freshness,omitempty"`  // age of its newest telemetry, such as 12s
	Compliance  string   `json:"compliance,omitempty"` // High, Medium or Low, by its security score
	Portability string   `json:"portability"`          // percent of the other nodes that can take what it runs: same engine, same architecture, open
	Input       string   `json:"input_data_size"`      // bytes of the data sets that components on it read
	Output      string   `json:"output_data_size"`     // and that they write
	DataSets    []string `json:"data_sets"`            // that are stored on it
}

const selectTable = `with t as (
	select cluster, node, engine, architecture, sca, schedulable is not false as open from topology_nodes
), alike as (select engine, architecture, count(*) filter (where open) as open from t group by engine, architecture),
sizes as (
	select c.target as node, d.type, sum(mdm_number(e.properties -> 'size')) as size
	from mdm_relations c join mdm_relations d on d.source = c.source and d.type in ('READS', 'WRITES')
	join mdm_entities e on e.edf_id = d.target where c.type = 'RUNS_ON' group by c.target, d.type
)
select t.node, t.cluster, coalesce(extract(epoch from date_trunc('second', now() - n.last_seen))::bigint || 's', ''), t.sca,
	case when count(*) over () > 1 then round(100.0 * (alike.open - t.open::int) / (count(*) over () - 1))::text else '0' end,
	coalesce((select size::text from sizes s where s.node = e.edf_id and s.type = 'READS'), '0'),
	coalesce((select size::text from sizes s where s.node = e.edf_id and s.type = 'WRITES'), '0'),
	array(select d.identifier from mdm_relations r join mdm_entities d on d.edf_id = r.source where r.target = e.edf_id and r.type = 'STORED_ON' order by 1)
from t join alike using (engine, architecture) left join nodes n using (cluster, node)
left join mdm_entities e on e.type = 'compute' and e.identifier = t.cluster || '/' || t.node
order by t.cluster, t.node`

// Nodes returns the table, for each node of the taxonomy.
func Nodes(ctx context.Context, q store.Querier) ([]Node, error) {
	return store.Collect(ctx, q, "read nodes", func(row pgx.CollectableRow) (n Node, err error) {
		var sca *float64
		err = row.Scan(&n.Name, &n.Cluster, &n.Freshness, &sca, &n.Portability, &n.Input, &n.Output, &n.DataSets)
		n.Compliance = level(sca)
		return n, err
	}, selectTable)
}
