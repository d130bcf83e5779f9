package bind_test

import (
	"context"
	"log/slog"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/littoral-project/littoral/shared/application/applicationtest"
	"github.com/littoral-project/littoral/shared/job"
	"github.com/littoral-project/littoral/shared/store"
	"github.com/littoral-project/littoral/shared/store/storetest"
	"github.com/littoral-project/littoral/shared/swm/bind"
	"github.com/littoral-project/littoral/shared/swm/groups"
)

func TestMain(m *testing.M) { storetest.Main(m) }

// cluster has pods in memory.
type cluster struct {
	unbound []bind.Pod
	on      map[string][]bind.Pod
	broken  error // of the next binding, after it was done
}

func (c *cluster) Unbound(context.Context) ([]bind.Pod, error) { return slices.Clone(c.unbound), nil }

func (c *cluster) On(_ context.Context, node string) ([]bind.Pod, error) {
	return slices.Clone(c.on[node]), nil
}

func (c *cluster) Bind(_ context.Context, p bind.Pod, node string) error {
	c.unbound = slices.DeleteFunc(c.unbound, func(x bind.Pod) bool { return x.UID == p.UID })
	c.on[node] = append(c.on[node], p)
	err := c.broken
	c.broken = nil
	return err
}

func (c *cluster) Delete(_ context.Context, p bind.Pod) error {
	for node := range c.on {
		c.on[node] = slices.DeleteFunc(c.on[node], func(x bind.Pod) bool { return x.UID == p.UID })
	}
	return nil
}

type world struct {
	applicationtest.World
	cluster *cluster
	binder  *bind.Binder
	id      uuid.UUID
}

const application = `metadata: {labels: {application-group: line}}
spec:
  workloads:
  - {basename: eye, template: {spec: {containers: [{name: c, image: "example.org/eye:1"}]}}}
  - {basename: disk, template: {spec: {containers: [{name: c, image: "example.org/disk:1"}]}}}
`

// newWorld has a group with two workloads.
func newWorld(t *testing.T) *world {
	w := &world{World: applicationtest.New(t), cluster: &cluster{on: map[string][]bind.Pod{}}}
	w.binder = &bind.Binder{
		DB: w.DB, Log: slog.New(slog.DiscardHandler), Cluster: w.cluster, Settings: bind.Settings{Cluster: "site", Lease: time.Minute},
	}
	for k, text := range map[groups.Key]string{
		{Kind: groups.ApplicationGroup, Namespace: "plant", Name: "line"}: "spec: {minMember: 1}",
		{Kind: groups.Application, Namespace: "plant", Name: "cam"}:       application,
	} {
		o, err := groups.Read(k, []byte(text))
		require.NoError(t, err)
		w.Must(func(ctx context.Context, tx *store.Tx) error {
			return groups.Put(ctx, tx, o, groups.Settings{LostAfter: time.Minute})
		})
	}
	s, err := groups.Get(t.Context(), w.DB, groups.Key{Kind: groups.ApplicationGroup, Namespace: "plant", Name: "line"})
	require.NoError(t, err)
	w.id = *s.Application
	return w
}

func (w *world) place(nodes ...string) {
	var targets []job.Target
	for _, n := range nodes {
		targets = append(targets, job.Target{Orchestrator: "kubernetes", Cluster: "site", Node: n})
	}
	applicationtest.Place(w, w.DB, w.id, targets...)
}

func (w *world) run() error { return w.binder.Run(storetest.As(w.Context(), "swm-bind")) }

// job is that of the component.
func (w *world) job(component string) *job.Job {
	w.Helper()
	for _, j := range w.Get(w.id).Jobs {
		if j.Component == component && j.Live() {
			return j
		}
	}
	w.Fatalf("there is no job of %s", component)
	return nil
}

func pod(name string) bind.Pod {
	return bind.Pod{Namespace: "plant", Name: name, UID: "uid-" + name, Group: "line"}
}

// TestPodsAreBoundByThePlan: each to the node of its job, when that has one; what is not of the group waits.
func TestPodsAreBoundByThePlan(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.cluster.unbound = []bind.Pod{pod("cam-eye"), pod("cam-disk-6f5"), pod("other")}
	require.NoError(t, w.run())
	require.Len(t, w.cluster.unbound, 3, "there is no plan yet")
	w.place("n1", "n2")
	require.NoError(t, w.run())
	require.Equal(t, []bind.Pod{pod("other")}, w.cluster.unbound)
	for _, component := range []string{"cam-eye", "cam-disk"} {
		j := w.job(component)
		require.Equal(t, bind.Agent, j.OwnerID)
		require.Equal(t, job.Finished, j.State)
		require.True(t, j.Available())
		require.Len(t, w.cluster.on[j.Node], 1)
	}
	require.NoError(t, w.run(), "again, there is nothing to do")

	node := w.job("cam-eye").Node
	w.cluster.on[node] = nil
	w.cluster.unbound = []bind.Pod{pod("cam-eye-2")}
	require.NoError(t, w.run())
	require.Equal(t, []bind.Pod{pod("cam-eye-2")}, w.cluster.on[node], "its follower goes where it was")
}

// TestWhatHasAnotherOwnerIsLeftAlone: a deployment manager that has taken the job deploys it by itself.
func TestWhatHasAnotherOwnerIsLeftAlone(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.place("n1", "n2")
	require.NoError(t, w.Claim(w.job("cam-eye").ID, "deploymentmanager-kubernetes"))
	w.cluster.unbound = []bind.Pod{pod("cam-eye"), pod("cam-disk")}
	require.NoError(t, w.run())
	require.Equal(t, []bind.Pod{pod("cam-eye")}, w.cluster.unbound)
}

// TestABindingThatBrokeOffIsReported: the pod was bound, and nobody was told.
func TestABindingThatBrokeOffIsReported(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.place("n1", "n2")
	w.cluster.unbound = []bind.Pod{pod("cam-eye")}
	w.cluster.broken = context.DeadlineExceeded
	require.Error(t, w.run())
	require.NoError(t, w.run())
	require.True(t, w.job("cam-eye").Available())
}

// TestAPodThatHasMovedIsDeleted: its controller makes another, which goes to the new place.
func TestAPodThatHasMovedIsDeleted(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.place("n1", "n2")
	w.cluster.unbound = []bind.Pod{pod("cam-eye"), pod("cam-disk")}
	require.NoError(t, w.run())
	at := w.job("cam-eye").Node
	w.Must(func(ctx context.Context, tx *store.Tx) error {
		j, err := job.Lock(ctx, tx, w.job("cam-eye").ID)
		if err != nil {
			return err
		}
		if err := j.Displace(ctx, tx, "for the test", true); err != nil {
			return err
		}
		return j.Place(ctx, tx, job.Target{Orchestrator: "kubernetes", Cluster: "site", Node: "n3"}, "for the test")
	})
	require.NoError(t, w.run())
	require.Empty(t, w.cluster.on[at])
	w.cluster.unbound = []bind.Pod{pod("cam-eye-2")}
	require.NoError(t, w.run())
	require.Equal(t, []bind.Pod{pod("cam-eye-2")}, w.cluster.on["n3"])
	for _, j := range w.Get(w.id).Jobs {
		require.True(t, j.Live(), "nothing is left to clean up")
	}
}
