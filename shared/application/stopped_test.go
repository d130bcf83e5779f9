package application_test

import (
	"bytes"
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/littoral-project/littoral/shared/application"
	"github.com/littoral-project/littoral/shared/application/applicationtest"
	"github.com/littoral-project/littoral/shared/job"
	"github.com/littoral-project/littoral/shared/problem"
	"github.com/littoral-project/littoral/shared/store"
)

func (w world) update(id uuid.UUID, document []byte) *application.Application {
	w.Helper()
	require.NoError(w, w.Tx(func(ctx context.Context, tx *store.Tx) error {
		_, err := applicationtest.Update(ctx, tx, id, document, time.Minute)
		return err
	}))
	return w.Get(id)
}

func (w world) stop(id uuid.UUID) *application.Application {
	w.Helper()
	require.NoError(w, w.Tx(func(ctx context.Context, tx *store.Tx) error {
		_, err := application.Stop(ctx, tx, id)
		return err
	}))
	return w.Get(id)
}

func (w world) start(id uuid.UUID) *application.Application {
	w.Helper()
	require.NoError(w, w.Tx(func(ctx context.Context, tx *store.Tx) error {
		_, err := application.Start(ctx, tx, id, time.Minute)
		return err
	}))
	return w.Get(id)
}

func (w world) delete(id uuid.UUID) (gone bool) {
	w.Helper()
	require.NoError(w, w.Tx(func(ctx context.Context, tx *store.Tx) (err error) {
		_, gone, err = application.Delete(ctx, tx, id, true)
		return err
	}))
	return gone
}

// removed has the agent carry out what is to be removed.
func (w world) removed(agent string) {
	w.Helper()
	for _, j := range w.executable(agent) {
		require.Equal(w, job.Delete, j.Type)
		require.NoError(w, w.Claim(j.ID, agent))
		require.NoError(w, w.Finish(w.Job(j.ID)))
	}
}

func status(a *application.Application) application.Status {
	s, _ := a.Status()
	return s
}

var withCache = append(shop("b"), `
  - name: cache
    type: kubernetes
    manifests: [{name: c, manifest: {apiVersion: v1, kind: Pod, metadata: {name: c}}}]
`...)

func TestUpdate_ofAStoppedApplicationWaitsForItsStart(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	app, _ := w.submit(shop("a"), "")
	app = w.run(app, "agent-1")
	w.stop(app.ID)
	w.removed("agent-1")
	updated := w.update(app.ID, withCache)
	require.Equal(t, application.Finished, status(updated), "nothing of it runs or waits")

	started := w.start(app.ID)
	require.Len(t, started.Jobs, 3)
	for _, j := range started.Jobs {
		require.Equal(t, job.Created, j.State)
		require.Equal(t, job.Create, j.Type)
		if j.Component == "web" {
			require.Contains(t, j.Instruction.Contents[0].YAML, "image: b")
		}
	}

	w.stop(app.ID)
	w.update(app.ID, append(bytes.Clone(withCache), "  - {name: more, type: kubernetes, manifests: [{name: m, manifest: {apiVersion: v1, kind: Pod, metadata: {name: m}}}]}\n"...))
	require.True(t, w.delete(app.ID), "and what was added to it keeps nobody from deleting it")
}

// TestUpdate_leavesARemovalAlone: what is being stopped is removed as it is, and comes back as it was wanted last.
func TestUpdate_leavesARemovalAlone(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	app, _ := w.submit(shop("a"), "")
	app = w.run(app, "agent-1")
	w.stop(app.ID)
	for _, j := range w.update(app.ID, shop("b")).Jobs {
		require.Equal(t, job.Delete, j.Type)
		if j.Component == "web" {
			require.Contains(t, j.Instruction.Contents[0].YAML, "image: a", "what is to be removed")
		}
	}
	w.removed("agent-1")
	require.Equal(t, application.Finished, status(w.Get(app.ID)))
	for _, j := range w.start(app.ID).Jobs {
		if j.Component == "web" {
			require.Contains(t, j.Instruction.Contents[0].YAML, "image: b")
		}
	}
}

func TestStart_leavesOutReplicasThatAnUpdateTookOut(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	on := func(values string) []byte {
		return bytes.Replace(shop("a"), []byte("memory: 64Mi"), []byte("memory: 64Mi, nodelabel: {key: robot, values: ["+values+"]}"), 1)
	}
	for name, left := range map[string]struct {
		value   string
		replica int
	}{"the last": {"r1", 0}, "the first": {"r2", 1}} {
		app, _ := w.submit(on("r1, r2"), "")
		require.Len(t, app.Jobs, 3)
		w.run(app, "agent-1")
		w.update(app.ID, on(left.value))
		w.removed("agent-1")
		w.stop(app.ID)
		w.removed("agent-1")
		live := map[string]int{}
		for _, j := range w.start(app.ID).Jobs {
			if j.Live() {
				live[j.Component] = j.Replica
			}
		}
		require.Equal(t, map[string]int{"web": left.replica, "db": 0}, live, name)
	}
}

