package policies_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	cloudevents "github.com/cloudevents/sdk-go/v2/event"
	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/littoral-project/littoral/shared/application/applicationtest"
	"github.com/littoral-project/littoral/shared/events"
	"github.com/littoral-project/littoral/shared/policy/policies"
	"github.com/littoral-project/littoral/shared/policy/registry"
	"github.com/littoral-project/littoral/shared/problem"
	"github.com/littoral-project/littoral/shared/store"
	"github.com/littoral-project/littoral/shared/store/storetest"
	"github.com/littoral-project/littoral/shared/telemetry/rules/check"
)

func TestMain(m *testing.M) { storetest.Main(m) }

// ruler is a rule store in memory, named by the groups' names.
type ruler struct {
	kept    map[string]registry.RuleGroup
	puts    int
	refuses error  // what it says to every rule
	hides   error  // what it says to who asks for a list
	nowhere bool   // it is none: no rules API is set
	after   func() // called when a rule was put
}

func (r *ruler) Put(_ context.Context, g registry.RuleGroup) (string, error) {
	if r.refuses != nil || r.nowhere {
		return "", r.refuses
	}
	r.puts++
	r.kept["file-"+g.Name] = g
	if r.after != nil {
		r.after()
	}
	return "file-" + g.Name, nil
}

func (r *ruler) Delete(_ context.Context, file string) error {
	delete(r.kept, file)
	return nil
}

func (r *ruler) URL() string {
	if r.nowhere {
		return ""
	}
	return "http://rules/"
}

func (r *ruler) List(context.Context) (map[string]registry.RuleGroup, error) {
	return maps.Clone(r.kept), r.hides
}

// world is a database with a rule store beside it.
type world struct {
	applicationtest.World
	rules *ruler
	done  map[string]bool // events that were worked off
}

func newWorld(t *testing.T) *world {
	t.Helper()
	return &world{applicationtest.New(t), &ruler{kept: map[string]registry.RuleGroup{}}, map[string]bool{}}
}

// seen is the policy as its readers have it.
func (w *world) seen(p *policies.Policy) *policies.Policy {
	w.Helper()
	now, err := policies.Get(w.Context(), w.DB, p.UUID())
	require.NoError(w, err)
	return now
}

// plain renders nothing: its expression is the policy's.
func plain(p *registry.Policy) (registry.Spec, error) { return p.Spec, nil }

func (w *world) create(name, expr string) *policies.Policy {
	w.Helper()
	p := policies.New(registry.Policy{
		Name: name, Subject: registry.Subject{Type: registry.AppSubject, AppName: "a", AppInstance: "i", AppComponent: "*"},
		Spec: registry.Spec{Type: registry.TelemetrySpec, Expr: expr},
	}, policies.FromAPI)
	require.NoError(w, p.Render(plain))
	require.NoError(w, w.Tx(func(ctx context.Context, tx *store.Tx) (err error) {
		p, _, err = policies.Create(ctx, tx, p, true)
		return err
	}))
	return p
}

// news are the events of that type that nobody asked for before.
func (w *world) news(typ string) (found []cloudevents.Event) {
	for _, e := range storetest.Published(w.DB, typ) {
		if !w.done[e.ID()] {
			w.done[e.ID()] = true
			found = append(found, e)
		}
	}
	return found
}

// sync works off every change that was announced and not yet followed.
func (w *world) sync() {
	w.Helper()
	for _, e := range w.news(events.PolicyChanged) {
		id := uuid.MustParse(e.Subject())
		require.NoError(w, policies.Sync(w.Context(), w.DB, w.rules, id))
	}
}

func (w *world) files() []string { return slices.Sorted(maps.Keys(w.rules.kept)) }

func (w *world) change(p *policies.Policy, fn func(context.Context, *store.Tx, *policies.Policy) error) {
	w.Helper()
	require.NoError(w, w.Tx(func(ctx context.Context, tx *store.Tx) error {
		locked, err := policies.Lock(ctx, tx, p.UUID())
		if err != nil {
			return err
		}
		return fn(ctx, tx, locked)
	}))
}

