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

// Handover is a node that another agent serves now. Without it, nobody would carry out or remove what the former agent
// owns there.
type Handover struct {
	Cluster, Node string
	Former, Agent string
	Anew          bool // the whole site was set up anew, not only its agent
}

const (
	// A node seen for the first time has no former agent. An earlier agent may still own jobs there, for instance if
	// the agents changed back and forth before anybody looked.
	selectHandovers = `select cluster, node, served_by, agent, served_in not in ('', cluster_uuid) from nodes
where agent <> '' and (agent, cluster_uuid) <> (served_by, served_in)
union select n.cluster, n.node, j.owner_id, n.agent, false
from nodes n join jobs j on j.cluster = n.cluster and j.cluster <> '' and j.node = n.node and j.owner_id = any(n.formerly)
where n.formerly <> '{}' and n.agent not in ('', j.owner_id)
and (n.agent, n.cluster_uuid) = (n.served_by, n.served_in) order by 1, 2`

	noteServed = `update nodes set served_by = agent, served_in = cluster_uuid
where cluster = $1 and node = $2 and agent = $4 and (served_by = $3 or $3 = any(formerly))`

	// The same order as everywhere, application before job, and no stronger a lock: an agent's report, which holds its
	// job, may add a clean-up to the application meanwhile.
	lockOwners = `select id from applications where id in (
  select application_id from jobs where cluster = $1 and cluster <> '' and node = $2 and owner_id = $3) order by id for no key update`
)

// Handovers returns the nodes whose agent has changed.
func Handovers(ctx context.Context, q store.Querier) ([]Handover, error) {
	return store.Collect(ctx, q, "find nodes with another agent", pgx.RowToStructByPos[Handover], selectHandovers)
}

// Do gives what the former agent owns at the node, clean-ups included, to the present agent. If the site was set up
// anew, what ran there may be gone without anyone reporting it, so it is placed again. Jobs of other owners, such as a
// deployment manager, stay untouched. Doing it again changes nothing.
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
