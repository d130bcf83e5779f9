package application_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/littoral-project/littoral/shared/application"
	"github.com/littoral-project/littoral/shared/application/applicationtest"
	"github.com/littoral-project/littoral/shared/etag"
	"github.com/littoral-project/littoral/shared/events"
	"github.com/littoral-project/littoral/shared/icoswire/jobgroup"
	"github.com/littoral-project/littoral/shared/job"
	"github.com/littoral-project/littoral/shared/problem"
	"github.com/littoral-project/littoral/shared/store"
	"github.com/littoral-project/littoral/shared/store/storetest"
	"github.com/littoral-project/littoral/shared/topology"
)

func TestMain(m *testing.M) { storetest.Main(m) }

// shop has two components; image is what an update changes.
func shop(image string) []byte {
	return fmt.Appendf(nil, `
name: shop
description: a shop
components:
  - name: web
    type: kubernetes
    requirements: {cpu: 500m, memory: 64Mi}
    manifests:
      - name: web
        manifest: {apiVersion: apps/v1, kind: Deployment, metadata: {name: web}, spec: {image: %s}}
  - name: db
    type: kubernetes
    manifests:
      - name: db
        manifest: {apiVersion: v1, kind: Pod, metadata: {name: db}}
`, image)
}

var edge = job.Target{Orchestrator: "ocm", Cluster: "edge", Node: "n1"}

// world is a database with the steps a test takes in it.
type world struct{ applicationtest.World }

func newWorld(t *testing.T) world {
	t.Helper()
	return world{applicationtest.New(t)}
}

func (w world) submit(document []byte, key string) (*application.Application, bool) {
	w.Helper()
	var app *application.Application
	var fresh bool
	require.NoError(w, w.Tx(func(ctx context.Context, tx *store.Tx) (err error) {
		app, fresh, err = applicationtest.Put(ctx, tx, application.Submission{
			Document: document, Caller: "alice", IdempotencyKey: key, LostAfter: time.Minute,
		})
		return err
	}))
	return app, fresh
}

// run brings every job of the application to Finished and Available at the edge, owned by agent.
func (w world) run(app *application.Application, agent string) *application.Application {
	w.Helper()
	app = w.Get(app.ID)
	for _, j := range app.Jobs {
		require.NoError(w, w.Tx(func(ctx context.Context, tx *store.Tx) error { return j.Place(ctx, tx, edge, "test") }))
		require.NoError(w, w.Claim(j.ID, agent))
		require.NoError(w, w.Finish(w.Job(j.ID)))
	}
	return w.Get(app.ID)
}

func (w world) executable(agent string) []*job.Job {
	w.Helper()
	jobs, err := job.Executable(context.Background(), w.DB, "ocm", agent)
	require.NoError(w, err)
	return jobs
}

func TestSubmit_theSameKeyGivesTheSameApplication(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var wg sync.WaitGroup
	var fresh atomic.Int32
	ids := make([]uuid.UUID, 8)
	for i := range ids {
		wg.Go(func() {
			app, isNew := w.submit(shop("a"), "key-1")
			ids[i] = app.ID
			if isNew {
				fresh.Add(1)
			}
		})
	}
	wg.Wait()
	require.EqualValues(t, 1, fresh.Load())
	for _, id := range ids {
		require.Equal(t, ids[0], id)
	}
	require.Equal(t, 1, w.Published(events.ApplicationSubmitted))

	err := w.Tx(func(ctx context.Context, tx *store.Tx) error {
		_, _, err := applicationtest.Put(ctx, tx, application.Submission{Document: shop("b"), Caller: "alice", IdempotencyKey: "key-1"})
		return err
	})
	require.Equal(t, problem.Conflict, problem.KindOf(err), "one key cannot name two documents")
}

// TestEventsSayWhetherPoliciesAreAboutTheApplication, so that those who follow policies sleep through all others.
func TestEventsSayWhetherPoliciesAreAboutTheApplication(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	attribute := func() any {
		w.Helper()
		all := storetest.Published(w.DB)
		return all[len(all)-1].Extensions()["watched"]
	}
	plain, _ := w.submit(shop("a"), "")
	require.Nil(t, attribute())
	w.update(plain.ID, append(shop("a"), "policies: [{security: high}]\n"...))
	require.Equal(t, "true", attribute(), "it asks for one")
	w.update(plain.ID, shop("b"))
	require.Nil(t, attribute(), "none was made of what it asked for")

	w.submit(bytes.Replace(shop("a"), []byte("cpu: 500m"), []byte("devices: [camera]"), 1), "")
	require.Equal(t, "true", attribute(), "a device that is lost violates a policy")

	handMade, _ := w.submit(shop("a"), "")
	_, err := w.DB.Exec(t.Context(), `insert into policies (id, instance, name, origin, definition, phase, deleted_at)
values (gen_random_uuid(), $1, 'p', 'api', '{}', 'enforced', now())`, handMade.ID.String())
	require.NoError(t, err)
	w.stop(handMade.ID)
	require.Equal(t, "true", attribute(), "a deleted one may have a rule yet")
}

func TestSubmit_whatIsInvalidLeavesNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	err := w.Tx(func(ctx context.Context, tx *store.Tx) error {
		_, _, err := applicationtest.Put(ctx, tx, application.Submission{Document: []byte("name: Bad Name\ncomponents: []\n")})
		return err
	})
	require.Equal(t, problem.Invalid, problem.KindOf(err))
	var rows int
	require.NoError(t, w.DB.QueryRow(context.Background(),
		`select (select count(*) from applications) + (select count(*) from jobs) + (select count(*) from history) + (select count(*) from outbox)`).Scan(&rows))
	require.Zero(t, rows)
}

func TestLife_fromSubmissionToDeletion(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	app, _ := w.submit(shop("a"), "")
	status, _ := app.Status()
	require.Equal(t, application.Pending, status)
	require.Equal(t, "shop-"+app.ID.String()[:8], app.Namespace)
	require.Empty(t, w.executable("agent-1"), "nothing is executable without a place")

	app = w.run(app, "agent-1")
	status, _ = app.Status()
	require.Equal(t, application.Available, status)

	err := w.Tx(func(ctx context.Context, tx *store.Tx) error {
		_, _, err := application.Delete(ctx, tx, app.ID, false)
		return err
	})
	require.Equal(t, problem.Conflict, problem.KindOf(err), "what runs cannot be deleted")

	require.False(t, w.delete(app.ID))
	require.Empty(t, w.executable("agent-2"), "a removal is its owner's work")
	removals := w.executable("agent-1")
	require.Len(t, removals, 2)
	for i, j := range removals {
		require.Equal(t, job.Delete, j.Type)
		require.NoError(t, w.Claim(j.ID, "agent-1"))
		require.NoError(t, w.Finish(w.Job(j.ID)))
		if i == 0 {
			status, _ = w.Get(app.ID).Status()
			require.Equal(t, application.Deleting, status)
		}
	}
	_, err = application.Get(context.Background(), w.DB, app.ID)
	require.Equal(t, problem.NotFound, problem.KindOf(err))
	require.Equal(t, 1, w.Published(events.ApplicationDeleted))
	require.NoError(t, w.Finish(&job.Job{ID: removals[0].ID, OwnerID: "agent-1", Type: job.Delete, Epoch: removals[0].Epoch}),
		"a repeated report of a removal is no fault")
}

func TestStop_beforeAnyoneTookIt(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	app, _ := w.submit(shop("a"), "")
	require.NoError(t, w.Tx(func(ctx context.Context, tx *store.Tx) error {
		stopped, err := application.Stop(ctx, tx, app.ID)
		require.NoError(t, err)
		status, _ := stopped.Status()
		require.Equal(t, application.Finished, status)
		return nil
	}))
	require.NoError(t, w.Tx(func(ctx context.Context, tx *store.Tx) error {
		_, gone, err := application.Delete(ctx, tx, app.ID, false)
		require.True(t, gone)
		return err
	}))
}

