package cli

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/littoral-project/littoral/shared/api"
	"github.com/littoral-project/littoral/shared/history/recorded"
	"github.com/littoral-project/littoral/shared/placement"
)

// decision is a placement decision as it was stored with the application's history.
type decision struct {
	ID       int64              `json:"id"` // of its entry in the history
	At       time.Time          `json:"at"`
	Cause    string             `json:"cause"`
	TraceID  string             `json:"traceId,omitempty"`
	Decision placement.Decision `json:"decision"`
}

// maxDecisions is how many decisions are searched for the present ones.
const maxDecisions = 1000

// decisions returns the last decision about each component of the application, oldest first.
func (s *session) decisions(a *api.Application) ([]decision, error) {
	entries, err := s.client.History(s.ctx, api.HistoryQuery{
		App: a.ID, After: -1, Limit: maxDecisions, Events: []string{recorded.ApplicationPlaced, recorded.ApplicationUnplaced},
	})
	if err != nil {
		return nil, err
	}
	open := map[string]bool{} // components whose decision has not been found yet
	for _, j := range a.Components() {
		open[j.Component()] = true
	}
	holding := []decision{}
	for _, e := range slices.Backward(entries) {
		d := decision{ID: e.ID, At: e.At, Cause: e.Cause, TraceID: e.TraceID}
		if len(e.Data) == 0 || json.Unmarshal(e.Data, &d.Decision) != nil {
			continue // made without telemetry, or written by another version
		}
		holds := false
		for i := range d.Decision.Why {
			if name := d.Decision.Why[i].Component; open[name] {
				delete(open, name)
				holds = true
			}
		}
		if holds {
			holding = append(holding, d)
		}
	}
	slices.Reverse(holding)
	return holding, nil
}

// reasons finds the last decision about the component, nil if none is known.
func reasons(component string, decisions []decision) (*placement.Why, *decision) {
	for i := range slices.Backward(decisions) {
		d := &decisions[i]
		for w := range d.Decision.Why {
			if why := &d.Decision.Why[w]; why.Component == component {
				return why, d
			}
		}
	}
	return nil, nil
}

// describeReasons says why the component is where it is, or why it has no place, from its last decision.
func (s *session) describeReasons(j *api.Job, decisions []decision) {
	if j.Cleans != "" {
		return
	}
	why, d := reasons(j.Component(), decisions)
	if why == nil {
		s.fields("    ", [][2]string{{"Why", waitsFor(j)}})
		return
	}
	list := [][2]string{{"Why", why.Summary}, {"Decided", s.age(d.At) + " ago, because " + or(d.Decision.Because)}}
	if why.Placed && len(why.Nodes) > 0 && why.Nodes[0].Chosen {
		list = append(list, won(&why.Nodes[0])...)
		list = append(list, [2]string{"Runner-up", runnerUp(why)})
	}
	if r := why.Relaxation; r != nil && !why.Placed {
		changes := make([]string, len(r.Changes))
		for i, c := range r.Changes {
			changes[i] = c.Detail
		}
		list = append(list, [2]string{"Would fit", "on " + place(r.Target) + ": " + strings.Join(changes, "; ")})
	}
	list = append(list, [2]string{"Refused", refused(why)})
	s.fields("    ", list)
}

// waitsFor returns why a job without a decision waits: there is no telemetry yet.
func waitsFor(j *api.Job) string {
	if j.Targets.Cluster != "" {
		return "" // decided too long ago
	}
	for _, c := range j.Resource.Conditions {
		if c.Reason == "AwaitingForTarget" {
			return c.Message
		}
	}
	return ""
}

