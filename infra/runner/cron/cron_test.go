package cron_test

import (
	"context"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	cloudevents "github.com/cloudevents/sdk-go/v2/event"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"
	sourcesv1 "knative.dev/eventing/pkg/apis/sources/v1"
	"sigs.k8s.io/yaml"

	"github.com/littoral-project/littoral/infra/runner/cron"
	"github.com/littoral-project/littoral/infra/runner/manifests"
	"github.com/littoral-project/littoral/infra/runner/mesh"
	"github.com/littoral-project/littoral/shared/events"
)

func setOf(t *testing.T, spec string) *manifests.Set {
	t.Helper()
	p := &sourcesv1.PingSource{}
	require.NoError(t, yaml.UnmarshalStrict([]byte(spec), &p.Spec))
	return &manifests.Set{PingSources: map[types.NamespacedName]*sourcesv1.PingSource{
		{Namespace: "ns", Name: "tick"}: p,
	}}
}

type ping struct {
	at    time.Duration // since the start
	event cloudevents.Event
}

// run fires the PingSource for that long in simulated time and returns the events that its sink got.
func run(t *testing.T, spec string, length, work time.Duration) (pings []ping) {
	t.Helper()
	start := time.Now()
	m := mesh.New(nil)
	m.Handle("sink.ns.svc.cluster.local", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		e, err := events.FromRequest(r)
		if err != nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		pings = append(pings, ping{time.Since(start), e})
		time.Sleep(work) // simulated too
		w.WriteHeader(http.StatusNoContent)
	}))
	c, err := cron.Start(t.Context(), cron.Options{Set: setOf(t, spec), Client: &http.Client{Transport: m}})
	require.NoError(t, err)
	time.Sleep(length)
	require.NoError(t, c.Stop(t.Context()))
	return pings
}

const sink = "\nsink: {ref: {apiVersion: serving.knative.dev/v1, kind: Service, namespace: ns, name: sink}}"

// The clock of a synctest bubble starts at midnight UTC, 2000-01-01, and only advances when all goroutines wait.

func TestPingsComeToTheSecond(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		pings := run(t, `schedule: "*/2 * * * * *"`+sink, 7*time.Second, 0)
		require.Len(t, pings, 3)
		for i, p := range pings {
			require.Equal(t, time.Duration(i+1)*2*time.Second, p.at)
			require.Equal(t, "dev.knative.sources.ping", p.event.Type())
			require.Equal(t, "/apis/v1/namespaces/ns/pingsources/tick", p.event.Source())
		}
		require.NotEqual(t, pings[0].event.ID(), pings[1].event.ID())
	})
}

func TestFiveFieldsMeanMinutesAndDataIsSent(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		pings := run(t, `schedule: "*/5 * * * *"
timezone: Europe/Athens
contentType: application/json
data: '{"a": 1}'
ceOverrides: {extensions: {kind: demo}}`+sink, 11*time.Minute, 0)
		require.Len(t, pings, 2)
		require.Equal(t, 5*time.Minute, pings[0].at)
		require.JSONEq(t, `{"a": 1}`, string(pings[0].event.Data()))
		require.Equal(t, "demo", pings[0].event.Extensions()["kind"])
	})
}

func TestASlowSinkIsNotMetByAPile(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		pings := run(t, `schedule: "* * * * * *"`+sink, 10*time.Second+time.Millisecond, 2500*time.Millisecond)
		var at []time.Duration
		for _, p := range pings {
			at = append(at, p.at)
		}
		require.Equal(t, []time.Duration{time.Second, 4 * time.Second, 7 * time.Second, 10 * time.Second}, at)
	})
}

func TestStop_cutsOffAPingThatDoesNotEnd(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := mesh.New(nil)
		ended := false
		m.Handle("sink.ns.svc.cluster.local", http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			<-r.Context().Done()
			ended = true
		}))
		set := setOf(t, `schedule: "* * * * * *"`+sink)
		c, err := cron.Start(t.Context(), cron.Options{Set: set, Client: &http.Client{Transport: m}})
		require.NoError(t, err)
		time.Sleep(1500 * time.Millisecond)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		require.Error(t, c.Stop(ctx))
		synctest.Wait()
		require.True(t, ended)
	})
}
