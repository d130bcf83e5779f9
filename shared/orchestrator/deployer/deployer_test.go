package deployer_test

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/transport"

	"github.com/littoral-project/littoral/shared/application"
	"github.com/littoral-project/littoral/shared/application/applicationtest"
	"github.com/littoral-project/littoral/shared/events"
	"github.com/littoral-project/littoral/shared/job"
	"github.com/littoral-project/littoral/shared/kube"
	"github.com/littoral-project/littoral/shared/orchestrator"
	"github.com/littoral-project/littoral/shared/orchestrator/deployer"
	"github.com/littoral-project/littoral/shared/orchestrator/deployer/stored"
	"github.com/littoral-project/littoral/shared/orchestrator/kubernetes"
	"github.com/littoral-project/littoral/shared/orchestrator/ocm"
	"github.com/littoral-project/littoral/shared/problem"
	"github.com/littoral-project/littoral/shared/store"
	"github.com/littoral-project/littoral/shared/store/storetest"
	"github.com/littoral-project/littoral/test/kubeapi"
)

func TestMain(m *testing.M) { storetest.Main(m) }

const owner = "deploymentmanager-ocm"

// world is a hub with two clusters, and the database.
type world struct {
	applicationtest.World
	hub     *kubeapi.Server
	agents  map[string]*kubeapi.Agent
	carrier *deployer.Deployer
	seen    int // delivered events about jobs
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{World: applicationtest.New(t), hub: kubeapi.Start(t, nil, nil), agents: map[string]*kubeapi.Agent{}}
	for _, name := range []string{"one", "two"} {
		w.agents[name] = kubeapi.Join(t, w.hub, kubeapi.Start(t, nil, []string{name + "-a", name + "-b"}), name)
	}
	client, err := kube.New(w.hub.URL, &transport.Config{})
	require.NoError(t, err)
	w.carrier = &deployer.Deployer{
		Jobs: stored.New(w.DB), Log: slog.New(slog.DiscardHandler), Orchestrator: ocm.New(client), Kind: "ocm",
		Settings: deployer.Settings{Lease: time.Minute},
	}
	return w
}

// worlds opens a world for each orchestrator.
var worlds = map[string]func(*testing.T) *world{"ocm": newWorld, "kubernetes": newDirect}

// onBoth runs the test through a hub and directly on clusters.
func onBoth(t *testing.T, test func(t *testing.T, w *world)) {
	t.Helper()
	for name, open := range worlds {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, open(t))
		})
	}
}

// newDirect is a world whose jobs are carried out with the APIs of its clusters, without the hub.
func newDirect(t *testing.T) *world {
	t.Helper()
	w := newWorld(t)
	w.carrier.Orchestrator, w.carrier.Kind = kubernetes.New(apis{w}), "kubernetes"
	return w
}

// apis are the clusters of a world by name.
type apis struct{ *world }

func (a apis) Names() []string { return slices.Sorted(maps.Keys(a.agents)) }

func (a apis) Open(name string) (*kube.Client, error) {
	if a.agents[name] == nil {
		return nil, orchestrator.Refuse(orchestrator.ReasonClusterNotFound, "no cluster %s", name)
	}
	return kube.New(a.agents[name].Cluster.URL, &transport.Config{})
}

const descriptor = `
name: shop
components:
  - name: web
    type: kubernetes
    requirements: {cpu: 100m}
    manifests:
      - name: web
        manifest:
          apiVersion: apps/v1
          kind: Deployment
          metadata: {name: web}
          spec:
            replicas: 1
            selector: {matchLabels: {app: web}}
            template:
              metadata: {labels: {app: web}}
              spec: {containers: [{name: web, image: "%s"}]}
`

// submit stores the application.
func (w *world) submit() *application.Application {
	return w.submitAs(fmt.Sprintf(descriptor, "web:1"))
}

// submitAs stores the application of the document.
func (w *world) submitAs(document string) *application.Application {
	w.Helper()
	return applicationtest.Submit(w, w.DB, document)
}

// place has the application's only job at the node.
func (w *world) place(a *application.Application, cluster string) {
	w.Helper()
	to := job.Target{Orchestrator: w.carrier.Kind, Cluster: cluster, Node: cluster + "-a"}
	applicationtest.Place(w, w.DB, a.ID, to)
}

// deliver delivers the events that were published since the last call to the carrier, like the Trigger, each event
// twice.
func (w *world) deliver() {
	w.Helper()
	ready := storetest.Published(w.DB, events.JobReady)
	fresh := ready[w.seen:]
	w.seen = len(ready)
	for _, e := range fresh {
		for range 2 {
			err := w.carrier.Work(w.Context(), e)
			if err != nil {
				require.Equal(w, problem.Unavailable, problem.KindOf(err), "%v", err)
			}
		}
	}
}

// turn lets time pass: agents work, and the database is synchronised. It checks that two copies are never available in
// it.
func (w *world) turn() {
	w.Helper()
	for range 3 {
		for _, a := range w.agents {
			a.Work()
		}
		require.NoError(w, w.carrier.Sync(w.Context()))
		w.oneAvailable()
	}
}

// oneAvailable requires that at most one copy is available in the database, including those that are to be removed.
func (w *world) oneAvailable() {
	w.Helper()
	var available int
	require.NoError(w, w.DB.QueryRow(w.Context(), `select count(*) from jobs
where conditions @> '[{"type": "Available", "status": "True"}]'`).Scan(&available))
	require.LessOrEqual(w, available, 1)
}

func (w *world) job(a *application.Application) *job.Job {
	w.Helper()
	return applicationtest.Job(w, w.DB, a.ID)
}

// history counts the rows about the application.
func (w *world) history(a *application.Application) (n int) {
	w.Helper()
	require.NoError(
		w,
		w.DB.QueryRow(w.Context(), `select count(*) from history where application_id = $1`, a.ID).Scan(&n),
	)
	return n
}

// copies lists the Deployments in the cluster.
func (w *world) copies(cluster string) []string {
	return w.agents[cluster].Cluster.Paths("/deployments/")
}

// asks requires that the only Deployment in cluster one has this: an image, or "replicas:2".
func (w *world) asks(what string) {
	w.Helper()
	copies := w.copies("one")
	require.Len(w, copies, 1)
	require.Contains(w, fmt.Sprint(w.agents["one"].Cluster.Get(copies[0]).Object["spec"]), what)
}

// run brings the application up in the cluster.
func (w *world) run(cluster string) *application.Application {
	w.Helper()
	a := w.submit()
	w.place(a, cluster)
	w.deliver()
	w.turn()
	require.True(w, w.job(a).Available(), "%+v", w.job(a).Conditions)
	return a
}

func TestAJobIsDeployed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.submit()
	w.place(a, "one")
	w.deliver()
	j := w.job(a)
	require.Equal(t, job.Progressing, j.State)
	require.Equal(t, owner, j.OwnerID)
	require.False(t, j.Available())
	w.turn()
	j = w.job(a)
	require.Equal(t, job.Finished, j.State)
	require.True(t, j.Available())
	require.Equal(t, orchestrator.ResourceID(j), j.ResourceUUID)
	require.Equal(t, "1 of 1 pods run on one-a", j.Condition(job.ConditionAvailable).Message)
	require.Len(t, w.copies("one"), 1)

	before := w.history(a)
	w.turn()
	require.Equal(t, before, w.history(a), "a healthy system is quiet")
}

func TestWhatAnAgentHasIsLeftToIt(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.submit()
	w.place(a, "one")
	w.Must(func(ctx context.Context, tx *store.Tx) error {
		return job.Claim(ctx, tx, w.job(a).ID, "agent-one", time.Minute)
	})
	w.deliver()
	w.turn()
	require.Equal(t, "agent-one", w.job(a).OwnerID)
	require.Empty(t, w.copies("one"))
	require.Empty(t, w.hub.Paths("/manifestworks/"))
}