func TestSync_followsThePolicyAndRepeatsHarmlessly(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p := w.create("cpu", "up > 1")
	id := p.UUID()
	ctx, crash := context.WithCancel(t.Context())
	w.rules.after = crash
	require.ErrorIs(t, policies.Sync(ctx, w.DB, w.rules, id), context.Canceled)
	w.rules.after = nil
	require.Len(t, w.files(), 1, "the rule is there, and nobody knows")
	require.Empty(t, w.seen(p).RuleFile)
	w.sync()
	w.sync()
	require.Len(t, w.files(), 1, "the repeat is the same rule")
	require.Equal(t, 2, w.rules.puts)
	require.Equal(t, map[string]registry.Backend{
		"prom-1": {Service: "prometheus", URL: "http://rules/", RuleFile: w.files()[0]},
	}, w.seen(p).Status.MeasurementBackends)

	w.change(p, func(ctx context.Context, tx *store.Tx, p *policies.Policy) error { return p.Deactivate(ctx, tx, true) })
	w.sync()
	require.Empty(t, w.files())
	w.change(p, func(ctx context.Context, tx *store.Tx, p *policies.Policy) error { return p.Activate(ctx, tx) })
	w.change(p, func(ctx context.Context, tx *store.Tx, p *policies.Policy) error { return p.Delete(ctx, tx) })
	w.sync()
	require.Empty(t, w.files(), "late news of the activation does not bring a deleted policy's rule back")
	var rows int
	require.NoError(t, w.DB.QueryRow(t.Context(), `select count(*) from policies`).Scan(&rows))
	require.Zero(t, rows)
}

// TestSync_ofARuleThatTheStoreRefuses: nothing watches the policy then, which it says once, and nobody asks again until
// somebody activates it.
func TestSync_ofARuleThatTheStoreRefuses(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p := w.create("cpu", "up > 1")
	w.sync()
	require.Len(t, w.files(), 1)
	w.rules.refuses = problem.New(problem.Invalid, "the limit of 70 groups is reached")
	w.change(p, func(ctx context.Context, tx *store.Tx, p *policies.Policy) error {
		next := p.Policy
		next.Spec.Expr = "up > 2"
		return p.Update(ctx, tx, next, next.Spec)
	})
	w.sync()
	require.Empty(t, w.files(), "the former rule watches what the policy does not say any more")
	refused := w.seen(p)
	require.Equal(t, registry.Unknown, refused.Status.Phase)
	require.Empty(t, refused.Status.MeasurementBackends)
	last := refused.Status.Events[len(refused.Status.Events)-1]
	require.Equal(t, registry.EventRenderingError, last.Type)
	require.Contains(t, last.Details["error"], "70 groups")
	var told string
	require.NoError(t, w.DB.QueryRow(t.Context(), `select message from history where event = 'policy.refused'`).Scan(&told))
	require.Contains(t, told, "70 groups")

	_, err := w.DB.Exec(t.Context(), `update policies set updated_at = updated_at - interval '1 hour'`)
	require.NoError(t, err)
	repaired, err := policies.Reconcile(t.Context(), w.DB, w.rules)
	require.NoError(t, err)
	require.Zero(t, repaired)

	w.rules.refuses = nil
	w.change(p, func(ctx context.Context, tx *store.Tx, p *policies.Policy) error { return p.Activate(ctx, tx) })
	w.sync()
	require.Len(t, w.files(), 1)
	require.Equal(t, registry.Enforced, w.seen(p).Status.Phase)
}

