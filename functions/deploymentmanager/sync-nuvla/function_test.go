package syncnuvla_test

import (
	"log/slog"
	"testing"

	cloudevents "github.com/cloudevents/sdk-go/v2/event"
	"github.com/stretchr/testify/require"

	syncnuvla "github.com/littoral-project/littoral/functions/deploymentmanager/sync-nuvla"
	"github.com/littoral-project/littoral/shared/application/applicationtest"
	"github.com/littoral-project/littoral/shared/events"
	"github.com/littoral-project/littoral/shared/function"
	"github.com/littoral-project/littoral/shared/job"
	"github.com/littoral-project/littoral/shared/settings"
	"github.com/littoral-project/littoral/shared/store/storetest"
	"github.com/littoral-project/littoral/test/nuvla"
)

func TestMain(m *testing.M) { storetest.Main(m) }

const descriptor = `
name: shop
components:
  - name: web
    type: docker
    manifests: [{name: web, manifest: {services: {web: {image: "web:1"}, cache: {image: "cache:1"}}}}]
`

func TestEachRunBringsTheBooksUpToDate(t *testing.T) {
	db, server := storetest.New(t), nuvla.Start(t)
	server.AddEdge("harbour", nuvla.Docker)
	f, err := syncnuvla.New(function.Platform{
		DB: db, Log: slog.New(slog.DiscardHandler),
		Settings: settings.Map(map[string]string{
			"DEPLOYMENTMANAGER_SYNC_NUVLA_NUVLA_ENDPOINT":   server.URL,
			"DEPLOYMENTMANAGER_SYNC_NUVLA_NUVLA_API_KEY":    nuvla.Key,
			"DEPLOYMENTMANAGER_SYNC_NUVLA_NUVLA_API_SECRET": nuvla.Secret,
		}),
	}.Env("deploymentmanager-sync-nuvla"))
	require.NoError(t, err)
	id := applicationtest.Submit(t, db, descriptor).ID
	applicationtest.Place(t, db, id, job.Target{Orchestrator: "nuvla", Cluster: "harbour", Node: "host"})
	only := func() *job.Job { return applicationtest.Job(t, db, id) }
	turn := func() {
		require.NoError(t, f.Work(t.Context(), tick()))
		server.Work()
		server.Work()
		require.NoError(t, f.Work(t.Context(), tick()))
	}
	turn()
	require.True(t, only().Available(), "%+v", only().Conditions)
	require.Contains(t, only().Condition(job.ConditionAvailable).Message, "2 of 2 pods run")

	server.Offline("harbour", true)
	require.NoError(t, f.Work(t.Context(), tick()))
	require.Contains(t, only().Unknown(), "NuvlaEdge harbour is offline")
	server.Offline("harbour", false)
	require.NoError(t, f.Work(t.Context(), tick()))
	require.True(t, only().Available())

	deployment, _ := server.Of("deployment")[0]["id"].(string)
	server.Change(deployment, func(d map[string]any) { d["state"] = "STOPPED" }) // somebody stops it
	turn()
	require.True(t, only().Available(), "%+v", only().Conditions)
}

func tick() cloudevents.Event {
	e := cloudevents.New()
	e.SetType(events.Tick)
	return e
}
