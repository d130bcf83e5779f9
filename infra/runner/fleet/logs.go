package fleet

import (
	"context"
	"fmt"
	"hash/fnv"
	"time"

	"github.com/littoral-project/littoral/shared/logs"
)

// writer is a pod that has written: what its last words need.
type writer struct {
	pod
	cluster string
	node    string
}

// speak writes what the containers of the pods say in one round: that they begin, what they serve, how they fail, and that
// they end. Nobody hears a cluster that is cut off, or a node that tells nothing.
func (f *Fleet) speak(ctx context.Context, now time.Time) error {
	if f.options.Logs == nil {
		return nil
	}
	if lines := f.said(now); len(lines) > 0 {
		return f.options.Logs(ctx, lines)
	}
	return nil
}

func (f *Fleet) said(now time.Time) (lines []logs.Entry) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, c := range f.plan.Clusters {
		if f.state.Clusters[c.Name].Cut {
			continue
		}
		here := map[string]writer{}
		s := f.schedule(c)
		for _, n := range f.awake(c) {
			if f.state.Nodes[c.Name+"/"+n.Name].Telemetry != "" {
				for uid, w := range f.writers[c.Name] { // it may go on unheard
					if w.node == n.Name {
						here[uid] = w
					}
				}
				continue
			}
			for _, p := range s.pods[n.Name] {
				w := writer{p, c.Name, n.Name}
				here[p.uid] = w
				if _, before := f.writers[c.Name][p.uid]; !before {
					lines = append(lines, w.says(now, "stdout", `level=info msg="started on %s, %d containers"`, n.Name, len(p.containers))...)
				}
				lines = append(lines, w.says(now, "stdout", "%s", w.served(now))...)
			}
			for _, p := range s.crashed[n.Name] {
				w := writer{p, c.Name, n.Name}
				lines = append(lines, w.says(now, "stderr", `level=fatal msg="cannot start" error="told to crash"`)...)
			}
		}
		for uid, w := range f.writers[c.Name] {
			if _, still := here[uid]; !still {
				lines = append(lines, w.says(now, "stdout", `level=info msg="told to end, bye"`)...)
			}
		}
		f.writers[c.Name] = here
	}
	return lines
}

// says is a line of each container.
func (w writer) says(at time.Time, stream, format string, args ...any) []logs.Entry {
	list := make([]logs.Entry, 0, len(w.containers))
	for _, c := range w.containers {
		list = append(list, logs.Entry{
			At: at, Application: w.copy.Instance, Component: w.copy.Component, Cluster: w.cluster, Node: w.node,
			Pod: w.name, Container: c.Name, Stream: stream, Line: fmt.Sprintf(format, args...),
		})
	}
	return list
}

// served makes up what the pod has served since the last round, the same for the same pod and time.
func (w writer) served(at time.Time) string {
	h := fnv.New32a()
	_, _ = fmt.Fprintf(h, "%s %d", w.uid, at.UnixNano())
	n := h.Sum32()
	if n%40 == 0 {
		return fmt.Sprintf(`level=warn msg="slow request" path=/items/%d took=%dms`, n>>8%1000, 500+n>>16%1500)
	}
	return fmt.Sprintf(`level=info msg="served" requests=%d p95=%dms`, 20+n>>8%80, 5+n>>16%40)
}
