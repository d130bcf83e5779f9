package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/littoral-project/littoral/functions"
	"github.com/littoral-project/littoral/shared/function"
	"github.com/littoral-project/littoral/triggers"
)

func TestChain(t *testing.T) {
	t.Parallel()
	w := wiring{registry: map[string]function.Entry{}}
	for name, spec := range map[string]function.Spec{
		"create": {Routes: []function.Route{{Pattern: "POST /"}}, Emits: []string{"made", "ready"}},
		"place":  {Emits: []string{"placed", "ready", "full"}, PrewakeFor: []string{"placed", "ready"}},
		"grow":   {},
		"follow": {Emits: []string{"changed"}},
		"deploy": {Emits: []string{"gone"}}, // back to place: a circle
		"hand":   {},
		"rule":   {},
		"other":  {},
		"count":  {Emits: []string{"elsewhere"}, NoPrewake: true},
	} {
		w.registry[name] = function.Entry{Name: name, Spec: spec}
	}
	for _, row := range []struct{ typ, function, kind string }{
		{"made", "place", ""},
		{"gone", "place", ""},
		{"full", "grow", ""},
		{"placed", "follow", ""},
		{"ready", "deploy", "a"},
		{"ready", "hand", "b"},
		{"changed", "rule", ""},
		{"elsewhere", "other", ""},
		{"made", "count", ""},
	} {
		attributes := map[string]string{"type": row.typ}
		if row.kind != "" {
			attributes["kind"] = row.kind
		}
		w.table = append(w.table, triggers.Row{Function: row.function, Attributes: attributes})
	}
	require.Equal(t, []string{"place", "deploy", "follow", "hand", "rule"}, w.chain("made", 9))
	require.Equal(t, []string{"place", "deploy", "follow", "hand"}, w.chain("made", 2))
	require.Equal(t, []string{"place"}, w.chain("made", 1))
	require.Empty(t, w.chain("unheard of", 9))
	require.Nil(t, w.prewake(w.registry["place"].Spec), "only who begins a chain wakes it")
	require.Equal(t, "made=place,deploy,follow,hand,rule;ready?kind=a=deploy,place,follow,hand,rule;ready?kind=b=hand",
		w.prewake(w.registry["create"].Spec)[0].Value, "an event that is at hand wakes only who takes it")
}

// TestOneAtATimeIsOneInstance: if one call at a time is enough, Knative must not start a second instance for it.
func TestOneAtATimeIsOneInstance(t *testing.T) {
	t.Parallel()
	for _, concurrency := range []int64{1, 2} {
		service := build(wiring{}, "main", function.Entry{Name: "a-b", Spec: function.Spec{Concurrency: concurrency}.WithDefaults()})
		most, said := service.Spec.Template.Annotations["autoscaling.knative.dev/max-scale"]
		require.Equal(t, concurrency == 1, said)
		require.Equal(t, said, most == "1")
	}
}

// TestACallIsNotCutOffByADefault of Knative, which has a response begin sooner than the longest task ends.
func TestACallIsNotCutOffByADefault(t *testing.T) {
	t.Parallel()
	for _, entry := range functions.Registry {
		service := build(wiring{}, "main", entry)
		service.SetDefaults(t.Context())
		spec := service.Spec.Template.Spec
		if begins := spec.ResponseStartTimeoutSeconds; begins != nil {
			require.Equal(t, *spec.TimeoutSeconds, *begins, entry.Name)
		}
	}
}

// TestGarbageIsCollectedBelowTheLimit: of memory, at which the kernel kills a function.
func TestGarbageIsCollectedBelowTheLimit(t *testing.T) {
	t.Parallel()
	service := build(wiring{}, "main", function.Entry{Name: "a-b", Spec: function.Spec{Class: function.Medium}.WithDefaults()})
	container := service.Spec.Template.Spec.Containers[0]
	limit := resource.MustParse(function.Spec{Class: function.Medium}.Limits().Memory)
	require.Equal(t, limit, container.Resources.Limits[corev1.ResourceMemory])
	require.Contains(t, container.Env, corev1.EnvVar{Name: "GOMEMLIMIT", Value: fmt.Sprint(limit.Value() / 10 * 9)})
}

// TestWhatPrewakeForNamesWakes: an operation emits every type that it foresees, and wakes the functions that react to it.
func TestWhatPrewakeForNamesWakes(t *testing.T) {
	t.Parallel()
	w, err := readWiring()
	require.NoError(t, err)
	foresee := 0
	for _, entry := range functions.Registry {
		for _, typ := range entry.Spec.PrewakeFor {
			foresee++
			require.Contains(t, entry.Spec.Emits, typ, entry.Name)
			if len(entry.Spec.Routes) == 0 {
				continue // begins no chain, but declares how one continues
			}
			env := w.prewake(entry.Spec)
			require.Len(t, env, 1, entry.Name)
			if len(w.chain(typ, 1)) > 0 {
				require.Contains(t, env[0].Value, typ, entry.Name)
			}
		}
		for _, env := range w.prewake(entry.Spec) {
			wakes := strings.Count(env.Value, ",") + strings.Count(env.Value, "=")
			require.Less(t, wakes, 60, "%s would wake half of the system", entry.Name)
		}
	}
	require.Positive(t, foresee)
}
