package match

import "github.com/littoral-project/littoral/shared/placement"

// What a decision keeps of its explanation.
const (
	keptNodes  = 5
	keptPrices = 10
)

// Decision is what is stored with a placement: the plan, with objective, bound, gap and prices, and for each component
// why it is where it is. Where several applications were placed together, the totals are of all of them.
type Decision struct {
	placement.Plan
	Why []Why `json:"why"`
}

// Why explains one component: its best nodes, the chosen one first.
type Why struct {
	Component  string                      `json:"component"`
	Summary    string                      `json:"summary"`
	RunnerUp   *placement.Target           `json:"runnerUp,omitempty"`
	Margin     float64                     `json:"margin,omitempty"`
	Rejections map[placement.Rule]int      `json:"rejections,omitempty"`
	Relaxation *placement.Relaxation       `json:"relaxation,omitempty"`
	Nodes      []placement.NodeExplanation `json:"nodes"`
	Omitted    int                         `json:"omitted,omitempty"`
}

func newDecision(plan placement.Plan, ex placement.Explanation) Decision {
	d := Decision{Plan: plan}
	d.Prices = d.Prices[:min(len(d.Prices), keptPrices)]
	for i := range ex.Components {
		c := &ex.Components[i]
		kept := min(len(c.Nodes), keptNodes)
		d.Why = append(d.Why, Why{
			Component: c.Component, Summary: c.Summary, RunnerUp: c.RunnerUp, Margin: c.Margin, Rejections: c.Rejections,
			Relaxation: c.Relaxation, Nodes: c.Nodes[:kept], Omitted: len(c.Nodes) - kept + c.Omitted,
		})
	}
	return d
}
