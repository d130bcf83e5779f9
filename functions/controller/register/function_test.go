package register_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/littoral-project/littoral/functions/controller/register"
	"github.com/littoral-project/littoral/shared/function"
	"github.com/littoral-project/littoral/shared/problem"
	"github.com/littoral-project/littoral/shared/settings"
)

// TestItRegistersWithTheTokenForTheLighthouse, and says when the lighthouse refuses.
func TestItRegistersWithTheTokenForTheLighthouse(t *testing.T) {
	t.Parallel()
	var calls []string
	status := http.StatusCreated
	light := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		calls = append(calls, r.Method+" "+r.URL.Path+" "+r.Header.Get("Authorization")+" "+string(body))
		w.WriteHeader(status)
	}))
	t.Cleanup(light.Close)
	token := filepath.Join(t.TempDir(), "token")
	require.NoError(t, os.WriteFile(token, []byte("abc\n"), 0o600))
	run := func(set map[string]string) error {
		f, err := register.New(function.Platform{Settings: settings.Map(set)}.Env("controller-register"))
		require.NoError(t, err)
		return f.Run(t.Context())
	}
	set := map[string]string{"CONTROLLER_NAME": "shore", "CONTROLLER_ADDRESS": "https://shore.example/"}
	require.NoError(t, run(set))
	require.Empty(t, calls, "there is no lighthouse")

	set["LIGHTHOUSE"] = light.URL + "/"
	set["CONTROLLER_PEERS"] = `[{"name": "light", "address": "` + light.URL + `", "tokenFile": "` + token + `"}]`
	require.NoError(t, run(set))
	require.Equal(t, []string{`POST /api/v3/controller/ Bearer abc {"address":"https://shore.example","name":"shore"}`}, calls)

	status = http.StatusConflict
	require.Equal(t, problem.Conflict, problem.KindOf(run(set)))
}