func TestStart_afterStopRunsAnewAndStillRemovesTheOldCopy(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	app, _ := w.submit(shop("a"), "")
	app = w.run(app, "agent-1")
	w.stop(app.ID)
	app = w.start(app.ID)
	require.Len(t, app.Jobs, 4, "two components that wait for a place, two clean-ups")
	cleanups := 0
	for _, j := range app.Jobs {
		if j.Cleans != nil {
			cleanups++
			require.Equal(t, "agent-1", j.OwnerID)
			require.Equal(t, edge, j.Target)
			continue
		}
		require.False(t, j.Placed())
		require.Empty(t, j.OwnerID)
		require.Equal(t, job.Create, j.Type)
	}
	require.Equal(t, 2, cleanups)
	require.Equal(t, 1, w.Published(events.ApplicationStarted))
}

func TestUpdate_touchesOnlyWhatDiffers(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	app, _ := w.submit(shop("a"), "")
	app = w.run(app, "agent-1")
	before := map[string]time.Time{}
	for _, j := range app.Jobs {
		before[j.Component] = j.UpdatedAt
	}
	require.NoError(t, w.Tx(func(ctx context.Context, tx *store.Tx) error {
		updated, err := applicationtest.Update(ctx, tx, app.ID, shop("b"), time.Minute)
		require.NoError(t, err)
		require.EqualValues(t, 2, updated.Version)
		return nil
	}))
	for _, j := range w.Get(app.ID).Jobs {
		if j.Component == "db" {
			require.Equal(t, before["db"], j.UpdatedAt, "db was not touched")
			continue
		}
		require.Equal(t, job.Replace, j.Type)
		require.Equal(t, job.Created, j.State)
		require.Equal(t, "agent-1", j.OwnerID)
		require.Contains(t, j.Instruction.Contents[0].YAML, "image: b")
	}
	work := w.executable("agent-1")
	require.Len(t, work, 1, "the replacement reaches its agent")
	require.NoError(t, w.Claim(work[0].ID, "agent-1"))
	require.NoError(t, w.Finish(w.Job(work[0].ID)))
	status, _ := w.Get(app.ID).Status()
	require.Equal(t, application.Deploying, status, "it may have to move yet")
	require.NoError(t, w.Tx(func(_ context.Context, tx *store.Tx) error { application.MarkHandled(tx, app.ID); return nil }))
	status, _ = w.Get(app.ID).Status()
	require.Equal(t, application.Available, status)
}

// TestUpdate_changesHowLongANodeMayBeSilent, with the content of a component or without.
func TestUpdate_changesHowLongANodeMayBeSilent(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	app, _ := w.submit(shop("a"), "")
	app = w.run(app, "agent-1")
	for i, document := range [][]byte{append(shop("a"), "# the same\n"...), shop("b")} {
		lostAfter := time.Duration(i+2) * time.Minute
		require.NoError(t, w.Tx(func(ctx context.Context, tx *store.Tx) error {
			_, err := applicationtest.Update(ctx, tx, app.ID, document, lostAfter)
			return err
		}))
		for _, j := range w.Get(app.ID).Jobs {
			require.Equal(t, lostAfter, j.LostAfter, j.Component)
		}
	}
}

func TestUpdate_addsAndRemovesComponents(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	app, _ := w.submit(shop("a"), "")
	app = w.run(app, "agent-1")
	without := []byte(`
name: shop
components:
  - name: cache
    type: kubernetes
    manifests: [{name: c, manifest: {apiVersion: v1, kind: Pod, metadata: {name: c}}}]
  - name: db
    type: kubernetes
    manifests:
      - name: db
        manifest: {apiVersion: v1, kind: Pod, metadata: {name: db}}
`)
	update := func(document []byte) *application.Application {
		require.NoError(t, w.Tx(func(ctx context.Context, tx *store.Tx) error {
			_, err := applicationtest.Update(ctx, tx, app.ID, document, time.Minute)
			return err
		}))
		return w.Get(app.ID)
	}
	types := func(a *application.Application) map[string]job.Type {
		m := map[string]job.Type{}
		for _, j := range a.Jobs {
			if j.Cleans == nil {
				m[j.Component] = j.Type
			}
		}
		return m
	}
	require.Equal(t, map[string]job.Type{"cache": job.Create, "db": job.Create, "web": job.Delete}, types(update(without)))
	require.Equal(t, map[string]job.Type{"cache": job.Create, "db": job.Create, "web": job.Create}, types(update(shop("a"))),
		"what comes back runs again, what was never taken is cancelled")
}

func TestPut_takesAJobGroupWithChangedObjects(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	app, _ := w.submit(shop("a"), "")
	app = w.run(app, "agent-1")
	web := app.Jobs[1]
	require.Equal(t, "web", web.Component)
	body := fmt.Appendf(nil, `{"ID": %q, "jobs": [{"id": %q, "manifests": [{"yamlString": "apiVersion: v1\nkind: Pod\nmetadata: {name: web}\n"}]}]}`, app.ID, web.ID)
	require.NoError(t, w.Tx(func(ctx context.Context, tx *store.Tx) error {
		change, err := jobgroup.ReadChange(nil, body, applicationtest.Parse)
		require.NoError(t, err)
		_, err = change.Put(ctx, tx, "", etag.Match{}, time.Minute)
		return err
	}))
	web = w.Job(web.ID)
	require.Equal(t, job.Replace, web.Type)
	require.Contains(t, web.Instruction.Contents[0].YAML, "kind: Pod")
	require.Contains(t, w.Get(app.ID).Descriptor, "kind: Pod", "the descriptor follows, so that a later start runs the same")
}

// TestPut_ofAJobGroupWithManyChanges: they are all written into the descriptor that the first of them opens.
func TestPut_ofAJobGroupWithManyChanges(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var document strings.Builder
	document.WriteString("name: shop\ncomponents:\n")
	for i := range 20 {
		fmt.Fprintf(&document, "- name: c%d\n  type: kubernetes\n  manifests:\n  - name: m\n"+
			"    manifest: {apiVersion: v1, kind: ConfigMap, metadata: {name: c%d}, data: {a: b}}\n", i, i)
	}
	app, _ := w.submit([]byte(document.String()), "")
	list := []map[string]any{}
	for i, j := range app.Jobs {
		yaml := strings.Replace(j.Instruction.Contents[0].YAML, "a: b", fmt.Sprintf("a: z%d", i), 1)
		list = append(list, map[string]any{"id": j.ID, "manifests": []map[string]any{{"yamlString": yaml}}})
	}
	body, err := json.Marshal(map[string]any{"id": app.ID, "jobs": list})
	require.NoError(t, err)
	change, err := jobgroup.ReadChange(nil, body, applicationtest.Parse)
	require.NoError(t, err)
	require.NoError(t, w.Tx(func(ctx context.Context, tx *store.Tx) error {
		_, err := change.Put(ctx, tx, "", etag.Match{}, time.Minute)
		return err
	}))
	for i, j := range w.Get(app.ID).Jobs {
		require.Equal(t, app.Jobs[i].ID, j.ID)
		require.Contains(t, j.Instruction.Contents[0].YAML, fmt.Sprintf("a: z%d\n", i))
	}
}

// TestPut_ofAJobGroupThatNamesNothing: without an id nobody knows which application is meant.
func TestPut_ofAJobGroupThatNamesNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	err := w.Tx(func(ctx context.Context, tx *store.Tx) error {
		change, err := jobgroup.ReadChange(nil, []byte(`{"appName": "shop", "jobs": []}`), applicationtest.Parse)
		require.NoError(t, err)
		_, err = change.Put(ctx, tx, "", etag.Match{}, time.Minute)
		return err
	})
	var refused *problem.Error
	require.ErrorAs(t, err, &refused)
	require.Equal(t, problem.Invalid, refused.Kind)
	require.Equal(t, "id", refused.Fields[0].Path)
}

