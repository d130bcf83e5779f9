package wake_test

import (
	"bytes"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/littoral-project/littoral/functions/deploymentmanager/wake"
	"github.com/littoral-project/littoral/shared/events"
	"github.com/littoral-project/littoral/shared/function"
	"github.com/littoral-project/littoral/shared/settings"
)

// TestTheAgentOfTheMachineIsWoken, and no other; that it does not answer is for the log only, since it asks by itself.
func TestTheAgentOfTheMachineIsWoken(t *testing.T) {
	t.Parallel()
	status := http.StatusAccepted
	var asked []string
	agent := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.Method+" "+r.URL.Path+" "+r.Header.Get("Authorization"))
		w.WriteHeader(status)
	}))
	t.Cleanup(agent.Close)
	var log bytes.Buffer
	platform := function.Platform{
		Log: slog.New(slog.NewTextHandler(&log, nil)),
		Settings: settings.Map(map[string]string{
			"EDGE_AGENTS": "harbour=" + strings.Replace(agent.URL, "//", "//s3cret@", 1) + "/at/, quay=http://other@127.0.0.1:1",
		}),
	}
	f, err := wake.New(platform.Env("deploymentmanager-wake"))
	require.NoError(t, err)
	ready := func(cluster string) {
		t.Helper()
		e, err := events.New(t.Context(), "/functions/test", events.JobReady, "job", events.Job{ID: uuid.New(), Cluster: cluster})
		require.NoError(t, err)
		require.NoError(t, f.Work(t.Context(), e))
	}
	ready("hub")
	require.Empty(t, asked)
	ready("harbour")
	require.Equal(t, []string{"POST /at/wake Bearer s3cret"}, asked)
	require.Empty(t, log.String())

	status = http.StatusUnauthorized
	ready("harbour")
	require.Contains(t, log.String(), "it answers 401")
	ready("quay")
	require.Contains(t, log.String(), "connection refused")
	require.NotContains(t, log.String(), "s3cret")
	require.NotContains(t, log.String(), "other@")
}

func TestAddresses(t *testing.T) {
	t.Parallel()
	for _, given := range []string{"https://s3cret@host", "harbour=", "harbour=ftp://s3cret@host", "harbour=https://host", "=https://s3cret@host", "harbour=https://s3cret@"} {
		_, err := wake.New(function.Platform{Settings: settings.Map(map[string]string{"EDGE_AGENTS": "quay=http://t@h," + given})}.Env("deploymentmanager-wake"))
		require.ErrorContains(t, err, "EDGE_AGENTS: number 2", given)
		require.NotContains(t, err.Error(), "s3cret")
	}
}