// TestACopyOfAJobThatAnAgentClaimedIsRemoved: otherwise its copy and ours would run side by side in the cluster.
func TestACopyOfAJobThatAnAgentClaimedIsRemoved(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, w *world) {
		a := w.submit()
		w.place(a, "one")
		w.deliver()
		w.agents["one"].Work()
		require.Len(t, w.copies("one"), 1)
		_, err := w.DB.Exec(t.Context(), `update jobs set lease_until = now() - interval '1s'`)
		require.NoError(t, err)
		w.Must(func(ctx context.Context, tx *store.Tx) error {
			return job.Claim(ctx, tx, w.job(a).ID, "agent-one", time.Minute)
		})
		w.turn()
		require.Empty(t, w.copies("one"))
		require.Equal(t, "agent-one", w.job(a).OwnerID)
	})
}

func TestAnEventThatWasLostIsMadeUpFor(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.submit()
	w.place(a, "one")
	w.turn()
	require.True(t, w.job(a).Available())
}

// impatient is an orchestrator whose caller runs out of time when it looks at a job a second time before it has taken
// all of them.
type impatient struct {
	orchestrator.Orchestrator

	end  func()
	seen map[uuid.UUID]bool
}

func (i *impatient) Observe(ctx context.Context, j *job.Job) (orchestrator.Status, error) {
	if i.seen[j.ID] {
		i.end()
	}
	i.seen[j.ID] = true
	return i.Orchestrator.Observe(ctx, j)
}

func (i *impatient) Copies(ctx context.Context) ([]orchestrator.Copy, orchestrator.Orchestrator, error) {
	clear(i.seen)
	return i.Orchestrator.Copies(ctx)
}

// TestManyEventsThatWereLostAreMadeUpForAtOnce: no job waits for the pods of another one.
func TestManyEventsThatWereLostAreMadeUpForAtOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.carrier.Settings.Wait = time.Hour
	var all []*application.Application
	for range 3 {
		a := w.submitAs(fmt.Sprintf(descriptor, "slow:1"))
		w.place(a, "one")
		all = append(all, a)
	}
	time := allotted{t.Context(), make(chan struct{})}
	end := sync.OnceFunc(func() { close(time.up) })
	w.carrier.Orchestrator = &impatient{w.carrier.Orchestrator, end, map[uuid.UUID]bool{}}
	require.NoError(t, w.carrier.Sync(time))
	for _, a := range all {
		require.Equal(t, job.Progressing, w.job(a).State)
	}
	require.Len(t, w.hub.Paths("/manifestworks/"), len(all))
}

// TestJobsThatAreLargeTogetherAreAllCompared: they are read in pages limited by bytes.
func TestJobsThatAreLargeTogetherAreAllCompared(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var all []*application.Application
	for range 3 {
		a := w.submit()
		_, err := w.DB.Exec(t.Context(), `update jobs set instruction = jsonb_set(instruction, '{contents,0,yaml}',
to_jsonb(instruction #>> '{contents,0,yaml}' || E'\n# ' || repeat('x', $2))) where application_id = $1`, a.ID, store.PageBytes/2)
		require.NoError(t, err)
		w.place(a, "one")
		w.deliver()
		all = append(all, a)
	}
	w.agents["one"].Work()
	require.NoError(t, w.carrier.Sync(t.Context()))
	for _, a := range all {
		require.True(t, w.job(a).Available(), "%+v", w.job(a).Conditions)
	}
}

// slow uses all of its time to look at a job, except in the cluster named quick.
type slow struct {
	orchestrator.Orchestrator
	quick string
}

func (s slow) Copies(ctx context.Context) ([]orchestrator.Copy, orchestrator.Orchestrator, error) {
	copies, seen, err := s.Orchestrator.Copies(ctx)
	return copies, slow{seen, s.quick}, err
}

func (s slow) Observe(ctx context.Context, j *job.Job) (orchestrator.Status, error) {
	if j.Cluster != s.quick {
		<-ctx.Done()
		return orchestrator.Status{}, ctx.Err()
	}
	return s.Orchestrator.Observe(ctx, j)
}

// TestSlowClustersHoldUpNoOther: not even if there are more of them than are looked at in parallel, with older jobs.
func TestSlowClustersHoldUpNoOther(t *testing.T) {
	t.Parallel()
	w := newDirect(t)
	for _, name := range []string{"a", "b", "c", "d", "e"} {
		w.agents[name] = kubeapi.Join(t, w.hub, kubeapi.Start(t, nil, []string{name + "-a"}), name)
		for range 2 {
			w.place(w.submit(), name)
		}
	}
	healthy := w.submit()
	w.place(healthy, "two")
	w.deliver()
	w.agents["two"].Work()
	lost := w.submit()
	w.place(lost, "two") // and its event is lost
	w.carrier.Orchestrator = slow{w.carrier.Orchestrator, "two"}

	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	require.ErrorContains(t, w.carrier.Sync(ctx), "not all jobs in a were looked at in time")
	require.True(t, w.job(healthy).Available(), "%+v", w.job(healthy).Conditions)
	require.Equal(t, job.Progressing, w.job(lost).State)
}

func TestAClusterThatNobodyKnowsIsNamedOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.submit()
	w.place(a, "three")
	w.deliver()
	require.Equal(t, job.Created, w.job(a).State, "it may be that of an agent that asks for its jobs")
	require.Empty(t, w.job(a).OwnerID)
	w.turn()
	j := w.job(a)
	require.Equal(t, job.Degraded, j.State)
	require.Equal(t, orchestrator.ReasonClusterNotFound, j.Condition(job.ConditionAvailable).Reason)
	before := w.history(a)
	w.turn()
	require.Equal(t, before, w.history(a))

	w.agents["three"] = kubeapi.Join(t, w.hub, kubeapi.Start(t, nil, []string{"three-a"}), "three")
	w.turn()
	require.True(t, w.job(a).Available(), "it is registered now")
}

// TestAJobForAClusterThatNobodyKnowsIsFree: an agent that comes to serve the cluster need not wait for the end of a
// lease.
func TestAJobForAClusterThatNobodyKnowsIsFree(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, w *world) {
		a := w.submit()
		w.place(a, "three")
		for range 2 { // at the first refusal, and at a later one
			require.NoError(t, w.carrier.Sync(t.Context()))
			c := w.job(a).Condition(job.ConditionAvailable)
			require.NotNil(t, c)
			require.Equal(t, orchestrator.ReasonClusterNotFound, c.Reason)
			free, err := job.Executable(t.Context(), w.DB, w.carrier.Kind, "agent-three")
			require.NoError(t, err)
			require.Len(t, free, 1)
		}
		w.Must(func(ctx context.Context, tx *store.Tx) error {
			return job.Claim(ctx, tx, w.job(a).ID, "agent-three", time.Minute)
		})
		w.turn()
		require.Equal(t, "agent-three", w.job(a).OwnerID)
	})
}

// TestNewContentOfWhatNobodyDeployedIsCreated: a replacement would be left to the deployers, which do not know its
// cluster.
func TestNewContentOfWhatNobodyDeployedIsCreated(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, w *world) {
		a := w.submit()
		w.place(a, "three")
		w.turn()
		require.Equal(t, job.Degraded, w.job(a).State)
		w.update(a, "web:2")
		require.Equal(t, job.Create, w.job(a).Type)
		w.deliver()
		free, err := job.Executable(t.Context(), w.DB, w.carrier.Kind, "agent-three")
		require.NoError(t, err)
		require.Len(t, free, 1)
		require.Contains(t, free[0].Instruction.Contents[0].YAML, "web:2")
		w.Must(func(ctx context.Context, tx *store.Tx) error {
			return job.Claim(ctx, tx, w.job(a).ID, "agent-three", time.Minute)
		})
		w.update(a, "web:3")
		require.Equal(t, job.Create, w.job(a).Type, "agent-three has not begun either")
	})
}

