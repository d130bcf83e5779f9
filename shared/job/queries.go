package job

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/littoral-project/littoral/shared/history"
	"github.com/littoral-project/littoral/shared/paging"
	"github.com/littoral-project/littoral/shared/problem"
	"github.com/littoral-project/littoral/shared/store"
)

const columns = columnsBefore + `j.instruction` + columnsAfter

// lightColumns leaves out the manifests, which are most of a job.
const lightColumns = columnsBefore + `jsonb_set(j.instruction, '{contents}', '[]') as instruction` + columnsAfter

const columnsBefore = `j.id, j.application_id, a.name as application_name, a.description as application_description, a.namespace,
j.component, j.replica, j.cleans, j.type, j.sub_type, j.state, j.orchestrator, j.cluster, j.node, j.owner_id, j.epoch,
j.lease_until, j.silent_since, j.moves_at, j.cluster_silent, j.applied, `

const columnsAfter = `, j.superseded, j.cpu_milli, j.memory_bytes, j.devices, j.lost_after, j.excluded,
j.tried, j.misplaced, j.resource_uuid, j.resource_name, j.conditions, j.remediations, j.created_at, j.updated_at`

const from = ` from jobs j join applications a on a.id = j.application_id `

const (
	selectOne = `select ` + columns + from + `where j.id = $1`

	selectOneForUpdate = selectOne + ` for update of j`

	// This repeats the condition of its partial index, without which a generic plan could not use that index.
	selectOfResource = `select ` + columns + from + `where j.resource_uuid = $1 and j.resource_uuid <> ''
and j.cleans is null order by j.id limit 2`

	selectOfResourceForUpdate = selectOfResource + ` for update of j`

	// Order by id, so that two transactions that lock several jobs of one application do not deadlock.
	selectOfApplications = `select ` + columns + ofApplications

	selectLightOfApplications = `select ` + lightColumns + ofApplications

	ofApplications = from + `where j.application_id = any($1)
and (j.cleans is null or j.state <> 'Finished')
order by array_position($1, j.application_id), j.component, j.replica, j.created_at, j.id`

	selectOfApplicationForUpdate = `select ` + columns + from + `where j.application_id = $1
and j.cleans is null order by j.id for update of j`

	selectList = `select ` + columns + listed

	selectLightList = `select ` + lightColumns + listed

	listed = from + `where (j.created_at, j.id) > ($1, $2)
and ($3 = '' or j.state = $3) and ($4 = '' or j.orchestrator = $4) and ($5 = '' or j.owner_id = $5)
and ($6 = '' or a.name = $6 or a.id::text = any(string_to_array($6, ',')))
and (j.cleans is null or j.state <> 'Finished') and (a.deleted_at is null or j.state <> 'Finished')
order by j.created_at, j.id limit $7`

	// While the lease under which this controller has the application is over, nobody begins or changes anything for it; what
	// is to be removed may be (shared/docs/controllers.md).
	acts = `a.acts_until is null or a.acts_until > now() or j.type = 'DeleteDeployment'`

	// The caller still has a former copy at the very place that the job has come back to. That copy has to go before a
	// new one is made: an agent that finds copies by the name of their job, or that died before it could report its
	// copy, would otherwise remove the new one.
	ownLeft = `(j.type = 'CreateDeployment' and exists (select 1 from jobs c where c.cleans = j.id and c.owner_id = $2
  and c.cluster = j.cluster and c.node = j.node and c.state <> 'Finished'))`

	// The place belongs to another agent: if the agent of a place is known, only that agent may take jobs there, and a
	// known agent works only for the orchestrators of its own places. A caller that is no known agent (an older one
	// with another name) may take any job. What the caller owns already it keeps: it took that before telemetry named
	// an agent, and nobody else would end it.
	othersPlace = `(exists (select 1 from nodes n where n.agent = $2)
  and (exists (select 1 from nodes n where n.cluster = j.cluster and n.node = j.node and n.agent not in ('', $2))
    or not exists (select 1 from nodes n where n.agent = $2 and n.orchestrator in ('', j.orchestrator))))`

	here = `select 1 from nodes n where n.cluster = j.cluster and j.node in ('', n.node)`

	insertJob = `insert into jobs (id, application_id, component, replica, cleans, type, sub_type, state, orchestrator,
cluster, node, owner_id, epoch, lease_until, instruction, cpu_milli, memory_bytes, devices, lost_after, excluded,
tried, misplaced, resource_uuid, resource_name, conditions, remediations)
values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21, $22, $23, $24, $25, $26)`

	updateJob = `update jobs set type = $2, sub_type = $3, state = $4, orchestrator = $5, cluster = $6, node = $7,
owner_id = $8, epoch = $9, lease_until = case when $23 then lease_until else now() + $10::interval end,
instruction = coalesce($11, instruction), cpu_milli = $12, memory_bytes = $13, devices = $14,
lost_after = $15, excluded = $16, resource_uuid = $17, resource_name = $18, conditions = $19, remediations = $20,
superseded = $21, applied = $22, tried = $24, misplaced = $25, updated_at = now(),
taken_at = case when (cluster, node) = ($6, $7) and $8 <> '' then taken_at end,
silent_since = case when (cluster, node) = ($6, $7) then silent_since end where id = $1`
)

