package fleet

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

// pod is one replica of a workload that has found room on its node.
type pod struct {
	copy       *Copy
	uid        string // on a Docker host: the container id
	name       string
	ip         string
	containers []Container
}

// verdict is the condition of a copy.
type verdict struct {
	running bool
	reason  string // one word, as Kubernetes writes reasons
	message string
}

// schedule is derived from the state of a cluster. It is never stored, only cached until the next change.
type schedule struct {
	pods     map[string][]pod   // by node
	crashed  map[string][]pod   // those that would run there if they did not fail at once
	verdicts map[string]verdict // by job id
	until    time.Time          // when a slow copy is ready; zero: nothing changes by itself
}

// schedule finds room for the copies of a cluster, oldest first, and determines the condition of each.
func (f *Fleet) schedule(c *Cluster) *schedule {
	if s := f.schedules[c.Name]; s == nil || !s.until.IsZero() && !f.options.Now().Before(s.until) {
		f.schedules[c.Name] = f.newSchedule(c)
	}
	return f.schedules[c.Name]
}

func (f *Fleet) newSchedule(c *Cluster) *schedule {
	at := f.state.Clusters[c.Name]
	copies := make([]*Copy, 0, len(at.Copies))
	for _, have := range at.Copies {
		if !have.Removed {
			copies = append(copies, have)
		}
	}
	slices.SortFunc(copies, func(a, b *Copy) int {
		return cmp.Or(a.Since.Compare(b.Since), strings.Compare(a.Job, b.Job))
	})
	pods, crashed, verdicts := map[string][]pod{}, map[string][]pod{}, map[string]verdict{}
	now, until := f.options.Now(), time.Time{}
	left := map[string]*room{}
	for _, n := range c.Nodes {
		s := f.settings(c, n)
		left[n.Name] = &room{cpuMilli: int64(s.cores) * 1000, memory: s.ram}
	}
	for _, have := range copies {
		n := c.node(have.Node)
		switch {
		case n == nil:
			verdicts[have.Job] = verdict{false, "NodeNotFound", fmt.Sprintf("%s has no node %q", c.Name, have.Node)}
		case f.state.Nodes[c.Name+"/"+n.Name].Drained:
			verdicts[have.Job] = verdict{false, "NodeDrained", n.Name + " takes no work: it was drained"}
		default:
			started, want := have.start(c, n, left[n.Name])
			verdicts[have.Job] = verdictOf(len(started), want, n.Name)
			how, ends := f.state.failureOf(have, now)
			if how == crash {
				crashed[n.Name] = append(crashed[n.Name], started...)
			}
			if how != "" && want > 0 && len(started) == want {
				verdicts[have.Job], started = how.verdict(want, n.Name), nil // they keep their room
			}
			if !ends.IsZero() && (until.IsZero() || ends.Before(until)) {
				until = ends
			}
			pods[n.Name] = append(pods[n.Name], started...)
		}
	}
	return &schedule{pods, crashed, verdicts, until}
}

func verdictOf(started, want int, node string) verdict {
	if started < want {
		return verdict{false, "InsufficientResources", fmt.Sprintf("%d of %d pods find room on %s", started, want, node)}
	}
	return verdict{true, "AsExpected", fmt.Sprintf("%d of %d pods run on %s", started, want, node)}
}

// room is the free capacity of a node.
type room struct{ cpuMilli, memory int64 }

func (r *room) reserve(containers []Container) bool {
	var cpu, memory int64
	for _, c := range containers {
		cpu, memory = cpu+c.CPUMilli, memory+c.MemoryBytes
	}
	if cpu > r.cpuMilli || memory > r.memory {
		return false
	}
	r.cpuMilli, r.memory = r.cpuMilli-cpu, r.memory-memory
	return true
}

// start returns the pods of the copy that fit, and how many there should be.
func (c *Copy) start(on *Cluster, n *Node, left *room) (started []pod, want int) {
	for _, w := range c.Workloads {
		for i := range w.Replicas {
			want++
			if !left.reserve(w.Containers) {
				continue
			}
			seed := stableHex("pod", on.Name, n.Name, c.Job, formatNumber(c.Epoch), w.Name, formatNumber(i))
			p := pod{
				copy: c, containers: w.Containers, uid: stableUUID(seed),
				name: fmt.Sprintf("%s-%s-%s", w.Name, c.ResourceName()[strings.LastIndexByte(c.ResourceName(), '-')+1:], seed[:5]),
				ip:   fmt.Sprintf("10.244.%d.%d", seed[6], seed[7]),
			}
			if n.docker() {
				p.uid = seed + stableHex(seed) // container ids have 64 hex digits
			}
			started = append(started, p)
		}
	}
	return started, want
}
