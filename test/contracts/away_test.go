package contracts_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	cloudevents "github.com/cloudevents/sdk-go/v2/event"
	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/littoral-project/littoral/functions"
	"github.com/littoral-project/littoral/shared/auth"
	"github.com/littoral-project/littoral/shared/events"
	"github.com/littoral-project/littoral/shared/function"
	"github.com/littoral-project/littoral/shared/loopback"
	"github.com/littoral-project/littoral/shared/settings"
	"github.com/littoral-project/littoral/shared/store"
	"github.com/littoral-project/littoral/test/inprocess"
)

// withoutStore mounts every function on a store that cannot be reached.
func withoutStore(t testing.TB) (w *world, consumers map[string]http.Handler) {
	t.Helper()
	address, err := loopback.Free(t.Context())
	require.NoError(t, err)
	db, err := store.Open(t.Context(), store.Config{DatabaseURL: fmt.Sprintf("postgres://nobody@%s/none", address)}, nil, nil)
	require.NoError(t, err)
	t.Cleanup(db.Close)
	issuer := inprocess.NewIssuer(t)
	handler, consumers, err := inprocess.Mount(function.Platform{DB: db, Auth: issuer.Verifier(), Settings: settings.Map(given)})
	require.NoError(t, err)
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return &world{System: &inprocess.System{URL: server.URL, Issuer: issuer}, nobody: client{base: server.URL}}, consumers
}

func TestWithoutTheStore(t *testing.T) {
	t.Parallel()
	w, consumers := withoutStore(t)
	admin := client{w.URL, w.Issuer.Token(t, auth.Admin)}
	for _, r := range routes(t) {
		t.Run(r.String(), func(t *testing.T) {
			path := r.anywhere()
			if r.entry.Name == "deploymentmanager-pod-logs" {
				path += "?app=" + uuid.NewString()
			}
			if strings.HasSuffix(path, "/queries/distance") {
				path += "?address=a&address=b"
			}
			if r.ofPeers() {
				path = r.byStranger()
			}
			a := admin.call(t, r.method, path, r.fitting(uuid.NewString()))
			if storeless(r) {
				a.is(t, r.openly())
				return
			}
			if strings.HasPrefix(r.entry.Name, "telemetry-") {
				require.NotEqual(t, http.StatusServiceUnavailable, a.status, "rules are kept elsewhere")
				return
			}
			if r.ofPeers() {
				a.refused(t, http.StatusForbidden)
				return
			}
			if r.entry.Name == "mdm-clean" {
				a.refused(t, http.StatusPreconditionFailed) // it is not confirmed
				return
			}
			d := a.refused(t, http.StatusServiceUnavailable)
			require.NotContains(t, d.Detail, "127.0.0.1", "its address is nobody's business")
			if r.bodyKind() == jsonBody { // an invalid request is still reported as such
				admin.call(t, r.method, r.anywhere(), unreadable).refused(t, http.StatusBadRequest)
			}
		})
	}
	for _, entry := range functions.Registry {
		for _, typ := range entry.Spec.Consumes {
			t.Run(entry.Name+" on "+typ, func(t *testing.T) {
				status, _ := deliver(t, consumers[entry.Name], newEvent(t, typ))
				if entry.Spec.Kubernetes || entry.Spec.Class == function.Compose ||
					slices.Contains([]string{"controller-overflow", "controller-register", "deploymentmanager-wake", "mdm-datasets", "pdlc-participate"}, entry.Name) ||
					entry.Name == "bus-forward" && typ != events.Tick { // at which it forgets the sinks that were taken away
					require.Equal(t, http.StatusNoContent, status, "none is set of what it talks to, so there is nothing to do")
					return
				}
				require.Equal(t, http.StatusServiceUnavailable, status, "the Broker is to deliver it again")
			})
		}
	}
}

// storeless reports whether the route does not use the store.
func storeless(r route) bool {
	switch r.entry.Name {
	case "aggregator-taxonomy", "mdm-home", "pdlc-generate", "policymanager-template-list":
		return true
	case "policymanager-stats", "lighthouse-controller-list":
		return false
	}
	return r.role == auth.Open
}

// newEvent returns an event of the type with data that its reaction can parse.
func newEvent(t testing.TB, typ string) cloudevents.Event {
	t.Helper()
	var data any = events.Application{ID: uuid.New(), Name: "shop"}
	switch {
	case strings.Contains(typ, ".job.") || strings.Contains(typ, ".resource."):
		data = events.Job{ID: uuid.New()}
	case strings.Contains(typ, ".alert."):
		data = events.Alert{Policy: uuid.New(), Firing: true}
	case strings.Contains(typ, ".policy."), strings.HasSuffix(typ, ".requested.v1"):
		id := uuid.New()
		data = events.Policy{ID: uuid.New(), Violation: &id}
	case strings.Contains(typ, ".topology."):
		data = events.Topology{Snapshot: uuid.New()}
	case typ == events.Tick:
		data = map[string]any{}
	}
	e, err := events.New(context.Background(), "/test", typ, uuid.NewString(), data)
	require.NoError(t, err)
	return e
}

// deliver posts the event in structured mode and returns the answer's status and body.
func deliver(t testing.TB, h http.Handler, e cloudevents.Event) (int, string) {
	t.Helper()
	text, err := e.MarshalJSON()
	require.NoError(t, err)
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", strings.NewReader(string(text)))
	r.Header.Set("Content-Type", cloudevents.ApplicationCloudEventsJSON)
	recorder := httptest.NewRecorder()
	h.ServeHTTP(recorder, r)
	return recorder.Code, recorder.Body.String()
}
