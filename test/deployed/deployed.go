// Package deployed is a client for a Littoral on the cluster of KUBECONFIG, from a machine that has a route to the
// cluster's Services: its API with tokens of the trial issuer (infra/issuer), its functions inside the cluster, its
// settings. Names below localhost lead to this machine.
package deployed

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
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/golang/snappy"
	"github.com/prometheus/prometheus/prompb"
	"golang.org/x/oauth2"
	"golang.org/x/oauth2/clientcredentials"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"

	"github.com/littoral-project/littoral/infra/runner/prometheus"
	"github.com/littoral-project/littoral/shared/auth"
	"github.com/littoral-project/littoral/shared/loopback"
	"github.com/littoral-project/littoral/test/images"
)

// Namespace is where Littoral is.
const Namespace = "littoral"

// Littoral is one that "make deploy" has put on a cluster. Safe for concurrent use.
type Littoral struct {
	Base string // URL of the API

	mu      sync.Mutex
	address map[string]string // host -> IP, for names that only the cluster knows
	sender  *string           // the token that events are sent with, "" where Knative asks for none
	clients map[auth.Role]*http.Client
}

// Open finds the Littoral of the cluster that KUBECONFIG names.
func Open() (*Littoral, error) {
	l := &Littoral{address: map[string]string{}, clients: map[auth.Role]*http.Client{}}
	var err error
	l.Base, err = l.Kubectl("get", "configmap", "base-url", "-o", "go-template={{.data.url}}")
	return l, err
}

// Kubectl runs a command in the namespace and returns what it prints, without space around it. An error says what was
// run and printed.
func (l *Littoral) Kubectl(args ...string) (string, error) {
	out, err := exec.Command("kubectl", append([]string{"-n", Namespace}, args...)...).CombinedOutput()
	text := strings.TrimSpace(string(out))
	if err != nil {
		err = fmt.Errorf("kubectl %s: %w: %s", strings.Join(args, " "), err, text)
	}
	return text, err
}

// Ko returns the program that "make deploy" builds images with, which "make ko" has built.
func Ko(ctx context.Context) (string, error) {
	root, err := images.Root(ctx)
	return filepath.Join(root, "bin", "tools", "ko"), err
}

// Image builds and pushes a package of the project, on the base that "make deploy" has pushed, and returns its
// reference.
func Image(ctx context.Context, pkg string) (string, error) {
	ko, err := Ko(ctx)
	if err != nil {
		return "", err
	}
	build := exec.CommandContext(ctx, ko, "build", "--base-import-paths", images.Module+"/"+pkg)
	if os.Getenv("KO_DEFAULTBASEIMAGE") == "" {
		build.Env = append(os.Environ(), "KO_DEFAULTBASEIMAGE="+os.Getenv("KO_DOCKER_REPO")+"/base")
	}
	var said bytes.Buffer
	build.Stderr = &said
	reference, err := build.Output()
	if err != nil {
		return "", fmt.Errorf("ko build %s: %w\n%s", pkg, err, said.Bytes())
	}
	return strings.TrimSpace(string(reference)), nil
}

// Secret reads a key of a Secret.
func (l *Littoral) Secret(name, key string) (string, error) {
	out, err := l.Kubectl("get", "secret", name, "-o", "jsonpath={.data."+key+"}")
	if err != nil {
		return "", err
	}
	text, err := base64.StdEncoding.DecodeString(out)
	return string(text), err
}

// Setting reads a key of the functions' settings, "" where it is not set.
func (l *Littoral) Setting(key string) (string, error) {
	return l.Kubectl("get", "configmap", "littoral", "-o", "jsonpath={.data."+key+"}")
}

