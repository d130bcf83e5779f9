// Package remediation carries out the remediation that a violated policy asks for.
package remediation

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/littoral-project/littoral/shared/application"
	"github.com/littoral-project/littoral/shared/dialect"
	"github.com/littoral-project/littoral/shared/history"
	"github.com/littoral-project/littoral/shared/history/recorded"
	"github.com/littoral-project/littoral/shared/job"
	"github.com/littoral-project/littoral/shared/label"
	"github.com/littoral-project/littoral/shared/match"
	"github.com/littoral-project/littoral/shared/problem"
	"github.com/littoral-project/littoral/shared/store"
)

// Incompliance is a violation as the policy manager reports it (shared/docs/contracts.md §1.5).
type Incompliance struct {
	ID                 string            `json:"id"`
	CurrentValue       string            `json:"currentValue"`
	Threshold          string            `json:"threshold"`
	PolicyName         string            `json:"policyName"`
	PolicyID           string            `json:"policyId"`
	MeasurementBackend string            `json:"measurementBackend"`
	ExtraLabels        map[string]string `json:"extraLabels"`
	Subject            Subject           `json:"subject"`
	Remediation        job.Remediation   `json:"remediation"`
}

// Subject is what the violation is about. It is resolved by resource id, else manifest, else instance and component.
type Subject struct {
	Type         string `json:"type"`
	AppName      string `json:"appName"`
	AppComponent string `json:"appComponent"`
	AppInstance  string `json:"appInstance"`
	ResourceID   string `json:"resourceId"`
	Manifest     string `json:"manifest,omitempty"`
}

// maxID is the longest id in bytes: it is indexed, and an index does not take text of any length.
const maxID = 1024

// Check finds everything that is missing or cannot be stored.
func (i *Incompliance) Check() error {
	var faults problem.Faults
	if len(i.ID) > maxID {
		faults.Add("id", 0, "has more than %d bytes", maxID)
	}
	if i.PolicyName == "" {
		faults.Add("policyName", 0, "is required")
	}
	if i.Remediation == "" {
		faults.Add("remediation", 0, "is required")
	}
	if i.Subject.ResourceID == "" && i.Subject.Manifest == "" && i.Subject.AppInstance == "" {
		faults.Add("subject", 0, "names neither resourceId, nor manifest, nor appInstance")
	}
	return faults.Err("the incompliance is not valid")
}

// ErrLeft is wrapped by the error for moving a component away from a node that it has already left; repeating does not
// help.
var ErrLeft = errors.New("not there")

const (
	knownNodes = `select array(select distinct node from nodes where node = any($1) order by node)`

	seen = `insert into inbox (consumer, source, id) values ('incompliance', 'policymanager', $1) on conflict do nothing`

	// Each branch is one probe of a partial index. It repeats the condition of its index, without which a generic plan
	// could not use the index.
	byResource = `select id, application_id from jobs where cleans is null and type <> 'DeleteDeployment'
and (resource_uuid = $1 and resource_uuid <> '' or id = $2) order by id`

	byComponent = `select id, application_id from jobs where cleans is null and type <> 'DeleteDeployment'
and application_id = $1 and ($2 = '' or component = $2) order by id`
)

// Apply carries out the remediation on every job that the subject means and returns how many of them were changed. An
// incompliance with an id that was handled before changes nothing. The error is NotFound when the subject means no job.
// It is Conflict when a job is in the wrong state (it must be owned and Finished, unless it is to be reallocated), when
// the descriptor allows the remediation for none of them, when a job has already left the node it should leave, or when
// the subject means jobs of several applications.
func Apply(ctx context.Context, tx *store.Tx, i *Incompliance, s Settings) (changed int, err error) {
	if err := i.Check(); err != nil {
		return 0, err
	}
	if i.ID == "" {
		i.ID = uuid.Must(uuid.NewV7()).String()
	}
	tag, err := tx.Exec(ctx, seen, i.ID)
	if err != nil {
		return 0, fmt.Errorf("inbox: %w", err)
	}
	if tag.RowsAffected() == 0 {
		return 0, nil
	}
	if i.Remediation == job.Reallocate {
		if err := match.Lock(ctx, tx); err != nil {
			return 0, err
		}
	}
	app, jobs, err := i.resolve(ctx, tx)
	if err != nil {
		return 0, err
	}
	reason := i.reason()
	if err := record(ctx, tx, app.ID, i, reason); err != nil {
		return 0, err
	}
	switch i.Remediation {
	case job.NoRemediation:
		return 0, nil
	case job.Reallocate:
		if err := i.stillThere(ctx, tx, jobs); err != nil {
			return 0, err
		}
		return match.Move(ctx, tx, app, jobs, reason, s.Settings)
	}
	return i.ask(ctx, tx, app, jobs, s.meant(i.Remediation), reason)
}

// ask asks the owners of the jobs for the remediation, within the limits of the descriptor. A job at its limit does not
// stop the others.
func (i *Incompliance) ask(
	ctx context.Context, tx *store.Tx, app *application.Application, jobs []*job.Job, r job.Remediation, reason string,
) (asked int, err error) {
	header, err := dialect.DecodeHeader(app.Dialect, []byte(app.Descriptor), nil)
	if err != nil {
		return 0, fmt.Errorf("stored descriptor: %w", err)
	}
	var limit error
	for _, j := range jobs {
		why, remedy := reason, job.Remedy{Type: r, Target: i.target()}
		if r == job.ScaleUp || r == job.ScaleDown {
			now, next, err := replicas(header, j, r)
			if err != nil {
				limit = cmp.Or(limit, err)
				continue
			}
			why, remedy.Step = describe(reason, next), apart(now, next)
		}
		if err := j.Remediate(ctx, tx, remedy, why); err != nil {
			return 0, err
		}
		asked++
	}
	if asked == 0 {
		return 0, limit
	}
	return asked, nil
}