// TestPut_ofAnObjectThatTwoComponentsList: one that was changed in one job is refused, as the other component would undo
// it; in both it is taken. That a component has its objects inline from then on changes nothing for the other.
func TestPut_ofAnObjectThatTwoComponentsList(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	app, _ := w.submit([]byte(`
name: shop
components:
  - {name: web, type: kubernetes, manifests: [web, common]}
  - {name: db, type: kubernetes, manifests: [db, common]}
manifests:
  - {name: web, manifest: {apiVersion: v1, kind: Pod, metadata: {name: web}, spec: {image: "a:1"}}}
  - {name: db, manifest: {apiVersion: v1, kind: Pod, metadata: {name: db}, spec: {image: "a:1"}}}
  - name: common
    manifest: {apiVersion: v1, kind: ConfigMap, metadata: {name: common}, data: {colour: "red", text: "on\n two lines: {}", "no": '1'}}
`), "")
	put := func(change func(j *job.Job, at int, content *job.Content)) error {
		list := []map[string]any{}
		for _, j := range w.Get(app.ID).Jobs {
			for i := range j.Instruction.Contents {
				change(j, i, &j.Instruction.Contents[i])
			}
			list = append(list, map[string]any{"id": j.ID, "instruction": map[string]any{"contents": j.Instruction.Contents}})
		}
		body, err := json.Marshal(map[string]any{"id": app.ID, "jobs": list})
		require.NoError(t, err)
		read, err := jobgroup.ReadChange(nil, body, applicationtest.Parse)
		require.NoError(t, err)
		return w.Tx(func(ctx context.Context, tx *store.Tx) error {
			_, err := read.Put(ctx, tx, "", etag.Match{}, time.Minute)
			return err
		})
	}
	in := func(component, from, to string) func(*job.Job, int, *job.Content) {
		return func(j *job.Job, _ int, c *job.Content) {
			if component == "" || j.Component == component {
				c.YAML = strings.Replace(c.YAML, from, to, 1)
			}
		}
	}
	require.NoError(t, put(in("web", "a:1", "a:2")), "its own")
	before := w.Get(app.ID)
	err := put(in("db", "red", "blue"))
	require.Equal(t, problem.Invalid, problem.KindOf(err))
	require.ErrorContains(t, err, "with the objects of the JobGroup")
	var refused *problem.Error
	require.ErrorAs(t, err, &refused)
	require.Contains(t, refused.Fields[0].Detail, `the ConfigMap "common" is in component "web" already, with other content`)
	require.Equal(t, before.Version, w.Get(app.ID).Version)
	require.NoError(t, put(in("", "red", "blue")))
	for _, j := range w.Get(app.ID).Jobs {
		require.Contains(t, j.Instruction.Contents[1].YAML, "blue")
	}
}

// TestStored_whatCameToBeRefused runs on, stops, starts and goes; another submission of it, or an update, is refused.
func TestStored_whatCameToBeRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	doubled := bytes.ReplaceAll(shop("a"), []byte("kind: Pod, metadata: {name: db}"), []byte("kind: Deployment, metadata: {name: web}"))
	doubled = bytes.ReplaceAll(doubled, []byte("apiVersion: v1"), []byte("apiVersion: apps/v1"))
	app, _ := w.submit(shop("a"), "")
	_, err := w.DB.Exec(t.Context(), `update applications set descriptor = $2 where id = $1`, app.ID, doubled)
	require.NoError(t, err)
	w.run(app, "agent-1")
	w.stop(app.ID)
	w.removed("agent-1")
	require.Len(t, w.start(app.ID).Jobs, 2)
	require.Equal(t, problem.Invalid, problem.KindOf(w.Tx(func(ctx context.Context, tx *store.Tx) error {
		_, _, err := applicationtest.Put(ctx, tx, application.Submission{Document: doubled, LostAfter: time.Minute})
		return err
	})))
	require.Equal(t, problem.Invalid, problem.KindOf(w.Tx(func(ctx context.Context, tx *store.Tx) error {
		_, err := applicationtest.Update(ctx, tx, app.ID, append(doubled, '\n'), time.Minute)
		return err
	})))
	w.stop(app.ID)
	require.True(t, w.delete(app.ID))
}

func TestClaim_oneOfManyAgentsWins(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	app, _ := w.submit(shop("a"), "")
	j := app.Jobs[0]
	require.Equal(t, problem.Conflict, problem.KindOf(w.Claim(j.ID, "early")), "nothing can be taken before it has a place")
	require.NoError(t, w.Tx(func(ctx context.Context, tx *store.Tx) error { return j.Place(ctx, tx, edge, "test") }))

	var wg sync.WaitGroup
	var won atomic.Int32
	for i := range 16 {
		wg.Go(func() {
			if err := w.Claim(j.ID, fmt.Sprintf("agent-%d", i)); err == nil {
				won.Add(1)
			} else {
				require.Equal(t, problem.Conflict, problem.KindOf(err))
			}
		})
	}
	wg.Wait()
	require.EqualValues(t, 1, won.Load())
	owner := w.Job(j.ID).OwnerID
	require.NoError(t, w.Claim(j.ID, owner), "the winner may repeat it")
	require.Equal(t, problem.NotFound, problem.KindOf(w.Claim(uuid.New(), owner)))
}

func TestClaim_afterTheLeaseFencesTheFormerOwner(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	app, _ := w.submit(shop("a"), "")
	j := app.Jobs[0]
	require.NoError(t, w.Tx(func(ctx context.Context, tx *store.Tx) error { return j.Place(ctx, tx, edge, "test") }))
	require.NoError(t, w.Claim(j.ID, "slow"))
	old := w.Job(j.ID)
	require.Empty(t, w.executable("quick"), "the lease holds")
	require.Equal(t, problem.Conflict, problem.KindOf(w.Claim(j.ID, "quick")))

	_, err := w.DB.Exec(context.Background(), `update jobs set lease_until = now() - interval '1 second' where id = $1`, j.ID)
	require.NoError(t, err)
	require.Len(t, w.executable("quick"), 1)
	require.NoError(t, w.Claim(j.ID, "quick"))
	now := w.Job(j.ID)
	require.Equal(t, "quick", now.OwnerID)
	require.Equal(t, old.Epoch+1, now.Epoch)

	require.Equal(t, problem.Conflict, problem.KindOf(w.Finish(old)), "a late report of the fenced owner is refused")
	require.Equal(t, now, w.Job(j.ID), "and changes nothing")
	require.NoError(t, w.Finish(now))

	w.stop(app.ID)
	require.NoError(t, w.Claim(j.ID, "quick"))
	_, err = w.DB.Exec(context.Background(), `update jobs set lease_until = now() - interval '1 second' where id = $1`, j.ID)
	require.NoError(t, err)
	require.Equal(t, problem.Conflict, problem.KindOf(w.Claim(j.ID, "slow")), "only its owner has a copy to remove")
	require.NoError(t, w.Claim(j.ID, "quick"))
}

// TestLease_isRenewedByEverySignOfLife of its owner, and by nothing else: an agent that works on a job for long keeps it, and
// one that has died does not.
func TestLease_isRenewedByEverySignOfLife(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	app, _ := w.submit(shop("a"), "")
	id := app.Jobs[slices.IndexFunc(app.Jobs, func(j *job.Job) bool { return j.Component == "web" })].ID
	require.NoError(t, w.Tx(func(ctx context.Context, tx *store.Tx) error { return w.Job(id).Place(ctx, tx, edge, "test") }))
	require.NoError(t, w.Claim(id, "agent-1"))
	lapse := func() {
		t.Helper()
		_, err := w.DB.Exec(t.Context(), `update jobs set lease_until = now() - interval '1 second' where id = $1`, id)
		require.NoError(t, err)
		require.Len(t, w.executable("agent-2"), 1)
		others, err := job.Executable(t.Context(), w.DB, "nuvla", "agent-2")
		require.NoError(t, err)
		require.Empty(t, others, "it is for another orchestrator")
	}
	report := func(state job.State, conditions ...job.Condition) error {
		return w.Report(job.Report{ID: id, OwnerID: "agent-1", State: state, Resource: job.Resource{Conditions: conditions}})
	}
	applied := job.Condition{Type: job.ConditionApplied, Status: "True"}
	for what, sign := range []func() error{
		func() error { return w.Claim(id, "agent-1") },
		func() error { return report(job.Progressing) },
		func() error { return report(job.Progressing, applied) },
		func() error { return report(job.Progressing, applied) }, // again
		func() error {
			return w.Tx(func(ctx context.Context, tx *store.Tx) error {
				_, err := job.Observe(ctx, tx, job.Observation{OwnerID: "agent-1", Job: id}, time.Minute)
				return err
			})
		},
		func() error { return report(job.Degraded) },
		func() error { return report(job.Degraded) },
	} {
		lapse()
		require.NoError(t, sign())
		require.NotNil(t, w.Job(id).LeaseUntil, what)
		require.WithinRange(t, *w.Job(id).LeaseUntil, time.Now(), time.Now().Add(2*time.Minute), what)
	}
	require.NoError(t, w.Claim(id, "agent-1"))
	more := func(cpu string) { w.update(app.ID, bytes.Replace(shop("a"), []byte("500m"), []byte(cpu), 1)) }
	more("600m")
	require.Equal(t, []any{job.Progressing, "agent-1"}, []any{w.Job(id).State, w.Job(id).OwnerID})
	require.Empty(t, w.executable("agent-2"), "what is asked for besides does not end it")
	lapse()
	more("700m")
	require.Len(t, w.executable("agent-2"), 1, "nor renew it")
}

