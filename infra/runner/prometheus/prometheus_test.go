package prometheus_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/littoral-project/littoral/infra/runner/prometheus"
)

// crashDir makes the test binary a process that appends to the storage in that directory and is then killed.
const crashDir = "PROMETHEUS_TEST_CRASH_DIR"

func TestMain(m *testing.M) {
	if dir := os.Getenv(crashDir); dir != "" {
		appendAndDie(dir)
	}
	os.Exit(m.Run())
}

func appendAndDie(dir string) {
	s, err := prometheus.Open(prometheus.Options{Dir: dir})
	if err == nil {
		err = s.Append(context.Background(), samples(time.Now(), 42))
	}
	if err == nil {
		err = syscall.Kill(os.Getpid(), syscall.SIGKILL)
	}
	fmt.Fprintln(os.Stderr, err)
	os.Exit(3)
}

func samples(at time.Time, value float64) []prometheus.Sample {
	return []prometheus.Sample{
		{Name: "SCA_score", Labels: map[string]string{"agent_hostname": "a"}, Value: value, At: at},
		{Name: "SCA_score", Labels: map[string]string{"agent_hostname": "b"}, Value: value + 1, At: at},
	}
}

// answer is Prometheus' envelope.
type answer struct {
	Status    string          `json:"status"`
	Data      json.RawMessage `json:"data"`
	ErrorType string          `json:"errorType"`
}

func open(t *testing.T, dir string) *prometheus.Server {
	t.Helper()
	s, err := prometheus.Open(prometheus.Options{Dir: dir})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s
}

func get(t *testing.T, s *prometheus.Server, target string) (int, string) {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, target, nil)
	w := httptest.NewRecorder()
	s.Handler().ServeHTTP(w, r)
	body, err := io.ReadAll(w.Result().Body)
	require.NoError(t, err)
	return w.Code, string(body)
}

func data(t *testing.T, s *prometheus.Server, target string) string {
	t.Helper()
	code, body := get(t, s, target)
	require.Equal(t, http.StatusOK, code, body)
	var a answer
	require.NoError(t, json.Unmarshal([]byte(body), &a))
	require.Equal(t, "success", a.Status)
	return string(a.Data)
}

// seconds formats a time for the API.
func seconds(at time.Time) string {
	return strconv.FormatFloat(float64(at.UnixMilli())/1000, 'f', 3, 64)
}

