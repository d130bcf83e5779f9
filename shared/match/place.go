package match

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/littoral-project/littoral/shared/application"
	"github.com/littoral-project/littoral/shared/appmodel"
	"github.com/littoral-project/littoral/shared/job"
	"github.com/littoral-project/littoral/shared/placement"
	"github.com/littoral-project/littoral/shared/problem"
	"github.com/littoral-project/littoral/shared/store"
)

// selectUntried finds applications with a job that was submitted or displaced and has not been tried since. The application
// given comes first.
const selectUntried = `select j.application_id from jobs j join applications a on a.id = j.application_id
where j.state = 'Created' and j.type = 'CreateDeployment' and j.cluster = '' and j.cleans is null
and not j.tried
and a.desired = 'running' and a.deleted_at is null
group by j.application_id order by j.application_id <> $1, j.application_id limit $2`

// MostTogether bounds how many applications share one problem, and so one transaction.
const MostTogether = 200

// Untried returns at most MostTogether applications whose components nobody has tried to place yet, beginning with the
// one given; none if that is not among them.
func Untried(ctx context.Context, q store.Querier, first uuid.UUID) ([]uuid.UUID, error) {
	found, err := store.Collect(ctx, q, "find what was displaced", pgx.RowTo[uuid.UUID], selectUntried, first, MostTogether)
	if err != nil || len(found) == 0 || found[0] != first {
		return nil, err
	}
	return found, nil
}

// Place decides where the unplaced components of the application run, reserves those places and hands the jobs over, in
// this transaction. Components that have a place keep it; with mayMove one that no longer fits its place moves. What
// fits nowhere keeps waiting, with the reason. An application that is gone or not meant to run is left alone. because
// says in half a sentence what caused the placement; it is stored with the decision.
//
// With mayMove all updates of the application up to now are then handled. They are not if the state of some running
// component is unknown: application.UpdatePending will find the application again, until the state is known or the node
// counts as lost and the component gets another place.
func Place(ctx context.Context, tx *store.Tx, id uuid.UUID, s Settings, mayMove bool, because string) error {
	if !mayMove {
		_, err := place(ctx, tx, id, s, nobody, because)
		return err
	}
	blind, err := place(ctx, tx, id, s, anybody, because)
	if err == nil && !blind {
		application.MarkHandled(tx, id)
	}
	return err
}

// PlaceUpdate is Place after an update, whose components may move.
func PlaceUpdate(ctx context.Context, tx *store.Tx, id uuid.UUID, s Settings) error {
	return Place(ctx, tx, id, s, true, "it was updated")
}

// Replan places anew an application that runs, since something around it has changed, and returns whether it could be judged. What
// may stay stays.
func Replan(ctx context.Context, tx *store.Tx, id uuid.UUID, s Settings, because string) (judged bool, err error) {
	blind, err := place(ctx, tx, id, s, anybody, because)
	return !blind, err
}

// place is Place with a function that says which jobs may move. blind says that nothing was decided for some of them,
// since the infrastructure or their node is unknown for now, or the problem is too large.
func place(
	ctx context.Context, tx *store.Tx, id uuid.UUID, s Settings, mayMove func(*job.Job) bool, because string,
) (blind bool, err error) {
	if err := Lock(ctx, tx); err != nil {
		return false, err
	}
	c, err := load(ctx, tx, id, mayMove)
	if err != nil || c == nil {
		return false, err
	}
	if done, err := c.placeAmongCandidates(ctx, tx, s, because); done || err != nil {
		return false, err
	}
	inv, why, err := freshInventory(ctx, tx, s)
	if err != nil {
		return false, err
	}
	if why != "" {
		return true, waitAll(ctx, tx, c.stored, c.list, why)
	}
	if err := inv.readAround(ctx, tx, c.app, c.list); err != nil {
		return false, err
	}
	var p placement.Problem
	var plan placement.Plan
	if c.list, p, plan, err = solve(c.app, c.list, inv); err == nil {
		err = explainAlone(c.app, c.list, inv)
	}
	if err != nil {
		if why := refused(err); why != "" {
			return true, waitAll(ctx, tx, c.stored, c.list, why)
		}
		return false, fmt.Errorf("place %s: %w", c.stored.Name, err)
	}
	blind = slices.ContainsFunc(c.list, func(p part) bool { return p.quiet })
	rerouted := inv.storeWays(tx, c.stored.ID, c.app, &p, &plan, "")
	return blind, c.apply(ctx, tx, inv, plan, explain(c.list, p, plan, (*part).decided), rerouted, because)
}

// candidate is an application with something to place.
type candidate struct {
	stored *application.Application
	app    *appmodel.Application
	list   []part
}

