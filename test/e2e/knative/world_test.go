// Package knative_test runs Littoral on a real Knative: everything asleep at first, pods, Brokers and Postgres ended
// in the middle of work, forged and undeliverable events, an upgrade under traffic, and everything asleep again at
// the end.
//
// "make e2e-knative" runs it against the cluster of KUBECONFIG, where "make deploy" has put Littoral with an overlay
// that has an issuer of its own (infra/issuer); otherwise it is skipped. It removes what it makes and can be
// repeated.
package knative_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/oauth2"
	"golang.org/x/oauth2/clientcredentials"

	"github.com/littoral-project/littoral/shared/auth"
)

const (
	namespace = "littoral"
	// patience covers what a scale from zero, a retry with backoff and a busy machine may take together.
	patience = 5 * time.Minute
	pause    = 500 * time.Millisecond
)

// world is the cluster with Littoral on it, as kubectl and the base URL show it.
type world struct {
	t       testing.TB
	base    string
	address map[string]string // host -> IP:port, for names that only the cluster knows

	mu      sync.Mutex
	clients map[auth.Role]*http.Client
}

// newWorld skips the test where there is no cluster to run it on.
func newWorld(t testing.TB) *world {
	t.Helper()
	if os.Getenv("LITTORAL_E2E_KNATIVE") == "" {
		t.Skip("needs a cluster with Littoral on it: make e2e-knative KUBECONFIG=...")
	}
	w := &world{t: t, address: map[string]string{}, clients: map[auth.Role]*http.Client{}}
	w.base = w.kubectl("get", "configmap", "base-url", "-o", "go-template={{.data.url}}")
	return w
}

// kubectl runs a command in the namespace and returns what it prints. The test ends when it fails.
func (w *world) kubectl(args ...string) string {
	w.t.Helper()
	out, err := w.tryKubectl(args...)
	require.NoError(w.t, err, "kubectl %s: %s", strings.Join(args, " "), out)
	return out
}

func (w *world) tryKubectl(args ...string) (string, error) {
	out, err := exec.Command("kubectl", append([]string{"-n", namespace}, args...)...).CombinedOutput()
	return strings.TrimSpace(string(out)), err
}

// secret reads a key of a Secret.
func (w *world) secret(name, key string) string {
	w.t.Helper()
	text, err := base64.StdEncoding.DecodeString(w.kubectl("get", "secret", name, "-o", "jsonpath={.data."+key+"}"))
	require.NoError(w.t, err)
	return string(text)
}

// setting reads a key of the functions' settings.
func (w *world) setting(key string) string {
	w.t.Helper()
	return w.kubectl("get", "configmap", "littoral", "-o", "jsonpath={.data."+key+"}")
}

// inside returns a client that reaches Services of the cluster by their names, as
// http://name.namespace.svc.cluster.local, where this machine has a route to the cluster's Services.
func (w *world) inside() *http.Client {
	return &http.Client{Timeout: time.Minute, Transport: &http.Transport{
		DisableKeepAlives: true, // pods come and go
		DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
			at, err := w.resolve(addr)
			if err != nil {
				return nil, err
			}
			return (&net.Dialer{}).DialContext(ctx, network, at)
		},
	}}
}

// resolve turns name.namespace.svc.cluster.local into a ClusterIP, and a name below localhost into the machine
// itself.
func (w *world) resolve(addr string) (string, error) {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return "", err
	}
	if strings.HasSuffix(host, ".localhost") {
		return net.JoinHostPort("127.0.0.1", port), nil
	}
	for range 3 { // a function's name leads to that of Knative's gateway
		parts := strings.Split(host, ".")
		if len(parts) < 3 || parts[2] != "svc" {
			break
		}
		w.mu.Lock()
		ip, known := w.address[host]
		w.mu.Unlock()
		if known {
			return net.JoinHostPort(ip, port), nil
		}
		out, err := w.tryKubectl("-n", parts[1], "get", "service", parts[0], "-o", "jsonpath={.spec.externalName} {.spec.clusterIP}")
		if err != nil {
			return "", fmt.Errorf("service %s: %s", host, out)
		}
		name, ip, _ := strings.Cut(out, " ")
		if name == "" {
			w.mu.Lock()
			w.address[host] = ip
			w.mu.Unlock()
			return net.JoinHostPort(ip, port), nil
		}
		host = name
	}
	return net.JoinHostPort(host, port), nil
}

// client returns a client that sends tokens of the role, got and renewed by client credentials.
func (w *world) client(role auth.Role) *http.Client {
	w.t.Helper()
	w.mu.Lock()
	c := w.clients[role]
	w.mu.Unlock()
	if c != nil {
		return c
	}
	plain := w.inside()
	config := clientcredentials.Config{
		ClientID: string(role), ClientSecret: w.secret("issuer", string(role)), TokenURL: w.base + "/oidc/token",
	}
	c = config.Client(context.WithValue(context.Background(), oauth2.HTTPClient, plain))
	c.Timeout = time.Minute
	w.mu.Lock()
	w.clients[role] = c
	w.mu.Unlock()
	return c
}

// answer is what came back.
type answer struct {
	status int
	header http.Header
	body   []byte
}

// try sends a request to the base URL. Headers are names and values in turn.
func (w *world) try(role auth.Role, method, path string, body string, headers ...string) (answer, error) {
	w.t.Helper()
	r, err := http.NewRequest(method, w.base+path, strings.NewReader(body)) //nolint:noctx // the client has a timeout
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

// ask sends a request and decodes the answer where it is 2xx and into is not nil. As a good client does, it repeats
// what is answered 503.
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

// post sends an event to a Service inside the cluster and returns the status.
func (w *world) post(address string, event any) int {
	w.t.Helper()
	body, err := json.Marshal(event)
	require.NoError(w.t, err)
	r, err := http.NewRequestWithContext(w.t.Context(), http.MethodPost, address, bytes.NewReader(body))
	require.NoError(w.t, err)
	r.Header.Set("Content-Type", "application/cloudevents+json")
	resp, err := w.inside().Do(r)
	require.NoError(w.t, err)
	_, _ = io.Copy(io.Discard, resp.Body)
	require.NoError(w.t, resp.Body.Close())
	return resp.StatusCode
}

// publish sends an event to the Broker, as any pod of the cluster can.
func (w *world) publish(event any) {
	w.t.Helper()
	require.Equal(w.t, http.StatusAccepted, w.post(w.setting("K_SINK"), event))
}

// tick makes a scheduled function run now, as its PingSource would later. It returns once the work is done.
func (w *world) tick(function string) {
	w.t.Helper()
	address := "http://" + function + "." + namespace + ".svc.cluster.local/"
	w.eventually(function+" takes a tick", func() bool {
		return w.post(address, map[string]any{
			"specversion": "1.0", "type": "dev.knative.sources.ping", "source": "/e2e", "id": fmt.Sprint(time.Now().UnixNano()),
		})/100 == 2
	})
}

// functionPods lists the pods of functions that run or start; those that are ending do not count.
func (w *world) functionPods() []string {
	w.t.Helper()
	out := w.kubectl("get", "pods", "-l", "serving.knative.dev/service", "-o",
		`go-template={{range .items}}{{if not .metadata.deletionTimestamp}}{{.metadata.name}}{{"\n"}}{{end}}{{end}}`)
	return strings.Fields(out)
}

// asleep waits until no function has a pod.
func (w *world) asleep() {
	w.t.Helper()
	require.Eventually(w.t, func() bool { return len(w.functionPods()) == 0 }, patience, time.Second, "everything sleeps")
}
