// Command leaf tells what there is on a node: the host, its devices, its container engine and what runs there, under the
// names and labels of ICOS' leaf exporter (shared/topology/METRICS.md). It serves them at :2545/metrics and pushes them by
// OTLP, reads files below /proc and /sys, asks the engine's socket or the API server, and keeps nothing.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"time"

	"github.com/littoral-project/littoral/infra/agents/agent"
)

// options are those of the command line; each may be set by LEAF_NAME in the environment as well.
type options struct {
	Bind, Root, DevRoot              string
	Docker                           string
	Kubernetes, Node                 string
	KubeURL, KubeToken, KubeCA       string
	KubeletURL                       string
	KubeletSelfSigned                bool
	Agent, AgentName, Orchestrator   string
	Controller, Cluster, ClusterName string
	Location, LabelsFile, Labels     string
	NodeExporter                     string
	WattsIdle, WattsMax              float64
	SCA                              bool
	WazuhURL, WazuhUser, WazuhAgent  string
	WazuhPassword, WazuhCA           string
	WazuhIndexer, WazuhIndexerUser   string
	WazuhIndexerPassword             string
	VNet, Tetragon                   string
	Closed                           bool
	OTLP, OTLPToken                  string
	Every, DevicesEvery              time.Duration
}

const serviceAccount = "/var/run/secrets/kubernetes.io/serviceaccount/"

func (o *options) flags(getenv func(string) string) *flag.FlagSet {
	f := flag.NewFlagSet("leaf", flag.ContinueOnError)
	f.StringVar(&o.Bind, "bind", ":2545", "where to serve /metrics")
	f.StringVar(&o.Root, "path-rootfs", "/", "where the host's root is mounted")
	f.StringVar(&o.DevRoot, "path-dev", "", "where the host's /dev is mounted (default: dev below the root)")
	f.StringVar(&o.Docker, "docker", "auto", "socket of Docker or Podman; auto looks for it, off does not")
	f.StringVar(&o.Kubernetes, "kubernetes", "auto", "auto asks the API server where there is a service account; on, off")
	f.StringVar(&o.Node, "node", getenv("NODE_NAME"), "name of this node in Kubernetes")
	f.StringVar(&o.KubeURL, "kube-url", "https://kubernetes.default.svc", "the API server")
	f.StringVar(&o.KubeToken, "kube-token-file", serviceAccount+"token", "token for it")
	f.StringVar(&o.KubeCA, "kube-ca-file", serviceAccount+"ca.crt", "certificate authority of it")
	f.StringVar(&o.KubeletURL, "kubelet-url", "", "take from this node's kubelet what containers use, such as https://127.0.0.1:10250")
	f.BoolVar(&o.KubeletSelfSigned, "kubelet-self-signed", false, "it has made its certificate itself, as kubeadm leaves it, so it is not checked")
	f.StringVar(&o.Agent, "agent-id", "", "icos_agent_id: the agent that serves this node")
	f.StringVar(&o.AgentName, "agent-name", "", "its name (default: its id)")
	f.StringVar(&o.Orchestrator, "orchestrator", "", "ocm, nuvla, kubernetes or compose: says that the agent orchestrates this cluster")
	f.StringVar(&o.Controller, "controller-id", "", "icos_controller_id: the controller that owns the agent")
	f.StringVar(&o.Cluster, "cluster-id", "", "icos_cluster_id (default: the uid of kube-system, else the machine's id)")
	f.StringVar(&o.ClusterName, "cluster-name", "", "name of the managed cluster of Open Cluster Management")
	f.StringVar(&o.Location, "location", "", "latitude:longitude, or a file that holds it")
	f.StringVar(&o.LabelsFile, "labels-file", "", "file with a label=value on each line")
	f.StringVar(&o.Labels, "labels", "", "label=value,label=value")
	f.StringVar(&o.NodeExporter, "node-exporter", "auto", "metrics under node_exporter's names: on, off, auto = unless one answers at 127.0.0.1:9100")
	f.Float64Var(&o.WattsIdle, "watts-idle", 0, "power of the host at rest; where there is no RAPL, energy is estimated from both")
	f.Float64Var(&o.WattsMax, "watts-max", 0, "power of the host with all cpus busy")
	f.BoolVar(&o.SCA, "sca", true, "assess the security of the host's configuration")
	f.StringVar(&o.WazuhURL, "wazuh-url", "", "take the score from this Wazuh server instead, such as https://wazuh:55000")
	f.StringVar(&o.WazuhUser, "wazuh-user", "", "user of its API")
	f.StringVar(&o.WazuhPassword, "wazuh-password-file", "", "the password")
	f.StringVar(&o.WazuhCA, "wazuh-ca-file", "", "certificate authority of it and of its indexer (default: those of the system)")
	f.StringVar(&o.WazuhAgent, "wazuh-agent", "", "name of this host's agent there (default: the host's name)")
	f.StringVar(&o.WazuhIndexer, "wazuh-indexer-url", "", "and vulnerabilities from the server's indexer, such as https://wazuh:9200")
	f.StringVar(&o.WazuhIndexerUser, "wazuh-indexer-user", "", "user of the indexer, who may read wazuh-states-vulnerabilities-*")
	f.StringVar(&o.WazuhIndexerPassword, "wazuh-indexer-password-file", "", "the password")
	f.StringVar(&o.VNet, "vnet-certificate", "", "certificate of this cluster as a peer of ClusterLink")
	f.StringVar(&o.Tetragon, "tetragon", "", "file to which Tetragon exports events as JSON, which are counted")
	f.BoolVar(&o.Closed, "closed", false, "tell that this host takes no new work, such as one without an agent")
	f.StringVar(&o.OTLP, "otlp", "", "push to this OTLP address, such as http://gateway:4318/v1/metrics")
	f.StringVar(&o.OTLPToken, "otlp-token-file", "", "bearer token for it")
	f.DurationVar(&o.Every, "interval", 15*time.Second, "between pushes")
	f.DurationVar(&o.DevicesEvery, "devices-interval", 5*time.Second, "between looks for devices that came or went, which are pushed at once")
	agent.FromEnv(f, "LEAF", getenv)
	return f
}

