// Package remediate carries out the remediation that a violated policy asks for.
package remediate

import (
	"context"
	"errors"

	cloudevents "github.com/cloudevents/sdk-go/v2/event"

	"github.com/littoral-project/littoral/shared/events"
	"github.com/littoral-project/littoral/shared/function"
	"github.com/littoral-project/littoral/shared/job"
	"github.com/littoral-project/littoral/shared/policy/policies"
	"github.com/littoral-project/littoral/shared/policy/registry"
	"github.com/littoral-project/littoral/shared/policy/remediation"
	"github.com/littoral-project/littoral/shared/problem"
	"github.com/littoral-project/littoral/shared/store"
)

// Spec declares the function.
var Spec = function.Spec{
	Consumes: []string{events.RemediationRequested},
	Emits:    []string{events.ApplicationPlaced, events.ApplicationUnplaced, events.JobReady},
	Class:    function.Large, // for each call ten thousand nodes, and the problem they make
}

// Function is the reaction with its settings.
type Function struct{ config config }

type config struct {
	policies.Brakes
	remediation.Settings
}

// New reads the settings.
func New(env *function.Env) (*Function, error) {
	f := &Function{}
	return f, env.Config(&f.config)
}

// React acts once on each violation. A failure that may pass is returned, so that the Broker delivers again with
// backoff, and finally keeps the event as a dead letter.
func (f *Function) React(ctx context.Context, tx *store.Tx, e cloudevents.Event) error {
	about, err := events.Data[events.Policy](e)
	if err != nil {
		return err
	}
	if about.Violation == nil {
		return nil
	}
	a, err := policies.LockAction(ctx, tx, *about.Violation)
	if err != nil || a == nil || a.Over() {
		return err
	}
	p, past, err := a.Due(ctx, tx)
	switch {
	case err != nil:
		return err
	case past != "":
		return a.Finish(ctx, tx, policies.Skipped, past)
	}
	return f.remediate(ctx, tx, p, a)
}

// remediate has the job manager's part done in this transaction.
func (f *Function) remediate(ctx context.Context, tx *store.Tx, p *policies.Policy, a *policies.Action) error {
	r, err := p.Remediation()
	if err != nil {
		return a.Finish(ctx, tx, policies.Skipped, "remediation "+p.Action.Remediation()+" is not known")
	}
	if p.Subject.Type != registry.AppSubject {
		return a.Finish(ctx, tx, policies.Skipped, "it is about no application, and the policy names nobody to call")
	}
	a.Remediation = string(r)
	if r != job.NoRemediation {
		if p.Properties.Confirm && a.ConfirmedBy == "" {
			return a.Suggest(ctx, tx)
		}
		if held, err := a.Brake(ctx, tx, p, f.config.Brakes); err != nil || held {
			return err
		}
	}
	if r == job.Reallocate {
		past, err := stillDue(ctx, tx, a)
		if err != nil {
			return err
		}
		if past != "" {
			return a.Finish(ctx, tx, policies.Skipped, past)
		}
	}
	changed, err := remediation.Apply(ctx, tx, incompliance(p, a, r), f.config.Settings)
	switch {
	case problem.KindOf(err) == problem.NotFound, errors.Is(err, remediation.ErrLimit), errors.Is(err, remediation.ErrLeft):
		return a.Finish(ctx, tx, policies.Skipped, err.Error())
	case err != nil:
		return err
	case r == job.Reallocate && changed == 0:
		return a.Stay(ctx, tx)
	}
	return a.Finish(ctx, tx, policies.Done, string(r))
}

// stillDue is Action.Due with the application locked. The end of a violation lets the component stay, under the same lock: so
// it has either ended before this, or it finds the result of the move.
func stillDue(ctx context.Context, tx *store.Tx, a *policies.Action) (past string, err error) {
	if err := a.LockSubject(ctx, tx); err != nil {
		return "", err
	}
	_, past, err = a.Due(ctx, tx)
	return past, err
}

// incompliance is the violation as the job manager takes it. It has no id: the action records that it was carried out
// once, and may be begun again when the violation continues after all.
func incompliance(p *policies.Policy, a *policies.Action, r job.Remediation) *remediation.Incompliance {
	v := a.Violation
	i := &remediation.Incompliance{
		CurrentValue: v.CurrentValue, PolicyName: p.Name, PolicyID: p.ID,
		MeasurementBackend: v.MeasurementBackend, ExtraLabels: v.ExtraLabels, Remediation: r,
		Subject: remediation.Subject{
			Type: string(v.Subject.Type), AppName: v.Subject.AppName, AppComponent: v.Subject.AppComponent,
			AppInstance: v.Subject.AppInstance,
		},
	}
	if v.Threshold != nil {
		i.Threshold = *v.Threshold
	}
	return i
}