// exceed makes the first cluster refuse the Deployment, as when a quota is used up.
func (w *world) exceed() {
	w.agents["one"].Cluster.Refuse(func(_, path string) error {
		if strings.HasSuffix(path, "/web") {
			return apierrors.NewForbidden(
				schema.GroupResource{Group: "apps", Resource: "deployments"}, "web", errors.New("exceeded quota: small, requested: 1"))
		}
		return nil
	})
}

func TestWhatAClusterRefusesIsSaid(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.exceed()
	a := w.submit()
	w.place(a, "one")
	w.deliver()
	w.turn()
	j := w.job(a)
	require.Equal(t, job.Degraded, j.State)
	require.Equal(t, "QuotaExceeded", j.Condition(job.ConditionDegraded).Reason)
	require.Contains(t, j.Condition(job.ConditionDegraded).Message, "exceeded quota")
	before := w.history(a)
	w.turn()
	require.Equal(t, before, w.history(a))
	w.agents["one"].Cluster.Refuse(nil)
	w.turn()
	require.True(t, w.job(a).Available())
}

// TestARefusedScalingIsAppliedLater: it stays pending, and the recorded number of replicas is the one that
// runs in the end.
func TestARefusedScalingIsAppliedLater(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, w *world) {
		a := w.run("one")
		w.exceed()
		w.remediate(a, job.ScaleUp)
		require.Equal(t, job.Degraded, w.job(a).State)
		require.Equal(t, job.RemedyPending, w.job(a).Remediations[0].Status)
		w.agents["one"].Cluster.Refuse(nil)
		w.turn()
		require.True(t, w.job(a).Available())
		w.asks("replicas:2")
		require.Equal(t, job.RemedyDone, w.job(a).Remediations[0].Status)
	})
}

// refused creates a copy of the application that its cluster refuses, and makes the hub unreachable from then on.
func (w *world) refused(fail func(*kubeapi.Server)) *application.Application {
	w.Helper()
	w.exceed()
	a := w.submit()
	w.place(a, "one")
	w.deliver()
	w.turn()
	require.Equal(w, job.Degraded, w.job(a).State)
	fail(w.hub)
	return a
}

// hubsAway are the ways in which a hub can be temporarily unreachable, each with its repair.
var hubsAway = map[string]struct{ fail, heal func(*kubeapi.Server) }{
	"silent": {func(s *kubeapi.Server) { s.Cut(true) }, func(s *kubeapi.Server) { s.Cut(false) }},
	"failing": {
		func(s *kubeapi.Server) { s.Deny(apierrors.NewServiceUnavailable("no leader")) },
		func(s *kubeapi.Server) { s.Deny(nil) },
	},
}

// TestAnUpdateAfterRefusedContentIsApplied: although the refusal could not be reported at first.
func TestAnUpdateAfterRefusedContentIsApplied(t *testing.T) {
	t.Parallel()
	for name, away := range hubsAway {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			a := w.refused(away.fail)
			w.Must(func(ctx context.Context, tx *store.Tx) error {
				other := strings.Replace(fmt.Sprintf(descriptor, "web:1"), "metadata: {name: web}", "metadata: {name: smaller}", 1)
				_, err := applicationtest.Update(ctx, tx, a.ID, []byte(other), time.Minute)
				return err
			})
			w.deliver()
			away.heal(w.hub)
			w.turn()
			require.True(t, w.job(a).Available(), "%+v", w.job(a).Conditions)
			copies := w.copies("one")
			require.Len(t, copies, 1)
			require.Contains(t, copies[0], "/smaller")
		})
	}
}

// TestWhatWasRefusedIsRemoved: although that could not be reported at first. Parts of it may run.
func TestWhatWasRefusedIsRemoved(t *testing.T) {
	t.Parallel()
	for name, away := range hubsAway {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			a := w.refused(away.fail)
			require.NotEmpty(t, w.agents["one"].Cluster.Paths("/namespaces/"))
			w.Must(func(ctx context.Context, tx *store.Tx) error {
				_, _, err := application.Delete(ctx, tx, a.ID, true)
				return err
			})
			w.deliver()
			away.heal(w.hub)
			w.turn()
			require.Empty(t, w.hub.Paths("/manifestworks/"))
			require.Empty(t, w.agents["one"].Cluster.Paths("/namespaces/"))
		})
	}
}

// TestAReportOfARemovalWaitsWithNothingInHand: removals of one application end at the same time, and each is followed by
// a read of all its jobs. So a report must not lock them while it waits.
func TestAReportOfARemovalWaitsWithNothingInHand(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, w *world) {
		a := w.submit()
		w.place(a, "one")
		w.deliver()
		w.turn()
		w.Must(func(ctx context.Context, tx *store.Tx) error {
			_, _, err := application.Delete(ctx, tx, a.ID, true)
			return err
		})
		ready, done := storetest.Published(w.DB, events.JobReady), make(chan error)
		w.Must(func(ctx context.Context, tx *store.Tx) error {
			if _, err := tx.Exec(ctx, `select from applications where id = $1 for no key update`, a.ID); err != nil {
				return err
			}
			go func() { done <- w.carrier.Work(t.Context(), ready[len(ready)-1]) }()
			storetest.AwaitBlocked(t, w.DB)
			_, err := tx.Exec(ctx, `select from jobs where application_id = $1 for update nowait`, a.ID)
			return err
		})
		require.NoError(t, <-done)
		w.turn()
		_, err := application.Get(t.Context(), w.DB, a.ID)
		require.Equal(t, problem.NotFound, problem.KindOf(err))
	})
}

// takeAway deletes the record of the application's copy in cluster one without using the database: its work, or its
// inventory.
func (w *world) takeAway(a *application.Application) {
	w.Helper()
	j := w.job(a)
	at, name := w.hub.Client(w).Resource(ocm.Works).Namespace("one"), orchestrator.NameOf(j)
	if w.carrier.Kind == "kubernetes" {
		secrets := schema.GroupVersionResource{Version: "v1", Resource: "secrets"}
		at, name = w.agents["one"].Cluster.Client(w).Resource(secrets).Namespace(j.Namespace), orchestrator.Manager+"-"+name
	}
	require.NoError(w, at.Delete(w.Context(), name, metav1.DeleteOptions{}))
}

func TestADeletedCopyIsRestored(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.run("one")
	w.takeAway(a)
	w.turn()
	w.turn()
	require.True(t, w.job(a).Available())
	require.Len(t, w.copies("one"), 1)
}

// TestWhatWasScaledIsPutBackAsScaled: and not with the replicas in its manifests, since the database has the requested
// number.
func TestWhatWasScaledIsPutBackAsScaled(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, w *world) {
		a := w.run("one")
		for _, r := range []job.Remediation{job.ScaleUp, job.ScaleUp, job.Secure} {
			w.remediate(a, r)
		}
		w.asks("replicas:3")
		w.takeAway(a)
		w.turn()
		w.turn()
		require.True(t, w.job(a).Available(), "%+v", w.job(a).Conditions)
		w.asks("replicas:3")

		w.update(a, "web:2")
		w.deliver()
		w.turn()
		w.asks("replicas:1")
	})
}