func TestExecutable_aKnownAgentSeesItsOwnPlacesOnly(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	_, err := w.DB.Exec(context.Background(), `insert into nodes (cluster, node, last_seen, agent) values ('edge', 'n1', now(), 'mine'), ('far', 'n1', now(), 'other')`)
	require.NoError(t, err)
	app, _ := w.submit(shop("a"), "")
	for _, j := range app.Jobs {
		require.NoError(t, w.Tx(func(ctx context.Context, tx *store.Tx) error { return j.Place(ctx, tx, edge, "test") }))
	}
	require.Len(t, w.executable("mine"), 2)
	require.Empty(t, w.executable("other"))
	require.Len(t, w.executable("hub-uid-that-telemetry-does-not-know"), 2)
	require.Equal(t, problem.Conflict, problem.KindOf(w.Claim(app.Jobs[0].ID, "other")))
	require.NoError(t, w.Claim(app.Jobs[0].ID, "mine"))
}

// TestClaim_isRefusedToAnAgentOfAnotherOrchestrator: what an agent was listed may have moved to another orchestrator's place before it
// takes it. There nobody is known to be an agent, and still it is not its own.
func TestClaim_isRefusedToAnAgentOfAnotherOrchestrator(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	_, err := w.DB.Exec(context.Background(), `insert into nodes (cluster, node, last_seen, orchestrator, agent)
values ('far', 'n1', now(), 'nuvla', 'mine'), ('edge', 'n1', now(), $1, '')`, edge.Orchestrator)
	require.NoError(t, err)
	app, _ := w.submit(shop("a"), "")
	for _, j := range app.Jobs {
		require.NoError(t, w.Tx(func(ctx context.Context, tx *store.Tx) error { return j.Place(ctx, tx, edge, "test") }))
	}
	require.Equal(t, problem.Conflict, problem.KindOf(w.Claim(app.Jobs[0].ID, "mine")))
	require.Empty(t, w.executable("mine"))
	require.NoError(t, w.Claim(app.Jobs[0].ID, "hub-uid-that-telemetry-does-not-know"))
	_, err = w.DB.Exec(context.Background(), `update nodes set orchestrator = '' where agent = 'mine'`)
	require.NoError(t, err)
	require.NoError(t, w.Claim(app.Jobs[1].ID, "mine"), "nobody knows what it speaks to before its nodes are seen again")
}

// TestClaim_afterItsFormerCopyIsRemoved: an agent that knows copies by the name of their job would remove the new one.
func TestClaim_afterItsFormerCopyIsRemoved(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	app, _ := w.submit(shop("a"), "")
	app = w.run(app, "agent-1")
	w.stop(app.ID)
	app = w.start(app.ID)
	var back, removal *job.Job // of web
	for _, j := range app.Jobs {
		switch {
		case j.Component != "web":
		case j.Cleans != nil:
			removal = j
		default:
			back = j
		}
	}
	require.NoError(t, w.Tx(func(ctx context.Context, tx *store.Tx) error { return back.Place(ctx, tx, edge, "test") }))
	for _, j := range w.executable("agent-1") {
		require.NotEqual(t, back.ID, j.ID)
	}
	err := w.Claim(back.ID, "agent-1")
	require.Equal(t, problem.Conflict, problem.KindOf(err))
	require.ErrorContains(t, err, "agent-1 has to remove its former copy")

	require.NoError(t, w.Claim(removal.ID, "agent-1"))
	require.NoError(t, w.Report(job.Report{
		ID: removal.ID, OwnerID: "agent-1", Type: job.Delete, State: job.Finished, Epoch: removal.Epoch,
		Resource: job.Resource{Conditions: []job.Condition{{Type: "Deleted", Status: "True"}}},
	}))
	require.Equal(t, back.ID, w.executable("agent-1")[0].ID)
	require.NoError(t, w.Claim(back.ID, "agent-1"))
}

// TestClaim_recordsSinceWhenTheJobIsThere: from then on it may keep devices of its place busy.
func TestClaim_recordsSinceWhenTheJobIsThere(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	app, _ := w.submit(shop("a"), "")
	id := app.Jobs[1].ID
	taken := func() (at *time.Time) {
		require.NoError(t, w.DB.QueryRow(t.Context(), `select taken_at from jobs where id = $1`, id).Scan(&at))
		return at
	}
	place := func(at job.Target) {
		require.NoError(t, w.Tx(func(ctx context.Context, tx *store.Tx) error { return w.Job(id).Place(ctx, tx, at, "test") }))
		require.Nil(t, taken())
	}
	place(edge)
	require.NoError(t, w.Claim(id, "agent-1"))
	first := taken()
	require.NotNil(t, first)
	require.NoError(t, w.Claim(id, "agent-1"))
	require.NoError(t, w.Finish(w.Job(id)))
	w.update(app.ID, shop("b"))
	require.NoError(t, w.Claim(id, "agent-1"))
	require.Equal(t, first, taken(), "it has been there all the time")

	require.NoError(t, w.Tx(func(ctx context.Context, tx *store.Tx) error { return w.Job(id).Displace(ctx, tx, "silent", false) }))
	place(job.Target{Orchestrator: "ocm", Cluster: "edge", Node: "n2"})
	require.NoError(t, w.Claim(id, "agent-1"))
	require.True(t, taken().After(*first))
	ready := w.Published(events.JobReady)
	require.NoError(t, w.Tx(func(ctx context.Context, tx *store.Tx) error { return job.Release(ctx, tx, id, "agent-1") }))
	require.Nil(t, taken(), "it was given back")
	require.Equal(t, ready+1, w.Published(events.JobReady), "and those who wait for an event may take it")
}

// TestReport_onContentThatCameBack: what was replaced for a while is the present content again.
func TestReport_onContentThatCameBack(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	app, _ := w.submit(shop("a"), "")
	id := w.run(app, "agent-1").Jobs[1].ID
	w.update(app.ID, shop("b"))
	w.update(app.ID, shop("a"))
	require.NoError(t, w.Claim(id, "agent-1"))
	present := [][]job.Content{{{YAML: w.Job(id).Instruction.Contents[0].YAML}}}
	require.NoError(t, w.Report(job.Report{ID: id, OwnerID: "agent-1", State: job.Finished, Deployed: present}))
	require.Equal(t, job.Finished, w.Job(id).State)
}

