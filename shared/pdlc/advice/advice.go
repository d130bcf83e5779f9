// Package advice trains the agents of package balance, keeps them with how they did, and recommends nodes for the components of
// applications. Placement reads the recommendations (shared/match).
package advice

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/littoral-project/littoral/shared/application"
	"github.com/littoral-project/littoral/shared/pdlc/balance"
	"github.com/littoral-project/littoral/shared/problem"
	"github.com/littoral-project/littoral/shared/store"
)

// Agent is one that was trained.
type Agent struct {
	Name      string           `json:"name"`
	Chosen    bool             `json:"chosen"`
	Options   balance.Options  `json:"options"`
	Results   []balance.Result `json:"results"` // of all agents, beside greedy and the optimum
	TrainedAt time.Time        `json:"trained_at"`
}

const (
	selectAgents = `select name, chosen, options, results, trained_at from pdlc_agents order by name`

	upsertAgent = `insert into pdlc_agents (name, chosen, options, results, weights) values ($1, $2, $3, $4, $5)
on conflict (name) do update set chosen = excluded.chosen, options = excluded.options, results = excluded.results,
weights = excluded.weights, trained_at = now()`

	selectChosen = `select name, weights from pdlc_agents where chosen order by name limit 1`

	selectMachines = `select cluster || '/' || node, cores, memory, coalesce(cpu_percent, 0), coalesce(memory_percent, 0)
from topology_nodes where cores > 0 and memory > 0 and schedulable is not false order by 1`

	deleteFormer = `delete from pdlc_recommendations where application = $1 and not component = any($2)`

	upsertRecommendation = `insert into pdlc_recommendations (application, component, agent, nodes) values ($1, $2, $3, $4)
on conflict (application, component) do update set agent = excluded.agent, nodes = excluded.nodes, at = now()`

	selectRecommendations = `select component, agent, nodes, at from pdlc_recommendations where application = $1 order by component`
)

// Agents lists those that were trained.
func Agents(ctx context.Context, q store.Querier) ([]Agent, error) {
	return store.Collect(ctx, q, "read agents", pgx.RowToStructByPos[Agent], selectAgents)
}

const (
	judged       = 20 // worlds
	mostEpisodes = 1000
	largest      = 5_000 // ways that the optimum looks at, roughly
)

