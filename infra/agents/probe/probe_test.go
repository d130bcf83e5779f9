package main

import (
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/littoral-project/littoral/shared/loopback"
)

// TestMain runs the probe itself where a test starts this program again in another network namespace.
func TestMain(m *testing.M) {
	if os.Getenv("PROBE_IS_RUN_BY_A_TEST") != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

// responder runs a probe that answers and returns where.
func responder(t *testing.T) (*probe, string) {
	t.Helper()
	free, err := loopback.Free(t.Context())
	require.NoError(t, err)
	at := free.String()
	p := made(t, options{Node: "edge-1", Listen: at})
	ctx, stop := context.WithCancel(t.Context())
	t.Cleanup(stop)
	require.NoError(t, p.respond(ctx))
	return p, at
}

func made(t *testing.T, o options) *probe {
	t.Helper()
	defaults := options{}
	require.NoError(t, defaults.flags(func(string) string { return "" }).Parse(nil))
	defaults.Node, defaults.Config, defaults.Listen = o.Node, o.Config, o.Listen
	defaults.Gap, defaults.TCPBytes, defaults.Legacy, defaults.Token = time.Millisecond, 200_000, o.Legacy, o.Token
	defaults.OTLP, defaults.Every = o.OTLP, 50*time.Millisecond
	if o.Budget > 0 {
		defaults.Budget = o.Budget
	}
	p, err := newProbe(defaults, slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	return p
}

func configured(t *testing.T, neighbour string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "lpm.json")
	require.NoError(t, os.WriteFile(file, fmt.Appendf(nil,
		`{"Nodename": "cloud-1", "MetricsNeighbourNodes": [{"name": "edge-1", "ip": %q, "jitterInterval": 5, "throughputInterval": 20, "rttInterval": 10}]}`,
		neighbour), 0o600))
	return file
}

func TestANodeMeasuresItsNeighbour(t *testing.T) {
	t.Parallel()
	_, at := responder(t)
	var pushed atomic.Value
	gateway := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if plain, err := gzip.NewReader(r.Body); err == nil {
			body, _ := io.ReadAll(plain)
			pushed.Store(string(body))
		}
		_, _ = io.WriteString(w, "{}")
	}))
	t.Cleanup(gateway.Close)
	secret := filepath.Join(t.TempDir(), "token")
	require.NoError(t, os.WriteFile(secret, []byte("s3cret\n"), 0o600))
	p := made(t, options{Config: configured(t, at), Legacy: true, OTLP: gateway.URL, Token: secret})
	server := httptest.NewServer(p.routes())
	t.Cleanup(server.Close)

	ask := func(path, token string) (int, string) {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL+path, nil)
		require.NoError(t, err)
		r.Header.Set("Authorization", "Bearer "+token)
		answer, err := http.DefaultClient.Do(r)
		require.NoError(t, err)
		defer func() { _ = answer.Body.Close() }()
		body, err := io.ReadAll(answer.Body)
		require.NoError(t, err)
		return answer.StatusCode, string(body)
	}
	status, _ := ask("/measure/edge-1", "wrong")
	require.Equal(t, http.StatusUnauthorized, status)
	status, _ = ask("/measure/192.0.2.1", "s3cret")
	require.Equal(t, http.StatusNotFound, status, "only neighbours are measured")
	status, body := ask("/measure/edge-1", "s3cret")
	require.Equal(t, http.StatusOK, status, body)
	var f figures
	require.NoError(t, json.Unmarshal([]byte(body), &f))
	for name, v := range map[string]*float64{"rtt": f.RTT, "throughput": f.Throughput, "bandwidth": f.Bandwidth} {
		require.NotNil(t, v, name)
		require.Positive(t, *v, name)
	}
	require.NotNil(t, f.Jitter)
	require.Zero(t, *f.Loss)

	r, err := http.Get(server.URL + "/metrics")
	require.NoError(t, err)
	text, err := io.ReadAll(r.Body)
	require.NoError(t, r.Body.Close())
	require.NoError(t, err)
	for _, name := range []string{"net_rtt_ms", "net_jitter_ms", "net_loss_percent", "net_throughput_kbps", "net_bandwidth_kbps"} {
		require.Contains(t, string(text), name+`{source_node="cloud-1",target_node="edge-1"} `)
	}
	require.Contains(t, string(text), "net_rtt_cloud_1:edge_1 ", "the names of LPM, made legal")

	go p.pushing(t.Context())
	require.EventuallyWithT(t, func(c *assert.CollectT) {
		said, _ := pushed.Load().(string)
		assert.Contains(c, said, `"net_rtt_ms"`)
		assert.Contains(c, said, `"edge-1"`)
	}, 20*time.Second, 20*time.Millisecond)
}

