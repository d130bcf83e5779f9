package match

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/littoral-project/littoral/shared/appmodel"
	"github.com/littoral-project/littoral/shared/job"
	"github.com/littoral-project/littoral/shared/placement"
	"github.com/littoral-project/littoral/shared/store"
	"github.com/littoral-project/littoral/shared/topology"
)

// part is one replica of a component in a placement.
type part struct {
	id        string // "web", or "web/1" where there are several replicas
	component *appmodel.Component
	replica   appmodel.Replica
	job       *job.Job  // nil when nothing is stored yet
	holds     uuid.UUID // the job whose reservation is its own; that is job, if there is one
	instance  uuid.UUID // of the application
	fixed     bool      // stays where it is in any case, and keeps its reservation there
	quiet     bool      // fixed for now, since the state of its node is unknown
	current   *placement.Target
	excluded  []placement.Target
	avoided   []placement.Target // where a policy was violated before it came here; used only if nothing else fits

	alone  *placement.ComponentExplanation // for a fixed part that no plan placed: where it could go if placed alone
	misfit bool                            // set together with alone: its own place does not fit it either
}

// Which placed jobs may move.
func nobody(*job.Job) bool    { return false }
func anybody(*job.Job) bool   { return true }
func misfits(j *job.Job) bool { return j.IsMisplaced(job.TooLarge) && !j.IsMisplaced(job.Violating) }

// parts lists what a descriptor places, with the stored jobs if there are any. Placed ones are fixed unless they may
// move.
func parts(app *appmodel.Application, jobs []*job.Job, mayMove func(*job.Job) bool) []part {
	live := slices.DeleteFunc(slices.Clone(jobs), func(j *job.Job) bool { return !j.Live() })
	stored := map[string]*job.Job{}
	for _, j := range live {
		stored[job.ReplicaName(j.Component, j.Replica)] = j
	}
	var list []part
	for i := range app.Components {
		c := &app.Components[i]
		for _, r := range job.Replicas(c, live) {
			p := part{id: job.ReplicaName(c.Name, r.Index), component: c, replica: r, job: stored[job.ReplicaName(c.Name, r.Index)]}
			if p.job != nil {
				p.holds, p.instance = p.job.ID, p.job.ApplicationID
				p.fixed = p.job.Placed() && !mayMove(p.job)
				if p.job.Placed() {
					at := placement.Target(p.job.Target)
					p.current = &at
				}
				where := &p.excluded
				if p.job.Placed() && !p.job.IsMisplaced(job.Violating) {
					where = &p.avoided
				}
				for _, t := range p.job.Excluded {
					*where = append(*where, placement.Target(t))
				}
			}
			list = append(list, p)
		}
	}
	return list
}

// solve plans the parts of an application. A running part is never given up: if a plan has no place left for it,
// another plan is made in which it is fixed where it is. The parts returned are those of the last plan.
func solve(
	app *appmodel.Application, list []part, inv *inventory,
) ([]part, placement.Problem, placement.Plan, error) {
	list = slices.Clone(list)
	staleAfter := freshness(app, list, inv.staleAfter)
	for i := range list {
		p := &list[i]
		if p.job != nil && p.job.Placed() && !p.fixed && inv.quiet(*p.current, staleAfter, p.job.LostAfter) {
			p.fixed, p.quiet = true, true // it is moved once the node counts as lost
		}
	}
	for {
		problem := problemOf(app, list, inv)
		plan, err := placement.Place(problem)
		if err != nil {
			return list, problem, plan, err
		}
		again := false
		for i := range list {
			p := &list[i]
			if !plan.Assignments[i].Placed && p.job != nil && p.job.Placed() && !p.fixed {
				p.fixed, p.alone, again = true, &placement.ComponentExplanation{}, true
			}
		}
		if !again {
			return list, problem, plan, nil
		}
	}
}

