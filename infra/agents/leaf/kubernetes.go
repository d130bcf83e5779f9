package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"
)

// kube is the API server, asked about this node alone. nil = there is none.
type kube struct {
	client               *http.Client
	url, tokenFile, node string
}

// findKube returns the API server that the options name, if this is a pod, or "on" says so.
func findKube(o options) (*kube, error) {
	if o.Kubernetes == "off" {
		return nil, nil //nolint:nilnil // there is none
	}
	if _, err := os.Stat(o.KubeToken); err != nil {
		if o.Kubernetes == "on" {
			return nil, fmt.Errorf("kubernetes: %w", err)
		}
		return nil, nil //nolint:nilnil // there is none
	}
	if o.Node == "" {
		return nil, fmt.Errorf("kubernetes: -node or NODE_NAME says which node this is")
	}
	roots := x509.NewCertPool()
	if strings.HasPrefix(o.KubeURL, "https://") {
		pem, err := os.ReadFile(o.KubeCA)
		if err != nil {
			return nil, fmt.Errorf("kubernetes: %w", err)
		}
		if !roots.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("kubernetes: %s has no certificate", o.KubeCA)
		}
	}
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}, MaxIdleConns: 2}
	return &kube{&http.Client{Transport: transport, Timeout: 10 * time.Second}, strings.TrimRight(o.KubeURL, "/"), o.KubeToken, o.Node}, nil
}

// cluster is what the API server says.
type cluster struct {
	clusterID, version string
	nodeLabels         labels
	cordoned           bool
	capacity           map[string]string
	pods               []pod
}

type pod struct {
	Metadata struct {
		Name, Namespace, UID string
		Labels, Annotations  labels
	}
	Spec struct {
		Containers []struct{ Name string }
	}
	Status struct {
		Phase, PodIP, HostIP string
	}
}

func (q *kube) ask(ctx context.Context) (*cluster, error) {
	if q == nil {
		return nil, nil //nolint:nilnil // there is none
	}
	token, err := os.ReadFile(q.tokenFile) // it is renewed now and then
	if err != nil {
		return nil, err
	}
	get := func(path string, into any) error {
		return getJSON(ctx, q.client, q.url+path, strings.TrimSpace(string(token)), into)
	}
	var system struct {
		Metadata struct{ UID string }
	}
	var version struct{ GitVersion string }
	var node struct {
		Metadata struct{ Labels labels }
		Spec     struct{ Unschedulable bool }
		Status   struct{ Capacity map[string]string }
	}
	var pods struct{ Items []pod }
	for path, into := range map[string]any{
		"/api/v1/namespaces/kube-system": &system, "/version": &version, "/api/v1/nodes/" + url.PathEscape(q.node): &node,
		"/api/v1/pods?fieldSelector=" + url.QueryEscape("spec.nodeName="+q.node): &pods,
	} {
		if err := get(path, into); err != nil {
			return nil, err
		}
	}
	return &cluster{
		system.Metadata.UID, version.GitVersion, node.Metadata.Labels, node.Spec.Unschedulable, node.Status.Capacity, pods.Items,
	}, nil
}

// phases are the states of tlum_workload_info by those of pods.
var phases = map[string]string{
	"Pending": "pending", "Running": "running", "Succeeded": "exited", "Failed": "failed", "Unknown": "unknown",
}

// tell tells the node and its pods; those of kube-state-metrics too, as far as the taxonomy reads them, so that none is
// needed. Where there is one, series are the same but for the labels of their owner.
func (c *cluster) tell(k *look, node string) {
	k.add("tlum_runtime_info", "The container engine", 1, labels{
		"type": "Kubernetes", "version": c.version, "node_name": node, "cluster_id": c.clusterID,
	})
	for resource, unit := range map[string]string{"cpu": "core", "memory": "byte"} {
		if v, err := quantity(c.capacity[resource]); err == nil {
			k.add("kube_node_status_capacity", "What the node has", v, labels{"node": node, "resource": resource, "unit": unit})
		}
	}
	closed := 0.0
	if c.cordoned {
		closed = 1
	}
	k.add("kube_node_spec_unschedulable", "Whether the node takes no new pods", closed, labels{"node": node})
	for _, p := range c.pods {
		m := p.Metadata
		phase, known := phases[p.Status.Phase]
		if !known {
			phase = "unknown"
		}
		of := labels{"id": m.UID, "name": m.Namespace + "__" + m.Name, "status": phase}
		workload(of, m.Labels)
		workload(of, m.Annotations)
		k.add("tlum_workload_info", "What runs on the host", 1, of)
		named := labels{"namespace": m.Namespace, "pod": m.Name, "uid": m.UID}
		add := func(name string, more labels) {
			all := labels{}
			for _, from := range []labels{named, more} {
				for label, value := range from {
					all[label] = value
				}
			}
			k.add(name, "Of a pod", 1, all)
		}
		add("kube_pod_info", labels{"node": node, "pod_ip": p.Status.PodIP, "host_ip": p.Status.HostIP})
		add("kube_pod_status_phase", labels{"phase": p.Status.Phase})
		for _, c := range p.Spec.Containers {
			add("kube_pod_container_info", labels{"container": c.Name})
		}
	}
}

// units are the suffixes of Kubernetes' quantities that nodes have.
var units = map[string]float64{"": 1, "m": 1e-3, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "Ki": 1 << 10, "Mi": 1 << 20, "Gi": 1 << 30, "Ti": 1 << 40}

func quantity(text string) (float64, error) {
	digits := strings.TrimRight(text, "mkMGTKi")
	unit, known := units[text[len(digits):]]
	if !known {
		return 0, fmt.Errorf("%q is no quantity", text)
	}
	v, err := strconv.ParseFloat(digits, 64)
	return v * unit, err
}