func TestTheBudgetIsKept(t *testing.T) {
	t.Parallel()
	_, at := responder(t)
	p := made(t, options{Config: configured(t, at), Budget: 400_000})
	n := p.config.Neighbours[0]
	require.NoError(t, p.load(t.Context(), n))
	require.ErrorIs(t, p.load(t.Context(), n), errBudget)
	require.NoError(t, p.echo(t.Context(), n), "small packets go on")
}

// A node that takes part in a measurement makes others wait, on whichever side it is.
func TestTwoDoNotMeasureTheSameLink(t *testing.T) {
	t.Parallel()
	other, at := responder(t)
	p := made(t, options{Config: configured(t, at)})
	other.heavy <- struct{}{}
	require.ErrorIs(t, p.both(t.Context(), p.config.Neighbours[0]), errBusy)
	done := make(chan error, 1)
	go func() { done <- p.load(t.Context(), p.config.Neighbours[0]) }()
	<-other.heavy
	require.NoError(t, <-done)
}

func TestANeighbourThatIsAway(t *testing.T) {
	t.Parallel()
	p := made(t, options{Config: configured(t, "127.0.0.1:1")})
	p.o.Wait = 50 * time.Millisecond
	f := p.measure(t.Context(), p.config.Neighbours[0], "rtt")
	require.Nil(t, f.RTT)
	require.InDelta(t, 100, *f.Loss, 0)
	require.NotEmpty(t, p.measure(t.Context(), p.config.Neighbours[0], "throughput").Error)
}

func TestFiguresOfAWindow(t *testing.T) {
	t.Parallel()
	w := window{}
	for range 3 {
		w.add([]time.Duration{8 * time.Millisecond, 12 * time.Millisecond, -1, 8 * time.Millisecond, 12 * time.Millisecond})
	}
	rtt, jitter, loss := w.figures()
	require.InDelta(t, 10, *rtt, 1e-9)
	require.InDelta(t, 2, *jitter, 1e-9)
	require.InDelta(t, 20, loss, 1e-9)
	for range longestWindow {
		w.add([]time.Duration{time.Millisecond})
	}
	_, _, loss = w.figures()
	require.Zero(t, loss, "what was long ago does not count")
}

func TestBandwidthOfATrain(t *testing.T) {
	t.Parallel()
	trains := newTrains()
	begin := time.Now()
	for i := range 101 { // a packet of 1442 bytes in 576.8 µs is 20 Mbit/s
		trains.count(7, trainSize, begin.Add(time.Duration(i)*576800*time.Nanosecond))
	}
	report := packet(kindReport, 7, 0, reportSpace)
	trains.report(report)
	kbps, err := bandwidth(report)
	require.NoError(t, err)
	require.InDelta(t, 20_000, kbps, 1)
	unknown := packet(kindReport, 8, 0, reportSpace)
	trains.report(unknown)
	_, err = bandwidth(unknown)
	require.ErrorIs(t, err, errNoReport)
	for i := range uint64(2 * mostTrains) {
		trains.count(100+i, trainSize, begin)
	}
	require.LessOrEqual(t, len(trains.all), mostTrains, "strangers cannot fill the memory")
}

// Whatever comes by UDP, the answer is never longer, and there is none to what is no packet.
func FuzzReflect(f *testing.F) {
	f.Add(packet(kindEcho, 1, 1, 64))
	f.Add(packet(kindReport, 1, 1, reportSpace))
	f.Add([]byte("LPB1\x03"))
	f.Fuzz(func(t *testing.T, text []byte) {
		if len(text) > 2048 {
			return
		}
		p := &probe{trains: newTrains()}
		c := &once{packet: text}
		p.reflect(c)
		if len(c.answer) > len(text) {
			t.Fatalf("%d bytes for %d", len(c.answer), len(text))
		}
	})
}

// once is a connection with one packet.
type once struct {
	net.PacketConn
	packet, answer []byte
	read           bool
}

func (o *once) ReadFrom(b []byte) (int, net.Addr, error) {
	if o.read {
		return 0, nil, net.ErrClosed
	}
	o.read = true
	return copy(b, o.packet), nil, nil
}

func (o *once) WriteTo(b []byte, _ net.Addr) (int, error) {
	o.answer = append(o.answer, b...)
	return len(b), nil
}

func TestConfigurationIsChecked(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`{}`: "no name", `{"Nodename": 5}`: "cannot unmarshal", `{"Nodename": "a", "MetricsNeighbourNodes": [{"name": "b"}]}`: "needs a name, an ip",
	} {
		file := filepath.Join(t.TempDir(), "lpm.json")
		require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
		err := run(t.Context(), []string{"measure", "--config", file}, func(string) string { return "" }, io.Discard, io.Discard)
		require.ErrorContains(t, err, want)
	}
	require.ErrorContains(t, run(t.Context(), []string{"dance", "--node", "a"}, func(string) string { return "" }, io.Discard, io.Discard), "neither")
	require.Equal(t, "a_b_1", legal("a-b.1"))
}
