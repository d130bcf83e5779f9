package main

import (
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/littoral-project/littoral/shared/bus"
	"github.com/littoral-project/littoral/shared/bus/sink"
	"github.com/littoral-project/littoral/shared/bus/sink/mqtt"
	double "github.com/littoral-project/littoral/test/compss"
	mqtttest "github.com/littoral-project/littoral/test/mqtt"
)

type pods = map[string]map[string]float64 // cores by address, by cluster

// value is what the exporter publishes.
func value(generation int64, clusters pods) told {
	v := told{Generation: generation, Clusters: map[string]place{}}
	for cluster, its := range clusters {
		p := place{Pods: map[string]pod{}}
		for ip, cores := range its {
			p.Pods["uid-"+ip] = pod{IP: ip, Cores: cores}
		}
		v.Clusters[cluster] = p
	}
	return v
}

func beside(t *testing.T, a *double.Agent, state string) *reconciler {
	t.Helper()
	o := options{Self: "10.0.0.1", Port: 46102, Cores: 1, Memory: -1, State: state, Every: time.Minute}
	r, err := newReconciler(o, compss{a.URL, &http.Client{Timeout: 5 * time.Second}}, slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	return r
}

func tell(t *testing.T, r *reconciler, v told) {
	t.Helper()
	r.take(v)
	require.NoError(t, r.reconcile(t.Context()))
}

func TestWorkersFollowWhatIsTold(t *testing.T) {
	t.Parallel()
	a := double.Start(t)
	r := beside(t, a, "")
	tell(t, r, value(1, pods{"c-1": {"10.0.0.1": 4, "10.0.0.2": 4, "10.0.0.3": 0}}))
	require.Equal(t, map[string]int64{"10.0.0.2": 4, "10.0.0.3": 1}, a.Workers(), "this pod itself is no worker")
	a.Calls()
	tell(t, r, value(2, pods{"c-1": {"10.0.0.1": 4, "10.0.0.2": 4}, "c-2": {"10.1.0.1": 2}}))
	require.Equal(t, []string{"add 10.1.0.1", "remove 10.0.0.3"}, a.Calls())
	tell(t, r, value(3, pods{"c-1": {"10.0.0.2": 4}}))
	require.Equal(t, []string{"lose 10.1.0.1"}, a.Calls(), "nothing runs in its cluster any more")
	tell(t, r, value(4, pods{"c-1": {"10.0.0.2": 6}}))
	require.Equal(t, map[string]int64{"10.0.0.2": 6}, a.Workers())
	tell(t, r, value(5, pods{"c-1": {"10.0.0.2": 1}}))
	require.Equal(t, map[string]int64{"10.0.0.2": 1}, a.Workers())
	tell(t, r, value(6, pods{}))
	require.Empty(t, a.Workers())
}

func TestAnOlderGenerationIsIgnored(t *testing.T) {
	t.Parallel()
	r := beside(t, double.Start(t), "")
	require.True(t, r.take(value(5, pods{"c-1": {"10.0.0.2": 4}})))
	require.False(t, r.take(value(4, pods{})))
	require.True(t, r.take(value(5, pods{"c-1": {"10.0.0.2": 4}})), "a heartbeat")
	require.True(t, r.take(value(0, pods{})), "the exporter of ICOS has no generations")
}

// TestNothingIsDoubled: whatever fails on the way, and however often the sidecar is started anew.
func TestNothingIsDoubled(t *testing.T) {
	t.Parallel()
	want := map[string]int64{"10.0.0.2": 4, "10.0.0.3": 4}
	told := value(1, pods{"c-1": {"10.0.0.2": 4, "10.0.0.3": 4}})
	a, state := double.Start(t), filepath.Join(t.TempDir(), "workers.json")

	r := beside(t, a, state)
	r.take(told)
	a.Fail(1)
	require.Error(t, r.reconcile(t.Context()), "the first one was refused")
	require.Equal(t, map[string]int64{"10.0.0.3": 4}, a.Workers())
	a.Lose(1)
	require.ErrorIs(t, r.reconcile(t.Context()), errNoAnswer)
	require.NoError(t, r.reconcile(t.Context()), "it was carried out")
	require.Equal(t, want, a.Workers())

	r = beside(t, a, state) // started anew
	tell(t, r, told)
	require.Equal(t, want, a.Workers())
	tell(t, r, value(2, pods{"c-1": {"10.0.0.3": 4}}))
	require.Equal(t, map[string]int64{"10.0.0.3": 4}, a.Workers(), "it knows which workers it had added")
	a.Restart()
	require.NoError(t, r.reconcile(t.Context()))
	require.Equal(t, map[string]int64{"10.0.0.3": 4}, a.Workers())
	a.Give("10.0.0.3", 8) // as two additions at once would leave it
	require.NoError(t, r.reconcile(t.Context()))
	require.Equal(t, map[string]int64{"10.0.0.3": 4}, a.Workers())
}

// TestAnAdditionWithoutAnswerIsAwaited: the agent may still be at it.
func TestAnAdditionWithoutAnswerIsAwaited(t *testing.T) {
	t.Parallel()
	a := double.Start(t)
	r := beside(t, a, "")
	r.take(value(1, pods{"c-1": {"10.0.0.2": 4}}))
	r.unsure["10.0.0.2"] = time.Now().Add(time.Hour)
	require.Error(t, r.reconcile(t.Context()))
	require.Empty(t, a.Calls())
	r.unsure["10.0.0.2"] = time.Now().Add(-time.Second)
	require.NoError(t, r.reconcile(t.Context()))
	require.Equal(t, map[string]int64{"10.0.0.2": 4}, a.Workers())
}

func TestOthersWorkersStay(t *testing.T) {
	t.Parallel()
	a := double.Start(t)
	a.Give("10.9.9.9", 2)
	r := beside(t, a, "")
	tell(t, r, value(1, pods{"c-1": {"10.0.0.2": 4, "10.9.9.9": 8}}))
	tell(t, r, value(2, pods{}))
	require.Equal(t, map[string]int64{"10.9.9.9": 2}, a.Workers())
}

// start runs the whole sidecar.
func start(t *testing.T, a *double.Agent, address string) {
	t.Helper()
	env := map[string]string{
		"ICOS_APP_INSTANCE": "shop-1", "ICOS_APP_COMPONENT": "web", "BUS_URL": address, "BUS_TOKEN": "token",
		"DPE_AGENT": a.URL, "POD_IP": "10.0.0.1",
	}
	done := make(chan error, 1)
	go func() { done <- run(t.Context(), nil, func(name string) string { return env[name] }, io.Discard) }()
	t.Cleanup(func() {
		select {
		case err := <-done:
			require.NoError(t, err)
		case <-time.After(20 * time.Second):
			t.Error("the sidecar does not end")
		}
	})
}

func has(t *testing.T, a *double.Agent, want map[string]int64) {
	t.Helper()
	require.EventuallyWithT(t, func(c *assert.CollectT) { require.Equal(c, want, a.Workers()) }, 20*time.Second, 20*time.Millisecond)
}

func text(t *testing.T, v told) []byte {
	t.Helper()
	payload, err := json.Marshal(v)
	require.NoError(t, err)
	return payload
}

// TestByTheRESTForm: the state comes by a question and changes by the stream, as from a router of Zenoh.
func TestByTheRESTForm(t *testing.T) {
	t.Parallel()
	changes := make(chan string, 1)
	state := string(text(t, value(1, pods{"c-1": {"10.0.0.2": 4}})))
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/bus/shop-1/web" || r.Header.Get("Authorization") != "Bearer token" {
			w.WriteHeader(http.StatusForbidden)
			return
		}
		if r.Header.Get("Accept") != "text/event-stream" {
			_, _ = fmt.Fprintf(w, `[{"key":"shop-1/web","value":%s}]`, state)
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		flusher := http.NewResponseController(w)
		_ = flusher.Flush()
		for {
			select {
			case c := <-changes:
				_, _ = fmt.Fprintf(w, "event: PUT\ndata: {\"value\":%s}\n\n", c)
				_ = flusher.Flush()
			case <-r.Context().Done():
				return
			}
		}
	}))
	t.Cleanup(s.Close)
	t.Cleanup(s.CloseClientConnections)
	a := double.Start(t)
	start(t, a, s.URL+"/bus")
	has(t, a, map[string]int64{"10.0.0.2": 4})
	changes <- "null" // nobody's list
	changes <- string(text(t, value(2, pods{"c-2": {"10.1.0.2": 2}})))
	has(t, a, map[string]int64{"10.1.0.2": 2})
}

