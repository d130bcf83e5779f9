package policies

import (
	"context"
	"fmt"

	"github.com/littoral-project/littoral/shared/application"
	"github.com/littoral-project/littoral/shared/history/recorded"
	"github.com/littoral-project/littoral/shared/policy/registry"
	"github.com/littoral-project/littoral/shared/problem"
	"github.com/littoral-project/littoral/shared/store"
)

// Create stores a policy, which must have been rendered, and activates it if asked to. fresh is false when the same
// policy exists already; the error is Conflict when another one has its name.
func Create(ctx context.Context, tx *store.Tx, p *Policy, activate bool) (stored *Policy, fresh bool, err error) {
	if err := tx.AwaitTurn(ctx, store.TurnPolicy, p.ID); err != nil {
		return nil, false, err
	}
	before, err := lockAny(ctx, tx, p.UUID())
	switch {
	case problem.KindOf(err) == problem.NotFound:
	case err != nil:
		return nil, false, err
	case before.DeletedAt == nil && same(&before.Policy, &p.Policy):
		return before, false, nil
	case before.DeletedAt == nil:
		return nil, false, problem.New(problem.Conflict, "there is another policy named %q of this application", p.Name)
	default: // restored after a deletion: its former alerts stay old, and so does the descriptor that it came with
		p.State = before.State.Deactivate()
		p.OriginVersion = max(p.OriginVersion, before.OriginVersion)
	}
	inserted, err := p.insert(ctx, tx)
	if err != nil {
		return nil, false, err
	}
	if !inserted {
		return nil, false, problem.New(problem.Conflict, "there is another policy named %q of this application", p.Name)
	}
	if err := p.note(ctx, tx, registry.EventCreated, nil); err != nil {
		return nil, false, err
	}
	if err := p.announceFirst(ctx, tx); err != nil {
		return nil, false, err
	}
	if p.Status.RenderedSpec != nil {
		if err := p.note(ctx, tx, registry.EventRendered, nil); err != nil {
			return nil, false, err
		}
	}
	if activate {
		err = p.Unpause(ctx, tx)
	}
	return p, true, err
}

// Unpause is Activate at a person's request: if the application is not meant to run, its policy waits for its start.
func (p *Policy) Unpause(ctx context.Context, tx *store.Tx) error {
	rests, err := p.holds(ctx, tx, selectRests)
	switch {
	case err != nil:
		return err
	case !rests || p.Active():
		return p.Activate(ctx, tx)
	case !p.watched():
		return p.unwatchable()
	case !p.Paused:
		return nil
	}
	p.Paused = false
	return p.save(ctx, tx)
}

// Activate starts watching the policy. An enforced or violated policy stays as it is.
func (p *Policy) Activate(ctx context.Context, tx *store.Tx) error {
	if p.Active() && !p.Paused {
		return nil
	}
	if !p.watched() {
		return p.unwatchable()
	}
	p.Paused = false
	if p.State.Phase == registry.Unknown {
		if err := application.Watch(ctx, tx, p.Instance, p.Name); err != nil {
			return err
		}
	}
	if err := p.watch(ctx, tx); err != nil {
		return err
	}
	if err := p.follow(ctx, tx); err != nil {
		return err
	}
	return p.note(ctx, tx, registry.EventActivated, nil)
}

func (p *Policy) unwatchable() error {
	return problem.New(problem.Conflict, "policy %q has no expression that could be watched", p.Name)
}

// watch begins a new activation, in which an alert that still fires counts as new. The alerts heard before are deleted.
func (p *Policy) watch(ctx context.Context, tx *store.Tx) error {
	p.State = p.State.Activate(now())
	if _, err := tx.Exec(ctx, forgetAlerts, p.ID); err != nil {
		return fmt.Errorf("forget alerts: %w", err)
	}
	return nil
}

// Deactivate stops watching the policy. paused says that a person asked for it; then starting the application does not
// activate it.
func (p *Policy) Deactivate(ctx context.Context, tx *store.Tx, paused bool) error {
	if !p.Active() {
		if p.Paused == paused {
			return nil
		}
		p.Paused = p.Paused || paused
		return p.save(ctx, tx)
	}
	before := p.State
	p.State, p.Paused = p.State.Deactivate(), paused
	if err := p.follow(ctx, tx); err != nil {
		return err
	}
	if err := p.releaseAll(ctx, tx, before, "is not watched any more"); err != nil {
		return err
	}
	return p.note(ctx, tx, registry.EventDeactivated, nil)
}

