package connect

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/littoral-project/littoral/shared/mdm"
	"github.com/littoral-project/littoral/shared/store"
)

// What the connector of a cluster of Kubernetes publishes. A node of it is an entity beside that of the taxonomy, which has
// publishers of its own.
const (
	KubeNode = "node"
	Pod      = "pod"
	Service  = "service"
	Claim    = "persistentvolumeclaim"
	Is       = "IS"      // node to compute
	Mounts   = "MOUNTS"  // pod to persistentvolumeclaim
	Selects  = "SELECTS" // service to pod; pods also run on nodes, and are part of components

)

// Object is one of a cluster of Kubernetes.
type Object struct {
	Type, Namespace, Name string
	Attributes            map[string]any
	Labels                map[string]string // of a pod that services may select
	Selector              map[string]string // of a service
	To                    []End
}

// End is where a relation leads to.
type End struct {
	Relation string
	Entity   uuid.UUID
}

// ObjectID is the id of one; what belongs to the cluster has no namespace.
func ObjectID(kind, cluster, namespace, name string) uuid.UUID {
	return mdm.EntityID(kind, identifierOf(cluster, namespace, name))
}

func identifierOf(cluster, namespace, name string) string {
	if namespace != "" {
		name = namespace + "/" + name
	}
	return cluster + "/" + name
}

// Kubernetes is the connector of a cluster, by the name that the taxonomy has for it.
type Kubernetes struct{ Cluster string }

func (k Kubernetes) connector() mdm.Connector {
	return mdm.Connector{
		ID: mdm.EntityID("connector", "littoral/kubernetes/"+k.Cluster), Type: ours, Name: "Objects of the cluster " + k.Cluster, Interval: 300,
	}
}

// Looked tells the registry that the connector has looked at all there is, or why it could not.
func (k Kubernetes) Looked(ctx context.Context, q store.Querier, why error) error {
	if err := mdm.Introduce(ctx, q, k.connector(), why == nil); err != nil || why == nil {
		return err
	}
	return mdm.Hindered(ctx, q, k.connector(), why)
}

// Gone is an object that is no more.
type Gone struct {
	ID   uuid.UUID
	Type string
}

// Published are the objects of a type that the graph has of the cluster, but for those that are there.
func (k Kubernetes) Published(ctx context.Context, q store.Querier, kind string, there []uuid.UUID) ([]Gone, error) {
	return store.Collect(ctx, q, "read what was published", pgx.RowToStructByPos[Gone], selectOthers, k.connector().ID, []string{kind}, there)
}

const (
	// What was seen at a later version of the cluster holds for as long as somebody may be about to say what was before. A cluster that
	// was set up again counts from the beginning.
	upsertVersions = `insert into mdm_versions as v (edf_id, version) select id, $2 from unnest($1::uuid[]) as g (id) order by id
on conflict (edf_id) do update set version = excluded.version, at = excluded.at where v.version <= excluded.version or v.at < now() - $3::interval
returning edf_id`

	forgetVersions = `delete from mdm_versions where at < now() - $1::interval`

	selectRelations = `select type, source, target from mdm_relations
where connector = $2 and (source = any($1) or target = any($1) and type = 'SELECTS')`

	selectServicesOf = `select 'SELECTS', s.edf_id, g.id from unnest($2::uuid[], $3::text[], $4::jsonb[]) as g (id, namespace, labels)
join mdm_entities s on s.type = 'service' and s.connector = $1 and s.properties -> 'namespace' = to_jsonb(g.namespace)
	and g.labels @> (s.properties -> 'selector')`

	selectPodsOf = `select 'SELECTS', g.id, p.edf_id from unnest($2::uuid[], $3::text[], $4::jsonb[]) as g (id, namespace, selector)
join mdm_entities p on p.type = 'pod' and p.connector = $1 and p.properties -> 'namespace' = to_jsonb(g.namespace)
	and p.properties -> 'labels' @> g.selector and not p.properties -> 'phase' <@ '["Succeeded", "Failed"]'`
)

// underWay is how long it may take from a look at the cluster until what was seen is published: longer than any call of a function.
const underWay = 10 * time.Minute