// TestWhatIsPutBackAtOnceIsWellAtOnce: in the same synchronisation that found it missing.
func TestWhatIsPutBackAtOnceIsWellAtOnce(t *testing.T) {
	t.Parallel()
	w := newDirect(t)
	a := w.submitAs(fmt.Sprintf(descriptor, "web:1") + `
      - name: settings
        manifest: {apiVersion: v1, kind: ConfigMap, metadata: {name: settings}}
`)
	w.place(a, "one")
	w.deliver()
	w.turn()
	require.True(t, w.job(a).Available())
	cluster := w.agents["one"].Cluster
	path := cluster.Paths("/configmaps/settings")[0]
	at := cluster.Client(t).Resource(schema.GroupVersionResource{Version: "v1", Resource: "configmaps"})
	err := at.Namespace(w.job(a).Namespace).Delete(t.Context(), "settings", metav1.DeleteOptions{})
	require.NoError(t, err)
	before := w.history(a)
	require.NoError(t, w.carrier.Sync(t.Context()))
	require.NotNil(t, cluster.Get(path))
	j := w.job(a)
	require.Equal(t, job.Finished, j.State)
	require.True(t, j.Available(), "%+v", j.Conditions)
	require.Equal(t, before+2, w.history(a), "that it was away, and that it is back")
}

// outrun is an orchestrator in which something happens between listing copies and looking at them.
type outrun struct {
	orchestrator.Orchestrator

	by func()
}

func (o *outrun) Copies(ctx context.Context) ([]orchestrator.Copy, orchestrator.Orchestrator, error) {
	copies, seen, err := o.Orchestrator.Copies(ctx)
	o.by()
	return copies, seen, err
}

func TestWhatIsDeployedDuringASynchronisationIsWell(t *testing.T) {
	t.Parallel()
	for name, listed := range map[string]func(*world){
		"that saw nothing of it":     func(*world) {},
		"that saw that it had begun": (*world).deliver,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			a := w.submit()
			w.place(a, "one")
			listed(w)
			real := w.carrier.Orchestrator
			var before int
			w.carrier.Orchestrator = &outrun{real, func() {
				w.carrier.Orchestrator = real
				w.deliver()
				w.agents["one"].Work()
				require.NoError(t, w.carrier.SyncOne(t.Context(), w.job(a).ID))
				require.Equal(t, job.Finished, w.job(a).State)
				before = w.history(a)
			}}
			require.NoError(t, w.carrier.Sync(t.Context()))
			require.True(t, w.job(a).Available())
			require.Equal(t, before, w.history(a), "nobody was told that it was away")
		})
	}
}

func (w *world) stop(a *application.Application) {
	w.Helper()
	w.Must(func(ctx context.Context, tx *store.Tx) error {
		_, err := application.Stop(ctx, tx, a.ID)
		return err
	})
}

func (w *world) start(a *application.Application) {
	w.Helper()
	w.Must(func(ctx context.Context, tx *store.Tx) error {
		_, err := application.Start(ctx, tx, a.ID, time.Minute)
		return err
	})
}

func TestStopAndStart(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.run("one")
	w.stop(a)
	w.deliver()
	w.turn()
	require.True(t, w.job(a).Gone())
	require.Empty(t, w.copies("one"))
	require.Empty(t, w.hub.Paths("/manifestworks/"))
	w.start(a)
	w.place(a, "two")
	w.deliver()
	w.turn()
	require.True(t, w.job(a).Available())
	require.Len(t, w.copies("two"), 1)
}

// TestStartWhileWhatWasStoppedStillGoes: pods take time to end, and meanwhile the application is started again.
func TestStartWhileWhatWasStoppedStillGoes(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, w *world) {
		a := w.run("one")
		w.stop(a)
		w.deliver()
		require.Len(t, w.copies("one"), 1, "its pods have not ended")
		w.start(a)
		w.place(a, "one")
		w.deliver()
		w.turn()
		w.turn()
		require.True(t, w.job(a).Available(), "%+v", w.job(a).Conditions)
		require.Len(t, w.copies("one"), 1)
	})
}

// update gives the application's component another image.
func (w *world) update(a *application.Application, image string) {
	w.Helper()
	w.Must(func(ctx context.Context, tx *store.Tx) error {
		_, err := applicationtest.Update(ctx, tx, a.ID, fmt.Appendf(nil, descriptor, image), time.Minute)
		return err
	})
}

func TestUpdateAndScale(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.run("one")
	w.remediate(a, job.ScaleUp)
	j := w.job(a)
	require.True(t, j.Available())
	require.Equal(t, "2 of 2 pods run on one-a", j.Condition(job.ConditionAvailable).Message)
	require.Equal(t, "Remediated", j.Remediations[0].Status)

	w.update(a, "web:2")
	w.deliver()
	w.turn()
	require.True(t, w.job(a).Available())
	w.asks("web:2")
}

// TestARefusedRemediationLeavesTheCopyAsItIs: including its scaling.
func TestARefusedRemediationLeavesTheCopyAsItIs(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, w *world) {
		a := w.run("one")
		w.remediate(a, job.ScaleUp)
		require.True(t, w.job(a).Available())
		path := w.copies("one")[0]
		before := w.agents["one"].Cluster.Get(path)
		require.Contains(t, fmt.Sprint(before.Object["spec"]), "replicas:2")
		w.remediate(a, job.Secure)
		require.Equal(t, before.Object["spec"], w.agents["one"].Cluster.Get(path).Object["spec"])
		require.Equal(t, "Failed", w.job(a).Remediations[1].Status)
		w.remediate(a, job.ScaleUp)
		require.True(t, w.job(a).Available())
		require.Contains(t, fmt.Sprint(w.agents["one"].Cluster.Get(path).Object["spec"]), "replicas:3")
	})
}

// TestReplicasOfAnAutoscalerAreNotChanged: the refusal is reported once, and the application continues.
func TestReplicasOfAnAutoscalerAreNotChanged(t *testing.T) {
	t.Parallel()
	for name, open := range worlds {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := open(t)
			a := w.submitAs(fmt.Sprintf(descriptor, "web:1") + `
      - name: scaler
        manifest:
          apiVersion: autoscaling/v2
          kind: HorizontalPodAutoscaler
          metadata: {name: web}
          spec: {scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}, maxReplicas: 9}
`)
			w.place(a, "one")
			w.deliver()
			w.turn()
			w.ask(a, job.ScaleUp)
			w.deliver()
			degraded := w.job(a).Condition(job.ConditionDegraded)
			require.NotNil(t, degraded)
			require.Equal(t, orchestrator.ReasonNotSupported, degraded.Reason)
			require.Contains(t, degraded.Message, "is for its HorizontalPodAutoscaler to say")
			w.turn()
			require.True(t, w.job(a).Available())
			require.Equal(t, "Failed", w.job(a).Remediations[0].Status)
		})
	}
}

// TestARefusalThatACrashPreventedIsReportedLater: nothing was done, so no success may be reported.
func TestARefusalThatACrashPreventedIsReportedLater(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.run("one")
	w.ask(a, job.Secure)
	w.Must(func(ctx context.Context, tx *store.Tx) error {
		return job.Claim(ctx, tx, w.job(a).ID, owner, time.Minute)
	})
	w.turn()
	require.Equal(t, "Failed", w.job(a).Remediations[0].Status)
	require.True(t, w.job(a).Available())
}

// TestAReplacementThatACrashPreventedIsAppliedLater: the copy runs well, but not with the requested content.
func TestAReplacementThatACrashPreventedIsAppliedLater(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, w *world) {
		a := w.run("one")
		w.remediate(a, job.ScaleUp)
		w.asks("replicas:2")
		w.ask(a, job.ReplaceIt)
		w.Must(func(ctx context.Context, tx *store.Tx) error {
			return job.Claim(ctx, tx, w.job(a).ID, w.job(a).OwnerID, time.Minute)
		})
		w.turn()
		w.asks("replicas:1")
		require.Equal(t, job.RemedyDone, w.job(a).Remediations[1].Status)
		require.True(t, w.job(a).Available())

		history, calls := w.history(a), w.agents["one"].Cluster.Calls()
		w.turn()
		require.Equal(t, history, w.history(a))
		require.Equal(t, calls, w.agents["one"].Cluster.Calls(), "once is enough")
	})
}

