package job

import (
	"context"
	"errors"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/littoral-project/littoral/shared/function"
	"github.com/littoral-project/littoral/shared/history"
	"github.com/littoral-project/littoral/shared/problem"
	"github.com/littoral-project/littoral/shared/store"
)

const columns = `j.id, j.application_id, a.name as application_name, a.description as application_description, a.namespace,
j.component, j.replica, j.cleans, j.type, j.sub_type, j.state, j.orchestrator, j.cluster, j.node, j.owner_id, j.epoch,
j.lease_until, j.applied, j.instruction, j.superseded, j.cpu_milli, j.memory_bytes, j.devices, j.lost_after, j.excluded,
j.resource_uuid, j.resource_name, j.conditions, j.remediations, j.created_at, j.updated_at`

const from = ` from jobs j join applications a on a.id = j.application_id `

const (
	selectOne = `select ` + columns + from + `where j.id = $1`

	selectOneForUpdate = selectOne + ` for update of j`

	// Without the words of its index's own condition a plan that is kept for any $1 could not use it.
	selectOfResourceForUpdate = `select ` + columns + from + `where j.resource_uuid = $1 and j.resource_uuid <> ''
and j.cleans is null order by j.id limit 2 for update of j`

	// Order by id keeps two transactions that lock several jobs of one application from waiting for each other.
	selectOfApplications = `select ` + columns + from + `where j.application_id = any($1)
and (j.cleans is null or j.state <> 'Finished')
order by array_position($1, j.application_id), j.component, j.replica, j.created_at, j.id`

	selectOfApplicationForUpdate = `select ` + columns + from + `where j.application_id = $1
and j.cleans is null order by j.id for update of j`

	selectList = `select ` + columns + from + `where (j.created_at, j.id) > ($1, $2)
and ($3 = '' or j.state = $3) and ($4 = '' or j.orchestrator = $4) and ($5 = '' or j.owner_id = $5)
and ($6 = '' or a.name = $6 or a.id::text = $6)
and (j.cleans is null or j.state <> 'Finished') and (a.deleted_at is null or j.state <> 'Finished')
order by j.created_at, j.id limit $7`

	// The executable rule, contracts/icos.md §1.6: what is free, what the caller already owns and has to do, and what its
	// owner has let lapse. Each branch is one probe of a partial index in which finished jobs are not; without the words of
	// the index's own condition a plan that is kept for any $1 could not use it, so that each poll would be planned anew.
	selectExecutable = `select ` + columns + from + `where j.id in (
  select id from jobs where orchestrator = $1 and orchestrator <> '' and state = 'Created' and owner_id = ''
    and type = 'CreateDeployment'
  union all
  select id from jobs where orchestrator = $1 and orchestrator <> '' and state = 'Created' and owner_id = $2
    and $2 <> ''
  union all
  select id from jobs where orchestrator = $1 and state in ('Progressing', 'Degraded') and lease_until < now()
    and (type = 'CreateDeployment' or owner_id = $2)
) and (j.owner_id = $2 and $2 <> '' or not ` + othersPlace + `) and not ` + ownLeft + ` order by j.created_at, j.id limit $3`

	// What the caller has left at the very place that a job has come back to: it is removed before another copy is made. An
	// agent that knows copies by the name of their job, or that has died before it could say what it made, would remove the
	// new one.
	ownLeft = `(j.type = 'CreateDeployment' and exists (select 1 from jobs c where c.cleans = j.id and c.owner_id = $2
  and c.cluster = j.cluster and c.node = j.node and c.state <> 'Finished'))`

	// A place whose agent is known is that agent's, and an agent that is known speaks to the orchestrators of its own places;
	// a caller that is no known agent (an older one that names itself otherwise) is not kept from any. Nor is one from what it
	// owns: it has taken that before telemetry told of it, and nobody else would end it.
	othersPlace = `(exists (select 1 from nodes n where n.agent = $2)
  and (exists (select 1 from nodes n where n.cluster = j.cluster and n.node = j.node and n.agent not in ('', $2))
    or not exists (select 1 from nodes n where n.agent = $2 and n.orchestrator in ('', j.orchestrator))))`

	insertJob = `insert into jobs (id, application_id, component, replica, cleans, type, sub_type, state, orchestrator,
cluster, node, owner_id, epoch, lease_until, instruction, cpu_milli, memory_bytes, devices, lost_after, excluded,
resource_uuid, resource_name, conditions, remediations)
values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21, $22, $23, $24)`

	updateJob = `update jobs set type = $2, sub_type = $3, state = $4, orchestrator = $5, cluster = $6, node = $7,
owner_id = $8, epoch = $9, lease_until = now() + $10::interval,
instruction = coalesce($11, instruction), cpu_milli = $12, memory_bytes = $13, devices = $14,
lost_after = $15, excluded = $16, resource_uuid = $17, resource_name = $18, conditions = $19, remediations = $20,
superseded = $21, applied = $22, updated_at = now(),
taken_at = case when (cluster, node) = ($6, $7) and $8 <> '' then taken_at end where id = $1`
)

// Get returns the job. The error is NotFound.
func Get(ctx context.Context, q store.Querier, id uuid.UUID) (*Job, error) {
	return one(ctx, q, selectOne, id)
}

// Lock returns the job and keeps it for this transaction.
func Lock(ctx context.Context, tx *store.Tx, id uuid.UUID) (*Job, error) {
	return one(ctx, tx, selectOneForUpdate, id)
}

