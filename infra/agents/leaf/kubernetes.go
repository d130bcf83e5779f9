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

// kube is the API server, asked about this node alone, and the node's kubelet, if that is asked too. nil = there is none.
type kube struct {
	client               *http.Client
	url, tokenFile, node string
	kubelet              *http.Client
	kubeletURL           string
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
	client := func(c *tls.Config) *http.Client {
		c.RootCAs, c.MinVersion = roots, tls.VersionTLS12
		return &http.Client{Transport: &http.Transport{TLSClientConfig: c, MaxIdleConns: 2}, Timeout: 10 * time.Second}
	}
	return &kube{
		client: client(&tls.Config{}), url: strings.TrimRight(o.KubeURL, "/"), tokenFile: o.KubeToken, node: o.Node,
		kubelet:    client(&tls.Config{ServerName: o.Node, InsecureSkipVerify: o.KubeletSelfSigned}), //nolint:gosec // if somebody says so
		kubeletURL: strings.TrimRight(o.KubeletURL, "/"),
	}, nil
}

// cluster is what the API server says.
type cluster struct {
	clusterID, version string
	nodeLabels         labels
	cordoned           bool
	capacity           map[string]string
	pods               []pod
	usage              summary
	noUsage            error // why the kubelet did not tell it
}

// summary is what the kubelet says of the pods that it runs.
type summary struct {
	Pods []struct {
		PodRef     struct{ UID string }
		Containers []struct {
			Name   string
			CPU    struct{ UsageNanoCores *float64 }
			Memory struct{ WorkingSetBytes *float64 }
		}
	}
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
	c := &cluster{
		clusterID: system.Metadata.UID, version: version.GitVersion, nodeLabels: node.Metadata.Labels, cordoned: node.Spec.Unschedulable,
		capacity: node.Status.Capacity, pods: pods.Items,
	}
	if q.kubeletURL != "" {
		c.noUsage = getJSON(ctx, q.kubelet, q.kubeletURL+"/stats/summary", strings.TrimSpace(string(token)), &c.usage)
	}
	return c, nil
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
	c.tellUsage(k)
}

// tellUsage tells what containers use, as far as the kubelet knows: one that has just begun has no usage of cpu yet.
func (c *cluster) tellUsage(k *look) {
	if c.noUsage != nil {
		k.failed("kubelet", c.noUsage)
		return
	}
	for _, p := range c.usage.Pods {
		for _, container := range p.Containers {
			of := labels{"k8s_pod_uid": p.PodRef.UID, "k8s_container_name": container.Name}
			if cores := container.CPU.UsageNanoCores; cores != nil {
				k.add(containerCores, "Cores that a container uses", *cores/1e9, of)
			}
			if bytes := container.Memory.WorkingSetBytes; bytes != nil {
				k.add(containerMemory, "Memory of a container", *bytes, of)
			}
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