func TestReport(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	app, _ := w.submit(shop("a"), "")
	app = w.run(app, "agent-1")
	j := app.Jobs[0]
	good := job.Report{ID: j.ID, OwnerID: "agent-1", Type: job.Create, State: job.Finished, Epoch: j.Epoch}
	for name, row := range map[string]struct {
		change func(*job.Report)
		kind   problem.Kind
	}{
		"another owner":               {func(r *job.Report) { r.OwnerID = "agent-2" }, problem.Conflict},
		"nobody":                      {func(r *job.Report) { r.OwnerID = "" }, problem.Conflict},
		"an older epoch":              {func(r *job.Report) { r.Epoch = 99 }, problem.Conflict},
		"other work":                  {func(r *job.Report) { r.Type = job.Delete }, problem.Conflict},
		"no such job":                 {func(r *job.Report) { r.ID = uuid.New() }, problem.NotFound},
		"no progress":                 {func(r *job.Report) { r.State = job.Created }, problem.Invalid},
		"back from the end":           {func(r *job.Report) { r.State = job.Progressing }, problem.Conflict},
		"a condition without a type":  {func(r *job.Report) { r.Resource.Conditions = []job.Condition{{Status: "True"}} }, problem.Invalid},
		"a condition that is perhaps": {func(r *job.Report) { r.Resource.Conditions = []job.Condition{{Type: "X", Status: "Perhaps"}} }, problem.Invalid},
	} {
		t.Run(name, func(t *testing.T) {
			r := good
			row.change(&r)
			err := w.Report(r)
			require.Error(t, err)
			require.Equal(t, row.kind, problem.KindOf(err), err)
			require.Equal(t, j, w.Job(j.ID), "nothing has changed")
		})
	}
	finished := w.Published(events.JobFinished)
	require.NoError(t, w.Report(good))
	require.Equal(t, finished, w.Published(events.JobFinished), "a repeat is announced once")
}

// TestReport_isFinishedByItsConditions, as what is observed is.
func TestReport_isFinishedByItsConditions(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	app, _ := w.submit(shop("a"), "")
	j := w.run(app, "agent-1").Jobs[0]
	report := func(typ job.Type, conditions ...job.Condition) job.State {
		require.NoError(t, w.Report(job.Report{
			ID: j.ID, OwnerID: "agent-1", Type: typ, State: job.Finished, Resource: job.Resource{Conditions: conditions},
		}))
		return w.Job(j.ID).State
	}
	unavailable := job.Condition{Type: job.ConditionAvailable, Status: "False"}
	for _, fails := range []job.Condition{unavailable, {Type: job.ConditionDegraded, Status: "True"}} {
		require.Equal(t, job.Degraded, report(job.Create, job.Condition{Type: job.ConditionApplied, Status: "True"}, fails))
		require.Equal(t, job.Finished, report(job.Create), "without conditions the agent is taken at its word")
		require.True(t, w.Job(j.ID).Available())
	}
	w.stop(app.ID)
	require.NoError(t, w.Claim(j.ID, "agent-1"))
	require.Equal(t, job.Finished, report(job.Delete, unavailable), "what is removed is not available")
}

// TestReport_ofDegradedWithoutAReason: the conditions say at least whose word it is, until the agent says more.
func TestReport_ofDegradedWithoutAReason(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	app, _ := w.submit(shop("a"), "")
	j := w.run(app, "agent-1").Jobs[0]
	why := func() string {
		if c := w.Job(j.ID).Condition(job.ConditionDegraded); c != nil {
			require.Equal(t, "True", c.Status)
			return c.Reason
		}
		return ""
	}
	report := func(state job.State, conditions ...job.Condition) {
		require.NoError(t, w.Report(job.Report{
			ID: j.ID, OwnerID: "agent-1", State: state, Resource: job.Resource{Conditions: conditions},
		}))
		require.Equal(t, state, w.Job(j.ID).State)
	}
	observe := func(state job.State, conditions ...job.Condition) {
		require.NoError(t, w.Tx(func(ctx context.Context, tx *store.Tx) error {
			_, err := job.Observe(ctx, tx, job.Observation{
				Epoch: j.Epoch, Job: j.ID, Resource: job.Resource{Conditions: conditions},
			}, time.Minute)
			return err
		}))
		require.Equal(t, state, w.Job(j.ID).State)
	}
	runs := job.Condition{Type: job.ConditionAvailable, Status: "True"}
	applied := job.Condition{Type: job.ConditionApplied, Status: "True"}
	refused := job.Condition{Type: job.ConditionApplied, Status: "False", Reason: "Refused"}
	slow := job.Condition{Type: job.ConditionDegraded, Status: "True", Reason: "Slow"}

	report(job.Degraded)
	require.Equal(t, "the agent reported Degraded and gave no reason", w.Job(j.ID).Condition(job.ConditionDegraded).Message)
	require.NotNil(t, w.Job(j.ID).Condition(job.ConditionAvailable), "what there was is there yet")
	before := w.Published(events.ResourceChanged)
	report(job.Degraded)
	observe(job.Degraded)
	require.Equal(t, before, w.Published(events.ResourceChanged), "nothing is news")
	observe(job.Degraded, applied)
	require.Equal(t, "AsReported", why(), "that says nothing about it")
	report(job.Degraded, append(w.Job(j.ID).Conditions, runs)...)
	require.Len(t, w.Job(j.ID).Conditions, 3, "an echo of it is no reason")
	report(job.Degraded, runs, slow)
	require.Equal(t, "Slow", why())
	report(job.Degraded, runs, refused)
	require.Empty(t, why(), "that it was refused is one")
	observe(job.Degraded, runs, refused) // what runs is what was there before
	require.Equal(t, "Refused", w.Job(j.ID).Wrong())
	for _, end := range []func(){
		func() { report(job.Finished) },
		func() { report(job.Finished, append(w.Job(j.ID).Conditions, runs)...) },
		func() { observe(job.Finished, runs) },
	} {
		report(job.Degraded, applied)
		require.Equal(t, "AsReported", why())
		end()
		require.Empty(t, why())
	}

	for _, besides := range []struct {
		said []job.Condition
		why  string
	}{{[]job.Condition{runs}, "AsReported"}, {[]job.Condition{runs, refused}, ""}} {
		require.NoError(t, w.Tx(func(ctx context.Context, tx *store.Tx) error {
			_, err := w.Job(j.ID).MarkMisplaced(ctx, tx, job.Violating, "it is too hot there")
			return err
		}))
		report(job.Degraded, besides.said...)
		require.NoError(t, w.Tx(func(ctx context.Context, tx *store.Tx) error {
			return w.Job(j.ID).ReleaseMisplaced(ctx, tx, job.Violating, "it is cooler")
		}))
		require.Equal(t, []any{job.Degraded, besides.why}, []any{w.Job(j.ID).State, why()}, "it ran badly besides")
	}
}

func TestObserve(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	app, _ := w.submit(shop("a"), "")
	app = w.run(app, "agent-1")
	j := app.Jobs[0]
	observe := func(s job.Observation) error {
		s.Job = j.ID
		return w.Tx(func(ctx context.Context, tx *store.Tx) error {
			_, err := job.Observe(ctx, tx, s, time.Minute)
			return err
		})
	}
	conditions := func(status string) job.Resource {
		return job.Resource{Conditions: []job.Condition{{Type: job.ConditionAvailable, Status: status}}}
	}
	require.Equal(t, problem.Conflict, problem.KindOf(observe(job.Observation{Resource: conditions("False")})), "it must say which copy")
	require.Equal(t, problem.Conflict, problem.KindOf(observe(job.Observation{Resource: conditions("False"), Epoch: j.Epoch + 1})))
	stray := conditions("False")
	stray.UUID = "res-of-another-copy"
	require.Equal(t, problem.Conflict, problem.KindOf(observe(job.Observation{Resource: stray})))

	require.NoError(t, observe(job.Observation{Resource: conditions("False"), Epoch: j.Epoch}))
	require.Equal(t, job.Degraded, w.Job(j.ID).State)
	status, _ := w.Get(app.ID).Status()
	require.Equal(t, application.Degraded, status)
	require.NoError(t, observe(job.Observation{Resource: conditions("True"), Epoch: j.Epoch}))
	require.Equal(t, job.Finished, w.Job(j.ID).State)
	require.Equal(t, 1, w.Published(events.JobDegraded))

	t.Run("a removal is done when its agent says so", func(t *testing.T) {
		w.stop(app.ID)
		require.NoError(t, w.Claim(j.ID, "agent-1"))
		require.NoError(t, w.Report(job.Report{ID: j.ID, OwnerID: "agent-1", Type: job.Delete, State: job.Degraded, Epoch: j.Epoch}))
		require.NoError(t, observe(job.Observation{Resource: conditions("True"), Epoch: j.Epoch}))
		require.Equal(t, job.Degraded, w.Job(j.ID).State, "it could not remove the copy, which runs yet")
		require.Equal(t, "agent-1", w.Job(j.ID).OwnerID)
	})
}

