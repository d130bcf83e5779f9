package loki_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/littoral-project/littoral/shared/logs"
	"github.com/littoral-project/littoral/shared/logs/logstest"
	"github.com/littoral-project/littoral/shared/logs/loki"
	double "github.com/littoral-project/littoral/test/loki"
)

func TestConformance(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(&double.Server{})
	t.Cleanup(server.Close)
	logstest.Run(t, func(t *testing.T) logs.Store {
		t.Helper()
		remote, err := logs.NewRemote(server.URL, http.Header{}, http.DefaultClient)
		require.NoError(t, err)
		return loki.New(remote)
	})
}
