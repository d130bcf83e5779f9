package host

import (
	"fmt"
	"io/fs"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"github.com/littoral-project/littoral/shared/api"
	"github.com/littoral-project/littoral/shared/store/storetest"
	"github.com/littoral-project/littoral/test/capabilities"
)

const capabilitiesYAML = `
apiVersion: eventing.knative.dev/v1
kind: Broker
metadata: {name: default}
---
apiVersion: sources.knative.dev/v1
kind: ApiServerSource
metadata: {name: test-watch}
spec:
  serviceAccountName: test-watch
  mode: Resource
  resources: [{apiVersion: test.example/v1, kind: Thing, selector: {matchLabels: {watched: "yes"}}}]
  sink: {ref: {apiVersion: serving.knative.dev/v1, kind: Service, name: test-watch}}
`

// TestWhateverAFunctionMayDeclareRunsOnALaptop: static files, streams, gRPC and watches, whose objects outlive the host.
func TestWhateverAFunctionMayDeclareRunsOnALaptop(t *testing.T) {
	t.Parallel()
	var seen []string
	o := options(newHome(t))
	o.Database, o.Fleet = storetest.URL(t), FleetNone
	o.Registry = capabilities.Entries(func(subject string) { seen = append(seen, subject) })
	yaml := capabilitiesYAML
	for name := range o.Registry {
		yaml += fmt.Sprintf("---\napiVersion: serving.knative.dev/v1\nkind: Service\nmetadata: {name: %[1]s}\n"+
			"spec: {template: {spec: {containers: [{image: \"ko://%[1]s\"}]}}}\n", name)
	}
	o.Files = map[string]fs.FS{"/knative": fstest.MapFS{
		"overlays/laptop/kustomization.yaml": {Data: []byte("resources: [x.yaml]\nnamespace: littoral\n")},
		"overlays/laptop/x.yaml":             {Data: []byte(yaml)},
	}}
	h, err := Start(t.Context(), o)
	require.NoError(t, err)
	token, err := api.TokenFile(filepath.Join(o.Home, "token-viewer"))()
	require.NoError(t, err)
	capabilities.Check(t, h.URL(), token)

	const path = "/apis/test.example/v1/namespaces/littoral/things/a"
	put := func(labels string) int {
		body := fmt.Sprintf("apiVersion: test.example/v1\nkind: Thing\nmetadata: {labels: %s}\nspec: {n: 1}\n", labels)
		return ask(t, h.URL(), o.Home, "admin", http.MethodPut, "/kubernetes"+path, body, nil)
	}
	require.Equal(t, http.StatusForbidden, ask(t, h.URL(), o.Home, "operator", http.MethodPut, "/kubernetes"+path, "{}", nil))
	require.Equal(t, http.StatusUnprocessableEntity, ask(t, h.URL(), o.Home, "admin", http.MethodPut, "/kubernetes"+path, "{}", nil))
	require.Equal(t, http.StatusOK, put("{}"))
	require.Empty(t, seen, "it has not the label")
	require.Equal(t, http.StatusOK, put("{watched: 'yes'}"))
	stop(t, h)

	h = start(t, o)
	var list struct {
		Items []struct {
			Metadata struct{ Name, UID string }
		}
	}
	require.Equal(t, http.StatusOK, ask(t, h.URL(), o.Home, "admin", http.MethodGet, "/kubernetes/apis/test.example/v1/things", "", &list))
	require.Len(t, list.Items, 1)
	require.Equal(t, "a", list.Items[0].Metadata.Name)
	require.Equal(t, http.StatusOK, ask(t, h.URL(), o.Home, "admin", http.MethodDelete, "/kubernetes"+path, "", nil))
	require.Equal(t, http.StatusNotFound, ask(t, h.URL(), o.Home, "admin", http.MethodGet, "/kubernetes"+path, "", nil))
	var verbs []string
	for _, event := range seen {
		require.True(t, strings.HasSuffix(event, " "+path), event)
		verbs = append(verbs, strings.TrimPrefix(strings.TrimSuffix(event, " "+path), "dev.knative.apiserver.resource."))
	}
	require.Equal(t, []string{"update", "delete"}, verbs)
}
