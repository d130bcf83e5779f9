package manifests_test

import (
	"io/fs"
	"maps"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"

	"github.com/littoral-project/littoral/infra/runner/manifests"
)

// tree is a small valid project; rows of the tests change one file of it.
var tree = map[string]string{
	"knative/overlays/laptop/kustomization.yaml": `
namespace: littoral
resources: [../../base, ../../../triggers]
buildMetadata: [originAnnotations]
patches:
  - target: {kind: PingSource}
    patch: '[{"op": "replace", "path": "/spec/schedule", "value": "*/5 * * * * *"}]'
`,
	"knative/base/kustomization.yaml": "resources: [place.yaml]\n",
	"knative/base/place.yaml": `
apiVersion: serving.knative.dev/v1
kind: Service
metadata: {name: matchmaker-place}
spec:
  template:
    spec:
      timeoutSeconds: 15
      containers:
        - image: ko://example.org/functions/cmd/matchmaker-place
          env: [{name: LIMIT, value: "7"}, {name: SECRET, valueFrom: {secretKeyRef: {name: s, key: k}}}]
`,
	"triggers/kustomization.yaml": "resources: [broker.yaml, place.yaml, tick.yaml]\n",
	"triggers/broker.yaml": `
apiVersion: eventing.knative.dev/v1
kind: Broker
metadata: {name: default}
`,
	"triggers/place.yaml": `
apiVersion: eventing.knative.dev/v1
kind: Trigger
metadata: {name: place-on-submitted}
spec:
  broker: default
  filter: {attributes: {type: submitted}}
  subscriber: {ref: {apiVersion: serving.knative.dev/v1, kind: Service, name: matchmaker-place}}
  delivery: {retry: 3, backoffPolicy: linear, backoffDelay: PT0.5S}
`,
	"triggers/tick.yaml": `
apiVersion: sources.knative.dev/v1
kind: PingSource
metadata: {name: place-tick}
spec:
  schedule: "*/1 * * * *"
  sink: {ref: {apiVersion: serving.knative.dev/v1, kind: Service, name: matchmaker-place}}
`,
}

func load(changes map[string]string) (*manifests.Set, error) {
	texts := maps.Clone(tree)
	maps.Copy(texts, changes)
	files := map[string]fs.FS{}
	for _, top := range []string{"knative", "triggers"} {
		dir := fstest.MapFS{}
		for name, text := range texts {
			if inner, ok := strings.CutPrefix(name, top+"/"); ok {
				dir[inner] = &fstest.MapFile{Data: []byte(text)}
			}
		}
		files["/"+top] = dir
	}
	return manifests.Load(files, "/knative/overlays/laptop")
}

func name(n string) types.NamespacedName { return types.NamespacedName{Namespace: "littoral", Name: n} }

func TestLoad(t *testing.T) {
	t.Parallel()
	set, err := load(nil)
	require.NoError(t, err)
	service := set.Services[name("matchmaker-place")]
	require.NotNil(t, service)
	require.Equal(t, "ko://example.org/functions/cmd/matchmaker-place", manifests.Image(service))
	require.Equal(t, map[string]string{"LIMIT": "7"}, manifests.Environment(service))
	require.Equal(t, int64(15), *service.Spec.Template.Spec.TimeoutSeconds)

	require.Equal(t, int32(10), *set.Brokers[name("default")].Spec.Delivery.Retry, "what Knative installs")
	trigger := set.Triggers[name("place-on-submitted")]
	require.Equal(t, "littoral", trigger.Spec.Subscriber.Ref.Namespace, "filled in by the defaults")
	require.Equal(t, "*/5 * * * * *", set.PingSources[name("place-tick")].Spec.Schedule, "the overlay's patch applies")
}