// TestByMQTT: what a sink of the bus has retained on the broker reaches a sidecar that comes late.
func TestByMQTT(t *testing.T) {
	t.Parallel()
	address := mqtttest.Start(t)
	user := strings.ReplaceAll(url.UserPassword(mqtttest.User, mqtttest.Password).String(), ",", "%2C")
	where, err := sink.ParseAddress("mqtt://" + user + "@" + address + "/site")
	require.NoError(t, err)
	s, err := mqtt.New(where)
	require.NoError(t, err)
	session, err := s.Open(t.Context(), uuid.New())
	require.NoError(t, err)
	t.Cleanup(session.Close)
	send := func(v told) {
		require.NoError(t, session.Send(t.Context(), []bus.Value{{Key: "shop-1/web", Encoding: bus.JSON, Payload: text(t, v)}}, nil))
	}
	send(value(1, pods{"c-1": {"10.0.0.2": 4}}))
	a := double.Start(t)
	start(t, a, "mqtt://"+user+"@"+address+"/site")
	has(t, a, map[string]int64{"10.0.0.2": 4})
	send(value(2, pods{"c-1": {"10.0.0.2": 4, "10.0.0.3": 1}}))
	has(t, a, map[string]int64{"10.0.0.2": 4, "10.0.0.3": 1})
}

// TestItIsSmall: it is pulled to the edge beside each pod that asks for it.
func TestItIsSmall(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "sidecar")
	build := exec.CommandContext(t.Context(), "go", "build", "-trimpath", "-ldflags", "-s -w", "-o", file, ".")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	out, err := build.CombinedOutput()
	require.NoError(t, err, string(out))
	info, err := os.Stat(file)
	require.NoError(t, err)
	t.Logf("%.1f MB", float64(info.Size())/1e6)
	require.Less(t, info.Size(), int64(10e6))
}
