// Package cordon keeps the nodes that an operator has closed: they take nothing new, and what runs on one that is drained
// has to leave.
package cordon

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/littoral-project/littoral/shared/events"
	"github.com/littoral-project/littoral/shared/problem"
	"github.com/littoral-project/littoral/shared/store"
)

// Cordon is a node that takes nothing new.
type Cordon struct {
	Cluster  string     `json:"cluster"            db:"cluster"`
	Node     string     `json:"node"               db:"node"`
	Drain    bool       `json:"drain"              db:"drain"`    // what runs there has to leave, once it has another place
	Deadline *time.Time `json:"deadline,omitempty" db:"deadline"` // from then on it leaves even without one
	Since    time.Time  `json:"since"              db:"since"`
	Author   string     `json:"author"             db:"author"`
}

const (
	columns    = `cluster, node, drain, deadline, since, author`
	selectAll  = `select ` + columns + ` from cordons order by cluster, node`
	selectNode = `select exists (select from nodes where cluster = $1 and node = $2)`
	upsert     = `insert into cordons (cluster, node, drain, deadline, author) values ($1, $2, $3, $4, $5)
on conflict (cluster, node) do update set drain = excluded.drain, deadline = excluded.deadline, author = excluded.author,
  since = case when cordons.drain = excluded.drain then cordons.since else now() end
returning ` + columns
	remove = `delete from cordons where cluster = $1 and node = $2`

	// There are few cordons, and an index on the places of jobs.
	selectHeld = `select c.cluster, c.node, j.application_id as id, a.name, j.component, j.replica
from cordons c join jobs j on j.cluster = c.cluster and j.node = c.node join applications a on a.id = j.application_id
where j.cleans is null and j.type <> 'DeleteDeployment' and a.desired = 'running' and a.deleted_at is null
order by c.cluster, c.node, a.name, j.component, j.replica`
	selectApplications = `select distinct j.application_id from cordons c join jobs j on j.cluster = c.cluster and j.node = c.node
join applications a on a.id = j.application_id
where c.drain and j.cleans is null and j.type <> 'DeleteDeployment' and j.misplaced = '{}' and a.desired = 'running'
and a.deleted_at is null order by 1`
)

// All lists the nodes that are closed, by name.
func All(ctx context.Context, q store.Querier) ([]Cordon, error) {
	return store.Collect(ctx, q, "read cordons", pgx.RowToStructByName[Cordon], selectAll)
}

// Set closes a node. No placement in progress misses it: the placement lock is taken. The error is NotFound for a node
// that telemetry never showed.
func Set(ctx context.Context, tx *store.Tx, c Cordon) (*Cordon, error) {
	if err := tx.Lock(ctx, store.LockPlacement); err != nil {
		return nil, err
	}
	if err := known(ctx, tx, c.Cluster, c.Node); err != nil {
		return nil, err
	}
	set, err := store.One(ctx, tx, "store cordon", pgx.RowToAddrOfStructByName[Cordon], upsert,
		c.Cluster, c.Node, c.Drain, c.Deadline, c.Author)
	if err != nil || !c.Drain {
		return set, err
	}
	return set, tx.Emit(ctx, events.NodeDrained, c.Cluster+"/"+c.Node, events.Node{Cluster: c.Cluster, Node: c.Node})
}

// Lift opens a node again; it says whether it was closed. The error is NotFound for a node that telemetry never showed.
func Lift(ctx context.Context, tx *store.Tx, cluster, node string) (was bool, err error) {
	if err := tx.Lock(ctx, store.LockPlacement); err != nil {
		return false, err
	}
	if err := known(ctx, tx, cluster, node); err != nil {
		return false, err
	}
	tag, err := tx.Exec(ctx, remove, cluster, node)
	if err != nil {
		return false, fmt.Errorf("remove cordon: %w", err)
	}
	return tag.RowsAffected() > 0, nil
}

func known(ctx context.Context, q store.Querier, cluster, node string) error {
	var is bool
	if err := q.QueryRow(ctx, selectNode, cluster, node).Scan(&is); err != nil {
		return fmt.Errorf("look for the node: %w", err)
	}
	if !is {
		return problem.New(problem.NotFound, "there is no node %s/%s", cluster, node)
	}
	return nil
}

// Component is what still runs on a closed node.
type Component struct {
	Application uuid.UUID `json:"application"`
	Name        string    `json:"name"` // of the application
	Component   string    `json:"component"`
	Replica     int       `json:"replica"`
}

// Closed is a cordon with what runs there.
type Closed struct {
	Cordon
	Components []Component `json:"components"`
}

// Progress lists the nodes that are closed with what still runs there.
func Progress(ctx context.Context, q store.Querier) ([]Closed, error) {
	cordons, err := All(ctx, q)
	if err != nil {
		return nil, err
	}
	list := make([]Closed, len(cordons))
	for i, c := range cordons {
		list[i] = Closed{c, []Component{}}
	}
	rows, err := q.Query(ctx, selectHeld)
	if err != nil {
		return nil, fmt.Errorf("read what runs on closed nodes: %w", err)
	}
	var cluster, node string
	var held Component
	_, err = pgx.ForEachRow(rows, []any{&cluster, &node, &held.Application, &held.Name, &held.Component, &held.Replica}, func() error {
		i := slices.IndexFunc(list, func(c Closed) bool { return c.Cluster == cluster && c.Node == node })
		if i >= 0 {
			list[i].Components = append(list[i].Components, held)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read what runs on closed nodes: %w", err)
	}
	return list, nil
}

// Applications returns those that run on a node that is drained and that nobody has tried to move yet.
func Applications(ctx context.Context, q store.Querier) ([]uuid.UUID, error) {
	return store.Collect(ctx, q, "find what is to leave", pgx.RowTo[uuid.UUID], selectApplications)
}

// Remind announces a drained node again from which something has yet to leave, since something may have come there after
// it was announced, such as what was being moved.
func Remind(ctx context.Context, tx *store.Tx) error {
	const first = `select c.cluster, c.node from cordons c join jobs j on j.cluster = c.cluster and j.node = c.node
join applications a on a.id = j.application_id where c.drain and j.cleans is null and j.type <> 'DeleteDeployment'
and j.misplaced = '{}' and a.desired = 'running' and a.deleted_at is null limit 1`
	var n events.Node
	err := tx.QueryRow(ctx, first).Scan(&n.Cluster, &n.Node)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return nil
	case err != nil:
		return fmt.Errorf("find what is to leave: %w", err)
	}
	return tx.Emit(ctx, events.NodeDrained, n.Cluster+"/"+n.Node, n)
}