// won returns the terms of the chosen node's score.
func won(n *placement.NodeExplanation) [][2]string {
	score := fmt.Sprintf("%.1f (performance %.1f, energy %.1f, security %.1f)",
		n.Score.Weighted, n.Score.Performance, n.Score.Energy, n.Score.Security)
	near := make([]string, len(n.Affinity))
	for i, t := range n.Affinity {
		near[i] = fmt.Sprintf("%.1f with %s (%s)", t.Points, t.With, t.Closeness)
	}
	list := [][2]string{{"Score", score}, {"Affinity", strings.Join(near, ", ")}}
	for _, p := range n.Preferred {
		list = append(list, [2]string{capitalised(p.Name), fmt.Sprintf("%.1f", p.Points)})
	}
	if n.Move != 0 {
		list = append(list, [2]string{"Move", fmt.Sprintf("%.1f for leaving its place", -n.Move)})
	}
	return list
}

// capitalised begins with a capital letter.
func capitalised(word string) string {
	if word == "" {
		return ""
	}
	return strings.ToUpper(word[:1]) + word[1:]
}

// runnerUp shows the best other node with what it would have earned.
func runnerUp(w *placement.Why) string {
	if w.RunnerUp == nil {
		return ""
	}
	text := fmt.Sprintf("%s, %.1f points behind", place(*w.RunnerUp), w.Margin)
	if w.Margin < 0 {
		text = fmt.Sprintf("%s, %.1f points ahead, at the cost of other components", place(*w.RunnerUp), -w.Margin)
	}
	for i := range w.Nodes {
		if n := &w.Nodes[i]; n.Target == *w.RunnerUp {
			var near float64
			for _, t := range n.Affinity {
				near += t.Points
			}
			text += fmt.Sprintf(" (score %.1f, affinity %.1f, move %.1f)", n.Score.Weighted, near, 0-n.Move)
		}
	}
	return text
}

// refused says how many nodes each rule excluded, with the first as an example.
func refused(w *placement.Why) string {
	if w.Fit >= w.Of {
		return ""
	}
	rules := slices.SortedFunc(maps.Keys(w.Rejections), func(a, b placement.Rule) int {
		return cmp.Or(cmp.Compare(w.Rejections[b], w.Rejections[a]), cmp.Compare(a, b))
	})
	counts := make([]string, len(rules))
	for i, r := range rules {
		counts[i] = fmt.Sprintf("%s %d", r, w.Rejections[r])
	}
	text := fmt.Sprintf("%d of %d nodes", w.Of-w.Fit, w.Of)
	if len(counts) > 0 {
		text += ": " + strings.Join(counts, ", ")
	}
	for i := range w.Nodes {
		if n := &w.Nodes[i]; len(n.Failures) > 0 {
			return fmt.Sprintf("%s; %s %s", text, place(n.Target), n.Failures[0].Detail)
		}
	}
	return text
}

// describeDecisions shows how good the present decisions are as a whole.
func (s *session) describeDecisions(a *api.Application, decisions []decision) error {
	if len(decisions) == 0 {
		return nil
	}
	fmt.Fprintln(s.out, "\nDecisions:")
	t := s.newTable(s.whenHeader(), "DECIDED", "PLACED", "POINTS", "AT MOST", "GAP", "BECAUSE", "CAUSE")
	t.indent = "  "
	var rows [][]string
	for i := range decisions {
		d := &decisions[i].Decision
		names := make([]string, len(d.Why))
		for w := range d.Why {
			names[w] = d.Why[w].Component
		}
		gap := fmt.Sprintf("%.2f %%", 100*d.Gap)
		if d.Exact {
			gap = "none, proven"
		}
		rows = append(rows, []string{
			s.when(decisions[i].At), strings.Join(names, ", "), fmt.Sprint(d.Placed), fmt.Sprintf("%.1f", d.Objective),
			fmt.Sprintf("%.1f", d.Bound), gap, or(d.Because), or(decisions[i].Cause),
		})
	}
	if err := t.write(rows...); err != nil {
		return err
	}
	s.text("  (every node with its numbers, as of now: littoral explain app %s)", a.ID)
	return nil
}
