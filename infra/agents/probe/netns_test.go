package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// wire is two network namespaces with a cable between them.
type wire struct{ a, b string }

// newWire needs the rights of root, ip and tc.
func newWire(t *testing.T) *wire {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("network namespaces are for root")
	}
	for _, tool := range []string{"ip", "tc"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skip("there is no " + tool)
		}
	}
	w := &wire{fmt.Sprintf("lpa%d", os.Getpid()), fmt.Sprintf("lpb%d", os.Getpid())}
	for _, name := range []string{w.a, w.b} {
		if out, err := exec.Command("ip", "netns", "add", name).CombinedOutput(); err != nil {
			t.Skipf("network namespaces cannot be made here: %s", out)
		}
		t.Cleanup(func() { _ = exec.Command("ip", "netns", "del", name).Run() })
	}
	must(t, "ip", "-n", w.a, "link", "add", "w0", "type", "veth", "peer", "name", "w0", "netns", w.b)
	for name, address := range map[string]string{w.a: "10.77.0.1/24", w.b: "10.77.0.2/24"} {
		must(t, "ip", "-n", name, "addr", "add", address, "dev", "w0")
		must(t, "ip", "-n", name, "link", "set", "w0", "up")
		must(t, "ip", "-n", name, "link", "set", "lo", "up")
	}
	return w
}

func must(t *testing.T, command ...string) {
	t.Helper()
	out, err := exec.Command(command[0], command[1:]...).CombinedOutput()
	require.NoError(t, err, "%s: %s", strings.Join(command, " "), out)
}

// impair sets what the cable does on the side of a.
func (w *wire) impair(t *testing.T, discipline ...string) {
	t.Helper()
	_ = exec.Command("tc", "-n", w.a, "qdisc", "del", "dev", "w0", "root").Run() // there may be none yet
	command := append([]string{"-n", w.a, "qdisc", "add", "dev", "w0", "root"}, discipline...)
	if out, err := exec.Command("tc", command...).CombinedOutput(); err != nil {
		t.Skipf("this kernel cannot do %q: %s", strings.Join(discipline, " "), bytes.TrimSpace(out))
	}
}

func (w *wire) program(namespace string, arguments ...string) *exec.Cmd {
	c := exec.Command("ip", append([]string{"netns", "exec", namespace, os.Args[0]}, arguments...)...)
	c.Env = append(os.Environ(), "PROBE_IS_RUN_BY_A_TEST=yes")
	return c
}

// TestFiguresOfARealWire: each figure is within a tenth of what was set. A machine that is busy with other things disturbs a
// measurement, so it is repeated for a while.
func TestFiguresOfARealWire(t *testing.T) {
	w := newWire(t)
	other := w.program(w.b, "serve", "--node", "b")
	require.NoError(t, other.Start())
	t.Cleanup(func() {
		_ = other.Process.Kill()
		_ = other.Wait() // it was killed
	})
	config := filepath.Join(t.TempDir(), "lpm.json")
	require.NoError(t, os.WriteFile(config, []byte(`{"Nodename": "a", "MetricsNeighbourNodes": [{"name": "b", "ip": "10.77.0.2"}]}`), 0o600))
	measure := func(arguments ...string) (f figures, err error) {
		out, err := w.program(w.a, append([]string{"measure", "--config", config}, arguments...)...).Output()
		if err == nil {
			err = json.Unmarshal(out, &f)
		}
		return f, err
	}
	for name, row := range map[string]struct {
		set       []string
		arguments []string
		want      map[string]float64
	}{
		"delay":         {[]string{"netem", "delay", "40ms"}, nil, map[string]float64{"rtt": 40}},
		"jitter":        {[]string{"netem", "delay", "60ms", "20ms"}, []string{"--echoes", "1000", "--gap", "5ms"}, map[string]float64{"rtt": 60, "jitter": 20 / math.Sqrt(3)}},
		"loss":          {[]string{"netem", "loss", "10%"}, []string{"--echoes", "4000", "--gap", "1ms"}, map[string]float64{"loss": 10}},
		"rate by netem": {[]string{"netem", "rate", "20mbit"}, nil, map[string]float64{"throughput": 20_000, "bandwidth": 20_000}},
		// A bucket lets its first bytes through at once, so a train is longer than it, and is measured by what comes after.
		"rate by a token bucket": {
			[]string{"tbf", "rate", "20mbit", "burst", "3000", "latency", "400ms"},
			[]string{"--train", "300"},
			map[string]float64{"throughput": 20_000, "bandwidth": 20_000},
		},
	} {
		t.Run(name, func(t *testing.T) {
			w.impair(t, row.set...)
			require.EventuallyWithT(t, func(c *assert.CollectT) {
				f, err := measure(row.arguments...)
				if !assert.NoError(c, err) {
					return
				}
				got := map[string]*float64{"rtt": f.RTT, "jitter": f.Jitter, "loss": f.Loss, "throughput": f.Throughput, "bandwidth": f.Bandwidth}
				for figure, want := range row.want {
					if assert.NotNil(c, got[figure], "%s: %s", figure, f.Error) {
						assert.InEpsilon(c, want, *got[figure], 0.1, figure)
						t.Logf("%s: %.2f of %.2f", figure, *got[figure], want)
					}
				}
			}, 2*time.Minute, 100*time.Millisecond)
		})
	}
}
