package main

import (
	"fmt"
	"math/rand/v2"

	"github.com/littoral-project/littoral/shared/placement"
)

// nodes returns nodes in several clusters of one orchestrator, each with its own capacity, load and scores.
func nodes(count, clusters int, r *rand.Rand) []placement.Node {
	out := make([]placement.Node, count)
	for i := range out {
		cpu := int64(4000 << r.IntN(5)) // 4 to 64 cores
		memory := cpu / 1000 << (30 + r.IntN(3))
		sca, watts := float64(30+r.IntN(71)), 20+r.Float64()*200
		out[i] = placement.Node{
			Orchestrator: "ocm", Cluster: fmt.Sprintf("k%03d", i%clusters), Name: fmt.Sprintf("n%05d", i),
			Engine: "Kubernetes", Architecture: "amd64", CPU: cpu, Memory: memory,
			OtherCPU: int64(float64(cpu) * 0.7 * r.Float64()), OtherMemory: int64(float64(memory) * 0.7 * r.Float64()),
			SCA: &sca, EnergyWatts: &watts, Labels: map[string]string{"zone": fmt.Sprintf("z%d", i%clusters%5)},
		}
	}
	return out
}

// spreadAndChained is case a: 10 applications of 30 replicas, each replica a chain of 3 components that communicate. At
// most a tenth of a component's replicas may share a cluster.
func spreadAndChained() placement.Problem {
	r := rand.New(rand.NewPCG(1, 1))
	p := placement.Problem{Nodes: nodes(5_000, 25, r)}
	for a := range 10 {
		for tier := range 3 {
			cpu, memory := int64(250*(1+r.IntN(8))), int64(1+r.IntN(8))<<28
			spread := placement.Spread{By: "cluster", MaxShare: 0.1}
			for k := range 30 {
				id := fmt.Sprintf("app%d/tier%d/%d", a, tier, k)
				p.Components = append(p.Components, placement.Component{
					ID: id, Engines: []string{"kubernetes"}, CPU: cpu, Memory: memory,
				})
				spread.Components = append(spread.Components, id)
				if tier > 0 {
					p.Affinities = append(p.Affinities, placement.Affinity{
						A: fmt.Sprintf("app%d/tier%d/%d", a, tier-1, k), B: id, Weight: placement.DefaultAffinityWeight,
					})
				}
			}
			p.Spreads = append(p.Spreads, spread)
		}
	}
	return p
}

// application is case b: different components that communicate along a tree, the same on any number of nodes.
func application(components, count int) placement.Problem {
	p := placement.Problem{
		Nodes: nodes(count, max(1, count/200), rand.New(rand.NewPCG(2, 2))), OneOrchestrator: true,
	}
	r := rand.New(rand.NewPCG(2, 3))
	for i := range components {
		id := fmt.Sprintf("c%02d", i)
		p.Components = append(p.Components, placement.Component{
			ID: id, Engines: []string{"kubernetes"}, CPU: int64(100 * (1 + r.IntN(10))), Memory: int64(1+r.IntN(8)) << 26,
		})
		if i > 0 {
			p.Affinities = append(p.Affinities, placement.Affinity{
				A: fmt.Sprintf("c%02d", r.IntN(i)), B: id, Weight: placement.DefaultAffinityWeight,
			})
		}
	}
	return p
}

// displaced is case c: components of one size and 20 kinds, which weight the scores differently, and nodes with one to
// three free slots, of which some are lost.
func displaced() placement.Problem {
	r := rand.New(rand.NewPCG(3, 3))
	p := placement.Problem{Nodes: nodes(12_500, 50, r)}
	for i := range p.Nodes {
		n := &p.Nodes[i]
		n.CPU, n.Memory = 32_000, 64<<30
		n.OtherCPU, n.OtherMemory = 32_000-int64(1+r.IntN(3))*1000, int64(float64(n.Memory)*0.7*r.Float64())
	}
	for k := range 20 {
		p.Groups = append(p.Groups, placement.Group{
			ID:      fmt.Sprintf("kind%02d", k),
			Weights: placement.Weights{Performance: r.Float64(), Energy: r.Float64(), Security: r.Float64()},
		})
	}
	for i := range 10_000 {
		p.Components = append(p.Components, placement.Component{
			ID: fmt.Sprintf("t%05d", i), Group: p.Groups[i%20].ID, CPU: 1000, Memory: 1 << 28,
		})
	}
	return p
}

// lose marks one node in a hundred as lost.
func lose(p *placement.Problem) {
	r := rand.New(rand.NewPCG(4, 4))
	for range len(p.Nodes) / 100 {
		p.Nodes[r.IntN(len(p.Nodes))].Unschedulable = true
	}
}

// violations counts the rules that a plan breaks, computed from the problem only.
func violations(p placement.Problem, plan placement.Plan) int {
	number := map[placement.Target]int{}
	for i := range p.Nodes {
		number[p.Nodes[i].Target()] = i
	}
	cpu, memory := make([]int64, len(p.Nodes)), make([]int64, len(p.Nodes))
	at, broken := map[string]int{}, 0
	for i, a := range plan.Assignments {
		c := &p.Components[i]
		k, known := number[a.Target]
		if a.Component != c.ID || (a.Placed && (!known || p.Nodes[k].Unschedulable)) {
			broken++
			continue
		}
		if a.Placed {
			at[c.ID] = k
			cpu[k] += c.CPU
			memory[k] += c.Memory
		}
	}
	for k := range p.Nodes {
		n := &p.Nodes[k]
		if cpu[k] > n.CPU-n.OtherCPU || memory[k] > n.Memory-n.OtherMemory {
			broken++
		}
	}
	for _, s := range p.Spreads {
		in := map[string]int{}
		most := max(1, int(s.MaxShare*float64(len(s.Components))+1e-9))
		for _, id := range s.Components {
			if k, placed := at[id]; placed {
				if in[p.Nodes[k].Cluster]++; in[p.Nodes[k].Cluster] > most {
					broken++
				}
			}
		}
	}
	return broken
}
