package cli

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/littoral-project/littoral/shared/api"
)

type describeJob struct {
	ID string `arg:"" help:"Job: its id, or its end as lists show it, or its beginning."`
	outputFlag
}

// Help is the long help of describe job.
func (describeJob) Help() string { return "Example: littoral describe job 3f2a91c0" }

// Run shows the job.
func (c *describeJob) Run(s *session) error {
	list, err := s.client.Jobs(s.ctx, api.Filter{Light: true})
	if err != nil {
		return err
	}
	id := strings.ToLower(bare("job", c.ID))
	list = slices.DeleteFunc(list, func(j api.Job) bool {
		return !(len(id) >= minPrefix && strings.HasSuffix(j.ID, id)) && !(isIDPrefix(id) && strings.HasPrefix(j.ID, id))
	})
	switch len(list) {
	case 0:
		return advise(fmt.Errorf("there is no job %q", c.ID), "See what there is with: littoral get jobs")
	case 1:
	default:
		return fmt.Errorf("%q means %d jobs; name one by more of its id", c.ID, len(list))
	}
	j, err := s.client.Job(s.ctx, list[0].ID)
	if err != nil {
		return err
	}
	if done, err := s.said(j, "job/"+j.ID); done {
		return err
	}
	a, err := s.client.Application(s.ctx, j.GroupID)
	if err != nil {
		return err
	}
	s.fields("", [][2]string{{"Application", a.Name + " (" + a.ID + ")"}, {"Status", a.Status}})
	decisions, err := s.decisions(a)
	if err != nil {
		return err
	}
	return s.job(a, j, decisions)
}

// placed are the components that are at a place.
func (s *session) placed(at func(api.Target) bool) ([][]string, error) {
	list, err := s.client.Jobs(s.ctx, api.Filter{Light: true})
	if err != nil {
		return nil, err
	}
	var rows [][]string
	for i := range list {
		if j := &list[i]; j.Live() && at(j.Targets) {
			rows = append(rows, []string{j.GroupName, j.Component(), j.State, or(j.Targets.Node), s.when(j.CreatedAt)})
		}
	}
	slices.SortFunc(rows, slices.Compare)
	return rows, nil
}

// components prints what is at a place.
func (s *session) components(rows [][]string) error {
	if len(rows) == 0 {
		_, err := fmt.Fprintln(s.out, "\nNo component is there.")
		return err
	}
	fmt.Fprintln(s.out, "\nComponents:")
	t := s.newTable("APP", "COMPONENT", "STATE", "NODE", s.whenHeader())
	t.indent = "  "
	return t.write(rows...)
}

type describeNode struct {
	Node string `arg:"" complete:"node" help:"Node, or CLUSTER/NODE where the name is not unique."`
	outputFlag
}

// Help is the long help of describe node.
func (describeNode) Help() string { return "Example: littoral describe node edge-1" }

// Run shows the node.
func (c *describeNode) Run(s *session) error {
	taxonomy, err := s.taxonomy(s.ctx)
	if err != nil {
		return err
	}
	cluster, name, p, err := nodeIn(taxonomy, c.Node)
	if err != nil {
		return err
	}
	if p == nil {
		return advise(fmt.Errorf("telemetry shows no node %s/%s", cluster, name), "See what there is with: littoral get nodes")
	}
	n := p.At
	if done, err := s.said(nodeItem{cluster, name, strings.ToLower(p.In.Type), s.stateOf(taxonomy, n), *n}, "node/"+cluster+"/"+name); done {
		return err
	}
	s.fields("", [][2]string{
		{"Node", cluster + "/" + name},
		{"State", s.stateOf(taxonomy, n) + ", seen " + s.seen(n) + " ago"},
		{"Type", strings.ToLower(p.In.Type) + ", " + n.Engine},
		{"Location", strings.Trim(n.Location.Name+", "+n.Location.City+", "+n.Location.Country, ", ")},
		{"Processor", fmt.Sprintf("%s, %s cores, %s in use", or(n.Static.Architecture), number(n.Static.Cores), percent(n.Dynamic.CPU))},
		{"Memory", fmt.Sprintf("%s, %s in use", bytesText(n.Static.Memory), percent(n.Dynamic.Memory))},
		{"Power", watts(n.Dynamic.Power) + " W"},
		{"Security", number(n.ScaScore) + " of 100"},
		{"Devices", devices(n)},
		{"Labels", pairs(n.Labels)},
		{"Pods", strconv.Itoa(len(n.Pod))},
	})
	rows, err := s.placed(func(t api.Target) bool { return t.Cluster == cluster && t.Node == name })
	if err != nil {
		return err
	}
	return s.components(rows)
}

