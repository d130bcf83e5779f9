// Package solve answers the solver's interface of CODECO's scheduler (pb) by the placement engine: where workloads go, and by which
// network and path their channels.
//
// The objective is the sum of recommendations less costs and, for each workload that leaves its node, a penalty. Within it all that the
// interface names holds: capacities beside what is used, labels, bandwidth on media, classes and latencies. A workload's own use of the
// node that it is on counts as free for itself and its group.
package solve

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/littoral-project/littoral/shared/placement"
	"github.com/littoral-project/littoral/shared/problem"
	"github.com/littoral-project/littoral/shared/swm/solve/pb"
)

// Options are the options of a request, as JSON; all may be left out.
type Options struct {
	MigrationPenalty float64 `json:"migrationPenalty"` // of a workload that leaves its node; 0 = placement.DefaultMoveCost
	Budget           int64   `json:"budget"`           // work units of the whole search; 0 = until the time is over
}

// Message is what Reply.messages says, as JSON.
type Message struct {
	Objective float64 `json:"objective"` // recommendations less costs less penalties
	Bound     float64 `json:"bound"`     // no plan has more
	Gap       float64 `json:"gap"`
	Optimal   bool    `json:"optimal"` // by proof
	Work      int64   `json:"work"`    // units spent on this answer
}

const (
	firstBudget = 200_000 // work units of the first answer, and each further one has growth times as many
	growth      = 8

	// DefaultLimit is the time of a request that names none.
	DefaultLimit = 10 * time.Second
	// MaxLimit is the longest time that a request may take.
	MaxLimit = time.Minute
)

// Solve sends improving answers until one is optimal, or the time limit of the request or the context is over. The last one that was sent
// is the best. A request that cannot be met, or not be understood, gets one answer that is not feasible, with an error for each
// rule that is violated. The error is that of send or of the context.
func Solve(ctx context.Context, r *pb.Request, send func(*pb.Reply) error) error {
	limit := DefaultLimit
	if r.GetTimeLimit() > 0 {
		limit = min(time.Duration(r.GetTimeLimit())*time.Second, MaxLimit)
	}
	until := time.Now().Add(limit)
	m, options, err := read(r)
	if err != nil {
		return send(refusal(err))
	}
	most := cmp.Or(options.Budget, placement.MaxBudget)
	var best *placement.Plan
	var took time.Duration
	for budget := min(int64(firstBudget), most); ; budget = min(budget*growth, most) {
		m.problem.Budget = budget
		begun := time.Now()
		plan, err := placement.Place(m.problem)
		if err != nil {
			return send(refusal(err))
		}
		took = time.Since(begun)
		if better(&plan, best) {
			best = &plan
			if err := send(m.reply(&plan)); err != nil {
				return err
			}
		}
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case plan.Exact, budget >= most, time.Now().Add(growth * took).After(until): // the next would be too late
			return nil
		}
	}
}

// better reports whether a plan is worth sending: it is the first, places more, earns more, or proves more.
func better(plan, best *placement.Plan) bool {
	return best == nil || plan.Placed > best.Placed ||
		plan.Placed == best.Placed && (plan.Objective > best.Objective || plan.Exact && !best.Exact || plan.Bound < best.Bound && plan.Objective >= best.Objective)
}

// reply is a plan in the terms of the interface.
func (m *model) reply(plan *placement.Plan) *pb.Reply {
	answer := &pb.Reply{Assignment: &pb.Assignment{}, Feasible: plan.Placed == len(m.workloads) && len(m.errors) == 0, Errors: m.errors}
	worth := plan.Objective
	for i, a := range plan.Assignments {
		w := m.workloads[i]
		worth += m.shift[i]
		if !a.Placed {
			answer.Errors = append(answer.Errors, unplaced(w.id(), &a)...)
			continue
		}
		answer.Assignment.Workloads = append(answer.Assignment.Workloads, &pb.Assignment_Workload{
			Application: w.application, Workload: w.GetId(), Node: a.Target.Node, OldNode: w.GetNode(),
		})
	}
	where := map[string]string{}
	for _, w := range answer.Assignment.Workloads {
		where[w.Application+"/"+w.Workload] = w.Node
	}
	for i, c := range m.channels {
		given := m.routes[i]
		if given == nil {
			a := plan.Channels[m.placed[i]]
			if !a.Routed {
				continue
			}
			given = &route{network: a.Network, path: a.Path}
		}
		answer.Assignment.Channels = append(answer.Assignment.Channels, &pb.Assignment_Channel{
			Channel: c.GetId(), Network: given.network, Path: given.path, OldNetwork: c.GetNetwork(), OldPath: c.GetPath(),
			Source: where[c.GetSourceApplication()+"/"+c.GetSourceWorkload()],
			Target: where[c.GetTargetApplication()+"/"+c.GetTargetWorkload()],
		})
	}
	answer.Messages = encode(Message{worth, plan.Bound + worth - plan.Objective, plan.Gap, plan.Exact, plan.Work})
	return answer
}

func encode(m Message) string {
	text, err := json.Marshal(m)
	if err != nil {
		return "{}" // numbers of a plan are finite
	}
	return string(text)
}

// unplaced is an error for each rule that leaves a workload without a node.
func unplaced(id string, a *placement.Assignment) []*pb.Error {
	list := []*pb.Error{{Kind: "unplaced", Details: id + ": " + a.Reason}}
	for _, rule := range rules {
		if n := a.Rejections[rule]; n > 0 {
			list = append(list, &pb.Error{Kind: string(rule), Details: fmt.Sprintf("%s: excludes %d nodes", id, n)})
		}
	}
	return list
}

// rules are those that a request can be refused by, in order.
var rules = []placement.Rule{
	placement.RuleTarget, placement.RuleExcluded, placement.RuleLabel, placement.RuleCPU, placement.RuleMemory, placement.RuleChannel,
}

// refusal is the answer to a request that cannot be read.
func refusal(err error) *pb.Reply {
	answer := &pb.Reply{Assignment: &pb.Assignment{}, Messages: "{}"}
	var p *problem.Error
	if !errors.As(err, &p) {
		answer.Errors = []*pb.Error{{Kind: "request", Details: err.Error()}}
		return answer
	}
	for _, f := range p.Fields {
		answer.Errors = append(answer.Errors, &pb.Error{Kind: "request", Details: f.String()})
	}
	if len(p.Fields) == 0 {
		answer.Errors = []*pb.Error{{Kind: "request", Details: p.Detail}}
	}
	return answer
}