// TestReconcile_carriesOverWhatIsLate itself: an event for each attempt would be a dead letter for each, while the rules
// API does not work.
func TestReconcile_carriesOverWhatIsLate(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	away := problem.New(problem.Unavailable, "the rules API answered 401")
	w.rules.refuses = away
	w.create("cpu", "up > 1")
	w.create("memory", "up > 2")
	_, err := w.DB.Exec(t.Context(), `update policies set updated_at = updated_at - interval '8 min'`)
	require.NoError(t, err)
	repaired, err := policies.Reconcile(t.Context(), w.DB, w.rules)
	require.NoError(t, err)
	require.Zero(t, repaired, "the Broker may deliver them yet")
	_, err = w.DB.Exec(t.Context(), `update policies set updated_at = updated_at - interval '1 hour'`)
	require.NoError(t, err)
	told := len(storetest.Published(w.DB))
	for range 3 {
		repaired, err := policies.Reconcile(t.Context(), w.DB, w.rules)
		require.ErrorIs(t, err, away)
		require.Equal(t, 2, strings.Count(err.Error(), "401"), "each was tried")
		require.Equal(t, policies.Repaired{Late: 2}, repaired)
	}
	w.rules.refuses = nil
	repaired, err = policies.Reconcile(t.Context(), w.DB, w.rules)
	require.NoError(t, err)
	require.Equal(t, policies.Repaired{Late: 2}, repaired)
	require.Len(t, w.files(), 2)
	require.NoError(t, w.DB.Flush(t.Context()))
	require.Len(t, storetest.Published(w.DB), told)
	repaired, err = policies.Reconcile(t.Context(), w.DB, w.rules)
	require.NoError(t, err)
	require.Zero(t, repaired)
}

// TestRelease_announcesOnceWhatIsDue: whoever sees to it says until when it is held next. Where nobody can, an event at
// each tick would be a dead letter at each.
func TestRelease_announcesOnceWhatIsDue(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	_, err := w.DB.Exec(t.Context(), `insert into policy_actions (id, policy_id, instance, component, remediation, status,
violation, started_at, received_at, held_until) select gen_random_uuid(), gen_random_uuid(), '', '', 'reallocate', 'held',
'{}', now(), now(), now() + until from unnest(array[interval '-1 min', interval '1 h']) until`)
	require.NoError(t, err)
	announced := func() int {
		_, err := policies.Release(t.Context(), w.DB)
		require.NoError(t, err)
		return len(storetest.Published(w.DB, events.RemediationRequested))
	}
	require.Equal(t, 1, announced())
	require.Equal(t, 1, announced(), "it is on its way")
	pass := func(time string) {
		_, err := w.DB.Exec(t.Context(), `update policy_actions set held_until = held_until - $1::interval`, time)
		require.NoError(t, err)
	}
	pass("18 min")
	require.Equal(t, 1, announced(), "the Broker may deliver it yet")
	pass("3 min")
	require.Equal(t, 2, announced(), "nobody has seen to it")
}

// TestGroups_areTakenWhateverPolicyTheyAreOf: what a policy may be, the rules API takes.
func TestGroups_areTakenWhateverPolicyTheyAreOf(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p := w.create(strings.Repeat("n", 512), "up > 1")
	require.NoError(t, p.Check())
	w.sync()
	require.Len(t, w.rules.kept, 1)
	for _, g := range w.rules.kept {
		body, err := json.Marshal(registry.RulesRequest{Data: registry.RuleFile{Groups: []registry.RuleGroup{g}}})
		require.NoError(t, err)
		_, err = check.Request(body)
		require.NoError(t, err)
	}
}

// TestReconcile_leavesARuleThatIsOnlyWrittenOtherwise: Mimir says 1m for 60s, and leaves out what is nought.
func TestReconcile_leavesARuleThatIsOnlyWrittenOtherwise(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for pending, other := range map[string]string{"60s": "1m", "90m": "1h30m", "": "", "0": "0s"} {
		p := w.create("cpu "+pending, "up > 1")
		w.change(p, func(ctx context.Context, tx *store.Tx, p *policies.Policy) error {
			next := p.Policy
			next.Properties.PendingInterval = pending
			return p.Update(ctx, tx, next, p.Spec)
		})
		w.sync()
		for _, g := range w.rules.kept {
			if g.Rules[0].Annotations[registry.AnnotationID] == p.ID {
				g.Rules[0].For = other
			}
		}
	}
	puts := w.rules.puts
	repaired, err := policies.Reconcile(t.Context(), w.DB, w.rules)
	require.NoError(t, err)
	require.Zero(t, repaired)
	w.sync()
	require.Equal(t, puts, w.rules.puts)

	for _, g := range w.rules.kept {
		g.Rules[0].For = "2m"
	}
	_, err = policies.Reconcile(t.Context(), w.DB, w.rules)
	require.NoError(t, err)
	w.sync()
	require.Equal(t, puts+4, w.rules.puts, "what differs is put anew")
}