func TestLoad_refuses(t *testing.T) {
	t.Parallel()
	edit := func(file, old, new string) map[string]string {
		require.Contains(t, tree[file], old)
		return map[string]string{file: strings.Replace(tree[file], old, new, 1)}
	}
	for row, c := range map[string]struct {
		change map[string]string
		want   []string
	}{
		"an unknown field, with file, object and path": {
			edit("triggers/place.yaml", "broker: default", "broker: default\n  subscribr: {}"),
			[]string{"triggers/place.yaml: Trigger place-on-submitted", `unknown field "spec.subscribr"`},
		},
		"an unknown field deep inside a Service": {
			edit("knative/base/place.yaml", "timeoutSeconds", "timeoutSecond"),
			[]string{"knative/base/place.yaml: Service matchmaker-place", `unknown field "spec.template.spec.timeoutSecond"`},
		},
		"a field given twice": {
			edit("triggers/place.yaml", "broker: default", "broker: default\n  broker: other"),
			[]string{"broker"},
		},
		"a Trigger without a subscriber": {
			edit("triggers/place.yaml", "name: matchmaker-place", "name: matchmaker-nowhere"),
			[]string{`Trigger place-on-submitted: spec.subscriber: there is no Service "matchmaker-nowhere"`},
		},
		"a Trigger without a Broker": {
			edit("triggers/place.yaml", "broker: default", "broker: other"),
			[]string{`spec.broker: there is no Broker "other"`},
		},
		"a PingSource without a sink": {
			edit("triggers/tick.yaml", "name: matchmaker-place", "name: gone"),
			[]string{`PingSource place-tick: spec.sink: there is no Service "gone"`},
		},
		"a dead letter sink that is not there": {
			edit("triggers/place.yaml", "retry: 3",
				"deadLetterSink: {ref: {apiVersion: v1, kind: Service, name: x}}, retry: 3"),
			[]string{"spec.delivery.deadLetterSink", "Knative Services and Brokers"},
		},
		"a delay that is none": {
			edit("triggers/place.yaml", "PT0.5S", "half a second"),
			[]string{"spec.delivery.backoffDelay"},
		},
		"an expression that does not parse": {
			edit("triggers/place.yaml", "filter: {attributes: {type: submitted}}", "filters: [{cesql: 'type = ('}]"),
			[]string{"cesql"},
		},
		"a schedule that is none": {
			edit("knative/overlays/laptop/kustomization.yaml", "*/5 * * * * *", "often"),
			[]string{"spec.schedule"},
		},
		"a Service without an image": {
			edit("knative/base/place.yaml", "image:", "name: x\n          command: [x]\n          args:\n          - "),
			[]string{"image"},
		},
		"a kind nobody here acts on": {
			map[string]string{"triggers/broker.yaml": tree["triggers/broker.yaml"] +
				"---\napiVersion: flows.knative.dev/v1\nkind: Sequence\nmetadata: {name: s}\n"},
			[]string{"Sequence s", "does not know flows.knative.dev/v1 Sequence"},
		},
		"a file that is not there": {
			map[string]string{"triggers/kustomization.yaml": "resources: [gone.yaml]\n"},
			[]string{"gone.yaml"},
		},
		"every fault at once": {
			map[string]string{
				"triggers/place.yaml": strings.Replace(tree["triggers/place.yaml"], "broker: default", "broker: x", 1),
				"triggers/tick.yaml":  strings.Replace(tree["triggers/tick.yaml"], "schedule", "scedule", 1),
			},
			[]string{`there is no Broker "x"`, `unknown field "spec.scedule"`},
		},
	} {
		t.Run(row, func(t *testing.T) {
			t.Parallel()
			_, err := load(c.change)
			for _, want := range c.want {
				require.ErrorContains(t, err, want)
			}
		})
	}
}

func TestLoad_setsAsideWhatOnlyAClusterNeeds(t *testing.T) {
	t.Parallel()
	_, err := load(map[string]string{"triggers/broker.yaml": tree["triggers/broker.yaml"] +
		"---\napiVersion: v1\nkind: Namespace\nmetadata: {name: littoral}\n"})
	require.NoError(t, err)
}