func TestAPI(t *testing.T) {
	t.Parallel()
	s := open(t, t.TempDir())
	at := time.Now().Truncate(time.Second).Add(-time.Minute)
	require.NoError(t, s.Append(t.Context(), samples(at, 80)))
	stamp := strconv.FormatInt(at.Unix(), 10)

	for name, row := range map[string]struct {
		path  string
		query url.Values
		want  string
	}{
		"an instant query": {
			"/api/v1/query",
			url.Values{"query": {`SCA_score{agent_hostname="a"}`}, "time": {seconds(at)}},
			`{"resultType":"vector","result":[{"metric":{"__name__":"SCA_score","agent_hostname":"a"},"value":[` +
				stamp + `,"80"]}]}`,
		},
		"the age of a sample": {
			"/api/v1/query",
			url.Values{"query": {"min(timestamp(SCA_score))"}, "time": {seconds(at.Add(time.Minute))}},
			`{"resultType":"vector","result":[{"metric":{},"value":[` +
				strconv.FormatInt(at.Unix()+60, 10) + `,"` + stamp + `"]}]}`,
		},
		"a range query": {
			"/api/v1/query_range",
			url.Values{
				"query": {"sum(SCA_score)"}, "start": {seconds(at)}, "end": {seconds(at.Add(time.Second))}, "step": {"1"},
			},
			`{"resultType":"matrix","result":[{"metric":{},"values":[[` + stamp + `,"161"],[` +
				strconv.FormatInt(at.Unix()+1, 10) + `,"161"]]}]}`,
		},
		"series": {
			"/api/v1/series",
			url.Values{"match[]": {`SCA_score{agent_hostname="b"}`}},
			`[{"__name__":"SCA_score","agent_hostname":"b"}]`,
		},
		"label names":  {"/api/v1/labels", nil, `["__name__","agent_hostname"]`},
		"label values": {"/api/v1/label/agent_hostname/values", nil, `["a","b"]`},
		"no rules":     {"/api/v1/rules", nil, `{"groups":[]}`},
		"no targets": {
			"/api/v1/targets", nil, `{"activeTargets":[],"droppedTargets":[],"droppedTargetCounts":null}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.JSONEq(t, row.want, data(t, s, row.path+"?"+row.query.Encode()))
		})
	}
}

func TestAPIRefusals(t *testing.T) {
	t.Parallel()
	s := open(t, t.TempDir())
	for name, row := range map[string]struct {
		method, path string
		status       int
	}{
		"a query that does not parse":   {"GET", "/api/v1/query?query=" + url.QueryEscape("sum(") + "", 400},
		"a path that is not there":      {"GET", "/api/v1/nothing", 404},
		"deleting series":               {"POST", "/api/v1/admin/tsdb/delete_series?match[]=up", 500},
		"writing from outside":          {"POST", "/api/v1/write", 404},
		"being asked how it is is fine": {"GET", "/-/healthy", 200},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := httptest.NewRecorder()
			s.Handler().ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), row.method, row.path, nil))
			require.Equal(t, row.status, w.Code, w.Body.String())
		})
	}
}

func TestStaleEndsASeriesAtOnce(t *testing.T) {
	t.Parallel()
	s := open(t, t.TempDir())
	now := time.Now()
	require.NoError(t, s.Append(t.Context(), samples(now.Add(-time.Second), 1)))
	gone := samples(now, prometheus.Stale)[:1]
	require.NoError(t, s.Append(t.Context(), gone))
	got := data(t, s, "/api/v1/query?query=count(SCA_score)&time="+seconds(now))
	require.Contains(t, got, `"1"`, "one of the two series is left")
}

func TestClockSetBackDoesNotStopTheFlow(t *testing.T) {
	t.Parallel()
	s := open(t, t.TempDir())
	now := time.Now()
	require.NoError(t, s.Append(t.Context(), samples(now, 1)))
	require.NoError(t, s.Append(t.Context(), samples(now.Add(-time.Minute), 2)), "within the window it is stored")
	require.NoError(t, s.Append(t.Context(), samples(now.Add(-time.Hour), 3)), "beyond it is dropped")
	got := data(t, s, "/api/v1/query?query=SCA_score{agent_hostname=\"a\"}&time="+seconds(now.Add(-time.Minute)))
	require.Contains(t, got, `"2"`)
}

func TestSamplesSurvive(t *testing.T) {
	t.Parallel()
	for name, stop := range map[string]func(*testing.T, string){
		"a clean close": func(t *testing.T, dir string) {
			s, err := prometheus.Open(prometheus.Options{Dir: dir})
			require.NoError(t, err)
			require.NoError(t, s.Append(t.Context(), samples(time.Now(), 42)))
			require.NoError(t, s.Close())
		},
		"a kill -9": func(t *testing.T, dir string) {
			c := exec.CommandContext(t.Context(), os.Args[0])
			c.Env = append(os.Environ(), crashDir+"="+dir)
			out, err := c.CombinedOutput()
			var died *exec.ExitError
			require.ErrorAs(t, err, &died)
			require.Equal(t, -1, died.ExitCode(), "ended by the signal: %s", out)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			stop(t, dir)
			s := open(t, dir)
			require.Contains(t, data(t, s, "/api/v1/query?query=SCA_score{agent_hostname=\"a\"}"), `"42"`)
			require.NoError(t, s.Append(t.Context(), samples(time.Now(), 43)), "and the storage takes more")
		})
	}
}