// ask asks for the remediation.
func (w *world) ask(a *application.Application, r job.Remediation) {
	w.Helper()
	w.Must(func(ctx context.Context, tx *store.Tx) error {
		j, err := job.Lock(ctx, tx, w.job(a).ID)
		if err != nil {
			return err
		}
		return j.Remediate(ctx, tx, job.Remedy{Type: r}, "busy")
	})
}

// remediate asks for the remediation and lets it be carried out.
func (w *world) remediate(a *application.Application, r job.Remediation) {
	w.Helper()
	w.ask(a, r)
	w.deliver()
	w.turn()
}

// TestReplicasInOneClusterAreLeftAlone: once they run as requested, one on each of the nodes in the label's list.
func TestReplicasInOneClusterAreLeftAlone(t *testing.T) {
	t.Parallel()
	const requirements = "requirements: {cpu: 100m"
	labelled := strings.Replace(fmt.Sprintf(descriptor, "web:1"), requirements,
		requirements+", nodelabel: {key: robot, values: [a, b]}", 1)
	onBoth(t, func(t *testing.T, w *world) {
		id := w.submitAs(labelled).ID
		applicationtest.Place(t, w.DB, id,
			job.Target{Orchestrator: w.carrier.Kind, Cluster: "one", Node: "one-a"},
			job.Target{Orchestrator: w.carrier.Kind, Cluster: "one", Node: "one-b"})
		look := func() {
			for range 3 {
				w.agents["one"].Work()
				require.NoError(t, w.carrier.Sync(t.Context()))
			}
		}
		look()
		a, err := application.Get(t.Context(), w.DB, id)
		require.NoError(t, err)
		status, message := a.Status()
		require.Equal(t, application.Available, status, message)
		require.Len(t, w.copies("one"), 2)

		history, calls := w.history(a), w.agents["one"].Cluster.Calls()
		look()
		require.Equal(t, history, w.history(a))
		require.Equal(t, calls, w.agents["one"].Cluster.Calls(), "nobody writes what is as it should be")
	})
}

// displace removes the application's component from its place.
func (w *world) displace(a *application.Application) {
	w.Helper()
	w.Must(func(ctx context.Context, tx *store.Tx) error {
		j, err := job.Lock(ctx, tx, w.job(a).ID)
		if err != nil {
			return err
		}
		return j.Displace(ctx, tx, "the node was lost", false)
	})
}

func TestACopyInAClusterThatWasCutOffIsFencedAndGoesWhenItIsBack(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.run("one")
	w.agents["one"].Cut(true)
	w.turn()
	j := w.job(a)
	require.Equal(t, job.Finished, j.State)
	require.False(t, j.Available())
	require.Contains(t, j.Unknown(), "has not heard of cluster one")
	now, err := application.Get(t.Context(), w.DB, a.ID)
	require.NoError(t, err)
	status, message := now.Status()
	require.Equal(t, application.Unknown, status)
	require.Contains(t, message, "has not heard of cluster one")

	w.displace(a)
	w.place(a, "two")
	w.deliver()
	w.turn()
	require.True(t, w.job(a).Available())
	require.Equal(t, "two", w.job(a).Cluster)
	require.Len(t, w.copies("one"), 1, "nobody can reach the old copy yet")

	w.agents["one"].Cut(false)
	w.turn()
	require.Empty(t, w.copies("one"))
	require.Len(t, w.copies("two"), 1)
	w.noCleanups()

	w.displace(a)
	w.place(a, "one")
	w.deliver()
	w.turn()
	require.True(t, w.job(a).Available(), "and back")
	require.Empty(t, w.copies("two"))
}

func TestACopyWhoseRemovalIsLateIsNotAvailableInTheBooks(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.run("one")
	w.displace(a)
	w.place(a, "two")
	ready := storetest.Published(w.DB, events.JobReady)
	require.NoError(t, w.carrier.Work(t.Context(), ready[len(ready)-1]), "the clean-up's own event is late")
	w.agents["two"].Work()
	require.NoError(t, w.carrier.SyncOne(t.Context(), w.job(a).ID))
	require.True(t, w.job(a).Available())
	require.Len(t, w.copies("one"), 1)
	w.oneAvailable()
}

func TestACopyThatStaysInItsClusterIsNotRemovedFirst(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.run("one")
	path := w.copies("one")[0]
	before := w.agents["one"].Cluster.Get(path)
	w.displace(a)
	w.deliver() // the clean-up arrives before the decision, and waits for it
	require.Empty(t, w.hub.Get(w.hub.Paths("/manifestworks/")[0]).GetDeletionTimestamp())
	applicationtest.Place(t, w.DB, a.ID, job.Target{Orchestrator: "ocm", Cluster: "one", Node: "one-b"})
	w.deliver()
	w.turn()
	require.True(t, w.job(a).Available())
	after := w.agents["one"].Cluster.Get(path)
	require.Equal(t, before.GetUID(), after.GetUID(), "it was moved, not made anew")
	require.Contains(t, fmt.Sprint(after.Object["spec"]), "one-b")
	w.noCleanups()
}

// TestACopyIsKeptUntilSomebodyHasLookedForThePlaceOfItsSuccessor, however long the decision takes: on a lost node its removal would
// not end, and block the name. Where nothing fits, it is removed.
func TestACopyIsKeptUntilSomebodyHasLookedForThePlaceOfItsSuccessor(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.run("one")
	w.displace(a)
	w.age()
	w.deliver()
	require.Empty(t, w.hub.Get(w.hub.Paths("/manifestworks/")[0]).GetDeletionTimestamp())
	w.waits(a)
	w.deliver()
	w.turn()
	require.Empty(t, w.copies("one"))
	w.noCleanups()
}

// TestWhatIsOnALostNodeStaysWhileNothingFits: if its removal began, it would not end, and whatever the component's next place
// in the cluster is, it would wait for the node.
func TestWhatIsOnALostNodeStaysWhileNothingFits(t *testing.T) {
	t.Parallel()
	lost := func(t *testing.T, w *world) *application.Application {
		t.Helper()
		a := w.run("one")
		w.heard("one-a", "now() - interval '1 hour'")
		w.heard("one-b", "now()")
		w.displace(a)
		w.age()
		w.waits(a)
		w.deliver()
		w.turn()
		require.Len(t, w.copies("one"), 1)
		require.Empty(t, w.agents["one"].Cluster.Get(w.copies("one")[0]).GetDeletionTimestamp())
		require.Contains(t, w.cleanup(), "its node is lost")
		return a
	}
	onBoth(t, func(t *testing.T, w *world) {
		a := lost(t, w)
		before := w.agents["one"].Cluster.Get(w.copies("one")[0]).GetUID()
		applicationtest.Place(t, w.DB, a.ID, job.Target{Orchestrator: w.carrier.Kind, Cluster: "one", Node: "one-b"})
		w.deliver()
		w.turn()
		require.True(t, w.job(a).Available(), "%+v", w.job(a).Conditions)
		require.Equal(t, before, w.agents["one"].Cluster.Get(w.copies("one")[0]).GetUID())
		w.noCleanups()
	})
	removed := map[string]func(*world, *application.Application){
		"the node is back": func(w *world, _ *application.Application) { w.heard("one-a", "now()") },
		"another place":    func(w *world, a *application.Application) { w.place(a, "two") },
		"it is not to run": func(w *world, a *application.Application) { w.stop(a) },
		"nobody knows of the node": func(w *world, _ *application.Application) {
			_, err := w.DB.Exec(w.Context(), `delete from nodes where node = 'one-a'`)
			require.NoError(w, err)
		},
	}
	for name, event := range removed {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			event(w, lost(t, w))
			w.deliver()
			w.turn()
			require.Empty(t, w.copies("one"))
			w.noCleanups()
		})
	}
}