// TestObserve_ofWhatItsAgentHasApplied: agents of ICOS tell once that they wait for it, and from then on what they see. Before
// that, what is seen may be the former content.
func TestObserve_ofWhatItsAgentHasApplied(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	app, _ := w.submit(shop("a"), "")
	id := app.Jobs[slices.IndexFunc(app.Jobs, func(j *job.Job) bool { return j.Component == "web" })].ID
	require.NoError(t, w.Tx(func(ctx context.Context, tx *store.Tx) error { return w.Job(id).Place(ctx, tx, edge, "test") }))
	report := func(conditions ...job.Condition) {
		require.NoError(t, w.Report(job.Report{
			ID: id, OwnerID: "agent-1", State: job.Progressing, Resource: job.Resource{UUID: "res-1", Conditions: conditions},
		}))
	}
	observe := func(status string) job.State {
		require.NoError(t, w.Tx(func(ctx context.Context, tx *store.Tx) error {
			_, err := job.Observe(ctx, tx, job.Observation{OwnerID: "agent-1", Job: id, Resource: job.Resource{
				Conditions: []job.Condition{{Type: job.ConditionAvailable, Status: status}},
			}}, time.Minute)
			return err
		}))
		return w.Job(id).State
	}
	for round, image := range []string{"a", "b"} {
		if round > 0 {
			w.update(app.ID, shop(image))
		}
		require.NoError(t, w.Claim(id, "agent-1"))
		require.Equal(t, job.Progressing, observe("True"))
		report()
		require.Equal(t, job.Progressing, observe("True"), "it has only begun")
		report(job.Condition{Type: job.ConditionAvailable, Status: "True"})
		require.Equal(t, job.Progressing, observe("False"))
		require.NoError(t, w.Claim(id, "agent-1"), "it only renews its lease")
		require.Equal(t, job.Finished, observe("True"))
		require.Nil(t, w.Job(id).LeaseUntil)
		require.Equal(t, round+1, w.Published(events.JobFinished))
	}

	other, _ := w.submit(shop("a"), "")
	id = other.Jobs[0].ID
	require.NoError(t, w.Tx(func(ctx context.Context, tx *store.Tx) error { return w.Job(id).Place(ctx, tx, edge, "test") }))
	require.NoError(t, w.Claim(id, "agent-2"))
	require.NoError(t, w.Report(job.Report{
		ID: id, OwnerID: "agent-2", State: job.Progressing,
		Resource: job.Resource{Conditions: []job.Condition{{Type: job.ConditionApplied, Status: "True"}}},
	}))
	_, err := w.DB.Exec(t.Context(), `update jobs set lease_until = now() - interval '1 second' where id = $1`, id)
	require.NoError(t, err)
	require.NoError(t, w.Claim(id, "agent-1"))
	require.Equal(t, job.Progressing, observe("True"), "another agent has applied it, this one has not")
}

// TestObserve_ofWhatShouldHaveLeft: the agent sees a copy that runs well, and knows nothing of the policy.
func TestObserve_ofWhatShouldHaveLeft(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	app, _ := w.submit(shop("a"), "")
	j := w.run(app, "agent-1").Jobs[0]
	step := func(fn func(ctx context.Context, tx *store.Tx, j *job.Job) error) *job.Job {
		require.NoError(t, w.Tx(func(ctx context.Context, tx *store.Tx) error { return fn(ctx, tx, w.Job(j.ID)) }))
		return w.Job(j.ID)
	}
	strain := func(ctx context.Context, tx *store.Tx, j *job.Job) error {
		_, err := j.MarkMisplaced(ctx, tx, job.Violating, "it is too hot there")
		return err
	}
	observe := func(status string) *job.Job {
		return step(func(ctx context.Context, tx *store.Tx, j *job.Job) error {
			_, err := job.Observe(ctx, tx, job.Observation{Epoch: j.Epoch, Job: j.ID, Resource: job.Resource{
				Conditions: []job.Condition{{Type: job.ConditionAvailable, Status: status}},
			}}, time.Minute)
			return err
		})
	}
	step(strain)
	seen := observe("True")
	require.Equal(t, job.Degraded, seen.State)
	require.Equal(t, "it is too hot there", seen.Condition(job.ConditionDegraded).Message)
	require.Nil(t, seen.LeaseUntil, "nobody has anything to do")
	before := w.Published(events.ResourceChanged)
	require.Nil(t, observe("True").LeaseUntil)
	require.Equal(t, before, w.Published(events.ResourceChanged), "nothing is news")
	require.NoError(t, w.Tx(func(ctx context.Context, tx *store.Tx) error {
		news, err := w.Job(j.ID).MarkMisplaced(ctx, tx, job.Violating, "it is too hot there")
		require.False(t, news)
		return err
	}))

	require.NoError(t, w.Tx(func(ctx context.Context, tx *store.Tx) error {
		return w.Job(j.ID).Remediate(ctx, tx, job.Remedy{Type: job.ScaleUp}, "another policy asks for it")
	}), "it may be helped where it is")
	require.NoError(t, w.Claim(j.ID, "agent-1"))
	for _, conditions := range [][]job.Condition{{{Type: job.ConditionAvailable, Status: "True"}}, nil} {
		require.NoError(t, w.Report(job.Report{
			ID: j.ID, OwnerID: "agent-1", State: job.Finished, Resource: job.Resource{Conditions: conditions},
		}))
		done := w.Job(j.ID)
		require.Equal(t, job.Degraded, done.State, "the agent has done as asked, and it should not be there")
		require.Equal(t, "it is too hot there", done.Condition(job.ConditionDegraded).Message)
		require.Equal(t, job.RemedyDone, done.Remediations[0].Status)
		require.Nil(t, done.LeaseUntil, "nobody has anything to do")
	}
	done := observe("True")
	require.Equal(t, job.Degraded, done.State)
	require.Nil(t, done.LeaseUntil, "else the agent would scale it once more")

	relieve := func(ctx context.Context, tx *store.Tx, j *job.Job) error {
		return j.ReleaseMisplaced(ctx, tx, job.Violating, "it is cooler")
	}
	require.Equal(t, job.Finished, step(relieve).State)
	step(strain)
	observe("False")
	require.Equal(t, job.Degraded, step(relieve).State, "it also runs badly")
	require.Equal(t, job.Finished, observe("True").State)
}

func TestRemediations_areThoseOfThePresentCopy(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for name, leave := range map[string]func(ctx context.Context, tx *store.Tx, j *job.Job) error{
		"a move":      func(ctx context.Context, tx *store.Tx, j *job.Job) error { return j.Displace(ctx, tx, "hot", true) },
		"new content": func(ctx context.Context, tx *store.Tx, j *job.Job) error { return j.Replace(ctx, tx, j.Instruction) },
	} {
		t.Run(name, func(t *testing.T) {
			app, _ := w.submit(shop("a"), "")
			j := w.run(app, "agent-1").Jobs[0]
			require.NoError(t, w.Tx(func(ctx context.Context, tx *store.Tx) error {
				return j.Remediate(ctx, tx, job.Remedy{Type: job.ScaleUp, Step: 4}, "it is slow")
			}))
			require.Len(t, w.Job(j.ID).Remediations, 1)
			require.NoError(t, w.Tx(func(ctx context.Context, tx *store.Tx) error { return leave(ctx, tx, w.Job(j.ID)) }))
			require.Empty(t, w.Job(j.ID).Remediations, "it has as many copies as are written again")
		})
	}
}

// serve has the agent serve the edge's node, in a cluster of the identifier, and whatever follows from that done.
func (w world) serve(agent, cluster string) {
	w.Helper()
	w.seen(agent, cluster)
	for range 2 {
		found, err := application.Handovers(context.Background(), w.DB)
		require.NoError(w, err)
		for range 2 { // the second changes nothing
			for _, h := range found {
				require.NoError(w, w.Tx(h.Do))
			}
		}
	}
	found, err := application.Handovers(context.Background(), w.DB)
	require.NoError(w, err)
	require.Empty(w, found)
}

