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
	"github.com/littoral-project/littoral/shared/history/recorded"
	"github.com/littoral-project/littoral/shared/policy/registry"
	"github.com/littoral-project/littoral/shared/policy/template"
	"github.com/littoral-project/littoral/shared/problem"
	"github.com/littoral-project/littoral/shared/store"
)

// Follow makes the policies of an application match its descriptor, and has them watched while the application is meant
// to run. It reads the application as it is now, so late, repeated and reordered events have the same result.
//
// Until the descriptor changes, it leaves alone what people changed: variables that they set, and policies that they
// deactivated, deleted or created again.
func Follow(ctx context.Context, tx *store.Tx, id uuid.UUID, render Renderer) error {
	// Lock the policies before the application, in the order in which Judge does.
	if _, err := lockOfInstance(ctx, tx, id.String()); err != nil {
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

// Remove deletes every policy about the application.
func Remove(ctx context.Context, tx *store.Tx, instance string) error {
	list, err := lockOfInstance(ctx, tx, instance)
	if err != nil {
		return err
	}
	for _, p := range list {
		gone := p.DeletedAt != nil && p.RuleDone >= p.RuleWanted
		p.OriginVersion = 0 // no descriptor will ask for it, so the row need not stay as a mark
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

// Pause stops watching the policies about the application until it runs again.
func Pause(ctx context.Context, tx *store.Tx, instance string) error {
	list, err := lockOfInstance(ctx, tx, instance)
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

// Resume starts watching the policies about an application that runs from now on; with all, also those that a person
// deactivated.
func Resume(ctx context.Context, tx *store.Tx, instance string, all bool, render Renderer) error {
	list, err := lockOfInstance(ctx, tx, instance)
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

// start is Activate for a policy whose application was started: telemetry from before the start must not count as lost
// now.
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

// ensure creates or updates the policies that the descriptor asks for.
func ensure(ctx context.Context, tx *store.Tx, app *application.Application, render Renderer) error {
	parsed, err := app.Parsed()
	if err != nil {
		return err
	}
	list, err := lockOfInstance(ctx, tx, app.ID.String())
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
	} else if err := refuse(ctx, tx, app, nil); err != nil {
		return err
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
		p.OriginVersion = 0 // the descriptor no longer asks for it, so its row need not stay
		if err := p.Delete(ctx, tx); err != nil {
			return err
		}
	}
	return nil
}

// switchedOff reports which of the wanted policies a person has deactivated. A policy named by a running number is
// recognized by its whole content, any other by what it is about: its former number may now belong to another policy.
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

// about identifies what a policy watches, including a device, but not its limit.
func about(p *registry.Policy) string {
	text, _ := json.Marshal([]any{p.Subject, p.Spec.Type, p.Spec.TemplateName, p.Spec.Expr})
	if p.Spec.TemplateName == template.DeviceAvailable {
		text = fmt.Append(text, p.Variables["device"])
	}
	return string(text)
}

// sound returns the policies without a fault.
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

// refuse records, once, which policies of the descriptor cannot be made, by their paths; the others are watched.
func refuse(ctx context.Context, tx *store.Tx, app *application.Application, cause error) error {
	next := map[string]string{}
	for name, why := range app.Unwatched {
		if !strings.Contains(name, "[") { // of a policy that was made
			next[name] = why
		}
	}
	var faulty *problem.Error
	if errors.As(cause, &faulty) {
		for _, f := range faulty.Fields {
			next[f.Path] = f.Detail
		}
	}
	if err := app.SetUnwatched(ctx, tx, next); err != nil || cause == nil {
		return err
	}
	message := "not watched: " + brief(cause.Error())
	if before, err := history.Recorded(ctx, tx, app.ID, recorded.PolicyRefused, message); err != nil || before {
		return err
	}
	return history.Record(ctx, tx, history.Entry{ApplicationID: &app.ID, Event: recorded.PolicyRefused, Message: message})
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

// Make stores a policy that a descriptor asks for, not yet watched. One that cannot be rendered is stored too, with the
// reason, so that people can see it.
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
