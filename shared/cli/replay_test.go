package cli_test

import (
	"encoding/base64"
	"testing"

	cloudevents "github.com/cloudevents/sdk-go/v2/event"
	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/littoral-project/littoral/shared/auth"
	"github.com/littoral-project/littoral/shared/deadletter"
	"github.com/littoral-project/littoral/shared/events"
)

// die makes the consumer fail with the event, as the Broker reports it to the dead letter sink.
func (h *host) die(e cloudevents.Event, consumer, code, answer string) {
	h.t.Helper()
	e = e.Clone()
	e.SetExtension("knativeerrordest", "http://"+consumer+".littoral.svc.cluster.local")
	e.SetExtension("knativeerrorcode", code)
	e.SetExtension("knativeerrordata", base64.StdEncoding.EncodeToString([]byte(answer)))
	require.NoError(h.t, deadletter.Record(h.t.Context(), h.sys.DB, e))
}

// TestDeadLetters lists the dead letters and replays them.
func TestDeadLetters(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	require.Contains(t, h.run("events", "--dead").err, "every event was taken")

	app := uuid.New()
	e, err := events.New(t.Context(), "/functions/jobmanager-group-create", events.ApplicationSubmitted, app.String(),
		events.Application{ID: app, Name: "shop"})
	require.NoError(t, err)
	h.die(e, "matchmaker-place", "422", `{"title": "Unprocessable Entity", "detail": "no\u001b[31m\nway"}`)
	r := h.run("events", "--dead")
	require.Zero(t, r.code, r.err)
	require.Contains(t, h.ok("events", "--dead", "-o", "wide"), e.ID())
	for _, text := range []string{e.ID()[28:], "application.submitted", "matchmaker-place", "422", "no [31m way"} {
		require.Contains(t, r.out, text)
	}
	require.Contains(t, r.err, "littoral replay EVENT")
	require.Contains(t, h.ok("events", "--dead", "-o", "json"), `"consumer": "matchmaker-place"`)
	require.Contains(t, h.ok("events"), "event.dead")

	require.Contains(t, h.as(t.Context(), auth.Viewer, "replay", e.ID()).err, "operator")
	require.Contains(t, h.ok("replay", e.ID()[:30]), "event "+e.ID()+" sent again to matchmaker-place")
	require.Contains(t, h.ok("events"), "event.replayed")
	require.Equal(t, e.ID(), h.sys.Broker.Accepted()[len(h.sys.Broker.Accepted())-1].ID())
	for args, says := range map[string]string{
		e.ID():           "has not failed since",
		uuid.NewString(): "is no dead letter",
		"0000":           "0 dead letters",
	} {
		r := h.run("replay", args)
		require.Equal(t, 1, r.code)
		require.Contains(t, r.err, says)
		require.Contains(t, r.err, "littoral events --dead")
	}
	for _, args := range [][]string{{"replay", "012"}, {"events", "--dead", "-w"}, {"events", "--dead", "--app", "shop"}, {"replay"}} {
		require.Equal(t, 2, h.run(args...).code, args)
	}
}