// explainAlone explains parts that are fixed because no plan had a place for them, or for now: where each could go if
// all others stayed.
func explainAlone(app *appmodel.Application, list []part, inv *inventory) error {
	all := 0
	for i := range list {
		if list[i].alone != nil {
			all++
		}
	}
	for i := range list {
		p := &list[i]
		if p.alone == nil {
			continue
		}
		others := slices.Clone(list)
		others[i].fixed = false
		problem := problemOf(app, others, inv)
		plan, err := placement.Place(problem)
		if err != nil {
			return err
		}
		as := plan.Assignments[i]
		ex := placement.ExplainOnly(problem, plan, func(k int) bool { return k == i })
		*p.alone, p.misfit = ex.Components[i], !as.Placed || as.Moved
		p.alone.Cut(max(1, placement.MaxExplained/all))
		if !as.Placed || p.quiet {
			p.alone.Summary += "; it stays on " + p.job.Target.String()
		}
		if p.quiet {
			p.alone.Summary += " until its node counts as lost"
		}
	}
	return nil
}

// explain explains the plan for the parts that were asked for, and adds those of explainAlone.
func explain(list []part, p placement.Problem, plan placement.Plan, asked func(*part) bool) placement.Explanation {
	ex := placement.ExplainOnly(p, plan, func(i int) bool { return list[i].alone == nil && asked(&list[i]) })
	for i := range list {
		if alone := list[i].alone; alone != nil {
			c := &ex.Components[i]
			*c = *alone
			c.Placed, c.Target = true, *list[i].current
			for n := range c.Nodes {
				c.Nodes[n].Chosen = c.Nodes[n].Target == c.Target
			}
		}
	}
	return ex
}

// decided reports whether the plan decides on the part; otherwise the plan is made around it.
func (p *part) decided() bool { return p.job != nil && !p.fixed }

// problemOf states the placement problem of the parts.
func problemOf(app *appmodel.Application, list []part, inv *inventory) placement.Problem {
	placing := map[uuid.UUID]bool{}
	addPlacing(list, placing)
	own, components := demands(app, list, inv)
	problem := placement.Problem{
		Nodes: inv.nodes(placing), Components: components, Network: inv.networkFor(list),
		Weights: own.Weights, OneOrchestrator: own.OneOrchestrator,
		StaleAfter: freshness(app, list, inv.staleAfter),
	}
	tie(&problem, app, list, "")
	inv.keepWays(&problem, list, "")
	inv.link(&problem, app, list, "")
	inv.prefer(&problem, app, list, "")
	inv.letStay(&problem, list)
	if i := slices.IndexFunc(list, func(p part) bool { return p.instance != uuid.Nil }); i >= 0 && app.UsageOfOthers() {
		inv.withoutOwn(problem.Nodes, list[i].instance.String())
	}
	return problem
}

// addPlacing collects the jobs whose own reservations count as free to them. A part that stays keeps its reservation.
// So does one that must leave its place: its old copy holds it until it is removed.
func addPlacing(list []part, jobs map[uuid.UUID]bool) {
	for _, p := range list {
		if p.holds != uuid.Nil && !p.fixed && (p.current == nil || !slices.Contains(p.excluded, *p.current)) {
			jobs[p.holds] = true
		}
	}
}

// demands returns what an application demands as a whole, and its components. If all must share an orchestrator, the
// parts that stay determine it.
func demands(app *appmodel.Application, list []part, inv *inventory) (placement.Group, []placement.Component) {
	performance, energy, security, _ := app.ScoreWeights()
	own := placement.Group{
		Weights:         placement.Weights{Performance: performance, Energy: energy, Security: security},
		OneOrchestrator: oneOrchestrator(app, inv),
	}
	var chosen []string
	for _, p := range list {
		if own.OneOrchestrator && p.fixed && !slices.Contains(chosen, p.current.Orchestrator) {
			chosen = append(chosen, p.current.Orchestrator)
		}
	}
	components := make([]placement.Component, 0, len(list))
	for _, p := range list {
		c := component(app, p)
		if !p.fixed {
			c.Shared = chosen
		}
		components = append(components, c)
	}
	own.OneOrchestrator = own.OneOrchestrator && len(chosen) == 0
	return own, components
}

