package ruleclient_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/littoral-project/littoral/shared/policy/registry"
	"github.com/littoral-project/littoral/shared/policy/ruleclient"
	"github.com/littoral-project/littoral/shared/problem"
)

var group = registry.RuleGroup{Name: "cpu", Rules: []registry.Rule{{
	Alert: "cpu:rule-0", Expr: "up > 1", For: "0", Labels: map[string]string{}, Annotations: map[string]string{"plm_id": "p-1"},
}}}

func TestClient_speaksTheContract(t *testing.T) {
	t.Parallel()
	var seen []string
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		seen = append(seen, r.Method+" "+r.URL.EscapedPath()+" "+r.Header.Get("Authorization"))
		switch r.Method {
		case http.MethodPost:
			var sent registry.RulesRequest
			if json.Unmarshal(body, &sent) != nil || sent.Data.Groups[0].Name != "cpu" {
				w.WriteHeader(http.StatusUnprocessableEntity)
				return
			}
			_, _ = w.Write([]byte(`{"file": "cpu 1"}`))
		case http.MethodDelete:
			w.WriteHeader(http.StatusNotFound)
		default:
			listed, _ := json.Marshal([]any{map[string]any{"file": "cpu-1", "group": group}})
			_, _ = w.Write(listed)
		}
	}))
	t.Cleanup(api.Close)
	rules, err := ruleclient.New(ruleclient.Config{URL: api.URL + "/api/v1/rules", Token: "t", Timeout: 5 * time.Second}, http.DefaultClient)
	require.NoError(t, err)
	require.Equal(t, api.URL+"/api/v1/rules", rules.URL())
	file, err := rules.Put(t.Context(), group)
	require.NoError(t, err)
	require.Equal(t, "cpu 1", file)
	require.NoError(t, rules.Delete(t.Context(), file), "what is not there is gone already")
	listed, err := rules.List(t.Context())
	require.NoError(t, err)
	require.Equal(t, map[string]registry.RuleGroup{"cpu-1": group}, listed)
	require.Equal(t, []string{
		"POST /api/v1/rules/ Bearer t", "DELETE /api/v1/rules/cpu%201 Bearer t", "GET /api/v1/rules/ Bearer t",
	}, seen)
}

func TestClient_readsEveryFormOfList(t *testing.T) {
	t.Parallel()
	text, err := json.Marshal(group)
	require.NoError(t, err)
	for name, answer := range map[string]string{
		"a list of files with their groups": `[{"file": "f", "groups": [` + string(text) + `]}]`,
		"an object by file":                 `{"f": {"groups": [` + string(text) + `]}}`,
		"a list under data":                 `{"data": [{"id": "f", "group": ` + string(text) + `}]}`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(answer)) }))
			t.Cleanup(api.Close)
			rules, err := ruleclient.New(ruleclient.Config{URL: api.URL, Timeout: 5 * time.Second}, http.DefaultClient)
			require.NoError(t, err)
			listed, err := rules.List(t.Context())
			require.NoError(t, err)
			require.Equal(t, map[string]registry.RuleGroup{"f": group}, listed)
		})
	}
}

func TestClient_tellsWhatARepeatMayMend(t *testing.T) {
	t.Parallel()
	for status, kind := range map[int]problem.Kind{
		400: problem.Invalid, 422: problem.Invalid, 401: problem.Unavailable, 403: problem.Unavailable, 500: problem.Unavailable,
		503: problem.Unavailable,
	} {
		api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) }))
		rules, err := ruleclient.New(ruleclient.Config{URL: api.URL, Timeout: 5 * time.Second}, http.DefaultClient)
		require.NoError(t, err)
		_, err = rules.Put(t.Context(), group)
		require.Equal(t, kind, problem.KindOf(err), status)
		api.Close()
	}
	rules, err := ruleclient.New(ruleclient.Config{}, http.DefaultClient)
	require.NoError(t, err)
	file, err := rules.Put(t.Context(), group)
	require.NoError(t, err, "without an API nothing is kept")
	require.Empty(t, file)
	_, err = ruleclient.New(ruleclient.Config{URL: "rules"}, http.DefaultClient)
	require.Error(t, err)
}
