package fleet

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/littoral-project/littoral/infra/runner/prometheus"
	"github.com/littoral-project/littoral/shared/label"
)

// Emit sends one round of telemetry: everything that can now be measured on the nodes that report.
//
// A series that its cluster reported before and does not report now is ended at once. A real cluster's collector does
// the same for a pod that is gone or a node that does not answer. If a cluster is cut off nothing can end its series:
// they become stale by age.
func (f *Fleet) Emit(ctx context.Context) error {
	f.rounds.Lock()
	defer f.rounds.Unlock()
	now := f.options.Now()
	var round []prometheus.Sample
	for name, current := range f.measure(now) {
		for key, before := range f.series[name] {
			if _, still := current[key]; !still {
				before.Value, before.At = prometheus.Stale, now
				round = append(round, before)
			}
		}
		for _, sample := range current {
			round = append(round, sample)
		}
		f.series[name] = current
	}
	return errors.Join(f.options.Append(ctx, round), f.speak(ctx, now))
}

// measure returns the samples of every cluster that reports, by the identity of their series.
func (f *Fleet) measure(now time.Time) map[string]map[string]prometheus.Sample {
	f.mu.Lock()
	defer f.mu.Unlock()
	all := map[string]map[string]prometheus.Sample{}
	for _, c := range f.plan.Clusters {
		if f.state.Clusters[c.Name].Cut {
			continue
		}
		awake := f.awake(c) // empty if all nodes were drained; the cluster's API still reports them
		pods := f.schedule(c).pods
		r := &recorder{now: now, samples: map[string]prometheus.Sample{}, fleet: f, cluster: c}
		for _, n := range c.Nodes {
			r.clusterView(n)
		}
		agent := false
		for _, n := range awake {
			at := f.state.Nodes[c.Name+"/"+n.Name]
			r.clusterPods(n, pods[n.Name])
			if at.Telemetry == tellsNothing {
				continue
			}
			if !agent {
				r.agent(n)
				agent = true
			}
			s := f.settings(c, n)
			l := s.usage(n, pods[n.Name])
			r.identity(n, s)
			r.security(n, s)
			r.readings(n, s, l, at.Meter.at(now, l))
			r.network(n)
			if at.Telemetry == "" {
				r.pods(n, pods[n.Name], l)
				r.runtime(n, pods[n.Name], at.Queues)
				r.intrusions(n, pods[n.Name], at.Events)
			}
		}
		all[c.Name] = r.samples
	}
	return all
}

// recorder collects the samples of one cluster in one round.
type recorder struct {
	now     time.Time
	samples map[string]prometheus.Sample
	fleet   *Fleet
	cluster *Cluster
}

// set is a set of labels; with adds alternating names and values to one.
type set map[string]string

func with(base set, pairs ...string) set {
	all := maps.Clone(base)
	for i := 0; i+1 < len(pairs); i += 2 {
		all[pairs[i]] = pairs[i+1]
	}
	return all
}

func (r *recorder) add(name string, value float64, labels set) {
	var key strings.Builder
	key.WriteString(name)
	for _, label := range slices.Sorted(maps.Keys(labels)) {
		key.WriteString("\x00" + label + "\x00" + labels[label])
	}
	r.samples[key.String()] = prometheus.Sample{Name: name, Labels: labels, Value: value, At: r.now}
}

// of returns the labels for a series: those of the cluster alone (C), or with the host (H). See
// shared/topology/METRICS.md.
func (r *recorder) of(n *Node) set {
	c := set{
		label.Controller: Controller,
		label.Agent:      r.cluster.AgentID,
		label.Cluster:    r.cluster.UUID,
	}
	if n == nil {
		return c
	}
	return with(c, label.Host, n.HostID, label.HostName, r.cluster.hostName(n))
}
