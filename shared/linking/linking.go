// Package linking keeps in the store which links the applications need between clusters, and what is known of each: Plan
// decides, package linking/carry brings the objects to the clusters.
//
// A Side is all that one application needs in one cluster. It is one copy there, under a name of its own, so that a link is
// made, renewed and removed without touching what the components run.
package linking

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/littoral-project/littoral/shared/application"
	"github.com/littoral-project/littoral/shared/appmodel"
	"github.com/littoral-project/littoral/shared/clusterlink"
	"github.com/littoral-project/littoral/shared/job"
	"github.com/littoral-project/littoral/shared/orchestrator/kinds"
	"github.com/littoral-project/littoral/shared/problem"
	"github.com/littoral-project/littoral/shared/store"
)

// State is what is known of a side.
type State string

// The states.
const (
	Pending  State = "Pending"  // not yet brought to the cluster, or the cluster has not taken it yet
	Waiting  State = "Waiting"  // the cluster has it, and an object is not valid yet
	Ready    State = "Ready"    // all objects are valid
	Refused  State = "Refused"  // a repeat would not change that
	Silent   State = "Silent"   // the cluster does not answer
	Removing State = "Removing" // nobody uses it any more
)

// Component is what the copies of sides are called.
const Component = "links"

// Side is what an application needs in one cluster.
type Side struct {
	Application  uuid.UUID          `db:"application"  json:"application"`
	Orchestrator string             `db:"orchestrator" json:"orchestrator"`
	Cluster      string             `db:"cluster"      json:"cluster"`
	Copy         uuid.UUID          `db:"copy"         json:"-"`
	Name         string             `db:"name"         json:"name"` // of the application
	Namespace    string             `db:"namespace"    json:"namespace"`
	Epoch        int64              `db:"epoch"        json:"epoch"`
	Contents     []job.Content      `db:"contents"     json:"-"`
	Links        []clusterlink.Link `db:"links"        json:"links"`
	Applied      int64              `db:"applied"      json:"applied"` // the epoch that the cluster has taken
	State        State              `db:"state"        json:"state"`
	Message      string             `db:"message"      json:"message,omitempty"`
	ChangedAt    time.Time          `db:"changed_at"   json:"changedAt"`
}

const (
	columns = `application, orchestrator, cluster, copy, name, namespace, epoch, contents, links, applied, state, message, changed_at`

	selectOf = `select ` + columns + ` from link_sides where application = $1 order by orchestrator, cluster`

	selectOfForUpdate = selectOf + ` for update`

	selectAll = `select ` + columns + ` from link_sides where application > $1 order by application, orchestrator, cluster`

	selectCopy = `select ` + columns + ` from link_sides where copy = $1`

	selectUsers = `select j.id from link_sides s join jobs j on j.application_id = s.application and j.orchestrator = s.orchestrator
	and j.cluster = s.cluster and j.cleans is null where s.copy = $1 order by j.id`

	upsert = `insert into link_sides (application, orchestrator, cluster, copy, name, namespace, epoch, contents, links)
values ($1, $2, $3, $4, $5, $6, nextval('link_epochs'), $7, $8)
on conflict (application, orchestrator, cluster) do update set epoch = excluded.epoch, contents = excluded.contents,
	links = excluded.links, namespace = excluded.namespace, state = $9, message = '', changed_at = now()`

	updateLinks = `update link_sides set links = $4 where application = $1 and orchestrator = $2 and cluster = $3`

	settle = `update link_sides set applied = greatest(applied, $3), state = $4, message = $5,
	changed_at = case when state = $4 then changed_at else now() end
where copy = $1 and epoch = $2`

	remove = `delete from link_sides where copy = $1 and epoch = $2 and contents = '[]'`
)

// copies is the UUID namespace of copies.
var copies = uuid.MustParse("0b1c6a5e-5f0a-5a4c-9f9e-6d3b8a1f7c22")

