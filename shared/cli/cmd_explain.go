package cli

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/littoral-project/littoral/shared/api"
	"github.com/littoral-project/littoral/shared/descriptor"
	"github.com/littoral-project/littoral/shared/placement"
)

type explainCommand struct {
	File string   `short:"f" placeholder:"FILE" help:"Descriptor; - reads it from standard input."`
	App  []string `arg:"" optional:"" name:"app" complete:"app" help:"Or an application: ID, app/ID or app ID."`
	outputFlag
}

// Run explains a descriptor or an application.
func (c *explainCommand) Run(s *session) error {
	answer, name, err := c.ask(s)
	if err != nil {
		return err
	}
	s.warn(answer.Warnings)
	s.derived(answer.Derived)
	names := namesOf("component", answer.Explanation.Components, func(e *placement.ComponentExplanation) string { return name + "/" + e.Component })
	if done, err := s.said(answer, names...); done {
		return err
	}
	for i := range answer.Explanation.Components {
		if err := s.explainComponent(&answer.Explanation.Components[i]); err != nil {
			return err
		}
	}
	return s.explainTotals(&answer.Explanation)
}

// explainTotals shows what scarce capacity is worth and how good the whole placement is.
func (s *session) explainTotals(e *placement.Explanation) error {
	if len(e.Prices) > 0 {
		t := s.newTable("", "SCARCE", "AT", "WORTH")
		var rows [][]string
		shown := e.Prices
		if !s.wide() {
			shown = shown[:min(len(shown), maxPrices)]
		}
		for _, p := range shown {
			what, at := strings.TrimSpace(string(p.Rule)+" "+p.Key), p.Target.Cluster
			if p.Target.Node != "" {
				at = place(p.Target)
			}
			rows = append(rows, []string{"", what, at, fmt.Sprintf("%.1f points per %s", p.Points, p.Unit)})
		}
		if err := t.write(rows...); err != nil {
			return err
		}
		fmt.Fprintln(s.out)
	}
	proof := fmt.Sprintf("at most %.1f is possible, a gap of %.2f %%", e.Bound, 100*e.Gap)
	if e.Exact {
		proof = "proven best"
	}
	s.text("%d of %d placed; %.1f points in all, %s.", e.Placed, len(e.Components), e.Objective, proof)
	return nil
}

// maxPrices is how many prices the table shows; -o wide and -o json have all.
const maxPrices = 10

// ask returns the explanation, and the name of the application.
func (c *explainCommand) ask(s *session) (*api.Answer, string, error) {
	app := c.App
	if len(app) == 2 && slices.Contains([]string{"app", "apps"}, app[0]) {
		app = app[1:]
	}
	switch {
	case c.File != "" && len(app) == 0:
		document, err := s.document(c.File)
		if err != nil {
			return nil, "", err
		}
		answer, err := s.client.Explain(s.ctx, document)
		name := ""
		if header, faulty := descriptor.ParseHeader(document, nil); faulty == nil { // the server says better what is wrong with it
			name = header.Name
		}
		return answer, name, err
	case c.File == "" && len(app) == 1:
		a, err := s.application(s.ctx, app[0])
		if err != nil {
			return nil, "", err
		}
		answer, err := s.client.ExplainApplication(s.ctx, a.ID)
		return answer, a.Name, s.unexplained(err)
	}
	return nil, "", usagef("explain either a descriptor (-f FILE) or an application (ID, or app ID)")
}

func (s *session) unexplained(err error) error {
	var refused *api.Error
	if errors.As(err, &refused) && refused.Status == 503 {
		return advise(err, "Without telemetry nothing can be placed. Look at: littoral get nodes")
	}
	return err
}

func (s *session) explainComponent(c *placement.ComponentExplanation) error {
	where := "no place"
	if c.Placed {
		where = place(c.Target) + " (" + strings.ToLower(c.Target.Orchestrator) + ")"
	}
	s.text("%s -> %s", c.Component, where)
	s.text("  %s", c.Summary)
	if r := c.Relaxation; r != nil {
		s.text("  It would fit on %s with:", place(r.Target))
		for _, change := range r.Changes {
			s.text("    - %s", change.Detail)
		}
	}
	names := slices.Sorted(maps.Keys(c.Preferences))
	head := []string{"", "NODE", "PERFORMANCE", "ENERGY", "SECURITY", "SCORE"}
	for _, name := range names {
		s.text("  %s: %s", name, c.Preferences[name])
		head = append(head, strings.ToUpper(printable(name)))
	}
	t := s.newTable(append(head, "NEAR", "MOVE", "TOTAL", "VERDICT")...)
	t.indent = "  "
	rows := make([][]string, len(c.Nodes))
	for i := range c.Nodes {
		rows[i] = nodeRow(&c.Nodes[i], names)
	}
	if !s.wide() {
		rows = grouped(rows)
	}
	if err := t.write(rows...); err != nil {
		return err
	}
	if c.Omitted > 0 {
		fmt.Fprintf(s.out, "  (%d more nodes, which rank below these)\n", c.Omitted)
	}
	fmt.Fprintln(s.out)
	return nil
}

// grouped makes one row of all nodes that cannot take a component for the very same reasons; it is where the first of them is.
func grouped(rows [][]string) [][]string {
	places := map[string][]string{} // by all that a row says but the node
	says := func(row []string) string { return strings.Join(row[2:], "\x00") }
	for _, row := range rows {
		places[says(row)] = append(places[says(row)], row[1])
	}
	var out [][]string
	for _, row := range rows {
		same := places[says(row)]
		switch {
		case len(same) < 2 || row[2] != "-":
			out = append(out, row)
		case same[0] == row[1]:
			merged := slices.Clone(row)
			merged[1] = fmt.Sprintf("%d nodes", len(same))
			merged[len(row)-1] += " (" + strings.Join(same, ", ") + ")"
			out = append(out, merged)
		}
	}
	return out
}

// nodeRow shows one node: what it would earn there, and what speaks against it with the numbers.
func nodeRow(n *placement.NodeExplanation, preferences []string) []string {
	mark, verdict := "", "fits"
	if n.Chosen {
		mark, verdict = "*", "chosen"
	}
	if len(n.Failures) > 0 {
		texts := make([]string, len(n.Failures))
		for i, f := range n.Failures {
			texts[i] = string(f.Rule) + ": " + f.Detail
		}
		verdict = strings.Join(texts, "; ")
	}
	row := []string{mark, place(n.Target)}
	if n.Score == (placement.Score{}) && n.Total == 0 {
		return append(append(row, slices.Repeat([]string{"-"}, 7+len(preferences))...), verdict)
	}
	near := 0.0
	for _, a := range n.Affinity {
		near += a.Points
	}
	won := n.Score
	values := []float64{won.Performance, won.Energy, won.Security, won.Weighted}
	for _, name := range preferences {
		values = append(values, preferredFor(n, name))
	}
	for _, v := range append(values, near, -n.Move, n.Total) {
		text := fmt.Sprintf("%.1f", v)
		if text == "-0.0" {
			text = "0.0"
		}
		row = append(row, text)
	}
	return append(row, verdict)
}

// preferredFor is what a node earns for a preference.
func preferredFor(n *placement.NodeExplanation, name string) (points float64) {
	for _, p := range n.Preferred {
		if p.Name == name {
			points += p.Points
		}
	}
	return points
}

func place(t placement.Target) string { return t.Cluster + "/" + t.Node }