// TestStatus_doesNotWaitForWhatAnUpdateTookOut: everything that is wanted runs, and what is not may never be removed.
func TestStatus_doesNotWaitForWhatAnUpdateTookOut(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for name, away := range map[string]func(*job.Job){
		"its agent is dead": func(*job.Job) {},
		"its cluster is cut off": func(j *job.Job) {
			require.NoError(t, w.Claim(j.ID, "agent-1"))
			require.NoError(t, w.Report(job.Report{
				ID: j.ID, OwnerID: "agent-1", Type: job.Delete, State: job.Progressing, Epoch: j.Epoch,
				Resource: job.Resource{Conditions: []job.Condition{{
					Type: job.ConditionAvailable, Status: "Unknown", Reason: job.ReasonOutOfReach, Message: "it goes when the cluster is back",
				}}},
			}))
		},
		"it runs badly": func(j *job.Job) {
			require.NoError(t, w.Claim(j.ID, "agent-1"))
			require.NoError(t, w.Report(job.Report{
				ID: j.ID, OwnerID: "agent-1", Type: job.Delete, State: job.Degraded, Epoch: j.Epoch,
			}))
		},
	} {
		t.Run(name, func(t *testing.T) {
			app, _ := w.submit(withCache, "")
			w.run(app, "agent-1")
			w.update(app.ID, shop("b"))
			for _, j := range w.Get(app.ID).Jobs {
				if j.Component == "cache" {
					away(j)
				}
			}
			status, message := w.Get(app.ID).Status()
			require.Equal(t, application.Deploying, status, "it may have to move yet")
			require.Equal(t, "the update is yet to be looked at", message)
			require.NoError(t, w.Tx(func(_ context.Context, tx *store.Tx) error { application.MarkHandled(tx, app.ID); return nil }))
			status, message = w.Get(app.ID).Status()
			require.Equal(t, application.Available, status)
			require.Equal(t, "2 of 2 components run; 1 more still to be removed", message)

			status, message = w.stop(app.ID).Status()
			require.Equal(t, application.Stopping, status)
			require.Contains(t, message, "3 of 3 components still to be removed", "it still runs somewhere")
			w.start(app.ID)
			status, _ = w.update(app.ID, withCache).Status()
			require.Equal(t, application.Pending, status, "put back, it is waited for")
		})
	}
}

// TestUpdate_saysWhatItChanges: of each replica by its number, and beside the components as well.
func TestUpdate_saysWhatItChanges(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	document := func(values, rest string) []byte {
		return []byte(`name: shop
components:
  - name: web
    type: kubernetes
    requirements: {nodelabel: {key: color, values: [` + values + `]}}
    manifests: [{name: w, manifest: {apiVersion: v1, kind: Pod, metadata: {name: w}}}]
` + rest)
	}
	app, _ := w.submit(document("red, blue", ""), "")
	said := func(document []byte) (message string) {
		w.update(app.ID, document)
		require.NoError(t, w.DB.QueryRow(t.Context(),
			`select message from history where event = 'application.updated' order by id desc limit 1`).Scan(&message))
		return message
	}
	policies := "policies: [{security: low}]\n"
	require.Equal(t, "other policies", said(document("red, blue", policies)))
	require.Equal(t, "web/1 removed", said(document("red", policies)))
	require.Equal(t, "web/1 added, other description, policies", said(document("red, blue", "description: a shop\n")))
	require.Equal(t, "no component differs", said(document("red, blue", "description: a shop\n# a comment\n")))
}

// TestStatus_tellsOfFormerCopies: nothing waits for what is left at former places, and it is not said that nothing runs.
func TestStatus_tellsOfFormerCopies(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	app, _ := w.submit(shop("a"), "")
	w.run(app, "agent-1")
	w.stop(app.ID)
	w.start(app.ID)
	stopped, message := w.stop(app.ID).Status()
	require.Equal(t, application.Finished, stopped)
	require.Equal(t, "2 former copies still to be removed", message)
	undone := errors.New("undone")
	require.ErrorIs(t, w.Tx(func(ctx context.Context, tx *store.Tx) error {
		deleted, gone, err := application.Delete(ctx, tx, app.ID, true)
		require.NoError(t, err)
		require.True(t, gone)
		_, message := deleted.Status()
		require.Equal(t, "gone; 2 former copies still to be removed", message)
		return undone
	}), undone)
	w.removed("agent-1")
	_, message = w.Get(app.ID).Status()
	require.Empty(t, message)
}

// TestDelete_endsWhatAnEarlierOneLeft: jobs that still ran in an application that was stopped, or being deleted already.
func TestDelete_endsWhatAnEarlierOneLeft(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	left := func(desired application.Desired) uuid.UUID {
		app, _ := w.submit(shop("a"), "")
		w.run(app, "agent-1")
		_, err := w.DB.Exec(t.Context(), `update applications set desired = $2 where id = $1`, app.ID, desired)
		require.NoError(t, err)
		return app.ID
	}
	stopped := left(application.Stopped)
	w.stop(stopped)
	w.removed("agent-1")
	require.Equal(t, application.Finished, status(w.Get(stopped)))

	deleted := left(application.Deleted)
	w.delete(deleted)
	w.removed("agent-1")
	_, err := application.Get(t.Context(), w.DB, deleted)
	require.Equal(t, problem.NotFound, problem.KindOf(err))
}