func copyOf(application uuid.UUID, orchestrator, cluster string) uuid.UUID {
	return uuid.NewSHA1(copies, []byte(application.String()+"/"+orchestrator+"/"+cluster))
}

// Gone reports whether what is there is to be removed.
func (s *Side) Gone() bool { return len(s.Contents) == 0 }

// Job is the side as something that an orchestrator carries out.
func (s *Side) Job() *job.Job {
	j := &job.Job{
		ID: s.Copy, ApplicationID: s.Application, ApplicationName: s.Name, Namespace: s.Namespace, Component: Component,
		Type: job.Create, State: job.Progressing, Epoch: s.Epoch,
		Target:      job.Target{Orchestrator: s.Orchestrator, Cluster: s.Cluster},
		Instruction: job.Instruction{ComponentName: Component, Type: appmodel.TypeKubernetes, Contents: s.Contents},
	}
	if s.Gone() {
		j.Type = job.Delete
	}
	return j
}

// Imports names the Services that the component reaches from here over a link.
func (s *Side) Imports(component string) []string {
	var services []string
	for i := range s.Links {
		if l := &s.Links[i]; l.Cluster == s.Cluster && slices.Contains(l.Clients, component) {
			services = append(services, l.Service)
		}
	}
	return services
}

// Serves reports whether the side exports a Service to the cluster.
func (s *Side) Serves(cluster, service string) bool {
	return slices.ContainsFunc(s.Links, func(l clusterlink.Link) bool {
		return l.Cluster == cluster && l.Service == service &&
			slices.ContainsFunc(l.Servers, func(p clusterlink.Place) bool { return p.Cluster == s.Cluster })
	})
}

// Able reports whether links can reach clusters under the orchestrator.
func Able(orchestrator string) bool {
	k, known := kinds.Of(orchestrator)
	return known && k.Engine == kinds.Kubernetes
}

// Plan decides what the application needs in each cluster, with its components where they are or are about to be, and returns
// all its sides. It changes nothing of a side that stays as it is.
func Plan(ctx context.Context, tx *store.Tx, s clusterlink.Settings, id uuid.UUID) ([]Side, error) {
	want := map[[2]string]*Side{}
	a, err := application.Lock(ctx, tx, id)
	switch {
	case problem.KindOf(err) == problem.NotFound: // nothing is wanted any more
	case err != nil:
		return nil, err
	case s.On():
		if want, err = needed(s, a); err != nil {
			return nil, err
		}
	}
	have, err := store.Collect(ctx, tx, "read links", pgx.RowToStructByName[Side], selectOfForUpdate, id)
	if err != nil {
		return nil, err
	}
	changed := false
	for i := range have {
		at := [2]string{have[i].Orchestrator, have[i].Cluster}
		next := want[at]
		delete(want, at)
		switch {
		case next == nil && have[i].Gone():
			continue
		case next == nil:
			next = &Side{Contents: []job.Content{}, Links: []clusterlink.Link{}, State: Removing, Namespace: have[i].Namespace}
		case slices.Equal(next.Contents, have[i].Contents) && next.Namespace == have[i].Namespace:
			if !same(next.Links, have[i].Links) { // the same objects, of other clients
				changed = true
				if err := exec(ctx, tx, updateLinks, id, at[0], at[1], next.Links); err != nil {
					return nil, err
				}
			}
			continue
		}
		changed = true
		if err := next.write(ctx, tx, id, at, have[i].Name); err != nil {
			return nil, err
		}
	}
	for at, next := range want {
		changed = true
		if err := next.write(ctx, tx, id, at, a.Name); err != nil {
			return nil, err
		}
	}
	if !changed {
		return have, nil
	}
	return Of(ctx, tx, id)
}

func (s *Side) write(ctx context.Context, tx *store.Tx, id uuid.UUID, at [2]string, name string) error {
	return exec(ctx, tx, upsert, id, at[0], at[1], copyOf(id, at[0], at[1]), name, s.Namespace, s.Contents, s.Links,
		cmp.Or(s.State, Pending))
}

