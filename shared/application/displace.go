package application

import (
	"context"
	"fmt"
	"strings"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/littoral-project/littoral/shared/events"
	"github.com/littoral-project/littoral/shared/history/recorded"
	"github.com/littoral-project/littoral/shared/job"
	"github.com/littoral-project/littoral/shared/problem"
	"github.com/littoral-project/littoral/shared/store"
)

// silence is for how long node n was not heard of while others were. It is counted up to when any node was last heard
// of (at most up to the latest topology), and from when telemetry last had no nodes at all. So no node is lost while
// telemetry as a whole is away or empty, or has just come back with some nodes ahead of others.
const silence = `(least((select at from topology), (select max(last_seen) from nodes))
- greatest(n.last_seen, (select silent_until from topology)))`

// selectLost finds the applications with a component on a node that was drained, or was silent for longer than the
// component's lost_after.
const selectLost = `select distinct j.application_id from jobs j join nodes n on n.cluster = j.cluster and n.node = j.node
join applications a on a.id = j.application_id
where j.cleans is null and j.type <> 'DeleteDeployment' and a.desired = 'running' and a.deleted_at is null
and (not n.schedulable or ` + silence + ` > j.lost_after or ` + overdue + `) order by 1`

// overdue is for a node that an operator drains, when the time for that is over: what is left there leaves without another
// place.
const overdue = `exists (select from cordons c where c.cluster = n.cluster and c.node = n.node and c.deadline <= now())`

const selectLostOf = `select j.id, n.schedulable, ` + overdue + `, extract(epoch from ` + silence + `)::bigint
from jobs j join nodes n on n.cluster = j.cluster and n.node = j.node
where j.application_id = $1 and j.cleans is null and j.type <> 'DeleteDeployment'
and (not n.schedulable or ` + silence + ` > j.lost_after or ` + overdue + `) order by j.id`

// Lost returns the applications with a component that has to leave its node.
func Lost(ctx context.Context, q store.Querier) ([]uuid.UUID, error) {
	return store.Collect(ctx, q, "find lost components", pgx.RowTo[uuid.UUID], selectLost)
}

const selectOnLostNode = `select exists (select from jobs j join nodes n on n.cluster = j.cluster and n.node = j.node
where j.id = $1 and ` + silence + ` > j.lost_after)`

// OnLostNode reports whether the node of a job, or of a clean-up, was silent for longer than its lost_after.
func OnLostNode(ctx context.Context, q store.Querier, id uuid.UUID) (bool, error) {
	return store.One(ctx, q, "look whether the node of a job is lost", pgx.RowTo[bool], selectOnLostNode, id)
}

// DisplaceLost takes the application's components off nodes that are drained or lost and asks for new places; the
// others stay. It does nothing if the node has come back meanwhile.
func DisplaceLost(ctx context.Context, tx *store.Tx, id uuid.UUID) error {
	a, err := Lock(ctx, tx, id)
	if problem.KindOf(err) == problem.NotFound {
		return nil
	}
	if err != nil {
		return err
	}
	if a.Desired != Running {
		return nil
	}
	type lost struct {
		Job         uuid.UUID
		Schedulable bool
		Overdue     bool
		Silent      int64 // seconds
	}
	found, err := store.Collect(ctx, tx, "find lost components", pgx.RowToStructByPos[lost], selectLostOf, id)
	if err != nil {
		return err
	}
	reasons := map[uuid.UUID]string{}
	for _, l := range found {
		reasons[l.Job] = fmt.Sprintf("the node has been silent for %d s", l.Silent)
		switch {
		case !l.Schedulable:
			reasons[l.Job] = "the node was drained"
		case l.Overdue:
			reasons[l.Job] = "the node is drained, and the time for that is over"
		}
	}
	var leaving []*job.Job
	for _, j := range a.Jobs {
		if _, ok := reasons[j.ID]; ok {
			leaving = append(leaving, j)
		}
	}
	return a.displace(ctx, tx, leaving, func(j *job.Job) string { return reasons[j.ID] })
}

// DisplaceFor takes the application's components off their nodes that reason gives a reason for, and asks for new places. It
// does nothing for an application that is gone or not meant to run.
func DisplaceFor(ctx context.Context, tx *store.Tx, id uuid.UUID, reason func(*job.Job) string) error {
	a, err := Lock(ctx, tx, id)
	if problem.KindOf(err) == problem.NotFound {
		return nil
	}
	if err != nil || a.Desired != Running {
		return err
	}
	var leaving []*job.Job
	for _, j := range a.Jobs {
		if reason(j) != "" {
			leaving = append(leaving, j)
		}
	}
	return a.displace(ctx, tx, leaving, reason)
}

func (a *Application) displace(ctx context.Context, tx *store.Tx, jobs []*job.Job, reason func(*job.Job) string) error {
	if len(jobs) == 0 {
		return nil
	}
	var displaced, messages []string
	for _, j := range jobs {
		message := fmt.Sprintf("%s left %s: %s", j.Component, j.Target, reason(j))
		if err := j.Displace(ctx, tx, message, false); err != nil {
			return err
		}
		displaced, messages = append(displaced, j.Component), append(messages, message)
	}
	return a.announce(ctx, tx, events.ApplicationDisplaced, recorded.ApplicationDisplaced, strings.Join(messages, "; "), displaced...)
}
