package pause_test

import (
	"cmp"
	"context"
	"encoding/json"
	"io/fs"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/littoral-project/littoral/functions/clock/pause"
	"github.com/littoral-project/littoral/infra/runner/manifests"
	"github.com/littoral-project/littoral/knative"
	"github.com/littoral-project/littoral/shared/application"
	"github.com/littoral-project/littoral/shared/application/applicationtest"
	"github.com/littoral-project/littoral/shared/events"
	"github.com/littoral-project/littoral/shared/function"
	"github.com/littoral-project/littoral/shared/policy/policies"
	"github.com/littoral-project/littoral/shared/policy/registry"
	"github.com/littoral-project/littoral/shared/settings"
	"github.com/littoral-project/littoral/shared/store"
	"github.com/littoral-project/littoral/shared/store/storetest"
	"github.com/littoral-project/littoral/test/kubeapi"
	"github.com/littoral-project/littoral/triggers"
)

func TestMain(m *testing.M) { storetest.Main(m) }

const (
	descriptor = `
name: shop
components:
  - name: web
    type: kubernetes
    manifests: [{name: web, manifest: {apiVersion: v1, kind: Pod, metadata: {name: web}, spec: {containers: [{name: w, image: i}]}}}]
`
	sources = "/apis/sources.knative.dev/v1/namespaces/littoral/pingsources/"
	never   = "0 0 31 2 *"
)

// tower is the function with a cluster that has PingSources that may be suspended and one that may not.
type tower struct {
	*testing.T

	function *pause.Function
	db       *store.DB
	api      *kubeapi.Server
}

func newTower(t *testing.T) tower {
	t.Helper()
	w := tower{T: t, db: storetest.New(t), api: kubeapi.Start(t, []string{"littoral"}, nil)}
	w.api.Define("sources.knative.dev", "v1", "PingSource", "pingsources", true)
	for name, clock := range map[string]string{
		"tick":    `"labels": {"littoral.dev/ticks-while": "work"}}, "spec": {"schedule": "*/5 * * * *", "sink": {}}`,
		"sweep":   `"labels": {"littoral.dev/ticks-while": "work"}}, "spec": {"schedule": "*/10 * * * *", "sink": {}}`,
		"archive": `"labels": {"else": "true"}}, "spec": {"schedule": "23 3 * * *", "sink": {}}`,
	} {
		w.api.Put(t, sources+name, `{"apiVersion": "sources.knative.dev/v1", "kind": "PingSource",
			"metadata": {"name": "`+name+`", "namespace": "littoral", `+clock+`}`)
	}
	w.open(map[string]string{})
	return w
}

// open makes the function with these settings.
func (w *tower) open(given map[string]string) {
	w.Helper()
	given["CLOCK_PAUSE_CLOCKS"] = w.api.KubeconfigFile(w, "clocks")
	var err error
	w.function, err = pause.New(function.Platform{
		DB: w.db, Log: slog.New(slog.DiscardHandler), Settings: settings.Map(given),
	}.Env("clock-pause"))
	require.NoError(w, err)
}

func (w tower) schedules() map[string]string {
	w.Helper()
	all := map[string]string{}
	for _, name := range []string{"tick", "sweep", "archive"} {
		schedule, _, err := unstructured.NestedString(w.api.Get(sources+name).Object, "spec", "schedule")
		require.NoError(w, err)
		all[name] = schedule
	}
	return all
}

func (w tower) tx(do func(ctx context.Context, tx *store.Tx) error) {
	w.Helper()
	require.NoError(w, w.db.Tx(store.WithSource(w.Context(), "/test"), do))
}

func (w tower) submit() uuid.UUID {
	w.Helper()
	return applicationtest.Submit(w, w.db, descriptor).ID
}

func (w tower) create(policy string) (id uuid.UUID) {
	w.Helper()
	w.tx(func(ctx context.Context, tx *store.Tx) error {
		p := registry.Policy{
			Name: policy, Subject: registry.Subject{Type: registry.HostSubject, HostID: "h", AgentID: "a"},
			Spec: registry.Spec{Type: registry.TelemetrySpec, Expr: "up < 1"},
		}
		stored, _, err := policies.Create(ctx, tx, policies.New(p, policies.FromAPI), false)
		id = stored.UUID()
		return err
	})
	return id
}

// notified lists the events about the first application or policy.
func (w tower) notified(typ string) (first []uuid.UUID) {
	w.Helper()
	for _, e := range storetest.Published(w.db, typ) {
		about, err := events.Data[struct{ ID uuid.UUID }](e)
		require.NoError(w, err)
		first = append(first, about.ID)
	}
	return first
}

var (
	ticking = map[string]string{"tick": "*/5 * * * *", "sweep": "*/10 * * * *", "archive": "23 3 * * *"}
	resting = map[string]string{"tick": never, "sweep": never, "archive": "23 3 * * *"}
)