// freshness is how long a node may be silent and still get components: never longer than lost_after of a component to
// be placed, or it would be moved to a node that counts as lost for it.
func freshness(app *appmodel.Application, list []part, staleAfter time.Duration) time.Duration {
	for _, p := range list {
		if bears, ok := app.LostTelemetry(p.component.Name); ok && !p.fixed {
			staleAfter = min(staleAfter, bears)
		}
	}
	return staleAfter
}

// engineOf names the engine for each component type.
var engineOf = map[string]string{appmodel.TypeKubernetes: topology.Kubernetes, appmodel.TypeDocker: topology.Docker}

// placeAt writes where the part was placed. The job of a component with variants gets the one for the engine of the node.
func (p *part) placeAt(ctx context.Context, tx *store.Tx, app *appmodel.Application, inv *inventory, to placement.Target, why string) error {
	if p.component.Type == appmodel.TypeMultiple {
		for _, typ := range app.Engines(p.component) {
			if strings.EqualFold(engineOf[typ], inv.engine(to)) {
				return p.job.PlaceVariant(ctx, tx, job.Target(to), typ, job.Contents(p.component.Variant(typ)), why)
			}
		}
	}
	return p.job.Place(ctx, tx, job.Target(to), why)
}

func component(app *appmodel.Application, p part) placement.Component {
	need := p.component.Requirements
	cpuMax, memoryMax, memoryFree := app.NodeUsage(p.component.Name)
	c := placement.Component{
		ID: p.id, Architecture: placement.CanonicalArchitecture(need.Architecture),
		CPU: need.CPUMilli, Memory: need.MemoryBytes, Devices: need.Devices, Resources: need.Resources,
		Labels: p.replica.Labels, MinSecurity: app.SecurityLevel(p.component.Name),
		MaxCPUUsage: cpuMax, MaxMemoryUsage: memoryMax, MinFreeMemory: memoryFree,
		Excluded: p.excluded, Current: p.current,
	}
	for _, typ := range app.Engines(p.component) {
		c.Engines = append(c.Engines, engineOf[typ])
	}
	for _, t := range p.component.Targets {
		c.Targets = append(c.Targets, placement.Target{Orchestrator: t.Orchestrator, Cluster: t.Cluster, Node: t.Node})
	}
	if p.fixed {
		// It stays; only its place matters to the others. What it needs there is reserved.
		c = placement.Component{ID: p.id, Current: p.current, Targets: []placement.Target{*p.current}, Stays: true}
	}
	return c
}

// oneOrchestrator is a rule of the ICOS documents (shared/docs/contracts.md §2.4): all components of an application go to one
// orchestrator type, unless they need different engines, one may run on several, or the user fixed places under different ones.
func oneOrchestrator(app *appmodel.Application, inv *inventory) bool {
	fixed := map[string]bool{}
	engines := app.Engines(&app.Components[0])
	for i := range app.Components {
		c := &app.Components[i]
		if own := app.Engines(c); len(own) != 1 || !slices.Equal(own, engines) {
			return false
		}
		for _, t := range c.Targets {
			fixed[inv.orchestrator(t)] = true
		}
	}
	delete(fixed, "")
	return len(fixed) < 2
}

// why says in one line why this place was chosen.
func why(e *placement.ComponentExplanation, a placement.Assignment) string {
	text := fmt.Sprintf("score %.0f (performance %.0f, energy %.0f, security %.0f)",
		a.Score.Weighted, a.Score.Performance, a.Score.Energy, a.Score.Security)
	for _, n := range e.Nodes {
		if n.Target == a.Target {
			for _, p := range n.Preferred {
				text += fmt.Sprintf(", %s %+.0f", p.Name, p.Points)
			}
			break
		}
	}
	return fmt.Sprintf("%s; %d of %d nodes could take it", text, e.Fit, len(e.Nodes)+e.Omitted)
}
