package match

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/littoral-project/littoral/shared/application"
	"github.com/littoral-project/littoral/shared/appmodel"
	"github.com/littoral-project/littoral/shared/job"
	"github.com/littoral-project/littoral/shared/placement"
	"github.com/littoral-project/littoral/shared/problem"
	"github.com/littoral-project/littoral/shared/store"
)

// Lock makes other decisions wait for the end of this transaction. Move needs it, before any application is locked,
// since placements take the two locks in that order.
func Lock(ctx context.Context, tx *store.Tx) error { return tx.Lock(ctx, store.LockPlacement) }

// Move takes jobs of the application (as application.Lock returned it) to other nodes, because a policy is violated
// where they are; the other components keep their places. A job that fits nowhere else stays where it is, degraded,
// with the reason, and is tried again when there is room (RetryMisplaced). The same holds for all jobs while the topology is
// missing or too old. It returns how many have left. The error is Conflict for an application that is not meant to run.
//
// Unlike a drained or lost node, one that violates a policy is better than none. So a place is found first, and a job
// without one stays.
func Move(
	ctx context.Context, tx *store.Tx, a *application.Application, jobs []*job.Job, reason string, s Settings,
) (left int, err error) {
	if a.Desired != application.Running {
		return 0, problem.New(problem.Conflict, "application %s is not meant to run", a.ID)
	}
	return moveAll(ctx, tx, a, jobs, reason, false, s)
}

func moveAll(
	ctx context.Context, tx *store.Tx, a *application.Application, jobs []*job.Job, reason string, again bool, s Settings,
) (left int, err error) {
	app, err := a.Parsed()
	if err != nil {
		return 0, err
	}
	m := move{tx: tx, app: a, descriptor: app, reason: reason, again: again, list: parts(app, a.Jobs, nobody)}
	for i := range m.list {
		p := &m.list[i]
		if p.job != nil && p.job.Placed() && slices.Contains(jobs, p.job) {
			p.fixed = false
			if !p.job.IsMisplaced(job.Violating) { // otherwise this place is excluded already
				p.excluded = append(p.excluded, *p.current)
			}
			m.leaving = append(m.leaving, i)
		}
	}
	if len(m.leaving) == 0 {
		return 0, nil // all of them wait for a place already, or are being removed
	}
	inv, blind, err := freshInventory(ctx, tx, s)
	if err != nil {
		return 0, err
	}
	if blind != "" {
		m.blind = blind
		return m.apply(ctx, nil, nil)
	}
	if err := inv.readAround(ctx, tx, m.descriptor, m.list); err != nil {
		return 0, err
	}
	p, plan, err := m.solve(inv)
	if err != nil {
		if m.blind = refused(err); m.blind != "" {
			return m.apply(ctx, nil, nil)
		}
		return 0, fmt.Errorf("place %s: %w", a.Name, err)
	}
	explanation := explain(m.list, p, plan, (*part).decided)
	m.inv = inv
	m.rerouted = inv.storeWays(tx, a.ID, m.descriptor, &p, &plan, "")
	return m.apply(ctx, &plan, &explanation)
}

// solve looks for places where no policy was violated lately. A job without one may also return to where it came from,
// since what was wrong there may be over; the brakes of policies keep that from flapping.
func (m *move) solve(inv *inventory) (p placement.Problem, plan placement.Plan, err error) {
	list := slices.Clone(m.list)
	for _, i := range m.leaving {
		list[i].excluded = slices.Concat(list[i].excluded, list[i].avoided)
	}
	p = problemOf(m.descriptor, list, inv)
	if plan, err = placement.Place(p); err != nil {
		return p, plan, err
	}
	again := false
	for _, i := range m.leaving {
		if !plan.Assignments[i].Placed && len(list[i].avoided) > 0 {
			list[i].excluded, again = m.list[i].excluded, true
		}
	}
	if again {
		p = problemOf(m.descriptor, list, inv)
		plan, err = placement.Place(p)
	}
	return p, plan, err
}

// move is a call of Move or RetryMisplaced in progress.
type move struct {
	tx         *store.Tx
	app        *application.Application
	descriptor *appmodel.Application
	reason     string
	again      bool       // a retry: the reason why jobs should leave was recorded before
	inv        *inventory // nil when blind
	blind      string     // why there can be no plan, for instance without a topology; empty when there is one
	list       []part
	leaving    []int    // of list
	rerouted   []string // channels of storeWays
}

// apply moves the jobs that have a place and returns how many; plan is nil when blind.
func (m *move) apply(
	ctx context.Context, plan *placement.Plan, ex *placement.Explanation,
) (left int, err error) {
	var moved, stuck, reasons []string
	for _, i := range m.leaving {
		p := m.list[i]
		if plan != nil && plan.Assignments[i].Placed {
			to, err := m.leave(ctx, p, plan.Assignments[i], &ex.Components[i])
			if err != nil {
				return 0, err
			}
			moved = append(moved, p.id+" on "+to.String())
			continue
		}
		if m.again {
			continue
		}
		why := m.blind
		if ex != nil {
			why = ex.Components[i].Summary
		}
		why = fmt.Sprintf("%s stays on %s, though %s: %s", p.id, p.job.Target, m.reason, why)
		news, err := p.job.MarkMisplaced(ctx, m.tx, job.Violating, why)
		if err != nil {
			return 0, err
		}
		if news {
			stuck, reasons = append(stuck, p.id), append(reasons, why)
		}
	}
	if news := append(slices.Clip(moved), m.rerouted...); len(news) > 0 {
		about := m.list
		if len(moved)+len(stuck) == 0 {
			about = nil
		}
		decision, err := decide(m.reason, *plan, *ex, about)
		if err != nil {
			return 0, err
		}
		if err := m.app.Placed(ctx, m.tx, strings.Join(news, ", "), decision); err != nil {
			return 0, err
		}
	}
	if len(stuck) > 0 {
		var decision json.RawMessage
		if plan != nil && len(moved)+len(m.rerouted) == 0 { // otherwise it is stored with those that moved
			if decision, err = decide(m.reason, *plan, *ex, m.list); err != nil {
				return 0, err
			}
		}
		if err := m.app.Unplaced(ctx, m.tx, strings.Join(reasons, "; "), stuck, decision); err != nil {
			return 0, err
		}
	}
	return len(moved), nil
}

// leave takes one job from its place to the next.
func (m *move) leave(
	ctx context.Context, p part, as placement.Assignment, ex *placement.ComponentExplanation,
) (job.Target, error) {
	to := job.Target(as.Target)
	message := fmt.Sprintf("%s left %s: %s", p.job.Component, p.job.Target, m.reason)
	if err := p.job.Displace(ctx, m.tx, message, true); err != nil {
		return to, err
	}
	return to, p.placeAt(ctx, m.tx, m.descriptor, m.inv, as.Target, why(ex, as))
}
