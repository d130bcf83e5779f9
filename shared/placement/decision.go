package placement

import "slices"

// How much of an explanation a decision keeps.
const (
	keptNodes  = 5 // the best, and the first that failed
	keptPrices = 10
)

// Decision is the part of a plan that is stored: its totals with bound, gap and prices, and for each component that it
// decided on, why it is there. If several applications were placed together, the totals are of all of them.
type Decision struct {
	Because string `json:"because,omitempty"` // the reason for the decision, as half a sentence
	Plan
	Why []Why `json:"why"`
}

// Why explains the place of one component: its best nodes, the chosen one first, and one that was refused.
type Why struct {
	Component   string            `json:"component"`
	Placed      bool              `json:"placed"`
	Summary     string            `json:"summary"`
	Preferences map[string]string `json:"preferences,omitempty"`
	RunnerUp    *Target           `json:"runnerUp,omitempty"`
	Margin      float64           `json:"margin,omitempty"` // points that the runner-up is behind
	Rejections  map[Rule]int      `json:"rejections,omitempty"`
	Relaxation  *Relaxation       `json:"relaxation,omitempty"`
	Nodes       []NodeExplanation `json:"nodes"`
	Fit         int               `json:"fit"` // nodes that could take it, including the chosen one
	Of          int               `json:"of"`  // nodes in total
	Omitted     int               `json:"omitted,omitempty"`
}

// Decide keeps the essential parts of a plan and its explanation. decided reports by index which components it decided
// on: the others already had their places.
func Decide(because string, plan Plan, ex Explanation, decided func(i int) bool) Decision {
	d := Decision{Because: because, Plan: plan, Why: []Why{}}
	d.Prices = d.Prices[:min(len(d.Prices), keptPrices)]
	for i := range ex.Components {
		if !decided(i) {
			continue
		}
		c := &ex.Components[i]
		nodes := slices.Clip(c.Nodes[:min(len(c.Nodes), keptNodes)])
		for _, n := range c.Nodes[len(nodes):] {
			if len(n.Failures) > 0 {
				nodes = append(nodes, n)
				break
			}
		}
		d.Why = append(d.Why, Why{
			Component: c.Component, Placed: c.Placed, Summary: c.Summary, Preferences: c.Preferences, RunnerUp: c.RunnerUp, Margin: c.Margin,
			Rejections: c.Rejections, Relaxation: c.Relaxation, Nodes: nodes, Fit: c.Fit,
			Of: len(c.Nodes) + c.Omitted, Omitted: len(c.Nodes) - len(nodes) + c.Omitted,
		})
	}
	return d
}
