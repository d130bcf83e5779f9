package fleet

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/littoral-project/littoral/infra/runner/issuer"
	"github.com/littoral-project/littoral/shared/auth"
)

// TestAgentsAuthenticateAsThemselves: every agent polls a real server with a token from a real issuer; the id of one
// must be escaped in a path.
func TestAgentsAuthenticateAsThemselves(t *testing.T) {
	t.Parallel()
	const nuvla = "nuvlabox/0f3a9e51-7d35-4be4-9aeb-0c2ac1b9e001"
	plan, err := parsePlan([]byte(`{"cluster":{
	  "nuvlabox/0f3a":{"type":"nuvla","icosAgentID":"` + nuvla + `","node":{"a":{"name":"a"}}},
	  "plain":{"type":"ocm","node":{"b":{"name":"b"}}}}}`))
	require.NoError(t, err)
	require.Equal(t, []string{nuvla, "plain"}, plan.AgentIDs())

	mux := http.NewServeMux()
	host := httptest.NewServer(mux)
	t.Cleanup(host.Close)
	clients := make([]issuer.Client, 0, 2)
	for _, id := range plan.AgentIDs() {
		clients = append(clients, issuer.AgentClient(id))
	}
	i, err := issuer.New(issuer.Options{
		URL: host.URL + "/oidc", Dir: t.TempDir(), Audience: "littoral", Clients: clients,
	})
	require.NoError(t, err)
	mux.Handle("/oidc/", i.Handler())
	v := auth.NewVerifier(auth.Config{Issuer: host.URL + "/oidc", Audience: "littoral"}, host.Client(), nil)
	asked := map[string]string{}
	mux.HandleFunc("GET /jobmanager/jobs/executable/{orchestrator}/{agent_id}",
		func(w http.ResponseWriter, r *http.Request) {
			caller, err := v.Authenticate(r, auth.Agent)
			if err != nil || caller.AgentID != r.PathValue("agent_id") {
				w.WriteHeader(http.StatusForbidden)
				return
			}
			asked[caller.AgentID] = r.PathValue("orchestrator")
			_, _ = w.Write([]byte("[]"))
		})

	f := newFleet(t, nil, func(o *Options) {
		o.Plan, o.API = plan, host.URL
		o.Client = func(id string) *http.Client { return i.Credentials(issuer.AgentClient(id).ID).Client(t.Context()) }
	})
	for _, c := range plan.Clusters {
		poll(t, f, c.Name)
	}
	require.Equal(t, map[string]string{nuvla: "nuvla", "plain": "ocm"}, asked)
}

func TestAFailureIsLoggedOnce(t *testing.T) {
	t.Parallel()
	m := newManager()
	log := filepath.Join(t.TempDir(), "log")
	out, err := os.Create(log)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, out.Close()) })
	f := newFleet(t, m, func(o *Options) { o.Log = textLog(out) })
	a := f.agents["edge"]
	m.refuse("GET", http.StatusServiceUnavailable)
	for range 3 {
		a.logChange(t.Context(), a.poll(t.Context()))
	}
	m.refuse("GET", 0)
	for range 2 {
		a.logChange(t.Context(), a.poll(t.Context()))
	}
	text, err := os.ReadFile(log)
	require.NoError(t, err)
	require.Regexp(t, `(?s)^[^\n]*cannot work[^\n]*\n[^\n]*works again[^\n]*\n$`, string(text))
}
