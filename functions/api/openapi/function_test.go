package openapi_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"

	"github.com/littoral-project/littoral/functions/api/openapi"
)

func get(t *testing.T, path, known string) *httptest.ResponseRecorder {
	t.Helper()
	f, err := openapi.New(nil)
	require.NoError(t, err)
	r := httptest.NewRequest(http.MethodGet, path, nil)
	r.Header.Set("If-None-Match", known)
	w := httptest.NewRecorder()
	require.NoError(t, f.Handle(w, r))
	return w
}

func TestBothFormsSayTheSame(t *testing.T) {
	t.Parallel()
	asYAML, asJSON := get(t, "/openapi.yaml", ""), get(t, "/openapi.json", "")
	require.Equal(t, "application/yaml", asYAML.Header().Get("Content-Type"))
	require.Equal(t, "application/json", asJSON.Header().Get("Content-Type"))
	same, err := yaml.YAMLToJSON(asYAML.Body.Bytes())
	require.NoError(t, err)
	require.JSONEq(t, string(same), asJSON.Body.String())
	var page struct {
		OpenAPI string
		Paths   map[string]any
	}
	require.NoError(t, json.Unmarshal(asJSON.Body.Bytes(), &page))
	require.Equal(t, "3.1.0", page.OpenAPI)
	require.Contains(t, page.Paths, "/openapi.json")
}

func TestWhoHasThePageGetsNoBody(t *testing.T) {
	t.Parallel()
	for _, path := range []string{"/openapi.yaml", "/openapi.json"} {
		again := get(t, path, get(t, path, "").Header().Get("ETag"))
		require.Equal(t, http.StatusNotModified, again.Code)
		require.Empty(t, again.Body.Bytes())
	}
}