// Set changes a setting of the functions, which reaches each with its next pod, and the gateway's with a new one; ""
// removes it.
func (l *Littoral) Set(key, value string) error {
	patch := map[string]any{"data": map[string]any{key: value}}
	if value == "" {
		patch = map[string]any{"data": map[string]any{key: nil}}
	}
	text, err := json.Marshal(patch)
	if err != nil {
		return err
	}
	if _, err = l.Kubectl("patch", "configmap", "littoral", "--type=merge", "-p", string(text)); err != nil {
		return err
	}
	gateway, err := l.Kubectl("get", "deployment", "gateway", "--ignore-not-found", "-o", "name")
	if err != nil || strings.TrimSpace(gateway) == "" {
		return err
	}
	if _, err = l.Kubectl("rollout", "restart", "deployment/gateway"); err != nil {
		return err
	}
	_, err = l.Kubectl("rollout", "status", "deployment/gateway", "--timeout=120s")
	return err
}

// longest is above what a call takes before the way to its function answers in its place: on a busy node the function may
// need a minute to start, and then has its own time.
const longest = 2 * time.Minute

// Inside returns a client that reaches Services of the cluster by their names, as
// http://name.namespace.svc.cluster.local.
func (l *Littoral) Inside() *http.Client {
	return &http.Client{Timeout: longest, Transport: &http.Transport{
		DisableKeepAlives: true, // pods come and go
		DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
			at, err := l.Resolve(addr)
			if err != nil {
				return nil, err
			}
			return (&net.Dialer{}).DialContext(ctx, network, at)
		},
	}}
}

// Resolve turns name.namespace.svc.cluster.local:port into a ClusterIP, or a pod's where the Service has none, and the
// port, and a name below localhost into the machine itself.
func (l *Littoral) Resolve(addr string) (string, error) {
	host, port, err := net.SplitHostPort(loopback.Address(addr))
	if err != nil {
		return "", err
	}
	for range 3 { // a function's name leads to that of Knative's gateway
		parts := strings.Split(host, ".")
		if len(parts) < 3 || parts[2] != "svc" {
			break
		}
		l.mu.Lock()
		ip, known := l.address[host]
		l.mu.Unlock()
		if known {
			return net.JoinHostPort(ip, port), nil
		}
		out, err := l.Kubectl("-n", parts[1], "get", "service", parts[0], "-o",
			"jsonpath={.spec.externalName},{.spec.clusterIP}")
		if err != nil {
			return "", err
		}
		name, ip, _ := strings.Cut(out, ",")
		if ip == corev1.ClusterIPNone {
			ip, err = l.Kubectl("-n", parts[1], "get", "endpointslices", "-l", discoveryv1.LabelServiceName+"="+parts[0], "-o",
				"jsonpath={.items[0].endpoints[0].addresses[0]}")
			return net.JoinHostPort(ip, port), err
		}
		if name == "" {
			l.mu.Lock()
			l.address[host] = ip
			l.mu.Unlock()
			return net.JoinHostPort(ip, port), nil
		}
		host = name
	}
	return net.JoinHostPort(host, port), nil
}

// Client returns a client that sends tokens of the role, got and renewed by client credentials.
func (l *Littoral) Client(role auth.Role) (*http.Client, error) {
	l.mu.Lock()
	c := l.clients[role]
	l.mu.Unlock()
	if c != nil {
		return c, nil
	}
	secret, err := l.Secret("issuer", string(role))
	if err != nil {
		return nil, err
	}
	config := clientcredentials.Config{ClientID: string(role), ClientSecret: secret, TokenURL: l.Base + "/oidc/token"}
	c = config.Client(context.WithValue(context.Background(), oauth2.HTTPClient, l.Inside()))
	c.Timeout = longest
	l.mu.Lock()
	l.clients[role] = c
	l.mu.Unlock()
	return c, nil
}

// Token returns a token of the role, for what is not called over HTTP alone.
func (l *Littoral) Token(role auth.Role) (string, error) {
	c, err := l.Client(role)
	if err != nil {
		return "", err
	}
	t, err := c.Transport.(*oauth2.Transport).Source.Token()
	if err != nil {
		return "", err
	}
	return t.AccessToken, nil
}

