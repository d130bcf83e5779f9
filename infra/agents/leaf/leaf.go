package main

import (
	"context"
	"log/slog"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/littoral-project/littoral/infra/agents/agent"
	"github.com/littoral-project/littoral/shared/label"
	"github.com/littoral-project/littoral/shared/otlp"
)

type labels = map[string]string

// leaf looks at one node. What it remembers between two looks are the devices that were there, and counters that nobody
// else counts.
type leaf struct {
	o      options
	log    *slog.Logger
	docker *engine
	kube   *kube
	client *http.Client
	clock  *clock // of the receiver
	wazuh  *wazuh
	began  time.Time

	mu      sync.Mutex
	devices map[string]device // by name, those that were ever seen
	energy  meter
	cpus    map[string]cpuTime // of containers, by id
	events  *tetragon
	pushes  float64 // the number of the last one
	failed  float64 // of them
}

func newLeaf(o options, log *slog.Logger) (*leaf, error) {
	l := &leaf{o: o, log: log, devices: map[string]device{}, cpus: map[string]cpuTime{}, began: time.Now()}
	l.clock = &clock{next: http.DefaultTransport, now: time.Now}
	l.client = &http.Client{Transport: l.clock, Timeout: 10 * time.Second}
	l.docker = findEngine(o.Docker, o.Root)
	l.events = newTetragon(o.Tetragon)
	var err error
	if l.wazuh, err = newWazuh(o); err != nil {
		return nil, err
	}
	l.kube, err = findKube(o)
	return l, err
}

// path is a file of the host.
func (l *leaf) path(name string) string { return filepath.Join(l.o.Root, name) }

// read returns a small file of the host without the white space around it; "" if it cannot be read.
func (l *leaf) read(name string) string {
	data, err := os.ReadFile(l.path(name))
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(data))
}

// hostID is the machine's id, 32 hex digits: the same as the collector and other exporters call it.
func (l *leaf) hostID() string {
	for _, name := range []string{"etc/machine-id", "var/lib/dbus/machine-id"} {
		if id := l.read(name); len(id) == 32 {
			return id
		}
	}
	return strings.ReplaceAll(l.read("sys/class/dmi/id/product_uuid"), "-", "")
}

// look is one collection of samples.
type look struct {
	samples []otlp.Sample
	owner   labels // of every series
	errors  []string
}

func (k *look) add(name, help string, value float64, of labels) { k.put(name, help, value, of, false) }

func (k *look) count(name, help string, value float64, of labels) { k.put(name, help, value, of, true) }

func (k *look) put(name, help string, value float64, of labels, counter bool) {
	all := maps.Clone(k.owner)
	maps.Copy(all, of)
	k.samples = append(k.samples, otlp.Sample{Name: name, Help: help, Labels: all, Value: value, Counter: counter})
}

// failed notes that a part could not be looked at; the others count all the same.
func (k *look) failed(part string, err error) { k.errors = append(k.errors, part+": "+err.Error()) }

// look collects everything there is now, for a push or for somebody who asks.
func (l *leaf) look(ctx context.Context, push bool) []otlp.Sample {
	l.mu.Lock()
	defer l.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	k := &look{}
	pods, err := l.kube.ask(ctx)
	if err != nil {
		k.failed("kubernetes", err)
	}
	engine, err := l.docker.ask(ctx)
	if err != nil {
		k.failed("docker", err)
	}
	hostname := l.hostname()
	node := l.o.Node
	if node == "" {
		node = hostname
	}
	cluster := l.o.Cluster
	if cluster == "" && pods != nil {
		cluster = pods.clusterID
	}
	if cluster == "" {
		cluster = l.hostID()
	}
	k.owner = labels{label.Host: l.hostID(), label.Cluster: cluster, label.HostName: cluster[:min(8, len(cluster))] + ":" + node}
	if l.o.Agent != "" {
		k.owner[label.Agent] = l.o.Agent
	}
	if l.o.Controller != "" {
		k.owner[label.Controller] = l.o.Controller
	}
	l.host(k, hostname)
	l.hostLabels(k, pods, engine)
	l.agent(k)
	l.lookForDevices(k)
	if l.usesOwnNodeMetrics(ctx) {
		l.nodeMetrics(k)
	}
	switch {
	case l.wazuh != nil:
		l.wazuh.tell(ctx, k, hostname, time.Now())
	case l.o.SCA:
		l.assess(k, hostname)
	}
	l.vnet(k, time.Now())
	l.events.tell(k, pods, engine, time.Now())
	if l.o.Closed && pods == nil {
		k.add("kube_node_spec_unschedulable", "Whether the node takes no new work", 1, labels{"node": node})
	}
	switch {
	case pods != nil:
		pods.tell(k, node)
	case engine != nil:
		l.tellEngine(ctx, k, engine, node, cluster)
	}
	if push {
		l.tellPush(k)
	}
	k.add("tlum_leaf_errors", "Parts that could not be looked at", float64(len(k.errors)), nil)
	for _, text := range k.errors {
		l.log.Warn("could not look at everything", "error", text)
	}
	return k.samples
}

