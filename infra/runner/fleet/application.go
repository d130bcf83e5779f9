package fleet

import (
	"cmp"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/littoral-project/littoral/shared/label"
)

// What a node reports: everything, only itself, or nothing.
const (
	tellsNode    = "node" // the exporter works, but reports no workloads
	tellsNothing = "none"
)

// queue is the number of COMPSs tasks with one signature that wait at each component on a node.
type queue struct {
	Tasks   float64 `json:"tasks"`
	Seconds float64 `json:"seconds"` // that one task takes on one computing unit
}

func (q queue) String() string { return formatNumber(q.Tasks) + "@" + formatNumber(q.Seconds) }

// sighting is the number of events with one name that Tetragon has counted in each container on a node.
type sighting struct {
	Count    float64 `json:"count"`
	Severity string  `json:"severity"`
}

func (s sighting) String() string { return formatNumber(s.Count) + "@" + s.Severity }

// Defaults for the parts that a setting leaves out.
const (
	usualSeconds  = 60
	usualSeverity = "high"
	mostCounted   = 1e9
)

// parseQueue reads TASKS or TASKS@SECONDS.
func parseQueue(value string) (queue, string) {
	tasks, seconds, _ := strings.Cut(value, "@")
	q := queue{Seconds: usualSeconds}
	var ok, also bool
	q.Tasks, ok = counted(tasks)
	also = seconds == ""
	if !also {
		q.Seconds, also = counted(seconds)
	}
	if !ok || !also {
		return q, fmt.Sprintf("%q is not a number of waiting tasks such as 40, or 40@60 when each takes 60 seconds", value)
	}
	return q, ""
}

// parseSighting reads COUNT or COUNT@SEVERITY.
func parseSighting(value string) (sighting, string) {
	count, severity, _ := strings.Cut(value, "@")
	s := sighting{Severity: cmp.Or(severity, usualSeverity)}
	var ok bool
	if s.Count, ok = counted(count); !ok || len(severity) > maxLabel || hasControl(severity) {
		return s, fmt.Sprintf("%q is not a number of events such as 3, or 3@critical to say how bad they are", value)
	}
	return s, ""
}

func counted(text string) (float64, bool) {
	v, err := strconv.ParseFloat(text, 64)
	return v, err == nil && v >= 0 && v <= mostCounted // the condition is false for NaN
}

// named reads a setting KIND:NAME; an empty value removes it.
func named[V any](
	name, value string, parse func(string) (V, string), in func(*nodeState) *map[string]V,
) (change func(*nodeState), fault string) {
	if len(name) > maxLabel || hasControl(name) {
		return nil, fmt.Sprintf("a name has at most %d bytes and no control characters", maxLabel)
	}
	if value == "" {
		return func(s *nodeState) { delete(*in(s), name) }, ""
	}
	v, fault := parse(value)
	if fault != "" {
		return nil, fault
	}
	return func(s *nodeState) {
		if m := in(s); *m == nil {
			*m = map[string]V{}
		}
		(*in(s))[name] = v
	}, ""
}

func telemetrySetting(value string) (change func(*nodeState), fault string) {
	if value != "" && value != tellsNode && value != tellsNothing {
		return nil, fmt.Sprintf("%q is not one of %s, %s", value, tellsNode, tellsNothing)
	}
	return func(s *nodeState) { s.Telemetry = value }, ""
}

// runtime reports the state of the COMPSs runtime in each pod: its tasks, if some were set for the node, and its units.
// The pods of a component share the tasks, so with another pod they are done sooner.
func (r *recorder) runtime(n *Node, pods []pod, queues map[string]queue) {
	if len(queues) == 0 {
		return
	}
	shares := map[*Copy]float64{}
	for _, p := range pods {
		shares[p.copy]++
	}
	for _, p := range pods {
		labels := r.ofPod(n, p)
		r.add("compss_node_info", p.units(), with(labels, "property", "computing_units"))
		for signature, q := range queues {
			task := with(labels, "CoreSignature", signature)
			r.add("compss_avgTime_ratio", 1000*q.Seconds, task)
			r.add("compss_pendTasks_ratio", q.Tasks/shares[p.copy], task)
		}
	}
}

// units are the computing units of a COMPSs agent: the number of whole cores that its pod requests.
func (p pod) units() float64 {
	var milli int64
	for _, c := range p.containers {
		milli += c.CPUMilli
	}
	return max(1, math.Floor(float64(milli)/1000))
}

// intrusions reports the security events that Tetragon has counted. The label command is what a remediation executes in
// the container to end the culprit.
func (r *recorder) intrusions(n *Node, pods []pod, seen map[string]sighting) {
	for _, p := range pods {
		for _, container := range p.containers {
			labels := with(r.ofPod(n, p), "k8s_container_name", container.Name, "k8s_pod_name", p.name,
				"k8s_namespace_name", p.copy.Namespace, "k8s_node_name", n.Name)
			for name, s := range seen {
				r.add("tetragon_events_total", s.Count,
					with(labels, "event_name", name, "severity", s.Severity, "command", "pkill "+name))
			}
		}
	}
}

// ofPod returns the labels of a series about a pod.
func (r *recorder) ofPod(n *Node, p pod) set {
	id := "k8s_pod_uid"
	if n.docker() {
		id = "container_id"
	}
	return with(r.of(n), id, p.uid, label.AppName, p.copy.Application, label.AppInstance, p.copy.Instance,
		label.AppComponent, p.copy.Component)
}

// texts formats settings as they are entered.
func texts[V fmt.Stringer](in map[string]V) map[string]string {
	out := make(map[string]string, len(in))
	for name, v := range in {
		out[name] = v.String()
	}
	return out
}