func exec(ctx context.Context, tx *store.Tx, sql string, args ...any) error {
	if _, err := tx.Exec(ctx, sql, args...); err != nil {
		return fmt.Errorf("store links: %w", err)
	}
	return nil
}

func same(a, b []clusterlink.Link) bool {
	one, _ := json.Marshal(a) // texts and numbers always encode
	other, _ := json.Marshal(b)
	return string(one) == string(other)
}

// needed are the sides that the application needs, by orchestrator and cluster. What runs where no link reaches is left out.
func needed(s clusterlink.Settings, a *application.Application) (map[[2]string]*Side, error) {
	sides := map[[2]string]*Side{}
	app, err := a.Parsed()
	if err != nil || !clusterlink.Talks(app) {
		return sides, err
	}
	var places []clusterlink.Place
	under, namespace := map[string]string{}, ""
	for _, j := range a.Jobs {
		if !j.Live() || !j.Placed() || !Able(j.Orchestrator) {
			continue
		}
		at := clusterlink.Place{Component: j.Component, Cluster: j.Cluster}
		if !slices.Contains(places, at) {
			places = append(places, at)
		}
		under[j.Cluster], namespace = j.Orchestrator, j.Namespace
	}
	links := clusterlink.Of(app, places)
	for _, at := range places {
		key := [2]string{under[at.Cluster], at.Cluster}
		for _, o := range s.Objects(links, at, namespace) {
			if sides[key] == nil {
				sides[key] = &Side{Namespace: namespace, Contents: []job.Content{}}
			}
			content := job.Content{Name: o.Name, YAML: o.JSON}
			if side := sides[key]; !slices.Contains(side.Contents, content) {
				side.Contents = append(side.Contents, content)
			}
		}
	}
	for key, side := range sides {
		slices.SortFunc(side.Contents, func(a, b job.Content) int { return cmp.Compare(a.Name, b.Name) })
		side.Links = slices.DeleteFunc(slices.Clone(links), func(l clusterlink.Link) bool {
			return l.Cluster != key[1] && !slices.ContainsFunc(l.Servers, func(p clusterlink.Place) bool { return p.Cluster == key[1] })
		})
	}
	return sides, nil
}

// Of returns the sides of an application.
func Of(ctx context.Context, q store.Querier, id uuid.UUID) ([]Side, error) {
	return store.Collect(ctx, q, "read links", pgx.RowToStructByName[Side], selectOf, id)
}

// All returns the sides of all applications.
func All(ctx context.Context, q store.Querier) ([]Side, error) {
	return store.Collect(ctx, q, "read links", pgx.RowToStructByName[Side], selectAll, uuid.Nil)
}

// ByCopy returns the side whose copy that is; nil when there is none.
func ByCopy(ctx context.Context, q store.Querier, id uuid.UUID) (*Side, error) {
	found, err := store.Collect(ctx, q, "read links", pgx.RowToStructByName[Side], selectCopy, id)
	if err != nil || len(found) == 0 {
		return nil, err
	}
	return &found[0], nil
}

// Users lists the jobs whose components run in the cluster of the side that has that copy; none where it is no side's.
func Users(ctx context.Context, q store.Querier, copied uuid.UUID) ([]uuid.UUID, error) {
	return store.Collect(ctx, q, "read users of a link", pgx.RowTo[uuid.UUID], selectUsers, copied)
}

// Seen is what was found out about a side at an epoch.
type Seen struct {
	Applied bool
	State   State
	Message string
	Gone    bool // nothing of it is left
}

// Settle stores what was found out, unless the side has changed meanwhile.
func (s *Side) Settle(ctx context.Context, tx *store.Tx, seen Seen) error {
	if seen.Gone && s.Gone() {
		return exec(ctx, tx, remove, s.Copy, s.Epoch)
	}
	applied := int64(0)
	if seen.Applied {
		applied = s.Epoch
	}
	return exec(ctx, tx, settle, s.Copy, s.Epoch, applied, seen.State, seen.Message)
}