// heard notes when the node of cluster one was last heard of; the topology is of now.
func (w *world) heard(node, at string) {
	w.Helper()
	for _, statement := range []string{
		`insert into topology (snapshot, taxonomy, at) values (gen_random_uuid(), '{}', now()) on conflict do nothing`,
		`insert into nodes (cluster, node, last_seen) values ('one', '` + node + `', ` + at + `)
			on conflict (cluster, node) do update set last_seen = excluded.last_seen`,
	} {
		_, err := w.DB.Exec(w.Context(), statement)
		require.NoError(w, err)
	}
}

// age makes the only clean-up one that has waited for five minutes.
func (w *world) age() {
	w.Helper()
	made, err := w.DB.Exec(w.Context(), `update jobs set created_at = created_at - interval '5 minutes' where cleans is not null`)
	require.NoError(w, err)
	require.EqualValues(w, 1, made.RowsAffected())
}

// waits has the matchmaker find no place for the application's only job.
func (w *world) waits(a *application.Application) {
	w.Helper()
	w.Must(func(ctx context.Context, tx *store.Tx) error {
		j, err := job.Lock(ctx, tx, w.job(a).ID)
		if err != nil {
			return err
		}
		_, err = j.Wait(ctx, tx, "no node fits")
		return err
	})
}

// cleanup is what is reported of the only clean-up.
func (w *world) cleanup() (conditions string) {
	w.Helper()
	require.NoError(w, w.DB.QueryRow(w.Context(), `select conditions::text from jobs where cleans is not null`).Scan(&conditions))
	return conditions
}

// TestACopyWhoseSuccessorIsAnothersIsRemoved: even in the same cluster, since our objects never pass to another owner.
func TestACopyWhoseSuccessorIsAnothersIsRemoved(t *testing.T) {
	t.Parallel()
	for name, by := range map[string]string{"an agent that asks for jobs": "ocm", "another orchestrator": "nuvla"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			a := w.run("one")
			w.displace(a)
			applicationtest.Place(t, w.DB, a.ID, job.Target{Orchestrator: by, Cluster: "one", Node: "one-b"})
			w.Must(func(ctx context.Context, tx *store.Tx) error {
				return job.Claim(ctx, tx, w.job(a).ID, "agent-one", time.Minute)
			})
			w.deliver()
			w.turn()
			require.Equal(t, "agent-one", w.job(a).OwnerID)
			require.Empty(t, w.copies("one"))
			w.noCleanups()
		})
	}
}

// noCleanups requires that no clean-up is open.
func (w *world) noCleanups() {
	w.Helper()
	var open int
	require.NoError(w, w.DB.QueryRow(w.Context(),
		`select count(*) from jobs where cleans is not null and state <> 'Finished'`).Scan(&open))
	require.Zero(w, open)
}

// TestAJobThatStaysInItsClusterIsMadeAnew: its pods cannot be changed in place.
func TestAJobThatStaysInItsClusterIsMadeAnew(t *testing.T) {
	t.Parallel()
	const once = `
name: batch
components:
  - name: once
    type: kubernetes
    requirements: {cpu: 100m}
    manifests:
      - name: once
        manifest:
          apiVersion: batch/v1
          kind: Job
          metadata: {name: once}
          spec: {template: {spec: {restartPolicy: Never, containers: [{name: once, image: "run:1"}]}}}
`
	onBoth(t, func(t *testing.T, w *world) {
		a := w.submitAs(once)
		w.place(a, "one")
		w.deliver()
		w.turn()
		require.True(t, w.job(a).Available())
		w.displace(a)
		applicationtest.Place(t, w.DB, a.ID, job.Target{Orchestrator: w.carrier.Kind, Cluster: "one", Node: "one-b"})
		w.deliver()
		w.turn()
		w.turn()
		require.True(t, w.job(a).Available(), "%+v", w.job(a).Conditions)
		cluster := w.agents["one"].Cluster
		paths := cluster.Paths("/jobs/")
		require.Len(t, paths, 1)
		require.Contains(t, fmt.Sprint(cluster.Get(paths[0]).Object["spec"]), "one-b")
	})
}

// deleteAway deletes an application whose cluster is unreachable: for its user it is gone, and its removal waits.
func (w *world) deleteAway(a *application.Application) {
	w.Helper()
	w.Must(func(ctx context.Context, tx *store.Tx) error {
		_, _, err := application.Delete(ctx, tx, a.ID, true)
		return err
	})
	w.deliver()
	w.turn()
	_, err := application.Get(w.Context(), w.DB, a.ID)
	require.Equal(w, problem.NotFound, problem.KindOf(err), "its user is done with it")
	require.True(w, w.job(a).OutOfReach())
}

func TestAClusterThatWasCutOffHoldsNoDeletionUp(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.run("one")
	w.agents["one"].Cut(true)
	w.deleteAway(a)
	j := w.job(a)
	require.Equal(t, job.Progressing, j.State)
	require.Contains(t, j.Unknown(), "it goes when the cluster is back")

	w.agents["one"].Cut(false)
	w.turn()
	require.Empty(t, w.copies("one"))
	var state string
	require.NoError(t, w.DB.QueryRow(t.Context(), `select state from jobs where id = $1`, j.ID).Scan(&state))
	require.Equal(t, "Finished", state)
}

// TestAClusterWhoseServerIsDeadHoldsNoDeletionUp: even if something in front of it still answers.
func TestAClusterWhoseServerIsDeadHoldsNoDeletionUp(t *testing.T) {
	t.Parallel()
	w := newDirect(t)
	a := w.run("one")
	w.agents["one"].Cluster.Deny(apierrors.NewServiceUnavailable("no healthy upstream"))
	w.turn()
	require.Equal(t, "Unknown", w.job(a).Condition(job.ConditionAvailable).Status)
	w.deleteAway(a)

	w.agents["one"].Cluster.Deny(nil)
	w.turn()
	require.Empty(t, w.copies("one"))
}

// TestACopyThatCannotBeReadIsNotGone: with an expired token nothing can be read, which does not mean that nothing
// exists.
func TestACopyThatCannotBeReadIsNotGone(t *testing.T) {
	t.Parallel()
	w := newDirect(t)
	a := w.run("one")
	w.agents["one"].Cluster.Deny(apierrors.NewUnauthorized("the token has expired"))
	w.deleteAway(a)
	require.Equal(t, job.Progressing, w.job(a).State)
	require.Contains(t, w.job(a).Unknown(), "the token has expired")

	w.agents["one"].Cluster.Deny(nil)
	require.Len(t, w.copies("one"), 1)
	w.turn()
	require.Empty(t, w.copies("one"))
	require.Equal(t, job.Finished, w.job(a).State)
}

// TestAClusterThatFailsIsNamed: a webhook is down there, for instance, so that every apply is answered with 500.
func TestAClusterThatFailsIsNamed(t *testing.T) {
	t.Parallel()
	w := newDirect(t)
	a := w.submit()
	w.place(a, "one")
	w.agents["one"].Cluster.Refuse(func(_, _ string) error {
		return apierrors.NewInternalError(errors.New("failed calling webhook: connection refused"))
	})
	w.deliver()
	j := w.job(a)
	require.Equal(t, job.Progressing, j.State)
	require.Equal(t, orchestrator.ReasonRetrying, j.Condition(job.ConditionAvailable).Reason)
	require.Contains(t, j.Condition(job.ConditionAvailable).Message, "failed calling webhook")

	w.agents["one"].Cluster.Refuse(nil)
	w.turn()
	require.True(t, w.job(a).Available())
}

// looking is an orchestrator in which something happens while it looks at a copy.
type looking struct {
	orchestrator.Orchestrator

	meanwhile func()
}

func (l *looking) Observe(ctx context.Context, j *job.Job) (orchestrator.Status, error) {
	if do := l.meanwhile; do != nil {
		l.meanwhile = nil
		do()
	}
	return l.Orchestrator.Observe(ctx, j)
}