func TestClocksRestWhileThereIsNothingToWatch(t *testing.T) {
	w := newTower(t)
	require.NoError(t, w.function.Run(t.Context()))
	require.Equal(t, resting, w.schedules())
	before := w.api.Calls()
	require.NoError(t, w.function.Run(t.Context()))
	require.Equal(t, before, w.api.Calls(), "who rests is left alone")

	id := w.submit()
	require.NoError(t, w.function.Run(t.Context()))
	require.Equal(t, ticking, w.schedules())
	require.Empty(t, w.api.Get(sources+"tick").GetAnnotations(), "nothing is left of the rest")

	w.tx(func(ctx context.Context, tx *store.Tx) error {
		if _, err := application.Stop(ctx, tx, id); err != nil {
			return err
		}
		_, _, err := application.Delete(ctx, tx, id, false)
		return err
	})
	require.NoError(t, w.db.Flush(t.Context()))
	require.NoError(t, w.function.Run(t.Context()))
	require.Equal(t, resting, w.schedules())

	// A roll-out applies the files, which do not suspend anything.
	w.api.Change(sources+"tick", func(o *kubeapi.Object) {
		require.NoError(t, unstructured.SetNestedField(o.Object, "*/7 * * * *", "spec", "schedule"))
	})
	require.NoError(t, w.function.Run(t.Context()))
	require.Equal(t, resting, w.schedules())
	w.submit()
	require.NoError(t, w.function.Run(t.Context()))
	require.Equal(t, "*/7 * * * *", w.schedules()["tick"])
	require.Equal(t, kubeapi.Granted(t, "../../../infra/base/rbac.yaml", "clock-pause"), w.api.Used(), "the rights that it has")
}

// TestWhatComesWhileTheClocksAreStoppedIsWatched: the call that stopped them looks again.
func TestWhatComesWhileTheClocksAreStoppedIsWatched(t *testing.T) {
	w := newTower(t)
	var once sync.Once
	w.api.Refuse(func(verb, _ string) error {
		if verb == http.MethodPatch {
			once.Do(func() { w.submit() }) // its own event finds everything still running, and sets nothing
		}
		return nil
	})
	require.NoError(t, w.function.Run(t.Context()))
	require.Equal(t, ticking, w.schedules())
}

func TestWhatIsStillUnderWayIsWatched(t *testing.T) {
	const gone = `update applications set deleted_at = now(); `
	const ended = gone + `delete from jobs; `
	for name, row := range map[string]struct {
		left string
		want map[string]string
	}{
		"nothing":                              {ended, resting},
		"an event that was not published":      {ended + `insert into outbox (id, event) values (gen_random_uuid(), '{}')`, ticking},
		"a job of an application that is gone": {gone, ticking},
		"a policy that nobody's application brings": {ended + `insert into policies (id, name, phase, origin, definition)
			values (gen_random_uuid(), 'p', 'enforced', 'api', '{}')`, ticking},
		"a rule of a policy that is gone": {ended + `insert into policies
			(id, name, phase, origin, definition, deleted_at, rule_done, rule_wanted)
			values (gen_random_uuid(), 'p', 'enforced', 'api', '{}', now(), 1, 2)`, ticking},
	} {
		t.Run(name, func(t *testing.T) {
			w := newTower(t)
			w.submit()
			require.NoError(t, w.db.Flush(t.Context()))
			_, err := w.db.Exec(t.Context(), row.left)
			require.NoError(t, err)
			require.NoError(t, w.function.Run(t.Context()))
			require.Equal(t, row.want, w.schedules())
		})
	}
}

// TestTheFirstApplicationResumesTheClocks: the first application is announced as such, and no other.
func TestTheFirstApplicationResumesTheClocks(t *testing.T) {
	t.Parallel()
	w := tower{T: t, db: storetest.New(t)}
	id := w.submit()
	w.submit()
	require.Equal(t, []uuid.UUID{id}, w.notified(events.ApplicationFirst))
}

// TestTheClocksDoNotWaitForThePlacement: a Broker may hold an event until its consumers have accepted it, or for as
// long as they fail; only a PingSource wakes the functions that repair that.
func TestTheClocksDoNotWaitForThePlacement(t *testing.T) {
	t.Parallel()
	broker := storetest.NewHolding()
	db, err := store.Open(t.Context(), store.Config{DatabaseURL: storetest.URL(t), PublishAtOnce: 16}, broker, nil)
	require.NoError(t, err)
	t.Cleanup(db.Close)
	w := tower{T: t, db: db}
	w.submit()
	var held []string
	for len(held) < 2 { // and nothing answers
		e := <-broker.Arrived
		held = append(held, e.Type())
	}
	require.ElementsMatch(t, []string{events.ApplicationSubmitted, events.ApplicationFirst}, held)
	close(broker.Answers)
	require.NoError(t, w.db.Flush(t.Context()))

	w.tx(func(ctx context.Context, tx *store.Tx) error {
		_, err := tx.Exec(ctx, `update applications set deleted_at = now()`)
		return err
	})
	w.create("p")
	require.NoError(t, w.db.Flush(t.Context()))
	e := <-broker.Arrived
	require.Equal(t, []string{events.PolicyFirst, events.Clocks}, []string{e.Type(), e.Subject()})
}