// lockOfResource returns the job whose resource has the uuid, clean-ups aside, and keeps it for this transaction. The error
// is NotFound, or Conflict when there are several.
func lockOfResource(ctx context.Context, tx *store.Tx, resource string) (*Job, error) {
	jobs, err := many(ctx, tx, selectOfResourceForUpdate, resource)
	switch {
	case err != nil:
		return nil, err
	case len(jobs) == 0:
		return nil, problem.New(problem.NotFound, "there is no such job, and none whose resource is %q", resource)
	case len(jobs) > 1:
		return nil, problem.New(problem.Conflict, "several jobs have %q for their resource; say which job is meant", resource)
	}
	return jobs[0], nil
}

func one(ctx context.Context, q store.Querier, sql string, id uuid.UUID) (*Job, error) {
	j, err := store.One(ctx, q, "read job", pgx.RowToAddrOfStructByName[Job], sql, id)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, problem.New(problem.NotFound, "there is no job %s", id)
	}
	return j, err
}

func many(ctx context.Context, q store.Querier, sql string, args ...any) ([]*Job, error) {
	return store.Collect(ctx, q, "read jobs", pgx.RowToAddrOfStructByName[Job], sql, args...)
}

// each hands over jobs until next has enough.
func each(ctx context.Context, q store.Querier, next func(*Job) (more bool), sql string, args ...any) error {
	rows, err := q.Query(ctx, sql, args...)
	if err != nil {
		return fmt.Errorf("read jobs: %w", err)
	}
	defer rows.Close()
	for more := true; more && rows.Next(); {
		j, err := pgx.RowToAddrOfStructByName[Job](rows)
		if err != nil {
			return fmt.Errorf("read jobs: %w", err)
		}
		more = next(j)
	}
	rows.Close()
	if err := rows.Err(); err != nil {
		return fmt.Errorf("read jobs: %w", err)
	}
	return nil
}

// some returns the first jobs that are no larger than store.PageBytes together; cut says that there are more.
func some(ctx context.Context, q store.Querier, sql string, args ...any) (jobs []*Job, cut bool, err error) {
	return store.Page(ctx, q, "read jobs", pgx.RowToAddrOfStructByName[Job], (*Job).Size, sql, args...)
}

// OfApplications returns the jobs of the applications by component and replica, with the clean-ups that are still open.
func OfApplications(ctx context.Context, q store.Querier, applications ...uuid.UUID) ([]*Job, error) {
	return many(ctx, q, selectOfApplications, applications)
}

// EachOfApplications hands over the same, application by application as they are listed, until next has enough.
func EachOfApplications(ctx context.Context, q store.Querier, applications []uuid.UUID, next func(*Job) (more bool)) error {
	return each(ctx, q, next, selectOfApplications, applications)
}

// LockOfApplication returns the application's jobs, without clean-ups, and keeps them for this transaction.
func LockOfApplication(ctx context.Context, tx *store.Tx, application uuid.UUID) ([]*Job, error) {
	return many(ctx, tx, selectOfApplicationForUpdate, application)
}

// Filter narrows a listing; empty fields do not.
type Filter struct {
	State        string
	Orchestrator string
	Owner        string // agent
	Application  string // name or id
}

// List returns a page of jobs, oldest first; cut says that it is shorter than asked for, since they are large.
func List(ctx context.Context, q store.Querier, f Filter, page function.Page) (jobs []*Job, cut bool, err error) {
	return some(ctx, q, selectList, page.After.At, page.After.ID, f.State, f.Orchestrator, f.Owner, f.Application, page.Limit)
}

// MaxExecutable and store.PageBytes bound one answer to a polling agent; what is left comes with its next poll.
const MaxExecutable = 500

// Executable returns what the agent may promote now at places of the orchestrator, oldest first. Without an agent only
// free jobs and lapsed ones are listed.
func Executable(ctx context.Context, q store.Querier, orchestrator, agent string) ([]*Job, error) {
	jobs, _, err := some(ctx, q, selectExecutable, orchestrator, agent, MaxExecutable)
	return jobs, err
}

func (j *Job) insert(tx *store.Tx) {
	tx.Append(insertJob, j.ID, j.ApplicationID, j.Component, j.Replica, j.Cleans, j.Type, j.SubType, j.State,
		j.Orchestrator, j.Cluster, j.Node, j.OwnerID, j.Epoch, j.LeaseUntil, j.Instruction, j.CPUMilli, j.MemoryBytes,
		orEmpty(j.Devices), j.LostAfter, orEmpty(j.Excluded), j.ResourceUUID, j.ResourceName, orEmpty(j.Conditions), orEmpty(j.Remediations))
}

// save writes the job with the history row of the move that changed it; the lease runs anew, or ends when there is none.
// The instruction, by far the largest column, is sent only when it is another.
func (j *Job) save(ctx context.Context, tx *store.Tx, m Move, before State, message string) error {
	var instruction *Instruction
	if j.instructed {
		instruction = &j.Instruction
	}
	tx.Append(updateJob, j.ID, j.Type, j.SubType, j.State, j.Orchestrator, j.Cluster, j.Node, j.OwnerID,
		j.Epoch, j.lease, instruction, j.CPUMilli, j.MemoryBytes, orEmpty(j.Devices), j.LostAfter, orEmpty(j.Excluded),
		j.ResourceUUID, j.ResourceName, orEmpty(j.Conditions), orEmpty(j.Remediations), orEmpty(j.Superseded), j.Applied)
	return j.record(ctx, tx, m, before, message)
}

func (j *Job) record(ctx context.Context, tx *store.Tx, m Move, before State, message string) error {
	return history.Record(ctx, tx, history.Entry{
		ApplicationID: &j.ApplicationID, JobID: &j.ID, Component: j.Component, Event: "job." + string(m),
		FromState: string(before), ToState: string(j.State), Message: message,
	})
}

// orEmpty keeps a nil slice from becoming a null in a column that has none, and what waits to be sent from changing with s.
func orEmpty[T any](s []T) []T { return append(make([]T, 0, len(s)), s...) }
