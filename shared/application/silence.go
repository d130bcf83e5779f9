package application

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/littoral-project/littoral/shared/history"
	"github.com/littoral-project/littoral/shared/history/recorded"
	"github.com/littoral-project/littoral/shared/job"
	"github.com/littoral-project/littoral/shared/problem"
	"github.com/littoral-project/littoral/shared/store"
)

// silentNow finds the jobs on nodes that the topology calls lost: those not heard of for $1 before it was looked at. Each
// moves when the silence, as DisplaceLost counts it, has lasted for its lost_after; but not while no node is heard of.
const silentNow = `with silent as (
  select j.id, j.application_id, n.last_seen as since,
    case when t.at - newest.seen <= $1::interval then greatest(n.last_seen, t.silent_until) + j.lost_after end as moves,
    not exists (select from nodes m where m.cluster = n.cluster and t.at - m.last_seen <= $1::interval) as whole
  from topology t cross join (select max(last_seen) as seen from nodes) newest
  cross join jobs j join nodes n on n.cluster = j.cluster and n.node = j.node
  join applications a on a.id = j.application_id
  where j.cleans is null and j.type <> 'DeleteDeployment' and a.desired = 'running' and a.deleted_at is null
    and t.at - n.last_seen > $1::interval
)`

const (
	// The second part is the marks that do not hold any more; its condition is that of a partial index with few rows.
	selectUnheard = silentNow + `
select j.application_id from silent s join jobs j on j.id = s.id
where (j.silent_since, j.moves_at, j.cluster_silent) is distinct from (s.since, s.moves, s.whole)
union
select application_id from jobs where silent_since is not null and id not in (select id from silent)
order by 1`

	selectUnheardOf = silentNow + `
select j.id, s.since, s.moves, coalesce(s.whole, false) from jobs j left join silent s on s.id = j.id
where j.application_id = $2
and (j.silent_since, j.moves_at, j.cluster_silent) is distinct from (s.since, s.moves, coalesce(s.whole, false)) order by j.id`
)

// Unheard returns the applications of which it is not recorded yet that a node with one of their components is silent,
// for longer than staleAfter, or is heard of again.
func Unheard(ctx context.Context, q store.Querier, staleAfter time.Duration) ([]uuid.UUID, error) {
	return store.Collect(ctx, q, "find silent components", pgx.RowTo[uuid.UUID], selectUnheard, staleAfter)
}

// RecordSilence records which nodes of the application are silent. History has one entry when that begins and one when
// all are heard of again, but none when the components have moved.
func RecordSilence(ctx context.Context, tx *store.Tx, id uuid.UUID, staleAfter time.Duration) error {
	a, err := Lock(ctx, tx, id)
	if problem.KindOf(err) == problem.NotFound {
		return nil
	}
	if err != nil {
		return err
	}
	type unheard struct {
		Job     uuid.UUID
		Since   *time.Time
		Moves   *time.Time
		Cluster bool
	}
	found, err := store.Collect(ctx, tx, "find silent components", pgx.RowToStructByPos[unheard], selectUnheardOf, staleAfter, id)
	if err != nil {
		return err
	}
	before := a.silent()
	for _, u := range found {
		now := job.Silence{SilentSince: u.Since, MovesAt: u.Moves, ClusterSilent: u.Cluster}
		job.SetSilence(tx, u.Job, now)
		if i := slices.IndexFunc(a.Jobs, func(j *job.Job) bool { return j.ID == u.Job }); i >= 0 {
			a.Jobs[i].Silence = now
		}
	}
	after := a.silent()
	entry := history.Entry{ApplicationID: &a.ID}
	switch {
	case a.Desired != Running:
		return nil
	case len(before) == 0 && len(after) > 0:
		entry.Event, entry.Message = recorded.ApplicationUnknown, a.unknown().Message
	case len(before) > 0 && len(after) == 0:
		entry.Event, entry.Message = recorded.ApplicationReturned, strings.Join(before, ", ")+": heard of again"
	default:
		return nil
	}
	return history.Record(ctx, tx, entry)
}

// silent lists the components on silent nodes.
func (a *Application) silent() []string {
	var list []string
	for _, j := range a.Jobs {
		if j.Silent() {
			list = append(list, j.Component+" at "+j.Target.String())
		}
	}
	return list
}

// unknown is the condition of an application some of whose components may run or not; nil when it is known of all.
func (a *Application) unknown() *job.Condition {
	if a.Desired != Running {
		return nil
	}
	var all *job.Condition
	var texts []string
	said := map[string][]string{} // components by message
	for _, j := range a.Jobs {
		c := j.Availability()
		if !j.Live() || c == nil || c.Status != "Unknown" {
			continue
		}
		reason := c.Reason
		if reason == job.ReasonOutOfReach { // what its deployment manager calls it
			reason = job.ReasonClusterLost
		}
		switch {
		case all == nil:
			all = &job.Condition{
				Type: c.Type, Status: c.Status, ObservedGeneration: a.Version, Reason: reason, LastTransitionTime: c.LastTransitionTime,
			}
		case c.LastTransitionTime.Before(all.LastTransitionTime):
			all.LastTransitionTime = c.LastTransitionTime
		}
		if reason == job.ReasonClusterLost {
			all.Reason = reason
		}
		if said[c.Message] == nil {
			texts = append(texts, c.Message)
		}
		said[c.Message] = append(said[c.Message], j.Component)
	}
	if all == nil {
		return nil
	}
	for i, text := range texts {
		slices.Sort(said[text])
		texts[i] = strings.Join(slices.Compact(said[text]), ", ") + ": " + text
	}
	if more := len(texts) - listed; more > 0 {
		texts = append(texts[:listed], fmt.Sprintf("%d more", more))
	}
	all.Message = strings.Join(texts, "; ")
	return all
}
