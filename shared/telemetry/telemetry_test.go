package telemetry_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/littoral-project/littoral/infra/runner/prometheus"
	"github.com/littoral-project/littoral/infra/runner/prometheus/prometheustest"
	"github.com/littoral-project/littoral/shared/problem"
	"github.com/littoral-project/littoral/shared/telemetry"
)

var now = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func client(t *testing.T, c telemetry.Config, h http.Handler) *telemetry.Client {
	t.Helper()
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	c.Address = server.URL + c.Address
	asking, err := telemetry.New(c, server.Client())
	require.NoError(t, err)
	return asking
}

func TestAsk_aRealPrometheus(t *testing.T) {
	t.Parallel()
	p := prometheustest.New(t)
	require.NoError(t, p.Append(context.Background(), []prometheus.Sample{
		{Name: "m", Labels: map[string]string{"host": "a"}, Value: 1.5, At: now},
		{Name: "m", Labels: map[string]string{"host": "b"}, Value: 7, At: now.Add(-10 * time.Minute)},
	}))
	answers := client(t, telemetry.Config{}, p.Handler()).Ask(context.Background(), map[string]string{
		"one":    `m`,
		"none":   `nothing`,
		"past":   `last_over_time(m{host="b"}[30m])`,
		"nan":    `m * NaN`,
		"broken": `m{`,
		"scalar": `1`,
	}, now, 10*time.Second)

	require.Len(t, answers, 6)
	require.NoError(t, answers["one"].Err)
	require.Equal(t, []telemetry.Sample{
		{Labels: map[string]string{"__name__": "m", "host": "a"}, Value: 1.5},
	}, answers["one"].Samples)
	require.NoError(t, answers["none"].Err)
	require.Empty(t, answers["none"].Samples, "no such metric is an answer, not a failure")
	require.InDelta(t, 7, answers["past"].Samples[0].Value, 0)
	require.NoError(t, answers["nan"].Err)
	require.ErrorContains(t, answers["broken"].Err, "refused the query")
	require.Equal(t, problem.Unavailable, problem.KindOf(answers["broken"].Err))
	require.ErrorContains(t, answers["scalar"].Err, "gives a scalar")
}

// TestAskTogether_isAsk: joined queries give the same answers as single ones, in few calls, and a query that fails
// fails alone.
func TestAskTogether_isAsk(t *testing.T) {
	t.Parallel()
	p := prometheustest.New(t)
	for _, host := range []string{"a", "b", `c "d" \ é`} {
		require.NoError(t, p.Append(context.Background(), []prometheus.Sample{
			{Name: "m", Labels: map[string]string{"host": host}, Value: 1.5, At: now},
			{Name: "n", Labels: map[string]string{"host": host}, Value: 7, At: now.Add(-10 * time.Minute)},
		}))
	}
	var calls atomic.Int64
	asking := client(t, telemetry.Config{}, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		calls.Add(1)
		p.Handler().ServeHTTP(w, r)
	}))
	queries := map[string]string{
		"kept": `n or (last_over_time(n[30m]) unless on (host) n)`, "sum": `sum(m)`, "none": `nothing`,
		"same": `m`, "again": `m`, "named alike": `m * 2`, "infinite": `m / 0`,
	}
	for i := range 30 {
		queries[fmt.Sprint(i)] = fmt.Sprintf(`m + %d`, i)
	}
	byHost := func(a, b telemetry.Sample) int { return strings.Compare(a.Labels["host"], b.Labels["host"]) }
	same := func() {
		each := asking.Ask(context.Background(), queries, now, 10*time.Second)
		calls.Store(0)
		together := asking.AskTogether(context.Background(), queries, now, 10*time.Second)
		require.Len(t, together, len(queries))
		for name, want := range each {
			slices.SortFunc(want.Samples, byHost)
			slices.SortFunc(together[name].Samples, byHost)
			require.Equal(t, want.Err, together[name].Err, name)
			require.ElementsMatch(t, want.Samples, together[name].Samples, name)
		}
	}
	same()
	require.LessOrEqual(t, calls.Load(), int64(3))
	queries["broken"], queries["scalar"] = `m{`, `1`
	same()
}

// TestAskAll_isAllOrNothing: nothing is asked a second time.
func TestAskAll_isAllOrNothing(t *testing.T) {
	t.Parallel()
	p := prometheustest.New(t)
	require.NoError(t, p.Append(context.Background(), []prometheus.Sample{{Name: "m", Value: 1.5, At: now}}))
	var calls atomic.Int64
	warned := vector(`[1,"2"]`)
	warned = strings.Replace(warned, "{", `{"warnings":["a store is away"],`, 1)
	asking := client(t, telemetry.Config{}, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		calls.Add(1)
		if strings.Contains(r.FormValue("query"), "warned") {
			_, _ = io.WriteString(w, warned)
			return
		}
		p.Handler().ServeHTTP(w, r)
	}))
	queries := map[string]string{"one": "m", "two": "m * 2", "none": "nothing"}
	all, err := asking.AskAll(context.Background(), queries, now, 10*time.Second)
	require.NoError(t, err)
	require.Len(t, all, 3)
	require.InDelta(t, 3, all["two"][0].Value, 0)
	require.Empty(t, all["none"])
	for broken, want := range map[string]string{"m{": "refused the query", "warned": "a store is away"} {
		calls.Store(0)
		queries["broken"] = broken
		_, err = asking.AskAll(context.Background(), queries, now, 10*time.Second)
		require.ErrorContains(t, err, want)
		require.Equal(t, problem.Unavailable, problem.KindOf(err))
		require.Equal(t, int64(1), calls.Load())
	}
}

