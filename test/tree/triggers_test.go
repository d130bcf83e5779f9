package tree_test

import (
	"cmp"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rickb777/date/period"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	eventingduckv1 "knative.dev/eventing/pkg/apis/duck/v1"
	eventingv1 "knative.dev/eventing/pkg/apis/eventing/v1"
	"knative.dev/pkg/apis"
	duckv1 "knative.dev/pkg/apis/duck/v1"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"

	synckubernetes "github.com/littoral-project/littoral/functions/deploymentmanager/sync-kubernetes"
	syncnuvla "github.com/littoral-project/littoral/functions/deploymentmanager/sync-nuvla"
	syncocm "github.com/littoral-project/littoral/functions/deploymentmanager/sync-ocm"
	"github.com/littoral-project/littoral/infra/runner/cron"
	"github.com/littoral-project/littoral/shared/events"
	"github.com/littoral-project/littoral/shared/orchestrator/deployer"
	"github.com/littoral-project/littoral/shared/settings"
	"github.com/littoral-project/littoral/triggers"
)

// outside are the event types from other systems, with their senders.
var outside = map[string]string{
	events.Tick: "PingSources",
	events.Any:  "the Broker, for what a consumer did not take",

	events.ObjectAdded: "ApiServerSources", events.ObjectUpdated: "ApiServerSources", events.ObjectDeleted: "ApiServerSources",
}

// wire is a Trigger or source in triggers/.
type wire struct {
	file     string
	Kind     string
	Metadata struct{ Name string }
	Spec     struct {
		eventingv1.TriggerSpec
		Schedule string
		Sink     duckv1.Destination
	}
}

// wires reads everything in triggers/, and the sources that are generated.
func wires(t testing.TB) []wire {
	t.Helper()
	names, err := filepath.Glob(root + "/triggers/*.yaml")
	require.NoError(t, err)
	additions, err := filepath.Glob(root + "/knative/watches/*/*.yaml")
	require.NoError(t, err)
	names = append(names, additions...)
	var all []wire
	for _, name := range names {
		text, err := os.ReadFile(name)
		require.NoError(t, err)
		for _, document := range strings.Split(string(text), "\n---\n") {
			w := wire{file: filepath.Base(name)}
			require.NoError(t, yaml.Unmarshal([]byte(document), &w), name)
			all = append(all, w)
		}
	}
	require.NotEmpty(t, all)
	return all
}

// wakes returns the function that a Trigger or source wakes, and its event types; "" for other objects.
func (w *wire) wakes(t testing.TB) (function string, types []string) {
	t.Helper()
	switch w.Kind {
	case "Trigger":
		kinds, err := triggers.Takes(w.Spec.TriggerSpec)
		require.NoError(t, err, w.file)
		for _, attributes := range kinds {
			types = append(types, attributes["type"])
		}
		return w.Spec.Subscriber.Ref.Name, types
	case "PingSource":
		return w.Spec.Sink.Ref.Name, []string{events.Tick}
	case "ApiServerSource":
		return w.Spec.Sink.Ref.Name, []string{events.ObjectAdded, events.ObjectUpdated, events.ObjectDeleted}
	case "Broker":
		return w.Spec.Delivery.DeadLetterSink.Ref.Name, []string{events.Any}
	}
	return "", nil
}

// TestSynchronisationsTickUnderTheLease: a job in progress is synchronised before its lease expires.
func TestSynchronisationsTickUnderTheLease(t *testing.T) {
	t.Parallel()
	var defaults deployer.Settings
	require.NoError(t, settings.Read(nil, "", &defaults))
	lease, deadline := defaults.Lease, syncocm.Spec.Timeout
	require.Equal(t, deadline, synckubernetes.Spec.Timeout)
	require.Equal(t, deadline, syncnuvla.Spec.Timeout)
	found := 0
	for _, w := range wires(t) {
		if w.Kind != "PingSource" || !strings.HasPrefix(w.Metadata.Name, "deploymentmanager-sync-") {
			continue
		}
		found++
		_, interval := w.strikes(t)
		require.Less(t, interval+deadline, lease)
	}
	require.Equal(t, 3, found)
}

// strikes is when a PingSource does so first in an hour, and how long it is until it does again.
func (w *wire) strikes(t testing.TB) (first, interval time.Duration) {
	t.Helper()
	schedule, err := cron.Parser.Parse(w.Spec.Schedule)
	require.NoError(t, err, w.file)
	hour := time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)
	next := schedule.Next(hour.Add(-time.Second))
	return next.Sub(hour), schedule.Next(next).Sub(next)
}