// seen has telemetry tell that the agent serves the edge's node.
func (w world) seen(agent, cluster string) {
	w.Helper()
	taxonomy := &topology.Taxonomy{Cluster: map[string]topology.Cluster{"site": {
		Type: "ocm", Name: edge.Cluster, AgentID: agent, UUID: cluster,
		Node: map[string]topology.Node{edge.Node: {Name: edge.Node}},
	}}}
	require.NoError(w, w.Tx(func(ctx context.Context, tx *store.Tx) error {
		_, err := topology.Save(ctx, tx, taxonomy, time.Now(), time.Minute)
		return err
	}))
}

// TestHandover_toAnotherAgentOfTheSameCluster: what runs there runs on; all that is to be done with it is the other's.
func TestHandover_toAnotherAgentOfTheSameCluster(t *testing.T) {
	t.Parallel()
	for _, uuid := range []string{"c1", ""} { // or telemetry does not say that it is the same
		w := newWorld(t)
		w.serve("agent-1", uuid)
		app, _ := w.submit(shop("a"), "")
		app = w.run(app, "agent-1")
		other, _ := w.submit(shop("a"), "")
		other = w.run(other, "deploymentmanager-ocm")
		removed, _ := w.submit(shop("a"), "")
		removed = w.run(removed, "agent-1")
		w.stop(removed.ID)
		require.NoError(t, w.Claim(removed.Jobs[0].ID, "agent-1"))
		w.serve("agent-2", uuid)

		require.Equal(t, other, w.Get(other.ID), "what no agent owns that telemetry told of is left alone")
		for _, j := range app.Jobs {
			now := w.Job(j.ID)
			require.Equal(t, []any{job.Finished, "agent-2", j.Epoch + 1, edge}, []any{now.State, now.OwnerID, now.Epoch, now.Target})
			require.True(t, now.Available())
			require.Equal(t, problem.Conflict, problem.KindOf(w.Finish(j)), "the former owner is fenced")
		}
		require.Empty(t, w.executable("agent-1"))
		require.Len(t, w.executable("agent-2"), 2, "a removal that waits, and one that the former agent had begun")
		w.stop(app.ID)
		w.removed("agent-2")
		require.True(t, w.delete(app.ID))
		require.True(t, w.delete(removed.ID))
	}
}

// TestHandover_ofWhatAnAgentTookInBetween: agents changed more than once before anybody looked, and each owns something.
func TestHandover_ofWhatAnAgentTookInBetween(t *testing.T) {
	t.Parallel()
	for _, last := range []string{"agent-1", "agent-3"} {
		w := newWorld(t)
		w.serve("agent-1", "c1")
		app, _ := w.submit(shop("a"), "")
		app = w.run(app, "agent-1")
		w.seen("agent-2", "c1")
		between, _ := w.submit(shop("a"), "")
		between = w.run(between, "agent-2")
		w.stop(between.ID)
		w.serve(last, "c1")
		for _, j := range append(app.Jobs, between.Jobs...) {
			require.Equal(t, last, w.Job(j.ID).OwnerID)
		}
		w.removed(last)
		require.True(t, w.delete(between.ID))
	}
}

// TestHandover_ofASiteThatWasSetUpAnew: nobody would tell that what ran there runs no more, so it is placed anew; the
// other agent removes what may be left of it, which frees what it held.
func TestHandover_ofASiteThatWasSetUpAnew(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.serve("agent-1", "c1")
	app, _ := w.submit(shop("a"), "")
	app = w.run(app, "agent-1")
	deleted, _ := w.submit(shop("a"), "")
	deleted = w.run(deleted, "agent-1")
	w.stop(deleted.ID)
	w.serve("agent-1", "c1-b")
	require.Equal(t, app, w.Get(app.ID), "its agent is the same")
	w.serve("agent-2", "c2")
	require.Equal(t, 1, w.Published(events.ApplicationDisplaced))
	status, _ := w.Get(app.ID).Status()
	require.Equal(t, application.Pending, status)
	require.Len(t, w.executable("agent-2"), 4)
	w.removed("agent-2")
	require.True(t, w.delete(deleted.ID))
	app = w.run(app, "agent-2")
	require.Len(t, app.Jobs, 2, "nothing is left of the former site")

	// What left while the node was away is the next agent's to remove too.
	require.NoError(t, w.Tx(func(ctx context.Context, tx *store.Tx) error { return app.Jobs[0].Displace(ctx, tx, "silent", false) }))
	w.serve("agent-3", "c2")
	clean := w.executable("agent-3")
	require.Len(t, clean, 1)
	require.NotNil(t, clean[0].Cleans)
	w.removed("agent-3")
	require.Len(t, w.Get(app.ID).Jobs, 2)
}

// TestExecutable_whatAStrangerTookIsItsOwn: before telemetry tells of an agent it is kept from no place; and later it is not
// from what it has taken at a place of another, or nobody would ever remove that.
func TestExecutable_whatAStrangerTookIsItsOwn(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.serve("agent-1", "c1")
	app, _ := w.submit(shop("a"), "")
	app = w.run(app, "stranger")
	_, err := w.DB.Exec(t.Context(), `insert into nodes (cluster, node, last_seen, agent, served_by)
values ('elsewhere', 'n9', now(), 'stranger', 'stranger')`)
	require.NoError(t, err)
	w.stop(app.ID)
	require.Empty(t, w.executable("agent-1"))
	require.Len(t, w.executable("stranger"), len(app.Jobs))
	w.removed("stranger")
	require.True(t, w.delete(app.ID))
}

func TestDisplaceLost_movesOnlyWhatItsOwnTimeoutSays(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	app, _ := w.submit(shop("a"), "")
	app = w.run(app, "agent-1")
	both := func(seconds, other int, schedulable bool) {
		_, err := w.DB.Exec(context.Background(), `insert into topology (snapshot, taxonomy, at) values (gen_random_uuid(), '{}', now())
on conflict (singleton) do update set at = now()`)
		require.NoError(t, err)
		_, err = w.DB.Exec(context.Background(), `insert into nodes (cluster, node, last_seen, schedulable)
values ('edge', 'n1', now() - make_interval(secs => $1), $3), ('edge', 'n2', now() - make_interval(secs => $2), true)
on conflict (cluster, node) do update set last_seen = excluded.last_seen, schedulable = excluded.schedulable`, seconds, other, schedulable)
		require.NoError(t, err)
	}
	heard := func(seconds int, schedulable bool) { both(seconds, 0, schedulable) }
	lost := func() []uuid.UUID {
		ids, err := application.Lost(context.Background(), w.DB)
		require.NoError(t, err)
		return ids
	}
	heard(30, true)
	require.Empty(t, lost(), "half a minute is less than the minute it bears")
	heard(61, true)
	require.Equal(t, []uuid.UUID{app.ID}, lost())
	_, err := w.DB.Exec(context.Background(), `update topology set at = now() - interval '1 minute'`)
	require.NoError(t, err)
	require.Empty(t, lost(), "while telemetry as a whole is away, no node is lost")
	both(630, 600, true)
	require.Empty(t, lost(), "nor while it answers and tells of nobody")
	both(661, 600, true)
	require.Equal(t, []uuid.UUID{app.ID}, lost(), "what was lost before that stays lost")
	both(630, 0, true)
	back := func(seconds int) {
		_, err := w.DB.Exec(context.Background(), `update topology set silent_until = now() - make_interval(secs => $1)`, seconds)
		require.NoError(t, err)
	}
	back(59)
	require.Empty(t, lost(), "nor when it has come back and told of others first")
	back(61)
	require.Equal(t, []uuid.UUID{app.ID}, lost(), "but of one that is still silent then")
	heard(0, false)
	require.Equal(t, []uuid.UUID{app.ID}, lost(), "a drained node is left at once")

	displace := func() {
		require.NoError(t, w.Tx(func(ctx context.Context, tx *store.Tx) error { return application.DisplaceLost(ctx, tx, app.ID) }))
	}
	displace()
	require.Empty(t, lost(), "what has left is not found again")
	displace()
	require.Equal(t, 1, w.Published(events.ApplicationDisplaced))
	after := w.Get(app.ID)
	status, _ := after.Status()
	require.Equal(t, application.Pending, status)
	for _, j := range app.Jobs {
		require.Equal(t, problem.Conflict, problem.KindOf(w.Finish(j)), "the former owner is fenced")
	}
	clean := w.executable("agent-1")
	require.Len(t, clean, 2, "it is told to remove what it still runs")
	for _, c := range clean {
		require.NotNil(t, c.Cleans)
		require.NoError(t, w.Claim(c.ID, "agent-1"))
		require.NoError(t, w.Finish(w.Job(c.ID)))
	}
	require.Len(t, w.Get(app.ID).Jobs, 2)
}

