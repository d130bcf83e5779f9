// Command telemetry writes the configuration of the OpenTelemetry Collector of a site: of the gateway, which takes what senders
// of the site push, says whose it is, leaves out what the controller does not need, and keeps it on disk while the uplink is
// away; and of what collects on each node. See README.md.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

func main() {
	if err := run(os.Args[1:], os.Stdout, os.Stderr); err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "telemetry:", err)
		os.Exit(1)
	}
}

// run writes the files of a site into a folder, or with none to out.
func run(args []string, out, errOut io.Writer) error {
	s := Site{}
	var dir string
	f := flag.NewFlagSet("telemetry", flag.ContinueOnError)
	f.SetOutput(errOut)
	f.StringVar(&dir, "dir", "", "folder of the files (default: standard output)")
	f.StringVar(&s.Kind, "kind", "", "cluster, docker or host")
	f.StringVar(&s.Agent, "agent-id", "", "icos_agent_id: the agent that serves the site")
	f.StringVar(&s.Controller, "controller-id", "", "icos_controller_id: the controller that owns the agent")
	f.StringVar(&s.Cluster, "cluster-id", "", "icos_cluster_id, if the whole site is one cluster")
	f.StringVar(&s.Issuer, "issuer", "", "issuer of the senders' tokens (OpenID Connect); of a cluster where only its nodes send: none")
	f.StringVar(&s.IssuerKeys, "issuer-keys", "", "file with the issuer's public keys (JWKS), for a gateway that starts while the issuer cannot be reached")
	f.StringVar(&s.Audience, "audience", "telemetry", "for whom the senders' tokens must be")
	f.StringVar(&s.NodesIssuer, "nodes-issuer", "https://kubernetes.default.svc.cluster.local", "of a cluster: issuer of its service accounts' tokens: kubectl get --raw /.well-known/openid-configuration")
	f.StringVar(&s.Metrics, "metrics", "", "where metrics go: http://prometheus:9090/api/v1/otlp/v1/metrics")
	f.StringVar(&s.Logs, "logs", "", "where logs go: http://victoria-logs:9428/insert/opentelemetry/v1/logs (default: none are collected)")
	f.StringVar(&s.TokenFile, "token-file", "", "bearer token for the uplink")
	f.StringVar(&s.Queue, "queue", "/var/lib/littoral-collector", "folder of what waits for the uplink")
	f.IntVar(&s.QueueMiB, "queue-mib", 200, "the most that may wait, in MiB, of metrics and of logs each")
	f.StringVar(&s.GRPC, "grpc", "0.0.0.0:4317", "where OTLP over gRPC is taken")
	f.StringVar(&s.HTTP, "http", "0.0.0.0:4318", "where OTLP over HTTP is taken")
	f.StringVar(&s.Health, "health", "127.0.0.1:13133", "where the collector tells that it runs")
	f.StringVar(&s.Own, "own-metrics", "127.0.0.1:8888", "where the collector serves metrics of its own")
	f.StringVar(&s.Gateway, "gateway", "http://gateway.littoral-agents.svc.cluster.local:4318", "of a cluster: where its nodes send to")
	f.StringVar(&s.Tetragon, "tetragon", "", "file to which Tetragon exports events as JSON, which are kept as logs")
	f.StringVar(&s.Containers, "containers", "/var/lib/docker/containers", "folder of the engine's json-file logs")
	f.StringVar(&s.ServiceAccount, "service-account", "/var/run/secrets/kubernetes.io/serviceaccount", "of a cluster: folder of the pod's token")
	f.BoolVar(&s.KubeletSelfSigned, "kubelet-self-signed", false, "of a cluster: kubelets have made their certificates themselves, as kubeadm leaves it, so they are not checked")
	f.BoolVar(&s.Ephemeral, "ephemeral", false, "of a cluster without volumes: what waits for the uplink is lost with the gateway's pod")
	f.StringVar(&s.Image, "image", "", "of a cluster: image with the collector; writes kubernetes.yaml as well")
	f.StringVar(&s.Store, "store", "", "where a Prometheus at the site listens, which the gateway sends to as well: 127.0.0.1:9090, of a cluster 0.0.0.0:9090 (default: there is none)")
	f.StringVar(&s.Retention, "store-retention", "6h", "how long it keeps series")
	f.IntVar(&s.StoreMiB, "store-mib", 512, "the most that it keeps, in MiB")
	f.StringVar(&s.StoreImage, "store-image", "", "of a cluster: image with Prometheus as its entry point")
	if err := f.Parse(args); err != nil {
		return err
	}
	files, err := s.Files()
	if err != nil {
		return err
	}
	for _, file := range files {
		if dir == "" {
			if _, err := fmt.Fprintf(out, "# %s\n%s", file.Name, file.Text); err != nil {
				return err
			}
			continue
		}
		if err := os.MkdirAll(dir, 0o755); err != nil { // configuration holds no secrets
			return err
		}
		if err := os.WriteFile(filepath.Join(dir, file.Name), []byte(file.Text), 0o644); err != nil {
			return err
		}
	}
	return nil
}