// load locks the application; nil when there is nothing to do.
func load(ctx context.Context, tx *store.Tx, id uuid.UUID, mayMove func(*job.Job) bool) (*candidate, error) {
	a, err := application.Lock(ctx, tx, id)
	if problem.KindOf(err) == problem.NotFound {
		return nil, nil
	}
	if err != nil || a.Desired != application.Running {
		return nil, err
	}
	app, err := a.Parsed()
	if err != nil {
		return nil, err
	}
	list := parts(app, a.Jobs, mayMove)
	if !slices.ContainsFunc(list, func(p part) bool { return p.job != nil && !p.fixed }) {
		return nil, nil
	}
	return &candidate{a, app, list}, nil
}

// refused says why the engine does not accept a problem, mostly for its size; empty for any other error. The components
// then wait: returning an error would also keep all others that are looked at with them from getting a place.
func refused(err error) string {
	var e *problem.Error
	if !errors.As(err, &e) || e.Kind != problem.Invalid {
		return ""
	}
	if len(e.Fields) == 0 {
		return e.Detail
	}
	return e.Detail + ": " + e.Fields[0].String()
}

func waitAll(ctx context.Context, tx *store.Tx, a *application.Application, list []part, reason string) error {
	var waiting []string
	for _, p := range list {
		if p.job == nil || p.job.Placed() {
			continue
		}
		news, err := p.job.Wait(ctx, tx, reason)
		if err != nil {
			return err
		}
		if news {
			waiting = append(waiting, p.id)
		}
	}
	if len(waiting) == 0 {
		return nil
	}
	return a.Unplaced(ctx, tx, reason, waiting, nil)
}

// apply stores the plan: a place for each job without one, a move for one that had to leave, a reason for one that
// fits nowhere. rerouted are the channels of storeWays.
func (c *candidate) apply(
	ctx context.Context, tx *store.Tx, inv *inventory, plan placement.Plan, ex placement.Explanation, rerouted []string, because string,
) error {
	var placed, waiting, reasons []string
	for i, p := range c.list {
		if p.job == nil || p.fixed && p.alone == nil {
			continue
		}
		as := plan.Assignments[i]
		switch {
		case p.misfit:
			news, err := p.misfitted(ctx, tx)
			if err != nil {
				return err
			}
			if news {
				waiting, reasons = append(waiting, p.id), append(reasons, p.id+": "+p.alone.Summary)
			}
			continue
		case !as.Placed:
			news, err := p.job.Wait(ctx, tx, ex.Components[i].Summary)
			if err != nil {
				return err
			}
			if news {
				waiting, reasons = append(waiting, p.id), append(reasons, ex.Components[i].Summary)
			}
			continue
		case p.job.Placed() && !as.Moved:
			if err := p.job.ReleaseMisplaced(ctx, tx, job.TooLarge, "it fits "+p.job.Target.String()+" again"); err != nil {
				return err
			}
			continue
		case p.job.Placed():
			if err := p.job.Displace(ctx, tx, "its place does not fit it any more: "+as.Reason, false); err != nil {
				return err
			}
		}
		if err := p.placeAt(ctx, tx, c.app, inv, as.Target, why(&ex.Components[i], as)); err != nil {
			return err
		}
		placed = append(placed, p.id+" on "+p.job.Target.String())
	}
	about := c.list
	switch {
	case len(placed)+len(waiting)+len(rerouted) == 0:
		return nil
	case len(placed)+len(waiting) == 0:
		about = nil // no component has another place, or a reason to have none
	}
	decision, err := decide(because, plan, ex, about)
	if err != nil {
		return err
	}
	if placed = append(placed, rerouted...); len(placed) > 0 {
		if err := c.stored.Placed(ctx, tx, strings.Join(placed, ", "), decision); err != nil {
			return err
		}
		decision = nil // it is kept once
	}
	if len(waiting) > 0 {
		return c.stored.Unplaced(ctx, tx, strings.Join(slices.Compact(reasons), "; "), waiting, decision)
	}
	return nil
}

// misfitted records that neither the part's own place fits nor any other. For a job that has to leave its place that is
// recorded already.
func (p *part) misfitted(ctx context.Context, tx *store.Tx) (news bool, err error) {
	if p.job.IsMisplaced(job.Violating) {
		return false, nil
	}
	return p.job.MarkMisplaced(ctx, tx, job.TooLarge, p.alone.Summary)
}

// decide returns what is stored of a plan for the parts that it decided on, none of them without a list.
func decide(because string, plan placement.Plan, ex placement.Explanation, list []part) (json.RawMessage, error) {
	d := placement.Decide(because, plan, ex, func(i int) bool {
		return list != nil && (list[i].decided() || list[i].misfit)
	})
	data, err := json.Marshal(d)
	if err != nil {
		return nil, fmt.Errorf("encode decision: %w", err)
	}
	return data, nil
}
