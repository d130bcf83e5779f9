package job

import (
	"context"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/littoral-project/littoral/shared/problem"
	"github.com/littoral-project/littoral/shared/store"
)

// ClaimEpoch is Claim for an orchestrator that is told of a job by an event. It goes through the same conditional update as a
// poll, so a job that is both polled and pushed is carried out once. It returns the job as it is then, or nil when the
// event asks for nothing: another owner has the job, it is done already, or its epoch is a later one.
func ClaimEpoch(
	ctx context.Context,
	tx *store.Tx,
	id uuid.UUID,
	epoch int64,
	agent string,
	lease time.Duration,
) (*Job, error) {
	j, err := Lock(ctx, tx, id)
	switch {
	case problem.KindOf(err) == problem.NotFound:
		return nil, nil
	case err != nil:
		return nil, err
	case j.Epoch != epoch, !j.Placed(), j.State == Finished, j.State == Degraded && j.OwnerID == agent:
		return nil, nil
	}
	err = claim(ctx, tx, id, agent, lease, true)
	if problem.KindOf(err) == problem.Conflict {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return Get(ctx, tx, id)
}

const selectHeld = `select ` + columns + from + `where j.orchestrator = $1 and j.owner_id = $2 and j.id > $3
and ($4::uuid is null or j.id = $4 or j.cleans = $4) and ($5 = '' or j.cluster = $5) order by j.id limit $6`

// Held returns jobs that the agent owns at places of the orchestrator, ordered by id and after the given one, no larger
// than store.PageBytes together. With a subject it returns only that job and its clean-ups, with a cluster only those
// in it. more says that there may be further ones.
func Held(
	ctx context.Context, q store.Querier, orchestrator, agent string, after uuid.UUID, subject *uuid.UUID, cluster string,
	limit int,
) (jobs []*Job, more bool, err error) {
	jobs, cut, err := some(ctx, q, selectHeld, orchestrator, agent, after, subject, cluster, limit)
	return jobs, cut || len(jobs) == limit, err
}

// HeldIn returns the clusters in which the agent owns jobs of the orchestrator.
func HeldIn(ctx context.Context, q store.Querier, orchestrator, agent string) ([]string, error) {
	return store.Collect(ctx, q, "read clusters of jobs", pgx.RowTo[string], `select distinct cluster from jobs
where orchestrator = $1 and owner_id = $2 and cluster <> '' order by cluster`, orchestrator, agent)
}

// ReasonOutOfReach is the reason of the condition Available=Unknown while a job's cluster does not answer.
const ReasonOutOfReach = "ClusterUnreachable"

// OutOfReach reports whether the job is a removal in a cluster that does not answer. It continues when the cluster is
// back; nobody waits for it until then.
func (j *Job) OutOfReach() bool {
	c := j.Condition(ConditionAvailable)
	return j.Type == Delete && c != nil && c.Status == "Unknown" && c.Reason == ReasonOutOfReach
}

// Untended reports whether a removal has seen no work for as long as a lease: its agent is away, or there is none.
func (j *Job) Untended() bool {
	since := j.UpdatedAt.Add(DefaultLease)
	if j.State != Created && j.LeaseUntil != nil {
		since = *j.LeaseUntil
	}
	return j.Type == Delete && time.Now().After(since)
}

// Unknown says why it is not known whether the component runs; "" when it is known.
func (j *Job) Unknown() string {
	if c := j.Availability(); c != nil && c.Status == "Unknown" {
		return c.Message
	}
	return ""
}
