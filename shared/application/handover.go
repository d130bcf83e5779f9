package application

import (
	"context"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/littoral-project/littoral/shared/job"
	"github.com/littoral-project/littoral/shared/problem"
	"github.com/littoral-project/littoral/shared/store"
)

// Handover is a node that another agent serves now. What the former one owns there nobody would carry out any more, nor
// remove.
type Handover struct {
	Cluster, Node string
	Former, Agent string
	Anew          bool // its site was set up anew; else only its agent was
}

const (
	// A node that is seen for the first time has no former agent. One that served it before may own what it took since, as where
	// the agents changed to and fro before anybody looked.
	selectHandovers = `select cluster, node, served_by, agent, served_in not in ('', cluster_uuid) from nodes
where agent <> '' and (agent, cluster_uuid) <> (served_by, served_in)
union select n.cluster, n.node, j.owner_id, n.agent, false
from nodes n join jobs j on j.cluster = n.cluster and j.node = n.node and j.owner_id = any(n.formerly)
where n.formerly <> '{}' and n.agent not in ('', j.owner_id)
and (n.agent, n.cluster_uuid) = (n.served_by, n.served_in) order by 1, 2`

	noteServed = `update nodes set served_by = agent, served_in = cluster_uuid
where cluster = $1 and node = $2 and agent = $4 and (served_by = $3 or $3 = any(formerly))`

	// In the order of who else locks an application and then its jobs, and no stronger: an agent's report, which holds its job,
	// may give the application a clean-up meanwhile.
	lockOwners = `select id from applications where id in (
  select application_id from jobs where cluster = $1 and node = $2 and owner_id = $3) order by id for no key update`
)

// Handovers returns the nodes that another agent serves than before.
func Handovers(ctx context.Context, q store.Querier) ([]Handover, error) {
	return store.Collect(ctx, q, "find nodes with another agent", pgx.RowToStructByPos[Handover], selectHandovers)
}

// Do makes the agent the owner of what the former one owns at the node, clean-ups included. Where the site was set up anew
// what ran there may not run any more, and nobody would report that: it is placed anew. Only what belongs to the former
// agent is touched, not what a deployment manager owns. It does nothing when it was done already.
func (h Handover) Do(ctx context.Context, tx *store.Tx) error {
	noted, err := tx.Exec(ctx, noteServed, h.Cluster, h.Node, h.Former, h.Agent)
	if err != nil {
		return fmt.Errorf("note the agent of a node: %w", err)
	}
	if noted.RowsAffected() == 0 || h.Former == "" || h.Former == h.Agent {
		return nil
	}
	owners, err := store.Collect(ctx, tx, "find jobs of a former agent", pgx.RowTo[uuid.UUID],
		lockOwners, h.Cluster, h.Node, h.Former)
	if err != nil {
		return err
	}
	if err := job.HandOver(ctx, tx, h.Cluster, h.Node, h.Former, h.Agent); err != nil || !h.Anew {
		return err
	}
	for _, id := range owners {
		if err := h.displace(ctx, tx, id); err != nil {
			return err
		}
	}
	return nil
}

func (h Handover) displace(ctx context.Context, tx *store.Tx, id uuid.UUID) error {
	a, err := Lock(ctx, tx, id)
	if problem.KindOf(err) == problem.NotFound {
		return nil // deleted; its removals were handed over
	}
	if err != nil {
		return err
	}
	var leaving []*job.Job
	for _, j := range a.Jobs {
		if j.Live() && j.Cluster == h.Cluster && j.Node == h.Node && j.OwnerID == h.Agent {
			leaving = append(leaving, j)
		}
	}
	return a.displace(ctx, tx, leaving, func(*job.Job) string { return "its site was set up anew, with agent " + h.Agent })
}
