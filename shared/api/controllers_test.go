package api_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/littoral-project/littoral/shared/api"
)

// TestControllers_none: the lighthouse then answers nothing, as that of ICOS does.
func TestControllers_none(t *testing.T) {
	t.Parallel()
	text, status := "", http.StatusNoContent
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		_, _ = w.Write([]byte(text))
	}))
	t.Cleanup(s.Close)
	c := &api.Client{Base: s.URL, HTTP: s.Client()}
	found, err := c.Controllers(t.Context())
	require.NoError(t, err)
	require.Empty(t, found)

	text, status = `[{"name":"a","address":"x"},{"name":"b","address":"y","healthy":true},{"name":"c","address":"z","healthy":false}]`, http.StatusOK
	found, err = c.Controllers(t.Context())
	require.NoError(t, err)
	var states []string
	for _, one := range found {
		states = append(states, one.State())
	}
	require.Equal(t, []string{"Unknown", "Healthy", "Unhealthy"}, states)
}