// Update changes the content of the policy, which must have been rendered; name and instance stay. If the policy is
// watched, its rule is replaced.
func (p *Policy) Update(ctx context.Context, tx *store.Tx, next registry.Policy, spec registry.Spec) error {
	if p.Name != next.Name || p.Instance != next.Subject.AppInstance {
		var faults problem.Faults
		if p.Name != next.Name {
			faults.Add("name", 0, "cannot be changed from %q", p.Name)
		}
		if p.Instance != next.Subject.AppInstance {
			faults.Add("subject.appInstance", 0, "cannot be changed from %q", p.Instance)
		}
		return faults.Err("the policy is not valid")
	}
	if same(&p.Policy, &next) && p.Status.RenderedSpec != nil {
		return nil
	}
	p.Subject, p.Spec, p.Action = next.Subject, next.Spec, next.Action
	p.Variables, p.Properties = next.Variables, next.Properties
	return p.renew(ctx, tx, spec, registry.EventRendered, nil)
}

// SetVariables changes the variables of the policy, and its spec to what they render to.
func (p *Policy) SetVariables(
	ctx context.Context, tx *store.Tx, variables registry.Variables, spec registry.Spec, details map[string]any,
) error {
	p.Variables = variables
	return p.renew(ctx, tx, spec, registry.EventVariableSet, details)
}

// renew stores a new rendering; alerts of the former rule no longer count.
func (p *Policy) renew(
	ctx context.Context, tx *store.Tx, spec registry.Spec, typ registry.EventType, details map[string]any,
) error {
	before := p.State
	p.Status.RenderedSpec = &spec
	switch {
	case !p.Active() && p.State.Phase == registry.Unknown:
		p.State.Phase = registry.Inactive
	case p.Active() && !p.watched():
		p.State = p.State.Deactivate()
	case p.Active():
		if err := p.watch(ctx, tx); err != nil {
			return err
		}
	}
	if err := p.follow(ctx, tx); err != nil {
		return err
	}
	if err := p.releaseAll(ctx, tx, before, "was changed"); err != nil {
		return err
	}
	return p.note(ctx, tx, typ, details)
}

// unrenderable records that the policy cannot be rendered, so that it is unknown and not watched.
func (p *Policy) unrenderable(ctx context.Context, tx *store.Tx, cause error) error {
	before := p.State
	p.Status.RenderedSpec = nil
	p.unwatch()
	if err := p.follow(ctx, tx); err != nil {
		return err
	}
	if err := p.releaseAll(ctx, tx, before, "is not watched any more"); err != nil {
		return err
	}
	if err := p.unclear(ctx, tx, cause); err != nil {
		return err
	}
	return p.blind(ctx, tx, cause)
}

// blind records with the application, if it is one of ours, that the policy cannot be watched.
func (p *Policy) blind(ctx context.Context, tx *store.Tx, cause error) error {
	if instanceID(p.Instance) == nil {
		return p.record(ctx, tx, p.Instance, "", recorded.PolicyRefused, p.Name+" is not watched: "+brief(cause.Error()))
	}
	return application.Unwatch(ctx, tx, p.Instance, p.Name, brief(cause.Error()))
}

// refused records that the rule store refused the policy's rule. That need not be the fault of the expression, so the
// rendering is kept, to be tried again when the policy is activated.
func (p *Policy) refused(ctx context.Context, tx *store.Tx, cause error) error {
	before := p.State
	p.unwatch()
	if err := p.save(ctx, tx); err != nil {
		return err
	}
	if err := p.releaseAll(ctx, tx, before, "is not watched any more"); err != nil {
		return err
	}
	if err := p.unclear(ctx, tx, cause); err != nil {
		return err
	}
	return p.blind(ctx, tx, cause)
}

// unwatch makes the policy unknown: it should be watched but cannot be.
func (p *Policy) unwatch() {
	p.State = p.State.Deactivate()
	p.State.Phase = registry.Unknown
}

func (p *Policy) unclear(ctx context.Context, tx *store.Tx, cause error) error {
	return p.note(ctx, tx, registry.EventRenderingError, map[string]any{"error": brief(cause.Error())})
}

// Delete marks the policy as deleted. Its row is deleted once its rule is gone.
func (p *Policy) Delete(ctx context.Context, tx *store.Tx) error {
	if p.DeletedAt != nil {
		return nil
	}
	at, before := now(), p.State
	if before.Phase == registry.Unknown {
		if err := application.Watch(ctx, tx, p.Instance, p.Name); err != nil {
			return err
		}
	}
	p.State, p.DeletedAt = p.State.Deactivate(), &at
	if err := p.follow(ctx, tx); err != nil {
		return err
	}
	if err := p.releaseAll(ctx, tx, before, "was deleted"); err != nil {
		return err
	}
	return p.note(ctx, tx, registry.EventDeleted, nil)
}
