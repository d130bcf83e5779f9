package match

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"

	"github.com/google/uuid"

	"github.com/littoral-project/littoral/shared/appmodel"
	"github.com/littoral-project/littoral/shared/decode"
	"github.com/littoral-project/littoral/shared/placement"
	"github.com/littoral-project/littoral/shared/policy/registry"
	"github.com/littoral-project/littoral/shared/problem"
	"github.com/littoral-project/littoral/shared/store"
)

// Request is a question to the matchmaker: a descriptor, and for rescheduling where its components run now and which of
// these places violate a policy.
type Request struct {
	Descriptor string      `json:"descriptor"`
	Current    []Placement `json:"current_setup"`
	Violations []Placement `json:"violations"`

	Parsed *appmodel.Application `json:"-"` // Descriptor, as it was read (package submission)
}

// Placement is a component with a place.
type Placement struct {
	Component    string `json:"component"`
	Cluster      string `json:"cluster_name"`
	Node         string `json:"node_name"`
	Orchestrator string `json:"orchestrator"`
	Policy       string `json:"policy,omitempty"`
	Remediation  string `json:"remediation,omitempty"`
}

// ParseRequest reads the plain YAML that ICOS sends, or the JSON form with present places.
func ParseRequest(body []byte) (Request, error) {
	if trimmed := bytes.TrimSpace(body); len(trimmed) == 0 || trimmed[0] != '{' {
		return Request{Descriptor: string(body)}, nil
	}
	var r Request
	var keys map[string]json.RawMessage
	if err := json.Unmarshal(body, &keys); err != nil || keys["descriptor"] == nil {
		return Request{Descriptor: string(body)}, nil // a descriptor written as JSON, or as YAML that looks like it
	}
	return r, decode.JSON(body, &r)
}

// Answer is a plan for a request with its explanation.
type Answer struct {
	Application *appmodel.Application `json:"-"`
	Plan        placement.Plan        `json:"plan"`
	Explanation placement.Explanation `json:"explanation"`
	Warnings    []string              `json:"warnings,omitempty"` // about the descriptor
	Derived     []string              `json:"derived,omitempty"`  // requirements that follow from its compose files

	list []part
}

// Solve plans the request for the infrastructure as it is now; nothing is stored or reserved. The error is
// Invalid for a component that the descriptor does not have, or Unavailable without telemetry.
func Solve(ctx context.Context, q store.Querier, r Request, s Settings) (*Answer, error) {
	app := r.Parsed
	list := parts(app, nil, anybody)
	if err := r.apply(list); err != nil {
		return nil, err
	}
	inv, err := readInventory(ctx, q, s)
	if err != nil {
		return nil, err
	}
	if err := inv.readAround(ctx, q, app, list); err != nil {
		return nil, err
	}
	inv.own(app.Name, list)
	p := problemOf(app, list, inv)
	plan, err := placement.Place(p)
	if err != nil {
		return nil, err
	}
	return &Answer{
		Application: app, Plan: plan, Explanation: placement.Explain(p, plan), Warnings: problem.Texts(registry.Warnings(app)),
		Derived: problem.Texts(app.Derived), list: list,
	}, nil
}

// apply sets the present and the violated places of the parts.
func (r Request) apply(list []part) error {
	var faults problem.Faults
	each := func(path string, given []Placement, set func(*part, placement.Target)) {
		for i, g := range given {
			at := slices.IndexFunc(list, func(p part) bool { return p.id == g.Component })
			if at < 0 {
				faults.Add(path, 0, "entry %d names %q, which is no component of the descriptor", i, g.Component)
				continue
			}
			t := placement.Target{Orchestrator: g.Orchestrator, Cluster: g.Cluster, Node: g.Node}
			if t == (placement.Target{}) { // which would be any
				faults.Add(path, 0, "entry %d names no place", i)
				continue
			}
			set(&list[at], t)
		}
	}
	each("current_setup", r.Current, func(p *part, t placement.Target) { p.current = &t })
	each("violations", r.Violations, func(p *part, t placement.Target) { p.excluded = append(p.excluded, t) })
	return faults.Err("the request is not valid")
}

// own finds the running instance, if any, whose components are where the request says: what that instance reserves and
// uses there counts as the request's own.
func (inv *inventory) own(app string, list []part) {
	var instance uuid.UUID
	taken := map[uuid.UUID]bool{}
	for i := range list {
		p := &list[i]
		if p.current == nil {
			continue
		}
		for _, r := range inv.reservations[[2]string{p.current.Cluster, p.current.Node}] {
			if r.Holder == app+"/"+p.component.Name && !taken[r.Job] && (instance == uuid.Nil || r.Application == instance) {
				instance, taken[r.Job] = r.Application, true
				p.holds, p.instance = r.Job, r.Application
				break
			}
		}
	}
}

// Components returns the components as they were handed in, each with its targets: one object, a list for several
// replicas, or an empty list when nothing fits (shared/docs/contracts.md §2.2).
func (a *Answer) Components() []map[string]any {
	targets := map[string][]map[string]string{}
	for i, p := range a.list {
		if as := a.Plan.Assignments[i]; as.Placed {
			targets[p.component.Name] = append(targets[p.component.Name], map[string]string{
				"cluster_name": as.Target.Cluster, "node_name": as.Target.Node, "orchestrator": as.Target.Orchestrator,
			})
		}
	}
	list := make([]map[string]any, len(a.Application.Components))
	for i := range a.Application.Components {
		c := &a.Application.Components[i]
		list[i] = a.Application.Source.Component(i)
		switch found := targets[c.Name]; len(found) {
		case 0:
			list[i]["targets"] = []any{}
		case 1:
			list[i]["targets"] = found[0]
		default:
			list[i]["targets"] = found
		}
	}
	return list
}
