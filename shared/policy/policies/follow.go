package policies

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/google/uuid"

	"github.com/littoral-project/littoral/shared/application"
	"github.com/littoral-project/littoral/shared/history"
	"github.com/littoral-project/littoral/shared/policy/registry"
	"github.com/littoral-project/littoral/shared/policy/template"
	"github.com/littoral-project/littoral/shared/problem"
	"github.com/littoral-project/littoral/shared/store"
)

// Follow makes the policies of an application what its descriptor asks for, watched while the application is meant to
// run. It looks at the application as it is now, so that late, doubled and reordered events come to the same.
//
// Between two versions of the descriptor it leaves alone what people changed: variables they set, policies they
// deactivated, deleted or made again.
func Follow(ctx context.Context, tx *store.Tx, id uuid.UUID, render Renderer) error {
	// Whoever judges a policy locks it ahead of its application; and who carries its rule over keeps it for as long as the rule
	// store takes. To wait for them with the application in hand would hold up all that is done with that.
	if _, err := LockOfInstance(ctx, tx, id.String()); err != nil {
		return err
	}
	app, err := application.Lock(ctx, tx, id)
	if problem.KindOf(err) == problem.NotFound {
		return Remove(ctx, tx, id.String())
	}
	if err != nil {
		return err
	}
	if app.Desired != application.Deleted {
		if err := ensure(ctx, tx, app, render); err != nil {
			return err
		}
	}
	if app.Desired != application.Running {
		return Pause(ctx, tx, id.String())
	}
	return Resume(ctx, tx, id.String(), false, render)
}

