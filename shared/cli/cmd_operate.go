package cli

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/littoral-project/littoral/shared/api"
)

type scaleCommand struct {
	appArgument
	Component string `arg:"" complete:"component" help:"Component."`
	Replicas  int    `arg:"" help:"How many there shall be."`
	outputFlag
}

// Help is the long help of scale.
func (scaleCommand) Help() string {
	return "Example: littoral scale shop web 3\n\nThis makes a new revision; undo it with: littoral rollback shop"
}

// Run changes how many replicas a component has.
func (c *scaleCommand) Run(s *session) error {
	before, err := s.application(s.ctx, c.ID)
	if err != nil {
		return err
	}
	a, err := s.client.Scale(s.ctx, before.ID, c.Component, c.Replicas)
	if err != nil {
		return err
	}
	return s.revised(before, a, fmt.Sprintf("%s scaled to %d", c.Component, c.Replicas))
}

type pinCommand struct {
	Component string `arg:"" complete:"component" help:"COMPONENT where only one application has it, else APPLICATION/COMPONENT."`
	Node      string `arg:"" optional:"" complete:"node" help:"Node, or CLUSTER/NODE where the name is not unique."`
	Free      bool   `help:"Let it go anywhere again."`
	outputFlag
}

// Help is the long help of pin.
func (pinCommand) Help() string {
	return "Example: littoral pin shop/web edge-1\n\nThis makes a new revision; undo it with: littoral rollback shop"
}

// Run fixes a component to a node.
func (c *pinCommand) Run(s *session) error {
	if (c.Node == "") != c.Free {
		return usagef("name a node, or --free")
	}
	before, component, err := s.component(c.Component)
	if err != nil {
		return err
	}
	var cluster, node string
	done := component + " may go anywhere"
	if !c.Free {
		if cluster, node, err = s.node(c.Node); err != nil {
			return err
		}
		done = component + " pinned to " + cluster + "/" + node
	}
	a, err := s.client.Pin(s.ctx, before.ID, component, cluster, node)
	if err != nil {
		return err
	}
	return s.revised(before, a, done)
}

// revised reports a change of the descriptor.
func (s *session) revised(before, a *api.Application, done string) error {
	s.warn(a.Warnings)
	if a.Version == before.Version {
		done = "unchanged"
	} else {
		done += fmt.Sprintf(" (revision %d)", a.Version)
	}
	s.screen.line("application %s %s", a.Name, done)
	return s.result(a.ID)
}

// component finds the application of a component that is named COMPONENT or APPLICATION/COMPONENT.
func (s *session) component(named string) (a *api.Application, component string, err error) {
	named = bare("component", named)
	if app, component, ok := strings.Cut(named, "/"); ok {
		a, err := s.application(s.ctx, app)
		return a, component, err
	}
	all, err := s.client.Applications(s.ctx, api.Filter{})
	if err != nil {
		return nil, "", err
	}
	var names []string
	for i := range all {
		for _, j := range all[i].Components() {
			if j.Component() == named && (a == nil || a.ID != all[i].ID) {
				a, names = &all[i], append(names, all[i].Name+"/"+named)
			}
		}
	}
	switch len(names) {
	case 0:
		return nil, "", advise(fmt.Errorf("no application has a component %q", named), "See what there is with: littoral get jobs")
	case 1:
		return a, named, nil
	}
	return nil, "", fmt.Errorf("several applications have a component %q: %s; name one of them", named, strings.Join(names, ", "))
}

// node finds a node that is named NODE or CLUSTER/NODE.
func (s *session) node(named string) (cluster, node string, err error) {
	taxonomy, err := s.taxonomy(s.ctx)
	if err != nil {
		return "", "", err
	}
	cluster, node, _, err = nodeIn(taxonomy, named)
	return cluster, node, err
}

// nodeIn finds a node of the taxonomy that is named NODE or CLUSTER/NODE. at is nil for one that telemetry shows no longer, which the
// server may know of.
func nodeIn(taxonomy *api.Taxonomy, named string) (cluster, node string, at *api.Place, err error) {
	named = bare("node", named)
	var found []api.Place
	var names []string
	for _, p := range taxonomy.Places() {
		if p.Node == named || p.Cluster+"/"+p.Node == named {
			found, names = append(found, p), append(names, p.Cluster+"/"+p.Node)
		}
	}
	switch len(found) {
	case 0:
		if cluster, node, ok := strings.Cut(named, "/"); ok {
			return cluster, node, nil, nil
		}
		return "", "", nil, advise(fmt.Errorf("there is no node %q", named), "See what there is with: littoral get nodes")
	case 1:
		return found[0].Cluster, found[0].Node, &found[0], nil
	}
	return "", "", nil, fmt.Errorf("several nodes are named %q: %s; name one of them", named, strings.Join(names, ", "))
}