// TestReconcile_waitsForNoneThatIsInStep: a policy may be kept for as long as a rule store takes, and there may be many.
func TestReconcile_waitsForNoneThatIsInStep(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for i := range 250 {
		w.create(fmt.Sprintf("p%d", i), "up > 1")
	}
	w.sync()
	require.Len(t, w.files(), 250)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	require.NoError(t, w.Tx(func(_ context.Context, tx *store.Tx) error {
		if _, err := tx.Exec(ctx, `select from policies for update`); err != nil {
			return err
		}
		repaired, err := policies.Reconcile(ctx, w.DB, w.rules)
		require.Zero(t, repaired)
		return err
	}))
	require.Len(t, w.files(), 250)
}

func TestReconcile_repairsWhatDiffers(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	kept, lost, changed := w.create("kept", "up > 1"), w.create("lost", "up > 2"), w.create("changed", "up > 3")
	w.sync()
	require.Len(t, w.files(), 3)
	orphan, _ := (&policies.Policy{Policy: kept.Policy}).RuleGroup()
	orphan.Name, orphan.Rules[0].Annotations = "orphan", map[string]string{"plm_id": uuid.NewString()}
	w.rules.kept["orphan"] = orphan
	w.rules.kept["odd"] = registry.RuleGroup{Rules: []registry.Rule{{Annotations: map[string]string{"plm_id": "x"}}}}
	w.rules.kept["foreign"] = registry.RuleGroup{Rules: []registry.Rule{{Alert: "Watchdog", Expr: "vector(1)"}}}
	for file, group := range w.rules.kept {
		switch group.Rules[0].Annotations["plm_id"] {
		case lost.ID:
			delete(w.rules.kept, file)
		case changed.ID:
			group.Rules = slices.Clone(group.Rules)
			group.Rules[0].Expr = "up > 99"
			w.rules.kept[file] = group
		}
	}
	repaired, err := policies.Reconcile(t.Context(), w.DB, w.rules)
	require.NoError(t, err)
	require.Equal(t, policies.Repaired{Missing: 1, Orphans: 2}, repaired)
	w.sync()
	require.Len(t, w.files(), 4, "three policies' rules, and somebody else's")
	require.Contains(t, w.files(), "foreign")
	var exprs []string
	for _, g := range w.rules.kept {
		exprs = append(exprs, g.Rules[0].Expr)
	}
	slices.Sort(exprs)
	require.Equal(t, []string{"up > 1", "up > 2", "up > 3", "vector(1)"}, exprs)
	again, err := policies.Reconcile(t.Context(), w.DB, w.rules)
	require.NoError(t, err)
	require.Zero(t, again)
}

// TestReconcile_withoutAList: the rules API of ICOS has none.
func TestReconcile_withoutAList(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.rules.nowhere = true
	w.create("early", "up > 1")
	w.sync()
	nothing, err := policies.Reconcile(t.Context(), w.DB, w.rules)
	require.NoError(t, err)
	require.Zero(t, nothing, "there is no rules API")

	w.rules.nowhere, w.rules.hides = false, errors.New("no such method")
	w.create("late", "up > 2")
	_, err = w.DB.Exec(t.Context(), `update policies set updated_at = updated_at - interval '1 hour'`)
	require.NoError(t, err)
	repaired, err := policies.Reconcile(t.Context(), w.DB, w.rules)
	require.ErrorIs(t, err, w.rules.hides)
	require.Equal(t, policies.Repaired{Missing: 1, Late: 1}, repaired, "a rules API was set after the first was made")
	w.sync()
	require.Len(t, w.files(), 2)
	repaired, err = policies.Reconcile(t.Context(), w.DB, w.rules)
	require.ErrorIs(t, err, w.rules.hides)
	require.Zero(t, repaired)
}