// Train trains all agents, lets them play worlds that they have not seen beside a greedy rule and the optimum, and stores them. The
// one with the greatest reward is chosen if it beats the greedy rule. The error is Invalid for options that are out of bounds.
func Train(ctx context.Context, db *store.DB, o balance.Options) ([]Agent, error) {
	o.Episodes = cmp.Or(o.Episodes, 320)
	o.Size.Machines, o.Size.Pods = cmp.Or(o.Size.Machines, 3), cmp.Or(o.Size.Pods, 6)
	var faults problem.Faults
	if o.Episodes < 16 || o.Episodes > mostEpisodes {
		faults.Add("episodes", 0, "must be 16 to %d", mostEpisodes)
	}
	if o.Size.Machines < 2 || o.Size.Machines > 20 || o.Size.Pods < 1 || o.Size.Pods > 30 {
		faults.Add("size", 0, "must be 2 to 20 machines and 1 to 30 pods")
	}
	if err := faults.Err("the training is not understood"); err != nil {
		return nil, err
	}
	agents, texts := map[string]balance.Agent{}, map[string][]byte{}
	for _, name := range balance.Names {
		a, err := balance.Train(ctx, name, o)
		if err != nil {
			return nil, err
		}
		if agents[name] = a; err == nil {
			texts[name], err = balance.Encode(a)
		}
		if err != nil {
			return nil, err
		}
	}
	seeds := make([]uint64, judged)
	for i := range seeds {
		seeds[i] = o.Seed + 1 + uint64(i)
	}
	results := balance.Compare(agents, balance.Names, o.Size, seeds, ways(o.Size) <= largest)
	chosen := balance.Chosen(results)
	err := db.Tx(ctx, func(ctx context.Context, tx *store.Tx) error {
		for _, name := range []string{balance.A3C, balance.DQN, balance.PPO} { // in the order of their rows
			if _, err := tx.Exec(ctx, upsertAgent, name, name == chosen, o, results, texts[name]); err != nil {
				return store.Classify(err)
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return Agents(ctx, db)
}

func ways(s balance.Size) int {
	n := 1
	for range s.Pods {
		if n *= s.Machines + 1; n > largest {
			return n
		}
	}
	return n
}

// Recommendation is what nodes are worth for a component.
type Recommendation struct {
	Component string             `json:"component"`
	Agent     string             `json:"agent"` // that recommends; greedy where none is better
	Nodes     map[string]float64 `json:"nodes"` // by cluster/node, 0 to 1; what is not there is worth nothing
	At        time.Time          `json:"at"`
}

// Recommendations are those for an application.
func Recommendations(ctx context.Context, q store.Querier, id uuid.UUID) ([]Recommendation, error) {
	return store.Collect(ctx, q, "read recommendations", pgx.RowToStructByPos[Recommendation], selectRecommendations, id)
}

// mostNodes bounds how many nodes an agent looks at for each pod.
const mostNodes = 2000

// Recommend values the nodes of the taxonomy for each component of an application, in the order of its description, and stores that.
// The error is NotFound for an application that is not there, Unavailable without telemetry.
func Recommend(ctx context.Context, tx *store.Tx, id uuid.UUID) ([]Recommendation, error) {
	a, err := application.Get(ctx, tx, id)
	if err != nil {
		return nil, err
	}
	app, err := a.Parsed()
	if err != nil {
		return nil, err
	}
	agent, name, err := chosen(ctx, tx)
	if err != nil {
		return nil, err
	}
	names, w, err := world(ctx, tx)
	if err != nil {
		return nil, err
	}
	var components []string
	for i := range app.Components {
		need := app.Components[i].Requirements
		w.Pods = append(w.Pods, balance.Pod{CPU: float64(need.CPUMilli) / 1000, RAM: float64(need.MemoryBytes)})
		components = append(components, app.Components[i].Name)
	}
	if _, err := tx.Exec(ctx, deleteFormer, id, components); err != nil {
		return nil, store.Classify(err)
	}
	for i, values := range balance.Recommend(w, agent) {
		nodes := map[string]float64{}
		for n, v := range values {
			if v > 0 {
				nodes[names[n]] = v
			}
		}
		if _, err := tx.Exec(ctx, upsertRecommendation, id, components[i], name, nodes); err != nil {
			return nil, store.Classify(err)
		}
	}
	return Recommendations(ctx, tx, id)
}

// chosen is the agent that recommends.
func chosen(ctx context.Context, q store.Querier) (balance.Agent, string, error) {
	var name string
	var weights json.RawMessage
	err := q.QueryRow(ctx, selectChosen).Scan(&name, &weights)
	if errors.Is(err, pgx.ErrNoRows) {
		return balance.Greedy{}, "greedy", nil
	}
	if err != nil {
		return nil, "", fmt.Errorf("read the agent: %w", err)
	}
	agent, err := balance.Decode(weights)
	return agent, name, err
}

// world is the taxonomy as an agent sees it.
func world(ctx context.Context, q store.Querier) (names []string, w *balance.World, err error) {
	type machine struct {
		Name               string
		Cores, Memory      float64
		CPU, MemoryPercent float64
	}
	all, err := store.Collect(ctx, q, "read nodes", pgx.RowToStructByPos[machine], selectMachines)
	switch {
	case err != nil:
		return nil, nil, err
	case len(all) == 0:
		return nil, nil, problem.New(problem.Unavailable, "no node with cores and memory is known yet")
	case len(all) > mostNodes:
		return nil, nil, problem.New(problem.Invalid, "%d nodes are more than the %d that an agent looks at", len(all), mostNodes)
	}
	w = &balance.World{WeightCPU: 0.5}
	for _, m := range all {
		names = append(names, m.Name)
		w.Machines = append(w.Machines, balance.Machine{
			CPU: m.Cores, RAM: m.Memory, UsedCPU: m.Cores * m.CPU / 100, UsedRAM: m.Memory * m.MemoryPercent / 100,
		})
	}
	return names, w, nil
}
