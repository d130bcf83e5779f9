package match

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/littoral-project/littoral/shared/placement"
	"github.com/littoral-project/littoral/shared/store"
	"github.com/littoral-project/littoral/shared/topology"
)

const countNodes = `select count(*) from topology_nodes`

// pairsTogether bounds components times nodes of a joint problem. Memory and time of a problem grow with it, and a
// function has little of both.
const pairsTogether = 200_000

// PlaceDisplaced places the application first together with all others that wait and that nobody has tried to place yet.
// It does nothing if first is not among these.
func PlaceDisplaced(ctx context.Context, tx *store.Tx, first uuid.UUID, s Settings, because string) error {
	displaced, err := Untried(ctx, tx, first)
	if err != nil {
		return err
	}
	if n := len(displaced); n > 1 {
		because = fmt.Sprintf("%d applications needed places at once", n)
	}
	return PlaceAll(ctx, tx, displaced, s, because)
}

// PlaceAll is Place, without moves, for several applications at once. After a cluster is lost they compete for what is
// left, and a joint problem shares that better than first come, first served. Each application keeps its own weights,
// its own patience with silent nodes and its own orchestrator. Too many applications for one problem are split among
// several.
func PlaceAll(ctx context.Context, tx *store.Tx, ids []uuid.UUID, s Settings, because string) error {
	switch len(ids) {
	case 0:
		return nil
	case 1:
		return Place(ctx, tx, ids[0], s, false, because)
	}
	if err := Lock(ctx, tx); err != nil {
		return err
	}
	st := &storm{settings: s, because: because}
	if err := st.begin(ctx, tx); err != nil {
		return err
	}
	var together []*candidate
	components := 0
	for _, id := range ids {
		c, err := load(ctx, tx, id, nobody)
		if err != nil {
			return err
		}
		switch {
		case c == nil:
			continue
		case st.blind != "":
			if err := waitAll(ctx, tx, c.stored, c.list, st.blind); err != nil {
				return err
			}
			continue
		case c.app.UsageOfOthers():
			// Its own usage counts as free for itself but not for the others, so it cannot be in a joint problem.
			if err := Place(ctx, tx, id, s, false, because); err != nil {
				return err
			}
			continue
		}
		if (components+len(c.list))*st.nodes > pairsTogether {
			if err := st.place(ctx, tx, together); err != nil {
				return err
			}
			together, components = nil, 0
		}
		together, components = append(together, c), components+len(c.list)
	}
	return st.place(ctx, tx, together)
}

// storm is what PlaceAll knows of the infrastructure.
type storm struct {
	settings Settings
	because  string

	nodes int        // how many there are
	inv   *inventory // of all nodes; nil until it is needed
	blind string     // why nobody can decide
}

// begin reads how many nodes there are, and all of them where they are few, or may be too old.
func (st *storm) begin(ctx context.Context, tx *store.Tx) error {
	at, err := topology.SavedAt(ctx, tx)
	if err != nil {
		return err
	}
	if err := tx.QueryRow(ctx, countNodes).Scan(&st.nodes); err != nil {
		return fmt.Errorf("count the nodes: %w", err)
	}
	if st.nodes >= manyNodes && time.Since(at) <= topology.Fresh {
		return nil
	}
	return st.read(ctx, tx)
}

func (st *storm) read(ctx context.Context, tx *store.Tx) (err error) {
	if st.inv != nil {
		return nil
	}
	if st.inv, st.blind, err = freshInventory(ctx, tx, st.settings); st.inv != nil {
		st.nodes = len(st.inv.places)
	}
	return err
}