func TestPrune_keepsTheEventsThatAPolicyShows(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	often, rarely := w.create("often", "up > 1"), w.create("rarely", "up > 2")
	_, err := w.DB.Exec(t.Context(), `insert into policy_events (policy_id, type, details)
select $1, 'violated', jsonb_build_object('n', n) from generate_series(1, 60) n`, often.UUID())
	require.NoError(t, err)
	count := func(sql string) (n int) {
		require.NoError(t, w.DB.QueryRow(t.Context(), sql).Scan(&n))
		return n
	}
	before := w.seen(often).Status.Events
	require.Len(t, before, 50)
	require.EqualValues(t, 60, before[49].Details["n"], "the newest come last")
	all := w.seen(rarely).Status.Events

	require.NoError(t, policies.Prune(t.Context(), w.DB))
	require.Equal(t, before, w.seen(often).Status.Events)
	require.Equal(t, all, w.seen(rarely).Status.Events)
	require.Equal(t, len(before)+len(all), count(`select count(*) from policy_events`))
}

// TestPrune_forgetsWhatWasDoneAndCountsOn: a counter never falls.
func TestPrune_forgetsWhatWasDoneAndCountsOn(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	running, deleted := uuid.NewString(), uuid.NewString()
	_, err := w.DB.Exec(t.Context(), `insert into applications (id, name, namespace, descriptor, deleted_at)
values ($1, 'hello', 'littoral', '', null), ($2, 'bye', 'littoral', '', now())`, running, deleted)
	require.NoError(t, err)
	for _, a := range []struct {
		instance, age string
	}{{"", "40 days"}, {"", "1 day"}, {running, "31 days"}, {deleted, "31 days"}} {
		_, err := w.DB.Exec(t.Context(), `insert into policy_actions (id, policy_id, instance, component, remediation, status,
violation, started_at, received_at, judged_at, acted_at)
select gen_random_uuid(), gen_random_uuid(), $1, '', 'reallocate', 'done', '{}', at, at + interval '0.2 s',
  at + interval '1 s', at + interval '400 s' from (select now() - $2::interval) t (at)`, a.instance, a.age)
		require.NoError(t, err)
	}
	before, err := policies.Metrics(t.Context(), w.DB)
	require.NoError(t, err)
	for _, line := range []string{
		`_bucket{stage="alert",le="0.1"} 0`, `_bucket{stage="alert",le="0.25"} 4`, `_bucket{stage="total",le="300"} 0`,
		`_bucket{stage="total",le="+Inf"} 4`, `_sum{stage="total"} 1600`, `_count{stage="total"} 4`,
	} {
		require.Contains(t, string(before), "plm_reaction_seconds"+line+"\n")
	}
	require.NoError(t, policies.Prune(t.Context(), w.DB))
	var left []string
	require.NoError(t, w.DB.QueryRow(t.Context(), `select array_agg(instance order by instance) from policy_actions`).Scan(&left))
	require.Equal(t, []string{"", deleted}, left, "what is gone takes its actions into the archive")
	after, err := policies.Metrics(t.Context(), w.DB)
	require.NoError(t, err)
	require.Equal(t, string(before), string(after))
}

// TestPrune_keepsWhatWasDoneAboutAnEpisodeThatIsRemembered: else one that goes on would be acted upon twice.
func TestPrune_keepsWhatWasDoneAboutAnEpisodeThatIsRemembered(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p := w.create("cpu", "up > 1")
	at := time.Now().UTC().Truncate(time.Microsecond).AddDate(0, 0, -40)
	require.NoError(t, w.Tx(func(ctx context.Context, tx *store.Tx) error {
		return policies.Judge(ctx, tx, events.Alert{
			Policy: p.UUID(), Fingerprint: "f", Firing: true, StartsAt: at, ReceivedAt: at, Since: p.State.Since,
			Labels: map[string]string{"icos_app_component": "web"},
		})
	}))
	_, err := w.DB.Exec(t.Context(), `update policy_actions set status = 'done', acted_at = started_at`)
	require.NoError(t, err)
	left := func() (n int) {
		require.NoError(t, policies.Prune(t.Context(), w.DB))
		require.NoError(t, w.DB.QueryRow(t.Context(), `select count(*) from policy_actions`).Scan(&n))
		return n
	}
	require.Equal(t, 1, left())
	w.change(p, func(ctx context.Context, tx *store.Tx, p *policies.Policy) error {
		return errors.Join(p.Deactivate(ctx, tx, true), p.Activate(ctx, tx))
	})
	require.Zero(t, left(), "it is watched anew, and what fired before is another violation")
}

