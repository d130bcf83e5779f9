package acm

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/jackc/pgx/v5"

	"github.com/littoral-project/littoral/shared/application"
	"github.com/littoral-project/littoral/shared/store"
	"github.com/littoral-project/littoral/shared/topology"
)

// Words of Status.Status.
const (
	OK      = "OK"
	Warning = "Warning" // it is on its way
	Error   = "Error"
)

// Status is the status of a CodecoApp in the words of its contract. Averages are over what runs now, as texts: cpu of a
// node in percent of it and of an application in cores, memory of a node in percent and of an application in bytes,
// energy in watts, failures in percent. What telemetry does not say is left out; it is never zero.
type Status struct {
	Status      string       `json:"status"`
	ErrorMsg    string       `json:"errorMsg,omitempty"`
	NodeMetrics []NodeMetric `json:"nodeMetrics,omitempty"` // of the nodes that run a part of it
	AppMetrics  AppMetrics   `json:"appMetrics"`
}

// NodeMetric is how a node fares.
type NodeMetric struct {
	NodeName       string `json:"nodeName"`
	AvgNodeCPU     string `json:"avgNodeCpu,omitempty"`
	AvgNodeMemory  string `json:"avgNodeMemory,omitempty"`
	AvgNodeFailure string `json:"avgNodeFailure,omitempty"`
	AvgNodeEnergy  string `json:"avgNodeEnergy,omitempty"`
}

// AppMetrics is what the application uses.
type AppMetrics struct {
	NumPods        int             `json:"numPods"`
	AvgAppCPU      string          `json:"avgAppCpu,omitempty"`
	AvgAppMemory   string          `json:"avgAppMemory,omitempty"`
	ServiceMetrics []ServiceMetric `json:"serviceMetrics,omitempty"`
}

// ServiceMetric is one pod of a service; a service whose pod is not seen has the place that it was given.
type ServiceMetric struct {
	ServiceName      string `json:"serviceName"`
	NodeName         string `json:"nodeName"`
	PodName          string `json:"podName"`
	ClusterName      string `json:"clusterName"`
	AvgServiceCPU    string `json:"avgServiceCpu,omitempty"`
	AvgServiceMemory string `json:"avgServiceMemory,omitempty"`
}

// seen is a node that runs some part of the application.
type seen struct {
	Cluster string   `db:"cluster"`
	Node    string   `db:"node"`
	CPU     *float64 `db:"cpu_percent"`
	Memory  *float64 `db:"memory_percent"`
	Watts   *float64 `db:"watts"`
	Failure *float64 `db:"failure"`
	Pods    []byte   `db:"pods"`
}

// Failures are PDLC's moving average of how often a node was silent, in whole percent: a status is written when it changes, and the
// average never stands still. What PDLC has not observed lately is not known.
const selectNodes = `select t.cluster, t.node, t.cpu_percent, t.memory_percent, t.watts, t.body -> 'pod' as pods,
	round((o.metrics ->> 'node_failure')::float8 * 100) as failure
from topology_nodes t left join pdlc_nodes o on o.cluster = t.cluster and o.node = t.node and o.at > now() - interval '15 minutes'
where t.cluster || '/' || t.node = any($1)`

// StatusOf tells how the application fares.
func StatusOf(ctx context.Context, q store.Querier, a *application.Application) (Status, error) {
	all, err := StatusesOf(ctx, q, []*App{{Application: a}})
	if err != nil {
		return Status{}, err
	}
	return all[0], nil
}

