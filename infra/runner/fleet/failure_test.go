package fleet

import (
	"encoding/json"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/littoral-project/littoral/shared/api"
	"github.com/littoral-project/littoral/shared/problem"
)

func TestARolloutFailsAsTheFleetWasTold(t *testing.T) {
	t.Parallel()
	for how, reason := range map[string]string{"crash": "CrashLoopBackOff", "pull-error": "ImagePullBackOff"} {
		for _, name := range []string{"app:web", "app:shop/web"} {
			t.Run(how+" of "+name, func(t *testing.T) {
				t.Parallel()
				m := newManager()
				f := newFleet(t, m)
				require.NoError(t, f.SetComponents(map[string]string{name: how, "app:other": how, "app:other/web": how}))
				j := m.put(typeCreate, "edge", "edge-1", 1)
				poll(t, f, "edge")
				require.Equal(t, enum(stateDegraded), m.state(j))
				available := m.reports[len(m.reports)-1].Resource.Conditions[2]
				require.Equal(t, "False", available.Status)
				require.Equal(t, reason, available.Reason)
				require.Contains(t, available.Message, "0 of 2 pods run on edge-1")

				require.NoError(t, f.SetComponents(map[string]string{name: "ok"}))
				poll(t, f, "edge")
				require.Equal(t, "True", m.stati[len(m.stati)-1].Conditions[2].Status, "and it recovers when that ends")
			})
		}
	}
}

func TestWhatRunsSurvivesAnImageThatCannotBePulledButNoCrash(t *testing.T) {
	t.Parallel()
	m := newManager()
	now := start
	f := newFleet(t, m, func(o *Options) { o.Now = func() time.Time { return now } })
	j := m.put(typeCreate, "edge", "edge-1", 1)
	poll(t, f, "edge")
	require.Equal(t, enum(stateFinished), m.state(j))
	now = now.Add(time.Second)
	require.NoError(t, f.SetComponents(map[string]string{"app:web": "pull-error"}))
	poll(t, f, "edge")
	require.Empty(t, m.stati)
	require.NoError(t, f.SetComponents(map[string]string{"app:web": "crash"}))
	poll(t, f, "edge")
	require.Equal(t, "CrashLoopBackOff", m.stati[0].Conditions[2].Reason)
	require.NoError(t, f.SetComponents(map[string]string{"app:web": ""}))
	poll(t, f, "edge")
	require.Equal(t, "True", m.stati[1].Conditions[2].Status)
}

// TestASlowRolloutIsUnderWayForAMinute: its agent neither calls it degraded nor stops working for others.
func TestASlowRolloutIsUnderWayForAMinute(t *testing.T) {
	t.Parallel()
	m := newManager()
	now := start
	f := newFleet(t, m, func(o *Options) { o.Now = func() time.Time { return now } })
	require.NoError(t, f.SetComponents(map[string]string{"app:web": "slow"}))
	j := m.put(typeCreate, "edge", "edge-1", 1)
	poll(t, f, "edge")
	now = now.Add(slowStart - time.Second)
	other := m.put(typeCreate, "edge", "edge-2", 1)
	other.Instruction.ComponentName = "store"
	poll(t, f, "edge")
	require.Equal(t, enum(stateProgressing), m.state(j))
	require.Equal(t, enum(stateFinished), m.state(other))
	now = now.Add(time.Second)
	poll(t, f, "edge")
	require.Equal(t, enum(stateFinished), m.state(j))
}

func TestFailuresOutliveTheFleetAndAreShown(t *testing.T) {
	t.Parallel()
	var file string
	f := newFleet(t, newManager(), func(o *Options) { file = o.File })
	h, tokens := control(t, f)
	w := send(t, h, http.MethodPost, "/fleet/set", tokens["operator"], `{"set": {"app:web": "crash", "app:shop/store": "slow"}}`)
	require.Equal(t, http.StatusOK, w.Code, w.Body)
	var shown api.Fleet
	require.NoError(t, json.Unmarshal(w.Body.Bytes(), &shown))
	want := map[string]string{"web": "crash", "shop/store": "slow"}
	require.Equal(t, want, shown.Failing)
	require.Len(t, shown.Clusters, 3)
	again := newFleet(t, newManager(), func(o *Options) { o.File = file })
	require.Equal(t, want, again.View().Failing)

	for _, body := range []string{
		`{"set": {"app:web": "burn"}}`, `{"set": {"app:": "crash"}}`, `{"set": {"app:web": "ok", "cpu": "0.5"}}`,
		`{"node": "edge-1", "set": {"app:web": "ok"}}`,
	} {
		require.Equal(t, http.StatusUnprocessableEntity, send(t, h, http.MethodPost, "/fleet/set", tokens["operator"], body).Code, body)
	}
	require.Equal(t, want, again.View().Failing)
	require.Equal(t, problem.Invalid, problem.KindOf(f.SetComponents(map[string]string{"web": "crash"})))
}
