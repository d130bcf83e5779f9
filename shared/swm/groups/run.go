package groups

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/google/uuid"

	"github.com/littoral-project/littoral/shared/application"
	"github.com/littoral-project/littoral/shared/etag"
	"github.com/littoral-project/littoral/shared/problem"
	"github.com/littoral-project/littoral/shared/store"
	"github.com/littoral-project/littoral/shared/swm/costs"
	"github.com/littoral-project/littoral/shared/swm/topologies"
)

// run lets the application of a group follow its members: it is submitted when as many are there as the group waits for, changed
// with them, and removed with the last.
func run(ctx context.Context, tx *store.Tx, k Key, s Settings) error {
	group, err := one(ctx, tx, selectOneForUpdate, k)
	if problem.KindOf(err) == problem.NotFound {
		return nil // its members wait for it
	}
	if err != nil {
		return err
	}
	o, err := group.object()
	if err != nil {
		return err
	}
	members, err := Members(ctx, tx, k)
	if err != nil {
		return err
	}
	runs, err := alive(ctx, tx, group.Application)
	if err != nil {
		return err
	}
	switch {
	case runs && len(members) == 0:
		return end(ctx, tx, *group.Application)
	case !runs && len(members) < o.Spec.(*GroupSpec).Members():
		return nil
	}
	t, err := translated(k, members)
	if err != nil {
		return err
	}
	if runs {
		change := application.NewChange(*group.Application, t.text, t.parsed)
		if _, err := change.Put(ctx, tx, s.Caller, etag.Match{}, s.LostAfter); err != nil {
			return err
		}
		return costsOf(ctx, tx, *group.Application, members)
	}
	a, _, err := application.Submit(ctx, tx, application.Submission{Document: t.text, Parsed: t.parsed, Caller: s.Caller, LostAfter: s.LostAfter})
	if err != nil {
		return err
	}
	if _, err := tx.Exec(ctx, setApplication, k.Namespace, k.Name, a.ID); err != nil {
		return fmt.Errorf("store the application of the group: %w", err)
	}
	return costsOf(ctx, tx, a.ID, members)
}

// alive reports whether the application of a group is there, and not being removed.
func alive(ctx context.Context, tx *store.Tx, id *uuid.UUID) (bool, error) {
	if id == nil {
		return false, nil
	}
	a, err := application.Get(ctx, tx, *id)
	if problem.KindOf(err) == problem.NotFound {
		return false, nil
	}
	return err == nil && a.Desired != application.Deleted, err
}

// end removes the application of a group; its name is free at once.
func end(ctx context.Context, tx *store.Tx, id uuid.UUID) error {
	_, _, err := application.Delete(ctx, tx, id, true)
	if problem.KindOf(err) == problem.NotFound {
		return nil
	}
	return err
}

// costsOf hands on what the members say of nodes.
func costsOf(ctx context.Context, tx *store.Tx, id uuid.UUID, members []*Object) error {
	var all []costs.Cost
	for _, m := range members {
		for _, w := range m.Spec.(*ApplicationSpec).Workloads {
			nodes := map[string]*costs.Cost{}
			at := func(node string) *costs.Cost {
				if nodes[node] == nil {
					nodes[node] = &costs.Cost{Component: Component(m.Name, w.Basename), Node: node}
				}
				return nodes[node]
			}
			for node, v := range w.Costs {
				at(node).Cost = v
			}
			for node, v := range w.NodeRecommendations {
				at(node).Recommendation = v
			}
			for _, c := range nodes {
				all = append(all, *c)
			}
		}
	}
	return costs.Replace(ctx, tx, id, "application", all)
}

// describe makes the description of a network of its parts.
func describe(ctx context.Context, tx *store.Tx, namespace, of string) error {
	all, err := parts(ctx, tx, namespace, of, NetworkLink, NetworkPath)
	if err != nil {
		return err
	}
	described := Group + "/" + namespace + "/" + of
	d := topologies.Document{NetworkImplementation: of}
	if len(all) == 0 {
		err := topologies.Delete(ctx, tx, described)
		if problem.KindOf(err) == problem.NotFound {
			return nil
		}
		return err
	}
	kinds, ends := map[string]string{}, map[string][2]string{}
	node := func(n NodeRef) string {
		kinds[n.Name] = cmp.Or(n.Type, kinds[n.Name], "COMPUTE")
		return n.Name
	}
	for _, o := range all {
		if l, is := o.Spec.(*LinkSpec); is {
			d.PhysicalBase = cmp.Or(d.PhysicalBase, l.PhysicalBase)
			ends[o.Name] = [2]string{node(l.LinkFrom), node(l.LinkTo)}
			link := topologies.Link{Name: o.Name, Source: l.LinkFrom.Name, Target: l.LinkTo.Name}
			link.Capabilities.LatencyNanos = topologies.Quantity(strconv.FormatInt(l.LatencyNanos, 10))
			if l.BandWidthBits > 0 {
				link.Capabilities.BandWidthBits = topologies.Quantity(strconv.FormatInt(l.BandWidthBits, 10))
			}
			link.Capabilities.OtherCapabilities = o.capabilities()
			d.Links = append(d.Links, link)
		}
	}
	for _, o := range all {
		if p, is := o.Spec.(*PathSpec); is {
			if way := p.nodes(ends); way != nil { // one whose links are not all there yet waits for them
				d.Paths = append(d.Paths, topologies.Path{Nodes: way})
			}
		}
	}
	for name, kind := range kinds {
		d.Nodes = append(d.Nodes, topologies.Node{Name: name, Type: kind})
	}
	slices.SortFunc(d.Nodes, func(a, b topologies.Node) int { return cmp.Compare(a.Name, b.Name) })
	if len(d.Links) == 0 {
		return nil // paths alone describe nothing
	}
	text, err := json.Marshal(d)
	if err != nil {
		return err
	}
	read, err := topologies.Parse(text)
	if err != nil {
		return err
	}
	if err := topologies.Save(ctx, tx, described, read); err != nil {
		var refused *problem.Error
		if errors.As(err, &refused) && refused.Kind == problem.Invalid {
			return problem.New(problem.Conflict, "network %s cannot be described by it beside the others: %v", of, refused)
		}
		return err
	}
	return topologies.Announce(ctx, tx, described, "network "+of)
}

// capabilities are what labels say of a link: the medium that it shares, and its class.
func (o *Object) capabilities() map[string]string {
	out := map[string]string{}
	for _, key := range []string{"medium", "serviceClass"} {
		if v := o.document.Metadata.Labels[key]; v != "" {
			out[key] = v
		}
	}
	return out
}

// nodes are those that a path leads through; nil if a link is not there, or does not join the one before.
func (s *PathSpec) nodes(links map[string][2]string) []string {
	var out []string
	for _, name := range s.Links {
		ends, there := links[name]
		if !there || len(out) > 0 && out[len(out)-1] != ends[0] {
			return nil
		}
		if len(out) == 0 {
			out = append(out, ends[0])
		}
		out = append(out, ends[1])
	}
	if out[0] != s.Start.Name || out[len(out)-1] != s.End.Name {
		return nil
	}
	return out
}