// StatusesOf tells how each of the applications fares; the nodes of all are read at once.
func StatusesOf(ctx context.Context, q store.Querier, apps []*App) ([]Status, error) {
	all, places := make([]Status, len(apps)), map[string]bool{}
	for i, a := range apps {
		all[i] = summary(a.Application)
		for place := range placesOf(a.Application) {
			places[place] = true
		}
	}
	if len(places) == 0 {
		return all, nil
	}
	nodes, err := store.Collect(ctx, q, "read the nodes of applications", pgx.RowToStructByName[seen], selectNodes,
		slices.Sorted(maps.Keys(places)))
	if err != nil {
		return nil, err
	}
	slices.SortFunc(nodes, func(a, b seen) int { return cmp.Or(cmp.Compare(a.Node, b.Node), cmp.Compare(a.Cluster, b.Cluster)) })
	pods := map[string][]pod{} // by application, component and place
	for _, n := range nodes {
		var on map[string]topology.Pod
		if len(n.Pods) > 0 {
			if err := json.Unmarshal(n.Pods, &on); err != nil {
				return nil, fmt.Errorf("pods of %s: %w", n.Node, err)
			}
		}
		for _, id := range slices.Sorted(maps.Keys(on)) {
			for of, w := range on[id].Workload {
				key := podKey(of, w.AppComponent, n.Cluster+"/"+n.Node)
				pods[key] = append(pods[key], podOf(on[id]))
			}
		}
	}
	for i, a := range apps {
		here := placesOf(a.Application)
		if len(here) == 0 {
			continue
		}
		for _, n := range nodes {
			if here[n.Cluster+"/"+n.Node] {
				all[i].NodeMetrics = append(all[i].NodeMetrics, NodeMetric{
					NodeName: n.Node, AvgNodeCPU: text(n.CPU), AvgNodeMemory: text(n.Memory), AvgNodeEnergy: text(n.Watts),
					AvgNodeFailure: text(n.Failure),
				})
			}
		}
		all[i].AppMetrics = metricsOf(a.Application, pods)
	}
	return all, nil
}

// placesOf are the nodes where parts of the application are meant to run.
func placesOf(a *application.Application) map[string]bool {
	places := map[string]bool{}
	for _, j := range a.Jobs {
		if j.Live() && j.Placed() {
			places[j.Target.String()] = true
		}
	}
	return places
}

func podKey(application, component, place string) string {
	return application + "\n" + component + "\n" + place
}

// summary is the first line: what the application waits for is a warning, what failed an error.
func summary(a *application.Application) Status {
	status, message := a.Status()
	switch status {
	case application.Available, application.Finished, application.Gone:
		return Status{Status: OK}
	case application.Degraded, application.Unknown:
		return Status{Status: Error, ErrorMsg: message}
	}
	return Status{Status: Warning, ErrorMsg: message}
}

// pod is what telemetry says of one.
type pod struct {
	name        string
	cpu, memory *float64
}

func podOf(p topology.Pod) pod {
	out := pod{name: p.Name}
	for _, c := range p.Container {
		add(&out.cpu, c.CPUUsage)
		add(&out.memory, c.ContainerMemory)
	}
	return out
}

func add(sum **float64, m topology.Measure) {
	if v, known := m.Get(); known {
		if *sum == nil {
			*sum = new(float64)
		}
		**sum += v
	}
}

func metricsOf(a *application.Application, pods map[string][]pod) AppMetrics {
	m := AppMetrics{}
	var cpu, memory *float64
	for _, j := range a.Jobs {
		if !j.Live() || !j.Placed() {
			continue
		}
		entry := ServiceMetric{ServiceName: j.Component, NodeName: j.Target.Node, ClusterName: j.Target.Cluster}
		running := pods[podKey(a.ID.String(), j.Component, j.Target.String())]
		if len(running) == 0 {
			m.ServiceMetrics = append(m.ServiceMetrics, entry)
		}
		for _, p := range running {
			m.NumPods++
			e := entry
			e.PodName, e.AvgServiceCPU, e.AvgServiceMemory = p.name, text(p.cpu), text(p.memory)
			m.ServiceMetrics = append(m.ServiceMetrics, e)
			total(&cpu, p.cpu)
			total(&memory, p.memory)
		}
	}
	m.AvgAppCPU, m.AvgAppMemory = text(cpu), text(memory)
	return m
}

func total(sum **float64, v *float64) {
	if v != nil {
		if *sum == nil {
			*sum = new(float64)
		}
		**sum += *v
	}
}

// text writes a reading; empty for one that is not known.
func text(v *float64) string {
	if v == nil {
		return ""
	}
	return strconv.FormatFloat(*v, 'f', -1, 64)
}