// reason says in one line what happened, as far as is known.
func (i *Incompliance) reason() string {
	var known []string
	for _, part := range []struct{ name, value string }{{"value", i.CurrentValue}, {"threshold", i.Threshold}} {
		if part.value != "" {
			known = append(known, part.name+" "+part.value)
		}
	}
	if len(known) == 0 {
		return fmt.Sprintf("policy %s is violated", i.PolicyName)
	}
	return fmt.Sprintf("policy %s is violated (%s)", i.PolicyName, strings.Join(known, ", "))
}

func record(ctx context.Context, tx *store.Tx, app uuid.UUID, i *Incompliance, reason string) error {
	return history.Record(ctx, tx, history.Entry{
		ApplicationID: &app, Component: i.Subject.AppComponent, Event: recorded.PolicyRemediated,
		Message: fmt.Sprintf("%s; remediation: %s", reason, i.Remediation),
	})
}

// resolve returns the application and its jobs that the subject means, locked.
func (i *Incompliance) resolve(ctx context.Context, tx *store.Tx) (*application.Application, []*job.Job, error) {
	type hit struct {
		Job         uuid.UUID
		Application uuid.UUID
	}
	find := func(sql string, args ...any) ([]hit, error) {
		return store.Collect(ctx, tx, "resolve subject", pgx.RowToStructByPos[hit], sql, args...)
	}
	var hits []hit
	var err error
	for _, name := range []string{i.Subject.ResourceID, i.Subject.Manifest} {
		if name != "" && len(hits) == 0 && err == nil {
			var id *uuid.UUID
			if parsed, parseErr := uuid.Parse(name); parseErr == nil {
				id = &parsed
			}
			hits, err = find(byResource, name, id)
		}
	}
	if len(hits) == 0 && err == nil {
		if instance, parseErr := uuid.Parse(i.Subject.AppInstance); parseErr == nil {
			hits, err = find(byComponent, instance, i.Subject.AppComponent)
		}
	}
	if err != nil {
		return nil, nil, err
	}
	unknown := problem.New(problem.NotFound, "the subject means no component that is known here")
	if len(hits) == 0 {
		return nil, nil, unknown
	}
	if slices.ContainsFunc(hits, func(h hit) bool { return h.Application != hits[0].Application }) {
		instance, _ := uuid.Parse(i.Subject.AppInstance)
		hits = slices.DeleteFunc(hits, func(h hit) bool { return h.Application != instance })
		if len(hits) == 0 {
			return nil, nil, problem.New(problem.Conflict, "several applications have that resource; name the appInstance that is meant")
		}
	}
	app, err := application.Lock(ctx, tx, hits[0].Application)
	if err != nil {
		return nil, nil, err
	}
	meant := map[uuid.UUID]bool{}
	for _, h := range hits {
		meant[h.Job] = true
	}
	var jobs []*job.Job
	for _, j := range app.Jobs {
		if meant[j.ID] && j.Live() { // a stopped job needs no remedy
			jobs = append(jobs, j)
		}
	}
	if len(jobs) == 0 {
		return nil, nil, unknown
	}
	return app, i.there(jobs), nil
}

// nodes returns the names that the violation gives for the node it was measured on.
func (i *Incompliance) nodes() map[string]bool {
	named := map[string]bool{}
	for _, label := range []string{"k8s_node_name", label.HostName, "node_name"} {
		if name := i.ExtraLabels[label]; name != "" {
			named[name], named[name[strings.LastIndex(name, ":")+1:]] = true, true // ICOS writes cluster:node
		}
	}
	return named
}

// stillThere returns an error if the violation is about a node on which none of the jobs is: the alert is late, and a
// move would take the component away from the node that it has just moved to.
func (i *Incompliance) stillThere(ctx context.Context, tx *store.Tx, jobs []*job.Job) error {
	named := i.nodes()
	if slices.ContainsFunc(jobs, func(j *job.Job) bool { return named[j.Node] }) {
		return nil
	}
	var known []string
	if err := tx.QueryRow(ctx, knownNodes, slices.Sorted(maps.Keys(named))).Scan(&known); err != nil {
		return fmt.Errorf("find the node: %w", err)
	}
	if len(known) == 0 { // it names no node, or none that we know
		return nil
	}
	return problem.Wrap(problem.Conflict, ErrLeft, "the violation is about %s, where the component is not",
		strings.Join(known, ", "))
}

// there returns the jobs on the node that the violation names, or all if it names the node of none of them.
func (i *Incompliance) there(jobs []*job.Job) []*job.Job {
	named := i.nodes()
	var found []*job.Job
	for _, j := range jobs {
		if named[j.Node] {
			found = append(found, j)
		}
	}
	if len(found) == 0 {
		return jobs
	}
	return found
}

// target reads the container that "secure" acts on from the labels that the newer policy manager sends.
func (i *Incompliance) target() *job.RemedyTarget {
	if i.Remediation != job.Secure {
		return nil
	}
	l := i.ExtraLabels
	return &job.RemedyTarget{
		Container: l["k8s_container_name"], Pod: l["k8s_pod_name"], PodUID: l["k8s_pod_uid"], Node: l["k8s_node_name"],
		Namespace: l["k8s_namespace_name"], Command: l["command"],
	}
}