// TestTheFirstPolicyResumesItsClocks: if there is no application, nothing else would start the PingSources for it. The next
// policy finds them running, and so does one that is watched only later.
func TestTheFirstPolicyResumesItsClocks(t *testing.T) {
	w := newTower(t)
	require.NoError(t, w.function.Run(t.Context()))
	require.Equal(t, resting, w.schedules())
	one := w.create("one")
	w.create("two")
	require.Equal(t, []uuid.UUID{one}, w.notified(events.PolicyFirst))
	require.Contains(t, pause.Spec.Consumes, events.PolicyFirst)
	require.NoError(t, w.function.Run(t.Context()))
	require.Equal(t, ticking, w.schedules())

	_, err := w.db.Exec(t.Context(), `delete from policies`)
	require.NoError(t, err)
	w.submit()
	w.create("of an application, or beside it")
	require.Equal(t, []uuid.UUID{one}, w.notified(events.PolicyFirst))
}

// TestEachClockTicksForWhatItLooksAfter: of the PingSources that are deployed those tick that have something to do, and those
// that never rest.
func TestEachClockTicksForWhatItLooksAfter(t *testing.T) {
	t.Parallel()
	deployed, err := manifests.Load(map[string]fs.FS{"/knative": knative.Files, "/triggers": triggers.Files}, "/knative/overlays/laptop")
	require.NoError(t, err)
	nightly := []string{"clock-pause-nightly", "jobmanager-archive"}
	const submitted = `insert into applications (id, name, namespace, descriptor, desired, dialect)
		values ('00000000-0000-0000-0000-000000000001', 'a', 'a', '', 'running', 'codeco')`
	for need, row := range map[string]struct{ sql, lighthouse, objects, forecasts string }{
		"nothing":                {},
		"codeco":                 {sql: submitted},
		"handovers":              {sql: `insert into handovers (application_id, side, state, peer, epoch) values (gen_random_uuid(), 'receiver', 'accepted', 'p', 1)`},
		"controllers":            {sql: `insert into controllers (address, name, owner) values ('http://a.example', 'a', 'a')`},
		"location-subscriptions": {sql: `insert into mec_subscriptions (id, kind, owner, body) values (gen_random_uuid(), 'users', 'a', '{}')`},
		"lighthouse":             {lighthouse: "http://lighthouse.example"},
		"codeco-objects":         {objects: "in-cluster"},
		"channels": {sql: submitted + `; insert into channels
			(application_id, position, name, source, target, class, bandwidth, max_latency, latency, loopback, network, path)
			select id, 0, 'c', 'a', 'b', 'BESTEFFORT', 1, 0, 0, false, 'LAN', 'a-b' from applications`},
		"forecasts": {sql: submitted, forecasts: "true"},
	} {
		t.Run(need, func(t *testing.T) {
			t.Parallel()
			w := tower{T: t, db: storetest.New(t), api: kubeapi.Start(t, []string{"littoral"}, nil)}
			w.api.Define("sources.knative.dev", "v1", "PingSource", "pingsources", true)
			want := slices.Clone(nightly)
			for key, source := range deployed.PingSources {
				source.Namespace = "littoral"
				body, err := json.Marshal(source)
				require.NoError(t, err)
				w.api.Put(t, sources+key.Name, string(body))
				runs := strings.HasPrefix(row.sql, submitted)
				switch label := source.Labels["littoral.dev/ticks-while"]; {
				case label == "":
					require.Contains(t, nightly, key.Name, "a clock that never rests keeps the system awake")
				case label == need, label == "anything" && row.sql != "", (label == "work" || label == "codeco") && runs,
					label == "channels" && row.forecasts != "":
					want = append(want, key.Name)
				}
			}
			require.NotEmpty(t, want)
			if row.sql != "" {
				_, err := w.db.Exec(t.Context(), row.sql)
				require.NoError(t, err)
			}
			w.open(map[string]string{"LIGHTHOUSE": row.lighthouse, "CODECO_OBJECTS": row.objects, "USE_FORECAST": cmp.Or(row.forecasts, "false")})
			require.NoError(t, w.function.Run(t.Context()))
			var ticking []string
			for key := range deployed.PingSources {
				schedule, _, err := unstructured.NestedString(w.api.Get(sources+key.Name).Object, "spec", "schedule")
				require.NoError(t, err)
				if schedule != never {
					ticking = append(ticking, key.Name)
				}
			}
			require.ElementsMatch(t, want, ticking)
		})
	}
}

func TestWithoutACluster(t *testing.T) {
	t.Parallel()
	f, err := pause.New(function.Platform{}.Env("clock-pause"))
	require.NoError(t, err)
	require.NoError(t, f.Run(t.Context()))
}