// Remove takes away every policy about the application.
func Remove(ctx context.Context, tx *store.Tx, instance string) error {
	list, err := LockOfInstance(ctx, tx, instance)
	if err != nil {
		return err
	}
	for _, p := range list {
		gone := p.DeletedAt != nil && p.RuleDone >= p.RuleWanted
		p.OriginVersion = 0 // no descriptor keeps a mark any more
		switch {
		case gone:
			err = p.forget(ctx, tx)
		case p.DeletedAt != nil:
			err = p.follow(ctx, tx)
		default:
			err = p.Delete(ctx, tx)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// Pause ends the watch of every policy about the application until it runs again.
func Pause(ctx context.Context, tx *store.Tx, instance string) error {
	list, err := LockOfInstance(ctx, tx, instance)
	if err != nil {
		return err
	}
	for _, p := range list {
		if !p.Active() {
			continue
		}
		if err := p.Deactivate(ctx, tx, false); err != nil {
			return err
		}
	}
	return nil
}

// Resume has every policy about the application, which runs from now on, watched; also those a person deactivated if all.
func Resume(ctx context.Context, tx *store.Tx, instance string, all bool, render Renderer) error {
	list, err := LockOfInstance(ctx, tx, instance)
	if err != nil {
		return err
	}
	for _, p := range list {
		if p.DeletedAt != nil || !p.watched() || (p.Paused && !all) {
			continue
		}
		if err := p.start(ctx, tx, render); err != nil {
			return err
		}
	}
	return nil
}

// start is Activate for a policy whose application has been started: what was heard of that before is no silence of now.
func (p *Policy) start(ctx context.Context, tx *store.Tx, render Renderer) error {
	if p.Active() && !p.Paused {
		return nil
	}
	p.Started = now()
	p.State.Started = p.Started
	if _, lost := p.Silence(); lost {
		err := p.Render(render)
		if problem.KindOf(err) == problem.Invalid {
			return p.unrenderable(ctx, tx, err)
		}
		if err != nil {
			return err
		}
	}
	return p.Activate(ctx, tx)
}

// ensure gives the policies the content that the descriptor asks for.
func ensure(ctx context.Context, tx *store.Tx, app *application.Application, render Renderer) error {
	parsed, err := app.Parsed()
	if err != nil {
		return err
	}
	list, err := LockOfInstance(ctx, tx, app.ID.String())
	if err != nil {
		return err
	}
	have := map[string]*Policy{}
	for _, p := range list {
		have[p.ID] = p
	}
	wanted, err := registry.FromDescriptor(parsed, app.ID.String(), app.Name)
	if err != nil {
		if problem.KindOf(err) != problem.Invalid {
			return err
		}
		wanted = sound(wanted, err)
		if err := refuse(ctx, tx, app, err); err != nil {
			return err
		}
	}
	off := switchedOff(list, wanted)
	for i := range wanted {
		if err := ensureOne(ctx, tx, have[wanted[i].ID], wanted[i], off[i], app.Version, render); err != nil {
			return err
		}
		delete(have, wanted[i].ID)
	}
	for _, p := range list {
		if have[p.ID] == nil || p.Origin != FromDescriptor || p.OriginVersion >= app.Version {
			continue
		}
		p.OriginVersion = 0 // the descriptor does not name it any more, so its row need not stay
		if err := p.Delete(ctx, tx); err != nil {
			return err
		}
	}
	return nil
}

// switchedOff tells which of the policies that are wanted a person has deactivated. One whose name is a running number is
// known by all it says, else by what it is about, whichever number that had before: its row may be another's now.
func switchedOff(list []*Policy, wanted []registry.Policy) []bool {
	off, found := make([]bool, len(wanted)), make([]bool, len(wanted))
	taken := map[*Policy]bool{}
	for _, tier := range []struct {
		numbered bool
		key      func(*registry.Policy) string
	}{
		{false, func(p *registry.Policy) string { return p.ID }},
		{true, func(p *registry.Policy) string { return p.ID + said(p) }},
		{true, said},
		{true, func(p *registry.Policy) string { return p.ID + about(p) }},
		{true, about},
	} {
		had := map[string][]*Policy{}
		for _, p := range list {
			if p.DeletedAt == nil && !taken[p] && (p.Origin == FromDescriptor || !tier.numbered) {
				key := tier.key(&p.Policy)
				had[key] = append(had[key], p)
			}
		}
		for i := range wanted {
			if found[i] || wanted[i].Numbered != tier.numbered {
				continue
			}
			key := tier.key(&wanted[i])
			if rows := had[key]; len(rows) > 0 {
				had[key], taken[rows[0]] = rows[1:], true
				off[i], found[i] = rows[0].Paused, true
			}
		}
	}
	return off
}

// about is what a policy watches, whatever its limit. A device is part of that.
func about(p *registry.Policy) string {
	text, _ := json.Marshal([]any{p.Subject, p.Spec.Type, p.Spec.TemplateName, p.Spec.Expr})
	if p.Spec.TemplateName == template.DeviceAvailable {
		text = fmt.Append(text, p.Variables["device"])
	}
	return string(text)
}

// sound returns the policies that no fault is about.
func sound(made []registry.Policy, err error) []registry.Policy {
	var e *problem.Error
	if !errors.As(err, &e) {
		return nil
	}
	return slices.DeleteFunc(made, func(p registry.Policy) bool {
		return slices.ContainsFunc(e.Fields, func(f problem.Field) bool {
			return f.Path == p.Path || strings.HasPrefix(f.Path, p.Path+".")
		})
	})
}

// refuse tells once what of the descriptor's policies cannot be watched; the others are.
func refuse(ctx context.Context, tx *store.Tx, app *application.Application, cause error) error {
	message := "not watched: " + brief(cause.Error())
	const event = "policy.refused"
	if before, err := history.Told(ctx, tx, app.ID, event, message); err != nil || before {
		return err
	}
	return history.Record(ctx, tx, history.Entry{ApplicationID: &app.ID, Event: event, Message: message})
}

func ensureOne(
	ctx context.Context, tx *store.Tx, p *Policy, want registry.Policy, off bool, version int64, render Renderer,
) error {
	switch {
	case p == nil || (p.DeletedAt != nil && p.OriginVersion < version):
		made := New(want, FromDescriptor)
		made.OriginVersion, made.Paused = version, off
		return Make(ctx, tx, made, render)
	case p.DeletedAt != nil || p.OriginVersion >= version:
		return nil
	}
	p.Origin, p.OriginVersion = FromDescriptor, version
	if off {
		if err := p.Deactivate(ctx, tx, true); err != nil {
			return err
		}
	}
	p.Paused = off
	if same(&p.Policy, &want) && p.Status.RenderedSpec != nil {
		return p.save(ctx, tx)
	}
	want.Started = p.Started
	spec, err := render(&want)
	if problem.KindOf(err) == problem.Invalid {
		p.Spec, p.Variables = want.Spec, want.Variables
		return p.unrenderable(ctx, tx, err)
	}
	if err != nil {
		return err
	}
	return p.Update(ctx, tx, want, spec)
}

// Make stores the policy that a descriptor asks for, not yet watched. One that cannot be rendered is kept too, with
// the reason: whoever looks for it finds out.
func Make(ctx context.Context, tx *store.Tx, p *Policy, render Renderer) error {
	unclear := p.Render(render)
	if unclear != nil && problem.KindOf(unclear) != problem.Invalid {
		return unclear
	}
	_, fresh, err := Create(ctx, tx, p, false)
	if err != nil || !fresh || unclear == nil {
		return err
	}
	return p.unrenderable(ctx, tx, unclear)
}