func main() {
	agent.Main("leaf", func(ctx context.Context) error { return run(ctx, os.Args[1:], os.Getenv, os.Stdout, os.Stderr) })
}

func run(ctx context.Context, args []string, getenv func(string) string, out, errOut io.Writer) error {
	command, args := agent.Command(args)
	var o options
	f := o.flags(getenv)
	f.SetOutput(errOut)
	if err := f.Parse(args); err != nil {
		return err
	}
	log := slog.New(slog.NewJSONHandler(errOut, nil))
	leaf, err := newLeaf(o, log)
	if err != nil {
		return err
	}
	switch command {
	case "print-host-id":
		_, err := fmt.Fprintln(out, leaf.hostID())
		return err
	case "print-metrics":
		_, err := out.Write(leaf.text(ctx))
		return err
	case "serve":
		return leaf.serve(ctx)
	}
	return fmt.Errorf("%q is none of serve, print-metrics, print-host-id", command)
}

// serve answers scrapes and pushes until ctx ends.
func (l *leaf) serve(ctx context.Context) error {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /metrics", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
		_, _ = w.Write(l.text(r.Context()))
	})
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ok\n") })
	server := &http.Server{Addr: l.o.Bind, Handler: mux, ReadHeaderTimeout: 5 * time.Second, WriteTimeout: 30 * time.Second}
	failed := make(chan error, 1)
	go func() { failed <- server.ListenAndServe() }()
	if l.o.OTLP != "" {
		go l.pushing(ctx)
	}
	select {
	case err := <-failed:
		return err
	case <-ctx.Done():
	}
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	return server.Shutdown(last)
}
