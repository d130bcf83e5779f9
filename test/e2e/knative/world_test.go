// Package knative_test runs Littoral on a real Knative: it begins with everything asleep, kills pods, Brokers and
// Postgres during work, sends forged and undeliverable events, upgrades under traffic, and ends with everything asleep
// again.
//
// "make e2e-knative" runs it against the cluster of KUBECONFIG, where "make deploy" has installed Littoral with an
// overlay that has its own issuer (infra/issuer); otherwise it is skipped. It removes what it creates and can be
// repeated.
package knative_test

import (
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/littoral-project/littoral/shared/auth"
	"github.com/littoral-project/littoral/test/deployed"
)

const (
	// patience covers a scale from zero, the seven minutes for which a Trigger tries again, and a busy machine.
	patience = 8 * time.Minute
	pause    = 500 * time.Millisecond
)

// world is the cluster with Littoral, accessed with kubectl and the base URL.
type world struct {
	*deployed.Littoral

	t testing.TB
}

// newWorld skips the test if there is no cluster.
func newWorld(t testing.TB) *world {
	t.Helper()
	if os.Getenv("LITTORAL_E2E_KNATIVE") == "" {
		t.Skip("needs a cluster with Littoral on it: make e2e-knative KUBECONFIG=...")
	}
	l, err := deployed.Open()
	require.NoError(t, err)
	return &world{Littoral: l, t: t}
}

// kubectl runs a command in the namespace and returns its output. An error ends the test.
func (w *world) kubectl(args ...string) string {
	w.t.Helper()
	out, err := w.Kubectl(args...)
	require.NoError(w.t, err)
	return out
}

// kubectlIn returns a kubectl for another namespace, which gives it a document to read.
func (w *world) kubectlIn(namespace string) func(document string, args ...string) string {
	return func(document string, args ...string) string {
		w.t.Helper()
		cmd := exec.Command("kubectl", append([]string{"-n", namespace}, args...)...)
		cmd.Stdin = strings.NewReader(document)
		out, err := cmd.CombinedOutput()
		require.NoError(w.t, err, "%v: %s", args, out)
		return strings.TrimSpace(string(out))
	}
}

// setting reads a key of the functions' settings.
func (w *world) setting(key string) string {
	w.t.Helper()
	text, err := w.Setting(key)
	require.NoError(w.t, err)
	return text
}

// client returns a client that sends tokens of the role.
func (w *world) client(role auth.Role) *http.Client {
	w.t.Helper()
	c, err := w.Client(role)
	require.NoError(w.t, err)
	return c
}

// answer is the response to a request.
type answer struct {
	status int
	header http.Header
	body   []byte
}

// try sends a request to the base URL. header alternates names and values.
func (w *world) try(role auth.Role, method, path string, body string, headers ...string) (answer, error) {
	w.t.Helper()
	r, err := http.NewRequest(method, w.Base+path, strings.NewReader(body)) // the client has a timeout
	if err != nil {
		return answer{}, err
	}
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	resp, err := w.client(role).Do(r)
	if err != nil {
		return answer{}, err
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	return answer{resp.StatusCode, resp.Header, text}, err
}

// ask sends a request, and decodes the answer if it is 2xx and into is not nil. Like a good client, it retries after a
// 503.
func (w *world) ask(role auth.Role, method, path, body string, into any, headers ...string) int {
	w.t.Helper()
	var a answer
	require.Eventually(w.t, func() (done bool) {
		var err error
		a, err = w.try(role, method, path, body, headers...)
		return err == nil && a.status != http.StatusServiceUnavailable
	}, patience, pause, "%s %s is answered", method, path)
	if into != nil && a.status/100 == 2 {
		require.NoError(w.t, json.Unmarshal(a.body, into), "%s", a.body)
	}
	return a.status
}

// eventually waits for a condition.
func (w *world) eventually(what string, condition func() bool) {
	w.t.Helper()
	require.Eventually(w.t, condition, patience, pause, what)
}

// publish sends an event to the Broker, as any pod of the cluster can.
func (w *world) publish(event any) {
	w.t.Helper()
	status, err := w.Post(w.t.Context(), w.setting("K_SINK"), event)
	require.NoError(w.t, err)
	require.Equal(w.t, http.StatusAccepted, status)
}

// tick makes a scheduled function run now instead of waiting for its PingSource. It returns when the work is done.
func (w *world) tick(function string) {
	w.t.Helper()
	w.eventually(function+" takes a tick", func() bool { return w.nudge(function) })
}

// nudge is one attempt at a tick, for conditions that are polled anyway.
func (w *world) nudge(function string) bool {
	status, err := w.Tick(w.t.Context(), function)
	return err == nil && status/100 == 2
}

// functionPods lists the pods of functions that run or start; terminating ones do not count.
func (w *world) functionPods() []string {
	w.t.Helper()
	out := w.kubectl("get", "pods", "-l", "serving.knative.dev/service", "-o",
		`go-template={{range .items}}{{if not .metadata.deletionTimestamp}}{{.metadata.name}}{{"\n"}}{{end}}{{end}}`)
	return strings.Fields(out)
}

// watch waits until no function has a pod, and returns the share of the time after that in which one had.
func (w *world) watch(during time.Duration) float64 {
	w.t.Helper()
	w.asleep()
	const every = 5 * time.Second
	awake, samples := 0, int(during/every)
	seen := map[string]bool{}
	for range samples {
		time.Sleep(every) // the test measures real time
		pods := w.functionPods()
		if len(pods) > 0 {
			awake++
		}
		for _, pod := range pods {
			function, _, _ := strings.Cut(pod, "-deployment-") // with its revision
			seen[function] = true
		}
	}
	w.t.Logf("in %v functions had pods in %d of %d samples: %v", during, awake, samples, slices.Sorted(maps.Keys(seen)))
	return float64(awake) / float64(samples)
}

// asleep waits until no function has a pod.
func (w *world) asleep() {
	w.t.Helper()
	require.Eventually(w.t, func() bool { return len(w.functionPods()) == 0 }, patience, time.Second, "everything sleeps")
}