// The rule of shared/docs/contracts.md §1.6: free jobs, those that the caller owns and has to carry out, and those whose
// lease has lapsed. Each branch is one probe of a partial index without finished jobs. Each repeats the condition
// of its index, without which a generic plan could not use the index and every poll would be planned anew.
var selectExecutable = `select ` + columns + from + `where j.id in (
  select id from jobs where orchestrator = $1 and orchestrator <> '' and state = 'Created' and owner_id = ''
    and type = 'CreateDeployment'
  union all
  select id from jobs where orchestrator = $1 and orchestrator <> '' and state = 'Created' and owner_id = $2
    and $2 <> ''
  union all
  select id from jobs where orchestrator = $1 and state in ('Progressing', 'Degraded') and lease_until < now()
    and (type = 'CreateDeployment' or owner_id = $2)
  union all
  select j.id from jobs j where j.orchestrator = $1 and j.orchestrator <> '' and j.state = 'Created' and $2 <> '' and ` + stray("$4") + `
  union all
  select j.id from jobs j where j.orchestrator = $1 and j.state in ('Progressing', 'Degraded') and j.lease_until < now() and $2 <> ''
    and j.type <> 'CreateDeployment' and ` + stray("$4") + `
) and (j.owner_id = $2 and $2 <> '' or not ` + othersPlace + `) and not ` + ownLeft + ` and (` + acts + `) order by j.created_at, j.id limit $3`

// stray is work that its owner does not know of: it serves other places, or has, and not this one, has never said that anything of the
// job runs, and has left it alone for a lease. An agent that does not name the epoch comes to own such work when it takes a job
// that was placed anew since it was listed. The caller may have it, unless it serves other places itself.
func stray(lease string) string {
	return `(j.owner_id not in ('', $2) and j.resource_uuid = '' and not j.applied
  and coalesce(j.lease_until, j.updated_at + ` + lease + `::interval) < now()
  and exists (select 1 from nodes n where n.agent = j.owner_id or j.owner_id = any(n.formerly)) and not exists (` + here + ` and n.agent = j.owner_id)
  and (not exists (select 1 from nodes n where n.agent = $2) or exists (` + here + ` and n.agent = $2)))`
}

// Get returns the job. The error is NotFound.
func Get(ctx context.Context, q store.Querier, id uuid.UUID) (*Job, error) {
	return one(ctx, q, selectOne, id)
}

// Lock returns the job and locks it for this transaction. The error is NotFound.
func Lock(ctx context.Context, tx *store.Tx, id uuid.UUID) (*Job, error) {
	return one(ctx, tx, selectOneForUpdate, id)
}

// ByResource returns the job (no clean-up) whose resource has the uuid. The error is NotFound, or Conflict when there are
// several.
func ByResource(ctx context.Context, q store.Querier, resource string) (*Job, error) {
	return theOne(ctx, q, selectOfResource, resource)
}

// lockOfResource returns the job (no clean-up) whose resource has the uuid, and locks it for this transaction. The
// error is NotFound, or Conflict when there are several.
func lockOfResource(ctx context.Context, tx *store.Tx, resource string) (*Job, error) {
	return theOne(ctx, tx, selectOfResourceForUpdate, resource)
}

