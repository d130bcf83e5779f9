// Package costs keeps what somebody else than the matchmaker knows of nodes for a component: what a place costs, and how much it is
// recommended. The applications of SWM say so themselves; PDLC says so from its models. The matchmaker reads it at the next placement.
package costs

import (
	"context"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/littoral-project/littoral/shared/store"
)

// Cost is what is known of a node for a component. Costs are better when lower, recommendations when higher; what counts is the
// difference of the two to those of other nodes.
type Cost struct {
	Component      string  `db:"component"      json:"component"`
	Node           string  `db:"node"           json:"node"`
	Source         string  `db:"source"         json:"source"`
	Cost           float64 `db:"cost"           json:"cost"`
	Recommendation float64 `db:"recommendation" json:"recommendation"`
}

const (
	removeOf = `delete from node_costs where application_id = $1 and source = $2`

	insert = `insert into node_costs (application_id, component, node, source, cost, recommendation)
select $1, c, n, $2, x, r from unnest($3::text[], $4::text[], $5::float8[], $6::float8[]) as t(c, n, x, r)
on conflict (application_id, component, node, source) do update set cost = excluded.cost, recommendation = excluded.recommendation, updated_at = now()`

	selectOf = `select component, node, source, cost, recommendation from node_costs where application_id = $1 order by component, node, source`
)

// Replace stores what a source knows for an application in place of what it said before.
func Replace(ctx context.Context, tx *store.Tx, application uuid.UUID, source string, all []Cost) error {
	if _, err := tx.Exec(ctx, removeOf, application, source); err != nil {
		return fmt.Errorf("replace costs: %w", err)
	}
	if len(all) == 0 {
		return nil
	}
	n := len(all)
	components, nodes, cost, recommended := make([]string, n), make([]string, n), make([]float64, n), make([]float64, n)
	for i, c := range all {
		components[i], nodes[i], cost[i], recommended[i] = c.Component, c.Node, c.Cost, c.Recommendation
	}
	if _, err := tx.Exec(ctx, insert, application, source, components, nodes, cost, recommended); err != nil {
		return fmt.Errorf("store costs: %w", err)
	}
	return nil
}

// Of lists what is known for an application.
func Of(ctx context.Context, q store.Querier, application uuid.UUID) ([]Cost, error) {
	return store.Collect(ctx, q, "read costs", pgx.RowToStructByName[Cost], selectOf, application)
}