// TestClocksStrikeApart: tasks that run every five minutes each have a second of their own, so that not all pods start at once.
// They share half a minute, so that after it all of them sleep.
func TestClocksStrikeApart(t *testing.T) {
	t.Parallel()
	at := map[time.Duration]string{}
	for _, w := range wires(t) {
		if w.Kind != "PingSource" {
			continue
		}
		first, interval := w.strikes(t)
		if interval != 5*time.Minute {
			continue
		}
		require.Empty(t, at[first], "triggers/%s: another one strikes at %s: %s", w.file, first, w.Spec.Schedule)
		at[first] = w.file
		require.Less(t, first, 30*time.Second, "triggers/%s", w.file)
	}
	require.NotEmpty(t, at)
}

// TestTriggersAndDeclarationsAgree: triggers/ and the functions' declarations agree on which events wake which
// function.
func TestTriggersAndDeclarationsAgree(t *testing.T) {
	t.Parallel()
	woken, declared := map[string][]string{}, map[string][]string{}
	for _, w := range wires(t) {
		name, types := w.wakes(t)
		if name == "" {
			continue
		}
		if w.Kind == "Broker" {
			woken[name] = append(woken[name], types...)
			continue
		}
		require.Equal(t, name+".yaml", w.file, "what wakes a function is in the file of its name")
		if w.Kind == "PingSource" && slices.Contains(woken[name], types[0]) {
			continue // two PingSources may wake one function, each at its own interval
		}
		for _, typ := range types {
			require.NotContains(t, woken[name], typ, "%s would get each %s twice", name, typ)
		}
		woken[name] = append(woken[name], types...)
		switch w.Kind {
		case "Trigger":
			require.Equal(t, "default", w.Spec.Broker)
			require.Equal(t, name, w.Metadata.Name, "one Trigger for a reaction, with its name")
			require.Equal(t, "Service", w.Spec.Subscriber.Ref.Kind)
		case "PingSource":
			require.NotEmpty(t, w.Spec.Schedule)
		}
	}
	for name, entry := range entries(t) {
		if len(entry.Spec.Consumes) > 0 {
			declared[name] = entry.Spec.Consumes
		}
	}
	require.Equal(t, slices.Sorted(maps.Keys(declared)), slices.Sorted(maps.Keys(woken)))
	for name := range declared {
		require.ElementsMatch(t, declared[name], woken[name], "%s: Consumes and triggers/%s.yaml differ", name, name)
	}
}

// TestWhoeverTakesEventsCanSaySo: an event stays in the outbox until all its consumers have noted in the store that they
// have it.
func TestWhoeverTakesEventsCanSaySo(t *testing.T) {
	t.Parallel()
	for name, entry := range entries(t) {
		for _, typ := range entry.Spec.Consumes {
			require.True(t, events.Nudge(typ) || !entry.Spec.Storeless, "%s takes %s and has no store", name, typ)
		}
	}
}

// TestEveryTypeThatIsConsumedIsEmitted: by some function, or by another system.
func TestEveryTypeThatIsConsumedIsEmitted(t *testing.T) {
	t.Parallel()
	emitted := map[string]bool{}
	for name, entry := range entries(t) {
		for _, typ := range entry.Spec.Emits {
			require.Regexp(t, `^dev\.littoral(\.[a-z]+){2}\.v[0-9]+$`, typ, name)
			emitted[typ] = true
		}
	}
	consumed := map[string]bool{}
	for name, entry := range entries(t) {
		for _, typ := range entry.Spec.Consumes {
			consumed[typ] = true
			require.True(t, emitted[typ] || outside[typ] != "", "%s waits for %s, which nobody emits", name, typ)
		}
	}
	for typ, sender := range outside {
		if !consumed[typ] {
			t.Errorf("nobody waits for %s of %s: remove it from outside", typ, sender)
		}
	}
}

// TestEveryTriggerFileIsApplied: kustomize only applies the files in the kustomization.
func TestEveryTriggerFileIsApplied(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(root + "/triggers/kustomization.yaml")
	require.NoError(t, err)
	var k struct{ Resources []string }
	require.NoError(t, yaml.Unmarshal(text, &k))
	files, err := filepath.Glob(root + "/triggers/*.yaml")
	require.NoError(t, err)
	var have []string
	for _, file := range files {
		if name := filepath.Base(file); name != "kustomization.yaml" {
			have = append(have, name)
		}
	}
	require.ElementsMatch(t, have, k.Resources)
}