// TestWhatWasReadLongAgoIsNotBroughtBack: while the copy is looked at, the application gets new content or is stopped.
func TestWhatWasReadLongAgoIsNotBroughtBack(t *testing.T) {
	t.Parallel()
	for what, change := range map[string]func(*world, *application.Application){
		"changed": func(w *world, a *application.Application) { w.update(a, "web:2") },
		"stopped": (*world).stop,
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			w := newDirect(t)
			a := w.run("one")
			rows := 0
			w.carrier.Orchestrator = &looking{w.carrier.Orchestrator, func() {
				change(w, a)
				w.deliver()
				w.turn()
				rows = w.history(a)
			}}
			require.NoError(t, w.carrier.SyncOne(t.Context(), w.job(a).ID))
			require.Equal(t, rows, w.history(a), "nothing more is told")
			if what == "stopped" {
				require.Empty(t, w.copies("one"))
				return
			}
			w.asks("web:2")
		})
	}
}

// late is an orchestrator in which something happens while it applies or removes.
type late struct {
	orchestrator.Orchestrator

	meanwhile func()
}

func (l *late) wait() {
	if do := l.meanwhile; do != nil {
		l.meanwhile = nil
		do()
	}
}

func (l *late) Apply(ctx context.Context, j *job.Job) error {
	l.wait()
	return l.Orchestrator.Apply(ctx, j)
}

func (l *late) Remove(ctx context.Context, j *job.Job) error {
	l.wait()
	return l.Orchestrator.Remove(ctx, j)
}

func TestWhatWasDecidedMeanwhileWins(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.submit()
	w.place(a, "one")
	real := w.carrier.Orchestrator
	w.carrier.Orchestrator = &late{real, func() {
		w.displace(a)
		w.place(a, "two")
	}}
	w.deliver() // the late one, which finds that it was overtaken
	w.deliver() // after the displacement
	w.turn()
	require.True(t, w.job(a).Available())
	require.Equal(t, "two", w.job(a).Cluster)
	require.Empty(t, w.copies("one"))
	require.Len(t, w.copies("two"), 1)
}

// TestFormerContentDoesNotStay: two workers carry out the same decision, and the later one writes the job's former
// content over the present one.
func TestFormerContentDoesNotStay(t *testing.T) {
	t.Parallel()
	for what, change := range map[string]func(*world, *application.Application){
		"changed": func(w *world, a *application.Application) { w.update(a, "web:3") },
		"stopped": (*world).stop,
	} {
		for kind, open := range worlds {
			t.Run(what+"/"+kind, func(t *testing.T) {
				t.Parallel()
				w := open(t)
				a := w.run("one")
				w.update(a, "web:2")
				real, rows := w.carrier.Orchestrator, 0
				w.carrier.Orchestrator = &late{real, func() {
					w.carrier.Orchestrator = real
					change(w, a)
					w.deliver()
					w.turn()
					require.Equal(t, job.Finished, w.job(a).State)
					rows = w.history(a)
				}}
				w.deliver()
				require.NotZero(t, rows, "it was overtaken")
				w.agents["one"].Work()
				require.Equal(t, rows, w.history(a))
				if what == "stopped" {
					require.Empty(t, w.copies("one"))
					return
				}
				w.asks("web:3")
			})
		}
	}
}

// TestALateWorkerScalesNothingTwice: while it was about to scale, another worker did so, and scaled further.
func TestALateWorkerScalesNothingTwice(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, w *world) {
		a := w.run("one")
		w.ask(a, job.ScaleUp)
		real, rows := w.carrier.Orchestrator, 0
		w.carrier.Orchestrator = &late{real, func() {
			w.carrier.Orchestrator = real
			w.turn()
			w.remediate(a, job.ScaleUp)
			w.asks("replicas:3")
			rows = w.history(a)
		}}
		w.deliver()
		require.NotZero(t, rows, "it was overtaken")
		w.agents["one"].Work()
		w.asks("replicas:3")
		w.turn()
		w.asks("replicas:3")
		require.Equal(t, rows, w.history(a), "nothing more is told")
	})
}

// TestWhatIsPutBackIsOfPresentContent: the content changes while a synchronisation restores a copy that somebody
// removed.
func TestWhatIsPutBackIsOfPresentContent(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.run("one")
	w.takeAway(a)
	w.agents["one"].Work()
	require.Empty(t, w.copies("one"))
	real := w.carrier.Orchestrator
	w.carrier.Orchestrator = &late{real, func() {
		w.carrier.Orchestrator = real
		w.update(a, "web:2")
		w.deliver()
		w.turn()
		require.Len(t, w.copies("one"), 1)
	}}
	require.NoError(t, w.carrier.SyncOne(t.Context(), w.job(a).ID))
	w.agents["one"].Work()
	w.asks("web:2")
}

// TestAnOvertakenWorkerSaysNothing: it finds the copy of the later decision, in the same place.
func TestAnOvertakenWorkerSaysNothing(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		work, meanwhile func(*world, *application.Application)
	}{
		"that applies": {(*world).displace, (*world).displace},
		"that removes": {(*world).stop, (*world).start},
	} {
		for kind, open := range worlds {
			t.Run(name+"/"+kind, func(t *testing.T) {
				t.Parallel()
				w := open(t)
				a := w.run("one")
				row.work(w, a)
				if !w.job(a).Placed() {
					w.place(a, "one")
				}
				real, before := w.carrier.Orchestrator, 0
				w.carrier.Orchestrator = &late{real, func() {
					w.carrier.Orchestrator = real
					row.meanwhile(w, a)
					w.place(a, "one")
					w.deliver()
					w.turn()
					require.True(t, w.job(a).Available(), "%+v", w.job(a).Conditions)
					before = w.history(a)
				}}
				w.deliver()
				require.NotZero(t, before, "it was overtaken")
				require.Equal(t, before, w.history(a))
				w.turn()
				require.True(t, w.job(a).Available(), "%+v", w.job(a).Conditions)
				require.Len(t, w.copies("one"), 1)
				require.Equal(t, before, w.history(a))
			})
		}
	}
}

func TestACopyThatACrashLeftIsFoundAndRemoved(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.submit()
	w.place(a, "one")
	w.deliver()
	stale := w.job(a)
	w.displace(a)
	w.place(a, "two")
	w.deliver()
	w.turn()
	require.Empty(t, w.copies("one"))
	// A process that was suspended all that time applies its outdated job, and dies.
	require.NoError(t, w.carrier.Orchestrator.Apply(t.Context(), stale))
	w.agents["one"].Work()
	require.Len(t, w.copies("one"), 1)
	w.turn()
	require.Empty(t, w.copies("one"))
	require.True(t, w.job(a).Available())
}

func TestAReportIsOnlyAboutWhatWasDone(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.run("one")
	w.update(a, "web:2")
	real := w.carrier.Orchestrator
	w.carrier.Orchestrator = &late{real, func() { w.update(a, "web:3") }}
	w.deliver()
	require.NotEqual(t, job.Finished, w.job(a).State, "web:3 is yet to be carried out")
	w.deliver()
	w.turn()
	require.True(t, w.job(a).Available())
	w.asks("web:3")
}

func TestWithoutAnOrchestratorJobsAreLeftToAgents(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.carrier.Orchestrator = nil
	a := w.submit()
	w.place(a, "one")
	w.deliver()
	require.NoError(t, w.carrier.Sync(t.Context()))
	require.NoError(t, w.carrier.SyncOne(t.Context(), w.job(a).ID))
	require.Equal(t, job.Created, w.job(a).State)
	require.Empty(t, w.job(a).OwnerID)
}

// allotted is a time that ends when the test says so.
type allotted struct {
	context.Context

	up chan struct{}
}

func (a allotted) Done() <-chan struct{} { return a.up }

