package match

import (
	"context"
	"slices"

	"github.com/google/uuid"

	"github.com/littoral-project/littoral/shared/cordon"
	"github.com/littoral-project/littoral/shared/job"
	"github.com/littoral-project/littoral/shared/placement"
	"github.com/littoral-project/littoral/shared/store"
)

// closed reports whether an operator has closed the node.
func (inv *inventory) closed(cluster, node string) bool {
	return slices.ContainsFunc(inv.cordons, func(c cordon.Cordon) bool { return c.Cluster == cluster && c.Node == node })
}

// letStay lets the parts that are on a closed node remain there, unless it is drained, and keeps all others away.
func (inv *inventory) letStay(problem *placement.Problem, list []part) {
	for _, c := range inv.cordons {
		here := func(p part) bool {
			return !p.fixed && p.current != nil && p.current.Cluster == c.Cluster && p.current.Node == c.Node
		}
		if c.Drain || !slices.ContainsFunc(list, here) {
			continue
		}
		for i, at := range inv.places { // in the order of the problem's nodes
			if at.Cluster == c.Cluster && at.Node == c.Node {
				problem.Nodes[i].Unschedulable = !at.At.CanSchedule()
			}
		}
		for i := range list {
			if x := &problem.Components[i]; !list[i].fixed && !here(list[i]) {
				x.Excluded = append(slices.Clip(x.Excluded), placement.Target{Cluster: c.Cluster, Node: c.Node})
			}
		}
	}
}

// Evacuate moves the components of the application that are on a drained node to other places, as an update would that
// their places no longer fit. What fits nowhere else stays, degraded, with the reason, and is tried again when there is
// room.
func Evacuate(ctx context.Context, tx *store.Tx, id uuid.UUID, s Settings) error {
	if err := Lock(ctx, tx); err != nil {
		return err
	}
	cordons, err := cordon.All(ctx, tx)
	if err != nil {
		return err
	}
	_, err = place(ctx, tx, id, s, func(j *job.Job) bool {
		return slices.ContainsFunc(cordons, func(c cordon.Cordon) bool {
			return c.Drain && c.Cluster == j.Target.Cluster && c.Node == j.Target.Node
		})
	}, "its node is drained")
	return err
}