type placeArgument struct {
	Node string `arg:"" complete:"node" help:"Node, or CLUSTER/NODE where the name is not unique."`
}

type cordonCommand struct {
	placeArgument
	outputFlag
}

// Help is the long help of cordon.
func (cordonCommand) Help() string { return "Example: littoral cordon edge-1" }

// Run closes a node to new components.
func (c *cordonCommand) Run(s *session) error {
	cluster, node, err := s.node(c.Node)
	if err != nil {
		return err
	}
	set, err := s.client.CordonNode(s.ctx, cluster, node)
	if err != nil {
		return err
	}
	s.screen.line("node %s/%s cordoned; undo it with: littoral uncordon %s", cluster, node, c.Node)
	return s.closed(set)
}

type uncordonCommand struct {
	placeArgument
	outputFlag
}

// Help is the long help of uncordon.
func (uncordonCommand) Help() string { return "Example: littoral uncordon edge-1" }

// Run opens a node again.
func (c *uncordonCommand) Run(s *session) error {
	cluster, node, err := s.node(c.Node)
	if err != nil {
		return err
	}
	changed, err := s.client.UncordonNode(s.ctx, cluster, node)
	if err != nil {
		return err
	}
	opened := map[string]any{"cluster": cluster, "node": node, "changed": changed}
	if done, err := s.said(opened, "node/"+cluster+"/"+node); done {
		return err
	}
	if changed {
		s.screen.line("node %s/%s takes components again", cluster, node)
	} else {
		s.screen.line("node %s/%s was not cordoned", cluster, node)
	}
	return nil
}

type drainCommand struct {
	placeArgument
	Deadline time.Duration `placeholder:"TIME" help:"After that time what has no other place leaves all the same, such as 5m."`
	Monitor  bool          `help:"Show what leaves until nothing is left."`
	Timeout  time.Duration `default:"10m" help:"How long --monitor watches."`
	outputFlag
}

// Help is the long help of drain.
func (drainCommand) Help() string {
	return "Example: littoral drain edge-1 --deadline 5m --monitor\n\nSee first what would happen with: littoral whatif drain edge-1"
}

// Run closes a node and has its components moved elsewhere.
func (c *drainCommand) Run(s *session) error {
	if err := checkTimeout(c.Timeout); err != nil {
		return err
	}
	if c.Deadline < 0 {
		return usagef("--deadline must not be below 0")
	}
	cluster, node, err := s.node(c.Node)
	if err != nil {
		return err
	}
	set, err := s.client.DrainNode(s.ctx, cluster, node, c.Deadline)
	if err != nil {
		return err
	}
	s.screen.line("node %s/%s draining; undo it with: littoral uncordon %s", cluster, node, c.Node)
	if c.Monitor {
		ctx, cancel := context.WithTimeout(s.ctx, c.Timeout)
		defer cancel()
		if err := s.monitor(ctx, cluster, node); err != nil {
			return err
		}
	}
	return s.closed(set)
}

// closed shows a node that was cordoned or drained.
func (s *session) closed(n *api.Cordon) error {
	if done, err := s.said(n, "node/"+n.Cluster+"/"+n.Node); done || !s.wide() {
		return err
	}
	deadline := "-"
	if n.Deadline != nil {
		deadline = zoned(*n.Deadline)
	}
	return s.newTable("CLUSTER", "NODE", "DRAIN", "DEADLINE", "SINCE", "AUTHOR").write(
		[]string{n.Cluster, n.Node, strconv.FormatBool(n.Drain), deadline, zoned(n.Since), or(n.Author)})
}

// monitor shows what is left on a node whenever that changes, until nothing is.
func (s *session) monitor(ctx context.Context, cluster, node string) error {
	shown := ""
	for {
		list, err := s.client.Closed(ctx)
		if err != nil {
			return err
		}
		var left []string
		closed := false
		for _, c := range list {
			if c.Cluster == cluster && c.Node == node {
				closed = true
				for _, x := range c.Components {
					left = append(left, x.Name+"/"+x.Component)
				}
			}
		}
		switch text := strings.Join(left, ", "); {
		case !closed:
			return errors.New("the node was opened again meanwhile")
		case text == "":
			s.screen.line("nothing is left there")
			return nil
		case text != shown:
			s.screen.line("%d left: %s", len(left), text)
			shown = text
		}
		if err := s.wait(ctx); err != nil {
			if errors.Is(err, context.DeadlineExceeded) {
				return advise(fmt.Errorf("it is not empty in time: %s", shown), "See why with: littoral explain app ID")
			}
			return err
		}
	}
}
