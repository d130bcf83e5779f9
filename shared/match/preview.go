package match

import (
	"context"
	"errors"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/littoral-project/littoral/shared/application"
	"github.com/littoral-project/littoral/shared/appmodel"
	"github.com/littoral-project/littoral/shared/difference"
	"github.com/littoral-project/littoral/shared/etag"
	"github.com/littoral-project/littoral/shared/job"
	"github.com/littoral-project/littoral/shared/placement"
	"github.com/littoral-project/littoral/shared/policy/registry"
	"github.com/littoral-project/littoral/shared/problem"
	"github.com/littoral-project/littoral/shared/store"
)

// Step is one thing that a submission or update would do to a component, or to the application itself.
type Step struct {
	Component string      `json:"component"` // empty for the application itself
	Replica   int         `json:"replica"`
	Action    string      `json:"action"` // create, replace, change, move, remove, wait, none
	From      *job.Target `json:"from,omitempty"`
	To        *job.Target `json:"to,omitempty"`
	Variant   string      `json:"variant,omitempty"` // which manifests it gets there, if it has some for several engines
	Why       string      `json:"why,omitempty"`
}

// Preview is what a descriptor would do, as "littoral plan" shows it.
type Preview struct {
	Application *uuid.UUID         `json:"application,omitempty"` // the one that would be updated; nil = a new one
	Name        string             `json:"name"`
	Changes     int                `json:"changes"` // steps that are not "none"
	Steps       []Step             `json:"steps"`
	Fields      []difference.Field `json:"fields,omitempty"`   // that differ from the descriptor of the application
	Warnings    []string           `json:"warnings,omitempty"` // about the descriptor
	Derived     []string           `json:"derived,omitempty"`  // requirements that follow from its compose files
}

var errRollBack = errors.New("preview only")

// DryRun submits or updates by the document, and places, in a transaction that is rolled back: so it shows exactly what
// the real code would do. app is the application to update; nil looks for the only one of the descriptor's name, and
// otherwise plans a new one. parsed is the document.
func DryRun(
	ctx context.Context, db *store.DB, document []byte, parsed *appmodel.Application, app *uuid.UUID, s Settings,
	lostAfter time.Duration,
) (*Preview, error) {
	var p *Preview
	err := db.Tx(ctx, func(ctx context.Context, tx *store.Tx) error {
		if err := Lock(ctx, tx); err != nil {
			return err
		}
		before, err := findExisting(ctx, tx, parsed.Name, app)
		if err != nil {
			return err
		}
		p = &Preview{Name: parsed.Name, Derived: problem.Texts(parsed.Derived)}
		var after *application.Application
		if before == nil {
			after, _, err = application.Submit(ctx, tx, application.Submission{
				Document: document, Parsed: parsed, LostAfter: lostAfter,
			})
		} else {
			p.Application = &before.ID
			after, err = application.NewChange(before.ID, document, parsed).Put(ctx, tx, "", etag.Match{}, lostAfter)
		}
		if err != nil {
			return err
		}
		p.Warnings = after.Warnings
		changed := before == nil || after.Version != before.Version // the same document again moves nothing
		if err := Place(ctx, tx, after.ID, s, changed, "to see what would happen"); err != nil {
			return err
		}
		if after, err = application.Get(ctx, tx, after.ID); err != nil {
			return err
		}
		p.compare(parsed, before, after)
		if before != nil && changed {
			if err := p.rest(before, parsed); err != nil {
				return err
			}
		}
		return errRollBack
	})
	if !errors.Is(err, errRollBack) {
		return nil, err
	}
	return p, nil
}

// dryRun finds the application that the document would update; nil when there is none.
func findExisting(ctx context.Context, tx *store.Tx, name string, app *uuid.UUID) (*application.Application, error) {
	if app == nil && name != "" {
		id, err := application.Named(ctx, tx, name)
		if err != nil && problem.KindOf(err) != problem.NotFound {
			return nil, err
		}
		if err == nil {
			app = &id
		}
	}
	if app == nil {
		return nil, nil
	}
	return application.Get(ctx, tx, *app)
}

// compare adds a step for each component.
func (p *Preview) compare(app *appmodel.Application, before, after *application.Application) {
	was := map[uuid.UUID]*job.Job{}
	if before != nil {
		for _, j := range before.Jobs {
			was[j.ID] = j
		}
	}
	for _, j := range after.Jobs {
		old := was[j.ID]
		if !j.Live() && (old == nil || !old.Live()) {
			continue
		}
		s := step(old, j)
		if c := app.Component(j.Component); c != nil && c.Type == appmodel.TypeMultiple && j.Placed() {
			s.Variant = j.Instruction.Type
		}
		if s.Action != "none" {
			p.Changes++
		}
		p.Steps = append(p.Steps, s)
	}
}