func (a allotted) Err() error {
	select {
	case <-a.up:
		return context.DeadlineExceeded
	default:
		return nil
	}
}

// hasty is an orchestrator whose caller runs out of time as soon as it looks at a copy.
type hasty struct {
	orchestrator.Orchestrator

	end   func()
	looks int
}

func (h *hasty) Copies(ctx context.Context) ([]orchestrator.Copy, orchestrator.Orchestrator, error) {
	copies, seen, err := h.Orchestrator.Copies(ctx)
	h.Orchestrator = seen
	return copies, h, err
}

func (h *hasty) Observe(ctx context.Context, j *job.Job) (orchestrator.Status, error) {
	h.looks++
	h.end()
	return h.Orchestrator.Observe(ctx, j)
}

func TestTimeThatIsUpIsNoSilenceOfClusters(t *testing.T) {
	t.Parallel()
	w := newDirect(t)
	var all []*application.Application
	for range 2 {
		a := w.submit()
		w.place(a, "one")
		w.deliver()
		w.Must(func(ctx context.Context, tx *store.Tx) error {
			_, _, err := application.Delete(ctx, tx, a.ID, true)
			return err
		})
		w.deliver()
		all = append(all, a)
	}
	time := allotted{t.Context(), make(chan struct{})}
	h := &hasty{Orchestrator: w.carrier.Orchestrator, end: sync.OnceFunc(func() { close(time.up) })}
	w.carrier.Orchestrator = h
	require.Error(t, w.carrier.Sync(time))
	require.Equal(t, 1, h.looks, "nobody is asked for whose answer there is no time")
	for _, a := range all {
		_, err := application.Get(t.Context(), w.DB, a.ID)
		require.NoError(t, err, "what runs in a cluster that is well was forgotten")
		require.False(t, w.job(a).OutOfReach())
	}
}

func TestAClusterThatRefusesHoldsUpNoOther(t *testing.T) {
	t.Parallel()
	w := newDirect(t)
	a := w.run("one")
	w.agents["one"].Cluster.Deny(apierrors.NewUnauthorized("the token has expired"))
	b := w.submit()
	w.place(b, "two")
	w.turn()
	require.Equal(t, "Unauthorized", w.job(a).Condition(job.ConditionAvailable).Reason)
	require.True(t, w.job(b).Available())
}

// mortal is an orchestrator whose process is killed once, before or after an effect.
type mortal struct {
	orchestrator.Orchestrator

	calls, dieAt int
	after        bool
}

var errDied = errors.New("the process died")

func (m *mortal) call(do func() error) error {
	m.calls++
	if m.calls != m.dieAt {
		return do()
	}
	if m.after {
		_ = do()
	}
	return errDied
}

func (m *mortal) Apply(ctx context.Context, j *job.Job) error {
	return m.call(func() error { return m.Orchestrator.Apply(ctx, j) })
}

func (m *mortal) Remove(ctx context.Context, j *job.Job) error {
	return m.call(func() error { return m.Orchestrator.Remove(ctx, j) })
}

func (m *mortal) Observe(ctx context.Context, j *job.Job) (s orchestrator.Status, err error) {
	err = m.call(func() error {
		s, err = m.Orchestrator.Observe(ctx, j)
		return err
	})
	return s, err
}

// TestADeathAnywhereChangesNothing kills the process at each call of the orchestrator in turn, before and after it,
// during a whole life: run, scaled, moved, stopped. Events are delivered again and synchronisations run, as in
// production.
func TestADeathAnywhereChangesNothing(t *testing.T) {
	t.Parallel()
	life := func(t *testing.T, dieAt int, after bool) (calls int) {
		t.Helper()
		w := newWorld(t)
		m := &mortal{Orchestrator: w.carrier.Orchestrator, dieAt: dieAt, after: after}
		w.carrier.Orchestrator = m
		settle := func() {
			for range 4 {
				for _, e := range storetest.Published(w.DB, events.JobReady) {
					_ = w.carrier.Work(t.Context(), e) // failed deliveries are repeated
				}
				for _, a := range w.agents {
					a.Work()
				}
				_ = w.carrier.Sync(t.Context())
			}
		}
		a := w.submit()
		w.place(a, "one")
		settle()
		require.True(t, w.job(a).Available())
		w.Must(func(ctx context.Context, tx *store.Tx) error {
			j, err := job.Lock(ctx, tx, w.job(a).ID)
			if err != nil {
				return err
			}
			return j.Remediate(ctx, tx, job.Remedy{Type: job.ScaleUp}, "busy")
		})
		settle()
		require.True(t, w.job(a).Available())
		require.Contains(t, w.job(a).Condition(job.ConditionAvailable).Message, "2 of 2 pods", "scaled once")
		w.displace(a)
		w.place(a, "two")
		settle()
		require.True(t, w.job(a).Available())
		require.Empty(t, w.copies("one"))
		require.Len(t, w.copies("two"), 1)
		w.stop(a)
		settle()
		require.True(t, w.job(a).Gone())
		require.Empty(t, w.hub.Paths("/manifestworks/"))
		require.Empty(t, w.copies("two"))
		return m.calls
	}
	total := life(t, 0, false)
	require.Greater(t, total, 10)
	for dieAt := 1; dieAt <= total; dieAt++ {
		for _, after := range []bool{false, true} {
			t.Run(fmt.Sprintf("at call %d, after it %t", dieAt, after), func(t *testing.T) { life(t, dieAt, after) })
		}
	}
}

// TestALateEventAboutAPlaceThatWasLeft: the job has no place by then, so no cluster is asked about it.
func TestALateEventAboutAPlaceThatWasLeft(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, w *world) {
		a := w.submit()
		w.place(a, "one")
		w.displace(a)
		ready := storetest.Published(w.DB, events.JobReady)
		require.Len(t, ready, 1)
		require.NoError(t, w.carrier.Work(t.Context(), ready[0]))
		require.Empty(t, w.job(a).OwnerID)
	})
}

// TestACopyThatATenantOfAClusterClaims: a tenant that may write Secrets in its own namespace can fake the inventory of
// a copy. Its content must not be acted upon with our rights.
func TestACopyThatATenantOfAClusterClaims(t *testing.T) {
	t.Parallel()
	w := newDirect(t)
	a := w.run("one")
	j := w.job(a)
	two := w.agents["two"].Cluster
	for _, name := range []string{"tenant", "others", a.Namespace} {
		two.Put(t, "/api/v1/namespaces/"+name, `{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"`+name+`"}}`)
	}
	const theirs = "/apis/apps/v1/namespaces/others/deployments/web"
	two.Put(t, theirs, `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"web","namespace":"others"}}`)
	entries := base64.StdEncoding.EncodeToString([]byte(`[{"group":"apps","version":"v1","resource":"deployments",
		"object":{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"web","namespace":"others"}}}]`))
	for name, says := range map[string]string{"tenant": "tenant", "others": a.Namespace} {
		secret := "littoral-" + orchestrator.NameOf(j)
		two.Put(t, "/api/v1/namespaces/"+name+"/secrets/"+secret, fmt.Sprintf(`{"apiVersion":"v1","kind":"Secret",
			"metadata":{"name":%q,"namespace":%q,
				"labels":{"app.kubernetes.io/managed-by":"littoral","littoral.dev/job":%q,"littoral.dev/inventory":"true"},
				"annotations":{"app.icos.eu/component":"web","littoral.dev/namespace":%q,"littoral.dev/epoch":"0"}},
			"data":{"objects":%q}}`, secret, name, j.ID, says, entries))
	}
	for range 3 {
		require.NoError(t, w.carrier.Sync(t.Context()))
		two.Work()
	}
	require.NotNil(t, two.Get(theirs))
	require.Len(t, two.Paths("/secrets/"), 2)
	w.oneAvailable()
}
