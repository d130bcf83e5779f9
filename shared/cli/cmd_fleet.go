package cli

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/littoral-project/littoral/shared/api"
)

type fleetCommand struct {
	List    fleetList    `cmd:"" default:"withargs" help:"Show the fleet (what \"littoral fleet\" does)."`
	Drain   fleetDrain   `cmd:"" help:"Take the work off a node; it reports nothing any more."`
	Restore fleetRestore `cmd:"" help:"Undo drain."`
	Set     fleetSet     `cmd:"" help:"Change what is true of a node, or make the rollouts of a component fail."`
	Cut     fleetCut     `cmd:"" help:"Cut a cluster off: no telemetry, no agent."`
	Heal    fleetHeal    `cmd:"" help:"Undo cut."`
}

type nodeArgument struct {
	Node string `arg:"" complete:"node" help:"Node, or CLUSTER/NODE where the name is not unique, or app:COMPONENT: the node that has it."`
	outputFlag
}

type clusterArgument struct {
	Cluster string `arg:"" complete:"cluster" help:"Cluster."`
	outputFlag
}

type fleetList struct {
	outputFlag
}

// Run shows the fleet.
func (c *fleetList) Run(s *session) error {
	f, err := s.client.Fleet(s.ctx)
	if err != nil {
		return noFleet(err)
	}
	var names []string
	for i := range f.Clusters {
		names = append(names, fleetNames(&f.Clusters[i])...)
	}
	if done, err := s.said(f, names...); done {
		return err
	}
	return s.fleetTable(f.Clusters...)
}

func fleetNames(c *api.FleetCluster) []string {
	return namesOf("node", c.Nodes, func(n *api.FleetNode) string { return c.Name + "/" + n.Name })
}

func (s *session) fleetTable(clusters ...api.FleetCluster) error {
	var rows [][]string
	for i := range clusters {
		for j := range clusters[i].Nodes {
			rows = append(rows, fleetRow(&clusters[i], &clusters[i].Nodes[j]))
		}
	}
	return s.newTable("CLUSTER", "NODE", "STATE", "ARCH", "CORES", "CPU", "MEMORY", "SCA", "WATTS",
		"+TYPE", "+AGENT", "+ENGINE", "+RAM", "+DEVICES", "+LABELS", "RUNS").write(rows...)
}

func fleetRow(c *api.FleetCluster, n *api.FleetNode) []string {
	state := "up"
	switch {
	case c.Cut:
		state = "cut off"
	case n.Drained:
		state = "drained"
	case n.Silent:
		state = "silent"
	case n.Tells != "":
		state = "half silent"
	}
	cpu, memory, ram := n.CPU*100, n.Memory*100, float64(n.RAM)
	return []string{
		c.Name, n.Name, state, n.Arch, strconv.Itoa(n.Cores), percent(&cpu), percent(&memory), number(n.Score),
		watts(&n.Watts), c.Orchestrator, c.Agent, n.Engine, bytesText(&ram), or(pairs(n.Devices)), or(pairs(n.Labels)),
		or(strings.Join(running(n), ",")),
	}
}

type fleetDrain struct{ nodeArgument }

// Run drains the node.
func (c *fleetDrain) Run(s *session) error {
	return s.changeNode("drain", api.FleetCommand{Node: c.Node}, "drained")
}

type fleetRestore struct{ nodeArgument }

// Run restores the node.
func (c *fleetRestore) Run(s *session) error {
	return s.changeNode("restore", api.FleetCommand{Node: c.Node}, "restored")
}

// Help is the long help of "fleet set".
func (fleetSet) Help() string {
	return "Keys are cpu and mem (shares that others use, 0..1), sca (0..100), energy (watts), cores, ram (such as " +
		"8Gi), device:PATH (available, busy, detached), label:KEY, telemetry (node: it tells of itself only, none: it " +
		"tells nothing), compss:TASK (COMPSs tasks that wait at each component, such as 40, or 40@60 for 60 s each) and " +
		"event:NAME (security events in each container, such as 3, or 3@critical). An empty value goes back to the " +
		"fleet's file.\n\n" +
		"Without a node, app:COMPONENT=HOW makes the rollouts of a component fail, app:APPLICATION/COMPONENT=HOW those of " +
		"one application. HOW is crash (its containers end as soon as they have begun), pull-error (the image of what is " +
		"rolled out from now on cannot be had), slow (what is rolled out from now on takes a minute until it is ready) or " +
		"ok (all is well again)."
}

type fleetSet struct {
	Node     string   `arg:"" placeholder:"NODE" help:"Node as with drain; or the first app:COMPONENT=HOW."`
	Settings []string `arg:"" optional:"" placeholder:"KEY=VALUE" name:"key=value" help:"Such as cpu=0.95 or device:/dev/video0=busy."`
	outputFlag
}

// Run changes the node, or the components.
func (c *fleetSet) Run(s *session) error {
	node, args := c.Node, c.Settings
	if strings.HasPrefix(node, componentPrefix) && strings.Contains(node, "=") {
		node, args = "", append([]string{node}, args...)
	}
	if len(args) == 0 {
		return usagef("what is to be set is missing: KEY=VALUE")
	}
	settings, err := parseSettings(args)
	if err != nil {
		return err
	}
	if node == "" {
		return s.setComponents(settings, args)
	}
	return s.changeNode("set", api.FleetCommand{Node: node, Set: settings}, "set: "+strings.Join(args, " "))
}

// componentPrefix begins the name of a component where that of a node is expected, and the key of a setting of one.
const componentPrefix = "app:"