// place places applications in one problem: of few nodes if these decide, else of all.
func (st *storm) place(ctx context.Context, tx *store.Tx, all []*candidate) error {
	if len(all) == 0 {
		return nil
	}
	if st.inv == nil && !slices.ContainsFunc(all, func(c *candidate) bool { return !c.simple(st.settings) || len(pairs(c.app)) > 0 }) {
		d, err := decideAmongCandidates(ctx, tx, st.settings, true, all...)
		if err != nil {
			return err
		}
		if d != nil {
			return applyTogether(ctx, tx, all, d.inv, d.problem, d.plan, st.because)
		}
	}
	if err := st.read(ctx, tx); err != nil {
		return err
	}
	for _, c := range all {
		if st.blind != "" {
			if err := waitAll(ctx, tx, c.stored, c.list, st.blind); err != nil {
				return err
			}
			continue
		}
		if err := st.inv.readAround(ctx, tx, c.app, c.list); err != nil {
			return err
		}
	}
	if st.blind != "" {
		return nil
	}
	return placeTogether(ctx, tx, all, st.inv, st.because)
}

// placeTogether places applications in one problem. If the engine refuses that, each half becomes a problem of its own.
func placeTogether(ctx context.Context, tx *store.Tx, waiting []*candidate, inv *inventory, because string) error {
	if len(waiting) == 0 {
		return nil
	}
	if err := inv.readReservations(ctx, tx); err != nil { // earlier applications have reserved places meanwhile
		return err
	}
	p := problemOfAll(waiting, inv)
	plan, err := placement.Place(p)
	if err != nil {
		why := refused(err)
		if why == "" {
			return fmt.Errorf("place %d applications: %w", len(waiting), err)
		}
		if len(waiting) == 1 {
			return waitAll(ctx, tx, waiting[0].stored, waiting[0].list, why)
		}
		half := len(waiting) / 2
		if err := placeTogether(ctx, tx, waiting[:half], inv, because); err != nil {
			return err
		}
		return placeTogether(ctx, tx, waiting[half:], inv, because)
	}
	return applyTogether(ctx, tx, waiting, inv, p, plan, because)
}

// applyTogether stores the plan of a joint problem.
func applyTogether(
	ctx context.Context, tx *store.Tx, waiting []*candidate, inv *inventory, p placement.Problem, plan placement.Plan, because string,
) error {
	var list []part
	for _, c := range waiting {
		list = append(list, c.list...)
	}
	ex := explain(list, p, plan, (*part).decided)
	whole := plan
	at := 0 // of the application's first component in the problem
	for _, c := range waiting {
		n := len(c.list)
		own, why := plan, ex
		own.Assignments, why.Components = plan.Assignments[:n], ex.Components[:n]
		for i := range c.list { // in what is kept, each application's components have their own ids
			own.Assignments[i].Component, why.Components[i].Component = c.list[i].id, c.list[i].id
		}
		rerouted := inv.storeWays(tx, c.stored.ID, c.app, &p, &whole, p.Components[at].Group)
		at += n
		if err := c.apply(ctx, tx, inv, own, why, rerouted, because); err != nil {
			return err
		}
		plan.Assignments, ex.Components = plan.Assignments[n:], ex.Components[n:]
	}
	return nil
}

// group is the id of an application in a joint problem.
func (c *candidate) group() string { return c.stored.Name + "-" + c.stored.ID.String() }

// problemOfAll joins the problems of several applications. Each becomes a group, whose id precedes the ids of its
// components.
func problemOfAll(all []*candidate, inv *inventory) placement.Problem {
	placing := map[uuid.UUID]bool{}
	for _, c := range all {
		addPlacing(c.list, placing)
	}
	var parts []part
	for _, c := range all {
		parts = append(parts, c.list...)
	}
	joint := placement.Problem{Nodes: inv.nodes(placing), Network: inv.networkFor(parts)}
	for _, c := range all {
		own, components := demands(c.app, c.list, inv)
		own.ID, own.Name = c.group(), c.stored.Name
		own.StaleAfter = freshness(c.app, c.list, inv.staleAfter)
		joint.Groups = append(joint.Groups, own)
		for _, comp := range components {
			comp.ID, comp.Name, comp.Group = own.ID+"/"+comp.ID, comp.ID, own.ID
			joint.Components = append(joint.Components, comp)
		}
		tie(&joint, c.app, c.list, own.ID+"/")
		inv.keepWays(&joint, c.list, own.ID+"/")
		inv.link(&joint, c.app, c.list, own.ID+"/")
		inv.prefer(&joint, c.app, c.list, own.ID+"/")
	}
	return joint
}
