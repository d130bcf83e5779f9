package cli

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/littoral-project/littoral/shared/api"
)

type whatifCommand struct {
	Drain whatifDrain `cmd:"" help:"If nodes were drained."`
	Cut   whatifCut   `cmd:"" help:"If clusters were lost."`
	Set   whatifSet   `cmd:"" help:"If readings of a node were others."`
	Apply whatifApply `cmd:"" help:"If a descriptor were applied, where everything has to go then."`
}

type whatifDrain struct {
	Nodes []string `arg:"" complete:"node" help:"Nodes, or CLUSTER/NODE where a name is not unique."`
	outputFlag
}

// Help is the long help of whatif drain.
func (whatifDrain) Help() string { return "Nothing is changed. Example: littoral whatif drain edge-1" }

// Run asks what would happen if the nodes were drained.
func (c *whatifDrain) Run(s *session) error {
	var q api.Question
	for _, n := range c.Nodes {
		cluster, node, err := s.node(n)
		if err != nil {
			return err
		}
		q.Drain = append(q.Drain, cluster+"/"+node)
	}
	return s.whatif(q)
}

type whatifCut struct {
	Clusters []string `arg:"" complete:"cluster" help:"Clusters."`
	outputFlag
}

// Help is the long help of whatif cut.
func (whatifCut) Help() string { return "Nothing is changed. Example: littoral whatif cut edge" }

// Run asks what would happen if the clusters were lost.
func (c *whatifCut) Run(s *session) error {
	for i := range c.Clusters {
		c.Clusters[i] = bare("cluster", c.Clusters[i])
	}
	return s.whatif(api.Question{Cut: c.Clusters})
}

type whatifSet struct {
	Node     string   `arg:"" complete:"node" help:"Node, or CLUSTER/NODE where the name is not unique."`
	Settings []string `arg:"" placeholder:"KEY=VALUE" name:"key=value" help:"sca (0..100), cpu and memory (percent in use), energy (watts), cores or ram (bytes)."`
	outputFlag
}

// Help is the long help of whatif set.
func (whatifSet) Help() string {
	return "Nothing is changed. Example: littoral whatif set edge-1 sca=30"
}

// Run asks what would happen if a node had other readings.
func (c *whatifSet) Run(s *session) error {
	settings, err := parseSettings(c.Settings)
	if err != nil {
		return err
	}
	cluster, node, err := s.node(c.Node)
	if err != nil {
		return err
	}
	values := map[string]float64{}
	for key, text := range settings {
		v, err := strconv.ParseFloat(text, 64)
		if err != nil {
			return usagef("%s: %q is not a number", key, text)
		}
		values[key] = v
	}
	return s.whatif(api.Question{Set: map[string]map[string]float64{cluster + "/" + node: values}})
}

type whatifApply struct {
	File string `short:"f" required:"" placeholder:"FILE" help:"Descriptor; - reads it from standard input."`
	App  string `placeholder:"ID" complete:"app" help:"Application to update; default: the only one of its name, else a new one."`
	outputFlag
}

// Help is the long help of whatif apply.
func (whatifApply) Help() string {
	return "Nothing is changed. Example: littoral whatif apply -f shop.yaml"
}

// Run asks what would happen if the descriptor were applied.
func (c *whatifApply) Run(s *session) error {
	document, err := s.document(c.File)
	if err != nil {
		return err
	}
	q := api.Question{Descriptor: string(document)}
	if c.App != "" {
		a, err := s.application(s.ctx, c.App)
		if err != nil {
			return err
		}
		q.App = a.ID
	}
	return s.whatif(q)
}

func (s *session) whatif(q api.Question) error {
	o, err := s.client.WhatIf(s.ctx, q)
	if err != nil {
		return err
	}
	var rows [][]string
	var names []string
	add := func(list []api.Shift, what func(*api.Shift) string) {
		for i := range list {
			x := &list[i]
			names = append(names, "component/"+x.Name+"/"+x.Component)
			rows = append(rows, []string{x.Name + "/" + replica(x), what(x), at(x.From), at(x.To), by(x.To), x.Application, or(x.Why)})
		}
	}
	word := func(text string) func(*api.Shift) string { return func(*api.Shift) string { return text } }
	add(o.Moves, word("move"))
	add(o.Arrivals, word("get a place"))
	add(o.Losers, func(x *api.Shift) string {
		if x.From == nil {
			return "get no place"
		}
		return "lose its place"
	})
	if done, err := s.said(o, once(names)...); done {
		return err
	}
	t := s.newTable("COMPONENT", "WOULD", "FROM", "TO", "+ORCHESTRATOR", "+APP-ID", "+WHY")
	if len(rows) == 0 {
		fmt.Fprintln(s.out, "No component would move.")
	} else if err := t.write(rows...); err != nil {
		return err
	}
	for _, x := range o.Losers {
		if x.Why != "" && !s.wide() {
			for _, line := range wrap(printable(x.Name+"/"+x.Component+": "+x.Why), s.columns()-2) {
				fmt.Fprintln(s.out, "  "+line)
			}
		}
	}
	s.capacity("Now:", o.Before)
	s.capacity("Then:", o.After)
	if d := o.Downtime; d.EachSeconds != nil && len(o.Moves) > 0 {
		s.text("Downtime: about %.1f s for each move, as the last %d placements took.", *d.EachSeconds, d.From)
	}
	proof := "no better plan exists"
	if !o.Exact {
		proof = fmt.Sprintf("at most %.1f %% from the best plan", o.Gap*100)
	}
	s.text("%d applications looked at; %s. Nothing was changed.", o.Looked, proof)
	return nil
}

// replica is the component of a shift, with the number of the replica unless it is the first.
func replica(x *api.Shift) string {
	if x.Replica == 0 {
		return x.Component
	}
	return x.Component + "/" + strconv.Itoa(x.Replica)
}

func (s *session) capacity(when string, c api.Capacity) {
	memory, reserved := float64(c.MemoryBytes), float64(c.MemoryReserved)
	s.text("%-6s %d nodes; reserved %s of %s cores, %s of %s memory", when, c.Nodes,
		cores(c.CPUReserved), cores(c.CPUMilli), bytesText(&reserved), bytesText(&memory))
}

// cores writes thousandths of a core.
func cores(milli int64) string {
	return strings.TrimSuffix(strconv.FormatFloat(float64(milli)/1000, 'f', 1, 64), ".0")
}