func (l *leaf) text(ctx context.Context) []byte { return otlp.Text(l.look(ctx, false)) }

// agent tells who orchestrates the cluster.
func (l *leaf) agent(k *look) {
	if l.o.Orchestrator == "" || l.o.Agent == "" {
		return
	}
	name := l.o.AgentName
	if name == "" {
		name = l.o.Agent
	}
	k.add("tlum_orch_info", "The agent that orchestrates the cluster", 1, labels{"type": l.o.Orchestrator, "agent_id": l.o.Agent, "agent_name": name})
	if l.o.ClusterName != "" {
		k.add("tlum_ocm_agent_info", "The managed cluster of the agent", 1, labels{"id": l.o.Agent, "name": l.o.ClusterName})
	}
}

var noLabel = regexp.MustCompile(`[^a-zA-Z0-9_]`)

func labelName(name string) string { return noLabel.ReplaceAllString(name, "_") }

// hostLabels are those of the file, of the command line, of the node and of the engine.
func (l *leaf) hostLabels(k *look, pods *cluster, engine *engineState) {
	all := labels{"type": ""}
	delete(all, "type")
	add := func(text, separator string) {
		for line := range strings.SplitSeq(text, separator) {
			name, value, ok := strings.Cut(strings.TrimSpace(line), "=")
			if ok && !strings.HasPrefix(name, "#") {
				all["label_"+labelName(strings.TrimSpace(name))] = strings.TrimSpace(value)
			}
		}
	}
	if engine != nil {
		for _, label := range engine.Info.Labels {
			add(label, "\n")
		}
	}
	if pods != nil {
		for name, value := range pods.nodeLabels {
			if short, ok := strings.CutPrefix(name, "icos.eu/"); ok {
				all["label_"+labelName(short)] = value
			}
		}
	}
	if l.o.LabelsFile != "" {
		data, err := os.ReadFile(l.o.LabelsFile)
		if err != nil {
			k.failed("labels", err)
		}
		add(string(data), "\n")
	}
	add(l.o.Labels, ",")
	if len(all) > 0 {
		k.add("tlum_host_labels", "Labels of the host", 1, all)
	}
}

// pushing sends all metrics each interval, and at once when a device comes or goes.
func (l *leaf) pushing(ctx context.Context) {
	every, devices := time.NewTicker(l.o.Every), time.NewTicker(l.o.DevicesEvery)
	defer every.Stop()
	defer devices.Stop()
	for {
		if err := l.push(ctx); err != nil && ctx.Err() == nil {
			l.log.Warn("metrics could not be pushed", "error", err.Error())
		}
		before := l.present()
		for waiting := true; waiting; {
			select {
			case <-ctx.Done():
				return
			case <-every.C:
				waiting = false
			case <-devices.C:
				waiting = l.present() == before
			}
		}
	}
}

func (l *leaf) push(ctx context.Context) error {
	to := agent.Receiver{URL: l.o.OTLP, TokenFile: l.o.OTLPToken, Client: l.client}
	err := to.Push(ctx, "leaf", l.hostID(), l.look(ctx, true))
	if err != nil {
		l.mu.Lock()
		l.failed++
		l.mu.Unlock()
	}
	return err
}

// tellPush numbers what is pushed, so that it is seen where numbers are missing, come twice or go back; and compares clocks.
func (l *leaf) tellPush(k *look) {
	l.pushes++
	k.count("tlum_leaf_pushes_total", "The number of this push, since the leaf began", l.pushes, nil)
	k.count("tlum_leaf_push_failures_total", "Pushes that nobody took", l.failed, nil)
	k.add("tlum_leaf_start_time_seconds", "When the leaf began", float64(l.began.Unix()), nil)
	if ahead, known := l.clock.ahead(); known {
		k.add("tlum_clock_skew_seconds", "How far the host's clock is ahead of the receiver's", ahead, nil)
	}
}
