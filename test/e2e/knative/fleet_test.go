package knative_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/littoral-project/littoral/infra/runner/fleet"
	"github.com/littoral-project/littoral/shared/api"
	"github.com/littoral-project/littoral/shared/auth"
)

// startFleet runs simulated clusters until the test ends: their telemetry goes to the cluster's real Prometheus, and
// their agents poll at the base URL. It returns once the aggregator knows them.
func (w *world) startFleet(t *testing.T, taxonomy string) *fleet.Fleet {
	t.Helper()
	plan, err := fleet.Load(taxonomy)
	require.NoError(t, err)
	f, err := fleet.New(fleet.Options{
		Plan: plan, File: filepath.Join(t.TempDir(), "fleet.json"), Append: w.RemoteWrite,
		API: w.Base, Client: func(string) *http.Client { return w.client(auth.Agent) },
		Every: 5 * time.Second, Poll: 2 * time.Second, Log: slog.New(slog.DiscardHandler),
	})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if err := f.Run(ctx); err != nil && ctx.Err() == nil {
			t.Errorf("the fleet has ended: %v", err)
		}
	}()
	t.Cleanup(func() {
		cancel()
		<-ended
	})
	w.eventually("the aggregator sees the fleet", func() bool {
		w.nudge("aggregator-tick")
		a, err := w.try(auth.Viewer, http.MethodGet, "/aggregator/", "")
		return err == nil && a.status == http.StatusOK && bytes.Contains(a.body, []byte(plan.Clusters[0].Nodes[0].Name))
	})
	return f
}

// application is a descriptor with one component, restricted to the fleet even if there are other clusters; more has
// further lines for the component.
func application(name string, more ...string) string {
	return fmt.Sprintf(`name: %[1]s
components:
  - name: web
    type: kubernetes
    requirements: {cpu: 10m, memory: 4Mi}
    targets: [{cluster_name: e2e-pier, orchestrator: nuvla}]
%[2]s    manifests:
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
              spec: {containers: [{name: web, image: "example/web:1"}]}
`, name, strings.Join(more, ""))
}

// submit submits an application, with a key that makes retries harmless, and removes it when the test ends.
func (w *world) submit(t *testing.T, descriptor string) string {
	t.Helper()
	var g api.Application
	require.Equal(t, http.StatusCreated, w.ask(auth.Operator, http.MethodPost, "/jobmanager/groups", descriptor, &g,
		"Idempotency-Key", uuid.NewString()))
	t.Cleanup(func() { w.remove(g.ID) })
	return g.ID
}

// remove stops and deletes an application, and waits until it is gone.
func (w *world) remove(id string) {
	w.t.Helper()
	w.eventually("application "+id+" is gone", func() bool {
		a, err := w.try(auth.Operator, http.MethodDelete, "/jobmanager/groups/"+id+"?stop=true", "")
		return err == nil && a.status == http.StatusNotFound
	})
}

// atOnce is how many applications are removed concurrently.
const atOnce = 8

// removeAll stops and deletes every application whose name begins with prefix, including those whose creation was never
// answered. Their number is unknown, so it gives up only if none of them has gone within patience.
func (w *world) removeAll(prefix string) {
	w.t.Helper()
	for left := w.named(prefix); len(left) > 0; {
		w.eventually("one more of the applications "+prefix+"* is gone", func() bool {
			var together sync.WaitGroup
			for batch := range slices.Chunk(left[:min(len(left), 100)], atOnce) {
				for _, id := range batch {
					together.Go(func() {
						_, _ = w.try(auth.Operator, http.MethodDelete, "/jobmanager/groups/"+id+"?stop=true", "")
					})
				}
				together.Wait()
			}
			before := left
			left = w.named(prefix)
			return !slices.Equal(before, left)
		})
	}
}

// named lists the applications whose name begins with prefix.
func (w *world) named(prefix string) []string {
	w.t.Helper()
	var all []api.Application
	require.Equal(w.t, http.StatusOK, w.ask(auth.Viewer, http.MethodGet, "/jobmanager/groups?limit=500", "", &all))
	var ids []string
	for i := range all {
		if strings.HasPrefix(all[i].Name, prefix) {
			ids = append(ids, all[i].ID)
		}
	}
	return ids
}

// jobs lists the jobs of an application.
func (w *world) jobs(id string) []api.Job {
	w.t.Helper()
	var jobs []api.Job
	require.Equal(w.t, http.StatusOK, w.ask(auth.Viewer, http.MethodGet, "/jobmanager/jobs?app="+id, "", &jobs))
	return jobs
}

// available waits until every component of the application runs.
func (w *world) available(id string) {
	w.t.Helper()
	w.eventually("application "+id+" is available", func() bool {
		jobs := w.jobs(id)
		for i := range jobs {
			if !jobs[i].Available() {
				return false
			}
		}
		return len(jobs) > 0
	})
}
