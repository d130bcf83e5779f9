package mimir_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	"github.com/prometheus/common/model"
	"github.com/prometheus/common/promslog"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/littoral-project/littoral/shared/problem"
	"github.com/littoral-project/littoral/shared/telemetry/rules"
	"github.com/littoral-project/littoral/shared/telemetry/rules/mimir"
	"github.com/littoral-project/littoral/shared/telemetry/rules/rulestest"
)

// ruler behaves like the documented ruler: 202 to POST and DELETE, 404 "no rule groups found" if there are none, 400
// for an invalid rule group, 401 without a tenant.
type ruler struct {
	mu    sync.Mutex
	rules map[string]map[string]rulefmt.RuleGroup // namespace, group
	tb    testing.TB
}

func (r *ruler) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /prometheus/config/v1/rules", func(w http.ResponseWriter, _ *http.Request) { r.answer(w, "") })
	mux.HandleFunc(
		"GET /prometheus/config/v1/rules/{ns}",
		func(w http.ResponseWriter, q *http.Request) { r.answer(w, q.PathValue("ns")) },
	)
	mux.HandleFunc("POST /prometheus/config/v1/rules/{ns}", r.set)
	mux.HandleFunc("DELETE /prometheus/config/v1/rules/{ns}", func(w http.ResponseWriter, q *http.Request) {
		delete(r.rules, q.PathValue("ns"))
		w.WriteHeader(http.StatusAccepted)
	})
	return http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		if q.Header.Get("X-Scope-OrgID") != "littoral" {
			http.Error(w, "no org id", http.StatusUnauthorized)
			return
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		mux.ServeHTTP(w, q)
	})
}

func (r *ruler) answer(w http.ResponseWriter, only string) {
	found := map[string][]rulefmt.RuleGroup{}
	for ns, groups := range r.rules {
		for _, g := range groups {
			if only == "" || only == ns {
				found[ns] = append(found[ns], g)
			}
		}
	}
	if len(found) == 0 {
		http.Error(w, "no rule groups found", http.StatusNotFound)
		return
	}
	w.Header().Set("Content-Type", "application/yaml")
	_ = yaml.NewEncoder(w).Encode(found)
}

func (r *ruler) set(w http.ResponseWriter, q *http.Request) {
	body, err := io.ReadAll(q.Body)
	require.NoError(r.tb, err)
	var g rulefmt.RuleGroup
	if err := yaml.Unmarshal(body, &g); err != nil || g.Name == "" {
		http.Error(w, "unable to decode rule group", http.StatusBadRequest)
		return
	}
	whole, err := yaml.Marshal(rulefmt.RuleGroups{Groups: []rulefmt.RuleGroup{g}})
	require.NoError(r.tb, err)
	_, errs := rulefmt.Parse(
		whole,
		false,
		model.UTF8Validation,
		parser.NewParser(parser.Options{}),
		promslog.NewNopLogger(),
	)
	if len(errs) > 0 {
		http.Error(w, errs[0].Error(), http.StatusBadRequest)
		return
	}
	ns := q.PathValue("ns")
	if r.rules[ns] == nil {
		r.rules[ns] = map[string]rulefmt.RuleGroup{}
	}
	r.rules[ns][g.Name] = g
	w.WriteHeader(http.StatusAccepted)
}

func open(t *testing.T, tenant string) (*mimir.Store, *ruler, *httptest.Server) {
	t.Helper()
	r := &ruler{rules: map[string]map[string]rulefmt.RuleGroup{}, tb: t}
	server := httptest.NewServer(r.handler())
	t.Cleanup(server.Close)
	remote, err := rules.NewRemote(server.URL+"/prometheus", http.Header{"X-Scope-Orgid": {tenant}}, server.Client())
	require.NoError(t, err)
	return mimir.New(remote), r, server
}

func TestStore(t *testing.T) {
	t.Parallel()
	rulestest.Run(t, func(t *testing.T) rulestest.Place {
		s, r, server := open(t, "littoral")
		return rulestest.Place{Store: s, Stop: server.Close, Count: func() (n int) {
			for _, groups := range r.rules {
				n += len(groups)
			}
			return n
		}}
	})
}

func TestGroupsOfOthersAreLeftAlone(t *testing.T) {
	t.Parallel()
	s, r, _ := open(t, "littoral")
	r.rules["theirs"] = map[string]rulefmt.RuleGroup{"theirs": {Name: "theirs"}}
	list, err := s.List(t.Context())
	require.NoError(t, err)
	require.Empty(t, list)
	require.Equal(t, problem.NotFound, problem.KindOf(s.Delete(t.Context(), "theirs")))
	require.Contains(t, r.rules, "theirs")
}

func TestWhatTheRulerRefuses(t *testing.T) {
	t.Parallel()
	s, _, _ := open(t, "littoral")
	err := s.Put(t.Context(), rulestest.Group("shop", "sum("))
	require.Equal(t, problem.Invalid, problem.KindOf(err))
	require.ErrorContains(t, err, "could not parse expression")
	stranger, _, _ := open(t, "")
	err = stranger.Put(t.Context(), rulestest.Group("shop", "up"))
	require.Equal(t, problem.Unavailable, problem.KindOf(err), "our settings are wrong, not the rules")
	require.ErrorContains(t, err, "no org id")
}