// TestMetrics_neverFall whatever order the rows are read in, and when an alert is said to start ahead of us.
func TestMetrics_neverFall(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	_, err := w.DB.Exec(t.Context(), `insert into policy_actions (id, policy_id, instance, component, remediation, status,
violation, started_at, received_at, judged_at, acted_at)
select gen_random_uuid(), gen_random_uuid(), '', '', 'reallocate', 'done', '{}', at, at + a * interval '1 s',
  at + (a + b) * interval '1 s', at + (a + b + c) * interval '1 s'
from (select now() - i * interval '1 h' as at, random() as a, random() as b, random() * 9 as c
  from generate_series(1, 1500) i) t`)
	require.NoError(t, err)
	sums := func() []string {
		text, err := policies.Metrics(t.Context(), w.DB)
		require.NoError(t, err)
		return regexp.MustCompile(`_sum\{stage="\w+"\} \S+`).FindAllString(string(text), -1)
	}
	before := sums()
	require.Len(t, before, 4)
	for range 10 {
		_, err = w.DB.Exec(t.Context(), `update policy_actions set detail = 'moved'
where id in (select id from policy_actions order by random() limit 5)`)
		require.NoError(t, err)
		require.Equal(t, before, sums())
	}
	require.NoError(t, policies.Prune(t.Context(), w.DB))
	require.Equal(t, before, sums())

	_, err = w.DB.Exec(t.Context(), `insert into policy_actions (id, policy_id, instance, component, remediation, status,
violation, started_at, received_at, judged_at, acted_at)
values (gen_random_uuid(), gen_random_uuid(), '', '', '', 'done', '{}', now() + interval '1 h', now(), now(), now())`)
	require.NoError(t, err)
	require.Equal(t, before, sums(), "no stage takes less than no time")
}

// TestGroups_ofAlikeNamesAreTwo for the rules API, which knows groups by their names, and for who gets their alerts, which
// are known by their labels: the expression here leaves none.
func TestGroups_ofAlikeNamesAreTwo(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	create := func(name, instance string) string {
		p := policies.New(registry.Policy{
			Name:    name,
			Subject: registry.Subject{Type: registry.AppSubject, AppName: "a", AppInstance: instance, AppComponent: "c"},
			Spec:    registry.Spec{Type: registry.TelemetrySpec, Expr: "sum(up) > 1"},
		}, policies.FromAPI)
		require.NoError(t, p.Render(plain))
		require.NoError(t, w.Tx(func(ctx context.Context, tx *store.Tx) error {
			_, _, err := policies.Create(ctx, tx, p, true)
			return err
		}))
		return p.ID
	}
	ours, theirs := uuid.NewString(), uuid.NewString()
	one, two, named := create("cpu", "i0"), create("cpu", "i1"), create("a-"+ours+"-cpu", ours)
	labels := func() map[string]map[string]string {
		w.sync()
		found := map[string]map[string]string{}
		for _, g := range w.rules.kept {
			found[g.Rules[0].Annotations["plm_id"]] = g.Rules[0].Labels
		}
		return found
	}
	want := map[string]map[string]string{one: {"plm_id": one}, two: {"plm_id": two}, named: {}}
	require.Equal(t, want, labels())
	require.Contains(t, w.files(), "file-a-"+ours+"-cpu", "one whose name holds its instance needs no more")

	for _, g := range w.rules.kept { // as an older version made them
		clear(g.Rules[0].Labels)
	}
	_, err := policies.Reconcile(t.Context(), w.DB, w.rules)
	require.NoError(t, err)
	require.Equal(t, want, labels())
	require.Equal(t, 5, w.rules.puts, "the third was right")

	// A name may hold the instances of both, as those of job managers that number theirs: a-1-1-2 is the second policy of 1-1,
	// or the one called 1-2 of 1.
	for name, instances := range map[string][]string{
		"a-1-1-2": {"1", "1-1"}, "a-" + ours + "-" + theirs: {ours, theirs}, "a-*-/b|c/": {"*", "/b|c/"},
	} {
		for _, instance := range instances {
			id := create(name, instance)
			want[id] = map[string]string{"plm_id": id}
		}
		require.Equal(t, want, labels())
	}
}
