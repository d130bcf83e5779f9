package balance

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"sync"
)

// The agents.
const (
	DQN = "dqn"
	PPO = "ppo"
	A3C = "a3c"
)

// Names are those of the agents that learn.
var Names = []string{DQN, PPO, A3C}

// Options of a training.
type Options struct {
	Seed     uint64 `json:"seed"`
	Episodes int    `json:"episodes"`
	Size     Size   `json:"size"`
}

// scaled makes rewards small enough to learn from.
const scaled = 0.05

// gamma is what a reward one decision later counts.
const gamma = 0.99

// Train makes an agent.
func Train(ctx context.Context, name string, o Options) (Agent, error) {
	r := rand.New(rand.NewPCG(o.Seed, 0x62616c616e6365))
	switch name {
	case DQN:
		return trainDQN(ctx, o, r)
	case PPO:
		return trainPPO(ctx, o, r)
	case A3C:
		return trainA3C(ctx, o, r)
	}
	return nil, fmt.Errorf("there is no agent %q: %v", name, Names)
}

// Encode writes an agent, Decode reads it.
func Encode(a Agent) ([]byte, error) { return json.Marshal(a) }

// Decode reads an agent that was trained.
func Decode(data []byte) (Agent, error) {
	var n net
	if err := json.Unmarshal(data, &n); err != nil {
		return nil, fmt.Errorf("read the agent: %w", err)
	}
	if len(n.W) != weights {
		return nil, fmt.Errorf("the agent has %d weights, not %d", len(n.W), weights)
	}
	return &n, nil
}

// choices are the nodes that the next pod fits on, or Hold where it fits on none, with what a network sees of each.
func choices(s *State) (nodes []int, seen [][features]float64) {
	for n := range s.used {
		if s.Fits(n) {
			nodes, seen = append(nodes, n), append(seen, see(s, n))
		}
	}
	if len(nodes) == 0 {
		return []int{Hold}, [][features]float64{see(s, Hold)}
	}
	return nodes, seen
}

// moment is a decision that was made, for the memory of DQN.
type moment struct {
	seen   [features]float64
	reward float64
	next   [][features]float64 // what could be done then; none at the end
}

// trainDQN learns what a decision is worth with all that follows (Mnih et al. 2015): a memory, and a second network that follows
// slowly, from which the worth of what follows is taken.
func trainDQN(ctx context.Context, o Options, r *rand.Rand) (Agent, error) {
	online := newNet(r)
	target, opt, grad := online.clone(), newAdam(0.003), make([]float64, weights)
	var memory []moment
	for episode := range o.Episodes {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		explore := max(0.05, 1-float64(episode)/(0.6*float64(o.Episodes)))
		s := Random(r, o.Size).Begin()
		nodes, seen := choices(s)
		for !s.Done() {
			k := r.IntN(len(nodes))
			if r.Float64() >= explore {
				k = highest(online, seen)
			}
			m := moment{seen: seen[k], reward: scaled * s.Step(nodes[k])}
			if !s.Done() {
				nodes, seen = choices(s)
				m.next = seen
			}
			memory = append(memory, m)
			if len(memory) > 20_000 {
				memory = memory[1000:]
			}
			if len(memory) < 64 {
				continue
			}
			for range 32 {
				m := &memory[r.IntN(len(memory))]
				want := m.reward
				if len(m.next) > 0 {
					v, _ := target.value(m.next[highest(online, m.next)])
					want += gamma * v
				}
				v, h := online.value(m.seen)
				online.learn(m.seen, h, max(-1, min(1, v-want))/32, grad)
			}
			opt.step(online, grad)
			for i := range target.W {
				target.W[i] += 0.01 * (online.W[i] - target.W[i])
			}
		}
	}
	return online, nil
}

func highest(n *net, seen [][features]float64) int {
	best, most := 0, math.Inf(-1)
	for k := range seen {
		if v, _ := n.value(seen[k]); v > most {
			best, most = k, v
		}
	}
	return best
}

// decision is one of an episode, for PPO and A3C.
type decision struct {
	seen   [][features]float64
	state  [features]float64 // what the critic sees
	taken  int
	p      float64 // the probability it had
	reward float64
	worth  float64 // of it and what followed, as it came
	gain   float64 // over what the critic expected
}

// draw chooses by the probabilities of a policy.
func draw(policy *net, seen [][features]float64, r *rand.Rand) (taken int, p []float64) {
	p = probabilities(policy, seen)
	at := r.Float64()
	for k := range p {
		if at -= p[k]; at < 0 {
			return k, p
		}
	}
	return len(p) - 1, p
}

func probabilities(policy *net, seen [][features]float64) []float64 {
	p := make([]float64, len(seen))
	most := math.Inf(-1)
	for k := range seen {
		p[k], _ = policy.value(seen[k])
		most = max(most, p[k])
	}
	sum := 0.0
	for k := range p {
		p[k] = math.Exp(p[k] - most)
		sum += p[k]
	}
	for k := range p {
		p[k] /= sum
	}
	return p
}

// episode plays one, and says what each decision was worth.
func episode(policy, critic *net, w *World, r *rand.Rand) []decision {
	s := w.Begin()
	var all []decision
	for !s.Done() {
		d := decision{state: see(s, Hold)}
		var nodes []int
		nodes, d.seen = choices(s)
		var p []float64
		d.taken, p = draw(policy, d.seen, r)
		d.p = p[d.taken]
		d.reward = scaled * s.Step(nodes[d.taken])
		all = append(all, d)
	}
	worth := 0.0
	for i := len(all) - 1; i >= 0; i-- {
		worth = all[i].reward + gamma*worth
		all[i].worth = worth
		expected, _ := critic.value(all[i].state)
		all[i].gain = worth - expected
	}
	return all
}