// TestEach_readsAnAnswerAsItComes, whatever is in it before the elements, and refuses what Query refuses.
func TestEach_readsAnAnswerAsItComes(t *testing.T) {
	t.Parallel()
	row := `[{"metric":{"host":"a"},"value":[1,"2"]}]`
	for name, c := range map[string]struct {
		status     int
		body, want string // of the error
	}{
		"as Prometheus writes it":   {200, `{"status":"success","data":{"resultType":"vector","result":` + row + `},"warnings":["x"]}`, ""},
		"in another order":          {200, `{"infos":null,"data":{"result":` + row + `,"resultType":"vector"},"status":"success"}`, ""},
		"a refusal of Prometheus":   {422, `{"status":"error","error":"too many samples"}`, "too many samples"},
		"a matrix":                  {200, `{"status":"success","data":{"resultType":"matrix","result":[]}}`, "gives a matrix"},
		"a value that is no number": {200, vector(`[1,"x"]`), "no query result"},
		"half an answer":            {200, `{"status":"success","data":{"resultType":"vector","result":[`, "no query result"},
		"a page of something else":  {502, "<html>", "answered 502"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			asking := client(t, telemetry.Config{}, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(c.status)
				_, _ = io.WriteString(w, c.body)
			}))
			var got []string
			err := asking.Each(context.Background(), "up", now, func(r *telemetry.Row) {
				got = append(got, fmt.Sprintf("%s %v", r.Label("host"), r.Value))
			})
			if c.want != "" {
				require.ErrorContains(t, err, c.want)
				require.Equal(t, problem.Unavailable, problem.KindOf(err))
				return
			}
			require.NoError(t, err)
			require.Equal(t, []string{"a 2"}, got)
		})
	}
}

func TestAsk_oneDeadlineForAll(t *testing.T) {
	t.Parallel()
	var asked atomic.Int32
	asking := client(t, telemetry.Config{}, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.FormValue("query") == "slow" {
			asked.Add(1)
			<-r.Context().Done()
			return
		}
		_, _ = io.WriteString(w, `{"status":"success","data":{"resultType":"vector","result":[]}}`)
	}))
	queries := map[string]string{"fast": "fast"}
	for i := range 20 {
		queries[fmt.Sprintf("slow%d", i)] = "slow"
	}
	answers := asking.Ask(context.Background(), queries, now, 200*time.Millisecond)
	require.Len(t, answers, 21)
	require.ErrorContains(t, answers["slow7"].Err, "did not answer in time")
	require.Equal(t, problem.Unavailable, problem.KindOf(answers["slow7"].Err))
	require.Less(t, asked.Load(), int32(20), "those that waited for the first ones are not asked any more")
}

func TestQuery_sendsWhoItIs(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		config telemetry.Config
		want   string
	}{
		"nothing":                   {telemetry.Config{}, ""},
		"a token":                   {telemetry.Config{Token: "t"}, "Bearer t"},
		"a user":                    {telemetry.Config{User: "u", Password: "p"}, "Basic dTpw"},
		"the token before the user": {telemetry.Config{Token: "t", User: "u"}, "Bearer t"},
		"a path before the API":     {telemetry.Config{Address: "/prometheus/"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			want := strings.TrimSuffix(row.config.Address, "/") + "/api/v1/query"
			asking := client(t, row.config, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				asked := r.Header.Get("Authorization") == row.want && r.URL.Path == want
				if !asked || r.FormValue("time") != "1772366400.000" {
					w.WriteHeader(http.StatusForbidden)
					return
				}
				_, _ = io.WriteString(w, `{"status":"success","data":{"resultType":"vector","result":[]}}`)
			}))
			_, err := asking.Query(context.Background(), "up", now)
			require.NoError(t, err)
		})
	}
}

func TestQuery_answersThatAreNone(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		status int
		body   string
		want   string
	}{
		"a proxy's error page":         {502, "<html>", "answered 502 Bad Gateway"},
		"a refusal of Prometheus":      {422, `{"status":"error","error":"too many samples"}`, "too many samples"},
		"a page of something else":     {200, "<html>", "no query result"},
		"an empty object":              {200, "{}", "no query result"},
		"half an answer":               {200, `{"status":"success","data":{"resultType":"vec`, "no query result"},
		"a matrix":                     {200, strings.Replace(vector("[]"), "vector", "matrix", 1), "gives a matrix"},
		"a value that is no number":    {200, vector(`[1,"x"]`), "no number"},
		"a value that is missing":      {200, vector(`[1]`), "without value"},
		"a value that is not text":     {200, vector(`[1,{}]`), "without value"},
		"more bytes than anyone reads": {200, strings.Repeat(" ", 64<<20+1), "more than 67108864 bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			asking := client(t, telemetry.Config{}, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(row.status)
				_, _ = io.WriteString(w, row.body)
			}))
			_, err := asking.Query(context.Background(), "up", now)
			require.ErrorContains(t, err, row.want)
			require.Equal(t, problem.Unavailable, problem.KindOf(err))
		})
	}
}

func vector(value string) string {
	return `{"status":"success","data":{"resultType":"vector","result":[{"metric":{},"value":` + value + `}]}}`
}

func TestQuery_nobodyListens(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.NotFoundHandler())
	server.Close()
	asking, err := telemetry.New(telemetry.Config{Address: server.URL}, http.DefaultClient)
	require.NoError(t, err)
	_, err = asking.Query(context.Background(), "up", now)
	require.ErrorContains(t, err, "cannot be reached")
}

func TestNew_refusesWhatIsNoAddress(t *testing.T) {
	t.Parallel()
	for _, address := range []string{"", "prometheus:9090", "ftp://x", "http://", "%"} {
		_, err := telemetry.New(telemetry.Config{Address: address}, http.DefaultClient)
		require.ErrorContains(t, err, "PROMETHEUS_ADDRESS", "%q", address)
	}
}
