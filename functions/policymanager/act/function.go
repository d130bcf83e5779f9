// Package act does what a violated policy asks for: a remediation of its application, or a call to an address that the
// policy names.
package act

import (
	"cmp"
	"context"
	"errors"
	"time"

	cloudevents "github.com/cloudevents/sdk-go/v2/event"

	"github.com/littoral-project/littoral/shared/events"
	"github.com/littoral-project/littoral/shared/function"
	"github.com/littoral-project/littoral/shared/job"
	"github.com/littoral-project/littoral/shared/policy/policies"
	"github.com/littoral-project/littoral/shared/policy/registry"
	"github.com/littoral-project/littoral/shared/policy/remediation"
	"github.com/littoral-project/littoral/shared/problem"
	"github.com/littoral-project/littoral/shared/store"
	"github.com/littoral-project/littoral/shared/webhook"
)

// Spec declares the function.
var Spec = function.Spec{
	Consumes: []string{events.PolicyViolated},
	Emits:    []string{events.ApplicationPlaced, events.ApplicationUnplaced, events.JobReady},
	Timeout:  30 * time.Second,
	Memory:   "128Mi", // for each call ten thousand nodes, and the problem they make
}

// Function is the reaction with its settings.
type Function struct {
	config config
	calls  *webhook.Client
}

type config struct {
	policies.Brakes
	remediation.Settings
	webhook.Config
}

// New reads the settings.
func New(env *function.Env) (*Function, error) {
	f := &Function{}
	if err := env.Config(&f.config); err != nil {
		return nil, err
	}
	var err error
	f.calls, err = webhook.New(f.config.Config, env.HTTP)
	return f, err
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
	p, past, err := due(ctx, tx, a)
	switch {
	case err != nil:
		return err
	case past != "":
		return a.Finish(ctx, tx, policies.Skipped, past)
	case p.Action.URL != "":
		return f.call(ctx, tx, p, a)
	}
	return f.remediate(ctx, tx, p, a)
}

// due returns the policy if it still asks for the action, or else why it does not. Nothing is begun about a violation
// that has ended, except to record it.
func due(ctx context.Context, tx *store.Tx, a *policies.Action) (p *policies.Policy, past string, err error) {
	p, err = policies.Get(ctx, tx, a.PolicyID)
	switch {
	case problem.KindOf(err) == problem.NotFound:
		return nil, "the policy was deleted", nil
	case err != nil:
		return nil, "", err
	case !p.Active():
		return nil, "the policy is not watched any more", nil
	case !p.Open(a.ID) && !records(p):
		return nil, "this violation had ended when its turn came", nil
	}
	return p, "", nil
}

// call makes the outgoing call. Whoever is called sees the same id again when the call is repeated after a crash.
func (f *Function) call(ctx context.Context, tx *store.Tx, p *policies.Policy, a *policies.Action) error {
	body, err := a.Violation.Body(p.Action.ExtraParams)
	if err != nil {
		return err
	}
	err = f.calls.Do(ctx, webhook.Call{
		Method: p.Action.HTTPMethod, URL: p.Action.URL, ID: a.ID.String(), Body: body, Query: registry.Flatten(body),
		Token: p.Action.IncludeAccessToken,
	})
	if err != nil {
		return err
	}
	return a.Finish(ctx, tx, policies.Done, "called "+p.Action.HTTPMethod+" "+p.Action.URL)
}

// wanted is the remediation that the policy asks for.
func wanted(p *policies.Policy) (job.Remediation, error) {
	return job.ParseRemediation(cmp.Or(p.Action.Remediation(), string(job.NoRemediation)))
}

// records reports whether the policy only asks to record its violations.
func records(p *policies.Policy) bool {
	r, err := wanted(p)
	return err == nil && r == job.NoRemediation && p.Action.URL == ""
}

// remediate has the job manager's part done in this transaction.
func (f *Function) remediate(ctx context.Context, tx *store.Tx, p *policies.Policy, a *policies.Action) error {
	r, err := wanted(p)
	if err != nil {
		return a.Finish(ctx, tx, policies.Skipped, "remediation "+p.Action.Remediation()+" is not known")
	}
	if p.Subject.Type != registry.AppSubject {
		return a.Finish(ctx, tx, policies.Skipped, "it is about no application, and the policy names nobody to call")
	}
	a.Remediation = string(r)
	if r != job.NoRemediation {
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

// stillDue is due with the application locked. The end of a violation lets the component stay, under the same lock: so
// it has either ended before this, or it finds the result of the move.
func stillDue(ctx context.Context, tx *store.Tx, a *policies.Action) (past string, err error) {
	if err := a.LockSubject(ctx, tx); err != nil {
		return "", err
	}
	_, past, err = due(ctx, tx, a)
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