// Sender returns the token that the Broker and functions take events with, as a ServiceAccount of the namespace has it; ""
// where Knative does not ask who sends.
func (l *Littoral) Sender() (string, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.sender != nil {
		return *l.sender, nil
	}
	dir, err := l.Setting("KNATIVE_TOKENS")
	if err != nil {
		return "", err
	}
	var token string
	if dir != "" {
		brokers, err := l.Kubectl("get", "broker", "default", "-o", "jsonpath={.status.address.audience}")
		if err != nil {
			return "", err
		}
		ours, err := l.Kubectl("get", "trigger", "-o", "jsonpath={.items[0].spec.subscriber.audience}")
		if err != nil {
			return "", err
		}
		token, err = l.Kubectl("create", "token", "jobmanager", "--duration=4h", "--audience="+ours, "--audience="+brokers)
		if err != nil {
			return "", err
		}
	}
	l.sender = &token
	return token, nil
}

// Post sends an event to a Service inside the cluster and returns the status.
func (l *Littoral) Post(ctx context.Context, address string, event any) (int, error) {
	token, err := l.Sender()
	if err != nil {
		return 0, err
	}
	return l.PostAs(ctx, token, address, event)
}

// PostAs sends an event with a token, "" for none.
func (l *Littoral) PostAs(ctx context.Context, token, address string, event any) (int, error) {
	body, err := json.Marshal(event)
	if err != nil {
		return 0, err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, address, bytes.NewReader(body))
	if err != nil {
		return 0, err
	}
	r.Header.Set("Content-Type", "application/cloudevents+json")
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	resp, err := l.Inside().Do(r)
	if err != nil {
		return 0, err
	}
	_, _ = io.Copy(io.Discard, resp.Body)
	return resp.StatusCode, resp.Body.Close()
}

// Tick makes a scheduled function run now, as its PingSource would later, and returns the status once it has run.
func (l *Littoral) Tick(ctx context.Context, function string) (int, error) {
	return l.Post(ctx, "http://"+function+"."+Namespace+".svc.cluster.local/", map[string]any{
		"specversion": "1.0", "type": "dev.knative.sources.ping", "source": "/e2e", "id": fmt.Sprint(time.Now().UnixNano()),
	})
}

// written is how many samples a request to Prometheus carries; it takes no more than 32 MiB at once.
const written = 20_000

// writtenWithin bounds a call that hands samples over: whoever writes telemetry again and again must not be silent for as long
// as a Prometheus on a busy node keeps one call.
const writtenWithin = 30 * time.Second

// RemoteWrite hands samples to the Prometheus that functions ask.
func (l *Littoral) RemoteWrite(ctx context.Context, samples []prometheus.Sample) error {
	for some := range slices.Chunk(samples, written) {
		if err := l.write(ctx, some); err != nil {
			return err
		}
	}
	return nil
}

func (l *Littoral) write(ctx context.Context, samples []prometheus.Sample) error {
	ctx, cancel := context.WithTimeout(ctx, writtenWithin)
	defer cancel()
	request := &prompb.WriteRequest{}
	for _, s := range samples {
		series := prompb.TimeSeries{
			Labels:  []prompb.Label{{Name: "__name__", Value: s.Name}},
			Samples: []prompb.Sample{{Value: s.Value, Timestamp: s.At.UnixMilli()}},
		}
		for name, value := range s.Labels {
			series.Labels = append(series.Labels, prompb.Label{Name: name, Value: value})
		}
		request.Timeseries = append(request.Timeseries, series)
	}
	body, err := request.Marshal()
	if err != nil {
		return err
	}
	address, err := l.Setting("PROMETHEUS_ADDRESS")
	if err != nil {
		return err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, address+"/api/v1/write",
		bytes.NewReader(snappy.Encode(nil, body)))
	if err != nil {
		return err
	}
	r.Header.Set("Content-Encoding", "snappy")
	r.Header.Set("Content-Type", "application/x-protobuf")
	r.Header.Set("X-Prometheus-Remote-Write-Version", "0.1.0")
	resp, err := l.Inside().Do(r)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode/100 != 2 {
		text, _ := io.ReadAll(resp.Body)
		return fmt.Errorf("remote write: %s: %s", resp.Status, text)
	}
	return nil
}