// rest adds a step for changes that no component's step shows, such as in policies. For a stopped application no
// component has a step.
func (p *Preview) rest(before *application.Application, now *appmodel.Application) error {
	old, err := before.Parsed()
	if err != nil {
		return err
	}
	p.Fields = difference.Fields(old, now)
	what := application.Beside(old, now)
	other := func(c appmodel.Component) bool { // of a component that both have
		was := old.Component(c.Name)
		return was != nil && !reflect.DeepEqual(
			[]any{was.Type, was.Requirements, was.Manifests}, []any{c.Type, c.Requirements, c.Manifests})
	}
	if p.Changes == 0 &&
		(!slices.EqualFunc(old.Components, now.Components, sameName) || slices.ContainsFunc(now.Components, other)) {
		what = append(what, "components")
	}
	if len(what) > 0 {
		p.Changes++
		p.Steps = append(p.Steps, Step{Action: "change", Why: "other " + strings.Join(what, ", ")})
	}
	return nil
}

func sameName(a, b appmodel.Component) bool { return a.Name == b.Name }

func step(old, now *job.Job) Step {
	s := Step{Component: now.Component, Replica: now.Replica, Action: "none"}
	if old != nil && old.Placed() {
		s.From = &old.Target
	}
	if now.Placed() {
		s.To = &now.Target
	}
	for _, c := range now.Conditions {
		if c.Reason == job.ReasonTooLarge { // it would stay where it is, since no place fits
			s.Why = c.Message
			break
		}
		if c.Type == job.ConditionCreated && c.Message != "" { // set by the matchmaker, not by an agent
			s.Why = c.Message
		}
	}
	switch {
	case !now.Live():
		s.Action = "remove"
	case !now.Placed() && now.Type == job.Create && now.State == job.Created:
		s.Action = "wait"
		if old != nil && !old.Placed() {
			s.Action = "none" // it waited before
		}
	case old == nil || !old.Placed():
		s.Action = "create"
	case now.Target != old.Target:
		s.Action = "move"
	case now.Type == job.Replace && now.State == job.Created && now.UpdatedAt != old.UpdatedAt:
		s.Action = "replace"
	case now.UpdatedAt != old.UpdatedAt:
		s.Action = "change"
	}
	return s
}

// Explain explains where the components of a stored application are. Those that run are placed again together, each
// starting from where it is, so the answer says why its place is right now, or what would be better. Those that wait
// are placed around them, and displace none of them.
func Explain(ctx context.Context, q store.Querier, id uuid.UUID, s Settings) (*Answer, error) {
	a, err := application.Get(ctx, q, id)
	if err != nil {
		return nil, err
	}
	app, err := a.Parsed()
	if err != nil {
		return nil, err
	}
	inv, err := readInventory(ctx, q, s)
	if err != nil {
		return nil, err
	}
	all := parts(app, a.Jobs, nobody)
	if err := inv.readAround(ctx, q, app, all); err != nil {
		return nil, err
	}
	list := slices.DeleteFunc(parts(app, a.Jobs, anybody), func(p part) bool { return p.job == nil || !p.job.Placed() })
	if len(list) == 0 {
		list = all
	}
	list, p, plan, err := solve(app, list, inv)
	if err != nil {
		return nil, err
	}
	for i := range list {
		if list[i].quiet { // it stays for now, so it is in no plan
			list[i].alone = &placement.ComponentExplanation{}
		}
	}
	if err := explainAlone(app, list, inv); err != nil {
		return nil, err
	}
	ex := explain(list, p, plan, func(*part) bool { return true })
	if len(list) < len(all) {
		running := ex.Components // in the order in which all has them
		if list, p, plan, err = solve(app, all, inv); err != nil {
			return nil, err
		}
		ex = explain(list, p, plan, func(p *part) bool { return !p.fixed })
		for i := range list {
			if list[i].fixed {
				ex.Components[i], running = running[0], running[1:]
			}
		}
	}
	return &Answer{Application: app, Plan: plan, Explanation: ex, Warnings: problem.Texts(registry.Warnings(app)), Derived: problem.Texts(app.Derived), list: list}, nil
}