type describeCluster struct {
	Cluster string `arg:"" complete:"cluster" help:"Cluster."`
	outputFlag
}

// Help is the long help of describe cluster.
func (describeCluster) Help() string { return "Example: littoral describe cluster edge" }

// Run shows the cluster.
func (c *describeCluster) Run(s *session) error {
	c.Cluster = bare("cluster", c.Cluster)
	list, err := (&getClusters{}).fetch(s.ctx, s)
	if err != nil {
		return err
	}
	at := slices.IndexFunc(list, func(i clusterItem) bool { return i.Name == c.Cluster })
	if at < 0 {
		return advise(fmt.Errorf("there is no cluster %q", c.Cluster), "See what there is with: littoral get clusters")
	}
	i := list[at]
	if done, err := s.said(i, "cluster/"+i.Name); done {
		return err
	}
	s.fields("", [][2]string{
		{"Cluster", i.Name},
		{"Type", i.Orchestrator + ", " + i.Cluster.Engine},
		{"State", fmt.Sprintf("%s, %d of %d nodes ready", i.State, i.Ready, i.Nodes)},
		{"Agent", i.Cluster.AgentID},
		{"UUID", i.Cluster.UUID},
		{"ClusterLink", strconv.FormatBool(i.Cluster.ClusterLink)},
	})
	fmt.Fprintln(s.out)
	nodes := getNodes{placeFlags: placeFlags{Cluster: c.Cluster}}
	if err := nodes.Run(s); err != nil {
		return err
	}
	rows, err := s.placed(func(t api.Target) bool { return t.Cluster == c.Cluster })
	if err != nil {
		return err
	}
	return s.components(rows)
}

type describePolicy struct {
	policyArgument
	outputFlag
}

// Help is the long help of describe policy.
func (describePolicy) Help() string { return "Example: littoral describe policy busy-hosts" }

// Run shows the policy.
func (c *describePolicy) Run(s *session) error {
	p, err := s.policy(c.Policy)
	if err != nil {
		return err
	}
	if done, err := s.said(p, "policy/"+p.ID); done {
		return err
	}
	variables := make(map[string]string, len(p.Variables))
	for name, v := range p.Variables {
		variables[name] = s.shortValue(v)
	}
	s.fields("", [][2]string{
		{"Policy", p.Name},
		{"ID", p.ID},
		{"Application", strings.TrimSpace(p.Subject.AppName + " " + strings.Trim(p.Subject.Component, "*"))},
		{"Phase", p.Status.Phase},
		{"Watches", watches(p)},
		{"Limit", limit(p)},
		{"Remedy", p.Action.ExtraParams["remediation"]},
		{"Variables", pairs(variables)},
	})
	if r := p.Status.RenderedSpec; r != nil {
		s.fields("", [][2]string{{"Expression", r.Expr}})
	}
	if len(p.Status.Events) == 0 {
		return nil
	}
	fmt.Fprintln(s.out, "\nEvents:")
	t := s.newTable(s.whenHeader(), "EVENT")
	t.indent = "  "
	var rows [][]string
	for _, e := range p.Status.Events {
		rows = append(rows, []string{s.when(e.Timestamp), e.Type})
	}
	return t.write(rows...)
}

type describeController struct {
	Name string `arg:"" complete:"controller" help:"Controller: its name or address."`
	outputFlag
}

// Help is the long help of describe controller.
func (describeController) Help() string { return "Example: littoral describe controller harbour" }

// Run shows the controller.
func (c *describeController) Run(s *session) error {
	c.Name = bare("controller", c.Name)
	list, err := s.client.Controllers(s.ctx)
	if err != nil {
		return err
	}
	at := slices.IndexFunc(list, func(k api.Controller) bool { return k.Name == c.Name || k.Address == c.Name })
	if at < 0 {
		return advise(fmt.Errorf("the lighthouse knows no controller %q", c.Name), "See what there is with: littoral get controllers")
	}
	k := &list[at]
	if done, err := s.said(k, "controller/"+k.Name); done {
		return err
	}
	checked := "never"
	if k.CheckedAt != nil {
		checked = s.age(*k.CheckedAt) + " ago"
	}
	s.fields("", [][2]string{
		{"Controller", k.Name},
		{"Address", k.Address},
		{"Health", k.State() + ", asked " + checked},
		{"Trouble", k.Trouble},
		{"Seen", s.age(k.SeenAt) + " ago"},
	})
	return nil
}