// TestEveryTriggerSaysHowItDelivers: in the output of kustomize. A Trigger with a partial delivery spec inherits
// nothing of the rest. Retries last longer than a restart of Postgres or a roll-out, and end soon enough for the dead
// letters.
func TestEveryTriggerSaysHowItDelivers(t *testing.T) {
	t.Parallel()
	n := 0
	eachBuilt(t, root+"/triggers", func(name string, object struct {
		Spec struct{ Delivery eventingduckv1.DeliverySpec }
	},
	) {
		d := object.Spec.Delivery
		require.True(t, d.Retry != nil && d.BackoffPolicy != nil && d.BackoffDelay != nil && d.DeadLetterSink != nil, name)
		require.Equal(t, "outbox-dead-letter", d.DeadLetterSink.Ref.Name, name)
		require.Equal(t, eventingduckv1.BackoffPolicyExponential, *d.BackoffPolicy, name)
		delay, err := period.Parse(*d.BackoffDelay)
		require.NoError(t, err, name)
		span := time.Duration(0) // only the pauses: Knative doubles each one, from the delay on, without jitter
		for pause, left := delay.DurationApprox(), *d.Retry; left > 0; pause, left = 2*pause, left-1 {
			span += pause
		}
		require.Greater(t, span, 5*time.Minute, name)
		require.Less(t, span, 20*time.Minute, name)
		n++
	}, "Broker", "Trigger")
	require.Greater(t, n, 1)
}

// TestBrokersThatKeepWhatTheyTake: each component leaves one Broker, which Knative accepts, and makes what its configuration names.
func TestBrokersThatKeepWhatTheyTake(t *testing.T) {
	t.Parallel()
	for component, want := range map[string]struct{ class, config, sink string }{
		"kafka":    {"Kafka", "ConfigMap knative-eventing/kafka-broker-config", "http://kafka-broker-ingress.knative-eventing.svc.cluster.local/littoral/default"},
		"rabbitmq": {"RabbitMQBroker", "RabbitmqBrokerConfig littoral/littoral", "http://default-broker-ingress.littoral.svc.cluster.local"},
		"nats":     {"MTChannelBasedBroker", "ConfigMap littoral/broker-channels", "http://broker-ingress.knative-eventing.svc.cluster.local/littoral/default"},
	} {
		dir := with(t, "lighthouse", root+"/knative/"+component)
		made := map[string]bool{}
		for _, b := range build(t, dir) {
			made[b.kind+" littoral/"+b.name] = true
			require.NotEmpty(t, b.labels["littoral.dev/stage"], "%s %s of %s would never be applied", b.kind, b.name, component)
			switch {
			case b.kind == "Broker":
				var broker eventingv1.Broker
				require.NoError(t, yaml.UnmarshalStrict(b.text, &broker))
				broker.SetDefaults(t.Context())
				require.NoError(t, asError(broker.Validate(t.Context())), component)
				require.Equal(t, want.class, broker.Annotations[eventingv1.BrokerClassAnnotationKey])
				config := broker.Spec.Config
				require.Equal(t, want.config, fmt.Sprintf("%s %s/%s", config.Kind, cmp.Or(config.Namespace, "littoral"), config.Name))
				require.NotNil(t, broker.Spec.Delivery.DeadLetterSink, "the component leaves how events are delivered")
			case b.kind == "ConfigMap" && b.name == "littoral":
				var settings corev1.ConfigMap
				require.NoError(t, yaml.Unmarshal(b.text, &settings))
				require.Equal(t, want.sink, settings.Data["K_SINK"], component)
			}
		}
		require.True(t, made["Broker littoral/default"], component)
		if component != "kafka" { // whose configuration comes with its installation
			require.True(t, made[want.config], "%s makes what its Broker names", component)
		}
	}
}

// asError is nil if there is no fault.
func asError(fault *apis.FieldError) error {
	if fault == nil {
		return nil
	}
	return fault
}

// eachBuilt visits the objects of these kinds in the output of kustomize for a folder.
func eachBuilt[T any](t *testing.T, dir string, visit func(name string, object T), kinds ...string) {
	t.Helper()
	for _, b := range build(t, dir) {
		if !slices.Contains(kinds, b.kind) {
			continue
		}
		var object T
		require.NoError(t, yaml.Unmarshal(b.text, &object))
		visit(b.kind+" "+b.name, object)
	}
}

// built is an object that kustomize makes.
type built struct {
	kind, group, name string
	labels            map[string]string
	text              []byte // YAML
}

// builds are the outputs of kustomize by folder: it takes tens of seconds for an overlay, and many tests read the same ones.
var builds sync.Map

// build returns what kustomize makes of a folder.
func build(t *testing.T, dir string) []built {
	t.Helper()
	once, _ := builds.LoadOrStore(filepath.Clean(dir), sync.OnceValues(func() (all []built, err error) {
		objects, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), dir)
		if err != nil {
			return nil, err
		}
		for _, r := range objects.Resources() {
			text, err := r.AsYAML()
			if err != nil {
				return nil, err
			}
			all = append(all, built{r.GetKind(), r.GetGvk().Group, r.GetName(), r.GetLabels(), text})
		}
		return all, nil
	}))
	all, err := once.(func() ([]built, error))()
	require.NoError(t, err, dir)
	return all
}
