package main

import (
	"fmt"
	"io/fs"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
)

// TestMeasured prints what the gateway takes, and holds it to order and number only: go test -v -run TestMeasured.
func TestMeasured(t *testing.T) {
	t.Parallel()
	w := newPipeline(t)
	token := w.token(t)
	const series, seconds = 1000, 60
	start := time.Now().Add(-seconds * time.Second)
	random := rand.New(rand.NewPCG(1, 2)) // no value is like the one before: real ones compress better
	second := func(i int) pmetric.Metrics {
		all := pmetric.NewMetrics()
		to := all.ResourceMetrics().AppendEmpty().ScopeMetrics().AppendEmpty().Metrics()
		for m := range 50 {
			one := to.AppendEmpty()
			one.SetName(fmt.Sprintf("site_metric_%d_bytes", m))
			points := one.SetEmptyGauge().DataPoints()
			for s := range series / 50 {
				p := points.AppendEmpty()
				p.SetDoubleValue(100 * random.NormFloat64())
				p.SetTimestamp(pcommon.NewTimestampFromTime(start.Add(time.Duration(i) * time.Second)))
				for _, l := range [][2]string{
					{"icos_host_id", "57e17cac94714bf6976f1e071d64d586"},
					{"icos_host_name", "93111014:edge-node-1"},
					{"icos_agent_id", "agent-ocm-1"},
					{"icos_cluster_id", "93111014-6276-4c1f-83eb-a5f7aa8386c9"},
					{"device", fmt.Sprint("eth", m, ".", s)},
				} {
					p.Attributes().PutStr(l[0], l[1])
				}
			}
		}
		return all
	}
	pid := w.command.Process.Pid
	before := processor(t, pid)
	for i := range seconds {
		require.Equal(t, http.StatusOK, w.send(t, token, second(i)))
	}
	stored := func() int {
		return len(w.query(t, `count_over_time({__name__=~"site_metric_.*"}[10m]) == `+strconv.Itoa(seconds)))
	}
	w.eventually(t, "all are there", func() bool { return stored() == series })
	spent := processor(t, pid) - before
	w.uplink.mu.Lock()
	sent := w.uplink.bytes
	w.uplink.mu.Unlock()

	w.uplink.set(true)
	for i := range seconds {
		require.Equal(t, http.StatusOK, w.send(t, token, second(seconds+i)))
	}
	waiting := size(t, w.site.Queue)
	w.uplink.set(false)
	t.Logf("%d values: %.0f a second of one processor, %.0f bytes each on the uplink (compressed), %.0f bytes each on disk: %.0f MB an hour of %d a second; %.0f MiB in memory",
		series*seconds, series*seconds/spent, float64(sent)/series/seconds, float64(waiting)/series/seconds,
		float64(waiting)/seconds*3600/1e6, series, memory(t, pid))
}

// processor is how many seconds of a processor a process has taken.
func processor(t *testing.T, pid int) float64 {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	require.NoError(t, err)
	_, rest, _ := strings.Cut(string(text), ") ")
	fields := strings.Fields(rest)
	total := 0.0
	for _, f := range fields[11:13] {
		v, err := strconv.ParseFloat(f, 64)
		require.NoError(t, err)
		total += v / 100
	}
	return total
}

// memory is how many MiB a process has.
func memory(t *testing.T, pid int) float64 {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid))
	require.NoError(t, err)
	pages, err := strconv.ParseFloat(strings.Fields(string(text))[1], 64)
	require.NoError(t, err)
	return pages * float64(os.Getpagesize()) / (1 << 20)
}

// size is how many bytes the files of a folder have.
func size(t *testing.T, dir string) (total int64) {
	t.Helper()
	require.NoError(t, filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if info, err := d.Info(); err == nil && !d.IsDir() {
			total += info.Size()
		}
		return err
	}))
	return total
}