func theOne(ctx context.Context, q store.Querier, sql, resource string) (*Job, error) {
	jobs, err := many(ctx, q, sql, resource)
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

// each calls next for every job until it has enough.
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

// some returns the first jobs that fit into store.PageBytes together; cut says that there are more.
func some(ctx context.Context, q store.Querier, sql string, args ...any) (jobs []*Job, cut bool, err error) {
	return store.Page(ctx, q, "read jobs", pgx.RowToAddrOfStructByName[Job], (*Job).Size, sql, args...)
}

// OfApplications returns the jobs of the applications, ordered by component and replica, with the clean-ups that are
// still open.
func OfApplications(ctx context.Context, q store.Querier, applications ...uuid.UUID) ([]*Job, error) {
	return many(ctx, q, selectOfApplications, applications)
}

// EachOfApplications calls next for the same jobs, application by application in the order of the list, until it has
// enough. Light jobs have no manifests.
func EachOfApplications(
	ctx context.Context, q store.Querier, applications []uuid.UUID, light bool, next func(*Job) (more bool),
) error {
	sql := selectOfApplications
	if light {
		sql = selectLightOfApplications
	}
	return each(ctx, q, next, sql, applications)
}

// LockOfApplication returns the application's jobs without clean-ups and locks them for this transaction.
func LockOfApplication(ctx context.Context, tx *store.Tx, application uuid.UUID) ([]*Job, error) {
	return many(ctx, tx, selectOfApplicationForUpdate, application)
}

// Filter narrows a listing; empty fields do not.
type Filter struct {
	State        string
	Orchestrator string
	Owner        string // agent
	Application  string // name or id, or ids with commas between
	Light        bool   // without the manifests of jobs
}

// List returns a page of jobs, oldest first; cut says that it is shorter than asked for, since the jobs are large.
func List(ctx context.Context, q store.Querier, f Filter, page paging.Page) (jobs []*Job, cut bool, err error) {
	sql := selectList
	if f.Light {
		sql = selectLightList
	}
	return some(ctx, q, sql, page.After.At, page.After.ID, f.State, f.Orchestrator, f.Owner, f.Application, page.Limit)
}

// MaxExecutable bounds, together with store.PageBytes, one answer to a polling agent; the rest comes with its next
// poll.
const MaxExecutable = 500

// Executable returns the jobs that the agent may promote now at places of the orchestrator, oldest first. Without an
// agent it returns only free jobs and those whose lease has lapsed.
func Executable(ctx context.Context, q store.Querier, orchestrator, agent string) ([]*Job, error) {
	jobs, _, err := some(ctx, q, selectExecutable, orchestrator, agent, MaxExecutable, DefaultLease)
	return jobs, err
}

func (j *Job) insert(tx *store.Tx) {
	tx.Append(insertJob, j.ID, j.ApplicationID, j.Component, j.Replica, j.Cleans, j.Type, j.SubType, j.State,
		j.Orchestrator, j.Cluster, j.Node, j.OwnerID, j.Epoch, j.LeaseUntil, j.Instruction, j.CPUMilli, j.MemoryBytes,
		orEmpty(j.Devices), j.LostAfter, orEmpty(j.Excluded), j.Tried, orEmpty(j.Misplaced), j.ResourceUUID, j.ResourceName,
		orEmpty(j.Conditions), orEmpty(j.Remediations))
}

// lease says what becomes of the lease when a job is saved.
type lease struct {
	same  bool
	lasts *time.Duration // by the clock of Postgres; nil = there is none
}

var (
	noLease   = lease{}
	sameLease = lease{same: true}
)

// leaseOf is a lease that begins now.
func leaseOf(lasts time.Duration) lease { return lease{lasts: &lasts} }

// saved says what of a job is saved beside its other columns; the zero value ends its lease and leaves its instruction.
type saved struct {
	lease       lease
	instruction bool // it has changed: by far the largest column is sent only then
}

// save writes the job, and the history row of the move that led to its state from the state before.
func (j *Job) save(ctx context.Context, tx *store.Tx, m Move, before State, w saved, message string) error {
	var instruction *Instruction
	if w.instruction {
		instruction = &j.Instruction
	}
	tx.Append(updateJob, j.ID, j.Type, j.SubType, j.State, j.Orchestrator, j.Cluster, j.Node, j.OwnerID,
		j.Epoch, w.lease.lasts, instruction, j.CPUMilli, j.MemoryBytes, orEmpty(j.Devices), j.LostAfter, orEmpty(j.Excluded),
		j.ResourceUUID, j.ResourceName, orEmpty(j.Conditions), orEmpty(j.Remediations), orEmpty(j.Superseded), j.Applied,
		w.lease.same, j.Tried, orEmpty(j.Misplaced))
	return j.record(ctx, tx, m, before, message)
}

func (j *Job) record(ctx context.Context, tx *store.Tx, m Move, before State, message string) error {
	if !transitionOf(m).leads(before, j.State) {
		return fmt.Errorf("job %s: %s does not lead from %q to %s", j.ID, m, before, j.State)
	}
	return history.Record(ctx, tx, history.Entry{
		ApplicationID: &j.ApplicationID, JobID: &j.ID, Component: j.Component, Event: m.Event(),
		FromState: string(before), ToState: string(j.State), Message: message,
	})
}

// orEmpty copies the slice, so that the waiting statement does not change with s, and turns nil (a null) into an empty
// list.
func orEmpty[T any](s []T) []T { return append(make([]T, 0, len(s)), s...) }
