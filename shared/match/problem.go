package match

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/littoral-project/littoral/shared/descriptor"
	"github.com/littoral-project/littoral/shared/job"
	"github.com/littoral-project/littoral/shared/placement"
)

// part is one replica of a component on its way through a placement.
type part struct {
	id        string // "web", or "web/1" where there are several replicas
	component *descriptor.Component
	replica   descriptor.Replica
	job       *job.Job // nil when nothing is stored yet
	fixed     bool     // stays where it is, whatever happens
	current   *placement.Target
	excluded  []placement.Target
	avoided   []placement.Target // where a policy was violated before it came here: better than nothing
}

// parts lists what a descriptor places, with the stored jobs where there are any. Of these, the placed ones are fixed
// unless mayMove.
func parts(app *descriptor.Application, jobs []*job.Job, mayMove bool) []part {
	stored := map[string]*job.Job{}
	for _, j := range jobs {
		if j.Cleans == nil && j.Type != job.Delete && !j.Gone() {
			stored[partID(j.Component, j.Replica)] = j
		}
	}
	var list []part
	for i := range app.Components {
		c := &app.Components[i]
		for _, r := range c.Replicas() {
			p := part{id: partID(c.Name, r.Index), component: c, replica: r, job: stored[partID(c.Name, r.Index)]}
			if p.job != nil {
				p.fixed = p.job.Placed() && !mayMove
				if p.job.Placed() {
					p.current = target(p.job.Target)
				}
				where := &p.excluded
				if p.job.Placed() && !p.job.Strained() {
					where = &p.avoided
				}
				for _, t := range p.job.Excluded {
					*where = append(*where, *target(t))
				}
			}
			list = append(list, p)
		}
	}
	return list
}

func partID(component string, replica int) string {
	if replica == 0 {
		return component
	}
	return component + "/" + strconv.Itoa(replica)
}

func target(t job.Target) *placement.Target {
	return &placement.Target{Orchestrator: t.Orchestrator, Cluster: t.Cluster, Node: t.Node}
}

// problemOf states the placement problem of the parts.
func problemOf(app *descriptor.Application, list []part, inv *inventory) placement.Problem {
	placing := map[uuid.UUID]bool{}
	for _, p := range list {
		if p.job != nil {
			placing[p.job.ID] = true
		}
	}
	inv.staleAfter = freshness(app, list, inv.staleAfter)
	own := settingsOf(app)
	problem := placement.Problem{Nodes: inv.nodes(placing), Weights: own.Weights, OneOrchestrator: own.OneOrchestrator}
	for _, p := range list {
		problem.Components = append(problem.Components, component(app, p))
	}
	problem.Affinities = affinities(app, list)
	return problem
}

// settingsOf returns what an application demands as a whole.
func settingsOf(app *descriptor.Application) placement.Group {
	performance, energy, security, _ := app.ScoreWeights()
	return placement.Group{
		Weights:         placement.Weights{Performance: performance, Energy: energy, Security: security},
		OneOrchestrator: oneOrchestrator(app),
	}
}

// freshness is how silent a node may be: never longer than what a component to be placed bears, or it would be moved to a
// node that is as lost as the one it left.
func freshness(app *descriptor.Application, list []part, staleAfter time.Duration) time.Duration {
	for _, p := range list {
		if bears, ok := app.LostTelemetry(p.component.Name); ok && !p.fixed {
			staleAfter = min(staleAfter, bears)
		}
	}
	return staleAfter
}

func component(app *descriptor.Application, p part) placement.Component {
	need := p.component.Requirements
	cpuMax, memoryMax, memoryFree := app.NodeUsage(p.component.Name)
	c := placement.Component{
		ID: p.id, Architecture: placement.CanonicalArchitecture(need.Architecture),
		CPU: need.CPUMilli, Memory: need.MemoryBytes, Devices: need.Devices, Resources: need.Resources,
		Labels: p.replica.Labels, MinSecurity: app.SecurityLevel(p.component.Name),
		MaxCPUUsage: cpuMax, MaxMemoryUsage: memoryMax, MinFreeMemory: memoryFree,
		Excluded: p.excluded, Current: p.current,
	}
	switch p.component.Type {
	case descriptor.TypeKubernetes:
		c.Engines = []string{"Kubernetes"}
	case descriptor.TypeDocker:
		c.Engines = []string{"Docker"}
	}
	for _, t := range p.component.Targets {
		c.Targets = append(c.Targets, placement.Target{Orchestrator: t.Orchestrator, Cluster: t.Cluster, Node: t.Node})
	}
	if p.fixed {
		// It runs; only its place and what it holds matter to the others.
		c = placement.Component{
			ID: p.id, CPU: c.CPU, Memory: c.Memory, Devices: c.Devices, Resources: c.Resources,
			Current: p.current, Targets: []placement.Target{*p.current},
		}
	}
	return c
}

// oneOrchestrator is the rule of the ICOS documents (contracts/icos.md §2.4): all components of an application go to one
// orchestrator type, unless their types differ, one is "multiple", or the user fixed places under different ones.
func oneOrchestrator(app *descriptor.Application) bool {
	fixed := map[string]bool{}
	for i := range app.Components {
		c := &app.Components[i]
		if c.Type == descriptor.TypeMultiple || c.Type != app.Components[0].Type {
			return false
		}
		for _, t := range c.Targets {
			fixed[strings.ToLower(t.Orchestrator)] = true
		}
	}
	delete(fixed, "")
	return len(fixed) < 2
}

// affinities joins each component that needs a service with the one that offers it.
func affinities(app *descriptor.Application, list []part) []placement.Affinity {
	offers := map[string][]string{} // service -> components
	for i := range app.Components {
		c := &app.Components[i]
		for _, service := range c.Communication.Outgoing {
			offers[service] = append(offers[service], c.Name)
		}
		for _, m := range c.Manifests {
			if m.Kind == "Service" {
				offers[m.Name] = append(offers[m.Name], c.Name)
			}
		}
	}
	pairs := map[[2]string]bool{}
	for i := range app.Components {
		c := &app.Components[i]
		for _, service := range c.Communication.Incoming {
			for _, other := range offers[service] {
				if other != c.Name {
					pairs[[2]string{min(c.Name, other), max(c.Name, other)}] = true
				}
			}
		}
	}
	var joined []placement.Affinity
	for i, a := range list { // in the order of the parts, so that the problem is the same each time
		for _, b := range list[i+1:] {
			if pairs[[2]string{min(a.component.Name, b.component.Name), max(a.component.Name, b.component.Name)}] {
				joined = append(joined, placement.Affinity{A: a.id, B: b.id, Weight: placement.DefaultAffinityWeight})
			}
		}
	}
	return joined
}

// why says in one line what decided for the place.
func why(e *placement.ComponentExplanation, a placement.Assignment) string {
	return fmt.Sprintf("score %.0f (performance %.0f, energy %.0f, security %.0f); %d of %d nodes could take it",
		a.Score.Weighted, a.Score.Performance, a.Score.Energy, a.Score.Security, e.Fit(), len(e.Nodes)+e.Omitted)
}