// TestDisplaceLost_bringsNothingBack: what an update took out is removed where it is, also when its node is drained meanwhile.
func TestDisplaceLost_bringsNothingBack(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	app, _ := w.submit(withCache, "")
	w.run(app, "agent-1")
	w.update(app.ID, shop("b"))
	w.serve("agent-1", "c1")
	_, err := w.DB.Exec(t.Context(), `update nodes set schedulable = false`)
	require.NoError(t, err)
	require.NoError(t, w.Tx(func(ctx context.Context, tx *store.Tx) error { return application.DisplaceLost(ctx, tx, app.ID) }))
	for _, j := range w.Get(app.ID).Jobs {
		switch {
		case j.Component == "cache":
			require.Equal(t, []any{job.Delete, job.Created, "agent-1", edge}, []any{j.Type, j.State, j.OwnerID, j.Target})
		case j.Cleans == nil:
			require.False(t, j.Placed(), j.Component)
		}
	}
}

// TestDisplaceLost_bearsWithEachComponent for as long as its descriptor says.
func TestDisplaceLost_bearsWithEachComponent(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	app, _ := w.submit(shop("a"), "")
	w.run(app, "agent-1")
	w.serve("agent-1", "c1")
	for _, now := range []string{
		`update jobs set lost_after = interval '10 min' where component = 'web'`,
		`update nodes set last_seen = now() - interval '2 min'`,
		`insert into nodes (cluster, node, last_seen) values ('edge', 'n2', now())`,
		`update topology set at = now()`,
	} {
		_, err := w.DB.Exec(t.Context(), now)
		require.NoError(t, err)
	}
	require.NoError(t, w.Tx(func(ctx context.Context, tx *store.Tx) error { return application.DisplaceLost(ctx, tx, app.ID) }))
	for _, j := range w.Get(app.ID).Jobs {
		if j.Cleans == nil {
			require.Equal(t, j.Component == "web", j.Placed(), j.Component)
		}
	}
}

// TestPut_keepsAnothersChange: what is written of a JobGroup while another change is under way is added to that.
func TestPut_keepsAnothersChange(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	app, _ := w.submit(withCache, "")
	part := w.Get(app.ID)
	part.Jobs = slices.DeleteFunc(part.Jobs, func(j *job.Job) bool { return j.Component != "web" })
	body, err := json.Marshal(jobgroup.Of(part))
	require.NoError(t, err)
	change, err := jobgroup.ReadChange(nil, []byte(strings.ReplaceAll(string(body), "image: b", "image: mine")), applicationtest.Parse)
	require.NoError(t, err)
	theirs := strings.ReplaceAll(string(withCache), "kind: Pod, metadata: {name: c}",
		"kind: Pod, metadata: {name: c, labels: {by: other}}")
	require.NotEqual(t, string(withCache), theirs)
	done := make(chan error)
	require.NoError(t, w.Tx(func(ctx context.Context, tx *store.Tx) error {
		if _, err := applicationtest.Update(ctx, tx, app.ID, []byte(theirs), time.Minute); err != nil {
			return err
		}
		go func() {
			done <- w.Tx(func(ctx context.Context, tx *store.Tx) error {
				_, err := change.Put(ctx, tx, "", etag.Match{}, time.Minute)
				return err
			})
		}()
		require.Eventually(t, func() (waits bool) {
			err := w.DB.QueryRow(t.Context(), `select exists (select 1 from pg_stat_activity where datname = current_database()
and wait_event_type = 'Lock')`).Scan(&waits)
			return err == nil && waits
		}, 10*time.Second, 5*time.Millisecond)
		return nil
	}))
	require.NoError(t, <-done)
	after := w.Get(app.ID).Descriptor
	require.Contains(t, after, "by: other")
	require.Contains(t, after, "image: mine")
}

// TestForgetCleanups: each move leaves one behind, and the application may live for years.
func TestForgetCleanups(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	app, _ := w.submit(shop("a"), "")
	for _, row := range []struct{ state, age string }{{"Finished", "2 days"}, {"Finished", "1 hour"}, {"Progressing", "2 days"}} {
		_, err := w.DB.Exec(t.Context(), `insert into jobs
(id, application_id, component, cleans, type, state, instruction, lost_after, resource_name, updated_at)
select gen_random_uuid(), application_id, component, id, 'DeleteDeployment', $2, instruction, lost_after, resource_name,
  now() - $3::interval from jobs where id = $1`, app.Jobs[0].ID, row.state, row.age)
		require.NoError(t, err)
	}
	n, err := job.ForgetCleanups(t.Context(), w.DB, 24*time.Hour)
	require.NoError(t, err)
	require.EqualValues(t, 1, n)
	var left []string
	require.NoError(t, w.DB.QueryRow(t.Context(),
		`select array_agg(state order by state) from jobs where cleans is not null`).Scan(&left))
	require.Equal(t, []string{"Finished", "Progressing"}, left)
	require.Len(t, w.Get(app.ID).Jobs, len(app.Jobs)+1, "what is asked for is kept, and what is being removed")
}

// TestRemind_namesTheFirstOfAll that there is to look at: whoever is reminded begins there and goes on from it.
func TestRemind_namesTheFirstOfAll(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	require.NoError(t, w.Tx(remind))
	require.Empty(t, storetest.Published(w.DB), "nothing waits")
	first, _ := w.submit(shop("a"), "1")
	if other, _ := w.submit(shop("a"), "2"); bytes.Compare(other.ID[:], first.ID[:]) < 0 {
		first = other
	}
	w.run(first, "agent")
	_, err := w.DB.Exec(t.Context(), `update applications set version = 2 where id = $1`, first.ID) // which nobody has judged
	require.NoError(t, err)
	require.NoError(t, w.Tx(remind))
	published := storetest.Published(w.DB)
	reminder := published[len(published)-1]
	require.Equal(t, events.ApplicationWaiting, reminder.Type())
	require.Equal(t, first.ID.String(), reminder.Subject(), "though the other one waits for a place")
}

func remind(ctx context.Context, tx *store.Tx) error {
	return application.Remind(ctx, tx, "for the test")
}

// TestRemind_ofAllThatIsToBePlaced, whatever it is.
func TestRemind_ofAllThatIsToBePlaced(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		reminders int
		that      func(w world, app *application.Application)
	}{
		"what is where it should be": {0, func(w world, app *application.Application) { w.run(app, "agent-1") }},
		"what waits for a place":     {1, func(world, *application.Application) {}},
		"what should be elsewhere": {1, func(w world, app *application.Application) {
			id := w.run(app, "agent-1").Jobs[0].ID
			require.NoError(w, w.Tx(func(ctx context.Context, tx *store.Tx) error {
				_, err := w.Job(id).MarkMisplaced(ctx, tx, job.Violating, "it is too hot there")
				return err
			}))
		}},
		"an update that nobody has judged": {1, func(w world, app *application.Application) {
			w.run(app, "agent-1")
			w.update(app.ID, shop("b"))
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			app, _ := w.submit(shop("a"), "")
			row.that(w, app)
			require.NoError(t, w.Tx(remind))
			require.Equal(t, row.reminders, w.Published(events.ApplicationWaiting))
		})
	}
}