// push adds to grad what makes a decision more probable by the weight, and keeps some curiosity.
func push(policy *net, d *decision, weight float64, grad []float64) {
	p := probabilities(policy, d.seen)
	entropy := 0.0
	for _, v := range p {
		entropy -= v * math.Log(v+1e-12)
	}
	for k := range d.seen {
		err := weight * p[k]
		if k == d.taken {
			err -= weight
		}
		err += 0.01 * p[k] * (math.Log(p[k]+1e-12) + entropy)
		_, h := policy.value(d.seen[k])
		policy.learn(d.seen[k], h, err, grad)
	}
}

// judge adds to grad what makes the critic expect what came.
func judge(critic *net, d *decision, weight float64, grad []float64) {
	v, h := critic.value(d.state)
	critic.learn(d.state, h, weight*(v-d.worth), grad)
}

const (
	together = 16  // episodes of one step of PPO
	epochs   = 4   // times that they are gone through
	clip     = 0.2 // by how much a probability may change in a step
	workers  = 4   // of A3C
)

// trainPPO learns a policy by steps that are kept small (Schulman et al. 2017).
func trainPPO(ctx context.Context, o Options, r *rand.Rand) (Agent, error) {
	policy, critic := newNet(r), newNet(r)
	step, follow := newAdam(0.005), newAdam(0.01)
	grad, error2 := make([]float64, weights), make([]float64, weights)
	for range max(1, o.Episodes/together) {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		var all []decision
		for range together {
			all = append(all, episode(policy, critic, Random(r, o.Size), r)...)
		}
		for range epochs {
			for i := range all {
				d := &all[i]
				ratio := probabilities(policy, d.seen)[d.taken] / d.p
				weight := d.gain * ratio
				if d.gain > 0 && ratio > 1+clip || d.gain < 0 && ratio < 1-clip {
					weight = 0
				}
				push(policy, d, weight/float64(len(all))*together, grad)
				judge(critic, d, 1/float64(len(all))*together, error2)
			}
			step.step(policy, grad)
			follow.step(critic, error2)
		}
	}
	return policy, nil
}

// trainA3C learns a policy from workers that play at once (Mnih et al. 2016). Their gradients are applied in the order of the
// workers, so that a training can be repeated; the original applies them as they come.
func trainA3C(ctx context.Context, o Options, r *rand.Rand) (Agent, error) {
	policy, critic := newNet(r), newNet(r)
	step, follow := newAdam(0.005), newAdam(0.01)
	randoms := make([]*rand.Rand, workers)
	for i := range randoms {
		randoms[i] = rand.New(rand.NewPCG(r.Uint64(), uint64(i)))
	}
	for range max(1, o.Episodes/workers) {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		var played [workers][]decision
		var group sync.WaitGroup
		for i := range workers {
			group.Go(func() { played[i] = episode(policy, critic, Random(randoms[i], o.Size), randoms[i]) })
		}
		group.Wait()
		for i := range played {
			grad, error2 := make([]float64, weights), make([]float64, weights)
			for k := range played[i] {
				push(policy, &played[i][k], played[i][k].gain, grad)
				judge(critic, &played[i][k], 1, error2)
			}
			step.step(policy, grad)
			follow.step(critic, error2)
		}
	}
	return policy, nil
}

// Result is how an agent does on worlds that it has not seen.
type Result struct {
	Agent  string  `json:"agent"`
	Std    float64 `json:"std"`    // mean standard deviation of the loads
	Placed float64 `json:"placed"` // mean share of the pods that have a place
	Reward float64 `json:"reward"` // mean
	Wins   int     `json:"wins"`   // worlds in which its reward is greater than that of greedy
	Worlds int     `json:"worlds"`
}

// Compare lets agents play the same worlds, one for each seed. best is Optimum, where the worlds are small enough to ask for it.
func Compare(agents map[string]Agent, names []string, size Size, seeds []uint64, optimum bool) []Result {
	out := make([]Result, 0, len(names)+2)
	add := func(name string, play func(w *World) *State) {
		res := Result{Agent: name, Worlds: len(seeds)}
		for _, seed := range seeds {
			w := Random(rand.New(rand.NewPCG(seed, 0x6a75646765)), size)
			s, greedy := play(w), Play(w, Greedy{})
			k := float64(len(seeds))
			res.Std += s.Std() / k
			res.Placed += float64(s.Placed) / float64(len(w.Pods)) / k
			res.Reward += s.Reward() / k
			if s.Reward() > greedy.Reward()+1e-9 {
				res.Wins++
			}
		}
		out = append(out, res)
	}
	add("greedy", func(w *World) *State { return Play(w, Greedy{}) })
	for _, name := range names {
		add(name, func(w *World) *State { return Play(w, agents[name]) })
	}
	if optimum {
		add("optimum", Optimum)
	}
	return out
}

// Chosen is the agent with the greatest reward that beats greedy; "greedy" when none does.
func Chosen(results []Result) string {
	best, reward := "greedy", math.Inf(-1)
	for _, r := range results {
		if r.Agent == "greedy" {
			reward = r.Reward
		}
	}
	for _, r := range results {
		if r.Agent != "greedy" && r.Agent != "optimum" && r.Reward > reward {
			best, reward = r.Agent, r.Reward
		}
	}
	return best
}