// Publish publishes what was seen at a version of the cluster: objects of one type, and those that were not there any more.
// What somebody else has seen at a later version stays.
func (k Kubernetes) Publish(ctx context.Context, db *store.DB, version int64, there []Object, gone []Gone) error {
	if len(there) == 0 && len(gone) == 0 {
		return nil
	}
	return db.Tx(ctx, func(ctx context.Context, tx *store.Tx) error { return k.publish(ctx, tx, version, there, gone) })
}

func (k Kubernetes) publish(ctx context.Context, tx *store.Tx, version int64, there []Object, gone []Gone) error {
	if err := tx.Lock(ctx, store.LockMetadata); err != nil {
		return err
	}
	var ids []uuid.UUID
	for _, o := range there {
		ids = append(ids, ObjectID(o.Type, k.Cluster, o.Namespace, o.Name))
	}
	for _, g := range gone {
		ids = append(ids, g.ID)
	}
	counts, err := store.Collect(ctx, tx, "store versions", pgx.RowTo[uuid.UUID], upsertVersions, ids, version, underWay)
	if err != nil {
		return err
	}
	tx.Append(forgetVersions, 6*underWay)
	newest := make(map[uuid.UUID]bool, len(counts))
	for _, id := range counts {
		newest[id] = true
	}
	b := batch{source: mdm.Source{Connector: k.connector().ID, Type: ours, At: time.Now()}}
	wanted, err := k.say(ctx, tx, &b, there, newest)
	if err != nil {
		return err
	}
	former, err := store.Collect(ctx, tx, "read former relations", pgx.RowToStructByPos[relation], selectRelations, counts, b.source.Connector)
	if err != nil {
		return err
	}
	for _, r := range former {
		if !wanted[r] {
			b.add(b.source.Unrelated(r.Type, r.From, r.To))
		}
	}
	for _, g := range gone {
		if newest[g.ID] {
			b.gone(g.Type, g.ID)
		}
	}
	return b.publish(ctx, tx)
}

// relation is one by its type and ends.
type relation struct {
	Type     string
	From, To uuid.UUID
}

// say adds the objects that count, and returns their relations.
func (k Kubernetes) say(ctx context.Context, tx *store.Tx, b *batch, there []Object, newest map[uuid.UUID]bool) (map[relation]bool, error) {
	wanted := map[relation]bool{}
	var pods, services chosen
	for _, o := range there {
		id := ObjectID(o.Type, k.Cluster, o.Namespace, o.Name)
		if !newest[id] {
			continue
		}
		attributes := maps.Clone(o.Attributes)
		attributes["name"], attributes["cluster"] = o.Name, k.Cluster
		if o.Namespace != "" {
			attributes["namespace"] = o.Namespace
		}
		b.entity(o.Type, identifierOf(k.Cluster, o.Namespace, o.Name), attributes)
		for _, end := range o.To {
			wanted[relation{end.Relation, id, end.Entity}] = true
		}
		var err error
		switch {
		case o.Type == Pod && len(o.Labels) > 0:
			err = pods.add(id, o.Namespace, o.Labels)
		case o.Type == Service && len(o.Selector) > 0:
			err = services.add(id, o.Namespace, o.Selector)
		}
		if err != nil {
			return nil, err
		}
	}
	for query, some := range map[string]chosen{selectServicesOf: pods, selectPodsOf: services} {
		if len(some.ids) == 0 {
			continue
		}
		found, err := store.Collect(ctx, tx, "read what services select", pgx.RowToStructByPos[relation], query,
			b.source.Connector, some.ids, some.namespaces, some.labels)
		if err != nil {
			return nil, err
		}
		for _, r := range found {
			wanted[r] = true
		}
	}
	for r := range wanted {
		b.relation(r.Type, r.From, r.To)
	}
	return wanted, nil
}

// chosen are pods with their labels, or services with what they select, as columns.
type chosen struct {
	ids                []uuid.UUID
	namespaces, labels []string
}

func (c *chosen) add(id uuid.UUID, namespace string, labels map[string]string) error {
	text, err := json.Marshal(labels)
	if err != nil {
		return fmt.Errorf("encode labels: %w", err)
	}
	c.ids, c.namespaces, c.labels = append(c.ids, id), append(c.namespaces, namespace), append(c.labels, string(text))
	return nil
}
