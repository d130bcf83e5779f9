package inprocess_test

import (
	"testing"
	"testing/fstest"

	cloudevents "github.com/cloudevents/sdk-go/v2/event"
	"github.com/stretchr/testify/require"

	"github.com/littoral-project/littoral/shared/auth"
	"github.com/littoral-project/littoral/shared/events"
	"github.com/littoral-project/littoral/test/capabilities"
	"github.com/littoral-project/littoral/test/inprocess"
)

func TestWhateverAFunctionMayDeclareRunsHere(t *testing.T) {
	t.Parallel()
	var seen []string
	sys := inprocess.Start(t, capabilities.Entries(func(subject string) { seen = append(seen, subject) }))
	capabilities.Check(t, sys.URL, sys.Token(auth.Viewer))

	const path = "/apis/test.example/v1/namespaces/littoral/things/a"
	require.NoError(t, sys.Broker.Change(t.Context(), "test-watch", events.ObjectAdded, path, map[string]any{"kind": "Thing"}))
	require.Equal(t, []string{events.ObjectAdded + " " + path}, seen)
}

// TestOneTriggerMayFilterSeveralTypes, some of them only with further attributes.
func TestOneTriggerMayFilterSeveralTypes(t *testing.T) {
	t.Parallel()
	broker, err := inprocess.NewBroker(fstest.MapFS{"place.yaml": {Data: []byte(`
apiVersion: eventing.knative.dev/v1
kind: Trigger
metadata: {name: place}
spec:
  filters:
    - any:
        - exact: {type: dev.littoral.application.submitted.v1}
        - all:
            - exact: {type: dev.littoral.job.finished.v1}
            - exact: {jobtype: DeleteDeployment}
  subscriber: {ref: {name: place}}
`)}})
	require.NoError(t, err)
	takers := func(typ, jobType string) []string {
		e := cloudevents.New()
		e.SetID("1")
		e.SetSource("/test")
		e.SetType(typ)
		if jobType != "" {
			e.SetExtension("jobtype", jobType)
		}
		return broker.Consumers(e)
	}
	require.Equal(t, []string{"place"}, takers(events.ApplicationSubmitted, ""))
	require.Equal(t, []string{"place"}, takers(events.JobFinished, "DeleteDeployment"))
	require.Empty(t, takers(events.JobFinished, "CreateDeployment"))
	require.Empty(t, takers(events.JobReady, ""))
}