func (s *session) setComponents(settings map[string]string, args []string) error {
	fleet, err := s.client.SetComponents(s.ctx, settings)
	if err != nil {
		return noFleet(err)
	}
	var runs, names []string
	for i := range fleet.Clusters {
		for j := range fleet.Clusters[i].Nodes {
			n := &fleet.Clusters[i].Nodes[j]
			for _, name := range running(n) {
				_, component, _ := strings.Cut(name, "/")
				_, whole := settings[componentPrefix+name]
				if _, ok := settings[componentPrefix+component]; ok || whole {
					runs = append(runs, name+" on "+fleet.Clusters[i].Name+"/"+n.Name)
					names = append(names, "component/"+name)
				}
			}
		}
	}
	if done, err := s.said(fleet, once(names)...); done {
		return err
	}
	s.screen.line("set: %s", strings.Join(args, " "))
	if len(runs) == 0 {
		s.screen.line("Nothing of that name runs yet.")
		return nil
	}
	slices.Sort(runs)
	s.screen.line("This is about %s. See what becomes of it with: littoral events -w", strings.Join(runs, ", "))
	return nil
}

// changeNode is changeFleet for a node, which may be named by a component that it has.
func (s *session) changeNode(command string, in api.FleetCommand, done string) error {
	if component, ok := strings.CutPrefix(in.Node, componentPrefix); ok {
		node, err := s.nodeOf(component)
		if err != nil {
			return err
		}
		in.Node = node
	}
	in.Node = bare("node", in.Node)
	return s.changeFleet(command, in, done)
}

// nodeOf returns the only node that has the component, given as COMPONENT or APPLICATION/COMPONENT.
func (s *session) nodeOf(component string) (string, error) {
	jobs, err := s.client.Jobs(s.ctx, api.Filter{Light: true})
	if err != nil {
		return "", err
	}
	var nodes []string
	for i := range jobs {
		j := &jobs[i]
		names := []string{j.Component(), j.GroupName + "/" + j.Component()}
		if at := j.Targets.String(); at != "" && j.Live() && slices.Contains(names, component) {
			nodes = append(nodes, at)
		}
	}
	slices.Sort(nodes)
	switch nodes = slices.Compact(nodes); len(nodes) {
	case 0:
		return "", advise(fmt.Errorf("no node has a component %q", component), "See where components are with: littoral get jobs")
	case 1:
		return nodes[0], nil
	}
	return "", fmt.Errorf("several nodes have a component %q: %s; name one of them", component, strings.Join(nodes, ", "))
}

// parseSettings reads KEY=VALUE; a value may hold more equals signs and may be empty. All faults are reported at once.
func parseSettings(args []string) (map[string]string, error) {
	settings := make(map[string]string, len(args))
	var faults []string
	for _, arg := range args {
		key, value, ok := strings.Cut(arg, "=")
		_, twice := settings[key]
		switch {
		case !ok || key == "":
			faults = append(faults, fmt.Sprintf("%q is not KEY=VALUE", arg))
		case twice:
			faults = append(faults, fmt.Sprintf("%q is given twice", key))
		default:
			settings[key] = value
		}
	}
	if len(faults) > 0 {
		return nil, usagef("%s", strings.Join(faults, "; "))
	}
	return settings, nil
}

type fleetCut struct{ clusterArgument }

// Run cuts the cluster off.
func (c *fleetCut) Run(s *session) error {
	return s.changeFleet("cut", api.FleetCommand{Cluster: bare("cluster", c.Cluster)}, "cut off")
}

type fleetHeal struct{ clusterArgument }

// Run heals the cluster.
func (c *fleetHeal) Run(s *session) error {
	return s.changeFleet("heal", api.FleetCommand{Cluster: bare("cluster", c.Cluster)}, "healed")
}

func (s *session) changeFleet(command string, in api.FleetCommand, done string) error {
	cluster, err := s.client.ChangeFleet(s.ctx, command, in)
	if err != nil {
		return noFleet(err)
	}
	names := []string{"cluster/" + cluster.Name}
	if in.Cluster == "" {
		cluster.Nodes = slices.DeleteFunc(cluster.Nodes, func(n api.FleetNode) bool { return n.Name != in.Node && cluster.Name+"/"+n.Name != in.Node })
		if names = fleetNames(cluster); len(names) == 0 {
			names = []string{"node/" + in.Node}
		}
	}
	if shown, err := s.said(cluster, names...); shown {
		return err
	}
	s.screen.line("%s %s", strings.Replace(names[0], "/", " ", 1), done)
	var runs []string
	for i := range cluster.Nodes {
		runs = append(runs, running(&cluster.Nodes[i])...)
	}
	if len(runs) > 0 {
		slices.Sort(runs)
		s.screen.line("It has %s. See what becomes of it with: littoral events -w", strings.Join(slices.Compact(runs), ", "))
	}
	if s.wide() {
		return s.fleetTable(*cluster)
	}
	return nil
}

// running lists what the node runs, each component once.
func running(n *api.FleetNode) []string {
	var list []string
	for _, copied := range n.Copies {
		list = append(list, copied.Application+"/"+copied.Component)
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// noFleet explains that only a laptop host has a fleet, if the server does not know the path.
func noFleet(err error) error {
	var refused *api.Error
	switch {
	case !errors.As(err, &refused) || !missing(err):
		return err
	case nothingThere(refused):
		return advise(err, "Only a laptop host that simulates clusters has a fleet: littoral up --fleet default")
	}
	return advise(err, "See what there is with: littoral fleet")
}
